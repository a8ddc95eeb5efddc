"""The most expensive operators of a network, equal ones together."""

from __future__ import annotations

import pytest
from rlm_core.inference.model_store import builtin
from rlm_core.inference.network_cost import NetworkCosts
from rlm_core.inference.network_parts import SHOWN, network_parts
from rlm_core.inference.network_settings import NETWORK_COSTS
from rlm_core.types import CodeText, Query

BLOCK = "·Conv3x3 64·Relu·Conv3x3 64·Relu"
NET = f"in a 1x64x56x56\n{BLOCK * 3}·GlobalAveragePool·Flatten·Gemm 10"


def test_equal_operators_are_one_and_the_most_expensive_come_first() -> None:
    found = network_parts([1.0, 5.0, 2.0, 2.0], ["Relu", "Conv", "Relu", "Add"], 0.6, 0.1)
    assert [(one.name, one.count, one.seconds, one.share) for one in found.operators] == [
        ("Conv", 1, 5.0, 0.5),
        ("Relu", 2, 3.0, 0.3),
        ("Add", 1, 2.0, 0.2),
    ]
    assert (found.kernels, found.bound) == (4, "compute")
    assert network_parts([1.0], ["Relu"], 0.4, 0.1).bound == "bandwidth"


def test_no_more_operators_are_kept_than_a_chart_shows() -> None:
    found = network_parts([1.0] * 30, [str(number) for number in range(30)], 0.6, 0.1)
    assert (len(found.operators), found.kernels) == (SHOWN, 30)


def test_the_answer_for_a_network_has_its_parts() -> None:
    query = Query("latency", "nvidia-rtx-3090")
    answer = NetworkCosts(builtin() / NETWORK_COSTS).answer(CodeText(NET, "onnx", "network"), query, "model")
    assert answer is not None
    assert answer.parts is not None
    first = answer.parts.operators[0]
    assert (first.name, first.count) == ("Conv 3x3 64→64 · 1x64x56x56", 6)
    assert answer.parts.kernels == 14
    assert answer.median is not None
    assert sum(one.seconds for one in answer.parts.operators) == pytest.approx(answer.median)
