"""Labels of hints: exact texts for typical predictions, and laws for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.inference.anchoring import anchored_prediction, measured_prediction
from rlm_core.types import Amount, CalibrationSource, CostFacts, MeasurementMark, Metric, Wait, WaitKind, WorkFacts
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.hint_label import Marks, label
from rlm_lsp.settings.model import MAX_LABEL, LabelForm

from tests.fakes import NO_NUMBER
from tests.rlm_core.inference.test_anchoring import AFTER, cost, ratio_of

from .test_labels import METRICS, VALUES, MakePrediction

pytestmark = pytest.mark.timeout(60)

SECONDS = st.floats(0, 1e9)


WORK = st.builds(
    WorkFacts,
    waits=st.lists(
        st.builds(
            Wait,
            st.sampled_from(WaitKind),
            st.just(0),
            st.just("call"),
            st.none() | st.tuples(SECONDS, SECONDS, SECONDS).map(lambda bounds: Amount(*sorted(bounds))),
            st.floats(0, 1),
        ),
        max_size=3,
    ).map(tuple),
    endless=st.none() | st.just(0),
)


def test_the_label_joins_the_bands_of_all_metrics(make_prediction: Callable[..., Prediction]) -> None:
    memory = make_prediction(0.0, 3072.0, metric="memory", floor=64.0)
    assert label([make_prediction(), memory]) == "10–160 µs · ≤3 KiB"


def test_the_label_leaves_out_metrics_on_which_the_model_abstains(make_prediction: Callable[..., Prediction]) -> None:
    assert label([make_prediction(), make_prediction(metric="memory", abstained=NO_NUMBER)]) == "10–160 µs"
    assert label([make_prediction(abstained=NO_NUMBER)]) == ""


def test_a_long_label_loses_lower_ends_from_the_last_metric_on(make_prediction: Callable[..., Prediction]) -> None:
    memory = make_prediction(180.0, 1.2 * 2**20, metric="memory", floor=64.0)
    latency = make_prediction(8e-5, 2e-3)
    assert label([latency, memory], width=27) == "80 µs–2 ms · 180 B–1.2 MiB"
    assert label([latency, memory]) == "80 µs–2 ms · ≤1.2 MiB"
    assert label([latency, memory], width=20) == "≤2 ms · ≤1.2 MiB"
    assert label([latency, memory], width=12) == "80 µs–2 ms"


@pytest.mark.parametrize(
    ("low", "median", "high", "text"),
    [
        (1e-5, 4e-5, 1.6e-4, "40 −30/+120 µs"),
        (1e-5, 8.5e-5, 1.6e-4, "85 ±75 µs"),
        (0.0, 4e-5, 1.6e-4, ""),
        (1e-5, 4e-5, float("inf"), ""),
        (1e-5, 0.0, 1.6e-4, ""),
    ],
)
def test_the_ends_of_a_band_are_shown_as_distances_where_both_are_known(
    make_prediction: Callable[..., Prediction], low: float, median: float, high: float, text: str
) -> None:
    prediction = make_prediction(low, high, median=median)
    assert render.spread(prediction) == text
    assert label([prediction], "median±") == (text or label([prediction]))


def test_a_label_has_room_for_the_bands_of_a_network(make_prediction: MakePrediction) -> None:
    answers = [make_prediction(0.9358, 0.9414, metric="accuracy"), make_prediction(9.5e-4, 1.1e-3)]
    assert label(answers) == "93.6–94.1 % · 0.95–1.1 ms"


def test_of_several_devices_and_sizes_the_first_is_shown(make_prediction: Callable[..., Prediction]) -> None:
    predictions = [make_prediction(median=value, low=value / 2, high=value * 2) for value in (1e-3, 2e-3, 3e-3)]
    assert label(predictions) == "0.5–2 ms +2"
    assert label(predictions, width=8) == "0.5–2 ms"
    assert label([make_prediction(abstained=NO_NUMBER), *predictions[1:]]) == "1–4 ms +1"


def test_a_mark_stays_longer_than_the_second_metric(make_prediction: Callable[..., Prediction]) -> None:
    latency, memory = make_prediction(), make_prediction(2048.0, 3072.0, metric="memory")
    assert label([latency, memory], marks={"latency": ("▲ 2.1×",)}) == "10–160 µs ▲ 2.1× · ≤3 KiB"
    assert label([latency, memory], width=16, marks={"latency": ("▲ 2.1×",)}) == "10–160 µs ▲ 2.1×"
    assert label([latency, memory], width=16, marks={"memory": ("▼ 1.8×",)}) == "2–3 KiB ▼ 1.8×"
    assert label([latency, memory], width=9, marks={"latency": ("▲ 2.1×",)}) == "10–160 µs"


def test_a_mark_has_shorter_forms_for_narrow_labels(make_prediction: Callable[..., Prediction]) -> None:
    marks: Marks = {"latency": ("▲ 2.1×, n → n^2", "▲ 2.1×")}
    assert label([make_prediction()], marks=marks) == "10–160 µs ▲ 2.1×, n → n^2"
    assert label([make_prediction()], width=24, marks=marks) == "85 µs ▲ 2.1×, n → n^2"
    assert label([make_prediction()], width=16, marks=marks) == "10–160 µs ▲ 2.1×"
    assert label([make_prediction()], width=14, marks={"latency": ("▲ 2.1×",)}) == "85 µs ▲ 2.1×"


def wait(kind: WaitKind, *seconds: float, share: float = 1.0) -> Wait:
    return Wait(kind, 0, "call", Amount(*seconds) if seconds else None, share)


ONE_SECOND = wait(WaitKind.TIME, 1.0, 1.0, 1.0)


NETWORK = wait(WaitKind.NETWORK)


@pytest.mark.parametrize(
    ("waits", "median", "text"),
    [
        ([ONE_SECOND], 1.00002, "≥1 s waits · 20 µs"),
        ([wait(WaitKind.TIME, 0.5, 1.0, 2.0)], 1.00002, "≥500 ms waits · 20 µs"),
        ([NETWORK], 2e-5, "waits: network · 20 µs"),
        ([wait(WaitKind.PROCESS)], 2e-5, "waits: process · 20 µs"),
        ([wait(WaitKind.USER)], 2e-5, "waits: user · 20 µs"),
        ([wait(WaitKind.THREAD)], 2e-5, "waits: thread · 20 µs"),
        ([wait(WaitKind.TIME)], 2e-5, "waits: sleep · 20 µs"),
        ([NETWORK, NETWORK, wait(WaitKind.USER)], 2e-5, "waits: user +1 · 20 µs"),
        ([NETWORK, ONE_SECOND], 1.00002, "waits: network, ≥1 s"),
        ([wait(WaitKind.TIME, 0.0, 5.0, 30.0, share=0.4)], 5.00002, "≤30 s waits · 20 µs"),
        # A loop over an input: no item at the least, and no bound above.
        ([replace(wait(WaitKind.TIME, 0.0, 0.5, 0.5), per=("jobs",))], 0.50002, "≥500 ms waits · 20 µs"),
        # Some calls find what they wait for at once, and others wait more than once.
        ([replace(wait(WaitKind.TIME, 0.0, 0.7, 2.0, share=0.8), per=("?1",))], 0.70002, "waits: sleep · 20 µs"),
        ([replace(wait(WaitKind.TIME, 0.0, 0.5, 0.5), per=("jobs",)), ONE_SECOND], 1.50002, "≥1.5 s waits · 20 µs"),
        ([replace(wait(WaitKind.TIME, 0.0, 0.0, 5.0, share=0.05), on_error=True)], 8.5e-5, "10–160 µs"),
        ([Wait(WaitKind.THREAD, 0, "lock.acquire")], 8.5e-5, "10–160 µs"),
        ([wait(WaitKind.THREAD, 0.0, 1.0, 5.0)], 2e-5, "waits: thread · 20 µs"),
        ([wait(WaitKind.NETWORK, share=0.1)], 8.5e-5, "10–160 µs"),
        ([wait(WaitKind.TIME, 0.0, 0.0, 0.0)], 8.5e-5, "10–160 µs"),
        # A short wait does not dominate.
        ([wait(WaitKind.TIME, 0.001, 0.001, 0.001)], 1.0, "10–160 µs"),
        ([], 8.5e-5, "10–160 µs"),
    ],
)
def test_a_unit_that_waits_shows_that_and_its_computing_time(
    make_prediction: Callable[..., Prediction], waits: list[Wait], median: float, text: str
) -> None:
    work = WorkFacts(waits=tuple(waits))
    assert label([make_prediction(median=median)], work=work) == text


def test_a_wide_label_names_everything_that_is_waited_for(make_prediction: Callable[..., Prediction]) -> None:
    work = WorkFacts(waits=(NETWORK, wait(WaitKind.PROCESS), ONE_SECOND))
    memory = make_prediction(0.0, 3072.0, metric="memory")
    predictions = [make_prediction(median=1.00002), memory]
    assert label(predictions, width=60, work=work) == "waits: network, process, ≥1 s · 20 µs · ≤3 KiB"
    assert label(predictions, width=60, named=True, work=WorkFacts(waits=(NETWORK,))) == (
        "latency waits: network · 1 s · peak memory ≤3 KiB"
    )


def test_the_computing_time_stays_longer_than_the_second_metric(make_prediction: Callable[..., Prediction]) -> None:
    work, memory = WorkFacts(waits=(NETWORK,)), make_prediction(0.0, 3072.0, metric="memory")
    predictions = [make_prediction(median=2e-5), memory]
    assert label(predictions, width=31, work=work) == "waits: network · 20 µs · ≤3 KiB"
    assert label(predictions, work=work) == "waits: network · 20 µs"
    assert label(predictions, width=20, work=work) == "waits: network"
    assert label(predictions, width=8, work=work) == "waits"


def test_much_memory_is_shown_next_to_a_wait_instead_of_the_computing_time(
    make_prediction: Callable[..., Prediction],
) -> None:
    work, memory = WorkFacts(waits=(ONE_SECOND,)), make_prediction(7e7, 9e7, metric="memory")
    assert label([make_prediction(median=1.00002), memory], work=work) == "≥1 s waits · ≤86 MiB"


def test_the_computing_time_is_at_least_what_the_text_fixes(make_prediction: Callable[..., Prediction]) -> None:
    work = WorkFacts(CostFacts(Amount(0.3, 0.3, 0.3)), waits=(ONE_SECOND,))
    assert label([make_prediction(median=0.9)], work=work) == "≥1 s waits · 300 ms"


def test_what_may_not_end_has_no_computing_time(make_prediction: Callable[..., Prediction]) -> None:
    memory = make_prediction(0.0, 3072.0, metric="memory")
    assert label([make_prediction(), memory], work=WorkFacts(endless=0)) == "may not end · ≤3 KiB"
    work = WorkFacts(waits=(NETWORK,), endless=0)
    assert label([make_prediction()], work=work) == "may not end"
    assert label([make_prediction()], width=40, work=work) == "may not end, waits: network"


def test_a_wait_is_shown_where_the_model_abstains(make_prediction: Callable[..., Prediction]) -> None:
    assert label([make_prediction(abstained=NO_NUMBER)], work=WorkFacts(waits=(NETWORK,))) == "waits: network"
    memory = make_prediction(abstained=NO_NUMBER, metric="memory")
    assert label([memory], work=WorkFacts(waits=(NETWORK,))) == ""


def test_a_label_may_name_its_metrics(make_prediction: Callable[..., Prediction]) -> None:
    memory = make_prediction(0.0, 3072.0, metric="memory")
    assert label([make_prediction(), memory], width=60, named=True) == "latency 10–160 µs · peak memory ≤3 KiB"


@given(
    st.lists(st.tuples(METRICS, VALUES, VALUES, VALUES), max_size=4),
    st.sampled_from(["band", "median", "median±"]),
    st.integers(5, 25),
    st.dictionaries(METRICS, st.lists(st.floats(1e-9, 1e9).map(render.mark), min_size=1, max_size=3)),
    st.none() | WORK,
)
def test_a_label_never_exceeds_its_width(
    make_prediction: Callable[..., Prediction],
    fields: list[tuple[Metric, float, float, float]],
    form: LabelForm,
    width: int,
    marks: dict[Metric, list[str]],
    work: WorkFacts | None,
) -> None:
    predictions = [make_prediction(min(a, b), max(a, b), metric=metric, floor=floor) for metric, a, b, floor in fields]
    assert len(label(predictions, form, width, marks, work=work)) <= width
    assert bool(label(predictions, form, MAX_LABEL, marks, work=work)) == bool(predictions)


@given(METRICS, st.floats(min_value=1e-7, max_value=1e12))
def test_every_number_of_a_label_is_separated_from_its_unit(
    make_prediction: Callable[..., Prediction], metric: Metric, value: float
) -> None:
    shown = label([make_prediction(value / 30, value, metric=metric), make_prediction()])
    assert not re.search(r"\d(?:[nµm]?s|B|[KMG]iB|%)", shown)


MEASURED_LABELS = {
    ("band", 43): "✓ 2 µs (1–8 µs) · ✓ 1 KiB",
    ("median", 43): "✓ 2 µs · ✓ 1 KiB",
    ("median±", 43): "✓ 2 −1/+6 µs · ✓ 1 KiB",
    ("band", 20): "✓ 2 µs · ✓ 1 KiB",
    ("band", 8): "✓ 2 µs",
    ("band", 4): "",
}


@pytest.mark.parametrize(("form", "width"), MEASURED_LABELS)
def test_what_was_measured_is_marked_and_has_its_median_first(
    make_prediction: MakePrediction, form: LabelForm, width: int
) -> None:
    memory = measured_prediction(make_prediction(metric="memory"), cost(1024.0, 1024.0, 1024.0, "memory"))
    answers = [measured_prediction(make_prediction(), cost()), memory]
    assert label(answers, form, width) == MEASURED_LABELS[form, width]


def test_a_measurement_in_doubt_has_a_question_mark(make_prediction: MakePrediction) -> None:
    doubtful = replace(cost(), marks=(MeasurementMark.OLD,))
    assert label([measured_prediction(make_prediction(), doubtful)], "median") == "✓? 2 µs"


def test_a_cost_that_is_carried_over_has_another_mark(make_prediction: MakePrediction) -> None:
    answer = anchored_prediction(AFTER, make_prediction(), cost(), ratio_of(2.0))
    assert label([answer], "median") == "≈ 4 µs"
    assert label([answer], "band", marks={"latency": ["▲ 2×"]}).endswith(" ▲ 2×")


def test_what_was_measured_includes_what_the_unit_waits_for(make_prediction: MakePrediction) -> None:
    work = WorkFacts(waits=(Wait(WaitKind.NETWORK, 0, "get"),))
    assert label([make_prediction()], work=work).startswith("waits: network")
    assert label([measured_prediction(make_prediction(), cost())], work=work) == "✓ 2 µs (1–8 µs)"


def test_a_number_of_an_uncalibrated_model_has_a_question_mark(make_prediction: Callable[..., Prediction]) -> None:
    prediction = make_prediction()
    own = CalibrationSource(uncalibrated=True)
    raw = replace(prediction, bands=tuple(replace(band, source=own) for band in prediction.bands))
    assert not prediction.uncalibrated
    assert raw.uncalibrated
    assert render.marked_spread(raw) == f"? {render.marked_spread(prediction)}"
    assert label([raw]).startswith("? ")


def test_a_sleep_next_to_a_wait_of_unknown_length_has_its_bound(make_prediction: MakePrediction) -> None:
    work = WorkFacts(waits=(NETWORK, wait(WaitKind.TIME, 0.0, 10.0, 10.0)))
    prediction = make_prediction(median=10.00002)
    assert label([prediction], width=30, work=work) == "waits: network, sleep ≤10 s"
    assert label([prediction], work=work) == "waits ≤10 s + network"
    assert label([prediction], width=20, work=work) == "waits: network"
