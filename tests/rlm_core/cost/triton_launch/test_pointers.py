"""The parameters of kernels that are pointers, and those of functions that are tensors."""

from __future__ import annotations

from rlm_core.cost.triton_launch.parameters import tensor_parameters
from rlm_core.cost.triton_launch.pointers import pointer_parameters

from .programs import program_of

TEXT = """
@triton.jit
def kernel(X, Y, Z, stride, scale, n):
    X += tl.program_id(0) * stride
    rows = Y + stride * n
    block = tl.make_block_ptr(base=Z + n, shape=(n,), strides=(1,), offsets=(0,), block_shape=(64,), order=(0,))
    tl.store(rows + n, tl.load(X) * scale)
    tl.load(block)

def inner(a, b, c, d, n):
    kernel[(1,)](a, b, c, d, 1.0, n=n)

def outer(p, q, r):
    return inner(p, p, p, q, r.size(0))
"""


def test_pointers_are_what_loads_and_stores_start_from() -> None:
    assert pointer_parameters(program_of(TEXT).kernels["kernel"].function) == {"X", "Y", "Z"}


def test_tensors_are_what_becomes_a_pointer_or_has_a_size() -> None:
    program = program_of(TEXT)
    tensors = tensor_parameters(program)
    assert tensors[id(program.functions["inner"])] == {"a", "b", "c"}
    assert tensors[id(program.functions["outer"])] == {"p", "r"}
