"""Storms of cancellations, of opens and closes, and of edits while requests wait: nothing stale, nothing lost.

``python -m tests.reliability.storms --requests 10000 --seed 1``. Each request must have one answer: a result, or
an error that says that it was cancelled or that the text has changed. The line of a hint names the version of the text.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from lsprotocol import types

from .client import EVERYWHERE, PATIENCE, Client, Json, session
from .random_edits import answers

_OPENS = 100
_DOCUMENTS = 8
_FUNCTIONS = 30  # of a document, three lines each
_TOGETHER = 40  # requests that wait at once
_EXPECTED = {
    types.LSPErrorCodes.RequestCancelled.value,
    types.LSPErrorCodes.ContentModified.value,
    types.LSPErrorCodes.ServerCancelled.value,
}
_METHODS = ("inlayHint", "hover", "codeLens", "diagnostic", "codeAction")


@dataclass
class Report:
    """The requests of one storm, and seconds to the answers of those that were not cancelled."""

    requests: int = 0
    cancelled: int = 0
    modified: int = 0
    lost: int = 0
    answered_twice: int = 0
    stale: int = 0
    other_errors: list[Json] = field(default_factory=list)
    tracebacks: int = 0
    median: float = 0.0
    p99: float = 0.0
    slowest: float = 0.0


class _Storm:
    """Sends requests about a document, and checks their answers in the end."""

    def __init__(self, client: Client, rng: random.Random) -> None:
        self._client, self._rng = client, rng
        self.versions: dict[str, int] = {}
        self._asked: dict[str, tuple[str, str, int, asyncio.Future[Json]]] = {}
        self._seconds: list[float] = []
        self._cancelled: set[str] = set()
        self._newest: dict[str, int] = {}

    def open(self, uri: str) -> None:
        self.versions[uri] = self.versions.get(uri, -1) + 1
        self._client.open(uri, _text(self.versions[uri]))

    def edit(self, uri: str) -> None:
        """One more empty line at the start, by a range or as a whole text."""
        self.versions[uri] += 1
        start = {"line": 0, "character": 0}
        change: Json = {"range": {"start": start, "end": start}, "text": "\n"}
        if self._rng.random() < 0.2:
            change = {"text": _text(self.versions[uri])}
        document = {"uri": uri, "version": self.versions[uri]}
        self._client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def ask(self, uri: str) -> str:
        kind, number = self._rng.choice(_METHODS), f"storm {len(self._asked)}"
        params: Json = {"textDocument": {"uri": uri}, "range": EVERYWHERE, "context": {"diagnostics": []}}
        params["position"] = {"line": self.versions[uri], "character": 5}
        future, start = self._client.ask(f"textDocument/{kind}", params, number), time.perf_counter()
        version = self.versions[uri]

        def answered(done: asyncio.Future[Json]) -> None:
            self._newest[number] = self.versions[uri]
            if not done.cancelled() and number not in self._cancelled:
                self._seconds.append(time.perf_counter() - start)

        future.add_done_callback(answered)
        self._asked[number] = (kind, uri, version, future)
        return number

    def cancel(self, number: str) -> None:
        self._cancelled.add(number)
        self._client.notify("$/cancelRequest", {"id": number})

    async def settle(self, most: int = 0) -> None:
        """Wait until no more than so many requests wait."""
        waiting = [future for _, _, _, future in self._asked.values() if not future.done()]
        until = time.perf_counter() + PATIENCE
        while len(waiting) > most and time.perf_counter() < until:
            await asyncio.wait(waiting, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            waiting = [future for future in waiting if not future.done()]
        # A future may be done before its callbacks have noted the version.
        await asyncio.sleep(0)

    async def report(self) -> Report:
        """What came of all requests; one more answer, which comes after all others, ends the wait."""
        await self.settle()
        await self._client.responds()
        report = Report(requests=len(self._asked))
        for number, (kind, _, version, _) in self._asked.items():
            said = self._client.answers[number]
            report.lost += not said
            report.answered_twice += len(said) > 1
            error = said[0].get("error") if said else None
            if error is None and kind == "inlayHint" and said:
                # Of some functions there may be no hint yet: those of any step of the model may come first.
                lines = {hint["position"]["line"] for hint in said[0]["result"] or ()}
                report.stale += not any(lines <= _headers(now) for now in range(version, self._newest[number] + 1))
            elif error is not None and error["code"] not in _EXPECTED:
                report.other_errors.append({"method": kind, **error})
            elif error is not None:
                report.cancelled += error["code"] == types.LSPErrorCodes.RequestCancelled.value
                report.modified += error["code"] != types.LSPErrorCodes.RequestCancelled.value
        seconds = np.array(self._seconds or [0.0])
        report.median, report.p99 = (float(value) for value in np.quantile(seconds, (0.5, 0.99)))
        report.slowest = float(seconds.max())
        report.tracebacks = self._client.log().count("Traceback")
        return report


def _text(version: int) -> str:
    functions = "".join(f"def f{one}(n):\n    return [n * {one}] * n\n\n" for one in range(_FUNCTIONS))
    return "\n" * version + functions


def _headers(version: int) -> set[int]:
    """The lines of the functions' headers in a version of the text."""
    return {version + 3 * one for one in range(_FUNCTIONS)}


def _uris() -> list[str]:
    return [f"file:///storm/a{number}.py" for number in range(_DOCUMENTS)]


async def cancellations(requests: int, seed: int) -> Report:
    """Three in four requests are cancelled, most of them at once; half are about a text that was just edited."""
    rng = random.Random(seed)
    async with session(refresh=True) as client:
        storm, uris = _Storm(client, rng), _uris()
        for uri in uris:
            storm.open(uri)
        recent: list[str] = []
        for _ in range(requests):
            uri = rng.choice(uris)
            if rng.random() < 0.5:
                storm.edit(uri)
            recent.append(storm.ask(uri))
            if rng.random() < 0.75:
                storm.cancel(recent.pop(rng.choice((-1, rng.randrange(len(recent))))))
            recent = recent[-10:]
            await client.drain()
            await storm.settle(_TOGETHER)
        return await storm.report()


async def edits(requests: int, seed: int) -> Report:
    """Edits while requests wait: some are ended, and no hint is older than its request."""
    rng = random.Random(seed)
    async with session(refresh=True) as client:
        storm, uris = _Storm(client, rng), _uris()
        for uri in uris:
            storm.open(uri)
        for number in range(requests):
            uri = rng.choice(uris)
            storm.ask(uri)
            if rng.random() < 0.5:
                storm.edit(uri)
            if number % 100 == 99:
                # The text would grow without end.
                client.close(uri)
                await storm.settle()
                storm.versions[uri] = -1
                storm.open(uri)
            await client.drain()
            await storm.settle(_TOGETHER)
        return await storm.report()


async def opens(requests: int, seed: int) -> Report:
    """Documents opened and closed 100 times in a row while they are asked about; the last text counts."""
    rng = random.Random(seed)
    async with session(refresh=True) as client:
        storm, uris = _Storm(client, rng), _uris()
        per_open = max(1, requests // _OPENS)
        for _ in range(_OPENS):
            uri = rng.choice(uris[:2])
            storm.open(uri)
            for _ in range(per_open):
                storm.ask(uri)
            client.close(uri)
            await client.drain()
        await storm.settle()
        report = await storm.report()
        for uri in uris[:2]:
            storm.open(uri)
            fresh = uri.replace("/storm/", "/fresh/")
            client.open(fresh, _text(storm.versions[uri]))
            places = [{"line": storm.versions[uri], "character": 5}]
            said = [await answers(client, name, places) for name in (uri, fresh)]
            report.stale += json.dumps(said[0]).replace("/storm/", "/edited/") != json.dumps(said[1])
        return report


STORMS: dict[str, Callable[[int, int], Awaitable[Report]]] = {
    "cancellations": cancellations,
    "edits while requests wait": edits,
    "opens and closes": opens,
}


def main() -> None:
    """Print a line of JSON per storm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    async def run() -> dict[str, Any]:
        return {name: asdict(await storm(arguments.requests, arguments.seed)) for name, storm in STORMS.items()}

    reports = asyncio.run(run())
    for name, report in reports.items():
        print(json.dumps({"storm": name, **report}))
    raise SystemExit(any(report[name] for report in reports.values() for name in ("lost", "answered_twice", "stale")))


if __name__ == "__main__":
    main()
