"""The units that an agent's request is about: of a text, a file or a folder inside the client's roots.

Files are read again when they have changed on disk; nothing outside the roots is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlm_core.cost.domain.syntax import parsed_function
from rlm_core.errors import DataError, RlmError, SourceError
from rlm_core.measurement.known import KnownMeasurements
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.function_sizes import SizeRules, input_names_of, is_size_of, with_sizes
from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.syntax_errors import first_error, without_errors
from rlm_core.source.units import MAX_FILE_BYTES, decode, read_source
from rlm_core.types import CodeText, HoldsFor, Prediction, SizedPrediction

from rlm_lsp.rendering import agent_answers as say
from rlm_lsp.settings.project import BudgetTables, ProjectSettings
from rlm_lsp.settings.sizes import project_rules
from rlm_lsp.sources import find_sources, without_tests

from .roots import Roots

MOST_UNITS = 300  # of one folder: about 20 seconds on two cores; many clients wait no longer than 60
Progress = Callable[[float, str], None]  # the share that is done, and of what
READING = 0.5  # of the time for a folder
_NAMED_UNITS = 8  # in an error


def no_progress(share: float, what: str) -> None:
    """For a caller who does not wait."""


@dataclass(frozen=True, slots=True)
class Code:
    """The code of an agent's request: a path inside the roots, or a text in a language, and sizes of inputs by name."""

    path: str | None = None
    text: str | None = None
    language: str = "python"
    sizes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestedUnit:
    """A unit and its file, None for a text."""

    path: Path | None
    parsed: ParsedSource
    analysed: AnalysedUnit


@dataclass(slots=True)
class FolderUnits:
    """Units of a folder that were read, what could not be, and the numbers of files that were not, by their folder."""

    units: list[RequestedUnit] = field(default_factory=list)
    files: int = 0
    failed: list[str] = field(default_factory=list)
    unread: Mapping[str, int] = field(default_factory=dict)


class RequestedUnits:
    """Reads the units of requests. ``measured`` is what is known of units."""

    def __init__(self, measured: KnownMeasurements) -> None:
        self._measured = measured
        self._roots, self._settings = Roots(()), ProjectSettings(BudgetTables())
        self._analyser = self._new_analyser()

    def of_code(self, roots: Roots, code: Code) -> list[RequestedUnit]:
        """The units of a text or of a file.

        Raises:
            RlmError: it cannot be read, or has no units.
        """
        self.use(roots)
        if code.text is not None:
            if len(code.text) > MAX_FILE_BYTES:
                raise SourceError(f"the text is over the limit of {MAX_FILE_BYTES // 2**20} MiB; send less of it")
            language = languages.by_name(code.language).name
            source = decode(code.text.encode("utf-8", errors="replace"), "text", "the text")
            return self._found(None, ParsedSource(source, language, may_leave_out=True), "the text")
        assert code.path is not None, "a question has a path or a text"
        path = roots.find(code.path)
        return self._found(path, read_source(path), code.path)

    def of_folder(self, roots: Roots, folder: Path, shown: str, unit: str | None, progress: Progress) -> FolderUnits:
        """The units of the files below a folder; with the name of a unit, of the files that contain it."""
        self.use(roots)
        read = FolderUnits()
        found = find_sources([folder], lambda error: read.failed.append(str(error)))
        files = [file for file in without_tests(found) if roots.contains(file.path) and file.path.stat().st_size]
        read.files = len(files)
        for done, source_file in enumerate(files):
            progress(READING * done / len(files), say.progress_line("read", done, len(files)))
            if len(read.units) >= MOST_UNITS:
                read.unread = _covering(roots, [file.path for file in files], done)
                break
            name = roots.shown(source_file.path)
            try:
                parsed = read_source(source_file.path, source_file.root)
                if unit is not None and unit.rpartition(".")[2].encode() not in parsed.source:
                    continue
                units = self._analyser.analyse(parsed, source_file.path)
                analysed = without_errors(parsed, units, lambda entry: entry.code.text)
            except RlmError as error:
                read.failed.append(f"{name}: {str(error).removeprefix(f'{source_file.path}: ')}")
                continue
            if len(analysed) < len(units):
                read.failed.append(say.broken_line(name, len(units) - len(analysed), parsed))
            read.units += [RequestedUnit(source_file.path, parsed, entry) for entry in analysed]
        return read

    def _found(self, path: Path | None, parsed: ParsedSource, shown: str) -> list[RequestedUnit]:
        found = self._analyser.analyse(parsed, path)
        units = without_errors(parsed, found, lambda entry: entry.code.text)
        if not units and parsed.language == "python" and (found or parsed.has_error):
            raise SourceError(f"{shown}: does not parse as Python ({first_error(parsed)})")
        if not units:
            title = languages.by_name(parsed.language).title
            what = "function, kernel, module or solution" if parsed.language == "python" else "solution of a problem"
            raise SourceError(f"{shown}: nothing to predict: no {what} that parses as {title}")
        return [RequestedUnit(path, parsed, entry) for entry in units]

    def use(self, roots: Roots) -> None:
        """Read what has changed on disk again, and after a change of the roots everything."""
        differs = roots != self._roots
        self._roots, self._settings = roots, ProjectSettings(BudgetTables())
        if self._measured.use_roots(roots.folders) or self._measured.changed() or differs:
            self._analyser = self._new_analyser()
        self._analyser.refresh()

    def _new_analyser(self) -> Analyser:
        return Analyser(self.overlay, measured=self._measured, size_rules=self.size_rules, call_sizes=True)

    def size_rules(self, path: Path | None) -> SizeRules:
        """What the settings say of the functions of a file."""
        return project_rules(self._settings, path)

    def overlay(self, path: Path) -> bytes | None:
        """Nothing in place of a file outside the roots, such as one that a link in a package leads to."""
        return None if self._roots.contains(path) else b""

    def overlay_of(self, earlier: Callable[[Path], bytes | None]) -> Callable[[Path], bytes | None]:
        """The same for files as they were earlier."""
        return lambda path: earlier(path) if self._roots.contains(path) else b""


def _covering(roots: Roots, files: Sequence[Path], done: int) -> Mapping[str, int]:
    """The folders with no file among the first ``done``, and single files: the numbers of files, largest first."""
    begun = {parent for file in files[:done] for parent in file.parents}
    covering: Counter[Path] = Counter()
    for file in files[done:]:
        covering[next(path for path in (file, *file.parents) if path.parent in begun)] += 1
    return {roots.shown(path): number for path, number in covering.most_common()}


def named(units: Sequence[RequestedUnit], name: str) -> list[RequestedUnit]:
    """The units with a qualified name.

    Raises:
        DataError: there is none.
    """
    found = [entry for entry in units if entry.analysed.unit.qualname == name]
    if not found:
        raise DataError(f"there is no unit {name!r}; there are: {names_of(units)}")
    return found


def sized(
    units: Sequence[RequestedUnit], sizes: Mapping[str, float], compared: Sequence[RequestedUnit] = ()
) -> list[RequestedUnit]:
    """Units with sizes of inputs: those that depend on none of them are as before.

    Units that are compared with others have all sizes that either side knows, as an input that its cost depends on or
    as a parameter.

    Raises:
        DataError: a size is that of no unit's input.
    """
    if not sizes:
        return list(units)
    known = dict.fromkeys(name for entry in (*units, *compared) for name in _sizes_of(entry.analysed.code))
    parameters = (
        {name for entry in (*units, *compared) for name in _parameters(entry.analysed.code)} if compared else ()
    )
    unknown = [name for name in sizes if not is_size_of(name, known) and name.removesuffix("[]") not in parameters]
    if unknown:
        there = f"they depend on {', '.join(list(known)[:_NAMED_UNITS])}" if known else "they depend on no known size"
        raise DataError(f"no cost of {names_of(units)} depends on the size of {unknown[0]!r}; {there}")
    also = tuple(sizes) if compared else ()
    return [
        replace(entry, analysed=replace(entry.analysed, code=with_sizes(entry.analysed.code, sizes, also)))
        for entry in units
    ]


def _sizes_of(code: CodeText) -> list[str]:
    return input_names_of(code.text, code.work, code.measured) if code.basis == "call" else []


def _parameters(code: CodeText) -> list[str]:
    node = parsed_function(code.text) if code.basis == "call" and code.language == "python" else None
    if node is None:
        return []
    arguments = node.args
    return [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def is_for_others(entry: RequestedUnit, predictions: Sequence[Prediction]) -> bool:
    """Return whether sizes were asked about that the latency of a unit is not for, not even as a bound."""
    is_asked = any(size.source == "query" for size in entry.analysed.code.sizes)
    latency = next((answer for answer in predictions if answer.metric == "latency"), None)
    is_sized = isinstance(latency, SizedPrediction) or (
        latency is not None and latency.holds_for in (HoldsFor.ALL_INPUTS, HoldsFor.MEASURED_SIZES)
    )
    return is_asked and latency is not None and latency.median is not None and not is_sized


def names_of(units: Sequence[RequestedUnit]) -> str:
    """The qualified names of units, for an error."""
    names = [entry.analysed.unit.qualname for entry in units]
    return ", ".join(names[:_NAMED_UNITS]) + (f" and {len(names) - _NAMED_UNITS} more" if names[_NAMED_UNITS:] else "")
