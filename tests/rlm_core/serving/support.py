"""A small real predictor, a model server on a free port of this machine, and waiting for what a server says."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import urllib3
import uvicorn
from rlm_core import CodeText, Prediction, Query
from rlm_core.inference.calibration import bands
from rlm_core.inference.predictor import Predictor, WithoutComparison
from rlm_core.serving import wire
from rlm_core.serving.access import listen
from rlm_core.serving.client import Patience
from rlm_core.serving.server import MOST_CONNECTIONS, Settings, TimedConnection, create_app
from rlm_core.types import METRICS_OF_BASIS, Basis, CalibrationSource

from tests.fakes import NO_NUMBER, quantiles

HTTP = urllib3.PoolManager(retries=False, timeout=100)
TOKEN = "a-token-of-the-tests-0123456789"
# Tests do not wait for pauses; a server that does not answer is given up soon.
AT_ONCE = Patience(connect=5, read=20, attempts=3, backoff=0, rest=0)


class LengthPredictor(WithoutComparison):
    """Predicts that a text costs its length in microseconds or KiB; counts its calls; abstains from ``odd`` texts.

    It fails on texts with ``poison`` in them. While ``gate`` is closed it is busy, and says so by ``busy``.
    """

    def __init__(self, model_id: str = "length-1") -> None:
        self.model_id = model_id
        self.calls: list[list[CodeText]] = []
        self.gate, self.busy = threading.Event(), threading.Event()
        self.gate.set()

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ("gpu-a", "gpu-b") if basis == "kernel" else ("cpu",)

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        workload = {"date": "2024-Q1"} if language == "java" else {}
        return tuple(Query(metric, self.devices(basis)[0], workload) for metric in METRICS_OF_BASIS[basis])

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        self.calls.append(list(texts))
        self.busy.set()
        assert self.gate.wait(60)
        if any("poison" in code.text for code in texts):
            raise ArithmeticError("a text that breaks the model")
        return [[self._one(code, query) for query in line] for code, line in zip(texts, queries, strict=True)]

    def _one(self, code: CodeText, query: Query) -> Prediction:
        blank = Prediction.missing(code, query, self.model_id, NO_NUMBER)
        if "odd" in code.text:
            return blank
        value = len(code.text) * (1e-6 if query.metric == "latency" else 1024.0)
        # The upper end is infinite for long texts, as calibrated bands may be.
        found = tuple(math.inf if len(code.text) > 999 and q > 2 * value else q for q in quantiles(value))
        return replace(
            blank, median=value, bands=bands(found, 50, 500, CalibrationSource("call")), quantiles=found, abstained=None
        )


def call(text: str, language: str = "python") -> CodeText:
    return CodeText(text, language, "call")


LATENCY = (Query("latency"),)


def queued(url: str) -> int:
    """How many texts wait for the model of a server."""
    return wire.read(wire.Health, HTTP.request("GET", url + wire.HEALTH).data).queued


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait for another thread, at most 100 seconds."""
    end = time.monotonic() + 100
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


@contextmanager
def serving(
    predictor: Predictor,
    settings: Settings | None = None,
    token: str | None = None,
    *,
    port: int = 0,
    files: tuple[Path, Path] | None = None,
) -> Iterator[str]:
    """A model server in a thread; its address. ``files`` are certificate and key."""
    certificate, key = files or (None, None)
    config = uvicorn.Config(
        create_app(predictor, settings or Settings(), token),
        log_config=None,
        http=TimedConnection,
        limit_concurrency=MOST_CONNECTIONS,
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=30,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    server = uvicorn.Server(config)
    listener = listen("127.0.0.1", port)
    address = f"{'https' if files else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield address
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
