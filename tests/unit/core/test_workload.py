"""Workloads: slice names and dates."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import DataError
from rlm_core.workload import decimal_year, slice_name

days = st.dates(date(2015, 1, 1), date(2035, 12, 31))


def test_a_slice_is_named_by_basis_language_and_metric() -> None:
    assert slice_name("program", "go", "latency") == "program/go/latency"


@given(days)
def test_a_date_lies_within_its_year(day: date) -> None:
    assert day.year <= decimal_year({"date": day.isoformat()}) < day.year + 1


@given(days)
def test_a_later_day_is_a_later_date(day: date) -> None:
    later = day + timedelta(days=1)
    assert decimal_year({"date": day.isoformat()}) < decimal_year({"date": later.isoformat()})


def test_no_date_is_0() -> None:
    assert decimal_year({"judge": "leetcode"}) == 0


@pytest.mark.parametrize("text", ["", "2024", "2024-13-01", "31.12.2024", "today"])
def test_what_is_no_date_is_an_error_that_shows_one(text: str) -> None:
    with pytest.raises(DataError, match=r"is not YYYY-MM-DD; write it like 2026-01-31"):
        decimal_year({"date": text})
