"""Rows of ``rlm-lsp bench`` in the store of measurements: which count, and for what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement import Store, source_hash
from rlm_core.measurement.gpu.bench_rows import Row
from rlm_core.measurement.gpu.bench_spec import triton_file
from rlm_core.measurement.gpu.measurements import measurements_of
from rlm_core.measurement.labels import from_labels, newest, to_labels, with_source
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.training.evaluation.measured_report import rows_from_store
from rlm_core.types import Query
from rlm_lsp.cli.app import app

from tests.lsp.onnx_models import write_networks

KERNELS = """
import triton
import triton.language as tl


# rlm: sizes m=4096 n=1024 dtype=fp16
@triton.jit
def softmax_kernel(x_ptr, m, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    tl.store(x_ptr + columns, tl.exp(tl.load(x_ptr + columns)), mask=columns < n)


def bench():
    return lambda: None
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "ops" / "softmax.py"
    path.parent.mkdir()
    path.write_text(KERNELS)
    return path


def kernel_row(file: Path, **changes: Any) -> Row:
    """A row as ``bench triton`` writes it on a GPU."""
    found = triton_file(file)
    assert found is not None
    row = {
        "key": "0" * 20,
        "kind": "triton",
        "path": "softmax.py",
        "source": found.digest,
        "entry": "bench",
        "mode": "measure",
        "device": "NVIDIA A100-SXM4-80GB",
        "machine": {"gpu": "NVIDIA A100-SXM4-80GB", "triton": "3.7.1", "driver": "570.1"},
        "case": {"m": "4096", "n": "1024", "dtype": "fp16"},
        "status": "ok",
        "launches": [{"kernel": "softmax_kernel", "arguments": {}, "grid": [4096]}],
        "latency": 2e-5,
        "p10": 1.8e-5,
        "p20": 1.9e-5,
        "p80": 2.1e-5,
        "p90": 2.4e-5,
        "runs": 100,
        "date": "2026-11-01T10:00:00+00:00",
    }
    return row | changes


def test_a_kernel_is_kept_as_the_server_asks_about_it(kernels: Path) -> None:
    [analysed] = [
        one for one in Analyser().analyse(ParsedSource(KERNELS.encode(), "python")) if one.unit.kind == "kernel"
    ]
    [one] = measurements_of([kernel_row(kernels)], {"softmax.py": kernels}).measurements
    assert one.source_hash == source_hash(analysed.unit.text, "triton")
    assert one.asked == dict(analysed.code.workloads[0])
    assert (one.device, one.workload["runtime"]) == ("nvidia-a100-sxm4-80gb", "triton-3.7.1")
    assert (one.low, one.median, one.high, one.calls) == (1.8e-5, 2e-5, 2.4e-5, 100)
    assert (one.basis, one.qualname, one.file, one.path) == ("kernel", "softmax_kernel", "ops/softmax.py", str(kernels))
    assert KERNELS.splitlines()[one.line - 1 : one.line + 1] == ["@triton.jit", KERNELS.splitlines()[one.line]]


def test_of_an_autotuned_kernel_the_quickest_configuration_counts_whichever_run_made_it(kernels: Path) -> None:
    rows = [
        kernel_row(kernels, key=f"{number:020}", config={"BLOCK": str(number)}, latency=latency)
        for number, latency in enumerate((3e-5, 1e-5, 2e-5))
    ]
    other = kernel_row(kernels, key="f" * 20, case={"m": "1", "n": "1024", "dtype": "fp16"}, latency=5e-5)
    found = measurements_of([*rows, other], {"softmax.py": kernels}).measurements
    assert sorted((one.asked["m"], one.median) for one in found) == [("1", 5e-5), ("4096", 1e-5)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"source": "0" * 64}, "its file has changed since"),
        ({"launches": [{"kernel": "a"}, {"kernel": "b"}]}, "its call launches 2 kernels"),
        ({"launches": []}, "its call launches no kernels"),
        ({"launches": [{"kernel": "other_kernel"}]}, "holds no kernel called other_kernel"),
    ],
)
def test_a_row_that_is_about_no_single_unit_is_left_out_with_the_reason(
    kernels: Path, change: dict[str, Any], reason: str
) -> None:
    taken = measurements_of([kernel_row(kernels, **change)], {"softmax.py": kernels})
    [(message, count)] = taken.left_out.items()
    assert taken.measurements == []
    assert (reason in message, count) == (True, 1)


def test_rows_without_a_time_and_of_other_files_say_nothing(kernels: Path) -> None:
    compiled = {name: value for name, value in kernel_row(kernels).items() if name != "latency"}
    rows = [compiled, kernel_row(kernels, status="wrong"), kernel_row(kernels, path="another.py")]
    taken = measurements_of(rows, {"softmax.py": kernels})
    assert (taken.measurements, taken.left_out) == ([], {})


def test_rows_without_the_quantiles_of_a_measurement_are_left_out(kernels: Path) -> None:
    old = {name: value for name, value in kernel_row(kernels).items() if name not in ("p10", "p90")}
    taken = measurements_of([old], {"softmax.py": kernels})
    assert (taken.measurements, dict(taken.left_out)) == ([], {"an older rlm-lsp made them": 1})


def test_they_are_exported_with_their_text_and_taken_in_elsewhere(kernels: Path, tmp_path: Path) -> None:
    mine = Store(tmp_path / "mine.sqlite3")
    mine.add(measurements_of([kernel_row(kernels)], {"softmax.py": kernels}).measurements)
    labels = to_labels(newest(mine.all()))
    assert with_source(labels, mine.all()) == 0
    assert labels[0]["text"].startswith("@triton.jit\ndef softmax_kernel")
    theirs = Store(tmp_path / "theirs.sqlite3")
    theirs.add(from_labels(("", json.loads(json.dumps(row))) for row in labels))
    [one] = theirs.of_names(["softmax_kernel"])
    assert one.median == pytest.approx(2e-5)
    assert (one.kind, one.path) == ("kernel", "")
    kernels.write_text(KERNELS.replace("exp", "log"))
    labels = to_labels(mine.all())
    assert with_source(labels, mine.all()) == 1
    assert "text" not in labels[0]


def test_the_report_asks_about_the_device_and_sizes_that_were_measured(kernels: Path) -> None:
    large = kernel_row(kernels, key="1" * 20, case={"m": "8192", "n": "1024", "dtype": "fp16"})
    taken = measurements_of([kernel_row(kernels), large], {"softmax.py": kernels})
    found = rows_from_store(taken.measurements, cpu_name())
    asked = {"n": "1024", "dtype": "fp16"}
    assert [row.query for row in found.rows] == [
        Query("latency", "nvidia-a100-sxm4-80gb", {"m": m, **asked}) for m in ("4096", "8192")
    ]
    assert {row.code.basis for row in found.rows} == {"kernel"}


def bench(*arguments: str | Path) -> Result:
    options = ("--provider", "CPUExecutionProvider", "--threads", "1", "--seconds", "0.01")
    return CliRunner().invoke(app, ["bench", "onnx", *map(str, arguments), *options])


def test_a_network_is_measured_into_the_store(tmp_path: Path) -> None:
    write_networks(tmp_path)
    model, store, out = tmp_path / "small.onnx", tmp_path / "m.sqlite3", tmp_path / "rows.jsonl"
    assert bench(model, "--out", out, "--no-store", "--store", store).exit_code == 0
    assert not store.exists()
    # The rows are there: nothing is measured again, and they are taken in.
    again = bench(model, "--out", out, "--store", store)
    assert (again.exit_code, again.stdout) == (0, "")
    assert "list them with: rlm-lsp measure list --functions" in again.stderr
    found = {one.metric: one for one in Store(store).all()}
    latency = found["latency"]
    assert (latency.kind, latency.device, latency.asked) == ("network", cpu_name(), {"batch": "1"})
    assert latency.workload["runtime"].endswith("CPUExecutionProvider threads=1")
    assert 0 < latency.low <= latency.median <= latency.high
    listed = CliRunner().invoke(app, ["measure", "list", "--functions", "--format", "json", "--store", str(store)])
    [row] = [row for row in json.loads(listed.stdout) if row["metric"] == "latency"]
    assert (row["function"], row["input"]) == (f"{tmp_path.name}/small.onnx:network", "batch=1")


def test_a_store_that_cannot_be_written_costs_no_row(tmp_path: Path) -> None:
    write_networks(tmp_path)
    out = tmp_path / "rows.jsonl"
    result = bench(tmp_path / "small.onnx", "--out", out, "--store", tmp_path)
    assert result.exit_code == 2
    [error] = [line for line in result.stderr.splitlines() if "error" in line]
    assert "the measurements cannot be kept" in error
    assert json.loads(out.read_text())["status"] == "ok"
