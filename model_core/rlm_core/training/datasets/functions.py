"""Function labels + pinned wheels -> rows of basis ``call``, and the call graphs of packages.

The text is the function's source as the measurement's hash confirms it. Callees, work facts and calls are those that
``rlm-lsp predict`` finds for the function in the unpacked wheel. Some packages are used for tests only; elsewhere the
module decides the split. Generators and coroutines are measured per resume and left out.

Call graphs are for training how costs of callees propagate. They have one row per function: those with labels, and
those that they call. Edges refer to rows by id.
"""

from __future__ import annotations

import hashlib
import inspect
import tokenize
import zipfile
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from rlm_core.cost.analysis import work_facts
from rlm_core.cost.scope import ModuleScope
from rlm_core.errors import SourceError
from rlm_core.folders import ScratchFolder
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.file_units import file_units
from rlm_core.source.call_graph import CallGraph, Resolved, ResolvedCalls
from rlm_core.source.function_names import FunctionNames
from rlm_core.source.module_index import ModuleIndex, index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText, Unit

from .builder import Progress, RowBuilder, read_labels
from .cache import find_wheel, open_wheel, read_member
from .schema import FORMAT, SITE, size_columns, write_calls, write_facts
from .splits import TEST_PACKAGES, split_of

MIN_CALLS = 5
LATENCY_FLOOR_SECONDS = 5e-8  # 0.05 µs: below it the profiler's own correction is larger than the call
DEVICE = "x86-64"
RUNTIME = {"runtime": "cpython-3.12"}

LABEL_FIELDS = frozenset(
    {"package", "version", "module", "qualname", "file", "firstlineno", "source_sha1", "generator"}
    | {"calls", "latency_ok", "latency_us", "mem_calls", "peak_bytes"}
)


PackageRows = tuple[list[dict[str, Any]], list[tuple[str, str]]]  # rows; reasons and names of what was left out
CALL_GRAPH_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("family", pa.string()),
        ("group", pa.string()),
        ("split", pa.string()),
        ("text", pa.string()),
        ("callees", pa.list_(pa.struct([("text", pa.string()), ("level", pa.int8())]))),
        ("work", pa.string()),
        ("latency", pa.float64()),
        ("memory", pa.float64()),
        ("sites", pa.list_(SITE)),
        ("outside", pa.int32()),
        ("unresolved", pa.int32()),
    ],
    metadata={"format": FORMAT},
)


class PackageBuilder(RowBuilder):
    """Rows of labelled functions, read package by package from wheels in a source cache."""

    unit_column = "source"  # equal in all rows of a unit

    def __init__(
        self,
        labels: Path,
        cache: Path,
        split: str = "auto",
        *,
        download: bool = True,
        workers: int = 2,
        fields: Collection[str] = LABEL_FIELDS,
    ) -> None:
        super().__init__(split)
        self._labels = read_labels(labels, fields, "function")
        self._cache, self._download, self._workers = cache, download, workers

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, package by package, in the order of the label file."""
        packages: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for label in self._labels:
            packages[label["package"], label["version"]].append(label)
        wheels = {key: self._find(labels, *key) for key, labels in packages.items()}
        done = 0
        with ProcessPoolExecutor(self._workers) as pool:
            futures = {key: pool.submit(self._reader(), wheels[key], packages[key]) for key in packages}
            for key, future in futures.items():
                rows, left_out = future.result()
                for reason, name in left_out:
                    self._leave_out(reason, name)
                self._rows += len(rows)
                self._units += len({row[self.unit_column] for row in rows})
                yield from rows
                done += len(packages[key])
                progress(done, len(self._labels))

    def _find(self, labels: list[dict[str, Any]], package: str, version: str) -> Path | None:
        """The archive of a package in the source cache."""
        return find_wheel(self._cache, package, version, download=self._download)

    def _reader(self) -> Callable[[Path | None, list[dict[str, Any]]], PackageRows]:
        """Reads a package's wheel (None: not found) and labels, in another process."""
        raise NotImplementedError


class FunctionBuilder(PackageBuilder):
    """Rows of functions of packages."""

    def _reader(self) -> Callable[[Path | None, list[dict[str, Any]]], PackageRows]:
        return partial(labelled_rows, row_of=_FunctionRows(self._split))


class LabelledRows(Protocol):
    """How the rows of a labelled function are made."""

    def values(self, label: dict[str, Any]) -> dict[str, Any] | str:
        """The measured values of a label, by metric; the reason where it has none that can be used."""
        ...

    def rows(self, label: dict[str, Any], text: str, code: CodeText, values: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows of a function: ``text`` is its source as it was measured, ``code`` is what the model reads."""
        ...


def labelled_rows(
    wheel: Path | None, labels: list[dict[str, Any]], row_of: LabelledRows, *, units_only: bool = False
) -> PackageRows:
    """The rows of a package's labels, read from its wheel (None: not found); ``units_only`` leaves out lambdas."""
    if wheel is None:
        return [], [("wheel not found", f"{labels[0]['package']}=={labels[0]['version']}")] * len(labels)
    rows: list[dict[str, Any]] = []
    left_out: list[tuple[str, str]] = []
    usable: dict[int, dict[str, Any]] = {}
    for place, label in enumerate(labels):
        values = row_of.values(label)
        if isinstance(values, str):
            left_out.append((values, name_of(label)))
        else:
            usable[place] = values
    read = read_functions(wheel, [labels[place] for place in usable], units_only=units_only)
    for (label, found), values in zip(read, usable.values(), strict=True):
        if found is None:
            left_out.append(("source hash differs or file absent", name_of(label)))
        else:
            rows += row_of.rows(label, *found, values)
    return rows, left_out


def read_functions(
    archive: Path, labels: Iterable[dict[str, Any]], *, units_only: bool = False
) -> Iterator[tuple[dict[str, Any], tuple[str, CodeText] | None]]:
    """The labels of a package, each with its function's source as it was measured and what the model reads of it.

    None stands for a source that is not in the archive, with ``units_only`` also for a lambda, which is not a unit.
    """
    with open_wheel(archive) as file, ScratchFolder() as folder:
        sources = WheelSources(file)
        package = UnpackedPackage(sources, folder)
        for label in labels:
            text, unit, _ = sources.function(label)
            if text is None or (units_only and unit is None):
                yield label, None
            elif unit is None:
                yield label, (text, CodeText(text, "python", "call"))
            else:
                yield label, (text, package.code(label["file"], unit))


def name_of(label: dict[str, Any]) -> str:
    """Package, module and qualified name of a labelled function."""
    return f"{label['package']}:{label['module']}:{label['qualname']}"


def source_of(label: dict[str, Any]) -> str:
    """The column ``source`` of a labelled function."""
    return f"{label['package']}=={label['version']}:{label['file']}:{label['firstlineno']}"


@dataclass(frozen=True, slots=True)
class _FunctionRows:
    """Rows of basis ``call``, one for each metric."""

    split: str

    def values(self, label: dict[str, Any]) -> dict[str, float] | str:
        if label["generator"]:
            return "generator or coroutine"
        return values_of(label) or f"fewer than {MIN_CALLS} good calls"

    def rows(self, label: dict[str, Any], text: str, code: CodeText, values: dict[str, Any]) -> list[dict[str, Any]]:
        group = f"{label['package']}/{label['module']}"
        test_only = label["package"] in TEST_PACKAGES or self.split != "auto"
        auto = "test" if test_only else split_of(group)
        return [
            {
                "id": f"functions/{name_of(label)}:{label['firstlineno']}/{metric}",
                "text": text,
                "callees": [{"text": callee.text, "level": callee.depth} for callee in code.callees],
                "language": "python",
                "basis": "call",
                "metric": metric,
                "device": DEVICE,
                "workload": RUNTIME,
                "value": value,
                "group": group,
                "family": label["package"],
                "held_out": "package" if test_only else "module",
                "split": auto if self.split == "auto" else self.split,
                "work": write_facts(code.work),
                "calls": write_calls(code.calls),
                "source": source_of(label),
            }
            | size_columns(label, metric)
            for metric, value in values.items()
        ]


def values_of(label: dict[str, Any]) -> dict[str, float]:
    """The medians of a label by metric, in SI units; only those with enough good calls."""
    values: dict[str, float] = {}
    if label["latency_ok"] and label["latency_us"] and label["calls"] >= MIN_CALLS:
        values["latency"] = max(label["latency_us"]["p50"] * 1e-6, LATENCY_FLOOR_SECONDS)
    if label["peak_bytes"] and (label["mem_calls"] or 0) >= MIN_CALLS:
        values["memory"] = max(float(label["peak_bytes"]["p50"]), 0.0)
    return values


class WheelSources:
    """Python files of one wheel, read and indexed on first use."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        self._indices: dict[str, ModuleIndex] = {}
        self._lines: dict[str, list[str]] = {}

    def paths(self, top: str) -> list[str]:
        """The Python files of a top-level package or module."""
        return sorted(
            path for path in self._names if path.endswith(".py") and (path.startswith(f"{top}/") or path == f"{top}.py")
        )

    def read(self, path: str) -> bytes:
        """The bytes of a file; none of one that is too large or damaged."""
        return read_member(self._archive, path) or b""

    def load(self, dotted: str) -> ModuleIndex | None:
        """The index of a module; None where the wheel has none."""
        stem = dotted.replace(".", "/")
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path in self._names:
                return self.index(path)
        return None

    def index(self, path: str) -> ModuleIndex:
        """The index of a file."""
        if path not in self._indices:
            dotted = path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
            source = self.read(path)
            self._indices[path] = index_module(
                ParsedSource(source, "python"), dotted, is_package=path.endswith("__init__.py")
            )
        return self._indices[path]

    def _source_lines(self, path: str) -> list[str]:
        if path not in self._lines:
            source = self.read(path)
            try:
                encoding, _ = tokenize.detect_encoding(BytesIO(source).readline)
                text = source.decode(encoding, errors="replace")
            except (SyntaxError, LookupError, UnicodeError):
                text = ""  # Python could not have run it
            # Universal newlines, as inspect and linecache read a file.
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            self._lines[path] = text.splitlines(keepends=True)
        return self._lines[path]

    def function(self, label: dict[str, Any]) -> tuple[str | None, Unit | None, ModuleIndex | None]:
        """The labelled function's text (None unless its hash agrees), its unit and its module's index."""
        path, line = label["file"], label["firstlineno"]
        if path not in self._names:
            return None, None, None
        index = self.index(path)
        unit = index.units.get(label["qualname"])
        if unit is not None and unit.span.start_line + 1 != line:
            unit = None
        lines = self._source_lines(path)
        if unit is not None:
            text = "".join(lines[line - 1 : unit.span.end_line + 1])
            if hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest() == label["source_sha1"]:
                return text, unit, index
        try:
            text = "".join(inspect.getblock(lines[line - 1 :]))
        except (tokenize.TokenError, SyntaxError, IndexError):
            return None, unit, index
        agrees = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest() == label["source_sha1"]
        return (text if agrees else None), unit, index


class UnpackedPackage:
    """The Python files of a wheel in a folder, analysed as ``rlm-lsp predict`` analyses files."""

    def __init__(self, sources: WheelSources, folder: Path) -> None:
        self._sources, self._folder = sources, folder
        self._analyser = Analyser()
        self._unpacked: set[str] = set()
        self._codes: dict[str, dict[tuple[str, int], CodeText]] = {}

    def code(self, path: str, unit: Unit) -> CodeText:
        """Return the text that the model reads of a function; its text alone where the file cannot be analysed."""
        if path not in self._codes:
            self._unpack(path.partition("/")[0].removesuffix(".py"))
            self._codes[path] = self._analysed(path)
        known = self._codes[path].get((unit.qualname, unit.span.start_line))
        return known if known is not None else CodeText(unit.text, "python", "call")

    def _unpack(self, top: str) -> None:
        for path in self._sources.paths(top) if top not in self._unpacked else ():
            if ".." not in Path(path).parts:
                target = self._folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._sources.read(path))
        self._unpacked.add(top)

    def _analysed(self, path: str) -> dict[tuple[str, int], CodeText]:
        try:
            [text] = file_units(self._analyser, self._folder / path)
        except SourceError:
            return {}
        return {(entry.unit.qualname, entry.unit.span.start_line): entry.code for entry in text.units}


class CallGraphBuilder(PackageBuilder):
    """Functions of packages with their call sites."""

    unit_column = "id"

    def _reader(self) -> Callable[[Path | None, list[dict[str, Any]]], PackageRows]:
        return _graph_rows


def _graph_rows(wheel: Path | None, labels: list[dict[str, Any]]) -> PackageRows:
    if wheel is None:
        return [], [("wheel not found", f"{labels[0]['package']}=={labels[0]['version']}")] * len(labels)
    package = labels[0]["package"]
    rows: dict[str, dict[str, Any]] = {}
    left_out: list[tuple[str, str]] = []
    with open_wheel(wheel) as archive:
        sources = WheelSources(archive)
        graphs = _Graphs(sources)
        waiting: deque[Resolved] = deque()
        for label in labels:
            values = values_of(label) if not label["generator"] else {}
            if not values:
                left_out.append(("generator, coroutine or too few good calls", name_of(label)))
                continue
            text, unit, index = sources.function(label)
            if text is None or unit is None or index is None:
                left_out.append(("source hash differs or file absent", name_of(label)))
                continue
            group = f"{package}/{label['module']}"
            split = "test" if package in TEST_PACKAGES else split_of(group)
            row, sites = graphs.row(package, index, unit)
            rows[row["id"]] = row | {"group": group, "split": split, **values}
            waiting.extend(candidate for site in sites.sites for candidate in site.candidates)
        # What labelled functions call has no label, and its own calls are not looked up.
        for index, unit in waiting:
            if _id(package, index, unit) not in rows:
                row, _ = graphs.row(package, index, unit)
                rows[row["id"]] = row | {"split": "none", "sites": []}
    return list(rows.values()), left_out


def _id(package: str, index: ModuleIndex, unit: Unit) -> str:
    return f"{package}:{index.dotted}:{unit.qualname}"


class _Graphs:
    """The call graphs of a wheel's top-level packages."""

    def __init__(self, sources: WheelSources) -> None:
        self._sources = sources
        self._graphs: dict[str, CallGraph] = {}

    def row(self, package: str, index: ModuleIndex, unit: Unit) -> tuple[dict[str, Any], ResolvedCalls]:
        graph = self._of(index.dotted.partition(".")[0])
        sites = graph.call_sites(index, unit)
        row = {
            "id": _id(package, index, unit),
            "family": package,
            "text": unit.text,
            "callees": [{"text": callee.text, "level": callee.depth} for callee in graph.callees(index, unit)],
            "work": write_facts(work_facts(unit.text, ModuleScope(index, graph), unit.qualname)),
            "sites": [
                {
                    "candidates": [_id(package, *candidate) for candidate in site.candidates],
                    "loops": site.loops,
                    "branches": site.branches,
                    "times": site.times,
                }
                for site in sites.sites
            ],
            "outside": sites.outside,
            "unresolved": sites.unresolved,
        }
        return row, sites

    def _of(self, top: str) -> CallGraph:
        if top not in self._graphs:
            names: FunctionNames[str] = FunctionNames()
            for path in self._sources.paths(top):
                names.put(path, self._sources.read(path))

            def named(name: str) -> list[ModuleIndex] | None:
                files = names.files(name)
                return [self._sources.index(path) for path in files] if files is not None else None

            self._graphs[top] = CallGraph(self._sources.load, named)
        return self._graphs[top]
