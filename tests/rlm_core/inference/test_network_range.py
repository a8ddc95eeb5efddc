"""Models of NAS benchmarks answer only for networks of the sizes that these have."""

from __future__ import annotations

import pytest
from rlm_core.inference import trees
from rlm_core.inference.features import all_feature_names, forest_key
from rlm_core.inference.features.network import describe, features
from rlm_core.inference.model_store import builtin
from rlm_core.inference.network_range import beyond_measured, out_of_range
from rlm_core.inference.network_settings import COLUMNS, SettingCost
from rlm_core.inference.network_work import work_of
from rlm_core.inference.student import TREES
from rlm_core.types import LEVELS, Abstention, AbstentionCode, Query

TEXT = "in a 1x3x{side}x{side}\n·Conv3x3 {width}·Relu·Conv3x3 {width}·Relu·GlobalAveragePool·Flatten·Gemm 10"
ACCURACY = Query("accuracy", None, {"dataset": "cifar10", "epochs": "200", "subset": "test"})
LATENCY = Query("latency", "pixel-3", {"batch": "1"})


def reason(query: Query, side: int, width: int) -> Abstention | None:
    forests = trees.load(builtin() / TREES, all_feature_names())
    forest = forests[forest_key(f"network/onnx/{query.metric}", query.workload, query.device)]
    described = describe(TEXT.format(side=side, width=width))
    return out_of_range(forest, query, features(described, query.workload, query.device))


@pytest.mark.parametrize("query", [ACCURACY, LATENCY])
def test_a_network_of_a_usual_size_is_answered(query: Query) -> None:
    assert reason(query, 32, 32) is None


def test_an_accuracy_on_small_images_is_not_for_a_network_of_large_ones() -> None:
    details = {"dataset": "cifar10", "side": "224", "usual": "32"}
    assert reason(ACCURACY, 224, 16) == Abstention(AbstentionCode.OTHER_IMAGE_SIZE, details)


def test_a_network_beyond_the_largest_of_a_forest_has_no_latency() -> None:
    found = reason(LATENCY, 224, 256)
    assert found is not None
    assert found.code is AbstentionCode.TOO_LARGE
    assert float(found.details["gmacs"]) > float(found.details["most"])


def limited(most: float, least: float = 0.0, text: str = TEXT.format(side=32, width=32)) -> SettingCost:
    """A setting whose largest network has ``most`` times the work of a text."""
    work = tuple(float(value) * most for value in work_of(text).at(1).sum(axis=0))
    largest = max(kernel.read + kernel.written for kernel in work_of(text).kernels)
    costs = tuple(1e-3 if name == "kernels" else 1.0 for name in COLUMNS)
    errors = (0.0,) * len(LEVELS)
    known = ("conv", "elementwise", "pool", "product")
    return SettingCost("board", {}, costs, errors, (1, 1, 1), known, 30, 90, "energy", work, least, largest)


def test_a_network_within_the_work_of_the_measured_ones_is_answered() -> None:
    work = work_of(TEXT.format(side=32, width=32))
    assert beyond_measured(work, limited(1.0), 1) is None
    assert beyond_measured(work, limited(0.99), 1) is None


def test_the_operator_with_the_most_work_beyond_the_measured_networks_is_named() -> None:
    text = TEXT.format(side=32, width=32)
    assert beyond_measured(work_of(f"{text}·Softmax"), limited(1.0), 1) is None
    found = beyond_measured(work_of(text.replace("·Flatten", "·Conv3x3 4096·Flatten")), limited(1.0), 1)
    assert found is not None
    assert found.details["operators"] == "Conv"


def test_a_network_with_a_larger_kernel_than_any_measured_one_is_refused() -> None:
    text = TEXT.format(side=34, width=32)
    found = beyond_measured(work_of(text), limited(9.0), 1)
    assert found is not None
    assert found.details["operators"] in ("Conv", "Relu")
    assert beyond_measured(work_of(text), limited(9.0, text=text), 1) is None


def test_a_network_that_costs_less_than_each_measured_one_is_refused() -> None:
    found = beyond_measured(work_of(TEXT.format(side=32, width=32)), limited(1.0, least=1e6), 1)
    assert found == Abstention(AbstentionCode.BEYOND_MEASURED, {"metric": "energy", "device": "board", "operators": ""})
