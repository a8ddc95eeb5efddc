"""What measuring costs: found at the start, and again after tests of whose calls it is much."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import astuple

import pytest
from rlm_core.measurement.functions.injected.rlm_probe import calibration
from rlm_core.measurement.functions.injected.rlm_probe.calibration import Calibrator, Make, Watcher, calibrate_memory
from rlm_core.measurement.functions.injected.rlm_probe.function_registry import FunctionRegistry, Scope
from rlm_core.measurement.functions.injected.rlm_probe.injection import Injector
from rlm_core.measurement.functions.injected.rlm_probe.latency import Costs, LatencyMeter
from rlm_core.measurement.functions.injected.rlm_probe.monitoring import Monitor

pytestmark = pytest.mark.timeout(120)

WAYS: list[Make] = [Injector, Monitor] if sys.version_info >= (3, 12) else [Injector]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def watched(request: pytest.FixtureRequest) -> Iterator[tuple[FunctionRegistry, Watcher]]:
    """A roster with a limit of one call, and what watches its functions."""
    roster = FunctionRegistry(1)
    watcher: Watcher = request.param(Scope(()), roster, LatencyMeter(roster))
    yield roster, watcher
    watcher.stop()


def test_calibration_finds_what_watching_costs(watched: tuple[FunctionRegistry, Watcher]) -> None:
    roster, watcher = watched
    calibrator = Calibrator(watcher)
    costs = calibrator.costs
    for cost in (costs.own, costs.event, costs.inner):
        assert 10 < cost < 100_000
    # Its own functions are nobody's: no test has reached them, and no limit of calls holds for them.
    assert roster.end() == []
    function, empty = watcher.subjects()[0]
    function.raw.clear()
    for _ in range(300):
        empty(0)
    assert len(function.raw) == 300
    # With these costs taken off, nothing is left of a function that does nothing.
    calibrator.settle([function])
    assert function.raw == []
    assert abs(sorted(function.samples)[30]) < costs.own + 1000


@pytest.mark.parametrize(
    ("loops", "empty", "steady", "own"),
    [
        ([8.0, 8.0, 8.0], [28.0, 29.0, 30.0], True, 220.0),
        # Only the empty loop was slow, and its first round fast by chance.
        ([7.0, 8.0, 500.0], [28.0, 29.0, 30.0], True, 219.0),
        ([8.0, 8.0, 8.0], [28.0, 50.0, 90.0], False, 220.0),
    ],
)
def test_a_machine_is_restless_where_rounds_of_calls_differ(
    watched: tuple[FunctionRegistry, Watcher],
    monkeypatch: pytest.MonkeyPatch,
    loops: list[float],
    empty: list[float],
    steady: bool,
    own: float,
) -> None:
    times = [loops, empty, [240.0] * 3, *([[5000.0] * 3] * 6)]
    monkeypatch.setattr(Calibrator, "_rounds", lambda calibrator, count: times)
    calibrator = Calibrator(watched[1])
    assert (calibrator.steady, calibrator.costs.own) == (steady, own)


def test_costs_that_are_much_of_a_call_are_found_again_after_its_test(
    watched: tuple[FunctionRegistry, Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "_INTERVAL", 1 << 60)  # never because of the time that has passed
    roster, watcher = watched
    calibrator = Calibrator(watcher)
    # As after a start on a machine that was ten times slower.
    slow = calibrator.costs = Costs(*(10 * cost for cost in astuple(calibrator.costs)))
    function = roster.function("m", "f", "m.py", 1, "function")
    light, heavy = ((round(times * slow.inner * 1000), 0, 1000, 0) for times in (20, 2))
    function.raw.append(light)
    calibrator.settle([function])
    assert calibrator.costs == slow
    function.raw.append(heavy)
    calibrator.settle([function])
    found = calibrator.costs
    assert 0 < found.inner < slow.inner / 2
    assert function.samples.tolist() == [round(light[0] - slow.of(light)), round(heavy[0] - found.of(heavy))]


def test_costs_stay_where_nothing_is_seen_any_more(watched: tuple[FunctionRegistry, Watcher]) -> None:
    roster, watcher = watched
    calibrator = Calibrator(watcher)
    watcher.stop()
    costs = calibrator.costs
    function = roster.function("m", "f", "m.py", 1, "function")
    function.raw.append((1000, 0, 1000, 0))
    calibrator.settle([function])
    assert calibrator.costs == costs
    assert function.samples.tolist() == [round(1000 - costs.of((1000, 0, 1000, 0)))]


def test_costs_are_taken_off_by_what_happened_in_a_call() -> None:
    one, other = Costs(1.0, 2.0, 3.0, 4.0), Costs(2.0, 4.0, 3.0, 2.0)
    assert one.least(other) == Costs(1.0, 2.0, 3.0, 2.0)
    assert other.of((0, 10, 100, 1000)) == 2 + 40 + 300 + 2000
    assert other.weigh((9000, 0, 1000, 0), 3000)
    assert not other.weigh((9000, 0, 1000, 0), 3010)
    assert not other.weigh((12_010, 0, 1000, 0), 0)


@pytest.mark.parametrize("make", WAYS, ids=lambda way: way.__name__)
def test_a_function_that_does_nothing_takes_next_to_no_memory(make: Make) -> None:
    try:
        assert 0 <= calibrate_memory(make) < 1024
    finally:
        tracemalloc.stop()
