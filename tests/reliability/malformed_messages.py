"""Malformed and adversarial messages over stdio: the server lives, answers every request, and good ones within 1 s.

``python -m tests.reliability.malformed_messages --messages 100000 --seed 1``. A session begins with messages before
``initialize`` and ends with messages after ``shutdown``. Every message that is a JSON-RPC request, however wrong its
parameters, must have an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from typing import Any

from lsprotocol import types

from .client import PATIENCE, Client, Json, initialization, started

_SESSION_MESSAGES = 5_000  # of one server
_EARLY, _LATE = 60, 60  # before initialize, after shutdown
_CHECKED_MESSAGES = 25  # between two good requests
_ENDS = {types.EXIT, types.SHUTDOWN, types.INITIALIZE}
_GOOD = "file:///good/a.py"
_OWN_METHODS = ("rlm-lsp/changes", "rlm-lsp/network", "rlm-lsp/networks", "rlm-lsp/overview", "rlm-lsp/status")
_METHODS = (
    *sorted(set(types.METHOD_TO_TYPES) - _ENDS),
    *_OWN_METHODS,
    "$/unknown",
    "no/method",
    "",
    "\ud800",
    "é" * 500,
)
_COMMANDS = (
    "clearCache",
    "copyJson",
    "explain",
    "measureCommand",
    "predictFile",
    "showAllHints",
    "showLog",
    "toggleHints",
    "",
)
_URIS = (
    "file:///malformed/a.py",
    "file:///malformed/b.java",
    "untitled:x",
    "",
    "file:",
    "file://host/a.py",
    "file:///%00",
    "a",
    "vscode-notebook-cell:/a.ipynb#1",
    "file:///\ud800",
    "file:///" + "a/" * 3_000,
    "file://[",
    "https://example.invalid/a.py",
    "file:///a b.py",
)
_PLACE = {"line": 0, "character": 0}
_RANGE = {"start": _PLACE, "end": {"line": 3, "character": 1}}


def _deep(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


_JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    10**400,
    1.5,
    1e308,
    float("nan"),
    "",
    "x",
    "\ud800",
    "A" * 5_000,
    [],
    {},
    [None],
    {"a": None},
    {"jsonrpc": "2.0"},
    {"jsonrpc": "2.0", "id": 1, "method": "shutdown"},
    {"type_name": 1},
    {"type_name": "class"},
    {"__class__": "x", "1": 2},
    _deep(200),
    [[]] * 100,
    {str(number): number for number in range(300)},
)


@dataclass
class Report:
    """What was sent and what came of it."""

    messages: int = 0
    requests: int = 0
    deaths: int = 0
    tracebacks: int = 0
    good: int = 0
    slowest: float = 0.0
    peak: int = 0
    seconds: float = 0.0
    unanswered: list[Any] = field(default_factory=list)
    answered_twice: list[Any] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Add what another session has sent."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            setattr(self, name, max(mine, value) if name in ("slowest", "peak") else mine + value)


class Messages:
    """Random messages; ``requests`` has those that must be answered, by id."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.requests: dict[str | int, Any] = {}
        self.repeated: set[str | int] = set()

    def next(self) -> bytes:
        """The bytes of a message."""
        make = self._rng.choices((self._wrong_parameters, self._wrong_message, self._wrong_bytes), (6, 2, 2))[0]
        return make()

    def _wrong_parameters(self) -> bytes:
        rng = self._rng
        message: Json = {"jsonrpc": "2.0", "method": rng.choice(_METHODS)}
        if rng.random() < 0.95:
            message["params"] = self._parameters() if rng.random() < 0.9 else deepcopy(rng.choice(_JUNK))
        if rng.random() < 0.75:
            message["id"] = self._id(message)
        return framed(message)

    def _id(self, message: Json) -> str | int:
        rng = self._rng
        if self.requests and rng.random() < 0.03:
            repeated = rng.choice(list(self.requests))
            self.repeated.add(repeated)
            return repeated
        number: str | int = len(self.requests) + 1_000 if rng.random() < 0.5 else f"\u2028{len(self.requests)}"
        self.requests[number] = message
        return number

    def _parameters(self) -> Json:
        rng = self._rng
        uri = rng.choice(_URIS)
        text = "def f(n):\n    return [n] * n\n" * rng.randrange(4)
        # All that any method asks for, so that few of the others' names are wrong.
        whole: Json = {
            "textDocument": {
                "uri": uri,
                "languageId": rng.choice(("python", "java", "x")),
                "version": rng.randrange(9),
                "text": text,
            },
            "position": _PLACE,
            "range": _RANGE,
            "positions": [_PLACE],
            "uri": uri,
            "label": "x",
            "query": "f",
            "data": {"uri": uri},
            "context": {"diagnostics": [], "includeDeclaration": True, "triggerKind": 1},
            "options": {"tabSize": 4, "insertSpaces": True},
            "contentChanges": [{"range": _RANGE, "text": "x"}, {"text": text}],
            "command": f"rlm-lsp.{rng.choice(_COMMANDS)}",
            "arguments": [uri, _PLACE, "latency"][: rng.randrange(4)],
            "settings": {"rlm-lsp": {"label": "median"}},
            "token": rng.randrange(9),
            "event": {"added": [{"uri": uri, "name": "x"}], "removed": []},
            "changes": [{"uri": uri, "type": 2}],
            "id": rng.choice((1, "x")),
            "files": [{"uri": uri, "oldUri": uri, "newUri": uri}],
            "item": {},
            "value": {"kind": "begin", "title": "x"},
            "reason": 1,
            "notebookDocument": {
                "uri": "file:///a.ipynb",
                "notebookType": "jupyter",
                "version": 1,
                "cells": [{"kind": 2, "document": uri}],
            },
            "cellTextDocuments": [{"uri": uri, "languageId": "python", "version": 1, "text": text}],
            "newName": "g",
            "ch": "x",
            "change": {
                "cells": {"textContent": [{"document": {"uri": uri, "version": 2}, "changes": [{"text": text}]}]}
            },
        }
        params = deepcopy(whole)
        for _ in range(rng.choice((0, 1, 1, 2, 5))):
            self._spoil(params)
        return params

    def _spoil(self, value: Any) -> None:
        rng = self._rng
        while True:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            if not keys:
                return
            key = rng.choice(keys)
            inner = value[key]
            if isinstance(inner, (dict, list)) and inner and rng.random() < 0.6:
                value = inner
            elif rng.random() < 0.3:
                del value[key]
                return
            else:
                value[key] = deepcopy(rng.choice(_JUNK))
                return

    def _wrong_message(self) -> bytes:
        rng = self._rng
        junk = deepcopy(rng.choice(_JUNK))
        hover = {"method": "textDocument/hover", "params": self._parameters()}
        own = rng.choice((1, "good 1", "x"))
        return framed(
            rng.choice(
                (
                    junk,
                    [junk, hover],
                    {"method": "textDocument/hover", "id": own},
                    {"jsonrpc": junk, "id": 1, **hover},
                    {"jsonrpc": "2.0", **hover, "id": [1]},
                    {"jsonrpc": "2.0", **hover, "id": None},
                    {"jsonrpc": "2.0", **hover, "id": 1.5},
                    {"jsonrpc": "2.0", "method": junk if not isinstance(junk, str) else 7, "params": {}},
                    {"jsonrpc": "2.0", "id": own, "result": junk},
                    {"jsonrpc": "2.0", "id": own, "error": junk},
                    {"jsonrpc": "2.0", "id": junk, "error": {"code": 1, "message": "x"}},
                    {"jsonrpc": "2.0"},
                    {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": junk}},
                    {"jsonrpc": "2.0", "method": "$/progress", "params": junk},
                    {"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": junk}},
                )
            )
        )

    def _wrong_bytes(self) -> bytes:
        rng = self._rng
        body = json.dumps({"jsonrpc": "2.0", "method": "textDocument/hover", "params": self._parameters()}).encode()
        size, spare = len(body), rng.randrange(1, 40)
        cut = rng.randrange(size)
        return rng.choice(
            (
                lambda: b"Content-Length: abc\r\n\r\n" + body,
                lambda: b"Content-Length: -%d\r\n\r\n%s" % (size, body),
                lambda: b"Content-Length: %s\r\n\r\n%s" % (b"9" * rng.choice((9, 10, 30, 5_000)), body),
                lambda: b"Content-Length: 0\r\n\r\n" + body,
                lambda: b"Content-Length: %d\r\n\r\n%s" % (max(1, size - spare), body),
                # What the header promises has to come, or the server waits for it with reason.
                lambda: b"Content-Length: %d\r\n\r\n%s%s" % (size + spare, body, b" " * spare),
                lambda: b"content-length:%d\n\n%s" % (size, body),
                lambda: b"Content-Length: 3\r\nContent-Length: %d\r\n\r\n%s" % (size, body),
                lambda: b"Content-Length: %d\r\n%s" % (size, body),
                lambda: b"Content-Type: x\r\n\r\n" + body,
                lambda: body,
                lambda: b"\r\n" * spare,
                lambda: rng.randbytes(spare * 50).replace(b"\n", b""),
                lambda: b"Content-Length: %d\r\n\r\n%s" % (cut, body[:cut]),
                lambda: b"Content-Length: %d\r\n\r\n%s" % (size, body[:cut] + b"\xff" + body[cut + 1 :]),
                lambda: b"Content-Length: %d\r\n\r\n\xef\xbb\xbf%s" % (size + 3, body),
                lambda: b"Content-Length: %d\r\n\r\n%s" % (20_000, b"[" * 10_000 + b"]" * 10_000),
                lambda: b"Content-Length: %d\r\n\r\n%s" % (100_000, b'{"a":' * 20_000),
                lambda: b"Content-Length: %d\r\n\r\n%s" % (6_000, b"9" * 6_000),
                lambda: b"Content-Length: %d\r\n\r\n%s" % (2 * size, body.decode().encode("utf-16-le")),
            )
        )()


def framed(message: object) -> bytes:
    """A JSON value with its header."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


async def run(
    messages: int, seed: int, on_session: Callable[[int, Report], None] = lambda seed, report: None
) -> Report:
    """Send messages in sessions of one server each."""
    total = Report()
    number = 0
    while total.messages < messages:
        report = await run_session(min(_SESSION_MESSAGES, messages - total.messages), seed + number)
        on_session(seed + number, report)
        total.add(report)
        number += 1
    return total


async def run_session(count: int, seed: int) -> Report:
    """Send messages to one server; the seed decides all of them."""
    rng, report, start = random.Random(seed), Report(), time.perf_counter()
    messages = Messages(rng)
    early, late = min(_EARLY, count // 4), min(_LATE, count // 4)
    async with started() as client:
        await _send(client, messages, early)
        # The answer to a good request shows that the stream is read again after bytes that were no message.
        await asyncio.wait_for(client.ask("initialize", initialization()), PATIENCE)
        client.notify("initialized", {})
        client.open(_GOOD, "def f(n):\n    return sorted([n] * n)\n")
        good = {"textDocument": {"uri": _GOOD}, "position": {"line": 0, "character": 4}}
        await asyncio.wait_for(client.ask("textDocument/hover", good), PATIENCE)
        middle = count - early - late
        for sent in range(0, middle, _CHECKED_MESSAGES):
            await _send(client, messages, min(_CHECKED_MESSAGES, middle - sent))
            asked = time.perf_counter()
            await asyncio.wait_for(client.ask("textDocument/hover", good), PATIENCE)
            report.good += 1
            report.slowest = max(report.slowest, time.perf_counter() - asked)
            if client.process.returncode is not None:
                report.deaths += 1
                return report
        await asyncio.wait_for(client.ask("shutdown", None), PATIENCE)
        await _send(client, messages, late)
        await asyncio.wait_for(client.ask("textDocument/hover", good), PATIENCE)
        await _settled(client, messages)
        report.messages, report.requests = count, len(messages.requests)
        for number, message in messages.requests.items():
            if number not in client.answers:
                report.unanswered.append(message)
            elif len(client.answers[number]) > 1 and number not in messages.repeated:
                report.answered_twice.append(message)
        report.peak, report.tracebacks = client.peak(), client.log().count("Traceback")
        client.notify("exit", None)
        report.deaths += await asyncio.wait_for(client.process.wait(), PATIENCE)
    report.seconds = time.perf_counter() - start
    return report


async def _send(client: Client, messages: Messages, count: int) -> None:
    for _ in range(count):
        client.write(messages.next())
        await client.drain()


async def _settled(client: Client, messages: Messages) -> None:
    """Wait for answers that are still to come, but not for ever."""
    end = time.perf_counter() + PATIENCE / 4
    while messages.requests.keys() - client.answers.keys() and time.perf_counter() < end:
        await asyncio.wait({asyncio.ensure_future(client.answered.wait())}, timeout=1)
        client.answered.clear()


def main() -> None:
    """Print a line of JSON per session, and one of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    def show(seed: int, report: Report) -> None:
        print(json.dumps({"seed": seed, **asdict(report)}), flush=True)

    total = asyncio.run(run(arguments.messages, arguments.seed, show))
    print(json.dumps({"all": True, **asdict(total), "unanswered": len(total.unanswered)}))
    raise SystemExit(1 if total.unanswered or total.answered_twice or total.deaths else 0)


if __name__ == "__main__":
    main()
