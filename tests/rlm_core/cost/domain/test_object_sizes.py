"""Sizes of objects against tracemalloc, on the running interpreter."""

from __future__ import annotations

import sys
import tracemalloc
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.object_sizes import container, instance, scalar
from rlm_core.cost.domain.quantities import constant, of_size

SIZES = (10, 100, 1000, 30_000, 100_000)


def _traced(make: Callable[[], object]) -> tuple[int, int]:
    """Bytes that a value holds, and the peak while it is made."""
    make()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        value = make()
        held, peak = tracemalloc.get_traced_memory()
        del value
    finally:
        tracemalloc.stop()
    return held - before, peak - before


def _appended(size: int) -> list[None]:
    values: list[None] = []
    for _ in range(size):
        values.append(None)  # noqa: PERF401 - growth by append is what is measured
    return values


def _size(kind: str, size: int, *, grown: bool = False) -> float:
    exact = container(kind, constant(size), grown=grown).exact
    assert exact is not None
    return exact


@pytest.mark.parametrize("size", SIZES)
def test_containers_take_what_tracemalloc_sees(size: int) -> None:
    items = list(range(size))
    makers: dict[str, Callable[[], object]] = {
        "list": lambda: [None] * size,
        "tuple": lambda: (None,) * size,
        "dict": lambda: dict.fromkeys(items),
        "set": lambda: set(items),
        "deque": lambda: deque(items),
        "str": lambda: "x" * size,
        "bytes": lambda: bytes(size),
        "bytearray": lambda: bytearray(size),
    }
    for kind, make in makers.items():
        held, _ = _traced(make)
        assert _size(kind, size) == pytest.approx(held, rel=0.1, abs=160), kind


@pytest.mark.parametrize("size", SIZES)
def test_grown_containers_take_their_peak(size: int) -> None:
    items = list(range(size))
    assert _size("list", size, grown=True) == pytest.approx(_traced(lambda: _appended(size))[1], rel=0.1, abs=120)
    assert _size("set", size, grown=True) == pytest.approx(_traced(lambda: set(items))[1], rel=0.15, abs=200)
    assert _size("dict", size, grown=True) == pytest.approx(_traced(lambda: dict.fromkeys(items))[1], rel=0.15, abs=300)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.sampled_from(["list", "tuple", "set", "dict", "str", "deque"]))
def test_more_items_never_take_less(one: int, other: int, kind: str) -> None:
    small, large = sorted((one, other))
    for grown in (False, True):
        assert _size(kind, small, grown=grown) <= _size(kind, large, grown=grown)


@given(st.integers(0, 10**7), st.sampled_from(["list", "set", "dict"]))
def test_growing_never_takes_less(size: int, kind: str) -> None:
    assert _size(kind, size, grown=True) >= _size(kind, size)


def test_a_size_that_is_not_known_grows_in_proportion() -> None:
    assert container("list", of_size("n")).names == {"n"}


@pytest.mark.parametrize("value", [300, 2**40, 10**100, 2.5, "text of some length", "straße", b"some bytes"])
def test_scalars_take_what_tracemalloc_sees(value: object) -> None:
    assert scalar(type(value).__name__, value) == pytest.approx(sys.getsizeof(value), abs=16)


@pytest.mark.parametrize("value", [None, True, 0, 256, -5, "", "a"])
def test_shared_values_take_nothing(value: object) -> None:
    assert scalar("none" if value is None else type(value).__name__, value) == 0


class Point:
    def __init__(self) -> None:
        self.x, self.y, self.z = None, None, None


def test_an_instance_takes_its_attributes() -> None:
    held, _ = _traced(lambda: [Point() for _ in range(1000)])
    assert instance(3) == pytest.approx((held - 8856) / 1000, rel=0.25)
