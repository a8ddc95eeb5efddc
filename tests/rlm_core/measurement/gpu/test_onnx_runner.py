"""``rlm-lsp bench onnx``: a child process a model, a row a provider, and rows whatever a model does."""

from __future__ import annotations

from pathlib import Path

import pytest
import rlm_core
from click.testing import CliRunner, Result
from rlm_core.measurement.gpu.bench_rows import Row, RowFile, read_rows
from rlm_core.measurement.gpu.targets import TARGETS, target_named
from rlm_core.measurement.gpu.worker import RowCollector, RunnerJob, RunnerLimits, run_job
from rlm_core.queries.devices import device_table
from rlm_lsp.cli.app import app

MODEL = Path(rlm_core.__file__).parent / "builtin" / "head.onnx"


@pytest.fixture(autouse=True)
def no_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured here must not reach other tests."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def bench(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["bench", "onnx", *map(str, arguments)])


def rows_of(path: Path) -> list[Row]:
    return list(read_rows(path))


def test_a_model_is_measured_once(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    arguments = (MODEL, "--out", out, "--provider", "CPUExecutionProvider", "--threads", "1", "--seconds", "0.01")
    first = bench(*arguments)
    assert (first.exit_code, len(first.stdout.splitlines())) == (0, 1)
    assert f"will load and run: {MODEL}" in first.stderr
    [row] = rows_of(out)
    assert row["status"] == "ok"
    assert 0 < row["p20"] <= row["latency"] <= row["p80"] < 60
    assert row["memory"] is None or 0 < row["memory"] < 2**32
    again = bench(*arguments)
    assert (again.exit_code, again.stdout) == (0, "")
    assert "0 new rows, 1 known" in again.stderr


def test_a_broken_model_costs_only_its_row(tmp_path: Path) -> None:
    broken, out = tmp_path / "broken.onnx", tmp_path / "rows.jsonl"
    broken.write_bytes(b"\x08\x07not a model")
    result = bench(broken, MODEL, "--out", out, "--provider", "CPUExecutionProvider", "--seconds", "0.01")
    assert result.exit_code == 1
    assert [(Path(row["path"]).name, row["status"]) for row in rows_of(out)] == [
        ("broken.onnx", "error"),
        ("head.onnx", "ok"),
    ]


def test_a_model_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    result = bench(MODEL, "--out", out, "--provider", "CPUExecutionProvider", "--limit", "0.000001")
    assert result.exit_code == 1
    [row] = rows_of(out)
    assert (row["status"], row["device"]) == ("timeout", "CPUExecutionProvider")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.onnx"], "nothing.onnx: cannot be read (No such file or directory)"),
        ([str(MODEL), "--size", "batch=many"], "'batch=many' is not NAME=NUMBER"),
    ],
)
def test_bad_arguments_are_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = bench(*arguments, "--out", tmp_path / "rows.jsonl")
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]


def test_a_child_that_cannot_start_is_one_row(tmp_path: Path) -> None:
    with RowFile(tmp_path / "rows.jsonl") as rows:
        seen: list[Row] = []
        keeper = RowCollector(rows, seen.append)
        run_job(RunnerJob("no_runner", {"kind": "none"}, {}), keeper, RunnerLimits())
    assert keeper.tally.made == {"crash": 1}
    assert "no runner is called no_runner" in seen[0]["error"]


def test_every_target_is_a_card_that_we_know() -> None:
    for name, target in TARGETS.items():
        assert target_named(name.upper()) is target
        assert device_table()[target.device].multiprocessors == target.multiprocessors
    assert target_named("sm_90a") is TARGETS["cuda:90"]
    with pytest.raises(rlm_core.DataError, match="cuda:90"):
        target_named("cuda:91")
