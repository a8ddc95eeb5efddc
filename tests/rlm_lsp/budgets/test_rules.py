"""Which budget a prediction is held against, and what must be asked to know."""

from __future__ import annotations

from rlm_core import CodeText, Query
from rlm_core.inference.query_selection import QuerySelection
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Span, Unit
from rlm_lsp.budgets.comments import read_comments
from rlm_lsp.budgets.rules import ActiveBudget, Rules, budget_of, budget_queries, rules_of
from rlm_lsp.budgets.syntax import Budget

from tests.rlm_lsp.findings.support import LengthPredictor

SPAN = Span(0, 0, 0, 1, 0, 1)
KERNEL = CodeText("k" * 10, "triton", "kernel")
FUNCTION = CodeText("f" * 10, "python", "call")


def held(*budgets: Budget) -> tuple[ActiveBudget, ...]:
    return tuple(ActiveBudget(budget, SPAN) for budget in budgets)


def value_for(rules: Rules, code: CodeText, query: Query) -> float | None:
    [[prediction]] = LengthPredictor().predict([code], [[query]])
    found = budget_of(prediction, rules)
    return found.budget.value if found is not None else None


def unit_of(text: str) -> tuple[Unit, Rules]:
    parsed = ParsedSource(text.encode(), "python")
    [unit] = find_units(parsed)
    [budgets] = read_comments(parsed, [unit]).units
    return unit, rules_of(unit, budgets, held(Budget("latency", 9.0), Budget("memory", 9.0), Budget("accuracy", 0.9)))


def test_nothing_is_queried_without_a_budget() -> None:
    assert budget_queries(LengthPredictor(), FUNCTION, Rules()) == ()


def test_only_metrics_with_a_budget_are_queried() -> None:
    rules = Rules(held(Budget("memory", 1.0)))
    assert budget_queries(LengthPredictor(), FUNCTION, rules) == (Query("memory", "x86-64"),)


def test_a_narrow_budget_asks_for_its_device_and_sizes() -> None:
    rules = Rules(held(Budget("latency", 1.0, "fast-gpu", (("M", "64"),))))
    assert budget_queries(LengthPredictor(), KERNEL, rules) == (Query("latency", "fast-gpu", {"M": "64"}),)


def test_a_plain_budget_holds_on_all_chosen_devices() -> None:
    rules = Rules(held(Budget("latency", 1.0)))
    asked = QuerySelection(None, ("slow-gpu", "fast-gpu"))
    assert [query.device for query in budget_queries(LengthPredictor(), KERNEL, rules, asked)] == [*asked.devices]


def test_a_configured_device_applies_to_units_that_have_it_and_one_in_a_comment_is_queried() -> None:
    budget = Budget("latency", 1.0, "fast-gpu")
    assert budget_queries(LengthPredictor(), FUNCTION, Rules((ActiveBudget(budget, SPAN),))) == ()
    by_sheet = Budget("latency", 1.0, "nvidia-h200")
    assert budget_queries(LengthPredictor(), KERNEL, Rules((ActiveBudget(by_sheet, SPAN),))) == ()
    commented = Rules((ActiveBudget(budget, SPAN, configured=False),))
    assert budget_queries(LengthPredictor(), FUNCTION, commented) == (Query("latency", "fast-gpu"),)


def test_the_narrowest_budget_counts() -> None:
    rules = Rules(
        held(Budget("latency", 1.0), Budget("latency", 2.0, "fast-gpu"), Budget("latency", 3.0, None, (("M", "64"),)))
    )
    assert value_for(rules, KERNEL, Query("latency", "slow-gpu")) == 1.0
    assert value_for(rules, KERNEL, Query("latency", "fast-gpu")) == 2.0
    assert value_for(rules, KERNEL, Query("latency", "slow-gpu", {"M": "64"})) == 3.0
    assert value_for(rules, FUNCTION, Query("memory", "x86-64")) is None


def test_a_comment_counts_more_than_the_configuration_and_its_first_line_most() -> None:
    _, rules = unit_of("# rlm: latency < 1 s\ndef f(): pass\n")
    assert value_for(rules, FUNCTION, Query("latency", "x86-64")) == 1.0
    assert value_for(rules, FUNCTION, Query("memory", "x86-64")) == 9.0
    twice = Rules(held(Budget("latency", 5.0), Budget("latency", 6.0)))
    assert value_for(twice, FUNCTION, Query("latency", "x86-64")) == 5.0


def test_what_is_ignored_and_what_a_unit_cannot_have_is_no_rule() -> None:
    _, rules = unit_of("# rlm: ignore memory\ndef f(): pass\n")
    assert [entry.budget.metric for entry in rules.budgets] == ["latency"]
    assert rules.ignored == {"memory"}
    _, nothing = unit_of("# rlm: ignore\ndef f(): pass\n")
    assert nothing.budgets == ()
