"""Work facts of units, remembered until a unit, its context or a function that it calls has changed."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from cachetools import LRUCache

from rlm_core.cost.analysis import Analysis, analyse
from rlm_core.cost.scope import ModuleScope
from rlm_core.cost.structure.facts import outline_facts
from rlm_core.types import Unit, WorkFacts

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

    def of_python(self, unit: Unit, scope: ModuleScope, context: int) -> UnitWork | None:
        """The facts of a function or program in a file; ``context`` identifies what is visible outside of the file."""
        key = (unit.text, unit.qualname, unit.kind, context)
        known = self._known.get(key, _NOT_ANALYSED)
        if known is _NOT_ANALYSED or (known is not None and not _is_current(known, scope)):
            analysis = analyse(unit.text, scope, unit.qualname if unit.kind == "function" else "")
            if analysis is not None:
                known = UnitWork(analysis.facts, _dependencies(analysis))
            else:
                facts = outline_facts(unit.text, unit.language)
                known = UnitWork(facts) if facts is not None else None
            self._known[key] = known
        return known

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
        (definition.scope.index.dotted, definition.qualname, definition.text)
        for definition in analysis.dependencies
        if isinstance(definition.scope, ModuleScope)
    )


def _is_current(work: UnitWork, scope: ModuleScope) -> bool:
    """Whether the functions that facts depend on still have the same text."""
    for dotted, qualname, text in work.dependencies:
        now = scope.index if dotted == scope.index.dotted else scope.graph.load(dotted)
        unit = now.units.get(qualname) if now is not None else None
        if unit is None or unit.text != text:
            return False
    return True
