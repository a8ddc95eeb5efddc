"""The model server: HTTP and JSON in front of any predictor, so that a team shares one GPU or one CPU box.

``POST /v3/predict`` answers questions, ``GET /v3/info`` describes the model; both want the token where there is one.
``/health``, ``/openapi.json`` and the page at ``/`` are open: they say nothing about the model or its users. Nothing is
sent anywhere and no text is kept or logged.

No connection may wait for ever for the head of a request, and none keeps others out (:class:`TimedConnection`): uvicorn
times only the pause between two requests, and a client that opens many connections and sends a part of a head on each
would hold all that there may be, without a token.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from rlm_core.inference.predictor import Predictor
from rlm_core.source.languages import LANGUAGES
from rlm_core.types import LEVELS, Basis

from . import openapi, wire
from .access import network_of, same_token
from .batching import Batcher, Batching, Path, QueueFullError
from .typed_json import WireError

_A = TypeVar("_A")
_T = TypeVar("_T")
# A body in bytes, and predictions in an answer, that take more than a few milliseconds to read or to write.
_LARGE, _MANY = 2**17, 200
_JSON = "application/json"
_WAY_OUT = {404: "no such address; see /openapi.json", 405: "no such method here; see /openapi.json"}
_SECURITY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}
MOST_CONNECTIONS = 1000
HEAD_SECONDS = 10.0
# Connections without a whole head, also those between two requests; of those above it the oldest is closed.
MOST_WAITING, MOST_WAITING_OF_CLIENT = 500, 250
# Half for one network: the other half is there for everybody else.
MOST_OF_CLIENT = MOST_CONNECTIONS // 2


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of a server.

    Attributes:
        limits: what one request may hold; clients can read it.
        batching: how requests are joined.
        seconds: how long the body of a request may take to arrive, and then its answer.
    """

    limits: wire.Limits = field(default_factory=wire.Limits)
    batching: Batching = field(default_factory=Batching)
    seconds: float = 60.0


def create_app(predictor: Predictor, settings: Settings, token: str | None = None) -> Starlette:
    """The server as an ASGI application; without a token, every client may ask."""
    service = _Service(predictor, settings, token)
    app = Starlette(
        routes=[
            Route("/", service.page),
            Route("/openapi.json", service.document),
            Route(wire.HEALTH, service.health),
            Route(wire.METRICS, service.metrics),
            Route(wire.INFO, service.info),
            Route(wire.PREDICT, service.predict, methods=["POST"]),
        ],
        lifespan=service.lifespan,
        exception_handlers={HTTPException: _refusal, ClientDisconnect: _left, Exception: _broken},
    )
    app.router.redirect_slashes = False
    return app


class _Service:
    """The endpoints and what they share."""

    def __init__(self, predictor: Predictor, settings: Settings, token: str | None) -> None:
        self._predictor, self._settings, self._token = predictor, settings, token
        self._batcher = Batcher(predictor, settings.batching)
        self._document = openapi.document(with_token=token is not None)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._batcher.start()
        try:
            yield
        finally:
            await self._batcher.close()

    async def page(self, request: Request) -> Response:
        return Response(openapi.page(self._document), media_type="text/html", headers=_SECURITY)

    async def document(self, request: Request) -> Response:
        return Response(openapi.as_json(self._document), media_type=_JSON)

    async def health(self, request: Request) -> Response:
        return _answered(wire.Health("ok", self._batcher.waiting))

    async def metrics(self, request: Request) -> Response:
        self._admit(request)
        counts = self._batcher.counts
        rows = (
            ("batches_total", "counter", counts.batches),
            ("texts_total", "counter", counts.texts),
            ("queries_total", "counter", counts.queries),
            ("failed_texts_total", "counter", counts.failures),
            ("model_seconds_total", "counter", counts.seconds),
            ("waiting_texts", "gauge", self._batcher.waiting),
        )
        text = "".join(f"# TYPE rlm_lsp_{name} {kind}\nrlm_lsp_{name} {value}\n" for name, kind, value in rows)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def info(self, request: Request) -> Response:
        self._admit(request)
        bases: tuple[Basis, ...] = get_args(Basis)
        return _answered(
            wire.Info(
                version=wire.VERSION,
                model=self._predictor.model_id,
                levels=LEVELS,
                devices={basis: self._predictor.devices(basis) for basis in bases},
                defaults=tuple(entry for basis in bases for entry in _defaults(self._predictor, basis)),
                limits=self._settings.limits,
            )
        )

    async def predict(self, request: Request) -> Response:
        self._admit(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise HTTPException(415, f"send the request as Content-Type: {_JSON}")
        try:
            async with asyncio.timeout(self._settings.seconds):
                body = await self._body(request)
        except TimeoutError:
            raise HTTPException(408, "the request did not arrive in time", {"Connection": "close"}) from None
        try:
            asked = await _aside(len(body) > _LARGE, wire.read_request, body)
        except WireError as error:
            raise HTTPException(400, str(error)) from None
        self._measure(asked)
        try:
            async with asyncio.timeout(self._settings.seconds):
                found = await _while_connected(request, self._batcher.answer(_client(request), asked.questions))
        except TimeoutError:
            raise HTTPException(504, "the model was too slow; ask about fewer texts, or again later") from None
        except QueueFullError as error:
            raise HTTPException(503, str(error), {"Retry-After": "1"}) from None
        model, predictions = self._predictor.model_id, tuple(map(tuple, found))
        answer = wire.Answer(version=wire.VERSION, model=model, predictions=predictions)
        return await _aside(sum(map(len, predictions)) > _MANY, _answered, answer)

    def _admit(self, request: Request) -> None:
        if self._token is not None and not same_token(request.headers.get("authorization"), self._token):
            raise HTTPException(
                401, "a token is needed, as Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )

    async def _body(self, request: Request) -> bytes:
        most = self._settings.limits.body_bytes
        too_large = HTTPException(413, f"the request is larger than {most} bytes; send less", {"Connection": "close"})
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > most:
            raise too_large
        parts = bytearray()
        async for part in request.stream():
            parts += part
            if len(parts) > most:
                raise too_large
        return bytes(parts)

    def _measure(self, asked: wire.Request) -> None:
        """Refuse a request that holds more than one may."""
        limits = self._settings.limits
        queries = sum(len(question.queries) for question in asked.questions)
        for what, count, most in (("texts", len(asked.questions), limits.texts), ("queries", queries, limits.queries)):
            if count > most:
                raise HTTPException(413, f"{count} {what} are more than {most}; send several requests")
        for place, question in enumerate(asked.questions):
            if question.characters > limits.characters:
                what = f"questions[{place}]: {question.characters} characters in one question"
                raise HTTPException(413, f"{what} are more than {limits.characters}; leave it out")


def _defaults(predictor: Predictor, basis: Basis) -> list[wire.Defaults]:
    """Default queries of a basis; languages with the same queries are grouped."""
    found: list[wire.Defaults] = []
    for language in LANGUAGES:
        queries = predictor.default_queries(basis, language)
        same = next((place for place, entry in enumerate(found) if entry.queries == queries), None)
        if same is None:
            found.append(wire.Defaults(basis, (language,), queries))
        else:
            found[same] = wire.Defaults(basis, (*found[same].languages, language), queries)
    return found


def _client(request: Request) -> Path:
    """Who gets a turn: the network of the address, and in it the client's own mark."""
    host = request.client.host if request.client is not None else ""
    return network_of(host), request.headers.get(wire.CLIENT_HEADER, "")[:64]


async def _aside(large: bool, work: Callable[[_A], _T], value: _A) -> _T:
    """``work(value)``, on a thread where it is large: other clients' requests go on meanwhile."""
    return await asyncio.to_thread(work, value) if large else work(value)


async def _while_connected(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of ``work``, which is cancelled when the client disconnects."""
    task, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass  # the end of the body


def _answered(message: wire.Answer | wire.Info | wire.Health | wire.Problem, status: int = 200) -> Response:
    return Response(wire.write(message), status, media_type=_JSON)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    line = _WAY_OUT.get(error.status_code, error.detail)
    response = _answered(wire.Problem(line), error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _left(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # the client is gone


async def _broken(request: Request, error: Exception) -> Response:
    return _answered(wire.Problem("the server made a mistake; its log says more"), 500)


class TimedConnection(H11Protocol):
    """A connection that is closed when the head of a request takes longer than :data:`HEAD_SECONDS`."""

    _waiting: dict[TimedConnection, str] = {}  # with the client's network, the oldest first  # noqa: RUF012
    _of_clients: dict[str, int] = {}  # noqa: RUF012
    _timer: asyncio.TimerHandle | None = None
    _address: str | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._address = network_of(self.client[0]) if self.client else ""
        count = self._of_clients[self._address] = self._of_clients.get(self._address, 0) + 1
        if count > MOST_OF_CLIENT and not self._close_oldest(self._address):
            self.transport.abort()
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        if self._address is not None:
            left = self._of_clients[self._address] - 1
            if left:
                self._of_clients[self._address] = left
            else:
                del self._of_clients[self._address]
            self._address = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Stop waiting when the head is whole."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._timer is None:
            self._wait()

    def on_response_complete(self) -> None:
        """Let the connection rest until its next head."""
        super().on_response_complete()
        if self._address is not None and (self.cycle is None or self.cycle.response_complete):
            # Until its next head begins, the connection may rest for the time of keep-alive.
            self._waiting[self] = self._address

    def _wait(self) -> None:
        assert self._address is not None
        self._waiting.pop(self, None)
        self._waiting[self] = self._address
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
        if list(self._waiting.values()).count(self._address) > MOST_WAITING_OF_CLIENT:
            self._close_oldest(self._address)
        elif len(self._waiting) > MOST_WAITING:
            self._close_oldest(None)

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_oldest(self, address: str | None) -> bool:
        """Close the connection that has waited longest, of a client or of all; whether there was one."""
        oldest = next((one for one, host in self._waiting.items() if address in (None, host)), None)
        if oldest is None:
            return False
        oldest._stop_waiting()
        oldest.transport.abort()
        return True
