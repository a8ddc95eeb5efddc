"""The forests of NAS benchmarks answer only for networks of the sizes that these have."""

from __future__ import annotations

import pytest
from rlm_core.inference import trees
from rlm_core.inference.features import all_feature_names, forest_key
from rlm_core.inference.features.network import describe, features
from rlm_core.inference.model_store import builtin
from rlm_core.inference.network_range import out_of_range
from rlm_core.inference.student import TREES
from rlm_core.types import Abstention, AbstentionCode, Query

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
