"""A predictor that asks a model server (``rlm-lsp serve-model``) over HTTP, for editors and the command line.

Connecting may fail with an error; after that nothing does. When the server is down, busy or gives an unexpected
response, queries get the reason instead of a number, and later ones find out whether it is back. urllib3 does the HTTP:
kept-alive connections that threads share, time limits, and retries that are bounded. It ignores the proxy variables of
the environment and trusts the certificates that OpenSSL trusts (``SSL_CERT_FILE`` names others).
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from rlm_core.errors import ModelError
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.types import METRICS_OF_BASIS, Abstention, AbstentionCode, Basis, CodeText, Prediction, Query

from . import wire
from .access import TOKEN, TOKEN_FILE, default_token_file, find_token, is_loopback
from .typed_json import WireError

ALLOW_HTTP = "RLM_LSP_ALLOW_HTTP"
_CONNECTIONS = 32
_CHUNK = 2**16
_MOST_BYTES = 64 * 2**20
_LONGEST_PAUSE = 2.0
_LONGEST_LINE = 300
_T = TypeVar("_T", wire.Answer, wire.Info)
# The place of a text among those that were asked about, and a question with some of its queries.
_Piece = tuple[int, wire.Question]


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits (seconds) and numbers of attempts of requests to a server.

    Attributes:
        connect: for a connection.
        read: for an answer, after the time for a connection, whatever comes meanwhile.
        attempts: tries a request; only a failed connection and the status 503 are tried again.
        backoff: pause before the second try; it doubles, or is what the server asks for, up to two seconds.
        rest: after a failure of that kind, how long queries are answered with its reason without another try.
    """

    connect: float = 3.0
    read: float = 30.0
    attempts: int = 3
    backoff: float = 0.2
    rest: float = 2.0


class _Deadline:
    """Ends the socket of this thread's request when its time is over, whatever the server sends meanwhile.

    The limit of urllib3 is one per read: a server that sends a byte now and then would never exceed it, in the head of
    its answer as in the body.
    """

    _of_thread = threading.local()

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._of_thread.deadline = self
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._of_thread.deadline = None
        self._timer.cancel()
        with self._lock:
            self._socket = None

    @classmethod
    def watch(cls, connected: socket.socket | None) -> None:
        """End this socket when the time of this thread's request is over."""
        deadline: _Deadline | None = getattr(cls._of_thread, "deadline", None)
        if deadline is not None:
            with deadline._lock:
                deadline._socket = connected

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            if self._socket is not None:
                with suppress(OSError):
                    # Not that of an SSL socket, which another thread must not touch.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _WatchedConnection(HTTPConnection):
    def request(self, *arguments: Any, **named: Any) -> None:
        if self.sock is None:
            self.connect()
        _Deadline.watch(self.sock)
        super().request(*arguments, **named)


class _WatchedHttpsConnection(HTTPSConnection):
    def request(self, *arguments: Any, **named: Any) -> None:
        if self.sock is None:
            self.connect()
        _Deadline.watch(self.sock)
        super().request(*arguments, **named)


class _WatchedPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _WatchedConnection


class _WatchedHttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _WatchedHttpsConnection


class _WatchedPoolManager(urllib3.PoolManager):
    """A pool manager whose requests obey the :class:`_Deadline` of their thread."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.pool_classes_by_scheme = {"http": _WatchedPool, "https": _WatchedHttpsPool}


class NoAnswerError(Exception):
    """A request without a usable answer; ``away`` when the server cannot be reached or has no time."""

    def __init__(self, reason: str, *, away: bool = False) -> None:
        super().__init__(reason)
        self.away = away


class Connection:
    """Requests to one server, from any thread.

    Raises:
        ModelError: the address is invalid, or the token would travel unencrypted.
    """

    def __init__(self, url: str, token: str | None, *, patience: Patience) -> None:
        self.url, self._patience = checked(url), patience
        self._headers = {"User-Agent": f"rlm-lsp/{wire.program_version()}", wire.CLIENT_HEADER: uuid.uuid4().hex}
        token = token or find_token()
        if token is not None:
            open_network = self.url.startswith("http:") and not is_loopback(urlsplit(self.url).hostname or "")
            if open_network and os.environ.get(ALLOW_HTTP) != "1":
                way_out = f"use https, or set {ALLOW_HTTP}=1 on a network that you trust"
                raise ModelError(f"{self.url}: the token would travel unencrypted; {way_out}")
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = _WatchedPoolManager(
            maxsize=_CONNECTIONS,
            retries=False,
            timeout=urllib3.Timeout(connect=patience.connect, read=patience.read),
            ssl_context=ssl.create_default_context(),
        )
        self._lock = threading.Lock()
        self._away: tuple[float, str] | None = None

    def request(self, kind: type[_T], path: str, body: bytes | None = None) -> _T:
        """Return the server's answer to a GET, or to a POST of ``body``.

        Raises:
            NoAnswerError: no usable answer; for a while after a failed connection the server is not asked again.
        """
        with self._lock:
            away = self._away
        if away is not None and time.monotonic() < away[0]:
            raise NoAnswerError(away[1], away=True)
        try:
            data = self._exchange(path, body)
            away = None
            return wire.read(kind, data)
        except WireError as error:
            raise NoAnswerError(
                f"unexpected response ({error}); is it an rlm-lsp model server of the same version?"
            ) from None
        except NoAnswerError as failure:
            away = (time.monotonic() + self._patience.rest, str(failure)) if failure.away else None
            raise
        finally:
            with self._lock:
                self._away = away

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._pool.clear()

    def _exchange(self, path: str, body: bytes | None) -> bytes:
        """The body of the answer; tries again after a failed connection and the status 503."""
        pause = self._patience.backoff
        for left in reversed(range(self._patience.attempts)):
            try:
                status, data, wanted = self._send(path, body)
            except (ConnectTimeoutError, NewConnectionError, ProtocolError) as error:
                failure = NoAnswerError(f"it cannot be reached ({_cause(error)})", away=True)
            except ReadTimeoutError:
                raise NoAnswerError(f"it took longer than {self._patience.read:g} s", away=True) from None
            except HTTPError as error:
                raise NoAnswerError(f"it cannot be reached ({_cause(error)})") from None
            else:
                if status == 200:
                    return data
                failure = NoAnswerError(_refusal(status, data), away=status == 503)
                if status != 503:
                    raise failure
                pause = max(pause, wanted)
            if left:
                time.sleep(min(pause, _LONGEST_PAUSE))
                pause *= 2
        raise failure

    def _send(self, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        """Status, body, and for how many seconds the server wants to be left alone."""
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        method = "GET" if body is None else "POST"
        data = bytearray()
        with _Deadline(self._patience.connect + self._patience.read) as deadline:
            try:
                response = self._pool.request(
                    method, self.url + path, body=body, headers=headers, redirect=False, preload_content=False
                )
                try:
                    while part := response.read1(_CHUNK):
                        data += part
                        if len(data) > _MOST_BYTES or deadline.is_over:
                            response.close()
                            raise _too_long()
                finally:
                    response.release_conn()
            except HTTPError:
                if deadline.is_over:
                    raise _too_long() from None
                raise
            if deadline.is_over:  # a body without a length ends where its socket does
                raise _too_long()
        wanted = response.headers.get("Retry-After", "")
        return response.status, bytes(data), float(wanted) if wanted.isdecimal() else 0.0


def _too_long() -> NoAnswerError:
    return NoAnswerError(f"its answer is larger than {_MOST_BYTES} bytes or does not end", away=True)


def checked(url: str) -> str:
    """The address without a slash at its end.

    Raises:
        ModelError: it is not a valid address; the message does not repeat a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.username is not None or parts.password is not None:
        raise ModelError(f"the address of a model server holds a user name or password; put a token into {TOKEN}")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or parts.query or parts.fragment:
        raise ModelError(f"{url}: is not an address of a model server; write it like https://gpu-box:8765")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _refusal(status: int, data: bytes) -> str:
    try:
        line = wire.read(wire.Problem, data).error
    except WireError:
        line = "no reason given; is it an rlm-lsp model server?"
    way_out = f" (set {TOKEN} or {TOKEN_FILE}, or write {default_token_file()})" if status == 401 else ""
    return f"status {status}, {' '.join(line.split())[:_LONGEST_LINE]}{way_out}"


def _cause(error: BaseException) -> str:
    """Describe a connection error in a few words, without the names of Python's exceptions."""
    if isinstance(error, NameResolutionError):
        return "no host of that name is known"
    if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
        return "no connection in time"
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.strerror:
            return found.strerror
        found = found.__cause__ or found.__context__
    return "the connection broke"


class RemotePredictor(WithoutComparison):
    """Answers from a model server. Safe to use from several threads; connections are kept open between calls.

    Args:
        url: where the server is, like ``https://gpu-box:8765``.
        token: the server's token; by default that of the environment or the user's token file.
        patience: time limits and retries.

    Raises:
        ModelError: the address is invalid, or the server cannot be reached, refuses or is not a model server.
    """

    def __init__(self, url: str, *, token: str | None = None, patience: Patience | None = None) -> None:
        self._connection = Connection(url, token, patience=patience or Patience())
        self.url = self._connection.url
        try:
            self._info = self._connection.request(wire.Info, wire.INFO)
        except NoAnswerError as failure:
            raise ModelError(f"{self.url}: the model server does not answer: {failure}") from None

    @property
    def model_id(self) -> str:
        """The id of the server's weights."""
        return self._info.model

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        """The devices that the server's model knows for a basis."""
        return self._info.devices.get(basis, ())

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """The server's default queries, as of the last connection."""
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
