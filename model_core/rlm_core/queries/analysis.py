"""A source file, or the cells of a notebook -> units with the text, callees and sizes that the model reads.

The command line and the server both use this module, so their numbers are equal. Callees outside the file are looked
up in the file's package on disk; ``overlay`` gives the texts that take precedence over the disk, such as those of open
editors, already parsed where they are analysed too. Calls are resolved over the whole package: its files are scanned
for names once, and a file is parsed when a call may run one of its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache

from rlm_core.boundary import absorb
from rlm_core.cost.scope import ModuleScope
from rlm_core.errors import AnalysisError, RlmError, StoppedError, TooComplexError
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.incremental import PythonFile, PythonReader
from rlm_core.source.module_index import ModuleIndex, merged
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.solutions import judge_of
from rlm_core.source.units import MAX_UNIT_CHARACTERS, cell_source, find_units
from rlm_core.types import (
    Anchor,
    CodeText,
    MeasuredFunctions,
    Unit,
)

from .call_sizes import CallSizes
from .called_functions import CallReader, PackageView
from .file_sizes import DefaultSizes, FileSizes, SizeRulesOf
from .function_sizes import NO_RULES
from .measured_lookup import MeasuredLookup, MeasuredUnits
from .measured_texts import MeasuredTexts
from .network_sizes import network_sizes
from .package_files import Overlay, PackageFiles, context_of, package_of, path_of
from .readings import FileReadings
from .unit_facts import UnitFacts
from .unit_readings import FileVersion, Sources, UnitReader

if TYPE_CHECKING:
    from .kernel_sizes import UnitSizes

_MOST_UNITS = 5_000  # of a Python file; each takes about a millisecond
# In other languages than Python only whole programs are units, and judges accept at most 64 KiB.
_MOST_PROGRAM_BYTES = 256 * 1024
_READ_FILES = 8  # whose units are remembered as the model reads them
_URGENT_UNITS = 16  # that a request waits for at most: an editor may ask for the lines of a whole file


@dataclass(frozen=True, slots=True)
class AnalysedUnit:
    """A unit of a file and what the predictor reads about it; ``sizes`` of a kernel are in ``code`` too.

    ``failure`` is the class of the exception for which ``code`` has the text alone; empty where nothing failed.
    """

    unit: Unit
    code: CodeText
    sizes: UnitSizes | None = None
    failure: str = ""


class OutdatedError(StoppedError):
    """The text that is being analysed is no longer of interest."""


class UrgentLines(Protocol):
    """Lines of a text whose units a request waits for while all of it is analysed."""

    def take(self) -> range | None:
        """The lines of the next request, 0-based; None where the rest of the text is to be analysed.

        This may wait for what was answered to be of use.
        """
        ...

    def answer(self, units: list[AnalysedUnit]) -> None:
        """Take the units that are analysed by now, in the order of the text; of many new ones only the first."""
        ...


class Analyser:
    """Analyses files and remembers the indices of the files that they import. Not thread-safe: use one per thread.

    ``default_sizes`` gives the sizes of a file's kernels where the file names none, see
    :func:`rlm_core.queries.kernel_sizes.sizes_of`; ``measured`` looks up what was measured of units; ``size_rules``
    gives the sizes that the settings name for the functions of a file. With ``call_sizes``, calls in the project of a
    file give sizes too: not where predictions are compared with what tests measure. ``sizes_of_networks`` take
    precedence over those in the settings.
    """

    def __init__(
        self,
        overlay: Overlay | None = None,
        default_sizes: DefaultSizes | None = None,
        measured: MeasuredUnits | None = None,
        size_rules: SizeRulesOf | None = None,
        *,
        call_sizes: bool = False,
        sizes_of_networks: Mapping[str, int] | None = None,
    ) -> None:
        self._size_rules, self._sizes_of_networks = size_rules, sizes_of_networks or {}
        self._measured = MeasuredLookup(measured)
        overlay = overlay or (lambda path: None)
        self._files = PackageFiles(overlay, lambda index: self._measured.prepare(index.units))
        self._sizes = FileSizes(default_sizes, size_rules, CallSizes(self._files, overlay) if call_sizes else None)
        self._reader = PythonReader()
        self._cells: dict[bytes, PythonFile] = {}
        self._facts = UnitFacts()
        self._readings: LRUCache[str, FileReadings] = LRUCache(_READ_FILES)
        self._calls = CallReader(self._measured.known_costs, self._measured.earlier_text)
        self._measured_texts = MeasuredTexts(self._measured.earlier_text)
        self._sources = Sources(self._facts, self._calls, self._measured, self._measured_texts)

    def network_sizes(self, path: Path) -> dict[str, int]:
        """The sizes at which the network in a file is asked about, by name."""
        rules = self._size_rules(path) if self._size_rules is not None else NO_RULES
        return {**network_sizes(rules), **self._sizes_of_networks}

    def refresh(self) -> None:
        """Look at the files of packages on disk and at measurements again: some may be new, changed or gone."""
        self._readings.clear()
        self._measured.refresh()
        self._measured_texts.refresh()
        self._files.refresh()
        self._sizes.refresh()

    def forget(self, name: str) -> None:
        """Keep nothing of the versions of the text ``name``, which is no longer analysed."""
        self._readings.pop(name, None)
        self._reader.forget(name)

    def is_settled(self, name: str) -> bool:
        """Return whether the last analysis of the text ``name`` read every unit as it is now."""
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
        """The units of a source text. One whose analysis fails has its text alone, see :attr:`AnalysedUnit.failure`.

        ``path`` lets callees be found in the rest of its package, and may show that the text is a solution.

        ``name`` identifies the text across versions: after an edit only what changed is analysed. ``is_outdated`` is
        asked before each unit, each name that is looked up and each other file that is read. A ``provisional`` analysis
        reads only units whose own text has changed: those that call them keep what was read of them, until an analysis
        that is not provisional. ``urgent`` gets the units of a Python text that it waits for before all of them are
        analysed.

        Raises:
            OutdatedError: ``is_outdated`` says so.
            SourceError: the language is unknown.
            TooComplexError: the text is too long, has too many functions or takes too long to parse.
            AnalysisError: reading the text as a whole fails; both are a ``SourceError``.
        """
        try:
            return self._analyse(parsed, path, name, is_outdated, provisional=provisional, urgent=urgent)
        except RlmError:
            raise
        except Exception as error:
            absorb(f"the analysis of {path or name or 'a text'}", error)
            raise _failed(error) from None
        finally:
            if not provisional:
                self._facts.save()

    def _analyse(
        self,
        parsed: ParsedSource,
        path: Path | None,
        name: str | None,
        is_outdated: Callable[[], bool],
        *,
        provisional: bool,
        urgent: UrgentLines | None,
    ) -> list[AnalysedUnit]:
        path = path.absolute() if path is not None else None
        if parsed.language != "python":
            if len(parsed.source) > _MOST_PROGRAM_BYTES:
                raise TooComplexError(f"too complex to analyse: longer than {_MOST_PROGRAM_BYTES // 1024} KiB")
            units = find_units(parsed, path)
            return _with_judge([self._outlined(unit, path) for unit in units], parsed, path)
        root, dotted = package_of(path) if path is not None else (None, "")
        is_package = path is not None and path.name == "__init__.py"

        def check() -> None:
            if is_outdated():
                raise OutdatedError

        self._files.start(check)
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

        def file_of(module: str) -> Path | None:
            return path if module == dotted else path_of(root, module)

        def as_measured() -> tuple[ModuleScope, PackageView]:
            return self._measured_texts.package(file.index, load, named, file_of)

        scope, view = ModuleScope(file.index, CallGraph(load, named)), PackageView(load, context_of, file_of)
        read = self._analysed(
            parsed,
            file.units,
            path,
            scope,
            view,
            name,
            check,
            as_measured,
            provisional=provisional,
            urgent=urgent,
        )
        return _with_judge(read, parsed, path)

    def analyse_cells(self, sources: Sequence[bytes], notebook: Path | None = None) -> list[list[AnalysedUnit]]:
        """The units of the Python cells of a notebook, cell by cell; a function may call those of all cells.

        Each cell is analysed separately, so that a half-written one does not affect the others. The sizes and lengths
        of waits that the settings give are those for the path ``notebook``.

        Raises:
            TooComplexError: all cells together have too many functions, or one is too long or takes too long to parse.
            AnalysisError: reading the cells fails.
        """
        try:
            return self._analyse_cells(sources, notebook)
        except RlmError:
            raise
        except Exception as error:
            absorb("the analysis of a notebook", error)
            raise _failed(error) from None

    def _analyse_cells(self, sources: Sequence[bytes], notebook: Path | None) -> list[list[AnalysedUnit]]:
        cells = [cell_source(source) for source in sources]
        previous, self._cells = self._cells, {}
        for cell in cells:
            self._cells[cell.source] = previous.get(cell.source) or self._reader.read(cell)
        files = [self._cells[cell.source] for cell in cells]
        _refuse_complex([unit for file in files for unit in file.units])
        index, graph = merged(file.index for file in files), CallGraph()
        view = PackageView(graph.load, context_of, lambda module: None)
        return [
            self._analysed(cell, file.units, None, ModuleScope(index, graph), view, settings_of=notebook)
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
        check: Callable[[], None] = lambda: None,
        as_measured: Callable[[], tuple[ModuleScope, PackageView]] | None = None,
        *,
        provisional: bool = False,
        urgent: UrgentLines | None = None,
        settings_of: Path | None = None,
    ) -> list[AnalysedUnit]:
        settings_of = settings_of or path
        sizes = self._sizes.of_kernels(
            parsed,
            [unit for unit in units if unit.kind in ("kernel", "module") and len(unit.text) <= MAX_UNIT_CHARACTERS],
            settings_of,
        )
        context = view.context(scope.index)
        structure = self._files.structure(path)
        comments, rules = self._sizes.given(parsed, units, settings_of)
        sizes_in_calls = self._sizes.in_calls(path, scope, context)
        of_package = self._measured.around(path) if path is not None else MeasuredFunctions()
        version = FileVersion(
            name=name or "a text",
            units=units,
            path=path,
            scope=scope,
            view=view,
            context=context,
            structure=structure,
            around=self._calls.measurements(path, units, of_package),
            shared=self._measured.shared_names(units),
            sizes=sizes,
            comments=comments,
            rules=rules,
            sizes_in_calls=sizes_in_calls,
            check=check,
            as_measured=as_measured or (lambda: (scope, view)),
            provisional=provisional,
        )
        reader = UnitReader(self._sources, version, self._readings.get(name) if name is not None else None)
        found: dict[int, AnalysedUnit] = {}  # by the place of the unit among all units

        def find(places: Iterable[int], *, is_urgent: bool = False) -> None:
            for place in places:
                if place not in found:
                    reading = reader.read(place, is_urgent=is_urgent)
                elif reader.is_hasty(place) and not (is_urgent or provisional):
                    reading = reader.with_calls(place)
                else:
                    continue
                unit = units[place]
                found[place] = AnalysedUnit(unit, reader.with_lengths(reading.code), sizes.get(unit), reading.failure)

        for place in range(len(units)):
            while urgent is not None and (lines := urgent.take()) is not None:
                waiting = (place for place in range(len(units)) if place not in found and _touches(units[place], lines))
                find(list(islice(waiting, _URGENT_UNITS)), is_urgent=True)
                urgent.answer(_with_judge([found[number] for number in sorted(found)], parsed, path))
            find([place])
        if name is not None:
            self._readings[name] = reader.file_readings(self._files.loaded)
        return [found[place] for place in range(len(units))]

    def _outlined(self, unit: Unit, path: Path | None) -> AnalysedUnit:
        """A unit in another language than Python."""
        try:
            measured = self._measured.anchors(unit, path, lambda text, unit: self._outline(text, unit, ()))
            return AnalysedUnit(unit, self._outline(unit.text, unit, measured))
        except Exception as error:
            absorb(f"the analysis of {unit.qualname} in {path or 'a text'}", error)
            code = CodeText(unit.text, unit.language, unit.basis)
            return AnalysedUnit(unit, code, failure=type(error).__name__)

    def _outline(self, text: str, unit: Unit, measured: tuple[Anchor, ...]) -> CodeText:
        if unit.kind != "program":
            return CodeText(text, unit.language, unit.basis, measured=measured)
        work = self._facts.of_outline(text, unit.language)
        return CodeText(text, unit.language, unit.basis, work=work, measured=measured)


def _failed(error: Exception) -> AnalysisError:
    return AnalysisError(f"the analysis failed ({type(error).__name__}); see the log")


def _refuse_complex(units: Sequence[Unit]) -> None:
    """Refuse the units of a Python file, or of a notebook as a whole, that would take too long.

    Raises:
        TooComplexError: they would.
    """
    if len(units) > _MOST_UNITS:
        raise TooComplexError(f"too complex to analyse: more than {_MOST_UNITS} functions")


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
