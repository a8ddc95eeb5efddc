"""Adding up regions: shares of runs, repetitions, branches, waits, memory and causes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.meter import ALWAYS, Meter, largest_causes, scaled
from rlm_core.cost.domain.quantities import ZERO, constant, of_size
from rlm_core.types import CauseKind, WaitKind

AMOUNTS = st.floats(0, 1e6)
SHARES = st.floats(0, 1)


def metered(seconds: float, *, peak: float = 0.0, unknown: float = 0.0) -> Meter:
    """A region that spends and holds this."""
    meter = Meter()
    meter.spend(seconds)
    meter.hold(constant(peak))
    if unknown:
        meter.miss("fetch()", constant(unknown))
    return meter


@given(st.lists(AMOUNTS, max_size=20))
def test_what_is_spent_adds_up(amounts: list[float]) -> None:
    meter = Meter()
    for position, amount in enumerate(amounts):
        meter.spend(amount if position % 2 else constant(amount))
    assert meter.total.exact == pytest.approx(sum(amounts), rel=1e-9)


@given(AMOUNTS, SHARES)
def test_what_some_runs_spend_is_weighted(amount: float, share: float) -> None:
    meter = Meter(reach=(0.0, share, 1.0))
    meter.spend(amount)
    assert meter.total.evaluate(lambda name: 0) == pytest.approx((0, amount * share, amount))


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(1, 1000))
def test_a_region_that_repeats_costs_each_time_and_holds_once(
    seconds: float, peak: float, unknown: float, times: int
) -> None:
    outer = Meter()
    outer.add(metered(seconds, peak=peak, unknown=unknown), constant(times))
    assert outer.total.exact == pytest.approx(seconds * times)
    assert outer.unknown.get("fetch()", ZERO).exact == pytest.approx(unknown * times)
    assert outer.peak.exact == pytest.approx(peak)


def test_what_is_held_around_a_region_counts_too() -> None:
    outer = Meter()
    outer.add(metered(1, peak=100), held=constant(50))
    outer.add(metered(1, peak=20), held=constant(50))
    assert outer.peak.exact == 150


@given(AMOUNTS, AMOUNTS, SHARES)
def test_a_branch_costs_between_its_regions(first: float, second: float, share: float) -> None:
    outer = Meter()
    outer.branch([((0.0, share, 1.0), metered(first)), ((0.0, 1 - share, 1.0), metered(second))])
    low, likely, high = outer.total.evaluate(lambda name: 0)
    assert low == min(first, second)
    assert likely == pytest.approx(share * first + (1 - share) * second)
    assert high == max(first, second)


def test_waits_at_one_place_are_one_wait() -> None:
    outer = Meter()
    for _ in range(1000):
        body = Meter()
        body.wait(WaitKind.TIME, 3, "time.sleep", constant(2))
        body.wait(WaitKind.NETWORK, 4, "get", None)
        outer.add(body)
    known, unknown = outer.waits
    assert known.seconds is not None
    assert (known.line, known.seconds.exact, known.share) == (3, 2000, (1, 1, 1))
    assert (unknown.line, unknown.seconds) == (4, None)


def test_waits_of_other_places_are_kept_up_to_a_bound() -> None:
    meter = Meter()
    for line in range(100):
        meter.wait(WaitKind.TIME, line, "time.sleep", constant(1))
    assert 8 <= len(meter.waits) < 100


def test_waits_of_a_loop_repeat_unless_they_happen_at_the_same_time() -> None:
    body = Meter()
    body.wait(WaitKind.TIME, 0, "sleep", constant(2))
    one_after_another, at_once = Meter(), Meter(parallel=True)
    for outer in (one_after_another, at_once):
        outer.add(body, constant(10))
    assert [outer.waits[0].seconds.exact for outer in (one_after_another, at_once) if outer.waits[0].seconds] == [20, 2]


def test_a_wait_of_a_loop_that_may_not_be_entered_has_a_share() -> None:
    body, outer = Meter(), Meter()
    body.wait(WaitKind.TIME, 0, "sleep", constant(1))
    outer.add(body, of_size("n"))
    assert outer.waits[0].share[0] == 0
    assert outer.waits[0].share[2] == 1


def test_the_likeliest_endless_loop_is_kept() -> None:
    rare, sure, outer = Meter(), Meter(), Meter()
    rare.run_on(1)
    sure.run_on(2)
    outer.branch([((0.0, 0.1, 1.0), rare), ((0.0, 0.9, 1.0), sure)])
    assert outer.endless == (2, 0.9)


def test_a_loop_multiplies_times_and_not_allocations_of_its_causes() -> None:
    body, outer = Meter(), Meter()
    body.cause(CauseKind.CALL, 1, "f", constant(2))
    body.cause(CauseKind.ALLOCATION, 2, "list", constant(100))
    outer.add(body, constant(5))
    assert [(cause.amount.exact, cause.count.exact) for cause in outer.causes] == [(10, 5), (100, 5)]


@given(st.lists(AMOUNTS, min_size=30, max_size=60))
def test_the_largest_causes_are_kept(amounts: list[float]) -> None:
    meter = Meter()
    for line, amount in enumerate(amounts):
        meter.cause(CauseKind.CALL, line, "f", constant(amount))
    kept = sorted((cause.amount.evaluate(lambda name: 0)[1] for cause in largest_causes(meter.causes)), reverse=True)
    assert kept == sorted(amounts, reverse=True)[: len(kept)]
    assert len(kept) >= 6


@given(SHARES, SHARES)
def test_a_share_of_a_share(first: float, second: float) -> None:
    left = (0.0, first, 1.0)
    assert scaled(ALWAYS, left) == left
    assert scaled(left, (second, second, second)) == (0.0, first * second, second)


def test_nothing_costs_nothing() -> None:
    meter = Meter()
    meter.add(Meter(), constant(10))
    assert meter.total == ZERO
    assert meter.peak == ZERO
