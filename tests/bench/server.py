"""How fast the language server answers over real stdio, beside the bare onnxruntime time of the same texts.

    python -m tests.bench.server [--only hints keystroke memory start cold check replay]
        [--edits 10000] [--out FIGURES.json]

The files are ``argparse.py``, and files of Python's standard library: of 1,000 functions, and of 30,000 lines. Bare
time: tokens that are ready, through the encoder alone, one run per text, on as many threads as the machine has cores; a
keystroke's on one thread.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import rlm_core
from rlm_core.inference.encoder import encode, open_session
from rlm_core.inference.student import ENCODER, TOKENIZER
from rlm_core.inference.tokenizer import Ids, Tokenizer, crop
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.canonical import canonical
from rlm_core.source.parsed import ParsedSource, name_text, undecorated
from rlm_core.source.units import find_units

from .lsp_stdio import Client, session

Row = dict[str, Any]
_BUILTIN = Path(rlm_core.__file__).parent / "builtin"
_CONTEXT = 512
_SCREEN = 60  # lines that an editor asks for
_LEFT_OUT = shutil.ignore_patterns("test", "tests", "idle_test", "site-packages", "__pycache__", "*.so")
_URI = "file:///bench/file.py"
_LONG = 30_000  # lines
_IDLE_SECONDS = 10
_UNTIL_QUIET = 1_000_000  # hints: more than any file has


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts: dict[str, Callable[[argparse.Namespace], Awaitable[Row]]] = {
        "hints": hints,
        "keystroke": keystroke,
        "memory": memory,
        "start": start,
        "cold": cold,
        "check": check,
        "replay": replay,
    }
    parser.add_argument("--only", nargs="*", choices=parts, default=list(parts))
    parser.add_argument("--edits", type=int, default=10_000, help="that are replayed, 30 a second")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    rows = []
    for name in arguments.only:
        rows.append(asyncio.run(_run(parts[name], arguments)))
        print(json.dumps(rows[-1]), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


async def _run(part: Callable[[argparse.Namespace], Awaitable[Row]], arguments: argparse.Namespace) -> Row:
    return await part(arguments)


def functions(count: int) -> list[str]:
    """Top-level functions of the standard library, each name once, the same on every run."""
    found: dict[str, str] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        source = path.read_bytes()
        for unit in find_units(ParsedSource(source, "python")):
            if unit.kind == "function" and "." not in unit.qualname and unit.span.start_column == 0:
                found.setdefault(unit.qualname, unit.text)
    texts = list(found.values())
    random.Random(0).shuffle(texts)
    if len(texts) < count:
        # Methods of other modules are not worth the search: a function with another name is another text.
        texts += [text.replace("def ", "def other_", 1) for text in texts]
    return texts[:count]


def file_of(count: int) -> str:
    """A file of so many functions."""
    return "\n\n".join(functions(count)) + "\n"


def long_file() -> str:
    """A file of 30,000 lines: top-level functions and classes of the standard library, each name once."""
    taken: set[str] = set()
    lines: list[str] = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        source = path.read_bytes()
        for node in ParsedSource(source, "python").root.children:
            name = name_text(undecorated(node).child_by_field_name("name"))
            if name and name not in taken:
                taken.add(name)
                lines += [*name_text(node).split("\n"), "", ""]
            if len(lines) >= _LONG:
                return "\n".join(lines)
    raise ValueError("the standard library is too short")


def measured_files() -> dict[str, str]:
    """The files that an editor has open: an ordinary one and a very long one."""
    return {"argparse.py": Path(argparse.__file__).read_text(encoding="utf-8"), "30,000 lines": long_file()}


class Bare:
    """The encoder without anything around it."""

    def __init__(self) -> None:
        self._session = open_session(_BUILTIN / ENCODER)
        self._tokenizer = Tokenizer.load(_BUILTIN / TOKENIZER)

    def ids(self, units: list[AnalysedUnit]) -> list[Ids]:
        """The tokens of the distinct texts of units and what they call, cropped."""
        texts = {canonical(text, "python") for unit in units for text in _read(unit)}
        return [crop(self._tokenizer.encode(text, "python"), _CONTEXT)[0] for text in sorted(texts)]

    def seconds(self, ids: list[Ids], threads: int) -> float:
        """The time to encode texts."""
        with ThreadPoolExecutor(threads) as pool:
            began = time.perf_counter()
            list(pool.map(lambda text: encode(self._session, text), ids))
            return time.perf_counter() - began


def _read(unit: AnalysedUnit) -> list[str]:
    return [unit.code.text, *(callee.text for callee in unit.code.callees)]


def bare_seconds(source: str, threads: int) -> tuple[float, int]:
    """Time and number of tokens of the texts of a file, the best of two runs."""
    bare = Bare()
    ids = bare.ids(Analyser().analyse(ParsedSource(source.encode(), "python")))
    return min(bare.seconds(ids, threads) for _ in range(2)), sum(map(len, ids))


async def all_hints(client: Client, count: int) -> list[dict[str, Any]]:
    """Ask for hints until there are as many as functions that the model answers; those at the end of the work."""
    known: list[dict[str, Any]] = []
    while True:
        client.refreshed.clear()
        found = await client.hints(_URI)
        if len(found) >= count and len(found) == len(known):
            return found
        known = found
        try:
            await asyncio.wait_for(client.refreshed.wait(), 3)
        except TimeoutError:
            if found:
                return found


async def hints(arguments: argparse.Namespace) -> Row:
    """Hint requests for a screen of a file, and for all of it, where all hints are known."""
    figures: Row = {}
    for name, source in measured_files().items():
        lines = source.count("\n")
        rng = random.Random(0)
        async with session() as client:
            client.open(_URI, source)
            count = len(await all_hints(client, _UNTIL_QUIET))
            times = {"screen": [], "whole file": []}  # type: dict[str, list[float]]
            before = client.processor_seconds()
            for _ in range(500):
                first = rng.randrange(lines)
                times["screen"].append(await _timed(client.hints(_URI, first, first + _SCREEN)))
            for _ in range(100):
                times["whole file"].append(await _timed(client.hints(_URI)))
            seconds = client.processor_seconds() - before
        figures[name] = {
            "hints": count,
            **{part: _milliseconds(found) for part, found in times.items()},
            "processor ms per request": round(seconds / 600 * 1000, 2),
        }
    return {"what": "hint request, all cached", "goal": "p99 <= 10 ms; 30,000 lines: 30 ms", **figures}


async def keystroke(arguments: argparse.Namespace) -> Row:
    """From an edit in a function to its new hint, without the pause that the server waits for."""
    figures = {name: await _keystrokes(source) for name, source in measured_files().items()}
    goal = "p95 <= 60 ms; 30,000 lines: 120 ms"
    return {"what": "keystroke -> refreshed hint, debounce not counted", "goal": goal, **figures}


async def _keystrokes(source: str) -> Row:
    units = [one for one in Analyser().analyse(ParsedSource(source.encode(), "python")) if one.unit.kind == "function"]
    bare, debounce = Bare(), 50
    rng = random.Random(1)
    times, alone, version = [], [], 1
    async with session(debounceMs=debounce) as client:
        client.open(_URI, source)
        by_line = {hint["position"]["line"] for hint in await all_hints(client, _UNTIL_QUIET)}
        lines = source.split("\n")
        asked = [one for one in units if one.unit.header.end_line in by_line]
        before = client.processor_seconds()
        for one in rng.sample(asked, min(120, len(asked))):
            last = one.unit.span.end_line
            text = lines[last]
            line, version = one.unit.header.end_line, version + 1
            client.refreshed.clear()
            began = time.perf_counter()
            client.edit(_URI, version, last, len(text), len(text), f"; _ = {version}")
            first = max(0, line - _SCREEN // 2)
            while not any(
                hint["position"]["line"] == line for hint in await client.hints(_URI, first, first + _SCREEN)
            ):
                await asyncio.wait_for(client.refreshed.wait(), 30)
                client.refreshed.clear()
            times.append(time.perf_counter() - began - debounce / 1000)
            alone.append(bare.seconds(bare.ids([one])[:1], 1))
            # The next edit finds the file quiet.
            await asyncio.sleep(0.1)
        seconds = client.processor_seconds() - before
    return {
        "server": _milliseconds(times),
        "bare": _milliseconds(alone),
        "processor ms per edit": round(seconds / len(times) * 1000, 1),
    }


async def memory(arguments: argparse.Namespace) -> Row:
    """What the server holds, and what it does while nobody types: after a small file, and after 30,000 lines."""
    figures: Row = {}
    for name, source in {"small file": "def f(n):\n    return [n] * n\n", "30,000 lines": long_file()}.items():
        async with session() as client:
            client.open(_URI, source)
            await all_hints(client, _UNTIL_QUIET)
            before = client.processor_seconds()
            await asyncio.sleep(_IDLE_SECONDS)
            share = (client.processor_seconds() - before) / _IDLE_SECONDS
            figures[name] = {
                "MB": round(client.resident() / 1e6),
                "peak MB": round(client.peak() / 1e6),
                "idle processor share": round(share, 4),
            }
    return {"what": "memory and idle processor", "goal": "<= 160 MB; 30,000 lines: 300 MB; idle 0", **figures}


async def start(arguments: argparse.Namespace) -> Row:
    """From the start of the process to the hints of a file."""
    source = file_of(50)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        async with session() as client:
            client.open(_URI, source)
            while not await client.hints(_URI):
                await asyncio.wait_for(client.refreshed.wait(), 30)
                client.refreshed.clear()
            times.append(time.perf_counter() - began)
    bare, tokens = bare_seconds(source, os.cpu_count() or 1)
    return {
        "what": "process start -> first hints of a 50-function file",
        "goal": "<= 1.5 s",
        "seconds": round(float(np.median(times)), 3),
        "worst": round(max(times), 3),
        "bare seconds of all": round(bare, 3),
        "tokens": tokens,
    }


async def cold(arguments: argparse.Namespace) -> Row:
    """A file that nothing is known of: what is seen first, all of it, and whether the server answers meanwhile."""
    source = file_of(1000)
    middle = source.count("\n") // 2
    on_screen = len(_headers(source, middle))
    pings: list[float] = []
    async with session() as client:
        # The model is loaded and warm, as in a session that has gone on for a while.
        client.open("file:///bench/other.py", "def f(n):\n    return n\n")
        while not await client.hints("file:///bench/other.py"):
            await asyncio.wait_for(client.refreshed.wait(), 30)
            client.refreshed.clear()
        began = time.perf_counter()
        client.open(_URI, source)
        seen = 0.0
        done = 0.0
        known = 0
        while True:
            client.refreshed.clear()
            ping = time.perf_counter()
            visible = await client.hints(_URI, middle, middle + _SCREEN)
            pings.append(time.perf_counter() - ping)
            if visible and not seen and len(visible) >= on_screen:
                seen = time.perf_counter() - began
            # An editor that shows a screen does not ask for all lines.
            found = await client.hints(_URI) if seen else visible
            if len(found) > known:
                known, done = len(found), time.perf_counter() - began
            try:
                await asyncio.wait_for(client.refreshed.wait(), 3)
            except TimeoutError:
                break
    bare, tokens = bare_seconds(source, os.cpu_count() or 1)
    return {
        "what": "cold 1,000-function file",
        "goal": "visible <= 300 ms; all at >= 70 % of the bare rate; never blocked",
        "visible ms": round(seen * 1000),
        "all seconds": round(done, 2),
        "bare seconds": round(bare, 2),
        "share of bare rate": round(bare / done, 3),
        "hints": known,
        "tokens": tokens,
        "requests": len(pings),
        "longest answer ms": round(max(pings[1:]) * 1000, 1),
        "first answer ms": round(pings[0] * 1000, 1),
    }


def _headers(source: str, first: int) -> list[AnalysedUnit]:
    units = Analyser().analyse(ParsedSource(source.encode(), "python"))
    return [one for one in units if first <= one.unit.header.end_line < first + _SCREEN and one.unit.kind == "function"]


async def check(arguments: argparse.Namespace) -> Row:
    """``rlm-lsp check`` over Python's own library without its tests, every function under a budget."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "stdlib"
        shutil.copytree(sysconfig.get_path("stdlib"), folder, ignore=_LEFT_OUT, symlinks=True)
        (folder / "rlm-lsp.toml").write_text('[budgets]\n"**/*.py" = "latency < 60 s, memory < 60 GiB"\n')
        command = [sys.executable, "-m", "rlm_lsp", "check", "--format", "json", str(folder)]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        residents = []
        while process.poll() is None:
            await asyncio.sleep(0.5)
            residents.append(_resident(process.pid))
        _, seconds = process.wait(), time.perf_counter() - began
        analyser, units = Analyser(), []
        for path in sorted(folder.rglob("*.py")):
            units += analyser.analyse(ParsedSource(path.read_bytes(), "python"), path)
    bare = Bare()
    ids = bare.ids(units)
    alone = bare.seconds(ids, os.cpu_count() or 1)
    tokenizer = Tokenizer.load(_BUILTIN / TOKENIZER)
    tokens = sum(len(tokenizer.encode(canonical(unit.code.text, "python"), "python")) for unit in units)
    half = residents[len(residents) // 2]
    return {
        "what": "rlm-lsp check over Python's library",
        "goal": ">= 40,000 source tokens/s, memory flat, <= 400 MB",
        "units": len(units),
        "tokens": tokens,
        "seconds": round(seconds, 1),
        "tokens a second": round(tokens / seconds),
        "bare seconds": round(alone, 1),
        "bare tokens a second": round(sum(map(len, ids)) / alone),
        "peak MB": round(max(residents) / 1e6),
        "MB at half": round(half / 1e6),
        "exit": process.returncode,
    }


async def replay(arguments: argparse.Namespace) -> Row:
    """Edits at 30 a second: nothing stale is shown, the queue stays short, memory flat."""
    source = "\n" + file_of(300)
    version, stale, answers, slowest = 1, 0, 0, 0.0
    residents = []
    rng = random.Random(2)
    async with session() as client:
        client.open(_URI, source)
        first = {hint["position"]["line"] for hint in await all_hints(client, 300)}
        plain = source.split("\n")
        anchors = sorted(first)
        shift: dict[int, int] = {1: 0}
        tasks: set[asyncio.Task[None]] = set()

        async def ask() -> None:
            nonlocal stale, answers, slowest
            low, began = version, time.perf_counter()
            found = await client.hints(_URI)
            slowest = max(slowest, time.perf_counter() - began)
            lines = {hint["position"]["line"] for hint in found}
            answers += 1
            # Each version moves all functions by a number of lines of its own.
            stale += not any(lines <= {line + shift[at] for line in first} for at in range(low, version + 1))

        began = time.perf_counter()
        for number in range(arguments.edits):
            await asyncio.sleep(max(0.0, began + number / 30 - time.perf_counter()))
            version += 1
            if number % 2:
                # A blank line more, or all of them away again.
                more = shift[version - 1] < 7
                shift[version] = shift[version - 1] + 1 if more else 0
                place = {"start": {"line": 0, "character": 0}, "end": {"line": 0 if more else 7, "character": 0}}
                change = {"range": place, "text": "\n" if more else ""}
                document = {"uri": _URI, "version": version}
                client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
            else:
                shift[version] = shift[version - 1]
                line = rng.choice(anchors)
                at = line + shift[version]
                end = len(plain[line])
                client.edit(_URI, version, at, end, end, f"  # {version}")
                plain[line] += f"  # {version}"
            if number % 3 == 0:
                tasks.add(task := asyncio.create_task(ask()))
                task.add_done_callback(tasks.discard)
            if number % 300 == 0:
                residents.append(client.resident())
        await asyncio.gather(*tasks)
        settled = time.perf_counter()
        await client.hints(_URI)
        answered = time.perf_counter() - settled
        residents.append(client.resident())
        versions = [params.get("version") or 0 for _, params in client.published if params["uri"] == _URI]
    return {
        "what": f"{arguments.edits:,} edits at 30 a second",
        "goal": "nothing stale, queue bounded, memory flat",
        "hint answers": answers,
        "stale": stale,
        "diagnostics out of order": int(np.count_nonzero(np.diff(versions) < 0)) if versions else 0,
        "slowest answer ms": round(slowest * 1000),
        "answer after the last edit ms": round(answered * 1000),
        "MB at a tenth": round(residents[len(residents) // 10] / 1e6),
        "MB at the end": round(residents[-1] / 1e6),
    }


async def _timed(work: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def _milliseconds(times: list[float]) -> dict[str, float]:
    return {f"p{level} ms": round(float(np.percentile(times, level)) * 1000, 2) for level in (50, 95, 99)}


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    main()
