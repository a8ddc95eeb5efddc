"""Facts at sizes: what is evaluated equals the sums that the analysis found, and what is left stays unknown."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.analysis import _terms, work_facts
from rlm_core.cost.at_sizes import calls_at, evaluated, facts_at, names_of, substituted
from rlm_core.cost.domain.quantities import ONE, Quantity, constant, of_size
from rlm_core.types import Amount, CostTerm, Growth, WaitKind, WorkFacts

NAMES = st.sampled_from(["n", "items", "rows[]"])
VALUES = st.floats(0, 1e6)
SMALL = st.integers(0, 3)
SUMS = st.lists(st.tuples(st.floats(0, 1e3), NAMES, SMALL, NAMES, SMALL, st.booleans()), min_size=1, max_size=4)
SIZES = st.fixed_dictionaries({"n": VALUES, "items": VALUES, "rows[]": VALUES})


def facts(text: str) -> WorkFacts:
    found = work_facts(text)
    assert found is not None
    return found


def polynomial(parts: list[tuple[float, str, int, str, int, bool]]) -> Quantity:
    total = ONE
    for amount, first, degree, second, power, logarithmic in parts:
        term = constant(amount) * of_size(first).power(degree) * of_size(second).power(power)
        total = total + (term * of_size(first).log() if logarithmic else term)
    return total


@given(SUMS, SIZES)
def test_a_sum_at_sizes_is_what_the_analysis_evaluates(
    parts: list[tuple[float, str, int, str, int, bool]], sizes: dict[str, float]
) -> None:
    quantity = polynomial(parts)
    terms = _terms(quantity)
    expected = quantity.evaluate(lambda name: sizes[name])
    amount = evaluated(terms, sizes) if terms else Amount(*(quantity.constant or (0, 0, 0)))
    assert (amount.least, amount.likely, amount.most) == pytest.approx(expected)


@given(SUMS, SIZES)
def test_sizes_may_be_given_one_after_the_other(
    parts: list[tuple[float, str, int, str, int, bool]], sizes: dict[str, float]
) -> None:
    terms = _terms(polynomial(parts))
    left = terms
    for name, value in sizes.items():
        left = substituted(left, {name: value})
        assert name not in names_of(left)
    assert evaluated(left, {}).likely == pytest.approx(evaluated(terms, sizes).likely)


@given(SUMS, SIZES, st.floats(1, 100))
def test_a_larger_size_costs_no_less(
    parts: list[tuple[float, str, int, str, int, bool]], sizes: dict[str, float], factor: float
) -> None:
    terms = _terms(polynomial(parts))
    larger = {name: value * factor for name, value in sizes.items()}
    assert evaluated(terms, larger).likely >= evaluated(terms, sizes).likely * (1 - 1e-9)


def test_no_result_is_negative_infinite_or_undefined() -> None:
    size = Growth("n")
    terms = [CostTerm(-1.0, -1.0, -1.0, (size,)), CostTerm(0.0, math.inf, math.inf, (size,))]
    amount = evaluated([*terms, CostTerm(-math.inf, -math.inf, 0.0)], {"n": 3.0})
    assert all(0 <= value < math.inf for value in (amount.least, amount.likely, amount.most))


def test_facts_at_a_size_are_nearly_those_of_a_text_that_fixes_it() -> None:
    loop = "def f(n: int) -> int:\n    total = 0\n    for i in range({}):\n        total += i * i\n    return total\n"
    symbolic, literal = facts(loop.format("n")), facts(loop.format(5000))
    at = facts_at(symbolic, {"n": 5000.0})
    assert at.fixed
    assert not at.latency.growth
    assert at.latency.known.likely == pytest.approx(literal.latency.known.likely, rel=0.02)
    assert at.latency.typical == pytest.approx(literal.latency.typical, rel=0.02)
    assert at.latency.large == pytest.approx(literal.latency.large, rel=0.02)
    [cause] = at.latency.causes
    assert cause.amount == pytest.approx(at.latency.typical, rel=0.2)


def test_a_size_that_is_not_given_stays_unknown() -> None:
    work = facts("def f(xs: list[int], ys: list[int]) -> int:\n    return sum(x * y for x in xs for y in ys)\n")
    at = facts_at(work, {"xs": 100.0})
    assert not at.fixed
    assert at.unknown_sizes == 1
    assert [growth.size for growth in at.latency.growth] == ["ys"]
    both = facts_at(work, {"xs": 100.0, "ys": 10.0})
    assert facts_at(at, {"ys": 10.0}).latency.known.likely == pytest.approx(both.latency.known.likely)


def test_facts_that_depend_on_no_given_size_stay_as_they_are() -> None:
    work = facts("def f(xs: list[int]) -> int:\n    return len(xs)\n")
    assert facts_at(work, {"other": 3.0}) == work


def test_calls_of_unknown_cost_are_counted_at_the_sizes() -> None:
    work = facts("def f(orders: list[str]) -> None:\n    open_all()\n    for order in orders:\n        fetch(order)\n")
    counts = {count.name: count.times for count in calls_at(work, {"orders": 10_000.0})}
    assert counts == {"fetch()": 10_000.0, "open_all()": 1.0}
    assert facts_at(work, {"orders": 10_000.0}).unknown_calls == 10_001
    assert dict(facts_at(work, {"orders": 10_000.0}).unknown)["fetch()"] == 10_000


def test_a_wait_for_each_item_is_a_wait_for_all_of_them() -> None:
    work = facts("def f(jobs: list[str]) -> None:\n    import time\n    for job in jobs:\n        time.sleep(0.1)\n")
    [wait] = facts_at(work, {"jobs": 50.0}).waits
    assert wait.kind is WaitKind.TIME
    assert wait.seconds is not None
    assert wait.seconds.likely == pytest.approx(5.0)
    assert not wait.per
