"""Kernels as text, and the facts of their launches, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm_core.cost.torch_trace.values import Tensor
from rlm_core.cost.triton_launch.host import HostProgram, read_program
from rlm_core.cost.triton_launch.launch import LaunchFacts, evaluate_launch

COPY = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)

def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
"""


def program_of(text: str) -> HostProgram:
    """The program of a text that has kernels."""
    program = read_program(text)
    assert program is not None
    return program


def facts_of(
    body: str, grid: tuple[int, ...] = (1,), parameters: str = "x_ptr, y_ptr, n", **arguments: Any
) -> LaunchFacts:
    """The facts of a kernel with this body; tensors of 2**20 FP32 numbers where no argument is given."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    program = program_of(f"@triton.jit\ndef kernel({parameters}):\n{lines}\n")
    usual: Mapping[str, Any] = {"x_ptr": Tensor((2**20,)), "y_ptr": Tensor((2**20,)), "n": 1000}
    facts = evaluate_launch(program.kernels["kernel"].function, grid, {**usual, **arguments})
    assert facts is not None
    return facts


def likely(facts: LaunchFacts, *names: str) -> list[float]:
    """The likely counts of these names."""
    return [facts.counts[name].likely for name in names]
