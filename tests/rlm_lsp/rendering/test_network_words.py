"""Networks in words: limits, charts of operators, hovers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rlm_core.inference.model_store import builtin
from rlm_core.inference.network_cost import NetworkCosts
from rlm_core.inference.network_settings import NETWORK_COSTS
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.types import Abstention, AbstentionCode, CodeText, NetworkParts, OperatorCost, Prediction, Query
from rlm_lsp.rendering.labels import quantity
from rlm_lsp.rendering.network_words import bound_words, network_hover, operator_chart
from rlm_lsp.rendering.prediction_cells import place_text

NET = CodeText("in a 1x64x56x56\n·Conv3x3 64·Relu·Conv3x3 64·Relu·GlobalAveragePool·Flatten·Gemm 10", "onnx", "network")


@pytest.fixture(scope="module")
def answers() -> list[Prediction]:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    found = [costs.answer(NET, Query("latency", device), "model") for device in costs.devices]
    return [answer for answer in found if answer is not None]


@pytest.mark.parametrize(
    ("arithmetic", "expected"),
    [
        (0.72, "bound by compute (72 % of the time)"),
        (0.5, "bound by compute (50 % of the time)"),
        (0.051, "bound by memory bandwidth (95 % of the time)"),
    ],
)
def test_the_larger_share_is_the_limit(arithmetic: float, expected: str) -> None:
    assert bound_words(NetworkParts(arithmetic, (), 1)) == expected


def test_bars_are_as_long_as_their_shares_and_the_first_is_the_longest(answers: list[Prediction]) -> None:
    head, *lines = operator_chart(answers[0])
    assert head.startswith("Most expensive operators on Intel Core i7-12700H, of 6 in all")
    bars = [line.count("█") for line in lines]
    assert bars == sorted(bars, reverse=True)
    assert (bars[0], bars[-1] >= 1) == (30, True)
    assert lines[0].endswith("2 × Conv 3x3 64→64 · 1x64x56x56")


def test_a_prediction_without_operators_has_no_chart(answers: list[Prediction]) -> None:
    missing = Prediction.missing(NET, Query("latency"), "model", Abstention(AbstentionCode.NO_NUMBER, {}))
    assert operator_chart(missing) == ()


def test_a_hover_has_a_row_per_device_and_leaves_out_the_others(answers: list[Prediction]) -> None:
    missing = Prediction.missing(NET, Query("latency", "pixel-3"), "model", Abstention(AbstentionCode.NO_NUMBER, {}))
    text = network_hover("net.onnx", [missing, *answers], markdown=True)
    assert text.startswith("`net.onnx`: predicted latency of one inference")
    assert text.count("\n|") == len(answers) + 2
    assert "no prediction" not in text
    plain = network_hover("net.onnx", answers, markdown=False)
    assert "Intel Core i7-12700H (batch 1): " in plain
    assert "|" not in plain


def test_a_hover_names_the_sizes_that_are_assumed(answers: list[Prediction]) -> None:
    open_sizes = replace(answers[0], workload={"batch": "1", "arg0": "1x3x384x384"})
    assert "assumed are arg0 1x3x384x384" in network_hover("net.onnx", [open_sizes], markdown=False)
    assert "assumed" not in network_hover("net.onnx", answers, markdown=False)


def test_a_hover_without_a_number_says_why() -> None:
    refused = Abstention(AbstentionCode.OPEN_SIZES, {"share": "40%"})
    missing = Prediction.missing(NET, Query("latency", "pixel-3"), "model", refused)
    text = network_hover("net.onnx", [missing], markdown=False)
    assert text.splitlines()[0] == "net.onnx: no predicted latency"
    assert "depend on values" in text


def test_operators_of_a_hostile_file_are_shown_as_text(answers: list[Prediction]) -> None:
    operator = OperatorCost("a`b|c\x1b[1m", 2, 1.0, 1.0)
    answer = replace(answers[0], parts=NetworkParts(0.6, (operator,), 2))
    assert "\x1b" not in network_hover("net.onnx", [answer], markdown=True)
    assert "\x1b" not in network_hover("net.onnx", [answer], markdown=False)


def test_a_training_step_and_a_batch_are_named_and_inference_is_not() -> None:
    unit = find_units(ParsedSource(NET.text.encode(), "onnx"))[0]
    analysed = AnalysedUnit(unit, NET)
    costs = NetworkCosts(builtin() / NETWORK_COSTS)

    def shown(mode: str) -> str:
        answer = costs.answer(NET, Query("latency", "nvidia-rtx-3090", {"mode": mode}), "model")
        assert answer is not None
        assert answer.median is not None
        return place_text(analysed, answer)

    assert shown("train").endswith("mode=train")
    assert "mode" not in shown("infer")
    assert "batch=1024" in shown("infer")


def test_a_hover_has_the_memory_in_the_row_of_each_device(answers: list[Prediction]) -> None:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    peaks = [costs.answer(NET, Query("memory", answer.device), "model") for answer in answers]
    both = [*answers, *(peak for peak in peaks if peak is not None)]
    table = network_hover("net.onnx", both, markdown=True)
    assert table.count("MiB") + table.count("GiB") == len(answers)
    text = network_hover("net.onnx", both, markdown=False)
    assert text.count(", memory ") == len(answers)
    assert ", memory" not in network_hover("net.onnx", answers, markdown=False)


def test_a_hover_states_an_energy_only_where_it_is_known(answers: list[Prediction]) -> None:
    costs = NetworkCosts(builtin() / NETWORK_COSTS)
    cell = CodeText("in a 1x3x32x32\n·Conv3x3 16·Relu" + "·Conv3x3 16·Relu" * 8, "onnx", "network")
    known, refused = (costs.answer(code, Query("energy", "raspberry-pi-5"), "model") for code in (cell, NET))
    assert known is not None
    assert refused is not None
    text = network_hover("net.onnx", [*answers, known], markdown=True)
    assert f"energy {quantity('energy', known.median or 0.0)} (" in text
    assert "mJ) on Raspberry Pi 5 (ARM Cortex-A76) with onnxruntime" in text
    assert "energy" not in network_hover("net.onnx", [*answers, refused], markdown=True)
