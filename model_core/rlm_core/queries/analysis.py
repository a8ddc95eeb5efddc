"""A source file, or the cells of a notebook -> units with the text, callees and sizes that the model reads.

The command line and the server both use this module, so their numbers are equal. Callees outside the file are looked
up in the file's package on disk; ``overlay`` gives the texts that take precedence over the disk, such as those of open
editors, already parsed where they are analysed too. Calls are resolved over the whole package: its files are scanned
for names once, and a file is parsed when a call may run one of its functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache

from rlm_core.errors import TooComplexError
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.incremental import PythonFile, PythonReader
from rlm_core.source.module_index import ModuleIndex, index_module, merged
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.solutions import judge_of
from rlm_core.source.units import accessor_of, cell_source, find_units
from rlm_core.source.work.analysis import Analysis, analyse
from rlm_core.source.work.outline.facts import outline_facts
from rlm_core.source.work.scope import ModuleScope
from rlm_core.types import (
    Anchor,
    CalledFunction,
    CodeText,
    FoundCost,
    KnownCost,
    MeasuredFunctions,
    Unit,
    WorkFacts,
)

from .called_functions import CallReader, FileMeasurements, PackageView, sample_of_package
from .package_files import Overlay, PackageFiles, context_of, package_of, path_of

if TYPE_CHECKING:
    from .kernel_sizes import UnitSizes

# What was found of units, and what follows from it, see :meth:`Analyser._unchanged`.
_Unchanged = tuple[tuple[FoundCost, ...], tuple[Anchor, ...], tuple[KnownCost, ...]]
DefaultSizes = Callable[[Path | None], Mapping[str, str]]
_MEASURED_FILES = 512  # around which measurements are remembered
_ANALYSED_UNITS = 2_048  # more than the units of a file of 30,000 lines
_FOUND_UNITS = 8_192  # all units of a file are looked up after each edit
_MOST_UNITS = 5_000  # of a Python file; each takes about a millisecond
# In other languages than Python only whole programs are units, and judges accept at most 64 KiB.
_MOST_PROGRAM_BYTES = 256 * 1024
_MOST_TEXT = 256 * 1024  # characters of a function, kernel or module; what is read of it takes seconds then
_MEASURED_FOLDERS = 16
_READ_FILES = 8  # whose units are remembered as the model reads them


@dataclass(frozen=True, slots=True)
class AnalysedUnit:
    """A unit of a file and what the predictor reads about it; ``sizes`` of a kernel are in ``code`` too."""

    unit: Unit
    code: CodeText
    sizes: UnitSizes | None = None


class OutdatedError(Exception):
    """The text that is being analysed is no longer of interest."""


class UrgentLines(Protocol):
    """Lines of a text whose units a request waits for while all of it is analysed."""

    def take(self) -> range | None:
        """The lines of the next request, 0-based; None where none waits."""
        ...

    def answer(self, units: list[AnalysedUnit]) -> None:
        """Take the units that are analysed by now, those of the lines among them, in the order of the text."""
        ...


class MeasuredUnits(Protocol):
    """What was measured of units, see :class:`rlm_core.measurement.known.KnownMeasurements`."""

    def prepare(self, qualnames: Iterable[str]) -> None:
        """Units with these names will be looked up."""
        ...

    def find(self, unit: Unit, path: Path | None, *, is_shared: bool = False) -> tuple[FoundCost, ...]:
        """What was measured of a unit of a file: the best match for each metric.

        ``is_shared``: another unit of the file has the same name and accessor, so that only the same text is a match.
        """
        ...

    def functions_in(self, folder: Path) -> Mapping[Path, Sequence[CalledFunction]]:
        """The measured functions below a folder by file, as they were when they were measured."""
        ...


@dataclass(frozen=True, slots=True)
class _Work:
    """The facts of a unit, and the functions that they depend on: module, qualified name and text."""

    facts: WorkFacts
    dependencies: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the model reads of a unit, and the texts of the functions that it depends on."""

    code: CodeText
    depends_on: frozenset[str]


@dataclass(frozen=True, slots=True)
class _FileReadings:
    """What the model reads of the units of a version of a file, and what that depends on but texts of functions.

    ``kept`` are the units whose readings are those of an earlier version, see :meth:`Analyser.analyse`.
    """

    index: ModuleIndex
    context: int
    structure: int
    around: FileMeasurements
    loaded: dict[tuple[Path | None, str], ModuleIndex | None]
    units: dict[tuple[str, str, str], _Reading]
    kept: frozenset[tuple[str, str, str]]


class Analyser:
    """Analyses files and remembers the indices of the files that they import. Not thread-safe: use one per thread.

    ``default_sizes`` gives the sizes of a file's kernels where the file names none, see
    :func:`rlm_core.queries.kernel_sizes.sizes_of`; ``measured`` looks up what was measured of units.
    """

    def __init__(
        self,
        overlay: Overlay | None = None,
        default_sizes: DefaultSizes | None = None,
        measured: MeasuredUnits | None = None,
    ) -> None:
        self._default_sizes: DefaultSizes = default_sizes or (lambda path: {})
        self._files = PackageFiles(overlay or (lambda path: None), self._prepare)
        self._measured = measured
        self._of_found: dict[int, _Unchanged] = {}
        self._reader = PythonReader()
        self._cells: dict[bytes, PythonFile] = {}
        self._work: LRUCache[Hashable, _Work | None] = LRUCache(_ANALYSED_UNITS)
        self._readings: LRUCache[str, _FileReadings] = LRUCache(_READ_FILES)
        self._calls = CallReader(self._known_costs)
        self._of_package: LRUCache[Path, MeasuredFunctions] = LRUCache(_MEASURED_FILES)  # by file
        self._measured_in: LRUCache[Path, Mapping[Path, Sequence[CalledFunction]]] = LRUCache(_MEASURED_FOLDERS)

    def refresh(self) -> None:
        """Look at the files of packages on disk and at measurements again: some may be new, changed or gone."""
        self._readings.clear()
        self._of_package.clear()
        self._measured_in.clear()
        self._files.refresh()

    def forget(self, name: str) -> None:
        """Keep nothing of the versions of the text ``name``, which is no longer analysed."""
        self._readings.pop(name, None)
        self._reader.forget(name)

    def _prepare(self, index: ModuleIndex) -> None:
        if self._measured is not None:
            self._measured.prepare(index.units)

    def _known_costs(self, path: Path | None, unit: Unit) -> tuple[KnownCost, ...]:
        """What was measured of the present text of a function."""
        return self._unchanged(self._measured.find(unit, path))[1] if self._measured is not None else ()

    def _measured_around(self, path: Path) -> MeasuredFunctions:
        """What was measured in the other files of a file's package, or of its folder where there is no package."""
        if self._measured is None:
            return MeasuredFunctions()
        known = self._of_package.get(path)
        if known is None:
            root, dotted = package_of(path)
            package = root / dotted.partition(".")[0]
            is_package = (package / "__init__.py").is_file()
            folder = package if is_package else root
            if folder not in self._measured_in:
                self._measured_in[folder] = self._measured.functions_in(folder)
            others = (
                functions
                for file, functions in self._measured_in[folder].items()
                if file != path.resolve() and (is_package or file.parent == folder)
            )
            known = self._of_package[path] = sample_of_package(chain.from_iterable(others))
        return known

    def is_settled(self, name: str) -> bool:
        """Whether the last analysis of the text ``name`` read every unit as it is now."""
        last = self._readings.get(name)
        return last is None or not last.kept

    def analyse(
        self,
        parsed: ParsedSource,
        path: Path | None = None,
        name: str | None = None,
        is_outdated: Callable[[], bool] = lambda: False,
        *,
        provisional: bool = False,
        urgent: UrgentLines | None = None,
    ) -> list[AnalysedUnit]:
        """The units of a source text.

        ``path`` lets callees be found in the rest of its package, and may show that the text is a solution.

        ``name`` identifies the text across versions: after an edit only what changed is analysed. ``is_outdated`` is
        asked before each unit and each other file that is read. A ``provisional`` analysis reads only units whose own
        text has changed: those that call them keep what was read of them, until an analysis that is not provisional.
        ``urgent`` gets the units of a Python text that it waits for before all of them are analysed.

        Raises:
            OutdatedError: ``is_outdated`` says so.
            SourceError: the language is unknown.
            TooComplexError: the text is too long, has too many functions or takes too long to parse; a
                ``SourceError``.
        """
        path = path.absolute() if path is not None else None
        if parsed.language != "python":
            if len(parsed.source) > _MOST_PROGRAM_BYTES:
                raise TooComplexError(f"too complex to analyse: longer than {_MOST_PROGRAM_BYTES // 1024} KiB")
            units = find_units(parsed, path)
            outlined = [AnalysedUnit(unit, self._outlined(unit, path)) for unit in units]
            return _with_judge(outlined, parsed, path)
        root, dotted = package_of(path) if path is not None else (None, "")
        is_package = path is not None and path.name == "__init__.py"

        def before_reading() -> None:
            if is_outdated():
                raise OutdatedError

        self._files.start(before_reading)
        file = self._reader.read(parsed, dotted, is_package=is_package, name=name, path=path)
        _refuse_complex(file.units)
        names = self._files.names(root, dotted)
        if path is not None:
            self._files.note(path, dotted, parsed.source, file.index, names)

        def load(module: str) -> ModuleIndex | None:
            return file.index if module == dotted else self._files.load(root, dotted, module)

        def named(name: str) -> list[ModuleIndex] | None:
            modules = names.files(name)
            return [home for home in map(load, modules) if home is not None] if modules is not None else None

        view = PackageView(load, context_of, lambda module: path if module == dotted else path_of(root, module))
        scope = ModuleScope(file.index, CallGraph(load, named))
        read = self._analysed(
            parsed, file.units, path, scope, view, name, is_outdated, provisional=provisional, urgent=urgent
        )
        return _with_judge(read, parsed, path)

    def analyse_cells(self, sources: Sequence[bytes]) -> list[list[AnalysedUnit]]:
        """The units of the Python cells of a notebook, cell by cell; a function may call those of all cells.

        Each cell is analysed separately, so that a half-written one does not affect the others.

        Raises:
            TooComplexError: all cells together have too many functions, or one is too long or takes too long to parse.
        """
        cells = [cell_source(source) for source in sources]
        previous, self._cells = self._cells, {}
        for cell in cells:
            self._cells[cell.source] = previous.get(cell.source) or self._reader.read(cell)
        files = [self._cells[cell.source] for cell in cells]
        _refuse_complex([unit for file in files for unit in file.units])
        index, graph = merged(file.index for file in files), CallGraph()
        view = PackageView(graph.load, context_of, lambda module: None)
        return [
            self._analysed(cell, file.units, None, ModuleScope(index, graph), view)
            for cell, file in zip(cells, files, strict=True)
        ]

    def _analysed(
        self,
        parsed: ParsedSource,
        units: list[Unit],
        path: Path | None,
        scope: ModuleScope,
        view: PackageView,
        name: str | None = None,
        is_outdated: Callable[[], bool] = lambda: False,
        *,
        provisional: bool = False,
        urgent: UrgentLines | None = None,
    ) -> list[AnalysedUnit]:
        sizes = self._sizes(parsed, units, path) if any(unit.kind in ("kernel", "module") for unit in units) else {}
        context = view.context(scope.index)
        structure = self._files.structure(path)
        of_package = self._measured_around(path) if path is not None else MeasuredFunctions()
        around = self._calls.measurements(path, units, of_package)
        shared = _shared_names(units) if self._measured is not None else set()
        last = self._readings.get(name) if name is not None else None
        changed = self._changed_since(last, scope, context, structure, around) if last is not None else None
        readings: dict[tuple[str, str, str], _Reading] = {}
        kept: set[tuple[str, str, str]] = set()

        def read(unit: Unit, measured: tuple[Anchor, ...] = ()) -> _Reading:
            if is_outdated():
                raise OutdatedError
            work = self._work_of(unit, scope, context) if unit.kind in ("function", "program") else None
            is_function = unit.kind == "function"
            callees = scope.graph.callees(scope.index, unit) if is_function else ()
            calls = self._calls.calls(scope.graph, scope.index, unit, view, structure, around) if is_function else None
            texts = [callee.text for callee in callees]
            texts += [function.text for function in calls.functions()] if calls is not None else []
            texts += [text for _, _, text in work.dependencies] if work is not None else []
            facts = work.facts if work is not None else None
            workloads = workloads_of(unit)
            code = CodeText(unit.text, unit.language, unit.basis, callees, workloads, facts, measured, calls=calls)
            return _Reading(code, frozenset(texts))

        def workloads_of(unit: Unit) -> tuple[tuple[tuple[str, str], ...], ...]:
            of_unit = sizes.get(unit)
            return tuple(tuple(workload.items()) for workload in of_unit.workloads) if of_unit is not None else ()

        def read_earlier(text: str, unit: Unit) -> CodeText:
            unit = replace(unit, text=text)
            if unit.kind == "function" and unit.text not in scope.index.calls:
                _add_calls(scope.index, unit.text)
            return read(unit).code

        def code_of(unit: Unit) -> CodeText:
            is_shared = (unit.qualname, unit.text) in shared
            measured = self._anchors(unit, path, read_earlier, is_shared=is_shared)
            key = unit.text, unit.qualname, unit.kind
            reading = last.units.get(key) if last is not None else None
            if reading is None or reading.code.measured != measured or reading.code.workloads != workloads_of(unit):
                reading = read(unit, measured)
            elif last is None or changed is None or key in last.kept or not changed.isdisjoint(reading.depends_on):
                if provisional:
                    kept.add(key)
                else:
                    reading = read(unit, measured)
            readings[key] = reading
            return reading.code

        found: dict[int, AnalysedUnit] = {}  # by the place of the unit among all units

        def find(places: Iterable[int]) -> None:
            for place in places:
                if place not in found:
                    unit = units[place]
                    found[place] = AnalysedUnit(unit, code_of(unit), sizes.get(unit))

        for place in range(len(units)):
            if urgent is not None and (lines := urgent.take()) is not None:
                find(number for number, unit in enumerate(units) if _touches(unit, lines))
                urgent.answer(_with_judge([found[number] for number in sorted(found)], parsed, path))
            find([place])
        analysed = [found[place] for place in range(len(units))]
        if name is not None:
            loaded = dict(self._files.loaded)
            self._readings[name] = _FileReadings(
                scope.index, context, structure, around, loaded, readings, frozenset(kept)
            )
        return analysed

    def _changed_since(
        self, last: _FileReadings, scope: ModuleScope, context: int, structure: int, around: FileMeasurements
    ) -> set[str] | None:
        """The earlier texts of the file's functions that have changed; None where more than texts has."""
        if last.index.units.keys() != scope.index.units.keys() or last.around != around:
            return None
        if (last.index.dotted, last.context, last.structure) != (scope.index.dotted, context, structure):
            return None
        if any(scope.graph.load(module) is not index for (_, module), index in last.loaded.items()):
            return None
        now, before = scope.index.units, last.index.units
        return {unit.text for name, unit in before.items() if unit is not now[name] and unit.text != now[name].text}

    def _anchors(
        self,
        unit: Unit,
        path: Path | None,
        read_earlier: Callable[[str, Unit], CodeText],
        *,
        is_shared: bool = False,
    ) -> tuple[Anchor, ...]:
        """What was measured of a unit. Where it has changed since, the earlier text is read in the present context."""
        found = self._measured.find(unit, path, is_shared=is_shared) if self._measured is not None else ()
        if not found:
            return ()
        if all(before is None for _, before in found):
            return self._unchanged(found)[0]
        texts: dict[str, CodeText] = {}
        for _, before in found:
            if before is not None and before not in texts:
                # A text that is not known stands for itself.
                texts[before] = read_earlier(before, unit) if before else CodeText("", unit.language, unit.basis)
        return tuple([Anchor(cost, texts[before] if before is not None else None) for cost, before in found])

    def _unchanged(self, found: tuple[FoundCost, ...]) -> tuple[tuple[Anchor, ...], tuple[KnownCost, ...]]:
        """What was measured of present texts, of a unit itself and of a function that is called.

        Remembered by the identity of what was found, since all units of a file are looked up after each edit.
        """
        known = self._of_found.get(id(found))
        if known is None or known[0] is not found:
            costs = [cost for cost, before in found if before is None]
            calls = [cost for cost in costs if cost.kind == "function"]
            if len(self._of_found) >= _FOUND_UNITS:
                self._of_found.clear()
            known = self._of_found[id(found)] = (
                found,
                tuple([Anchor(cost) for cost in costs]),
                tuple([KnownCost(cost.metric, cost.median, cost.low, cost.high) for cost in calls]),
            )
        return known[1], known[2]

    def _outlined(self, unit: Unit, path: Path | None) -> CodeText:
        """What the predictor reads about a unit in another language than Python."""
        measured = self._anchors(unit, path, lambda text, unit: self._outline(text, unit, ()))
        return self._outline(unit.text, unit, measured)

    def _outline(self, text: str, unit: Unit, measured: tuple[Anchor, ...]) -> CodeText:
        if unit.kind != "program":
            return CodeText(text, unit.language, unit.basis, measured=measured)
        key = (text, unit.language)
        if key not in self._work:
            facts = outline_facts(text, unit.language)
            self._work[key] = _Work(facts) if facts is not None else None
        known = self._work[key]
        work = known.facts if known is not None else None
        return CodeText(text, unit.language, unit.basis, work=work, measured=measured)

    def _work_of(self, unit: Unit, scope: ModuleScope, context: int) -> _Work | None:
        """The work facts of a unit, analysed again when it, its context or a function that it calls has changed."""
        key = (unit.text, unit.qualname, unit.kind, context)
        known = self._work.get(key, _NOT_ANALYSED)
        if known is _NOT_ANALYSED or (known is not None and not _is_current(known, scope)):
            analysis = analyse(unit.text, scope, unit.qualname if unit.kind == "function" else "")
            if analysis is not None:
                known = _Work(analysis.facts, _dependencies(analysis))
            else:
                facts = outline_facts(unit.text, unit.language)
                known = _Work(facts) if facts is not None else None
            self._work[key] = known
        return known

    def _sizes(self, parsed: ParsedSource, units: list[Unit], path: Path | None) -> Mapping[Unit, UnitSizes]:
        # Imported for the first kernel or module: it imports numpy, which the server's start must not.
        from .kernel_sizes import sizes_of

        return sizes_of(parsed, units, self._default_sizes(path)).units


def _refuse_complex(units: Sequence[Unit]) -> None:
    """Refuse the units of a Python file, or of a notebook as a whole, that would take too long.

    Raises:
        TooComplexError: they would.
    """
    if len(units) > _MOST_UNITS:
        raise TooComplexError(f"too complex to analyse: more than {_MOST_UNITS} functions")
    if any(len(unit.text) > _MOST_TEXT for unit in units if unit.kind in ("function", "kernel", "module")):
        raise TooComplexError(
            f"too complex to analyse: a function, kernel or module of more than {_MOST_TEXT} characters"
        )


def _with_judge(units: list[AnalysedUnit], parsed: ParsedSource, path: Path | None) -> list[AnalysedUnit]:
    """The units with the judge of the file's programs."""
    if all(entry.unit.kind != "program" for entry in units):
        return units
    judge = judge_of(parsed, path)
    return [
        replace(entry, code=replace(entry.code, judge=judge)) if entry.unit.kind == "program" else entry
        for entry in units
    ]


def _touches(unit: Unit, lines: range) -> bool:
    return unit.header.start_line < lines.stop and lines.start <= unit.header.end_line


_NOT_ANALYSED = _Work(WorkFacts())


def _add_calls(index: ModuleIndex, text: str) -> None:
    """Add the calls in the text of a function to the index of its file."""
    own = index_module(ParsedSource(text.encode("utf-8", errors="replace"), "python"))
    function = next(iter(own.units.values()), None)
    index.calls[text] = own.calls.get(function.text, ()) if function is not None else ()
    index.types[text] = own.types.get(function.text, {}) if function is not None else {}


def _shared_names(units: Sequence[Unit]) -> set[tuple[str, str]]:
    """The qualified names and texts of units whose name (and accessor) another unit of the file has too."""
    names = Counter((unit.kind, unit.qualname) for unit in units)
    same_name = [unit for unit in units if names[unit.kind, unit.qualname] > 1]
    accessors = [(unit.kind, unit.qualname, accessor_of(unit.qualname, unit.text)) for unit in same_name]
    counts = Counter(accessors)
    return {(unit.qualname, unit.text) for unit, key in zip(same_name, accessors, strict=True) if counts[key] > 1}


def _dependencies(analysis: Analysis) -> tuple[tuple[str, str, str], ...]:
    """The functions that an analysis read. Their scopes are left out: they hold the index of a whole file."""
    return tuple(
        (definition.scope.index.dotted, definition.qualname, definition.text)
        for definition in analysis.dependencies
        if isinstance(definition.scope, ModuleScope)
    )


def _is_current(work: _Work, scope: ModuleScope) -> bool:
    """Whether the functions that facts depend on still have the same text."""
    for dotted, qualname, text in work.dependencies:
        now = scope.index if dotted == scope.index.dotted else scope.graph.load(dotted)
        unit = now.units.get(qualname) if now is not None else None
        if unit is None or unit.text != text:
            return False
    return True
