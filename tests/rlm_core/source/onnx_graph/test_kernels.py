"""What a device runs: kinds of operators, what is computed along, and how much is alive at once."""

from __future__ import annotations

import pytest
from rlm_core.source.onnx_graph.costs import costs, total
from rlm_core.source.onnx_graph.kernels import KINDS, Kernel, kernels
from rlm_core.source.onnx_graph.parse import parse

BLOCK = "in a 1x8x10x10\nb=·Conv1x1 16·BatchNormalization·Relu\n·Conv3x3 dw·BatchNormalization·Relu·Conv1x1 16·Add b"


def of(text: str, *, fused: bool = False) -> tuple[Kernel, ...]:
    return kernels(parse(text), fused=fused)


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ("·Conv3x3 16", "conv"),
        ("·Conv1x1 16", "pointwise"),
        ("·Conv3x3 16 g4", "grouped"),
        ("·Conv3x3 dw", "depthwise"),
        ("·MatMul 32", "product"),
        ("·MatMul _ a", "batched"),
        ("·Softmax", "softmax"),
        ("·BatchNormalization", "norm"),
        ("·Relu", "elementwise"),
        ("·MaxPool2x2", "pool"),
        ("·ReduceMean", "reduce"),
        ("·Transpose[0,2,3,1]", "layout"),
        ("·Concat a", "move"),
        ("·NonZero", "other"),
    ],
)
def test_operators_have_the_kind_of_what_limits_them(step: str, kind: str) -> None:
    found = of(f"in a 1x8x10x10\n{step}")
    assert [kernel.kind for kernel in found] == [kind]
    assert kind in KINDS


def test_operators_that_only_rename_their_input_cost_nothing() -> None:
    assert [kernel.kind for kernel in of("in a 1x8x10x10\n·Relu·Flatten·Gemm 10")] == ["elementwise", "product"]


def test_a_compiler_computes_activations_scales_and_sums_along() -> None:
    assert len(of(BLOCK)) == 8
    assert [(kernel.kind, len(kernel.nodes)) for kernel in of(BLOCK, fused=True)] == [
        ("pointwise", 3),
        ("depthwise", 3),
        ("pointwise", 2),
    ]


def test_what_something_else_reads_as_well_ends_a_kernel() -> None:
    assert len(of("in a 1x8\nb=·Gemm 8\n·Relu·Add b", fused=True)) == 2


def test_fusing_moves_less_and_computes_the_same() -> None:
    apart, together = of(BLOCK), of(BLOCK, fused=True)
    assert (
        sum(kernel.macs for kernel in apart)
        == sum(kernel.macs for kernel in together)
        == total(costs(parse(BLOCK))).macs
    )
    assert sum(kernel.operations for kernel in apart) == sum(kernel.operations for kernel in together)
    assert sum(kernel.moved for kernel in apart) > sum(kernel.moved for kernel in together)


def test_elements_are_counted_by_what_they_are() -> None:
    (kernel,) = of("in a 1x64\n·Gemm 10 bias")
    assert (kernel.read, kernel.weights, kernel.written) == (64, 650, 10)


def test_what_no_input_reaches_is_a_weight() -> None:
    (kernel,) = of("in a 4x8\nb=0·ConstantOfShape[8,16]\na·MatMul b")
    assert (kernel.kind, kernel.weights, kernel.read) == ("product", 128, 32)


ATTENTION = "in a 1x4x8x16\nb=a·Mul{{=0.25}}\nc=a·Transpose perm=[0,1,3,2]\nb·MatMul _ c{between}·Softmax·MatMul _ a"


@pytest.mark.parametrize(
    ("between", "fused"), [("", True), ("·Div{=4}", True), ("·Sigmoid", False), ("·Relu·Div{=4}", False)]
)
def test_the_attention_of_transformers_is_one_kernel(between: str, fused: bool) -> None:
    kinds = [kernel.kind for kernel in of(ATTENTION.format(between=between))]
    assert ("attention" in kinds) is fused
    assert ("softmax" in kinds) is not fused
    whole = sum(kernel.macs for kernel in of(ATTENTION.format(between=between)))
    assert whole == 2 * 4 * 8 * 8 * 16


def test_an_activation_that_is_written_as_two_operators_is_one_kernel() -> None:
    [kernel] = of("in a 1x8\nb=·Gelu\n·Sigmoid·Mul b")[1:]
    assert (kernel.read, kernel.written) == (8, 8)
    assert len(of("in a 1x8\nb=·Gelu\nc=·Sigmoid\n·Mul b·Add c")) == 4


def test_quantising_while_running_is_no_kernel() -> None:
    kinds = [
        kernel.kind for kernel in of("in a 4x8\n·DynamicQuantizeLinear·MatMulInteger{8x16:int8}·Cast to=1·Mul{16}")
    ]
    assert kinds == ["product", "elementwise"]
