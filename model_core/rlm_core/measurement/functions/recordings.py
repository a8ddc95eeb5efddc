"""Reads the files of measured processes: functions with all samples. A broken last line is where a process died."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .injected.rlm_probe.recording_writer import FORMATS


@dataclass(slots=True)
class FunctionSamples:
    """The samples of one function, in nanoseconds or bytes.

    ``sizes`` are those of the calls' inputs by name, with a value per sample, NaN where a call has none. ``first`` are
    the places of the first call of each process among the samples.
    """

    module: str
    qualname: str
    file: str
    line: int
    kind: str
    samples: array[int] = field(default_factory=lambda: array("q"))
    sizes: dict[str, array[float]] = field(default_factory=dict)
    first: list[int] = field(default_factory=list)
    tests: int = 0
    exceptions: int = 0
    recursive: bool = False
    threads: bool = False

    def extend(self, samples: Sequence[int], sizes: Mapping[str, Sequence[float]]) -> None:
        """Add samples with the sizes of their calls."""
        known = len(self.samples)
        self.samples.extend(samples)
        for name in {**self.sizes, **sizes}:
            column = self.sizes.setdefault(name, array("d"))
            column.extend([math.nan] * (known - len(column)))
            column.extend(sizes.get(name) or [math.nan] * len(samples))


@dataclass(slots=True)
class Recording:
    """One process's file: what it says of itself, its functions, the tests that it began, and how it ended.

    ``uncollected`` are the files of tests that could not be read, and why.

    ``end`` is None of a process that died; the last of ``tests`` was then open if ``in_test``.
    """

    path: Path
    header: dict[str, Any]
    functions: dict[int, FunctionSamples] = field(default_factory=dict)
    tests: list[str] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    uncollected: dict[str, str] = field(default_factory=dict)
    in_test: bool = False
    end: dict[str, Any] | None = None

    @property
    def is_worker(self) -> bool:
        """True for the recording of a worker of pytest-xdist."""
        return bool(self.header.get("worker"))


def read_recordings(folder: Path) -> list[Recording]:
    """The recordings of a folder, in the order in which they began; other files are skipped."""
    found = filter(None, (_read(path) for path in folder.glob("*.jsonl")))
    return sorted(found, key=lambda one: (one.header.get("began", 0.0), one.path.name))


def merge_recordings(recordings: Iterable[Recording]) -> list[FunctionSamples]:
    """The functions of several processes, each once with all its samples."""
    whole: dict[tuple[str, int, str], FunctionSamples] = {}
    for recording in recordings:
        for one in recording.functions.values():
            key = (one.file, one.line, one.qualname)
            known = whole.get(key)
            if known is None:
                whole[key] = one
                continue
            known.first += [len(known.samples) + place for place in one.first]
            known.extend(one.samples, one.sizes)
            known.tests += one.tests
            known.exceptions += one.exceptions
            known.recursive |= one.recursive
            known.threads |= one.threads
    return list(whole.values())


def _read(path: Path) -> Recording | None:
    recording: Recording | None = None
    try:
        for what, *rest in _lines(path):
            if recording is not None:
                _take(recording, what, rest)
            elif what == "start" and rest[0]["format"] in FORMATS:
                recording = Recording(path, rest[0])
            else:
                return None
    except (ValueError, TypeError, KeyError, IndexError):
        pass  # a line that is not ours: what came before it counts
    return recording


def _lines(path: Path) -> Iterator[list[Any]]:
    """The lines up to the first that is not whole."""
    try:
        data = path.read_bytes()
    except OSError:
        return
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return
        yield json.loads(line)


def _take(recording: Recording, what: str, rest: list[Any]) -> None:
    if what == "function":
        number, module, qualname, file, first, kind = rest
        recording.functions[number] = FunctionSamples(module, qualname, file, first, kind)
    elif what == "test":
        recording.tests.append(rest[0])
        recording.in_test = True
    elif what == "seen":
        recording.in_test = False
        for number, exceptions, recursive, threads, samples, *sizes in rest[0]:
            seen = recording.functions[number]
            seen.extend(samples, _columns(sizes[0], len(samples)) if sizes else {})
            seen.first = [0] if seen.samples else []
            seen.tests += 1
            seen.exceptions += exceptions
            seen.recursive |= bool(recursive)
            seen.threads |= bool(threads)
    elif what == "disturbed":
        recording.disturbed.append(rest[0])
    elif what == "uncollected":
        recording.uncollected[rest[0]] = rest[1]
    elif what == "end":
        recording.end = rest[0]


def _columns(sizes: Mapping[str, Any], count: int) -> dict[str, list[float]]:
    """Sizes by name as lists with a value per call; see the writer of recordings.

    Raises:
        ValueError: a list of another length.
        TypeError: something else than a number.
    """
    columns: dict[str, list[float]] = {}
    for name, given in sizes.items():
        values = given if isinstance(given, list) else [given] * count
        if len(values) != count:
            raise ValueError("sizes of other calls")
        columns[name] = [math.nan if value is None else float(value) for value in values]
    return columns
