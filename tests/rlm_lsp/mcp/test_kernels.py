"""Two kernels are compared by what their launches do; a direction is stated only where it holds."""

from __future__ import annotations

from pathlib import Path

import pytest
import rlm_core
from rlm_core.inference.query_selection import QuerySelection
from rlm_core.measurement.known import KnownMeasurements
from rlm_lsp.mcp.requested_units import Code
from rlm_lsp.mcp.roots import Roots
from rlm_lsp.mcp.tools import AgentTools

COPY = """\
import torch, triton
import triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + columns, mask=columns < N)
    tl.store(y_ptr + row * N + columns, x, mask=columns < N)

def copy(x):
    M, N = x.shape
    y = torch.empty_like(x)
    copy_kernel[(M,)](x, y, N, BLOCK=triton.next_power_of_2(N))
    return y
"""
TWICE = COPY.replace("    tl.store(", "    x += tl.load(x_ptr + row * N + columns, mask=columns < N)\n    tl.store(")
ONE_BY_ONE = COPY.replace("copy_kernel[(M,)]", "for _ in range(400):\n        copy_kernel[(M,)]")
SIZES = QuerySelection(devices=("nvidia-a100-sxm4-80gb",), workload={"M": "4096", "N": "4096", "dtype": "fp16"})


@pytest.fixture(scope="module")
def tools() -> AgentTools:
    return AgentTools(rlm_core.load, KnownMeasurements(None))


def test_what_differs_is_stated_where_it_is_unknown_which_one_is_faster(tools: AgentTools, tmp_path: Path) -> None:
    roots = Roots.of_folders([tmp_path])
    lines, answer = tools.compare(roots, Code(None, COPY), Code(None, TWICE), SIZES, "copy_kernel")
    assert lines == [
        "copy_kernel: latency on nvidia-a100-sxm4-80gb cannot tell which costs more: moves 96 MiB instead of 64 MiB,"
        " 17 MFLOP instead of 0 FLOP, 4.1k programs as before at M 4096, N 4096, dtype fp16; measure both"
    ]
    [row] = answer.rows
    assert row.direction is None
    assert row.launch_before is not None
    assert row.launch_before["moved_bytes"]["likely"] == 2**26


def test_a_direction_is_stated_where_both_are_known_and_far_apart(tools: AgentTools, tmp_path: Path) -> None:
    roots = Roots.of_folders([tmp_path])
    [line], answer = tools.compare(roots, Code(None, COPY), Code(None, ONE_BY_ONE), SIZES, "copy_kernel")
    assert "higher with 90 % probability: moves 25 GiB instead of 64 MiB" in line
    assert answer.rows[0].direction == "higher"


def test_without_sizes_that_fix_the_launches_nothing_is_said_of_them(tools: AgentTools, tmp_path: Path) -> None:
    roots = Roots.of_folders([tmp_path])
    open_sizes = QuerySelection(devices=SIZES.devices, workload={"N": "4096", "dtype": "fp16"})
    [line], _ = tools.compare(roots, Code(None, COPY), Code(None, TWICE), open_sizes, "copy_kernel")
    assert "the first and the second text does not fix what its launches do at N 4096, dtype fp16; measure both" in line


def test_no_direction_is_stated_for_the_function_that_launches_them(tools: AgentTools, tmp_path: Path) -> None:
    roots = Roots.of_folders([tmp_path])
    _, answer = tools.compare(roots, Code(None, ONE_BY_ONE), Code(None, COPY), SIZES, "copy")
    assert {row.direction for row in answer.rows} == {None}
