"""Results of pytest-benchmark and of CodSpeed's pytest plug-in (JSON) -> the latency of the functions that they time.

A result names a test; which function the test times is in its text: ``benchmark(shapes.parse, text)`` times ``parse``,
and a test with the mark ``benchmark`` is timed itself. Other benchmarks, such as those of a lambda, time no function
that the project has.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec

from rlm_core.cost.domain.syntax import parsed_function
from rlm_core.errors import DataError, TooComplexError
from rlm_core.files import read_regular
from rlm_core.queries.package_files import package_of, path_of
from rlm_core.source.module_index import ModuleIndex, index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES

from .timings import FunctionTiming, ToolResult

_FIXTURE, _PEDANTIC, _MARK = "benchmark", "pedantic", "benchmark"
_MOST_IMPORTS = 8  # modules through which a name is imported
_NO_FUNCTION = "what the benchmark times is not one function of the project"
_NO_TEST = "the benchmark's test is not below the working directory, or has another name now"

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Nanos = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=10**12)]


class _Spread(msgspec.Struct):
    """Quantiles of the rounds of a benchmark; a round is the mean of its iterations."""

    min: _Seconds
    q1: _Seconds
    median: _Seconds
    q3: _Seconds
    max: _Seconds
    rounds: _Count
    iterations: _Count = 1

    def quantiles(self) -> tuple[float, float, float]:
        """Return the 10 %, 50 % and 90 % quantile, the outer two between the extremes and the quartiles."""
        low = self.q1 - 0.6 * (self.q1 - self.min)
        high = self.q3 + 0.6 * (self.max - self.q3)
        return min(low, self.median), self.median, max(high, self.median)


class _Benchmark(msgspec.Struct):
    fullname: str
    stats: _Spread


class _Cpu(msgspec.Struct):
    brand_raw: str = ""


class _Machine(msgspec.Struct):
    python_implementation: str = "CPython"
    python_version: str = ""
    cpu: _Cpu = msgspec.field(default_factory=_Cpu)


class _PytestBenchmark(msgspec.Struct):
    """A file that ``pytest --benchmark-json`` wrote."""

    benchmarks: list[_Benchmark]
    datetime: str
    machine_info: _Machine


class _Nanoseconds(msgspec.Struct):
    min_ns: _Nanos
    q1_ns: _Nanos
    median_ns: _Nanos
    q3_ns: _Nanos
    max_ns: _Nanos
    rounds: _Count
    iter_per_round: _Count

    def spread(self) -> _Spread:
        return _Spread(
            min=self.min_ns * 1e-9,
            q1=self.q1_ns * 1e-9,
            median=self.median_ns * 1e-9,
            q3=self.q3_ns * 1e-9,
            max=self.max_ns * 1e-9,
            rounds=self.rounds,
            iterations=self.iter_per_round,
        )


class _CodSpeedBenchmark(msgspec.Struct):
    uri: str
    stats: _Nanoseconds


class _Sysconfig(msgspec.Struct):
    py_version_short: str = ""


class _Python(msgspec.Struct):
    sysconfig: _Sysconfig = msgspec.field(default_factory=_Sysconfig)


class _Creator(msgspec.Struct):
    name: str


class _CodSpeed(msgspec.Struct):
    """A file that ``pytest --codspeed --codspeed-mode walltime`` wrote; other modes write none."""

    creator: _Creator
    benchmarks: list[_CodSpeedBenchmark]
    python: _Python = msgspec.field(default_factory=_Python)


def is_benchmark_file(content: bytes) -> bool:
    """Return whether a file's content is one JSON object with benchmarks, as far as its start shows."""
    return content[:1] == b"{" and b'"benchmarks"' in content


def read_benchmarks(path: Path, content: bytes, root: Path, measured_at: float) -> ToolResult:
    """Read the ``content`` of the file ``path``, written at ``measured_at``, of a project in the folder ``root``.

    Raises:
        DataError: it is not a result of pytest-benchmark or of CodSpeed's plug-in.
    """
    try:
        found = msgspec.json.decode(content, type=_PytestBenchmark)
        measured_at = datetime.fromisoformat(found.datetime).replace(tzinfo=UTC).timestamp()
    except (msgspec.MsgspecError, ValueError):
        pass
    else:
        machine = found.machine_info
        version = ".".join(machine.python_version.split(".")[:2])
        runtime = f"{machine.python_implementation.lower()}-{version}" if version else ""
        timings, left_out = _timings(((one.fullname, one.stats) for one in found.benchmarks), root)
        return ToolResult("pytest-benchmark", timings, measured_at, machine.cpu.brand_raw, runtime, left_out)
    try:
        other = msgspec.json.decode(content, type=_CodSpeed)
    except msgspec.MsgspecError as error:
        raise DataError(
            f"{path}: neither a result of pytest --benchmark-json nor of CodSpeed's walltime mode ({error})"
        ) from None
    version = other.python.sysconfig.py_version_short
    timings, left_out = _timings(((one.uri, one.stats.spread()) for one in other.benchmarks), root)
    runtime = f"cpython-{version}" if version else ""
    return ToolResult("CodSpeed", timings, measured_at, "", runtime, left_out)


def _timings(
    benchmarks: Iterable[tuple[str, _Spread]], root: Path
) -> tuple[tuple[FunctionTiming, ...], dict[str, int]]:
    """Find the functions of benchmarks; several benchmarks of one function are one timing, which spans them."""
    modules = _Modules(root)
    spreads: dict[tuple[Path, str], list[_Spread]] = {}
    left_out: Counter[str] = Counter()
    for name, spread in benchmarks:
        place, _, test = name.partition("::")
        path = (root / place).resolve()
        found = modules.timed_function(path, test.partition("[")[0].replace("::", "."))
        if isinstance(found, str):
            left_out[found] += 1
        else:
            spreads.setdefault(found, []).append(spread)
    timings = []
    for (path, qualname), of_function in spreads.items():
        quantiles = [spread.quantiles() for spread in of_function]
        low, high = min(low for low, _, _ in quantiles), max(high for _, _, high in quantiles)
        middle = median(middle for _, middle, _ in quantiles)
        calls = sum(spread.rounds * spread.iterations for spread in of_function)
        timings.append(FunctionTiming(path, qualname, 0, middle, low, high, calls, len(of_function)))
    return tuple(timings), dict(left_out)


class _Modules:
    """The modules of a project, to find which function a benchmark times."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._indices: dict[Path, ModuleIndex | None] = {}

    def timed_function(self, path: Path, test: str) -> tuple[Path, str] | str:
        """The file and qualified name of the function that a test of a file times, or why there is none."""
        index = self._index(path)
        unit = index.units.get(test) if index is not None else None
        if index is None or unit is None:
            return _NO_TEST
        node = parsed_function(unit.text)
        if not isinstance(node, ast.FunctionDef):
            return _NO_FUNCTION
        targets = list(_targets(node))
        if not targets and any(_is_mark(decorator) for decorator in node.decorator_list):
            return path, test
        names = _dotted(targets[0]) if len(targets) == 1 else None
        found = self._follow(index, path, names) if names else None
        return found or _NO_FUNCTION

    def _follow(self, index: ModuleIndex, path: Path, names: list[str]) -> tuple[Path, str] | None:
        """Follow a dotted name through imports to a function of the project."""
        for _ in range(_MOST_IMPORTS):
            if ".".join(names) in index.units:
                return path, ".".join(names)
            # ``import a.b`` is an import of that name.
            prefixes = (end for end in range(len(names), 0, -1) if ".".join(names[:end]) in index.imports)
            if (end := next(prefixes, 0)) == 0:
                return None
            module, member = index.imports[".".join(names[:end])]
            names = [*([member] if member is not None else []), *names[end:]]
            target = self._module(module, path)
            # An imported name may be a module.
            while names and (inner := self._module(f"{module}.{names[0]}", path)) is not None:
                module, target, names = f"{module}.{names[0]}", inner, names[1:]
            following = self._index(target) if target is not None else None
            if target is None or following is None or not names:
                return None
            index, path = following, target
        return None

    def _module(self, dotted: str, importer: Path) -> Path | None:
        """The file of a module below the project: next to the importing package, in the project's folder or ``src``."""
        folders = (package_of(importer)[0], self._root, self._root / "src")
        found = (path_of(folder, dotted) for folder in folders)
        return next((path for path in found if path is not None and path.is_relative_to(self._root)), None)

    def _index(self, path: Path) -> ModuleIndex | None:
        if path not in self._indices:
            self._indices[path] = self._read(path)
        return self._indices[path]

    def _read(self, path: Path) -> ModuleIndex | None:
        if path.suffix != ".py" or not path.is_relative_to(self._root):
            return None
        try:
            parsed = ParsedSource(read_regular(path, MAX_FILE_BYTES, self._root), "python")
            return index_module(parsed, package_of(path)[1], is_package=path.name == "__init__.py")
        except (OSError, TooComplexError):
            return None


def _targets(test: ast.FunctionDef) -> Iterator[ast.expr]:
    """The functions that a test gives to its fixture."""
    if _FIXTURE not in {argument.arg for argument in (*test.args.posonlyargs, *test.args.args, *test.args.kwonlyargs)}:
        return
    for node in ast.walk(test):
        if not isinstance(node, ast.Call):
            continue
        called = _dotted(node.func)
        if called in ([_FIXTURE], [_FIXTURE, _PEDANTIC]):
            named = [keyword.value for keyword in node.keywords if keyword.arg in ("target", "function_to_benchmark")]
            yield from node.args[:1] or named[:1]


def _is_mark(decorator: ast.expr) -> bool:
    names = _dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    return names is not None and names[-2:] == ["mark", _MARK]


def _dotted(node: ast.expr) -> list[str] | None:
    """The parts of a dotted name, such as ``pytest.mark.benchmark``."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else None
