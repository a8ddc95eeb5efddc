"""Launches that no device could run, and texts that have no end, are given up within a budget of steps."""

from __future__ import annotations

import pytest
from rlm_core.cost.triton_launch.workload import WorkloadFacts, workload_facts

KERNEL = """
@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {inside}
    tl.store(x + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)

def run(x):
    n = x.numel()
    {before}
    kernel[({grid},)](x, n, BLOCK={block})
    return x
"""
SIZES = {"arg0": "1048576", "dtype": "fp16"}


def facts(
    inside: str = "", before: str = "", grid: str = "triton.cdiv(n, 1024)", block: str = "1024", sizes: str = "1048576"
) -> WorkloadFacts | None:
    text = KERNEL.format(inside=inside, before=before, grid=grid, block=block)
    return workload_facts(text, {"arg0": sizes, "dtype": "fp16"})


def test_the_kernel_without_any_of_it_is_known() -> None:
    found = facts()
    assert found is not None
    assert found.known
    assert found.facts[0].counts["loaded"].likely == 2 * 1048576


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "arguments",
    [
        {"grid": "10**12"},
        {"grid": "-5"},
        {"grid": "float('inf')"},
        {"grid": "1e308 * 10"},
        {"grid": "9**9**9"},
        {"block": "2**60"},
        {"inside": "a = tl.zeros((4096, 4096, 4096, 4096), tl.float32)"},
        {"inside": "kernel(x, n, BLOCK)"},
        {"inside": "z = " + "(" * 3000 + "offsets" + ")" * 3000},
        {"before": "run(x)"},
        {"sizes": "9" * 30 + "x" + "9" * 30},
    ],
)
def test_what_cannot_run_has_no_known_launches(arguments: dict[str, str]) -> None:
    found = facts(**arguments)
    assert found is None or not (found.known and found.complete)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("loop", ["while True:", "for i in range(10**9):\n        for j in range(10**9):"])
def test_launches_without_an_end_are_not_complete(loop: str) -> None:
    found = facts(before=f"{loop}\n            kernel[(1,)](x, n, BLOCK=64)")
    assert found is None or not found.complete


@pytest.mark.timeout(20)
def test_a_long_loop_of_launches_counts_as_a_whole() -> None:
    found = facts(before="for i in range(8000):\n        kernel[(1,)](x, n, BLOCK=64)")
    assert found is not None
    assert found.launches == 8001


@pytest.mark.timeout(20)
def test_values_that_would_fill_the_memory_are_not_made() -> None:
    for before in ("y = [0] * 10**12", "y = 'a' * 10**12", "y = 1 << 10**10"):
        found = facts(before=before)
        assert found is not None
        assert found.known
