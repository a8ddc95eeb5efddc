"""Work facts of units are remembered, and read again when a function that they depend on has changed."""

from __future__ import annotations

import pytest
from rlm_core.cost.scope import ModuleScope
from rlm_core.queries import unit_facts
from rlm_core.queries.unit_facts import UnitFacts, UnitWork
from rlm_core.source.call_graph import CallGraph
from rlm_core.source.module_index import index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units

TEXT = (
    "def called():\n    return sum(range({0}))\n\n\n"
    "def alone():\n    return 1\n\n\n"
    "def caller():\n    return called()\n"
)


def facts_of(facts: UnitFacts, name: str, size: int, context: int = 0) -> UnitWork | None:
    parsed = ParsedSource(TEXT.format(size).encode(), "python")
    [unit] = [unit for unit in find_units(parsed) if unit.qualname == name]
    return facts.of_python(unit, ModuleScope(index_module(parsed), CallGraph()), context)


def test_facts_are_read_again_when_a_callee_has_changed() -> None:
    facts = UnitFacts()
    first = facts_of(facts, "caller", 1_000)
    assert first is not None
    assert facts_of(facts, "caller", 1_000) is first
    assert [qualname for _, qualname, _ in first.dependencies] == ["called"]
    second = facts_of(facts, "caller", 9_000)
    assert second is not None
    assert second.facts.latency.typical > 5 * first.facts.latency.typical


def test_facts_of_a_function_that_calls_nothing_stay_in_their_context() -> None:
    facts = UnitFacts()
    first = facts_of(facts, "alone", 1_000)
    assert facts_of(facts, "alone", 9_000) is first
    assert facts_of(facts, "alone", 9_000, context=1) is not first


def test_a_program_in_another_language_is_outlined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = UnitFacts()
    text = "int main() { for (int i = 0; i < 1000; i++) work(i); }"
    first = facts.of_outline(text, "cpp")
    assert first is not None
    monkeypatch.setattr(unit_facts, "outline_facts", None)
    assert facts.of_outline(text, "cpp") is first
