"""Reads the units of a version of a file: what the model reads of each, again only where something has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.boundary import absorb
from rlm_core.cost.at_sizes import sizes_of
from rlm_core.cost.scope import ModuleScope
from rlm_core.cost.wait_lengths import with_wait_lengths
from rlm_core.errors import TooComplexError
from rlm_core.source.module_index import ModuleIndex
from rlm_core.source.units import MAX_UNIT_CHARACTERS
from rlm_core.types import Anchor, CodeText, Unit

from .called_functions import CallReader, FileMeasurements, PackageView
from .file_sizes import SizesInCalls
from .function_sizes import NOTHING_GIVEN, Given, SizeRules, given_sizes, input_names_of, known_sizes
from .measured_lookup import MeasuredLookup
from .measured_texts import MeasuredTexts
from .readings import FileReadings, Reading
from .size_comments import SizeComments
from .unit_facts import UnitFacts

if TYPE_CHECKING:
    from .kernel_sizes import UnitSizes

Key = tuple[str, str, str]
"""Text, qualified name and kind of a unit."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the parts of a reading come from: facts of the cost analysis, calls, and measurements."""

    facts: UnitFacts
    calls: CallReader
    measured: MeasuredLookup
    texts: MeasuredTexts


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A version of a file: its units, what surrounds them, and the sizes that are known of them.

    ``as_measured`` gives the package as it was measured; ``check`` raises when the version is no longer of interest. A
    ``provisional`` version reads only units whose own text has changed.
    """

    name: str
    units: list[Unit]
    path: Path | None
    scope: ModuleScope
    view: PackageView
    context: int
    structure: int
    around: FileMeasurements
    shared: set[tuple[str, str]]
    sizes: Mapping[Unit, UnitSizes]
    comments: SizeComments
    rules: SizeRules
    sizes_in_calls: SizesInCalls | None
    check: Callable[[], None]
    as_measured: Callable[[], tuple[ModuleScope, PackageView]]
    provisional: bool

    def key(self, place: int) -> Key:
        """What identifies the unit at a place."""
        unit = self.units[place]
        return unit.text, unit.qualname, unit.kind

    def workloads(self, unit: Unit) -> tuple[tuple[tuple[str, str], ...], ...]:
        """The sizes at which a kernel or module runs."""
        of_unit = self.sizes.get(unit)
        return tuple(tuple(workload.items()) for workload in of_unit.workloads) if of_unit is not None else ()


@dataclass(slots=True)
class UnitReader:
    """Reads the units of a version of a file; ``last`` are the readings of the version before it.

    ``kept`` are the units whose readings are still those of the version before.
    """

    sources: Sources
    file: FileVersion
    last: FileReadings | None
    readings: dict[Key, Reading] = field(default_factory=dict)
    kept: set[Key] = field(default_factory=set)
    _hasty: set[int] = field(default_factory=set)  # places read for a request before the calls of the project
    _changed: set[str] | None = None
    _earlier: tuple[ModuleScope, PackageView] | None = None  # made when a function has changed

    def __post_init__(self) -> None:
        file = self.file
        if self.last is not None:
            self._changed = self.last.changed_since(file.scope, file.context, file.structure, file.around)

    def read(self, place: int, *, is_urgent: bool) -> Reading:
        """What the model reads of the unit at a place; its text alone where reading it fails.

        Args:
            place: of the unit among all units of the file.
            is_urgent: a request waits for it, so sizes that calls fix count only as far as they are known.
        """
        try:
            return self._read(place, is_urgent=is_urgent)
        except Exception as error:
            self._hasty.discard(place)
            return self._text_alone(self.file.units[place], error)

    def is_hasty(self, place: int) -> bool:
        """Return whether a unit was read before the calls of the project."""
        return place in self._hasty

    def with_calls(self, place: int) -> Reading:
        """The reading of a unit with the sizes that the calls of the project fix."""
        return self._at_sizes_in_calls(self.readings[self.file.key(place)], place, is_provisional=False)

    def with_lengths(self, code: CodeText) -> CodeText:
        """A text with the lengths of its waits that the settings give."""
        lengths = self.file.rules.wait_lengths
        if code.work is None or not lengths:
            return code
        return replace(code, work=with_wait_lengths(code.work, lengths))

    def file_readings(self, loaded: Mapping[tuple[Path | None, str], ModuleIndex | None]) -> FileReadings:
        """All readings, for the next version; ``loaded`` are the indices of the files that were read."""
        file = self.file
        kept = frozenset(self.kept)
        return FileReadings(
            file.scope.index, file.context, file.structure, file.around, dict(loaded), self.readings, kept
        )

    def _read(self, place: int, *, is_urgent: bool) -> Reading:
        file, last = self.file, self.last
        unit, key = file.units[place], file.key(place)
        given = given_sizes(file.comments, place, file.rules, file.scope.index.dotted, unit)
        is_shared = (unit.qualname, unit.text) in file.shared
        measured = self.sources.measured.anchors(unit, file.path, self._read_earlier, is_shared=is_shared)
        reading = last.units.get(key) if last is not None else None
        is_same = reading is not None and reading.measured == measured and not reading.failure
        is_same = is_same and reading is not None and reading.given == given
        if reading is None or not is_same or reading.code.workloads != file.workloads(unit):
            reading = self._try_read(unit, file.scope, file.view, measured, given)
        elif last is None or self._is_changed(key, reading, last):
            if file.provisional:
                self.kept.add(key)
            else:
                reading = self._try_read(unit, file.scope, file.view, measured, given)
        reading = self._at_sizes_in_calls(reading, place, is_provisional=file.provisional or is_urgent)
        self.readings[key] = reading
        return reading

    def _is_changed(self, key: Key, reading: Reading, last: FileReadings) -> bool:
        return self._changed is None or key in last.kept or not self._changed.isdisjoint(reading.depends_on)

    def _try_read(
        self,
        unit: Unit,
        scope: ModuleScope,
        view: PackageView,
        measured: tuple[Anchor, ...] = (),
        given: Given = NOTHING_GIVEN,
    ) -> Reading:
        try:
            return self._read_unit(unit, scope, view, measured, given)
        except Exception as error:
            return self._text_alone(unit, error, measured)

    def _read_unit(
        self, unit: Unit, scope: ModuleScope, view: PackageView, measured: tuple[Anchor, ...], given: Given
    ) -> Reading:
        file = self.file
        file.check()
        if len(unit.text) > MAX_UNIT_CHARACTERS:
            raise TooComplexError(f"too complex to analyse: more than {MAX_UNIT_CHARACTERS} characters")
        has_work, is_function = unit.kind in ("function", "program"), unit.kind == "function"
        work = self.sources.facts.of_python(unit, scope, file.context, file.check) if has_work else None
        facts = work.facts if work is not None else None
        callees = scope.graph.callees(scope.index, unit) if is_function else ()
        calls = None
        if is_function:
            calls = self.sources.calls.calls(scope.graph, scope.index, unit, view, file.structure, file.around)
        anchors = measured
        if measured and calls is not None and any(function.is_changed for function in calls.functions()):
            anchors = tuple(anchor if anchor.before else self._of_changed_calls(anchor, unit) for anchor in measured)
        texts = [callee.text for callee in callees]
        texts += [function.text for function in calls.functions()] if calls is not None else []
        texts += [text for _, _, text in work.dependencies] if work is not None else []
        workloads = file.workloads(unit)
        code = CodeText(unit.text, unit.language, unit.basis, callees, workloads, facts, anchors, calls=calls)
        if is_function and (given or any(anchor.cost.sizes or anchor.cost.sized for anchor in measured)):
            code = replace(code, sizes=known_sizes(input_names_of(unit.text, facts, measured), given, measured))
        has_sizes = is_function and facts is not None and bool(sizes_of(facts))
        return Reading(code, measured, frozenset(texts), given=given, has_sizes=has_sizes)

    def _text_alone(self, unit: Unit, error: Exception, measured: tuple[Anchor, ...] = ()) -> Reading:
        absorb(f"the analysis of {unit.qualname} in {self.file.path or self.file.name}", error)
        workloads = self.file.workloads(unit)
        code = CodeText(unit.text, unit.language, unit.basis, workloads=workloads, measured=measured)
        return Reading(code, measured, failure=type(error).__name__)

    def _of_changed_calls(self, anchor: Anchor, unit: Unit) -> Anchor:
        """The measurements of a unit whose text is the same, with what it called then."""
        return replace(anchor, before=self._read_earlier(unit.text, unit))

    def _read_earlier(self, text: str, unit: Unit) -> CodeText:
        if self._earlier is None:
            self._earlier = self.file.as_measured()
        scope, view = self._earlier
        if unit.kind == "function" and text not in scope.index.calls:
            self.sources.texts.add(scope.index, text)
        return self._try_read(replace(unit, text=text), scope, view).code

    def _at_sizes_in_calls(self, reading: Reading, place: int, *, is_provisional: bool) -> Reading:
        """A reading with the sizes that calls fix: a provisional one with what is known of them."""
        file = self.file
        if file.sizes_in_calls is None or not reading.has_sizes:
            return reading
        unit = file.units[place]
        in_calls, is_current = file.sizes_in_calls(unit, is_provisional)
        if not is_current:
            self._hasty.add(place)
            self.kept.update([file.key(place)] if file.provisional else [])
        if in_calls == reading.in_calls:
            return reading
        names = input_names_of(unit.text, reading.code.work, reading.measured)
        sizes = known_sizes(names, {**in_calls, **reading.given}, reading.measured)
        return replace(reading, code=replace(reading.code, sizes=sizes), in_calls=in_calls)
