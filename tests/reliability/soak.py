"""Hours of a person at an editor: whether the server's memory stays flat and its log free of errors.

    python -m tests.reliability.soak [--hours 4] [--seed 1] [--rate 4] [--out SAMPLES.jsonl]
    python -m tests.reliability.soak --actions 2000 --rate 0

A real server is driven over stdio in a git repository of generated modules. The person types words, undoes, pastes
and deletes functions, hovers, asks for hints, lenses, code actions and diagnostics, saves, commits, switches branches
(which sends watched files), opens and closes files, and pauses. ``--rate`` is gestures per second; 0 leaves no pauses.
Every ten seconds a line with the server's memory, open files, threads and processor time goes to ``--out``. The last
line has the slope of the memory after the warm-up, the first fifth, with the interval that covers 95 % of a moving
block bootstrap (blocks of a twentieth of the samples, since neighbouring samples are not independent).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from tests.bench.lsp_stdio import AnswerError, Client, session
from tests.bench.workspace import generate

_FUNCTIONS = 600  # of the generated package: twelve modules
_SAMPLE_SECONDS = 10.0
_LONGEST_TEXT = 420  # lines: then functions are deleted until there are fewer than _SHORT_TEXT
_SHORT_TEXT = 330
_MOST_OPEN = 6
_MOST_WAITING = 24  # requests; a person does not ask for more before the answers are there
_OUTDATED = (-32801, -32802, -32800)  # the text has changed since: no fault
_ERROR = 1  # of window/logMessage
_WORDS = ("total", "items", "value", "sorted", "range", "len", "append", "result", "index", "other", "sum", "enumerate")
_PASTED = """

def pasted_{number}(items, size={number}):
    seen = {{}}
    for item in items:
        for step in range(size):
            seen[item] = seen.get(item, 0) + step
    return sorted(seen.items())
"""


@dataclass
class Text:
    """An open document as the editor has it, and what undoes its edits."""

    path: Path
    lines: list[str]
    version: int = 1
    undo: list[tuple[int, int, int, int, str]] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """Its name in the protocol."""
        return self.path.as_uri()

    def between(self, first: int, start: int, last: int, end: int) -> str:
        """The text of a range."""
        if first == last:
            return self.lines[first][start:end]
        return "\n".join([self.lines[first][start:], *self.lines[first + 1 : last], self.lines[last][:end]])

    def replace(self, first: int, start: int, last: int, end: int, new: str) -> tuple[int, int]:
        """Replace a range; where the new text ends."""
        parts = new.split("\n")
        after = self.lines[last][end:]
        parts[0] = self.lines[first][:start] + parts[0]
        place = len(parts[-1])
        parts[-1] += after
        self.lines[first : last + 1] = parts
        return first + len(parts) - 1, place


class Person:
    """Gestures at an editor, drawn by a seed."""

    def __init__(self, client: Client, folder: Path, files: list[Path], seed: int) -> None:
        self.client, self.folder, self.files = client, folder, files
        self.random = random.Random(seed)
        self.open: list[Text] = []
        self.gestures = self.edits = self.requests = 0
        self.faults: list[str] = []
        self._numbers = count()
        self._waiting: set[asyncio.Task[None]] = set()
        self._branches = ["main", "feature"]

    async def act(self) -> None:
        """One gesture."""
        if not self.open:
            await self.open_file()
        weighted: dict[Callable[[], Awaitable[None]], float] = {
            self.type_word: 40, self.undo: 8, self.paste: 5, self.delete_function: 5, self.hover: 14, self.scroll: 12,
            self.look: 6, self.save: 5, self.open_file: 2, self.close_file: 2, self.switch_branch: 0.7,
            self.commit: 0.3,
        }  # fmt: skip
        [gesture] = self.random.choices(list(weighted), list(weighted.values()))
        await gesture()
        self.gestures += 1
        while len(self._waiting) > _MOST_WAITING:
            await asyncio.wait(self._waiting, return_when=asyncio.FIRST_COMPLETED)

    async def settle(self) -> None:
        """Wait for all answers."""
        if self._waiting:
            await asyncio.wait(self._waiting)

    async def type_word(self) -> None:
        """Type a word, letter by letter, somewhere in a body; hints are asked for after each letter, as editors do."""
        text = self.random.choice(self.open)
        line = self.random.randrange(len(text.lines))
        indented = text.lines[line].startswith("    ")
        place = len(text.lines[line])
        word = self.random.choice(_WORDS)
        word = f"\n    {word} = {word}({self.random.randrange(1000)})" if indented else f"  # {word}"
        for letter in word:
            line, place = self._edit(text, line, place, line, place, letter)
            if self.random.random() < 0.3:
                self._ask_hints(text, line)
                await asyncio.sleep(0)
        self._ask_hints(text, line)

    async def undo(self) -> None:
        """Take back some edits."""
        text = self.random.choice(self.open)
        for _ in range(min(self.random.randrange(1, 30), len(text.undo))):
            self._edit(text, *text.undo.pop(), kept=False)
        self._ask_hints(text)

    async def paste(self) -> None:
        """Paste a function at the end."""
        text = self.random.choice(self.open)
        last = len(text.lines) - 1
        self._edit(
            text, last, len(text.lines[last]), last, len(text.lines[last]), _PASTED.format(number=next(self._numbers))
        )
        self._ask_hints(text, last)
        if len(text.lines) > _LONGEST_TEXT:
            while len(text.lines) > _SHORT_TEXT and self._delete(text):
                pass

    async def delete_function(self) -> None:
        """Delete a whole function."""
        text = self.random.choice(self.open)
        self._delete(text)
        self._ask_hints(text)

    async def hover(self) -> None:
        """Hover over a line, often that of a function."""
        text = self.random.choice(self.open)
        heads = [number for number, line in enumerate(text.lines) if line.lstrip().startswith("def ")]
        line = self.random.choice(heads) if heads and self.random.random() < 0.8 else self._line(text)
        place = {"line": line, "character": min(6, len(text.lines[line]))}
        self._ask("textDocument/hover", {"textDocument": {"uri": text.uri}, "position": place})

    async def scroll(self) -> None:
        """Look at another part of a file."""
        text = self.random.choice(self.open)
        self._ask_hints(text, self._line(text))

    async def look(self) -> None:
        """Ask for what else an editor asks: lenses, code actions, diagnostics."""
        text = self.random.choice(self.open)
        line = self._line(text)
        place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 0}}
        document = {"textDocument": {"uri": text.uri}}
        self._ask("textDocument/codeLens", document)
        self._ask("textDocument/codeAction", {**document, "range": place, "context": {"diagnostics": []}})
        self._ask("textDocument/diagnostic", document)

    async def save(self) -> None:
        """Save a file."""
        self._save(self.random.choice(self.open))

    async def open_file(self) -> None:
        """Open another file."""
        closed = [path for path in self.files if path not in {text.path for text in self.open}]
        path = self.random.choice(closed)
        text = Text(path, path.read_text(encoding="utf-8").split("\n"))
        self.open.append(text)
        self.client.open(text.uri, "\n".join(text.lines))
        self._ask_hints(text, 0)
        if len(self.open) > _MOST_OPEN:
            await self.close_file()

    async def close_file(self) -> None:
        """Save and close a file."""
        text = self.open.pop(self.random.randrange(len(self.open)))
        self._save(text)
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": text.uri}})

    async def commit(self) -> None:
        """Save and commit everything."""
        for text in self.open:
            self._save(text)
        _git(self.folder, "commit", "-q", "--allow-empty", "-am", "work")

    async def switch_branch(self) -> None:
        """Check the other branch out, dropping what is not committed; the editor reads its files again."""
        before = {path: path.read_bytes() for path in self.files}
        self._branches.reverse()
        _git(self.folder, "checkout", "-q", "-f", self._branches[0])
        changed = [path for path in self.files if path.read_bytes() != before[path]]
        events = [{"uri": path.as_uri(), "type": 2} for path in changed]
        self.client.notify("workspace/didChangeWatchedFiles", {"changes": events})
        for text in self.open:
            lines = text.path.read_text(encoding="utf-8").split("\n")
            if lines != text.lines:
                last = len(text.lines) - 1
                self._edit(text, 0, 0, last, len(text.lines[last]), "\n".join(lines), kept=False)
                text.undo.clear()
            self._ask_hints(text)

    def _line(self, text: Text) -> int:
        return self.random.randrange(len(text.lines))

    def _delete(self, text: Text) -> bool:
        heads = [number for number, line in enumerate(text.lines) if line.startswith("def ")]
        if len(heads) < 3:
            return False
        which = self.random.randrange(len(heads) - 1)
        self._edit(text, heads[which], 0, heads[which + 1], 0, "")
        return True

    def _edit(
        self, text: Text, first: int, start: int, last: int, end: int, new: str, kept: bool = True
    ) -> tuple[int, int]:
        old = text.between(first, start, last, end)
        place = text.replace(first, start, last, end, new)
        if kept:
            text.undo = [*text.undo[-60:], (first, start, *place, old)]
        text.version += 1
        self.edits += 1
        span = {"start": {"line": first, "character": start}, "end": {"line": last, "character": end}}
        document = {"uri": text.uri, "version": text.version}
        self.client.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [{"range": span, "text": new}]}
        )
        return place

    def _save(self, text: Text) -> None:
        text.path.write_text("\n".join(text.lines), encoding="utf-8")
        self.client.notify("textDocument/didSave", {"textDocument": {"uri": text.uri}})
        self.client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": text.uri, "type": 2}]})

    def _ask_hints(self, text: Text, line: int = 0) -> None:
        place = {"start": {"line": max(0, line - 30), "character": 0}, "end": {"line": line + 30, "character": 0}}
        self._ask("textDocument/inlayHint", {"textDocument": {"uri": text.uri}, "range": place})

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        task = asyncio.create_task(self._answered(method, params))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _answered(self, method: str, params: dict[str, Any]) -> None:
        self.requests += 1
        try:
            await self.client.request(method, params)
        except AnswerError as error:
            if error.code not in _OUTDATED:
                self.faults.append(f"{method}: {error}")
        except TimeoutError:
            self.faults.append(f"{method}: no answer in two minutes")


@dataclass(frozen=True)
class Slope:
    """MiB per hour, with the interval of 95 %."""

    slope: float
    low: float
    high: float


def slope(hours: list[float], mib: list[float], seed: int = 0) -> Slope:
    """The slope of the memory over time, from at least twenty samples."""
    x, y = np.array(hours), np.array(mib)
    fitted = np.polyfit(x, y, 1)
    residuals = y - np.polyval(fitted, x)
    block = max(1, len(x) // 20)
    chosen = np.random.default_rng(seed)
    slopes = []
    for _ in range(2000):
        starts = chosen.integers(0, len(x) - block + 1, size=-(-len(x) // block))
        drawn = np.concatenate([residuals[start : start + block] for start in starts])[: len(x)]
        slopes.append(np.polyfit(x, np.polyval(fitted, x) + drawn, 1)[0])
    low, high = np.quantile(slopes, (0.025, 0.975))
    return Slope(round(float(fitted[0]), 3), round(float(low), 3), round(float(high), 3))


def sample(client: Client, person: Person, start: float) -> dict[str, Any]:
    """The server's state now (Linux)."""
    process = Path(f"/proc/{client.process.pid}")
    return {
        "seconds": round(time.monotonic() - start, 1),
        "rss_mib": round(client.resident() / 2**20, 2),
        "files": len(list((process / "fd").iterdir())),
        "threads": len(list((process / "task").iterdir())),
        "cpu_s": round(client.processor_seconds(), 1),
        "gestures": person.gestures,
        "edits": person.edits,
        "requests": person.requests,
    }


async def soak(
    folder: Path, seed: int, rate: float, seconds: float, gestures: int | None, out: TextIO | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Drive a server in a new repository below ``folder``; the samples, and every fault that was seen."""
    files = make_repository(folder / "work")
    samples: list[dict[str, Any]] = []
    spacing = _SAMPLE_SECONDS if gestures is None else 0.0
    with tempfile.TemporaryFile() as errors:
        async with session((folder / "work").as_uri(), errors) as client:
            person = Person(client, folder / "work", files, seed)
            start = due = time.monotonic()
            while time.monotonic() - start < seconds and (gestures is None or person.gestures < gestures):
                await person.act()
                if rate:
                    # Mostly about 1 / rate apart; one gesture in two hundred is followed by a break.
                    pause = person.random.expovariate(rate) + (15 if person.random.random() < 0.002 else 0)
                    await asyncio.sleep(pause)
                elif person.gestures % 50 == 0:
                    await person.settle()
                if time.monotonic() >= due and (gestures is None or person.gestures % 50 == 0):
                    due = time.monotonic() + spacing
                    samples.append(sample(client, person, start))
                    if out is not None:
                        print(json.dumps(samples[-1]), file=out, flush=True)
            await person.settle()
            logged = [str(message["message"]) for message in client.messages if message["type"] == _ERROR]
        errors.seek(0)
        on_stderr = errors.read().decode(errors="replace").splitlines()
    return samples, [*person.faults, *logged, *on_stderr]


def make_repository(folder: Path) -> list[Path]:
    """A git repository with a package of generated modules and a second branch on which half of them differ."""
    modules = generate(folder / "pkg", _FUNCTIONS)
    files = [folder / "pkg" / f"{name.replace('.', '/')}.py" for name in modules]
    _git(folder, "init", "-q", "-b", "main")
    for name, value in (("user.name", "A person"), ("user.email", "person@example.com"), ("gc.auto", "0")):
        _git(folder, "config", name, value)
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "first")
    _git(folder, "checkout", "-q", "-b", "feature")
    for path in files[::2]:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("total = 0", "total = sum(range(1000))"), encoding="utf-8")
    _git(folder, "commit", "-q", "-am", "second")
    _git(folder, "checkout", "-q", "main")
    return files


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, stdin=subprocess.DEVNULL)


def summary(samples: list[dict[str, Any]], faults: list[str]) -> dict[str, Any]:
    """What the run showed: the last sample, the slope after the warm-up, the faults."""
    warm = [found for found in samples if found["seconds"] >= samples[-1]["seconds"] / 5]
    figures: dict[str, Any] = {"hours": round(samples[-1]["seconds"] / 3600, 3), **samples[-1]}
    if len(warm) >= 20:
        found = slope([one["seconds"] / 3600 for one in warm], [one["rss_mib"] for one in warm])
        figures["mib_per_hour"] = {"slope": found.slope, "low": found.low, "high": found.high}
    figures["warm_mib"] = [min(one["rss_mib"] for one in warm), max(one["rss_mib"] for one in warm)]
    figures["most_files"] = max(one["files"] for one in samples)
    figures["most_threads"] = max(one["threads"] for one in samples)
    return {**figures, "faults": len(faults), "first_faults": faults[:10]}


def main() -> int:
    """Soak and print what was seen; 1 if a fault was."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hours", type=float, default=4)
    parser.add_argument("--actions", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=4)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        out = arguments.out.open("w", encoding="utf-8") if arguments.out else None
        samples, faults = asyncio.run(
            soak(Path(folder), arguments.seed, arguments.rate, arguments.hours * 3600, arguments.actions, out)
        )
        figures = summary(samples, faults)
        print(json.dumps(figures, indent=1))
        if out is not None:
            print(json.dumps(figures), file=out, flush=True)
        return int(bool(faults))
    return 1


if __name__ == "__main__":
    sys.exit(main())
