"""Unit costs: the fit of a law, and the measurement in a child process."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.library.unit_costs import growth
from rlm_core.errors import DataError

from tools.unit_costs import all_entries
from tools.unit_costs.entries import Entry, step
from tools.unit_costs.measuring import fit, measure


@given(st.floats(1e-9, 1e-3), st.floats(1e-10, 1e-6))
def test_a_fit_returns_the_law_that_the_points_follow(fixed: float, each: float) -> None:
    fitted_fixed, fitted_each = fit([(x, fixed + each * x) for x in (1.0, 100.0, 10_000.0)])
    assert fitted_fixed == pytest.approx(fixed, rel=1e-3, abs=each * 1e-2)
    assert fitted_each == pytest.approx(each, rel=1e-3, abs=fixed * 1e-6)


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(-1e-9, 1.0)), min_size=1, max_size=5))
def test_a_fitted_cost_is_never_negative(points: list[tuple[float, float]]) -> None:
    assert min(fit(points)) >= 0


def test_entries_have_one_name_each_and_a_law() -> None:
    entries = all_entries()
    assert len({entry.name for entry in entries}) == len(entries)
    assert len(entries) > 400
    for entry in entries:
        assert entry.law == "1" or growth(entry.law)
        assert list(entry.sizes) == sorted(entry.sizes)
        for n in entry.sizes[:1]:
            for text in entry.texts(n):
                compile(text, entry.name, "exec")


def test_sorting_is_measured_to_cost_more_per_item_than_adding() -> None:
    entries = [
        Entry("sum", "sum(a)", "a = list(range(n))", sizes=(10, 1000)),
        Entry("sorted", "sorted(a)", "a = [i * 7919 % 10007 for i in range(n)]", sizes=(10, 1000)),
    ]
    adding, sorting = (cost for _, cost in measure(entries, sys.executable))
    assert 0 < float(adding["each"]) < float(sorting["each"])


def test_a_snippet_that_fails_is_named() -> None:
    with pytest.raises(DataError, match="bad at 100: NameError"):
        list(measure([step("bad", "missing_name")], sys.executable))
