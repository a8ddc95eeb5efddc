"""Which changes are marked: those that are sure enough, of what the label shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.types import CostRatio, GrowthEstimate, Wait, WaitKind
from rlm_lsp.history.comparison import GrowthRise, WaitChange, WorkChange
from rlm_lsp.lsp.features.comparison import change_rank
from rlm_lsp.lsp.features.head_diff import HeadDiff, comparable, is_sure, marks
from rlm_lsp.settings.model import Settings

from tests.fakes import NO_NUMBER, quantiles

pytestmark = pytest.mark.timeout(30)

MakePrediction = Callable[..., Prediction]


def change(ratio: float, factor: float = 1.3, metric: str = "latency", device: str | None = "x86-64") -> CostRatio:
    found = quantiles(ratio, factor)
    return CostRatio("call", metric, device, "test-1", ratio, (), found)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ratio", "factor", "mark"),
    [
        (2.1, 1.3, "▲ 2.1×"),
        (1 / 2.2, 1.3, "▼ 2.2×"),
        (2.1, 4.0, None),  # P(ratio > 1.5) is 62 %
        (1.45, 1.01, "≈"),
        (1.6, 1.01, "▲ 1.6×"),
        (0.7, 1.01, "≈"),
        (1.0, 1.5, None),  # P(1/1.5 < ratio < 1.5) is 80 %
        (0.6, 1.01, "▼ 1.7×"),
        (1e6, 2.0, "▲ >999×"),
    ],
)
def test_a_change_is_marked_when_it_is_large_and_sure(
    make_prediction: MakePrediction, ratio: float, factor: float, mark: str | None
) -> None:
    found = marks(HeadDiff("changed", (change(ratio, factor),)), [make_prediction()], Settings())
    assert found == ({"latency": (mark,)} if mark is not None else {})


def test_an_upper_end_has_no_ratio(make_prediction: MakePrediction) -> None:
    since = HeadDiff("changed", (change(110.0), change(2.0, metric="memory")))
    small, large = make_prediction(0.0, 3.9e-6), make_prediction(1e5, 2e5, metric="memory")
    assert marks(since, [small, large], Settings()) == {"memory": ("▲ 2× memory",)}
    assert comparable(since.changes, [small, large]) == [since.changes[1]]
    # A new wait is not a ratio.
    waits = HeadDiff("changed", since.changes, WorkChange((), WaitChange((Wait(WaitKind.NETWORK, 0, "get"),))))
    assert marks(waits, [small], Settings()) == {"latency": ("▲ new", "▲")}


def test_a_cost_is_about_the_same_only_if_all_are(make_prediction: MakePrediction) -> None:
    both = [make_prediction(), make_prediction(1e5, 2e5, metric="memory")]
    same, memory = change(1.1, 1.01), change(3.6, 1.1, metric="memory")
    assert marks(HeadDiff("changed", (same,)), both, Settings()) == {"latency": ("≈",)}
    assert marks(HeadDiff("changed", (same, memory)), both, Settings()) == {"memory": ("▲ 3.6× memory",)}
    # A new wait, and faster growth, say more.
    wait = WorkChange((), WaitChange((Wait(WaitKind.NETWORK, 0, "get"),)))
    assert marks(HeadDiff("changed", (same,), wait), both, Settings()) == {"latency": ("▲ new", "▲")}


def test_the_largest_change_is_that_of_the_ratios_as_they_are_shown() -> None:
    def units(*ratios: tuple[float, float]) -> list[HeadDiff]:
        return [HeadDiff("changed", (change(one), change(other, metric="memory"))) for one, other in ratios]

    faster = HeadDiff("changed", (), WorkChange((), WaitChange((Wait(WaitKind.NETWORK, 0, "get"),))))
    # Beyond 999 one ratio is as large as another, so the latencies decide between the first two.
    ordered = [faster, *units((2300, 4000), (870, 5000), (10, 900), (0.01, 1.0), (2.0, 2.0), (1.0, 1.0))]
    assert sorted(ordered[4:] + ordered[:4], key=lambda diff: change_rank(diff, Settings())) == ordered


def test_settings_say_how_large_and_how_sure(make_prediction: MakePrediction) -> None:
    since = HeadDiff("changed", (change(1.2, 1.3),))
    assert marks(since, [make_prediction()], Settings(change_ratio=1, change_confidence=0.8))
    assert not marks(since, [make_prediction()], Settings(change_ratio=1, change_confidence=0.95))
    assert not marks(since, [make_prediction()], Settings(change_ratio=1.2, change_confidence=0.6))


def test_only_what_is_shown_is_marked(make_prediction: MakePrediction) -> None:
    since = HeadDiff("changed", (change(3.0), change(3.0, metric="memory")))
    assert set(marks(since, [make_prediction()], Settings())) == {"latency"}
    assert marks(since, [make_prediction(device="arm64")], Settings()) == {}
    assert marks(since, [], Settings()) == {}
    # The first of several devices is the one in the label.
    both = [make_prediction(device="arm64"), make_prediction()]
    assert marks(since, both, Settings()) == {}
    assert set(marks(since, both[::-1], Settings())) == {"latency"}


def test_nothing_known_is_no_mark(make_prediction: MakePrediction) -> None:
    abstained = CostRatio("call", "latency", "x86-64", "test-1", None, (), (), NO_NUMBER)
    for since in (None, HeadDiff("new"), HeadDiff("same"), HeadDiff("changed"), HeadDiff("changed", (abstained,))):
        assert marks(since, [make_prediction()], Settings()) == {}


@given(
    st.floats(0.01, 100),
    st.floats(1.001, 50),
    st.floats(1, 10),
    st.floats(0.5, 0.99),
    st.floats(1, 3),
    st.floats(0, 0.2),
)
def test_further_queries_never_make_a_mark(
    ratio: float, factor: float, least: float, confidence: float, more: float, surer: float
) -> None:
    one = change(ratio, factor)
    strict = Settings(change_ratio=least * more, change_confidence=min(confidence + surer, 0.99))
    if is_sure(one, strict):
        assert is_sure(one, Settings(change_ratio=least, change_confidence=confidence))


def risen(metric: str = "latency", probability: float = 0.9) -> GrowthRise:
    return GrowthRise(metric, GrowthEstimate("n", probability), GrowthEstimate("n^2", 1.0, ("xs",)))  # type: ignore[arg-type]


def test_a_rise_of_growth_follows_the_ratio(make_prediction: MakePrediction) -> None:
    both = HeadDiff("changed", (change(3.1),), WorkChange((risen(),)))
    assert marks(both, [make_prediction()], Settings()) == {"latency": ("▲ 3.1×, n → n^2", "▲ 3.1×")}
    alone = HeadDiff("changed", (), WorkChange((risen(),)))
    assert marks(alone, [make_prediction()], Settings()) == {"latency": ("▲ n → n^2", "▲")}
    assert marks(alone, [make_prediction()], Settings(growth_confidence=0.95)) == {}
    assert marks(alone, [make_prediction(metric="memory")], Settings()) == {}


def test_a_new_wait_is_marked_whatever_the_ratio_of_computing(make_prediction: MakePrediction) -> None:
    waiting = WorkChange(wait=WaitChange((Wait(WaitKind.NETWORK, 1, "get"),)))
    for changes in ((), (change(0.3),)):
        diff = HeadDiff("changed", changes, waiting)
        assert marks(diff, [make_prediction()], Settings()) == {"latency": ("▲ new", "▲")}
    assert marks(HeadDiff("changed", (), waiting), [], Settings()) == {}


def test_a_longer_sleep_is_marked_with_its_ratio_where_the_model_has_none(make_prediction: MakePrediction) -> None:
    longer = WorkChange(wait=WaitChange(seconds=(0.001, 0.01)))
    assert marks(HeadDiff("changed", (), longer), [make_prediction()], Settings()) == {"latency": ("▲ 10×",)}
    known = HeadDiff("changed", (change(8.0),), longer)
    assert marks(known, [make_prediction()], Settings()) == {"latency": ("▲ 8×",)}
