"""Layers and functions: output shapes, weights and multiply-accumulates by the formulas of PyTorch's documentation."""

from __future__ import annotations

import pytest
from rlm_core.cost.torch_trace.recorder import Trace
from rlm_core.cost.torch_trace.tracing import trace

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def layer(expression: str, *shapes: str) -> Trace:
    inputs = ", ".join(f"torch.rand({shape})" for shape in shapes)
    return trace(
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.layer = {expression}\n"
        f"    def forward(self, *x):\n        return self.layer(*x)\ndef get_inputs():\n    return [{inputs}]\n"
    )


def function(expression: str, *shapes: str) -> Trace:
    workload = {f"arg{place}": shape for place, shape in enumerate(shapes)}
    return trace(f"{HEAD}def f(x, y=None, z=None):\n    return {expression}\n", workload)


def macs(traced: Trace) -> float:
    return sum(operation.macs for operation in traced.operations)


@pytest.mark.parametrize(
    ("expression", "shape", "output", "parameters", "expected"),
    [
        ("nn.Linear(64, 32)", "8, 64", (8, 32), 64 * 32 + 32, 8 * 64 * 32),
        ("nn.Linear(64, 32, bias=False)", "2, 3, 64", (2, 3, 32), 64 * 32, 6 * 64 * 32),
        ("nn.Conv2d(3, 8, 3, padding=1)", "2, 3, 10, 12", (2, 8, 10, 12), 8 * 27 + 8, 2 * 120 * 8 * 27),
        ("nn.Conv2d(8, 8, 3, stride=2, groups=8, bias=False)", "1, 8, 9, 9", (1, 8, 4, 4), 72, 16 * 72),
        ("nn.Conv2d(4, 6, (3, 5), dilation=2, padding='same')", "1, 4, 9, 9", (1, 6, 9, 9), 6 * 60 + 6, 81 * 6 * 60),
        ("nn.Conv1d(4, 6, 3)", "4, 10", (6, 8), 6 * 12 + 6, 8 * 6 * 12),
        ("nn.ConvTranspose2d(4, 6, 3, 2, padding=1, output_padding=1)", "1, 4, 5, 5", (1, 6, 10, 10), 222, 25 * 216),
        ("nn.MaxPool2d(3, stride=2, ceil_mode=True)", "1, 2, 8, 8", (1, 2, 4, 4), 0, 0),
        ("nn.AdaptiveAvgPool2d((1, None))", "1, 2, 8, 7", (1, 2, 1, 7), 0, 0),
        ("nn.BatchNorm2d(5)", "2, 5, 4, 4", (2, 5, 4, 4), 10, 0),
        ("nn.GroupNorm(2, 6, affine=False)", "2, 6, 4", (2, 6, 4), 0, 0),
        ("nn.LayerNorm((4, 4))", "2, 4, 4", (2, 4, 4), 32, 0),
        ("nn.Flatten()", "2, 3, 4, 5", (2, 60), 0, 0),
        ("nn.ZeroPad2d((1, 2, 0, 3))", "1, 1, 4, 4", (1, 1, 7, 7), 0, 0),
        ("nn.PixelShuffle(2)", "1, 8, 3, 3", (1, 2, 6, 6), 0, 0),
    ],
)  # fmt: skip
def test_a_layer_has_the_shape_weights_and_products_of_pytorch(
    expression: str, shape: str, output: tuple[int, ...], parameters: int, expected: int
) -> None:
    traced = layer(expression, shape)
    assert traced.outputs == (output,)
    assert traced.parameters == parameters
    assert macs(traced) == expected
    assert (traced.unknown, traced.complete) == (0, True)


def test_an_lstm_has_four_gates_a_layer_and_direction() -> None:
    traced = layer("nn.LSTM(10, 20, num_layers=2, bidirectional=True, batch_first=True)", "3, 7, 10")
    assert traced.outputs == ((3, 7, 40), (4, 3, 20), (4, 3, 20))
    assert traced.parameters == 2 * (80 * (10 + 20 + 2)) + 2 * (80 * (40 + 20 + 2))
    assert macs(traced) == 3 * 7 * (2 * 80 * 30 + 2 * 80 * 60)


def test_a_transformer_block_has_projections_attention_and_feed_forward() -> None:
    traced = layer("nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)", "3, 5, 8")
    assert traced.outputs == ((3, 5, 8),)
    assert traced.parameters == 4 * 8 * 8 + 4 * 8 + 2 * 8 * 16 + 16 + 8 + 4 * 8
    assert macs(traced) == 15 * (4 * 64 + 2 * 128) + 2 * (3 * 5 * 5 * 8)


@pytest.mark.parametrize(
    ("expression", "shapes", "output", "expected"),
    [
        ("x @ y", ("4x5", "5x6"), (4, 6), 120),
        ("torch.matmul(x, y)", ("7x4x5", "5"), (7, 4), 140),
        ("torch.bmm(x, y).transpose(1, 2)", ("2x4x5", "2x5x6"), (2, 6, 4), 240),
        ("torch.einsum('bij,bkj->bik', x, y)", ("2x3x5", "2x4x5"), (2, 3, 4), 120),
        ("torch.einsum('...i,ij->...j', x, y)", ("2x3x5", "5x4"), (2, 3, 4), 120),
        ("F.scaled_dot_product_attention(x, y, z)", ("2x3x4", "2x5x4", "2x5x6"), (2, 3, 6), 2 * 3 * 5 * 10),
        ("(x + y).sum(dim=1, keepdim=True)", ("4x5", "1x5"), (4, 1), 0),
        ("torch.max(x, dim=0).values", ("4x5",), (5,), 0),
        ("torch.cat([x, y], dim=-1).view(-1, 3)", ("3x4", "3x5"), (9, 3), 0),
        ("x[:, None, 1::2, -1]", ("4x5x6",), (4, 1, 2), 0),
        ("x[..., y.long()]", ("4x5", "7x2"), (4, 7, 2), 0),
        ("torch.stack(x.chunk(3, dim=1)).permute(2, 0, 1)", ("2x6",), (2, 3, 2), 0),
        ("F.interpolate(x, scale_factor=2)", ("1x2x3x4",), (1, 2, 6, 8), 0),
        ("x.expand(size=(2, 4, 5))", ("4x5",), (2, 4, 5), 0),
        ("list(map(lambda a, b: a @ b, [x], [y]))[0]", ("4x5", "5x6"), (4, 6), 120),
    ],
)  # fmt: skip
def test_a_function_has_the_shape_and_products_of_pytorch(
    expression: str, shapes: tuple[str, ...], output: tuple[int, ...], expected: int
) -> None:
    traced = function(expression, *shapes)
    assert traced.outputs == (output,)
    assert macs(traced) == expected
    assert traced.unknown == 0


def test_a_copy_is_made_only_of_memory_that_is_not_in_order() -> None:
    assert not function("x.contiguous().view(-1)", "4x5").operations
    (copied,) = function("x.t().contiguous()", "4x5").operations
    assert (copied.kind, copied.read, copied.written) == ("gather", 80.0, 80.0)


def test_what_is_not_known_keeps_the_shape_and_is_counted() -> None:
    traced = function("some_library.magic(x) + 1", "4x5")
    assert traced.outputs == ((4, 5),)
    assert traced.unknown == 1


def test_half_precision_halves_the_bytes() -> None:
    text = f"{HEAD}def f(x):\n    return torch.relu(x)\n"
    (single,) = trace(text, {"arg0": "8x8"}).operations
    (half,) = trace(text, {"arg0": "8x8", "dtype": "fp16"}).operations
    assert (single.read, half.read) == (256.0, 128.0)
