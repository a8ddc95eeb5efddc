"""Counts in how many real functions each part of the cost analysis runs: what hardly any function needs can go.

    python3.12 -m tools.experiments.fired count --out COUNTS.jsonl FOLDER... [--functions 400]
    python3.12 -m tools.experiments.fired report COUNTS.jsonl [--below 0.001] [--source model_core/rlm_core/cost]

``count`` analyses the functions of the Python files of each folder, a package each, and writes a line per package: how
many functions it has, in how many each line of ``rlm_core/cost`` ran, and in how many each entry of the library's
tables was used. Files are chosen by a hash of their place. ``report`` adds the packages up in two parts, chosen by a
hash of the package's name, so that what is decided on one part can be confirmed on the other. It prints the functions
and blocks of the analysis and the entries that fewer functions than a share need in both parts, largest first.

Lines are counted with ``sys.monitoring``, which Python has from version 3.12 on: each is reported once per function.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import CodeType, FunctionType
from typing import Any

import rlm_core.cost
from rlm_core.errors import RlmError
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource

FOLDER = Path(rlm_core.cost.__file__).parent
_LEFT_OUT = frozenset({"test", "tests", "testing", "site-packages", "__pycache__", "_vendor", "idlelib", "lib2to3"})
_MOST_BYTES = 200_000
_MONITORING: Any = getattr(sys, "monitoring", None)
_TOOL = 3  # a number that no debugger or profiler has
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Counts:
    """In how many of the ``functions`` of a package each line of the analysis ran, and each entry was used."""

    package: str
    functions: int
    lines: Counter[str]
    entries: Counter[str]


@dataclass(slots=True)
class _Recorder:
    """The parts that ran since the last function, and the counts of all functions."""

    functions: int = 0
    lines: Counter[Place] = field(default_factory=Counter)
    entries: Counter[str] = field(default_factory=Counter)
    ran: set[tuple[CodeType, int]] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Report every line of the analysis from now on."""
        _MONITORING.use_tool_id(_TOOL, "fired")
        _MONITORING.register_callback(_TOOL, _MONITORING.events.LINE, self._line)
        for code in set(_codes()):
            _MONITORING.set_local_events(_TOOL, code, _MONITORING.events.LINE)

    def _line(self, code: CodeType, line: int) -> Any:
        self.ran.add((code, line))
        return _MONITORING.DISABLE

    def next_function(self) -> None:
        """Count what ran for a function, and begin with the next one."""
        self.functions += 1
        self.lines.update({(code.co_filename, line) for code, line in self.ran})
        self.entries.update(self.used)
        self.begin()

    def begin(self) -> None:
        """Forget what ran between two functions."""
        self.ran.clear()
        self.used.clear()
        _MONITORING.restart_events()


def _codes() -> Iterator[CodeType]:
    """All code of the cost analysis."""
    for module in walk_packages([str(FOLDER)], "rlm_core.cost."):
        for value in vars(import_module(module.name)).values():
            yield from _codes_of(value)


def _codes_of(value: Any) -> Iterator[CodeType]:
    if isinstance(value, type):
        for member in vars(value).values():
            yield from _codes_of(member)
        return
    value = getattr(value, "fget", None) or getattr(value, "__wrapped__", value)
    stack = [value.__code__] if isinstance(value, FunctionType) else []
    while stack:
        code = stack.pop()
        if Path(code.co_filename).is_relative_to(FOLDER):
            yield code
            stack += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _record_entries(recorder: _Recorder) -> None:
    """Let the tables of the library note the entries that are used."""
    entries = import_module("rlm_core.cost.library").ENTRIES
    used, look_up = recorder.used, entries._rule

    def noted(table: str, key: Any, statements: dict[Any, Any]) -> Any:
        if key in statements:
            statement = statements[key]
            used.add(f"{statement.file}:{statement.line} {table} {key if isinstance(key, str) else ' '.join(key)}")
        return look_up(table, key, statements)

    type(entries)._rule = staticmethod(noted)
    kinds: Any = import_module("rlm_core.cost.library.result_kinds")
    members = kinds._members

    class Members(dict[str, str]):
        """The members of an owner, which notes when one is found."""

        owner = ""

        def get(self, name: str, default: Any = None) -> Any:
            if name in self:
                used.add(f"{kinds.FILE.name} {self.owner}")
            return super().get(name, default)

    def noted_members(owner: str) -> Members:
        found = Members(members(owner))
        found.owner = owner
        return found

    kinds._members = noted_members


def count(limit: int, folder: Path) -> Counts:
    """The counts of about so many functions of a package."""
    recorder = _recorder()
    recorder.functions = 0
    recorder.lines.clear()
    recorder.entries.clear()
    analyser = Analyser()
    for path in _files(folder):
        if recorder.functions >= limit:
            break
        try:
            analyser.analyse(ParsedSource(path.read_bytes(), "python"), path)
        except (OSError, RlmError, RecursionError):
            continue
    lines = Counter(
        {f"{Path(name).relative_to(FOLDER)}:{line}": times for (name, line), times in recorder.lines.items()}
    )
    return Counts(folder.name, recorder.functions, lines, Counter(recorder.entries))


_RECORDERS: list[_Recorder] = []


def _recorder() -> _Recorder:
    """The recorder of this process, which is started with the first package."""
    if not _RECORDERS:
        recorder = _Recorder()
        recorder.start()
        _record_entries(recorder)
        unit_facts: Any = import_module("rlm_core.queries.unit_facts")
        original = unit_facts.analyse

        def analyse(*arguments: Any, **named: Any) -> Any:
            recorder.begin()
            try:
                return original(*arguments, **named)
            finally:
                recorder.next_function()

        unit_facts.analyse = analyse
        _RECORDERS.append(recorder)
    return _RECORDERS[0]


def _files(folder: Path) -> list[Path]:
    found = folder.rglob("*.py") if folder.is_dir() else [folder]
    kept = [
        path
        for path in found
        if _LEFT_OUT.isdisjoint(path.relative_to(folder).parts) and path.stat().st_size < _MOST_BYTES
    ]
    return sorted(kept, key=lambda path: _hash(str(path.relative_to(folder))))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def is_held_out(package: str) -> bool:
    """Return whether a package confirms decisions instead of being decided on: two in five do."""
    return _hash(package)[0] % 5 < 2


@dataclass(frozen=True, slots=True)
class Part:
    """The functions of some packages, and in how many of them each line and entry was needed."""

    functions: int
    lines: Counter[str]
    entries: Counter[str]

    def share(self, times: int) -> float:
        """The share of the functions."""
        return times / max(self.functions, 1)


def parts(counted: Iterable[Counts]) -> tuple[Part, Part]:
    """The packages to decide on, and those that confirm it."""
    sums = ([0, Counter[str](), Counter[str]()], [0, Counter[str](), Counter[str]()])
    for counts in counted:
        total: Any = sums[is_held_out(counts.package)]
        total[0] += counts.functions
        total[1].update(counts.lines)
        total[2].update(counts.entries)
    first, second = (Part(*total) for total in sums)  # type: ignore[arg-type]
    return first, second


def report(counted: Sequence[Counts], source: Path, below: float) -> Iterator[str]:
    """The lines that say what few functions need."""
    both = parts(counted)
    yield f"{both[0].functions} functions to decide on, {both[1].functions} held out"
    rare: list[tuple[int, str]] = []
    for path in sorted(source.rglob("*.py")):
        name, text = str(path.relative_to(source)), path.read_text(encoding="utf-8")
        for label, numbers in _blocks(ast.parse(text)):
            times = [max((part.lines[f"{name}:{number}"] for number in numbers), default=0) for part in both]
            shares = [part.share(most) for part, most in zip(both, times, strict=True)]
            if max(shares) < below:
                span = f"{name}:{numbers[0]}-{numbers[-1]} {label}"
                rare.append((len(numbers), f"{span}  {times[0]} {times[1]}  {shares[0]:.3%} {shares[1]:.3%}"))
    for size, line in sorted(rare, reverse=True):
        yield f"{size:4} {line}"


def _blocks(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, range]]:
    """Functions and the suites of statements in them, the inner ones too, with the lines of their bodies."""
    for node in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{inside}.{node.name}".lstrip(".")
        for suite in ("body", "orelse", "finalbody"):
            statements = getattr(node, suite, None)
            if isinstance(statements, list) and statements and not isinstance(node, ast.ClassDef):
                first = statements[0].lineno
                yield f"{name} {type(node).__name__}", range(first, (statements[-1].end_lineno or first) + 1)
        yield from _blocks(node, name)


def _entries(counted: Sequence[Counts], below: float) -> Iterator[str]:
    """The lines that say which entries of the tables few functions need."""
    both = parts(counted)
    entries = import_module("rlm_core.cost.library").ENTRIES
    tables = {
        "function": entries.functions, "method": entries.methods,
        "operator": entries.operators, "attribute": entries.attributes,
    }  # fmt: skip
    for table, statements in tables.items():
        for key, statement in statements.items():
            text = f"{statement.file}:{statement.line} {table} {key if isinstance(key, str) else ' '.join(key)}"
            times = [part.entries[text] for part in both]
            if max(part.share(most) for part, most in zip(both, times, strict=True)) < below:
                yield f"{text}  {times[0]} {times[1]}"
    for owner in import_module("rlm_core.cost.library.result_kinds")._lines():
        times = [part.entries[f"result_kinds.txt {owner}"] for part in both]
        if max(part.share(most) for part, most in zip(both, times, strict=True)) < below:
            yield f"result_kinds.txt {owner}  {times[0]} {times[1]}"


def read(path: Path) -> list[Counts]:
    """The counts that ``count`` wrote."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Counts(row["package"], row["functions"], Counter(row["lines"]), Counter(row["entries"])) for row in rows]


def main(arguments: Sequence[str] | None = None) -> None:
    """Count or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    counting = commands.add_parser("count")
    counting.add_argument("folders", nargs="+", type=Path)
    counting.add_argument("--out", required=True, type=Path)
    counting.add_argument("--functions", type=int, default=400, help="about how many of each package")
    counting.add_argument("--processes", type=int, default=1)
    reporting = commands.add_parser("report")
    reporting.add_argument("counts", type=Path)
    reporting.add_argument("--below", type=float, default=0.001)
    reporting.add_argument("--source", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    if options.command == "report":
        counted = read(options.counts)
        print("\n".join([*report(counted, options.source, options.below), *_entries(counted, options.below)]))
        return
    with ProcessPoolExecutor(options.processes) as pool, options.out.open("a", encoding="utf-8") as out:
        for counts in pool.map(partial(count, options.functions), options.folders):
            row = {
                "package": counts.package, "functions": counts.functions, "lines": counts.lines,
                "entries": counts.entries,
            }  # fmt: skip
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(counts.package, counts.functions, flush=True)


if __name__ == "__main__":
    main()
