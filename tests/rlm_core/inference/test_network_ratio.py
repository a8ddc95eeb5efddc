"""Ratios of two networks: narrower for networks that are alike, and none where one has no answer."""

from __future__ import annotations

import numpy as np
import pytest
from rlm_core.inference.model_store import builtin
from rlm_core.inference.network_cost import NetworkCosts
from rlm_core.inference.network_ratio import network_ratio, width_factor
from rlm_core.inference.network_settings import NETWORK_COSTS
from rlm_core.types import CodeText, CostRatio, Prediction, Query

GPU = "nvidia-rtx-4090"
LATENCY = Query("latency", GPU)
COSTS = NetworkCosts(builtin() / NETWORK_COSTS)


def convolutions(depth: int, extra: str = "") -> CodeText:
    block = "·Conv3x3 p1 64·Relu"
    return CodeText(f"in a 1x64x56x56\n{block * depth}{extra}·GlobalAveragePool·Flatten·Gemm 10", "onnx", "network")


def compared(before: CodeText, after: CodeText, query: Query = LATENCY) -> CostRatio | None:
    answers: list[Prediction] = []
    for code in (before, after):
        answer = COSTS.answer(code, query, "model")
        assert answer is not None
        answers.append(answer)
    return network_ratio(COSTS, (before, after), (answers[0], answers[1]), "model")


def width(ratio: CostRatio | None) -> float:
    assert ratio is not None
    return ratio.bands[0].high / ratio.bands[0].low


def test_a_deeper_network_of_the_same_blocks_is_known_to_be_slower() -> None:
    found = compared(convolutions(6), convolutions(12))
    assert found is not None
    assert found.ratio == pytest.approx(2, rel=0.1)
    assert found.direction == "higher"
    back = compared(convolutions(12), convolutions(6))
    assert back is not None
    assert (back.ratio or 0.0) * (found.ratio or 0.0) == pytest.approx(1)
    assert back.direction == "lower"


def test_networks_that_differ_in_kind_have_a_wider_ratio() -> None:
    plain, other = convolutions(6), convolutions(6, "·Sigmoid·Tanh·Softmax" * 12)
    assert 1 < width(compared(plain, convolutions(7))) < width(compared(plain, other))


def test_the_same_network_has_the_ratio_one() -> None:
    found = compared(convolutions(6), convolutions(6))
    assert found is not None
    assert {found.ratio, *found.quantiles} == {1.0}
    assert found.direction is None


def test_memory_is_counted_and_so_its_ratio_is_certain() -> None:
    found = compared(convolutions(6), convolutions(6, "·Concat axis=1 a"), Query("memory", GPU))
    assert found is not None
    assert found.ratio is not None
    assert found.ratio > 1
    assert set(found.quantiles) == {found.ratio}


def test_a_network_without_an_answer_has_no_ratio() -> None:
    found = compared(convolutions(6), convolutions(6), Query("latency", GPU, {"batch": "100000"}))
    assert found is not None
    assert found.ratio is None
    assert found.abstained is not None
    accuracy = Prediction("network", "accuracy", None, {}, "model", 0.9, (), 0.0, False)
    assert network_ratio(COSTS, (convolutions(6), convolutions(7)), (accuracy, accuracy), "model") is None


def test_the_width_grows_with_the_distance_up_to_that_of_two_independent_errors() -> None:
    first = np.array([0.5, 0.5, 0.0])
    factors = [width_factor(first, first + moved * np.array([-1.0, 0.0, 1.0])) for moved in (0.0, 0.05, 0.1, 0.5)]
    assert factors == sorted(factors)
    assert 0 < factors[0] < 0.5
    assert factors[-1] == pytest.approx(2**0.5)


def test_the_ratio_of_two_energies_is_not_stated() -> None:
    cell = CodeText("in a 1x3x32x32\n·Conv3x3 16·Relu" + "·Conv3x3 16·Relu" * 8, "onnx", "network")
    found = compared(cell, cell, Query("energy", "raspberry-pi-5"))
    assert found is not None
    assert found.ratio is None
    assert found.abstained is not None
    assert found.abstained.code == "ratio-not-calibrated"
