"""Kernels of a graph in words."""

from __future__ import annotations

import pytest
from rlm_core.source.onnx_graph.kernels import kernels
from rlm_core.source.onnx_graph.operator_words import kernel_words
from rlm_core.source.onnx_graph.parse import parse


def words(text: str) -> list[str]:
    graph = parse(text)
    return [kernel_words(graph, kernel) for kernel in kernels(graph, fused=False)]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("·Conv3x3/2 16", "Conv 3x3/2 8→16 · 1x16x5x5"),
        ("·Conv1x1 16", "Conv 1x1 8→16 · 1x16x10x10"),
        ("·Conv3x3 dw", "Conv depthwise 3x3 · 1x8x10x10"),
        ("·Conv3x3 16 g4", "Conv grouped 3x3 8→16 · 1x16x10x10"),
        ("·MatMul 32", "MatMul 10→32 · 1x8x10x32"),
        ("·MaxPool2x2/2", "MaxPool 2x2/2 · 1x8x5x5"),
        ("·Relu", "Relu · 1x8x10x10"),
    ],
)
def test_an_operator_has_its_window_widths_and_output(step: str, expected: str) -> None:
    assert words(f"in a 1x8x10x10\n{step}") == [expected]


def test_operators_that_are_computed_together_have_one_name() -> None:
    assert words("in a 1x8x10x10\nb=·Relu\n·Sigmoid·Mul b")[-1] == "Sigmoid + Mul · 1x8x10x10"
