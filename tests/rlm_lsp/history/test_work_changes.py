"""An edit that makes the cost grow faster, or the unit wait: what counts, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.types import (
    GROWTH_CLASSES,
    Amount,
    CodeText,
    GrowthClass,
    GrowthEstimate,
    Wait,
    WaitKind,
    WorkFacts,
)
from rlm_lsp.history.work_changes import WaitChange, growth_rise, wait_change, work_change

pytestmark = pytest.mark.timeout(30)

MakePrediction = Callable[..., Prediction]
CLASSES = st.sampled_from(GROWTH_CLASSES)
NOTHING = WorkFacts()
NETWORK = Wait(WaitKind.NETWORK, 2, "requests.get")


def sleeping(seconds: float, share: float = 1.0) -> WorkFacts:
    return WorkFacts(waits=(Wait(WaitKind.TIME, 1, "time.sleep", Amount(seconds, seconds, seconds), share),))


@pytest.mark.parametrize(
    ("before", "after", "rises"),
    [
        ("1", "log n", True),
        ("log n", "sqrt n", True),
        ("sqrt n", "n", True),
        ("n", "n log n", True),
        ("n log n", "mn", True),
        ("n log n", "n^2", True),
        ("mn", "n^2", False),
        ("n^2", "mn", False),
        ("n^2", "n^3", True),
        ("n^3", "2^n", True),
        ("n^2", "n", False),
        ("other", "2^n", False),
        ("1", "other", False),
    ],
)
def test_classes_are_ordered(
    make_prediction: MakePrediction, before: GrowthClass, after: GrowthClass, rises: bool
) -> None:
    old, new = (make_prediction(growth=GrowthEstimate(name, 1.0)) for name in (before, after))
    assert (growth_rise(old, new) is not None) is rises


@given(CLASSES, CLASSES, CLASSES)
def test_the_order_has_no_cycle(
    make_prediction: MakePrediction, a: GrowthClass, b: GrowthClass, c: GrowthClass
) -> None:
    first, second, third = (make_prediction(growth=GrowthEstimate(name, 1.0)) for name in (a, b, c))
    assert growth_rise(first, second) is None or growth_rise(second, first) is None
    if growth_rise(first, second) and growth_rise(second, third):
        assert growth_rise(first, third)


def test_a_rise_is_as_likely_as_its_less_certain_side(make_prediction: MakePrediction) -> None:
    before, after = GrowthEstimate("n", 0.85), GrowthEstimate("n^2", 0.9, ("values",))
    rise = growth_rise(make_prediction(growth=before), make_prediction(growth=after))
    assert rise is not None
    assert (rise.before, rise.after, rise.metric, rise.probability) == (before, after, "latency", 0.85)
    unsure = replace(before, probability=0.79)
    assert growth_rise(make_prediction(growth=unsure), make_prediction(growth=after)) is None


def test_unknown_growth_and_fixed_sizes_do_not_rise(make_prediction: MakePrediction) -> None:
    grown = make_prediction(growth=GrowthEstimate("n^2", 1.0))
    assert growth_rise(make_prediction(), grown) is None
    assert growth_rise(grown, make_prediction()) is None
    constant = make_prediction(growth=GrowthEstimate("1", 1.0), basis="kernel")
    assert growth_rise(constant, make_prediction(growth=GrowthEstimate("n^2", 1.0), basis="kernel")) is None


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (NOTHING, WorkFacts(waits=(NETWORK,)), WaitChange((NETWORK,))),
        (WorkFacts(waits=(NETWORK,)), WorkFacts(waits=(NETWORK, NETWORK)), None),
        (WorkFacts(waits=(NETWORK,)), NOTHING, None),
        (NOTHING, WorkFacts(waits=(Wait(WaitKind.NETWORK, 2, "get", None, 0.1),)), None),
        (NOTHING, WorkFacts(endless=3), WaitChange(endless=3)),
        (WorkFacts(endless=1), WorkFacts(endless=3), None),
        (NOTHING, sleeping(1.0), WaitChange(seconds=(0.0, 1.0))),
        (sleeping(0.001), sleeping(10.0), WaitChange(seconds=(0.001, 10.0))),
        (sleeping(10.0), sleeping(0.001), None),
        (sleeping(1.0), sleeping(1.1), None),
        (NOTHING, sleeping(1e-6), None),
        (
            sleeping(1.0),
            WorkFacts(waits=(Wait(WaitKind.TIME, 1, "sleep"),)),
            WaitChange((Wait(WaitKind.TIME, 1, "sleep"),)),
        ),
        (None, sleeping(1.0), None),
        (NOTHING, WorkFacts(waits=(Wait(WaitKind.THREAD, 2, "self.lock.acquire"),)), None),
    ],
)
def test_what_is_waited_for_and_was_not(before: WorkFacts | None, after: WorkFacts, change: WaitChange | None) -> None:
    assert wait_change(before, after, "call") == change


def test_a_sleep_that_does_not_matter_is_not_reported() -> None:
    assert wait_change(NOTHING, sleeping(0.01), "call", cost=1.0) is None
    assert wait_change(NOTHING, sleeping(0.5), "call", cost=1.0) is not None


def test_a_program_has_its_input_before_it_starts() -> None:
    reading = WorkFacts(waits=(Wait(WaitKind.USER, 0, "input"),))
    assert wait_change(NOTHING, reading, "call") is not None
    assert wait_change(NOTHING, reading, "program") is None


def test_texts_are_compared_metric_by_metric(make_prediction: MakePrediction) -> None:
    linear, quadratic = GrowthEstimate("n", 1.0), GrowthEstimate("n^2", 1.0)
    before = [make_prediction(growth=linear), make_prediction(metric="memory", growth=linear)]
    after = [make_prediction(metric="memory", growth=quadratic), make_prediction(growth=linear, median=1.0)]
    texts = (CodeText("a", "python", "call", work=NOTHING), CodeText("b", "python", "call", work=sleeping(1.0)))
    change = work_change(*texts, (before, after))
    assert [(rise.metric, rise.after) for rise in change.growth] == [("memory", quadratic)]
    assert change.wait == WaitChange(seconds=(0.0, 1.0))
    assert change.wait.is_new


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        (WaitChange((NETWORK,)), True),
        (WaitChange(endless=0), True),
        (WaitChange(seconds=(0.0, 1.0)), True),
        (WaitChange(seconds=(0.1, 1.0)), False),
    ],
)
def test_a_longer_wait_is_not_a_new_one(change: WaitChange, is_new: bool) -> None:
    assert change.is_new is is_new
