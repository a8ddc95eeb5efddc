"""What is said of a launch follows from its text and sizes, and nothing is said where these leave it open."""

from __future__ import annotations

import re

import pytest
from rlm_core.inference.launch_cost import launch_cost
from rlm_core.types import AmountRange

ADD = """\
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)

def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out
"""
MATMUL = """\
@triton.jit
def matmul_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total += tl.dot(x, y)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))

def matmul(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    matmul_kernel[(M // 64, N // 64)](a, b, c, M, N, K, BLOCK=64)
    return c
"""


def exactly(value: float) -> AmountRange:
    return AmountRange(value, value, value)


@pytest.mark.parametrize("sizes", [{"arg0": "1048576", "arg1": "1048576"}, {"n": "1048576"}])
def test_a_sum_of_vectors_is_bound_by_bandwidth(sizes: dict[str, str]) -> None:
    cost = launch_cost(ADD, {**sizes, "dtype": "fp16"}, "nvidia-h100-sxm")
    assert cost is not None
    assert cost.moved == exactly(3 * 2 * 2**20)
    assert cost.distinct == 3 * 2 * 2**20
    assert (cost.programs, cost.launches) == (1024, 1)
    assert cost.roofline == pytest.approx(cost.distinct / 3.35e12, rel=0.01)
    large = launch_cost(ADD, {"arg0": "268435456", "arg1": "268435456", "dtype": "fp16"}, "nvidia-h100-sxm")
    assert large is not None
    assert (cost.bound, large.bound) == ("launch", "bandwidth")


def test_a_large_product_of_matrices_is_bound_by_compute() -> None:
    cost = launch_cost(MATMUL, {"arg0": "8192x8192", "arg1": "8192x8192", "dtype": "fp16"}, "nvidia-a100-sxm4-80gb")
    assert cost is not None
    assert cost.flops.likely == pytest.approx(2 * 8192**3, rel=0.01)
    assert cost.distinct == 3 * 2 * 8192**2
    assert cost.roofline == pytest.approx(2 * 8192**3 / 312e12, rel=0.01)
    assert cost.intensity == pytest.approx(2 * 8192 / 6, rel=0.01)


def test_what_tuning_chooses_is_a_range() -> None:
    configurations = ", ".join(f"triton.Config(dict(BLOCK={size}))" for size in (32, 64))
    tuned = MATMUL.replace("@triton.jit", f"@triton.autotune([{configurations}], key=['M'])\n@triton.jit")
    tuned = tuned.replace("(M // 64, N // 64)", "lambda meta: (M // meta['BLOCK'], N // meta['BLOCK'])")
    cost = launch_cost(tuned.replace(", BLOCK=64)", ")"), {"arg0": "1024x1024", "arg1": "1024x1024"}, None)
    assert cost is not None
    # A row and a column of tiles for each tile of the product.
    assert cost.moved.least == 4 * 1024**2 * (2 * 1024 / 64 + 1)
    assert cost.moved.most == 4 * 1024**2 * (2 * 1024 / 32 + 1)
    assert cost.programs is None


def test_few_programs_do_not_fill_a_gpu() -> None:
    cost = launch_cost(MATMUL, {"arg0": "64x65536", "arg1": "65536x64", "dtype": "fp16"}, "nvidia-a100-sxm4-80gb")
    assert cost is not None
    assert cost.programs == 1
    assert cost.bound == "occupancy"


def test_what_does_not_depend_on_the_device_is_known_without_a_data_sheet() -> None:
    cost = launch_cost(ADD, {"arg0": "1024", "arg1": "1024"}, "a card that is in no table")
    assert cost is not None
    assert cost.moved == exactly(3 * 4 * 1024)
    assert (cost.roofline, cost.bound) == (None, None)


@pytest.mark.parametrize(
    ("text", "workload"),
    [
        (ADD, {}),
        (ADD, {"dtype": "fp16"}),
        (ADD[: ADD.index("def add(")], {"m": "1024"}),
        (ADD.replace("x + y", "helper(x, y)"), {"arg0": "1024", "arg1": "1024"}),
        (ADD.replace("x + y", "x + helper(y_ptr, n)"), {"arg0": "1024", "arg1": "1024"}),
        ("not a program at all (", {"n": "1024"}),
    ],
)
def test_nothing_is_said_of_launches_that_are_not_known(text: str, workload: dict[str, str]) -> None:
    assert launch_cost(text, workload, "nvidia-h100-sxm") is None


def test_a_kernel_without_a_launcher_has_the_launch_that_covers_its_output() -> None:
    alone = ADD[: ADD.index("def add(")]
    # The name of the argument, that of its default, and an argument with the name of its default.
    cases = [(alone, "n"), (alone, "n_elements"), (re.sub(r"\bn\b", "n_elements", alone), "n_elements")]
    for text, name in cases:
        cost = launch_cost(text, {name: "1024", "dtype": "fp16"}, "nvidia-h100-sxm")
        assert cost is not None
        assert (cost.assumed, cost.launches, cost.bound) == (True, 1, None)
        assert cost.moved.likely == cost.distinct == 3 * 2 * 1024
    known = launch_cost(ADD, {"arg0": "1024", "arg1": "1024"}, None)
    assert known is not None
    assert not known.assumed


def test_what_the_host_does_is_no_part_of_the_launches() -> None:
    sizes = {"arg0": "4096x4096", "arg1": "4096x4096", "dtype": "fp16"}
    copied = ADD.replace("    out =", "    y = y.t().contiguous()\n    out =", 1)
    assert copied != ADD
    assert launch_cost(copied, sizes, "nvidia-h100-sxm") == launch_cost(ADD, sizes, "nvidia-h100-sxm")


def test_nothing_is_said_where_a_tensor_lacks_an_axis_that_the_text_needs() -> None:
    text = """\
@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * N + columns, mask=columns < N, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + tl.program_id(0) * N + columns, x / tl.sum(x, axis=0), mask=columns < N)

def softmax(x):
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
"""
    assert launch_cost(text, {"N": "4096", "dtype": "fp16"}, "nvidia-a100-sxm4-80gb") is None
    known = launch_cost(text, {"arg0": "4096x4096", "dtype": "fp16"}, "nvidia-a100-sxm4-80gb")
    assert known is not None
    assert known.distinct == 2 * 2 * 4096**2
