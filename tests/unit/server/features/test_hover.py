"""The text of a hover: nothing but what the predictions hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rlm_core import Prediction
from rlm_core.units import find_units
from rlm_lsp.features.hover import hover_text

pytestmark = pytest.mark.timeout(30)

UNIT = find_units(b"def f(n):\n    return n\n", "python")[0]


def test_markdown_has_a_row_for_each_metric(make_prediction: Callable[..., Prediction]) -> None:
    memory = make_prediction(0.0, 3072.0, metric="memory", floor=64.0, median=0.0)
    assert hover_text(UNIT, [make_prediction(), memory], markdown=True).splitlines() == [
        "**`f`**: one call, as its tests call it",
        "",
        "| | median | 80 % band | 90 % band |",
        "|---|---|---|---|",
        "| latency | 85 µs | 10–160 µs | 10–320 µs |",
        "| peak memory | ≤64 B | ≤3 KiB | ≤6 KiB |",
        "",
        "- latency: 80 % band, calibrated on 120 groups (4,500 measurements, call/latency)",
        "- peak memory: 80 % band, calibrated on 120 groups (4,500 measurements, call/latency)",
        "- device x86-64, runtime cpython-3.12",
        "- model test-1",
    ]


def test_plain_text_has_a_line_for_each_metric(make_prediction: Callable[..., Prediction]) -> None:
    assert hover_text(UNIT, [make_prediction()], markdown=False).splitlines() == [
        "f: one call, as its tests call it",
        "",
        "latency: median 85 µs, 80 % band 10–160 µs, 90 % band 10–320 µs",
        "",
        "latency: 80 % band, calibrated on 120 groups (4,500 measurements, call/latency)",
        "device x86-64, runtime cpython-3.12",
        "model test-1",
    ]


def test_the_reason_to_abstain_is_shown(make_prediction: Callable[..., Prediction]) -> None:
    text = hover_text(UNIT, [make_prediction(abstained="the model was not trained on it")], markdown=True)
    assert "- latency: no prediction, the model was not trained on it" in text
    assert "| median |" not in text


def test_a_truncated_text_is_said_to_be_truncated(make_prediction: Callable[..., Prediction]) -> None:
    assert "the text is long" in hover_text(UNIT, [make_prediction(truncated=True)], markdown=True)
    assert "the text is long" not in hover_text(UNIT, [make_prediction()], markdown=True)


def test_different_devices_are_told_apart(make_prediction: Callable[..., Prediction]) -> None:
    memory = make_prediction(0.0, 3072.0, metric="memory", device="arm64", workload={})
    text = hover_text(UNIT, [make_prediction(), memory], markdown=True)
    assert "- latency: device x86-64, runtime cpython-3.12" in text
    assert "- peak memory: device arm64" in text
