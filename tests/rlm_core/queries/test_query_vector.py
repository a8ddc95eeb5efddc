"""Workloads: slice names, dates, and the vector of device and workload."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import DataError
from rlm_core.queries.devices import device_table
from rlm_core.queries.query_vector import QUERY, decimal_year, query_vector, task_name, task_parts

names = st.sampled_from(["arg0", "arg1", "M", "N", "dtype", "mode", "backend", "dataset"])
values = st.one_of(
    st.sampled_from(["fp16", "fp32", "forward", "cifar10", ""]),
    st.integers(0, 10**6).map(str),
    st.lists(st.integers(0, 9999), min_size=1, max_size=4).map(lambda shape: "x".join(map(str, shape))),
    st.text(),
)
workloads = st.dictionaries(names, values)
devices = st.one_of(st.none(), st.sampled_from([*sorted(device_table())[:20], "a-device-that-nobody-knows"]))

days = st.dates(date(2015, 1, 1), date(2035, 12, 31))


def test_a_slice_is_named_by_basis_language_and_metric() -> None:
    assert task_name("program", "go", "latency") == "program/go/latency"


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


@given(devices, workloads)
def test_any_query_is_a_finite_vector(device: str | None, workload: dict[str, str]) -> None:
    found = query_vector(device, workload)
    assert found.shape == (QUERY,)
    assert found.dtype == np.float32
    assert np.all(np.isfinite(found))


@given(devices, workloads, st.randoms(use_true_random=False), st.one_of(st.none(), days.map(str), st.text()))
def test_neither_the_order_nor_the_date_counts(
    device: str | None, workload: dict[str, str], random: Random, day: str | None
) -> None:
    shuffled = [*workload.items(), *([("date", day)] if day is not None else [])]
    random.shuffle(shuffled)
    assert query_vector(device, dict(shuffled)).tolist() == query_vector(device, workload).tolist()


def test_an_empty_query_is_zeros() -> None:
    assert not query_vector(None, {}).any()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("nvidia-a100-sxm4-80gb", {}), ("nvidia-l40s", {})),
        (("somebodys-board", {}), ("anothers-board", {})),
        ((None, {"dtype": "fp16"}), (None, {"dtype": "fp32"})),
        ((None, {"dtype": "forward"}), (None, {"mode": "forward"})),
        ((None, {"M": "64"}), (None, {"M": "128"})),
        ((None, {"M": "64"}), (None, {"M": "64", "N": "64"})),
    ],
)
def test_different_queries_are_distinguished(
    first: tuple[str | None, dict[str, str]], second: tuple[str | None, dict[str, str]]
) -> None:
    assert query_vector(*first).tolist() != query_vector(*second).tolist()


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_larger_size_is_a_larger_number(first: int, second: int) -> None:
    small, large = (query_vector(None, {"M": str(size)}) for size in sorted((first, second)))
    assert np.all(large >= small)


def test_a_shape_counts_by_its_elements() -> None:
    assert query_vector(None, {"arg0": "64x32"}).tolist() == query_vector(None, {"arg0": "2048"}).tolist()


@pytest.mark.parametrize("value", ["9" * 5000, "x".join(["999999999"] * 1000), "1x", "x1", "-1", "1e5", "\ud800"])
def test_odd_sizes_are_words_and_no_error(value: str) -> None:
    assert np.all(np.isfinite(query_vector("x", {"M": value})))


@pytest.mark.parametrize(
    ("basis", "device", "name"),
    [
        ("program", "boj", "program/python/latency@boj"),
        ("program", "leetcode", "program/python/latency"),
        ("program", "measured-x86-64", "program/python/latency"),
        ("program", None, "program/python/latency"),
        ("call", "boj", "call/python/latency"),
    ],
)
def test_programs_of_each_judge_are_a_task(basis: str, device: str | None, name: str) -> None:
    assert task_name(basis, "python", "latency", device) == name
    parts = task_parts(name)
    assert (parts.basis, parts.language, parts.metric) == (basis, "python", "latency")
    assert parts.name == name
