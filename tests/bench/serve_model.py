"""What a model server costs beside asking the model directly: requests a second, latency, texts a batch, CPU time.

Run ``python tests/bench/serve_model.py`` in an environment with the ``[serve]`` extra. The model is one that knows its
answers and takes a given time a batch, as a GPU does; so what is measured is the way to it and back. Clients are
threads of this process, the server is a process of its own; each request is one function with its two metrics.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import urllib3
from rlm_core import CodeText, Prediction, Query
from rlm_core.inference.calibration import bands
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.serving import wire
from rlm_core.serving.access import listen
from rlm_core.serving.client import RemotePredictor
from rlm_core.types import LEVELS, METRICS_OF_BASIS, Basis, CalibrationSource

_TEXT = "def total(numbers):\n    return sum(n * n for n in numbers)\n" * 10
_QUERIES = (Query("latency"), Query("memory"))
_CLIENTS = (1, 8)


class Known(WithoutComparison):
    """Gives everything the same answer, ``seconds`` after it was asked."""

    model_id = "known-1"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ("cpu",)

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return tuple(Query(metric) for metric in METRICS_OF_BASIS[basis])

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        if self.seconds:
            time.sleep(self.seconds)
        return [[self._one(code, query) for query in line] for code, line in zip(texts, queries, strict=True)]

    def _one(self, code: CodeText, query: Query) -> Prediction:
        found = tuple(1e-6 * (1 + level) for level in LEVELS)
        banded = bands(found, 50, 500, CalibrationSource("call"))
        asked = (code.basis, query.metric, query.device, query.workload, self.model_id)
        return Prediction(*asked, found[len(found) // 2], banded, 0.0, False, quantiles=found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=400, help="requests a client")
    parser.add_argument("--model-ms", type=float, nargs="+", default=[0, 10], help="what a batch takes")
    parser.add_argument("--wait-ms", type=float, default=0, help="how long a free model waits for company")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        _serve(options.serve, options.wait_ms)
        return
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, a free model waits {options.wait_ms:g} ms")
    for milliseconds in options.model_ms:
        print(f"model: {milliseconds:g} ms a batch")
        direct = Known(milliseconds / 1000)
        _measure("  direct", [direct.predict], options.requests)
        command = [sys.executable, __file__, "--serve", str(milliseconds / 1000), "--wait-ms", str(options.wait_ms)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        for count in _CLIENTS:
            before = _counts(url)
            clients = [RemotePredictor(url).predict for _ in range(count)]
            _measure(f"  {count} client{'s' if count > 1 else ''}", clients, options.requests)
            after = _counts(url)
            batches, texts = (after[name] - before[name] for name in ("batches", "texts"))
            print(f"      {texts / batches:.1f} texts a batch")
        server.terminate()
        _, _, usage = os.wait4(server.pid, 0)
        requests = options.requests * sum(_CLIENTS)
        print(f"  server: {(usage.ru_utime + usage.ru_stime) / requests * 1e3:.2f} ms CPU a request, start included")


def _measure(
    title: str,
    clients: Sequence[Callable[[Sequence[CodeText], Sequence[Sequence[Query]]], list[list[Prediction]]]],
    count: int,
) -> None:
    def ask(client: int) -> list[float]:
        seconds = []
        for number in range(count):
            code = CodeText(f"{_TEXT}# {client} {number}", "python", "call")
            started = time.perf_counter()
            [[first, _]] = clients[client]([code], [_QUERIES])
            seconds.append(time.perf_counter() - started)
            assert first.median is not None, first.abstained
        return seconds

    started, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(len(clients)) as threads:
        times = sorted(second for line in threads.map(ask, range(len(clients))) for second in line)
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    p50, p95 = statistics.median(times), times[int(0.95 * len(times))]
    print(
        f"{title:<11}{len(times) / wall:9,.0f} requests/s   p50 {p50 * 1e3:7.2f} ms   p95 {p95 * 1e3:7.2f} ms"
        f"   {cpu / len(times) * 1e3:.2f} ms CPU a request on this side"
    )


def _counts(url: str) -> dict[str, float]:
    lines = urllib3.request("GET", url + wire.METRICS).data.decode().splitlines()
    found = dict(line.split() for line in lines if not line.startswith("#"))
    return {name: float(found[f"rlm_lsp_{name}_total"]) for name in ("batches", "texts")}


def _serve(seconds: float, wait_ms: float) -> None:
    import uvicorn
    from rlm_core.serving.batching import Batching
    from rlm_core.serving.server import Settings, create_app

    listener = listen("127.0.0.1", 0)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    app = create_app(Known(seconds), Settings(batching=Batching(wait=wait_ms / 1000)))
    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none")).run(sockets=[listener])


if __name__ == "__main__":
    main()
