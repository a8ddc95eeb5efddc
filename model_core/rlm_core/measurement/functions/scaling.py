"""Calls measured functions again with larger inputs: the examples of a run's recordings -> a cost curve per function.

The calls run in a separate process of the tests' interpreter, in the sandbox of measured programs where there is one.
A function that ends that process or does not end is lost alone: the work resumes behind it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import select
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.measurement.programs.sandbox import LimitsOnly, ProgramLimits, Sandbox, SandboxTask, find_sandbox
from rlm_core.measurement.types import MOST_SIZE_NAME, MOST_SIZED, MOST_SIZES, SIZE_NAME, SizedCalls
from rlm_core.processes import end_group, stop_signals
from rlm_core.types import Metric

from .injected.rlm_probe.call_examples import FORMAT, SUFFIX
from .run import INSIDE, Note

ORDER, RESULTS = "scale-order.json", "scaled.json"  # JSON Lines, but not recordings
BENCH_FILES = ("rlm_bench.py", ".rlm/bench.py")
_IMPORT_SECONDS = 300.0
_SLOWDOWN = 20.0  # on a machine with other work, a second of the processor may take so many
_MOST_RESTARTS = 30
_EXAMPLES = 4  # of a function, over all processes
_MEMORY = 4 << 30
Key = tuple[str, str, int]
"""Real file, qualified name and first line of a function."""


@dataclass(frozen=True, slots=True)
class ScaleLimits:
    """Processor seconds of one call, of all work on one function, and of all; bytes of memory of the process."""

    call: float = 0.5
    function: float = 3.0
    total: float = 600.0
    memory: int = _MEMORY


@dataclass(frozen=True, slots=True)
class ScaledPoint:
    """The cost of a function at one size.

    ``seconds`` is the median and ``least`` the smallest of ``calls``; ``peak`` is in bytes, -1 where it was not traced.
    ``grown`` names the inputs that are ``factor`` times as large as in the tests.
    """

    factor: int
    grown: tuple[str, ...]
    sizes: Mapping[str, float]
    seconds: float
    least: float
    calls: int
    peak: int


@dataclass(frozen=True, slots=True)
class ScaledFunction:
    """A function that was called again: its points, or why it has none. ``cpu`` is in seconds."""

    module: str
    qualname: str
    file: str
    line: int
    kind: str
    points: tuple[ScaledPoint, ...] = ()
    why: str = ""
    ended: str = ""
    cpu: float = 0.0

    @property
    def key(self) -> Key:
        """The identity of the function."""
        return key_of(self.file, self.qualname, self.line)


def key_of(file: str, qualname: str, line: int) -> Key:
    """The identity of a function, whatever links its file was imported by."""
    return os.path.realpath(file), qualname, line


@dataclass(slots=True)
class _Order:
    """The functions with examples, in the order in which they are called again."""

    header: dict[str, Any] = field(default_factory=dict)
    functions: list[dict[str, Any]] = field(default_factory=list)

    def write(self, path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            for line in (self.header, *self.functions):
                file.write(json.dumps(line) + "\n")


def scale(
    folder: Path, python: str, limits: ScaleLimits, note: Note, bench: Path | None = None
) -> list[ScaledFunction]:
    """Call the functions of a run's recordings again; ``folder`` is the run's, ``python`` the tests' interpreter.

    ``bench`` is a file whose functions ``bench_NAME`` make inputs; they come first. ``note`` receives what went wrong.
    The results are also written to the folder, for :func:`read_scaled`. The order of the functions is fixed by their
    names, so that a limit of time leaves out any of them alike.

    Raises:
        DataError: the process cannot be started, the bench file cannot be read, or the system is Windows.
        KeyboardInterrupt: the user has stopped the run.
    """
    if os.name != "posix":
        raise DataError("calls with larger inputs are measured on Linux and macOS only")
    order = _read_order(folder, limits)
    if bench is not None and order.header:
        order.header["bench"] = str(bench.absolute())
        names = bench_names(bench)
        order.functions[:0] = [{**_NO_PLACE, "qualname": name, "bench": name} for name in names]
    if not order.functions:
        return []
    sandbox = _sandbox()
    results: dict[int, dict[str, Any]] = {}
    first, restarts = 0, 0
    while first < len(order.functions) and restarts <= _MOST_RESTARTS:
        order.header["seconds"] = limits.total - sum(result.get("cpu", 0.0) for result in results.values())
        if order.header["seconds"] <= 0:
            break
        order.write(folder / ORDER)
        attempt = _Attempt(results)
        _run(sandbox, python, folder, first, limits, attempt)
        if attempt.has_ended:
            break
        restarts += 1
        if attempt.begun is not None:
            results[attempt.begun] = {"why": attempt.lost, "cpu": limits.function}
            name = order.functions[attempt.begun]["qualname"]
            note(f"{name} with larger inputs {attempt.lost}; the rest goes on without it")
            first = attempt.begun + 1
        elif attempt.importing:
            order.header["crashing"].append(attempt.importing)
        else:
            note(f"functions cannot be called again: {attempt.lost}")
            break
    found = [_function(line, results[index]) for index, line in enumerate(order.functions) if index in results]
    (folder / RESULTS).write_text("".join(json.dumps(to_row(one)) + "\n" for one in found), encoding="utf-8")
    return found


def read_scaled(folder: Path) -> dict[Key, ScaledFunction]:
    """The functions that were called again after a run, by file, qualified name and first line; empty without any."""
    found = [_function(line, line) for line in _lines(folder / RESULTS)]
    # What a bench file makes is meant for the function, and comes first.
    return {one.key: one for one in reversed(found) if one.points}


def scaled_calls(function: ScaledFunction, metric: Metric) -> tuple[SizedCalls, ...]:
    """The points of a function as calls of a measurement, in SI units."""
    rows = []
    for point in function.points[:MOST_SIZED]:
        cost = point.seconds if metric == "latency" else point.peak
        names = [name for name in point.sizes if len(name) <= MOST_SIZE_NAME and re.match(SIZE_NAME, name)]
        # Those that grow come first, should there be too many.
        names = sorted(names, key=lambda name: name not in point.grown)[:MOST_SIZES]
        if cost >= 0 and names:
            sizes = {name: point.sizes[name] for name in sorted(names)}
            rows.append(SizedCalls(sizes, cost, point.calls if metric == "latency" else 1, scaled=True))
    return tuple(rows)


def to_row(function: ScaledFunction) -> dict[str, Any]:
    """Return a function as JSON data."""
    row: dict[str, Any] = {name: getattr(function, name) for name in ("module", "qualname", "file", "line", "kind")}
    row["points"] = [{name: getattr(point, name) for name in ScaledPoint.__slots__} for point in function.points]
    return {**row, "why": function.why, "ended": function.ended, "cpu": function.cpu}


def left_out(functions: Sequence[ScaledFunction]) -> Counter[str]:
    """Count the functions without a curve by reason."""
    return Counter(one.why.partition(":")[0] for one in functions if not one.points)


def _read_order(folder: Path, limits: ScaleLimits) -> _Order:
    order = _Order()
    functions: dict[Key, dict[str, Any]] = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        lines = _lines(path)
        header = next(lines, {})
        if header.get("format") != FORMAT:
            continue
        order.header = order.header or {
            "packages": header["packages"], "path": header["path"], "folder": header["folder"],
            "seconds_per_call": limits.call, "seconds_per_function": limits.function, "memory": limits.memory,
            "crashing": [], "bench": "",
        }  # fmt: skip
        for line in lines:
            key = key_of(line["file"], line["qualname"], line["line"])
            known = functions.setdefault(key, {**line, "examples": []})
            known.pop("arguments", None)
            if "arguments" in line:
                known["examples"].append(line["arguments"])
    for line in functions.values():
        # What is larger shows more of what a function does.
        line["examples"] = sorted(line["examples"], key=_volume, reverse=True)[:_EXAMPLES]
    order.functions = sorted(functions.values(), key=_place)
    return order


_NO_PLACE = {"module": "", "file": "", "line": 0, "kind": "function", "examples": []}


def bench_names(bench: Path) -> list[str]:
    """The functions of a bench file that make inputs, without running it."""
    try:
        tree = ast.parse(bench.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{bench}: cannot be read ({error})") from None
    return [one.name for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("bench_")]


def _place(line: dict[str, Any]) -> str:
    return hashlib.sha1(
        f"{line['module']} {line['qualname']} {line['line']}".encode(), usedforsecurity=False
    ).hexdigest()


def _volume(example: dict[str, Any]) -> int:
    return len(json.dumps(example))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of examples; the last one of a process that died may be broken."""
    with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _sandbox() -> Sandbox:
    try:
        return find_sandbox("bubblewrap")
    except DataError:
        return LimitsOnly()


class _Attempt:
    """The answers of one process."""

    def __init__(self, results: dict[int, dict[str, Any]]) -> None:
        self._results = results
        self.begun: int | None = None
        self.importing = self.lost = ""
        self.has_ended = False

    def take(self, line: bytes) -> None:
        """Read a line of the process."""
        with suppress(ValueError, IndexError, TypeError):
            what, *rest = json.loads(line)
            if what == "import":
                self.importing = rest[0]
            elif what == "begin":
                self.begun, self.importing = rest[0], ""
            elif what == "done":
                self._results[rest[0]] = rest[1]
                self.begun = None
            elif what == "end":
                self.has_ended = True


def _run(sandbox: Sandbox, python: str, folder: Path, first: int, limits: ScaleLimits, attempt: _Attempt) -> None:
    """Start the process once and read what it says until it ends, or is silent for too long."""
    order = folder / ORDER
    command = [python, "-P", "-m", "rlm_probe.scaled.worker", str(order), str(first)]
    readable = [INSIDE, folder, *_import_folders(order)]
    environment = {"PYTHONPATH": str(INSIDE), "PYTHONHASHSEED": "0"}
    seconds = _SLOWDOWN * limits.total + _IMPORT_SECONDS
    task = SandboxTask(command, environment, readable, folder, ProgramLimits(seconds, limits.memory))
    with stop_signals() as came:
        try:
            process = sandbox.start(
                command,
                task,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            sandbox.close()
            raise DataError(f"{python}: cannot be started ({error})") from None
        try:
            _read(process, _SLOWDOWN * limits.function, came, attempt)
        finally:
            end_group(process)
            sandbox.close()


def _read(process: subprocess.Popen[bytes], silence: float, came: Sequence[int], attempt: _Attempt) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    output, rest = process.stdout.fileno(), b""
    heard = time.monotonic()
    while not came:
        ready, _, _ = select.select([output], [], [], 0.2)
        if ready:
            data = os.read(output, 1 << 16)
            if not data:
                break
            heard = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                attempt.take(line)
        elif time.monotonic() - heard > (_IMPORT_SECONDS if attempt.begun is None else silence):
            attempt.lost = "does not end"
            return
    if came:
        raise KeyboardInterrupt
    if not attempt.has_ended:
        status = process.wait()
        attempt.lost = f"ends the process ({_how(status)}{_last_line(process)})"


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"status {status}"


def _last_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    lines = process.stderr.read().decode(errors="replace").strip().splitlines()
    return f": {lines[-1][:200]}" if lines else ""


def _import_folders(order: Path) -> list[Path]:
    """The folders that the tests imported from, and the working folder."""
    with order.open(encoding="utf-8") as file:
        header = json.loads(file.readline())
    return [path for name in (*header["path"], header["folder"]) if (path := Path(name)).is_dir()]


def _function(line: dict[str, Any], result: dict[str, Any]) -> ScaledFunction:
    points = tuple(ScaledPoint(**{**point, "grown": tuple(point["grown"])}) for point in result.get("points", ()))
    module, qualname, file, first, kind = (
        result.get(name, line[name]) for name in ("module", "qualname", "file", "line", "kind")
    )
    return ScaledFunction(
        module,
        qualname,
        file,
        first,
        kind,
        points=points,
        why=result.get("why", ""),
        ended=result.get("ended", ""),
        cpu=result.get("cpu", 0.0),
    )
