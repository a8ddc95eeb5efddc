"""A kernel that nothing launches has the launch that covers once what its masks let it store."""

import pytest
from rlm_core.cost.triton_launch.host import read_program
from rlm_core.cost.triton_launch.launch import LaunchFacts
from rlm_core.cost.triton_launch.unlaunched import assumed_launch

ADD = """\
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)
"""
SOFTMAX = """\
@triton.jit
def softmax_kernel(x_ptr, y_ptr, x_row_stride, y_row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < n_cols, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_row_stride + columns, x / tl.sum(x, axis=0), mask=columns < n_cols)
"""
MATMUL = """\
@triton.autotune(configs=[triton.Config({"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP": 4})], key=["M"])
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(axis=0)
    rows, columns = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = GROUP * columns
    first = pid // group * GROUP
    height = min(rows - first, GROUP)
    row = first + (pid % group) % height
    column = (pid % group) // height
    m = row * BLOCK_M + tl.arange(0, BLOCK_M)
    n = column * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + (m % M)[:, None] * stride_am + k[None, :] * stride_ak, mask=k[None, :] < K)
        b = tl.load(b_ptr + k[:, None] * stride_bk + (n % N)[None, :] * stride_bn, mask=k[:, None] < K)
        total += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn, total, mask=(m[:, None] < M) & (n[None, :] < N))
"""


def facts(text: str, **sizes: str) -> LaunchFacts | None:
    program = read_program(text)
    assert program is not None
    launch = assumed_launch(program, sizes)
    return None if launch is None else launch[0]


def moved(found: LaunchFacts | None) -> float:
    assert found is not None
    return found.counts["loaded"].likely + found.counts["stored"].likely


@pytest.mark.parametrize("n", [1, 63, 1000, 4097])
def test_masks_say_where_a_grid_ends(n: int) -> None:
    found = facts(ADD, n=str(n), dtype="fp16")
    assert moved(found) == 3 * 2 * n
    assert found is not None
    assert found.footprint == 3 * 2 * n


def test_a_block_that_must_hold_a_row_grows_until_it_does_so() -> None:
    found = facts(SOFTMAX, M="100", n_cols="3000", dtype="fp32")
    assert moved(found) == 2 * 4 * 100 * 3000
    assert found is not None
    assert found.grid == (100, 1, 1)
    assert found.footprint == 2 * 4 * 100 * 3000


def test_swizzled_tiles_cover_a_product_once() -> None:
    found = facts(MATMUL, M="256", N="256", K="128", dtype="fp16")
    assert found is not None
    assert found.grid == (4 * 8, 1, 1)
    assert found.counts["stored"].likely == 2 * 256 * 256
    assert found.counts["dot"].likely == 2 * 256 * 256 * 128


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (ADD, {"dtype": "fp16"}),  # the masks are those of an unknown number
        (SOFTMAX, {"n_cols": "3000"}),  # nothing says how many rows there are
        (ADD.replace("mask = offsets < n", "mask = tl.load(y_ptr + offsets) < n"), {"n": "1000"}),
        (ADD.replace("tl.program_id(axis=0)", "(tl.program_id(0) + tl.num_programs(0))"), {"n": "1000"}),
        (ADD.replace("tl.load(x_ptr", "helper(x_ptr"), {"n": "1000"}),
        (ADD + SOFTMAX, {"n": "1000", "n_cols": "1000"}),
        (ADD, {"n": str(2**62)}),
        (ADD.replace("tl.constexpr", "tl.constexpr = 2**40"), {"n": "1000"}),
    ],
)
def test_nothing_is_assumed_that_the_text_does_not_fix(text: str, sizes: dict[str, str]) -> None:
    assert facts(text, **sizes) is None


def test_a_search_has_an_end() -> None:
    endless = ADD.replace("    mask =", "    while offsets < n:\n        n += 1\n    mask =")
    assert facts(endless, n="1000") is None
