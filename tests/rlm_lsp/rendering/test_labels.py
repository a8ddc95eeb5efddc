"""Rendering: exact texts for typical values, and laws for all values."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Band, Prediction
from rlm_core.inference.anchoring import measured_prediction
from rlm_core.types import CalibrationSource, Metric
from rlm_lsp.rendering import labels as render

from tests.fakes import NO_NUMBER
from tests.rlm_core.inference.test_anchoring import cost

pytestmark = pytest.mark.timeout(60)

MakePrediction = Callable[..., Prediction]

SCALE = {
    "ns": 1e-9,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "B": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "%": 0.01,
    "nJ": 1e-9,
    "µJ": 1e-6,
    "mJ": 1e-3,
    "J": 1.0,
}
VALUES = st.floats(min_value=0, max_value=1e14, allow_subnormal=False)
METRICS = st.sampled_from(["latency", "memory", "accuracy", "energy"])


def band_of(low: float, high: float) -> Band:
    return Band(low, high, 0.8, 100, 1000, CalibrationSource("call/latency"))


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("latency", 4.23e-5, "42 µs"),
        ("latency", 9.996e-4, "1 ms"),
        ("latency", 9.96e-7, "1 µs"),
        ("latency", 9.94e-7, "990 ns"),
        ("memory", 1023.9, "1 KiB"),
        ("latency", 5e-8, "50 ns"),
        ("latency", 123.4, "120 s"),
        ("memory", 64, "64 B"),
        ("memory", 1536, "1.5 KiB"),
        ("memory", 3.3e9, "3.1 GiB"),
        ("accuracy", 0.714, "71.4 %"),
        ("accuracy", 0.93875, "93.9 %"),
        ("accuracy", 0.94, "94.0 %"),
        ("accuracy", 0.9998, "100.0 %"),
        ("energy", 0.0126, "13 mJ"),
        ("energy", 999.6e-6, "1 mJ"),
    ],
)
def test_a_value_has_two_significant_digits_or_one_decimal_and_a_unit(metric: Metric, value: float, text: str) -> None:
    assert render.quantity(metric, value) == text


@pytest.mark.parametrize(
    ("metric", "low", "high", "text"),
    [
        ("latency", 1e-5, 1.6e-4, "10–160 µs"),
        ("latency", 8e-4, 2e-3, "0.8–2 ms"),
        ("latency", 8e-6, 2e-3, "8 µs–2 ms"),
        ("latency", 4.01e-5, 4.02e-5, "40 µs"),
        ("latency", 0.0, 3e-6, "≤3 µs"),
        ("latency", 1e-5, float("inf"), "≥10 µs"),
        ("latency", 0.0, float("inf"), "no upper bound"),
        ("memory", 0.0, 3072, "≤3 KiB"),
        ("accuracy", 0.9358, 0.9414, "93.6–94.1 %"),
        ("accuracy", 0.9391, 0.9392, "93.9 %"),
        ("accuracy", 0.62, 0.71, "62.0–71.0 %"),
    ],
)
def test_a_band_shares_its_unit_where_that_reads_well(metric: Metric, low: float, high: float, text: str) -> None:
    assert render.band(metric, band_of(low, high)) == text


def test_a_band_below_the_floor_ends_at_the_floor() -> None:
    assert render.band("memory", band_of(0, 0), floor=64) == "≤64 B"


def test_a_median_below_the_floor_is_at_most_the_floor(make_prediction: Callable[..., Prediction]) -> None:
    assert render.median(make_prediction(metric="memory", median=0.0, floor=64.0)) == "≤64 B"
    assert render.median(make_prediction(abstained=NO_NUMBER)) == ""


@pytest.mark.parametrize(
    ("ratio", "mark", "times"),
    [
        (2.13, "▲ 2.1×", "2.1×"),
        (1.0, "▲ 1×", "1×"),
        (12.4, "▲ 12×", "12×"),
        (123.0, "▲ 120×", "120×"),
        (994.0, "▲ 990×", "990×"),
        (998.0, "▲ >999×", ">999×"),
        (1e6, "▲ >999×", ">999×"),
        (0.48, "▼ 2.1×", "0.48×"),
        (0.00105, "▼ 950×", "0.001×"),
        (1e-5, "▼ >999×", "<0.001×"),
        (0.0, "▼ >999×", "<0.001×"),
    ],
)
def test_a_ratio_is_shown_as_a_factor(ratio: float, mark: str, times: str) -> None:
    assert (render.mark(ratio), render.times(ratio)) == (mark, times)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(2.13, "about 2.1×"), (0.48, "about 0.48×"), (1e6, "over 999×"), (1e-5, "under 0.001×")],
)
def test_a_ratio_in_a_sentence(ratio: float, text: str) -> None:
    assert render.about(ratio) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.42, 3.19, "1.4–3.2×"),
        (0.5, 0.9, "0.5–0.9×"),
        (2, 2, "2×"),
        (203, 5e6, "≥200×"),
        (2, 1649, "≥2×"),
        (2, float("inf"), "≥2×"),
        (1200, 1649, ">999×"),
        (1e-6, 2, "≤2×"),
        (0, 1e-5, "<0.001×"),
        (1e-6, 1e6, "<0.001–>999×"),
        (90, 700.4, "90–700×"),
    ],
)
def test_a_band_of_ratios(low: float, high: float, text: str) -> None:
    assert render.ratio_band(band_of(low, high)) == text


def test_a_median_error_has_two_decimals() -> None:
    assert [render.error(factor) for factor in (1.0, 1.042, 12.3)] == ["1.00×", "1.04×", "12.30×"]


def near(metric: Metric, value: float) -> object:
    """What a text of a value may say; accuracies have one decimal."""
    return pytest.approx(value, abs=5.01e-4, rel=1e-9) if metric == "accuracy" else pytest.approx(value, rel=0.051)


def parse(text: str) -> float:
    number, unit = text.split()
    return float(number) * SCALE[unit]


@given(METRICS, VALUES, VALUES)
def test_a_larger_value_never_reads_smaller(metric: Metric, a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert parse(render.quantity(metric, low)) <= parse(render.quantity(metric, high)) * (1 + 1e-9)


@given(METRICS, st.floats(min_value=1e-7, max_value=1e14))
def test_a_text_is_within_rounding_of_its_value(metric: Metric, value: float) -> None:
    assert parse(render.quantity(metric, value)) == near(metric, value)


@given(METRICS, st.floats(min_value=1e-7, max_value=1e14), st.floats(min_value=1e-7, max_value=1e14))
def test_both_ends_of_a_band_are_within_rounding(metric: Metric, a: float, b: float) -> None:
    low, high = sorted((a, b))
    match = re.fullmatch(r"([\d.e-]+)(?: (\S+?))?(?:–([\d.e-]+) (\S+))?", render.band(metric, band_of(low, high)))
    assert match is not None
    first, unit, second, last_unit = match[1], match[2] or match[4], match[3] or match[1], match[4] or match[2]
    assert float(first) * SCALE[unit] == near(metric, low)
    assert float(second) * SCALE[last_unit] == near(metric, high)


@given(METRICS, st.floats(min_value=1e-7, max_value=1e12))
def test_the_unit_is_chosen_after_rounding(metric: Metric, value: float) -> None:
    number, unit = render.quantity(metric, value).split()
    larger = {"ns": "µs", "µs": "ms", "ms": "s", "B": "KiB", "KiB": "MiB", "MiB": "GiB"}.get(unit)
    if larger is not None:
        assert float(number) * SCALE[unit] < SCALE[larger]


@pytest.mark.parametrize(
    ("metric", "median", "text"),
    [
        ("latency", -3e-8, "≤50 ns"),
        ("latency", 5.1e-8, "51 ns"),
        ("memory", 0.0, "0 B"),
        ("memory", 3072.0, "3 KiB"),
    ],
)
def test_a_measurement_is_shown_in_its_unit(
    make_prediction: MakePrediction, metric: Metric, median: float, text: str
) -> None:
    its = cost(median, median, median, metric)
    assert render.measured(its) == text
    assert render.median(measured_prediction(make_prediction(metric=metric), its)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(994.0, "990 B"), (996.0, "0.97 KiB"), (1023.0, "1 KiB"), (1000 * 2.0**10, "0.98 MiB")],
)
def test_a_thousand_bytes_are_shown_in_the_next_unit(value: float, text: str) -> None:
    assert render.quantity("memory", value) == text


def test_sizes_are_short_and_their_ranges_too() -> None:
    values = [0, 0.3456, 2.5, 40, 999, 1000, 1250, 12_345.678, 999_999, 2**20, 1e15]
    shown = ["0", "0.346", "2.5", "40", "999", "1k", "1.25k", "12.3k", "1M", "1.05M", "1000T"]
    assert list(map(render.size, values)) == shown
    sizes = {"items": [3, 7, 40], "rows[]": [2, 2, 2], "n": [1000, 1001, 1002], "a.0": [1, 1, 1]}
    assert render.size_ranges(sizes) == "items 3–40, rows[] 2, n 1k +1"
    assert render.size_ranges({}) == ""
