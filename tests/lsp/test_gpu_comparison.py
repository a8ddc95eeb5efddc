"""What the launches of a kernel do, in hovers, and the same kernel on all GPUs, over a real connection."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from tests.fakes import unpadded

from .conftest import Start
from .recording import recording
from .test_code_actions import actions, client

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

SOFTMAX = """\
import torch
import triton
import triton.language as tl


# rlm: sizes M=4096 N=4096 dtype=fp16
@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + columns, mask=columns < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * N + columns, e / tl.sum(e, axis=0), mask=columns < N)


def softmax(x):
    M, N = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(M,)](x, y, N, BLOCK=triton.next_power_of_2(N))
    return y
"""
KERNEL = SOFTMAX.split("\n").index("def softmax_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):")
LAUNCHER = SOFTMAX.split("\n").index("def softmax(x):")


async def test_a_hover_shows_what_a_launch_does_next_to_each_gpu(start: Start, tmp_path: Path) -> None:
    session = await start(refresh=False, options={"devices": ["a100", "h100"]})
    hover = await session.hover(session.open(tmp_path / "softmax.py", SOFTMAX), KERNEL, 5)
    assert hover is not None
    text = unpadded(hover)
    assert "| device | median | 80 % band | 90 % band | roofline | of roofline | bound by |" in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| latency | ")]
    assert [row[1] for row in rows] == ["nvidia-a100-sxm4-80gb", "nvidia-h100-sxm"]
    assert [row[-1].rstrip(" |") for row in rows] == ["bandwidth", "bandwidth"]
    # 64 MiB are loaded or stored, at 2.0 and 3.35 TB/s.
    assert [row[5] for row in rows] == ["33 µs", "20 µs"]
    assert re.search(r"- moves 64 MiB, \d+ MFLOP, [\d.]+ FLOP per byte; 1 launch, 4.1k programs\n", text)


async def test_a_kernel_is_compared_on_all_gpus(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "softmax.py", SOFTMAX)
        await session.pull(uri)
        offered = {action.title: action for action in await actions(session, uri, KERNEL, 5)}
        action = offered["Compare GPUs"]
        assert isinstance(action, types.Command)
        assert action.arguments is not None
        compared = await session.command(action.command, *action.arguments)
        rows = compared["rows"]
        assert len(rows) >= 10
        assert [row["median"] for row in rows] == sorted(row["median"] for row in rows)
        assert all(row["launch"]["moved_bytes"]["likely"] == 2 * 4096 * 4096 * 2 for row in rows)
        assert all(0 < row["launch"]["share_of_roofline"] <= 1 for row in rows if row["launch"]["roofline"])
        lines = unpadded(compared["markdown"]).splitlines()
        assert "| GPU | median | 80 % band | roofline | of roofline | bound by |" in lines
        assert [line.split(" | ")[0] for line in lines if line.startswith(("| nvidia", "| amd"))] == [
            f"| {row['device']}" for row in rows
        ]


async def test_functions_are_not_compared_on_gpus(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "softmax.py", SOFTMAX)
        await session.pull(uri)
        assert "Compare GPUs" not in [action.title for action in await actions(session, uri, LAUNCHER, 5)]
        with pytest.raises(JsonRpcInvalidParams, match="softmax is not a kernel or a module"):
            await session.command("rlm-lsp.compareGpus", uri, {"line": LAUNCHER, "character": 5})
