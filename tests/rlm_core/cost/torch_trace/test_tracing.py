"""Tracing a source text: Python around the tensors, workloads, limits, and odd texts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.torch_trace.recorder import fuse
from rlm_core.cost.torch_trace.tracing import trace

MODULE = """
import torch
import torch.nn as nn

batch_size = 4
width, depth = 8 * 2, 3
shape = (width,)

class Block(nn.Module):
    def __init__(self, width, scale=2):
        super().__init__()
        self.up = nn.Linear(width, width * scale)
        self.down = nn.Linear(width * scale, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

class Model(nn.Module):
    def __init__(self, width, depth):
        super(Model, self).__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 10))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        for index, block in enumerate(self.blocks):
            x = block(x) if index % 2 == 0 else block(x) * 2
        if x.shape[-1] != self.shift.numel():
            raise ValueError("width")
        return self.head(x + self.shift)

def get_inputs():
    return [torch.rand(batch_size, *shape)]

def get_init_inputs():
    return [width, depth]
"""


def test_modules_loops_conditions_and_constants_are_followed() -> None:
    traced = trace(MODULE)
    assert traced.inputs == ((4, 16),)
    assert traced.outputs == ((4, 10),)
    assert traced.parameters == 3 * (16 * 32 + 32 + 32 * 16 + 16) + 32 + 170 + 16
    assert [item.name for item in traced.operations].count("linear") == 7
    assert (traced.unknown, traced.complete) == (0, True)


def test_a_workload_replaces_constants_and_input_shapes() -> None:
    assert trace(MODULE, {"batch_size": "9", "depth": "1"}).inputs == ((9, 16),)
    assert trace(MODULE, {"depth": "1"}).parameters < trace(MODULE).parameters
    assert trace(MODULE, {"arg0": "32x5x16"}).outputs == ((32, 5, 10),)
    assert trace(MODULE, {"backend": "compile", "mode": "forward"}) == trace(MODULE)


def test_a_lone_number_is_a_vector_or_a_scalar_by_the_parameter() -> None:
    text = "def f(x, size: int):\n    return x.view(-1, size)\n"
    assert trace(text, {"arg0": "12", "arg1": "4"}).outputs == ((3, 4),)


def test_tests_below_a_function_are_not_taken_for_it() -> None:
    text = """
import torch
def scaled(x, by=2.0):
    return x * by
class Net(torch.nn.Module):
    def forward(self, x):
        return x.sum()
def test_scaled():
    return Net()(scaled(torch.ones(3)))
result = test_scaled()
"""
    assert trace(text, {"arg0": "5x6"}).outputs == ((5, 6),)


def test_imports_may_be_missing() -> None:
    bare = "\n".join(line for line in MODULE.splitlines() if not line.startswith("import"))
    assert trace(bare) == trace(MODULE)


@pytest.mark.parametrize("header", ["class Sizes(NamedTuple):", "@dataclass\nclass Sizes:"])
def test_fields_of_data_classes_are_attributes(header: str) -> None:
    text = f"""
{header}
    rows: int
    columns: int = 3
def f(x):
    sizes = Sizes(rows=4)
    return x.view(sizes.rows, sizes.columns)
"""
    assert trace(text, {"arg0": "12x1"}).outputs == ((4, 3),)


def test_fusion_keeps_what_only_pointwise_work_reads_in_registers() -> None:
    text = "import torch\ndef f(x, w):\n    return torch.tanh(torch.exp(x) + 1) @ w\n"
    operations = trace(text, {"arg0": "64x64", "arg1": "64x64"}).operations
    eager, fused = sum(item.read + item.written for item in operations), fuse(operations)
    assert sum(item.read + item.written for item in fused) == eager - 4 * 64 * 64 * 4
    assert sum(item.kernels for item in fused) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def",
        "\0",
        "x = [0] * 10**12",
        "x = 9**9**9",
        "x = 'a' * 10**10",
        "x = 1 << 10**9",
        "x = sum(range(10**12))",
        "x = [1]\nfor i in range(10**9):\n    x = x + x",
        "while True:\n    x = 1",
        "def get_inputs():\n    return get_inputs()",
        "class Model(nn.Module):\n    def forward(self, x):\n        return self(x)\ndef get_inputs():\n    return [3]",
        "class Model(Model):\n    pass",
        "class Model(nn.Module):\n    pass",
        "x = round(5, -10**9)",
        "x = '%999999999d' % 3",
        "x = f'{3:999999999}'",
        "x = torch.rand(10**9, 10**9, 10**9, -3)",
        "x = " + "-" * 300 + "1",
        "x = " + "1+" * 3000 + "1",
        "x = []\nx.append(x)\ny = [x]\nz = x == y",
        f"x = 0x{'7' * 40_000}\ny = 0x{'3' * 20_000}\nfor i in range(2000):\n    for j in range(2000):\n        x % y",
        f"x = 0x{'7' * 40_000}\nfor i in range(2000):\n    for j in range(2000):\n        x *= x\n        -x < x",
    ],
)
def test_any_text_ends_quickly_without_an_error(text: str) -> None:
    start = time.perf_counter()
    trace(text)
    trace(text + "\nclass Model(nn.Module):\n    def forward(self, a):\n        return a\n", {"arg0": "2x2"})
    assert time.perf_counter() - start < 10


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(MODULE)), st.integers(0, len(MODULE)), st.text(max_size=8))
def test_an_edit_anywhere_raises_nothing(start: int, end: int, inserted: str) -> None:
    trace(MODULE[: min(start, end)] + inserted + MODULE[max(start, end) :])
