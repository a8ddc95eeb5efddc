"""Features of kernels: sizes and rooflines that can be worked out by hand, and no exception on odd input."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.features.kernel import NAMES, describe, features
from rlm_core.queries.sizes import elements, products, read_sizes

GEMM = """\
@triton.autotune(configs=[triton.Config({'BLOCK_M': 128, 'BLOCK_N': 64}, num_warps=8, num_stages=3)], key=['M'])
@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr):
    acc = 0
    for k in range(0, K):
        for j in range(2):
            acc += tl.dot(tl.load(a_ptr), tl.load(b_ptr))
    tl.store(c_ptr, acc)
"""
A100 = "nvidia-a100-sxm4-80gb"


def named(text: str, workload: dict[str, str], device: str | None = A100) -> dict[str, float]:
    return dict(zip(NAMES, features(describe(text), workload, device).tolist(), strict=True))


def test_names_are_unique_and_as_many_as_the_values() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert features(describe(""), {}, None).shape == (len(NAMES),)


def test_a_text_is_described_by_its_operations_loops_and_blocks() -> None:
    values = named(GEMM, {})
    assert values["count_load"] == pytest.approx(math.log10(3))
    assert values["count_store"] == pytest.approx(math.log10(2))
    assert (values["has_dot"], values["loops"], values["loop_depth"]) == (1, 2, 2)
    assert (values["loops_with_dot"], values["loops_with_load"]) == (2, 2)
    assert (values["warps"], values["stages"], values["parameters"], values["pointers"]) == (8, 3, 7, 3)
    assert values["block_max"] == pytest.approx(math.log10(128))


def test_loops_that_follow_one_another_are_not_nested() -> None:
    values = named("for i in a:\n    x\ny\nfor j in b:\n    tl.load(x)\n", {})
    assert (values["loops"], values["loop_depth"], values["loops_with_load"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("line", "launches"),
    [
        ("add[grid](x, y)", 1),
        ("a[0](x); add[(n // 2,)] (y)", 1),
        ("add[lambda meta: (cdiv(n, meta['B']),)](x)", 0),
        ("add[f(a[0], 1)](x); x[i, j]; sub[grid](b[g(1,)](c))", 2),
        ("a[\nadd[grid](x)", 1),
        ("[grid](x)", 0),
    ],
)
def test_launches_are_counted(line: str, launches: int) -> None:
    described = dict(zip(NAMES, describe(line).values, strict=False))
    assert round(10 ** described["count_launch"]) - 1 == launches


def test_triton_ir_is_counted_like_its_source() -> None:
    values = named("tt.func public @f() {\n  scf.for %i = %a to %b {\n    %0 = tt.load %p\n    tt.dot %0\n  }\n}\n", {})
    assert (values["has_dot"], values["loops"], values["loops_with_dot"]) == (1, 1, 1)
    assert values["count_load"] == pytest.approx(math.log10(2))


def test_the_roofline_of_an_elementwise_kernel_is_bytes_over_bandwidth() -> None:
    values = named("x", {"arg0": "1024x1024", "arg1": "1024x1024", "dtype": "fp16"})
    assert values["bytes"] == pytest.approx(math.log10(2 * 2 * 2**20), abs=1e-5)
    assert values["seconds_memory"] == pytest.approx(math.log10(2**22 / 2.039e12), abs=1e-4)


@pytest.mark.parametrize(
    "workload",
    [
        {"arg0": "512x1024", "arg1": "1024x256"},
        {"arg0": "512x1024", "arg1": "256x1024"},
        {"M": "512", "N": "256", "K": "1024"},
    ],
)
def test_a_matrix_product_counts_its_multiply_adds_however_it_is_given(workload: dict[str, str]) -> None:
    assert products(read_sizes(workload))["matmul"] == 512 * 256 * 1024


def test_a_batched_product_counts_its_batch_once() -> None:
    assert products(read_sizes({"arg0": "8x32x64", "arg1": "8x64x16"}))["matmul"] == 8 * 32 * 64 * 16


def test_attention_counts_queries_times_keys() -> None:
    sizes = read_sizes({"arg0": "2x8x128x64", "arg1": "2x8x256x64", "arg2": "2x8x256x64"})
    assert products(sizes)["attention"] == 2 * 8 * 128 * 256 * 64


def test_named_sizes_play_their_roles() -> None:
    assert elements(read_sizes({"B": "8", "T": "2048", "V": "32768"})) == 8 * 2048 * 32768
    assert elements(read_sizes({"M": "2048", "H": "4096", "eps": "1e-06"})) == 2048 * 4096
    # A swept length stands before the longest one of the sweep.
    assert elements(read_sizes({"BT": "1024", "hidden_size": "4096", "bsz": "1", "seq_len": "8192"})) == 1024 * 4096


def test_more_of_everything_is_never_estimated_cheaper() -> None:
    small = named(GEMM, {"M": "64", "N": "64", "K": "64", "dtype": "bf16"})
    large = named(GEMM, {"M": "8192", "N": "8192", "K": "8192", "dtype": "bf16"})
    assert small["seconds_roofline"] < large["seconds_roofline"]
    slow = named(GEMM, {"M": "8192", "N": "8192", "K": "8192", "dtype": "bf16"}, "nvidia-l4")
    assert slow["seconds_roofline"] > large["seconds_roofline"]


def test_an_unknown_device_leaves_its_figures_open_but_not_the_estimate() -> None:
    values = named(GEMM, {"M": "64", "N": "64", "K": "64"}, "nobody's card")
    assert math.isnan(values["bandwidth"])
    assert math.isfinite(values["seconds_roofline"])


@given(
    st.text(max_size=60),
    st.dictionaries(
        st.sampled_from(["arg0", "arg1", "M", "N", "K", "H", "V", "dtype", "mode", "x"]),
        st.one_of(st.text(max_size=8), st.from_regex(r"-?[0-9]{1,6}(x[0-9]{1,6}){0,3}", fullmatch=True)),
    ),
    st.one_of(st.none(), st.text(max_size=10), st.just(A100)),
)
def test_odd_texts_and_workloads_raise_nothing(text: str, workload: dict[str, str], device: str | None) -> None:
    values = features(describe(text), workload, device)
    assert values.dtype == np.float32
    assert not np.isinf(values).any()


@pytest.mark.parametrize(
    "piece",
    [" ", "a", "1", "a[", "BLOCK", "jit\n@x\n", "@jit\ndef f(", "jit ", "\n", "num_warps ", "x,", "a[(", "a[(1,", "1["],
)
def test_no_text_takes_a_time_that_grows_with_the_square_of_its_length(piece: str) -> None:
    began = time.process_time()
    describe(f"@triton.jit\ndef f(x):\n    BLOCK = {piece * (1_000_000 // len(piece))}")
    assert time.process_time() - began < 5


LAUNCHED = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

def run(x):
    y = torch.empty_like(x)
    for _ in range(50):
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""


def test_the_estimate_is_that_of_the_launches_where_they_are_known() -> None:
    workload = {"arg0": "1048576", "dtype": "fp32"}
    known = dict(zip(NAMES, features(describe(LAUNCHED), workload, "nvidia-a100-sxm4-80gb"), strict=True))
    assert known["seconds_estimate"] == known["time_launches"] > known["seconds_roofline"]
    assert known["estimate_over_roofline"] == pytest.approx(
        known["seconds_estimate"] - known["seconds_roofline"], abs=1e-5
    )
    alone = LAUNCHED[: LAUNCHED.index("def run")]
    unknown = dict(zip(NAMES, features(describe(alone), workload, "nvidia-a100-sxm4-80gb"), strict=True))
    assert unknown["seconds_estimate"] == unknown["seconds_roofline"]
    assert math.isnan(unknown["time_launches"])
    full = {**workload, "mode": "full"}
    passes = dict(zip(NAMES, features(describe(LAUNCHED), full, "nvidia-a100-sxm4-80gb"), strict=True))
    assert passes["seconds_estimate"] == pytest.approx(known["seconds_estimate"] + math.log10(3), abs=1e-5)
