"""Messages between a client and a model server: their fields, their version, and how they are read and written.

A question is a text with its queries; an answer has the predictions in the same shape. The JSON is that of the
dataclasses, field by field: their type hints drive what is written, read, checked and documented (the server's OpenAPI
document is made from them too). Requests with unknown fields are refused; a client skips unknown fields of an answer,
so that a newer server may say more.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from importlib import metadata
from typing import Literal, TypeVar

from rlm_core.types import LEVELS, Basis, Callee, Calls, CodeText, MeasuredFunctions, Prediction, Query, WorkFacts

from .typed_json import WireError, dumps, loads

VERSION: Literal[3] = 3
PREDICT, INFO, HEALTH, METRICS = "/v3/predict", "/v3/info", "/health", "/metrics"
# A client's own mark, by which the server gives each its turn; nothing is allowed or refused by it.
CLIENT_HEADER = "RLM-Client"

NOTHING = MeasuredFunctions()

_T = TypeVar("_T", "Answer", "Info", "Problem", "Health")


@dataclass(frozen=True, slots=True)
class Question:
    """A text, what it calls, what static analysis knows about it, and what is asked."""

    text: str
    language: str
    basis: Basis
    queries: tuple[Query, ...]
    callees: tuple[Callee, ...] = ()
    work: WorkFacts | None = None
    calls: Calls | None = None

    @classmethod
    def about(cls, code: CodeText, queries: Sequence[Query]) -> Question:
        """``queries`` about ``code``, without what was measured around it: many texts, the same for every unit."""
        calls = code.calls
        if calls is not None:
            calls = replace(calls, of_file=NOTHING, of_class=NOTHING, of_package=NOTHING)
        return cls(code.text, code.language, code.basis, tuple(queries), code.callees, code.work, calls)

    @property
    def code(self) -> CodeText:
        """The input of the predictor."""
        return CodeText(self.text, self.language, self.basis, self.callees, work=self.work, calls=self.calls)

    @property
    def characters(self) -> int:
        """The length of all texts in it, each once: that is what the model reads."""
        texts = {self.text, *(callee.text for callee in self.callees)}
        if (calls := self.calls) is not None:
            measured = (calls.of_file, calls.of_class, calls.of_package)
            functions = itertools.chain(calls.functions(), *(of.functions for of in measured))
            texts.update(function.text for function in functions)
        return sum(map(len, texts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The body of ``POST /v3/predict``."""

    version: Literal[3] = VERSION
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``predictions[i][j]`` answers ``questions[i].queries[j]``; ``model`` is the id of the weights that did it."""

    version: Literal[3]
    model: str
    predictions: tuple[tuple[Prediction, ...], ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request: questions, queries over all of them, characters per question, bytes of the body."""

    texts: int = 256
    queries: int = 4096
    characters: int = 200_000
    body_bytes: int = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Defaults:
    """The queries asked about units of a basis in these languages by default."""

    basis: Basis
    languages: tuple[str, ...]
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """The description of a server: the model, its devices by basis, default queries, and the limits.

    ``levels`` are the probabilities of the quantiles of a prediction.
    """

    version: Literal[3]
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
    return loads(Request, data, unknown="refuse")


def read(kind: type[_T], data: bytes) -> _T:
    """Decode a server's answer.

    Raises:
        WireError: it is not a ``kind``, or its quantiles are not at our levels.
    """
    found = loads(kind, data, unknown="ignore")
    if isinstance(found, Info):
        if found.levels != LEVELS:
            raise WireError("must be the levels of this rlm-lsp; use the same version on both sides", ".levels")
        if min(astuple(found.limits)) < 1:
            raise WireError("must all be positive", ".limits")
    if isinstance(found, Answer):
        for prediction in (one for line in found.predictions for one in line):
            if len(prediction.quantiles) not in (0, len(LEVELS)):
                raise WireError(f"{len(prediction.quantiles)} quantiles where {len(LEVELS)} belong")
    return found


def write(message: Request | Answer | Info | Problem | Health) -> bytes:
    """A message as JSON."""
    return dumps(message)
