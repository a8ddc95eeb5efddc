"""The connection to a model server: kept-alive HTTP, the token, time limits, bounded retries, and one-line reasons.

urllib3 does the HTTP: a pool that threads may share, of a package that needs no other. It obeys no proxy variables of
the environment and trusts the certificates that OpenSSL trusts (``SSL_CERT_FILE`` names others).
"""

from __future__ import annotations

import os
import ssl
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from rlm_core.errors import ModelError

from . import wire
from .access import TOKEN, TOKEN_FILE, default_token_file, find_token, is_loopback
from .codec import WireError

ALLOW_HTTP = "RLM_LSP_ALLOW_HTTP"
_CONNECTIONS = 32
_CHUNK = 2**16
_MOST_BYTES = 64 * 2**20
_LONGEST_PAUSE = 2.0
_LONGEST_LINE = 300
_T = TypeVar("_T", wire.Answer, wire.Info)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a server is asked; seconds.

    Attributes:
        connect: for a connection.
        read: for an answer.
        attempts: tries a request; only a failed connection and the status 503 are tried again.
        backoff: pause before the second try; it doubles, or is what the server asks for, up to two seconds.
        rest: after a failure of that kind, how long queries are answered with its reason without another try.
    """

    connect: float = 3.0
    read: float = 30.0
    attempts: int = 3
    backoff: float = 0.2
    rest: float = 2.0


class NoAnswerError(Exception):
    """A request without a usable answer; ``away`` when the server cannot be reached or has no time."""

    def __init__(self, reason: str, *, away: bool = False) -> None:
        super().__init__(reason)
        self.away = away


class Connection:
    """Requests to one server, from any thread.

    Raises:
        ModelError: the address is none, or the token would travel unencrypted.
    """

    def __init__(self, url: str, token: str | None, *, allow_http: bool, patience: Patience) -> None:
        self.url, self._patience = checked(url), patience
        self._headers = {"User-Agent": f"rlm-lsp/{wire.program_version()}", wire.CLIENT_HEADER: uuid.uuid4().hex}
        token = token or find_token()
        if token is not None:
            open_network = self.url.startswith("http:") and not is_loopback(urlsplit(self.url).hostname or "")
            if open_network and not allow_http and os.environ.get(ALLOW_HTTP) != "1":
                way_out = f"use https, or set {ALLOW_HTTP}=1 on a network that you trust"
                raise ModelError(f"{self.url}: the token would travel unencrypted; {way_out}")
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = urllib3.PoolManager(
            maxsize=_CONNECTIONS,
            retries=False,
            timeout=urllib3.Timeout(connect=patience.connect, read=patience.read),
            ssl_context=ssl.create_default_context(),
        )
        self._lock = threading.Lock()
        self._away: tuple[float, str] | None = None

    def request(self, kind: type[_T], path: str, body: bytes | None = None) -> _T:
        """What the server answers to a GET, or to a POST of ``body``.

        Raises:
            NoAnswerError: nothing that can be used; for a while after a server was away it is not even asked.
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
            raise NoAnswerError(f"it talks nonsense ({error}); is it rlm-lsp serve-model of our version?") from None
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
        until = time.monotonic() + self._patience.read
        method = "GET" if body is None else "POST"
        response = self._pool.request(
            method, self.url + path, body=body, headers=headers, redirect=False, preload_content=False
        )
        data = bytearray()
        try:
            for part in response.stream(_CHUNK):
                data += part
                if len(data) > _MOST_BYTES or time.monotonic() > until:
                    response.close()
                    raise NoAnswerError(f"its answer is larger than {_MOST_BYTES} bytes or does not end", away=True)
        finally:
            response.release_conn()
        wanted = response.headers.get("Retry-After", "")
        return response.status, bytes(data), float(wanted) if wanted.isdecimal() else 0.0


def checked(url: str) -> str:
    """The address without a slash at its end.

    Raises:
        ModelError: it is not one that a model server can have. It is not shown where it holds a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.username is not None or parts.password is not None:
        raise ModelError(f"the address of a model server holds a user name or password; put a token into {TOKEN}")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or parts.query or parts.fragment:
        raise ModelError(f"{url}: is no address of a model server; write it like https://gpu-box:8765")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _refusal(status: int, data: bytes) -> str:
    try:
        line = wire.read(wire.Problem, data).error
    except WireError:
        line = "no reason given; is it rlm-lsp serve-model?"
    way_out = f" (set {TOKEN} or {TOKEN_FILE}, or write {default_token_file()})" if status == 401 else ""
    return f"status {status}, {' '.join(line.split())[:_LONGEST_LINE]}{way_out}"


def _cause(error: BaseException) -> str:
    """What went wrong with a connection, in a few words and without Python's names for it."""
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
