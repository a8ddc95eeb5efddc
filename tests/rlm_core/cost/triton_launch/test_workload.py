"""Workloads of labels and comments -> the function that launches, its arguments, and what it does."""

from __future__ import annotations

import pytest
from rlm_core.cost.triton_launch.workload import launchers, typical_calls, workload_facts

from .programs import COPY, program_of

NORM = """
@triton.jit
def forward_kernel(X, W, Y, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(X + row * stride + cols, mask=cols < n_cols)
    w = tl.load(W + cols, mask=cols < n_cols)
    tl.store(Y + row * stride + cols, x * w, mask=cols < n_cols)

@triton.jit
def backward_kernel(DY, X, stride, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.load(X + tl.program_id(0) * stride + cols, mask=cols < n_cols)

class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, W, eps: float, in_place=False):
        Y = torch.empty_like(X)
        rows, columns = X.shape
        forward_kernel[(rows,)](X, W, Y, X.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
        ctx.save_for_backward(X, W)
        return Y

    @staticmethod
    def backward(ctx, dY):
        X, W = ctx.saved_tensors
        rows, columns = X.shape
        backward_kernel[(rows,)](dY, X, X.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
        return dY
"""


def test_arguments_by_position() -> None:
    facts = workload_facts(COPY, {"arg0": "100x10", "dtype": "fp16"})
    assert facts is not None
    assert facts.known
    assert facts.facts[0].counts["loaded"].likely == 2000
    assert facts.operations == 0  # memory that is reserved is not written


@pytest.mark.parametrize(
    "sizes", [{"M": "300", "N": "100"}, {"BT": "300", "H": "100"}, {"B": "3", "T": "100", "H": "100"}]
)
def test_sizes_by_name(sizes: dict[str, str]) -> None:
    facts = workload_facts(NORM, {**sizes, "dtype": "bf16", "mode": "forward"})
    assert facts is not None
    assert facts.facts[0].kernel == "forward_kernel"
    assert facts.facts[0].counts["loaded"].likely == 2 * 2 * 300 * 100


def test_one_size_is_a_vector() -> None:
    facts = workload_facts(COPY, {"N": "32000", "dtype": "fp32", "timed": "host"})
    assert facts is not None
    assert facts.facts[0].counts["stored"].likely == 4 * 32000


def test_what_launches_comes_first_and_tests_never_do() -> None:
    program = program_of(COPY + "\ndef test_run():\n    run(1)\n\ndef outer(x):\n    return run(x)\n")
    assert [function.name for function in launchers(program, {})] == ["outer", "run"]


def test_the_backward_pass_uses_what_the_forward_pass_saved() -> None:
    program = program_of(NORM)
    launched = set()
    for function, arguments, named in typical_calls(program):
        for launch in program.run(function, arguments, named).launches:
            launched |= {launch.kernel.name for variant in launch.variants if variant.grid == (4096,)}
    assert launched == {"forward_kernel", "backward_kernel"}


def test_no_launch_gives_no_facts() -> None:
    assert workload_facts("def f(x):\n    return x\n", {"arg0": "8x8"}) is None
    assert workload_facts(COPY.replace("kernel[", "other["), {"arg0": "8x8"}) is None


ROW = """
@triton.jit
def kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    row = tl.program_id(0)
    tl.store(y_ptr + row * n_cols + cols, tl.load(x_ptr + row * n_cols + cols, mask=mask), mask=mask)

def run(x, {parameters}):
    rows, columns = x.shape
    kernel[(rows,)](x, {output}, {count}, BLOCK=triton.next_power_of_2(columns))
"""
SIZES = {"M": "64", "N": "128", "dtype": "fp32"}


@pytest.mark.parametrize(
    ("parameters", "output", "count", "is_known"),
    [
        ("y", "y", "columns", True),
        ("y", "y", "columns // 2", False),  # not the number of the workload
        ("y", "torch.empty(columns)", "columns", False),  # stores behind its end
        ("y, classes", "y", "classes", False),  # a number that nothing specifies decides
        ("y, seed", "y", "columns", True),
    ],
)
def test_launches_are_known_where_tensors_and_numbers_agree_with_the_workload(
    parameters: str, output: str, count: str, is_known: bool
) -> None:
    text = ROW.format(parameters=parameters, output=output, count=count)
    facts = workload_facts(text, SIZES, {"kernel": {"n_cols": 128}})
    assert facts is not None
    assert facts.stated is is_known
    assert not is_known or facts.facts[0].counts["loaded"].likely == 4 * 64 * 128
