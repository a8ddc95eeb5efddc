"""Work facts of units, remembered until a unit, its context or a function that it calls has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from cachetools import LRUCache

from rlm_core.cost.analysis import Analysis, analyse
from rlm_core.cost.domain.constructors import FileReadings
from rlm_core.cost.scope import ModuleScope, Trace, TracedScope
from rlm_core.cost.structure.facts import outline_facts
from rlm_core.types import Unit, WorkFacts

from .entry_store import default_folder
from .facts_cache import Entry, FactsCache, digest, still_holds

_ANALYSED_UNITS = 2_048  # more than the units of a file of 30,000 lines


@dataclass(frozen=True, slots=True)
class UnitWork:
    """The facts of a unit, and the functions that they depend on: module, qualified name and text."""

    facts: WorkFacts
    dependencies: tuple[tuple[str, str, str], ...] = ()


_NOT_ANALYSED = UnitWork(WorkFacts())


class UnitFacts:
    """The work facts of units. Not thread-safe."""

    def __init__(self) -> None:
        self._known: LRUCache[Hashable, UnitWork | None] = LRUCache(_ANALYSED_UNITS)
        self._disk = FactsCache(default_folder())
        self._file: tuple[ModuleScope, FileReadings] | None = None  # whose units are being analysed

    def save(self) -> None:
        """Keep what is new for other processes, and of the file whose units were analysed only their facts."""
        self._file = None
        self._disk.save()

    def of_python(
        self, unit: Unit, scope: ModuleScope, context: int, check: Callable[[], None] = lambda: None
    ) -> UnitWork | None:
        """The facts of a function or program in a file; ``context`` identifies what is visible outside of the file.

        ``check`` is called before each name that is looked up, and may raise to give the analysis up.
        """
        key = (unit.text, unit.qualname, unit.kind, context)
        known = self._known.get(key, _NOT_ANALYSED)
        if known is _NOT_ANALYSED or (known is not None and not _is_current(known, scope)):
            known = self._known[key] = self._stored(unit, scope, check)
        return known

    def _stored(self, unit: Unit, scope: ModuleScope, check: Callable[[], None]) -> UnitWork | None:
        """The facts of a unit from the disk, else from an analysis."""
        key = (unit.language, unit.kind, scope.index.dotted, unit.qualname, unit.text)
        entry = self._disk.get(*key)
        if entry is not None and still_holds(entry, scope):
            functions = [_function(dotted, qualname, scope) for dotted, qualname in entry.dependencies]
            current = tuple(function for function in functions if function is not None)
            if len(current) == len(functions):
                return UnitWork(entry.facts, current) if entry.facts is not None else None
        if self._file is None or self._file[0] is not scope:
            self._file = scope, FileReadings(Trace())
        readings = self._file[1]
        trace = readings.trace
        trace.start(check)
        qualname = unit.qualname if unit.kind == "function" else ""
        analysis = analyse(unit.text, trace.of(scope), qualname, readings=readings)
        if analysis is not None:
            work: UnitWork | None = UnitWork(analysis.facts, _dependencies(analysis))
        else:
            facts = outline_facts(unit.text, unit.language)
            work = UnitWork(facts) if facts is not None else None
        dependencies = [(dotted, qualname) for dotted, qualname, _ in work.dependencies] if work is not None else []
        facts = work.facts if work is not None else None
        self._disk.put(Entry(facts, tuple(trace.answers), digest(trace.answers.values()), tuple(dependencies)), *key)
        return work

    def of_outline(self, text: str, language: str) -> WorkFacts | None:
        """The facts of a program in another language than Python."""
        key = (text, language)
        if key not in self._known:
            facts = outline_facts(text, language)
            self._known[key] = UnitWork(facts) if facts is not None else None
        known = self._known[key]
        return known.facts if known is not None else None


def _dependencies(analysis: Analysis) -> tuple[tuple[str, str, str], ...]:
    """The functions that an analysis read. Their scopes are left out: they hold the index of a whole file."""
    return tuple(
        (definition.scope.scope.index.dotted, definition.qualname, definition.text)
        for definition in analysis.dependencies
        if isinstance(definition.scope, TracedScope)
    )


def _is_current(work: UnitWork, scope: ModuleScope) -> bool:
    """Return whether the functions that facts depend on still have the same text."""
    return all(
        _function(dotted, qualname, scope) == (dotted, qualname, text) for dotted, qualname, text in work.dependencies
    )


def _function(dotted: str, qualname: str, scope: ModuleScope) -> tuple[str, str, str] | None:
    """A function of a module, with its text as it is now."""
    index = scope.index if dotted == scope.index.dotted else scope.graph.load(dotted)
    unit = index.units.get(qualname) if index is not None else None
    return (dotted, qualname, unit.text) if unit is not None else None
