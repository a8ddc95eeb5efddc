"""What a client and a model server say to each other: the messages, their version and how they are read and written.

A question is a text with its queries; an answer has the predictions in the same shape. The JSON is that of the
dataclasses, field by field (:mod:`rlm_core.serving.codec`); the server's OpenAPI document is made from them too.
Requests with fields that the server does not know are refused; a client passes over what it does not know of an
answer, so that a newer server may say more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib import metadata
from typing import Literal, TypeVar

from rlm_core.types import LEVELS, Basis, Callee, CodeText, Prediction, Query

from . import codec

VERSION: Literal[2] = 2
PREDICT, INFO, HEALTH, METRICS = "/v2/predict", "/v2/info", "/health", "/metrics"
# A client's own mark, by which the server gives each its turn; nothing is allowed or refused by it.
CLIENT_HEADER = "RLM-Client"

_T = TypeVar("_T", "Answer", "Info", "Problem", "Health")


@dataclass(frozen=True, slots=True)
class Question:
    """A text, what it calls, and what is asked about it."""

    text: str
    language: str
    basis: Basis
    queries: tuple[Query, ...]
    callees: tuple[Callee, ...] = ()

    @classmethod
    def about(cls, code: CodeText, queries: Sequence[Query]) -> Question:
        """``queries`` about ``code``."""
        return cls(code.text, code.language, code.basis, tuple(queries), code.callees)

    @property
    def code(self) -> CodeText:
        """What the predictor reads."""
        return CodeText(self.text, self.language, self.basis, self.callees)

    @property
    def characters(self) -> int:
        """The length of the longest text in it."""
        return max(len(self.text), *(len(callee.text) for callee in self.callees), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The body of ``POST /v2/predict``."""

    version: Literal[2] = VERSION
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``predictions[i][j]`` answers ``questions[i].queries[j]``; ``model`` is the id of the weights that did it."""

    version: Literal[2]
    model: str
    predictions: tuple[tuple[Prediction, ...], ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may hold: texts, queries over all of them, characters in one text, bytes of the body."""

    texts: int = 256
    queries: int = 4096
    characters: int = 200_000
    body_bytes: int = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Defaults:
    """The queries asked about units of a basis in these languages when nobody says otherwise."""

    basis: Basis
    languages: tuple[str, ...]
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """What a client learns when it connects: the model, its devices by basis, default queries, and the limits.

    ``levels`` are the probabilities that the quantiles of a prediction stand for.
    """

    version: Literal[2]
    model: str
    levels: tuple[float, ...]
    devices: Mapping[str, tuple[str, ...]]
    defaults: tuple[Defaults, ...]
    limits: Limits


@dataclass(frozen=True, slots=True)
class Health:
    """The server is up; ``queued`` texts wait for the model."""

    status: Literal["ok"]
    queued: int


@dataclass(frozen=True, slots=True)
class Problem:
    """The body of every answer that is not 200: one line that says what, where and what to do."""

    error: str


def program_version() -> str:
    """The version of the installed rlm-lsp, which clients send and the nodes of a cluster compare."""
    return metadata.version("rlm-lsp")


def read_request(data: bytes) -> Request:
    """A request as a server gets it.

    Raises:
        WireError: it is not one; the line says where and what was expected.
    """
    return codec.loads(Request, data, unknown="refuse")


def read(kind: type[_T], data: bytes) -> _T:
    """What a server answered.

    Raises:
        WireError: it is not a ``kind``, or its quantiles are not at our levels.
    """
    found = codec.loads(kind, data, unknown="ignore")
    if isinstance(found, Info):
        if found.levels != LEVELS:
            raise codec.WireError("must be the levels of this rlm-lsp; use the same version on both sides", ".levels")
        if min(astuple(found.limits)) < 1:
            raise codec.WireError("must all be positive", ".limits")
    if isinstance(found, Answer):
        for prediction in (one for line in found.predictions for one in line):
            if len(prediction.quantiles) not in (0, len(LEVELS)):
                raise codec.WireError(f"{len(prediction.quantiles)} quantiles where {len(LEVELS)} belong")
    return found


def write(message: Request | Answer | Info | Problem | Health) -> bytes:
    """A message as JSON."""
    return codec.dumps(message)
