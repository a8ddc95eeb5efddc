"""A grid of programs: all of them, or some that stand for the others."""

from __future__ import annotations

import pytest
from rlm_core.cost.torch_trace.values import Tensor
from rlm_core.cost.triton_launch.launch import evaluate_launch

from .programs import facts_of, likely, program_of

ROWS = "i = tl.program_id(0) * 128 + tl.arange(0, 128)\ntl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)"


@pytest.mark.parametrize("n", [100, 1000, 10_000, 1_000_001])
def test_the_last_program_of_an_axis_is_cut_short(n: int) -> None:
    facts = facts_of(ROWS, (-(-n // 128),), n=n)
    assert likely(facts, "loaded", "stored") == pytest.approx([4 * n, 4 * n])


def test_a_small_grid_is_exact_and_a_large_one_is_not() -> None:
    small, large = facts_of(ROWS, (8,), n=1000), facts_of(ROWS, (1_000_000,), n=10**9)
    assert (small.exact, small.evaluated, small.programs) == (True, 8, 8)
    assert not large.exact
    assert large.evaluated < 20


@pytest.mark.parametrize("size", [10, 200, 3000])
def test_work_that_grows_along_the_grid(size: int) -> None:
    body = "for k in range(tl.program_id(0)):\n    tl.load(x_ptr + k)"
    [loaded] = likely(facts_of(body, (size,)), "loaded")
    assert loaded == pytest.approx(4 * size * (size - 1) / 2, rel=0.1)
    assert facts_of(body, (size,)).largest > 1.5


def test_grids_with_several_axes() -> None:
    body = "i = tl.program_id(1)\nif i < n:\n    tl.load(x_ptr + i + tl.program_id(0) + tl.num_programs(2))"
    assert likely(facts_of(body, (40, 50, 3), n=50), "loaded") == pytest.approx([40 * 50 * 3 * 4])


def test_no_program_does_nothing() -> None:
    facts = facts_of(ROWS, (0,))
    assert facts.programs == 0
    assert likely(facts, "loaded") == [0]


def test_a_tensor_given_twice_is_one() -> None:
    program = program_of("@triton.jit\ndef kernel(a, b):\n    tl.load(a)\n    tl.store(b, 1.0)\n")
    x = Tensor((1,))
    facts = evaluate_launch(program.kernels["kernel"].function, (1,), {"a": x, "b": x})
    assert facts is not None
    assert facts.footprint == 4


def test_an_optional_tensor_that_is_used_is_there() -> None:
    body = "tl.load(x_ptr + tl.arange(0, 64))"
    assert facts_of(body, x_ptr=None).known
    asked = "if x_ptr is not None:\n    tl.load(x_ptr)"
    assert likely(facts_of(asked, x_ptr=None), "loaded") == [0]
