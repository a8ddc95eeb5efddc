"""Default sizes of kernels: which arguments are sizes, their names in a workload, and when there is no workload."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from rlm_core.queries.kernel_arguments import default_workload, kernel_arguments
from rlm_core.queries.sizes import elements, read_sizes

FLASH = """\
@triton.jit
def kernel(Q, K, V, sm_scale, M, Out, stride_qz, stride_kz, Z, H, N_CTX, HEAD_DIM: tl.constexpr):
    q = tl.make_block_ptr(base=Q + 1, shape=(N_CTX, HEAD_DIM))
    acc = inner(tl.load(q), K, V)
    m_ptrs = M + tl.program_id(0) * N_CTX
    tl.store(m_ptrs, 1)
    out = tl.make_block_ptr(Out, shape=(N_CTX, HEAD_DIM))
    tl.store(out, acc)
"""
NORM = """\
@triton.jit
def kernel(X, Y, W, B, Mean, stride, N, eps, BLOCK: tl.constexpr):
    Y += row * stride
    (X + 1).to(tl.float32)
    x = tl.load((X + row * stride) + cols, mask=cols < N)
    w, b = tl.load(W + cols), tl.load(B + cols)
    tl.store(Mean + row, mean)
    tl.store(Y + cols, x)
"""


def sizes(text: str, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
    workload = default_workload(kernel_arguments(text, "kernel"), chosen or {})
    return {name: value for name, value in workload.items() if name != "dtype"}


def kernel(parameters: str, body: str = "tl.store(x_ptr, 1)", decorator: str = "@triton.jit") -> str:
    return f"{decorator}\ndef kernel({parameters}):\n    {body}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (kernel("x_ptr, n_elements, BLOCK: tl.constexpr"), {"n_elements": "4194304"}),
        (kernel("x_ptr, n, BLOCK: tl.constexpr"), {"n_elements": "4194304"}),
        (kernel("x_ptr, size"), {"n_elements": "4194304"}),
        (kernel("x_ptr, M, N, K, stride_am"), {"M": "4096", "N": "4096", "K": "4096"}),
        (kernel("x_ptr, n_rows, n_cols=1"), {"n_rows": "4096", "n_cols": "4096"}),
        (kernel("x_ptr, row_stride, n_cols: tl.constexpr"), {"M": "4096", "n_cols": "4096"}),
        (kernel("x_ptr, row_stride, VOCAB_SIZE: tl.constexpr = 1"), {"VOCAB_SIZE": "32000"}),
        (kernel("x_ptr, T, H, K, V, BT"), {"T": "2048", "num_heads": "32", "head_dim": "128"}),
        (kernel("x_ptr, xnumel", "xnumel = 65536; tl.store(x_ptr, 1)"), {"xnumel": "65536"}),
        (kernel("x_desc, n_rows", "x_desc.store([0], 1)"), {"n_rows": "4096"}),
        (FLASH, {"batch": "4", "num_heads": "32", "N_CTX": "2048", "HEAD_DIM": "128"}),
        (NORM, {"M": "4096", "N": "4096"}),
        (
            kernel("x_ptr, ROWS, WIDE, IS_CAUSAL", decorator="@triton.autotune([], key=['HIGH', 'ROWS'])\n@triton.jit"),
            {"ROWS": "4096"},
        ),
        (
            kernel("x_ptr, HIGH, WIDE, IS_X", decorator="@triton.autotune([], ['HIGH', 'IS_X', 'WIDE'])\n@triton.jit"),
            {"M": "4096", "N": "4096"},
        ),
    ],
)
def test_arguments_are_known_by_their_names(text: str, expected: dict[str, str]) -> None:
    assert {name.upper(): size for name, size in sizes(text).items()} == {n.upper(): s for n, s in expected.items()}


@pytest.mark.parametrize(
    "text",
    [
        kernel("x_ptr, y_ptr, BLOCK: tl.constexpr"),
        kernel("x, M, N", "return x * M"),
        kernel("x_ptr, scale, key", decorator="@triton.autotune([], key=keys())\n@triton.jit"),
        "@triton.jit\ndef another(x_ptr, M): tl.store(x_ptr, 1)\n",
        "",
    ],
)
def test_unknown_names_give_no_workload(text: str) -> None:
    assert default_workload(kernel_arguments(text, "kernel"), {"dtype": "bf16"}) == {}


def test_chosen_sizes_take_precedence_over_the_table_by_either_name() -> None:
    text = kernel("x_ptr, n_rows, n_cols, odd")
    assert sizes(text, {"N_ROWS": "5", "N": "6", "odd": "7", "absent": "8"}) == {
        "n_rows": "5",
        "n_cols": "6",
        "odd": "7",
    }
    assert default_workload(kernel_arguments(text, "kernel"), {"dtype": "bf16"})["dtype"] == "bf16"
    assert sizes(kernel("x_ptr, n"), {"n": "5"}) == {"n_elements": "5"}
    # What the kernel itself says is a fact.
    assert sizes(kernel("x_ptr, xnumel", "xnumel = 64; tl.store(x_ptr, 1)"), {"xnumel": "5"}) == {"xnumel": "64"}


@pytest.mark.parametrize("text", [FLASH, NORM, kernel("x_ptr, n_elements"), kernel("x_ptr, M, N, K, stride")])
def test_the_sizes_are_those_of_real_work(text: str) -> None:
    assert 1e6 < elements(read_sizes(default_workload(kernel_arguments(text, "kernel"), {}))) < 1e9
