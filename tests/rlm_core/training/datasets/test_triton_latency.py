"""Programs of triton-gpu-latency become rows of modules; what failed is counted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from rlm_core.errors import DataError
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.training.datasets.schema import read_rows
from rlm_core.training.datasets.splits import split_of
from rlm_core.training.datasets.triton_latency import TritonLatencyBuilder
from rlm_lsp.cli.app import app

PROGRAM = """\
import torch
import torch.nn as nn
import triton
import triton.language as tl


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) {problem}


def get_inputs():
    return [torch.rand(4096, 4096)]


def get_init_inputs():
    return []


@triton.jit
def relu_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.maximum(tl.load(x + at, mask=at < n), 0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[({answer},)](x, out, x.numel(), BLOCK=1024)
        return out
"""


def program(problem: str = "", answer: int = 4) -> str:
    return PROGRAM.replace("{problem}", problem).replace("{answer}", str(answer))


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def held_out(y: float | None, group: str, problem: str = "1_19", **changes: Any) -> dict[str, Any]:
    return {"x": program(), "y": y, "problem_id": problem, "holdout_group": group} | changes


def test_a_row_is_a_forward_pass_in_seconds_with_the_text_that_the_server_reads(tmp_path: Path) -> None:
    path = write(tmp_path / "test.parquet", [held_out(0.25, "full_holdout")])
    [row] = TritonLatencyBuilder(path, "H100").rows()
    assert (row["basis"], row["language"], row["metric"]) == ("module", "pytorch", "latency")
    assert (row["value"], row["device"]) == (0.00025, "nvidia-h100-sxm")
    assert row["workload"] == {"backend": "eager"}
    units = find_units(ParsedSource(program().encode(), "python"))
    [unit] = [unit for unit in units if unit.qualname == "ModelNew"]
    assert (unit.basis, unit.language, unit.text) == (row["basis"], row["language"], row["text"])
    for part in ("relu_kernel", "class ModelNew", "get_inputs", "4096"):
        assert part in row["text"]
    assert "class Model(" not in row["text"]


def test_held_out_problems_are_tested_and_their_groups_are_their_problems(tmp_path: Path) -> None:
    rows = [
        held_out(1.0, group, f"1_{n}") for n, group in enumerate(("full_holdout", "ninety_holdout", "half_holdout"))
    ]
    path = write(tmp_path / "test.parquet", rows)
    found = list(TritonLatencyBuilder(path, "H100").rows())
    assert [row["group"] for row in found] == [f"triton-gpu-latency/1_{n}" for n in range(3)]
    assert [row["held_out"] for row in found] == ["problem", "text", "text"]
    assert {row["split"] for row in found} == {"test"}
    assert {row["split"] for row in TritonLatencyBuilder(path, "H100", "cal").rows()} == {"cal"}


def test_programs_without_a_named_problem_are_grouped_by_its_text(tmp_path: Path) -> None:
    commented = program(answer=2).replace("def forward", "# a comment\n    def forward", 1)
    rows = [{"x": text, "y": 1.0} for text in (program(answer=1), commented, program("+ 1", 1))]
    path = write(tmp_path / "train.parquet", rows)
    first, second, third = TritonLatencyBuilder(path, "nvidia-h100-sxm").rows()
    assert first["group"] == second["group"] != third["group"]
    assert first["text"] != second["text"]
    assert [row["split"] for row in (first, third)] == [split_of(first["group"]), split_of(third["group"])]
    assert first["held_out"] == "problem"


def test_a_folder_is_read_file_by_file_and_what_has_no_number_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "data" / "train.parquet", [{"x": program(), "y": 2.0}, {"x": program(), "y": None}])
    rows = [
        held_out(math.nan, "full_holdout"),
        held_out(0.0, "full_holdout"),
        held_out(1.0, "full_holdout", x=" "),
        held_out(1.0, "full_holdout", x="import torch\n"),
    ]
    write(tmp_path / "data" / "test.parquet", rows)
    steps: list[tuple[int, int]] = []
    builder = TritonLatencyBuilder(tmp_path / "data", "H100")
    [row] = builder.rows(lambda done, total: steps.append((done, total)))
    assert row["id"] == "triton-gpu-latency/train/0"
    assert builder.report().left_out == {
        "the program failed": 2,
        "no positive time": 1,
        "empty text": 1,
        "no module ModelNew": 1,
    }
    assert builder.report().examples["the program failed"] == ["test/0", "train/1"]
    assert steps == [(4, 6), (6, 6)]


def test_another_file_or_device_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "a.parquet", [{"x": "a"}])
    (tmp_path / "empty").mkdir()
    for own, device, message in (
        (path, "H100", "has no column 'y'; is this a file of triton-gpu-latency"),
        (path, "toaster", "--device toaster: unknown"),
        (tmp_path / "empty", "H100", "holds no .parquet file"),
        (tmp_path / "none.parquet", "H100", "not a readable Parquet file"),
    ):
        with pytest.raises(DataError, match=message):
            TritonLatencyBuilder(own, device)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_it_is_built_by_the_command_line_which_needs_the_device(tmp_path: Path) -> None:
    path = write(tmp_path / "test.parquet", [held_out(0.25, "full_holdout"), held_out(None, "full_holdout")])
    arguments = ("data", "build", "triton-latency", "--labels", path, "--out", tmp_path / "out.parquet")
    missing = run(*arguments)
    assert missing.exit_code == 2
    assert "--device is missing" in missing.stderr
    result = run(*arguments, "--device", "B200")
    assert result.exit_code == 0, result.output
    assert "1 rows of 1 units" in result.stdout
    assert "left out 1: the program failed; for example test/1" in result.stdout
    [row] = read_rows([tmp_path / "out.parquet"])
    assert (row["device"], row["workload"]) == ("nvidia-b200", {"backend": "eager"})
    other = run("data", "build", "triton", "--labels", path, "--out", tmp_path / "o.parquet", "--device", "B200")
    assert other.exit_code == 2
    assert "the labels of triton name their devices" in other.stderr
