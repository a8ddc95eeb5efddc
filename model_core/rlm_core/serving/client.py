"""A predictor that asks a model server (``rlm-lsp serve-model``) over HTTP, for editors and for the command line.

Connecting fails with an error; after that nothing does. When the server is down, busy or talks nonsense, queries are
answered with the reason instead of a number, and the next ones find out whether it is back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from rlm_core.errors import ModelError
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.types import METRICS_OF_BASIS, Abstention, AbstentionCode, Basis, CodeText, Prediction, Query

from . import wire
from .connection import Connection, NoAnswerError, Patience

# The place of a text among those that were asked about, and a question with some of its queries.
_Piece = tuple[int, wire.Question]


class RemotePredictor(WithoutComparison):
    """Answers from a model server. Safe to use from several threads; connections are kept open between calls.

    Args:
        url: where the server is, like ``https://gpu-box:8765``.
        token: the server's token; by default that of the environment or the user's token file.
        allow_http: send the token unencrypted over a network, as ``RLM_LSP_ALLOW_HTTP=1`` does.
        patience: time limits and retries.

    Raises:
        ModelError: the address is none, the server cannot be reached, refuses us or is no model server.
    """

    def __init__(
        self, url: str, *, token: str | None = None, allow_http: bool = False, patience: Patience | None = None
    ) -> None:
        self._connection = Connection(url, token, allow_http=allow_http, patience=patience or Patience())
        self.url = self._connection.url
        try:
            self._info = self._connection.request(wire.Info, wire.INFO)
        except NoAnswerError as failure:
            raise ModelError(f"{self.url}: the model server gives no answer: {failure}") from None

    @property
    def model_id(self) -> str:
        """The id of the server's weights."""
        return self._info.model

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """The devices that the server's model knows for a basis."""
        return self._info.devices.get(basis, ())

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """The server's default queries, as it told them when we connected."""
        for entry in self._info.defaults:
            if entry.basis == basis and language in entry.languages:
                return entry.queries
        return tuple(Query(metric) for metric in METRICS_OF_BASIS[basis])

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`.

        Where the server gives no answer, there are transient abstentions with the reason.
        """
        limits = self._info.limits
        answers: list[list[Prediction]] = []
        pieces: list[_Piece] = []
        for place, (code, asked) in enumerate(zip(texts, queries, strict=True)):
            question = wire.Question.about(code, asked)
            if question.characters > limits.characters:
                reason = Abstention(AbstentionCode.TEXT_TOO_LONG, {"limit": str(limits.characters)})
                answers.append(self._abstain(question, reason))
            else:
                answers.append([])
                pieces += ((place, part) for part in _parts(question, limits.queries))
        for pack in _packs(pieces, limits):
            for (place, _), line in zip(pack, self._ask([part for _, part in pack]), strict=True):
                answers[place] += line
        return answers

    def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        self._connection.close()

    def _ask(self, questions: list[wire.Question]) -> list[Sequence[Prediction]]:
        """The answers to one request, which is halved where its body is too large."""
        body, most = wire.write(wire.Request(questions=tuple(questions))), self._info.limits.body_bytes
        if len(body) > most and len(questions) > 1:
            middle = len(questions) // 2
            return self._ask(questions[:middle]) + self._ask(questions[middle:])
        if len(body) > most:
            reason = Abstention(AbstentionCode.REQUEST_TOO_LARGE, {"size": str(len(body)), "limit": str(most)})
            return [self._abstain(question, reason) for question in questions]
        try:
            return list(self._answers(questions, body))
        except NoAnswerError as failure:
            reason = Abstention(AbstentionCode.SERVER_UNAVAILABLE, {"url": self.url, "problem": str(failure)})
            return [self._abstain(question, reason) for question in questions]

    def _answers(self, questions: list[wire.Question], body: bytes) -> tuple[tuple[Prediction, ...], ...]:
        answer = self._connection.request(wire.Answer, wire.PREDICT, body)
        expected = [[(question.basis, query.metric) for query in question.queries] for question in questions]
        if [[(found.basis, found.metric) for found in line] for line in answer.predictions] != expected:
            raise NoAnswerError("its answers have another shape than the questions")
        if answer.model != self._info.model:
            # The server was restarted with other weights; its devices, defaults and limits may be others too.
            with suppress(NoAnswerError):
                self._info = self._connection.request(wire.Info, wire.INFO)
        return answer.predictions

    def _abstain(self, question: wire.Question, reason: Abstention) -> list[Prediction]:
        return [Prediction.missing(question.code, query, self.model_id, reason) for query in question.queries]


def _parts(question: wire.Question, most: int) -> Iterator[wire.Question]:
    """The question with at most ``most`` queries at a time."""
    for start in range(0, len(question.queries), most):
        yield replace(question, queries=question.queries[start : start + most])


def _packs(pieces: list[_Piece], limits: wire.Limits) -> Iterator[list[_Piece]]:
    """Pieces in order, as many in a request as it may hold."""
    pack: list[_Piece] = []
    queries = 0
    for piece in pieces:
        queries += len(piece[1].queries)
        if pack and (len(pack) == limits.texts or queries > limits.queries):
            yield pack
            pack, queries = [], len(piece[1].queries)
        pack.append(piece)
    if pack:
        yield pack
