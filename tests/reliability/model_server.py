"""Clients of one model server, and among them hostile requests: every good request gets its right answer.

``python -m tests.reliability.model_server --requests 10000 --seed 1``. Three clients ask a real ``rlm-lsp serve-model``
with the model that ships, over real connections. One request in ten is hostile and has a connection of its own: bytes
that are no HTTP, JSON of another form, a body or text over the limits, a head or body that never ends, a client that
leaves. The right answers are those of the model in this process.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

import rlm_core
from rlm_core.serving import wire
from rlm_core.serving.client import Patience, RemotePredictor
from rlm_core.types import CodeText, Prediction

from tests.paths import REPOSITORY

_CLIENTS = 3
_TEXTS = 40
_HELD = 200  # slow connections that are kept open at a time
_PATIENCE = Patience(connect=20, read=60, attempts=3, backoff=0.01, rest=0)


@dataclass(slots=True)
class Report:
    """Requests by kind, what went wrong, and the times of good requests in seconds."""

    requests: int = 0
    hostile: int = 0
    lost: int = 0
    wrong: int = 0
    refusals: dict[str, int] = field(default_factory=dict)  # of hostile requests, by status
    p50: float = 0.0
    p99: float = 0.0
    slowest: float = 0.0
    ended: bool = False  # the server ended before it was told to
    tracebacks: int = 0


def texts() -> list[CodeText]:
    """Small functions, no two of which are the same."""
    return [
        CodeText(
            f"def f(items):\n    return [sorted(items)[{number}] for _ in range({number + 1})]\n", "python", "call"
        )
        for number in range(_TEXTS)
    ]


def run(requests: int, seed: int) -> Report:
    """Start a server and ask it; ``requests`` over all clients, hostile ones included."""
    model = rlm_core.load(threads=1)
    codes = texts()
    asked = [model.default_queries("call", "python")] * len(codes)
    expected = model.predict(codes, asked)
    report = Report()
    command = [sys.executable, "-m", "rlm_lsp", "serve-model", "--port", "0", "--threads", "1", "--timeout", "20"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, text=True, stdout=subprocess.DEVNULL, stderr=pipe) as server:
        assert server.stderr is not None
        try:
            url = server.stderr.readline().split()[-1]
            assert url.startswith("http://"), url
            log: list[str] = []
            reader = threading.Thread(target=log.extend, args=(server.stderr,), daemon=True)
            reader.start()
            _ask(url, codes, expected, requests, seed, report)
            report.ended = server.poll() is not None
        finally:
            server.terminate()
            server.wait(60)
        reader.join(60)
        report.tracebacks = sum(line.startswith("Traceback") for line in log)
    return report


def _ask(
    url: str, codes: list[CodeText], expected: list[list[Prediction]], requests: int, seed: int, report: Report
) -> None:
    lock = threading.Lock()
    seconds: list[float] = []

    def client(number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        remote = RemotePredictor(url, patience=_PATIENCE)
        queries = remote.default_queries("call", "python")
        with ExitStack() as kept:
            held = 0
            for _ in range(requests // _CLIENTS):
                if rng.random() < 0.1:
                    slow, status = _attack(url, rng)
                    if slow is not None:
                        kept.enter_context(slow)
                        held += 1
                    if held == _HELD:
                        kept.close()
                        held = 0
                    with lock:
                        report.hostile += 1
                        report.refusals[status] = report.refusals.get(status, 0) + 1
                    continue
                chosen = rng.sample(range(len(codes)), rng.choice((1, 1, 3)))
                started = time.perf_counter()
                found = remote.predict([codes[at] for at in chosen], [queries] * len(chosen))
                took = time.perf_counter() - started
                with lock:
                    seconds.append(took)
                    for at, line in zip(chosen, found, strict=True):
                        if any(one.abstained is not None and one.median is None for one in line):
                            report.lost += 1
                        elif not _same(line, expected[at]):
                            report.wrong += 1
        remote.close()

    with ThreadPoolExecutor(_CLIENTS) as pool:
        list(pool.map(client, range(_CLIENTS)))
    seconds.sort()
    report.requests = len(seconds) + report.hostile
    if seconds:
        report.p50, report.p99 = (seconds[int(share * (len(seconds) - 1))] for share in (0.5, 0.99))
        report.slowest = seconds[-1]


def _same(found: list[Prediction], expected: list[Prediction]) -> bool:
    return [(one.metric, one.median, one.quantiles) for one in found] == [
        (one.metric, one.median, one.quantiles) for one in expected
    ]


def _attack(url: str, rng: random.Random) -> tuple[socket.socket | None, str]:
    """Send a hostile request: a connection that is to be kept open, and the status of the answer."""
    question = {"text": "def f(): pass", "language": "python", "basis": "call", "queries": [{"metric": "latency"}]}
    body = json.dumps({"version": wire.VERSION, "questions": [question]}).encode()
    large = json.dumps({"questions": [{**question, "text": "x" * 300_000}]}).encode()
    kinds: list[Callable[[], tuple[bytes, bool]]] = [
        lambda: (rng.randbytes(200) + b"\r\n\r\n", False),
        lambda: (b"POST /v3/predict HTTP/1.1\r\n", True),
        lambda: (_head(len(body)) + body[: rng.randrange(len(body))], True),
        lambda: (_head(len(body)) + rng.randbytes(len(body)), False),
        lambda: (_post(body.replace(b"latency", b"lat\\ud800")), False),
        lambda: (_post(b'{"questions": ' + b"[" * 5_000), False),
        lambda: (_post(large), False),
        lambda: (_head(2**40), False),
        lambda: (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", False),
        lambda: (b"POST /v3/predict HTTP/1.1\r\nContent-Length: -5\r\nContent-Length: 9\r\n\r\n", False),
    ]
    data, slow = rng.choice(kinds)()
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60)
    status = "none"
    with suppress(OSError):
        connection.sendall(data)
        if slow and rng.random() < 0.5:
            return connection, "kept open"
        if not slow:
            answer = connection.recv(100)
            status = answer[9:12].decode("ascii", "replace") if answer.startswith(b"HTTP/1.1 ") else "closed"
        else:
            status = "left"
    connection.close()
    return None, status


def _post(body: bytes) -> bytes:
    return _head(len(body)) + body


def _head(length: int) -> bytes:
    return (
        f"POST {wire.PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def main() -> None:
    """Print a line of JSON; the exit status is 1 if a good request had no answer or a wrong one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    report = run(arguments.requests, arguments.seed)
    print(json.dumps(asdict(report)))
    raise SystemExit(bool(report.lost or report.wrong or report.ended or report.tracebacks))


if __name__ == "__main__":
    main()
