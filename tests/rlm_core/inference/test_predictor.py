"""Percentiles of values on a fitted scale and of predictions of the shipped model; default workloads of judges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import CodeText, load
from rlm_core.inference.adaptation.cpu_score import CpuScore, ScaledPredictor
from rlm_core.inference.adaptation.predictor import AdaptedPredictor
from rlm_core.inference.calibration import fit_scale
from rlm_core.inference.predictor import Predictor, QueryScope
from rlm_core.types import Prediction, Query

from tests.fakes import NO_NUMBER

pytestmark = pytest.mark.timeout(60)

CODE = CodeText("def f(values):\n    return sorted(values)[0]\n", "python", "call")


@pytest.mark.parametrize("floor", [0.0, 1e-6])
def test_a_scale_gives_the_shares_of_the_values_that_it_was_fitted_on(floor: float) -> None:
    random = np.random.default_rng(0)
    values = 10 ** np.concatenate([random.normal(-5, 0.5, 4000), random.normal(-2, 0.2, 1000)])
    scale = fit_scale(values, floor)
    kept = values[values > floor]
    for value in np.quantile(kept, np.linspace(0.01, 0.99, 25)):
        assert scale.share_below(value) == pytest.approx((kept < value).mean(), abs=0.02)


@given(st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=50), st.floats(1e-9, 1e9), st.floats(1, 100))
def test_shares_are_shares_and_grow_with_the_value(values: list[float], value: float, factor: float) -> None:
    scale = fit_scale(values, 0.0)
    assert 0 <= scale.share_below(value) <= scale.share_below(value * factor) <= 1


@pytest.fixture(scope="module")
def model() -> Predictor:
    return load(threads=1)


@pytest.fixture(scope="module")
def latency(model: Predictor) -> Prediction:
    return model.predict([CODE], [model.default_queries("call", "python")])[0][0]


def test_a_more_expensive_prediction_has_a_higher_percentile(model: Predictor, latency: Prediction) -> None:
    assert latency.median is not None
    share = model.percentile(latency, "python")
    expensive = model.percentile(replace(latency, median=latency.median * 100), "python")
    assert share is not None
    assert expensive is not None
    assert 0 < share < expensive <= 1


def test_a_scaled_prediction_is_compared_on_the_machine_of_the_measurements(
    model: Predictor, latency: Prediction
) -> None:
    scaled = ScaledPredictor(AdaptedPredictor(model, []), CpuScore(2.0, 2.0, 2.0, 2.0, 0.1, "cpu", "2026-01-01"))
    mine = scaled.predict([CODE], [model.default_queries("call", "python")])[0][0]
    assert mine.median != latency.median
    assert scaled.percentile(mine, "python") == pytest.approx(model.percentile(latency, "python"))


def test_what_cannot_be_compared_has_no_share(model: Predictor, latency: Prediction) -> None:
    kernel = replace(latency, basis="kernel", device=model.devices("kernel")[0])
    below, unknown = replace(latency, median=0.0), replace(latency, device="build-box")
    abstained = replace(latency, median=None, bands=(), abstained=NO_NUMBER)
    for prediction in (kernel, below, unknown, abstained):
        assert model.percentile(prediction, "python") is None
    assert model.percentile(latency, "cobol") is None


def test_a_judge_has_its_own_default_workload() -> None:
    defaults = {
        "program": {"device": "leetcode", "workload": {"judge": "leetcode", "date": "2026-01-31"}},
        "program@boj": {"device": "boj", "workload": {"judge": "boj", "date": "2025-12-24"}},
    }
    scope = QueryScope(defaults, {"program": ("leetcode", "boj")})
    assert [scope.filled("program", Query("latency", device)).workload for device in (None, "BOJ", "atcoder")] == [
        {"judge": "leetcode", "date": "2026-01-31"},
        {"judge": "boj", "date": "2025-12-24"},
        {"judge": "atcoder"},
    ]
    asked = scope.filled("program", Query("latency", "boj", {"date": "2024-01-01"}))
    assert asked.workload == {"judge": "boj", "date": "2024-01-01"}
