"""``rlm-lsp bench triton`` without a GPU: compiled for a target, or interpreted and checked; and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rlm_core.measurement.gpu.bench_rows import Row, read_rows
from rlm_core.measurement.gpu.bench_spec import triton_file
from rlm_core.measurement.gpu.measurements import measurements_of
from rlm_lsp.cli.app import app

from tests.paths import REPOSITORY

pytestmark = pytest.mark.extras

KERNEL = """
import os
import time
from pathlib import Path

import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 128}, num_warps=4), triton.Config({"BLOCK": 512}, num_warps=8)], key=["n"])
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def add(x, y):
    assert x.is_cuda and x.device == triton.runtime.driver.active.get_active_torch_device()
    out, n = torch.empty_like(x), x.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
    return out


@triton.jit
def bad_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), no_such_name)


@triton.jit
def row_kernel(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, offsets)


def launch(kernel):
    x = torch.zeros(64, device="cuda", dtype=torch.int32)
    kernel[(1,)](x, BLOCK=64)
    return x


def hang():
    Path(__file__).with_name("hangs").write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)
"""
ADD = (
    KERNEL
    + """

def bench():
    for n in (100, 1000):
        x = torch.randn(n, device="cuda").to(torch.float16)
        yield {"call": lambda: add(x, x), "reference": lambda: 2 * x, "sizes": {"n": n}, "dtype": x.dtype}


@triton.testing.perf_report(
    triton.testing.Benchmark(["n"], [256], "provider", ["triton", "torch"], ["t", "p"], "add", {}, ylabel="ms")
)
def report(n, provider):
    x = torch.rand(n, device="cuda")
    calls = {"triton": lambda: add(x, x), "torch": lambda: x + x}
    median, low, high = triton.testing.do_bench(calls[provider], quantiles=[0.5, 0.2, 0.8])
    return median, low, high
"""
)
FAULTS = (
    KERNEL
    + """

def bench():
    calls = {
        "first": lambda: launch(row_kernel),
        "compile": lambda: launch(bad_kernel),
        "hang": hang,
        "memory": lambda: torch.zeros(2**38, device="cpu"),
        "abort": os.abort,
        "exit": lambda: os._exit(3),
        "last": lambda: launch(row_kernel),
    }
    for name, call in calls.items():
        yield {"call": call, "sizes": {"what": name}, "reference": lambda: torch.arange(64)}
    raise ValueError("no more cases")
"""
)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("TRITON_INTERPRET", "0")


def bench(folder: Path, *arguments: str | Path) -> Result:
    kept = ["--out", str(folder / "rows.jsonl"), "--store", str(folder / "m.sqlite3")]
    return CliRunner().invoke(app, ["bench", "triton", *map(str, arguments), *kept])


def rows_of(folder: Path) -> list[Row]:
    return [row for row in read_rows(folder / "rows.jsonl") if not row.get("summary")]


def test_every_configuration_is_compiled_ahead_of_time_and_reports_its_resources(tmp_path: Path) -> None:
    path = tmp_path / "add.py"
    path.write_text(ADD)
    first = bench(tmp_path, path, "--dry-run", "--target", "cuda:90")
    assert (first.exit_code, first.exception) == (0, None)
    assert f"will compile for cuda:90: {path} (bench, report)" in first.stderr
    rows = rows_of(tmp_path)
    assert [(row["entry"], row["case"].get("n"), (row.get("config") or {}).get("BLOCK")) for row in rows] == [
        *(("bench", n, block) for n in ("100", "1000") for block in ("128", "512")),
        *(("report", "256", block) for block in ("128", "512", None)),
    ]
    for row in rows[:6]:
        [launch] = row["launches"]
        assert launch["kernel"] == row["kernel"] == "add_kernel"
        assert launch["resources"]["registers"] > 0
        assert launch["resources"]["spill_stores"] == launch["resources"]["spill_loads"] == 0
        assert launch["resources"]["warps"] == int(row["config"]["num_warps"])
    assert rows[2]["launches"][0]["arguments"]["x_ptr"] == "1000 fp16"
    assert rows[2]["launches"][0]["grid"] == [8]
    assert rows[-1]["launches"] == []
    assert "latency" not in rows[0]
    again = bench(tmp_path, path, "--dry-run", "--target", "cuda:90")
    assert (again.exit_code, again.stdout) == (0, "")
    other = bench(tmp_path, path, "--dry-run", "--target", "hip:gfx942")
    assert (other.exit_code, len(other.stdout.splitlines())) == (0, 7)
    assert rows_of(tmp_path)[7]["launches"][0]["resources"]["scalar_registers"] > 0


def test_results_are_checked_by_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    path = tmp_path / "add.py"
    path.write_text(ADD.replace("lambda: 2 * x", "lambda: (2 if n == 100 else 3) * x"))
    result = bench(tmp_path, path)
    assert result.exit_code == 1
    rows = rows_of(tmp_path)
    assert [row["status"] for row in rows] == ["ok", "ok", "wrong", "wrong", "ok", "ok", "ok"]
    assert [row.get("checked") for row in rows[:3]] == [True, True, None]
    assert "Mismatched elements" in rows[2]["error"]
    assert not (tmp_path / "m.sqlite3").exists(), "nothing was timed"


@pytest.mark.timeout(300)  # five processes that import torch, and a hang that is waited for
def test_a_bad_kernel_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "faults.py"
    path.write_text(FAULTS)
    result = bench(tmp_path, path, "--dry-run", "--limit", "15", "--memory", "8")
    assert result.exit_code == 1
    rows = {row["case"].get("what"): row for row in rows_of(tmp_path)}
    assert {what: row["status"] for what, row in rows.items()} == {
        "first": "ok",
        "compile": "compile",
        "hang": "timeout",
        "memory": "memory",
        "abort": "crash",
        "exit": "crash",
        "last": "ok",
        None: "error",
    }
    assert "no_such_name" in rows["compile"]["error"]
    assert "SIGABRT" in rows["abort"]["error"]
    assert "exit status 3" in rows["exit"]["error"]
    assert "no more cases" in rows[None]["error"]
    assert is_gone(int((tmp_path / "hangs").read_text()))
    assert len(result.stdout.splitlines()) == 8
    assert bench(tmp_path, path, "--dry-run").stdout == ""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_ctrl_c_keeps_all_rows_so_far_and_ends_the_child(tmp_path: Path, number: signal.Signals, status: int) -> None:
    (tmp_path / "faults.py").write_text(FAULTS)
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("model_core", "server"))
    command = [sys.executable, "-m", "rlm_lsp", "bench", "triton", "faults.py", "--dry-run", "--out", "rows.jsonl"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        hangs = tmp_path / "hangs"
        rows = tmp_path / "rows.jsonl"
        # The child may hang before its parent has written the row of the case before.
        wait_for(lambda: rows.exists() and rows.read_text().count("\n") == 2)
        wait_for(lambda: hangs.exists() and hangs.read_text() != "")
        process.send_signal(number)
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == status
    assert [row["case"]["what"] for row in rows_of(tmp_path)] == ["first", "compile"]
    wait_for(lambda: is_gone(int(hangs.read_text())))


SHEET = """
[[bench]]
call = "add"
reference = "torch.add"
sizes = { n = 300 }
dtypes = ["fp32", "fp16"]
arguments = ["n", "n"]

[[bench]]
kernel = "row_kernel"
grid = [1]
sizes = { n = 64 }
constants = { BLOCK = 64 }
reference = "expected"
arguments = [{ tensor = "n", dtype = "int32", fill = "zeros", output = true }]
"""


def test_a_sheet_calls_functions_and_launches_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    path = tmp_path / "add.py"
    path.write_text(KERNEL + "\n\ndef expected():\n    return torch.arange(64)\n")
    without = bench(tmp_path, path)
    assert "no way to call add_kernel, bad_kernel, row_kernel; add a function bench()" in without.stderr
    (tmp_path / "add.bench.toml").write_text(SHEET)
    result = bench(tmp_path, path)
    assert (result.exit_code, result.exception) == (0, None)
    rows = rows_of(tmp_path)
    assert [(row["name"], row["case"].get("dtype"), row.get("checked")) for row in rows] == [
        *(("add", dtype, True) for dtype in ("fp32", "fp32", "fp16", "fp16")),
        ("row_kernel", None, True),
    ]


def test_a_file_that_cannot_be_imported_is_one_row_and_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "a_broken.py").write_text(KERNEL + "\nimport no_such_package\n\ndef bench(): pass\n")
    (tmp_path / "b_good.py").write_text(KERNEL + "\n\ndef bench():\n    return lambda: launch(row_kernel)\n")
    result = bench(tmp_path, tmp_path, "--dry-run")
    assert result.exit_code == 1
    assert [(Path(row["path"]).name, row["status"]) for row in rows_of(tmp_path)] == [
        ("a_broken.py", "error"),
        ("b_good.py", "ok"),
    ]


def test_without_a_gpu_measuring_says_what_can_be_done(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text(ADD)
    result = bench(tmp_path, tmp_path / "add.py")
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.endswith(
        "finds no GPU on this machine; compile with --dry-run --target cuda:90, or check results with"
        " TRITON_INTERPRET=1"
    )


def test_kernels_of_torch_compile_are_written_and_compiled_without_a_gpu(tmp_path: Path) -> None:
    arguments = ["bench", "generate", str(tmp_path / "made"), "--count", "2", "--out", str(tmp_path / "made.jsonl")]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.exception) == (0, None)
    made = [row for row in read_rows(tmp_path / "made.jsonl") if row["status"] == "ok"]
    assert len(made) == 2
    files = sorted(path.stem for path in (tmp_path / "made" / "kernels").glob("*.py"))
    assert files == sorted(name for row in made for name in row["kernels"])
    assert len(files) >= 2
    compiled = bench(tmp_path, tmp_path / "made" / "kernels", "--dry-run")
    assert (compiled.exit_code, compiled.exception) == (0, None)
    rows = rows_of(tmp_path)
    assert {Path(row["path"]).stem for row in rows} == set(files)
    assert all(row["launches"][0]["resources"]["registers"] > 0 for row in rows)


MEASURES = """
import sys
from rlm_core.measurement.gpu.runner_process import Channel
from rlm_core.measurement.gpu.meter import CpuStopwatch, Effort
from rlm_core.measurement.gpu.ahead_of_time import pretend_device
from rlm_core.measurement.gpu.targets import target_named
from rlm_core.measurement.gpu.triton_runner import TritonSession, work

configs, path, source = sys.argv[1:]
channel, effort = Channel(sys.stdout, set()), Effort(0, 0.001, 3, 5)
session = TritonSession(channel, "measure", "here", configs, effort, {}, CpuStopwatch(1024))
entries = [["bench", "bench"], ["report", "report"]]
with pretend_device(target_named("cuda:90")):
    work(session, [{"path": path, "shown": "add.py", "source": source, "sheet": "", "entries": entries}])
"""


@pytest.mark.parametrize("configs", ["all", "best"])
def test_calls_are_timed_after_their_result_was_checked(tmp_path: Path, configs: str) -> None:
    """The way of a measurement with the processor in the place of the GPU: kernels interpreted, time by its clock."""
    path = tmp_path / "add.py"
    path.write_text(ADD.replace("lambda: 2 * x", "lambda: (2 if n == 100 else 3) * x"))
    file = triton_file(path)
    assert file is not None
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(REPOSITORY / "model_core")}
    command = [sys.executable, "-c", MEASURES, configs, str(path), file.digest]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    about: Row = {"kind": "triton", "date": "2026-11-01T10:00:00+00:00"}
    rows, begun = [], about
    for event in map(json.loads, output.splitlines()):
        if event["event"] == "begin":
            begun = about | event["row"]
        elif event["event"] == "row" and not event["row"].get("summary"):
            rows.append(begun | event["row"])
    each = 2 if configs == "all" else 1
    assert [row["status"] for row in rows] == [*["ok"] * each, *["wrong"] * each, *["ok"] * (each + 1)]
    for row in [row for row in rows if row["status"] == "ok"]:
        assert 0 < row["p20"] <= row["latency"] <= row["p80"]
        assert 3 <= row["runs"] <= 5
    assert "latency" not in rows[each]
    blocks = [(row.get("config") or {}).get("BLOCK") for row in rows if row["status"] == "ok"]
    assert blocks == (["128", "512", "128", "512", None] if configs == "all" else ["128", "128", None])
    assert [len(row["launches"]) for row in rows if row["status"] == "ok"] == [*[1] * (2 * each), 0]
    taken = measurements_of(rows, {"add.py": path})
    quickest = min(row["latency"] for row in rows[:each])
    assert [(one.qualname, one.asked["n"]) for one in taken.measurements] == [
        ("add_kernel", "100"),
        ("add_kernel", "256"),
    ]
    assert (taken.measurements[0].median, taken.measurements[0].device) == (quickest, "here")
    assert sum(taken.left_out.values()) == 1, "what PyTorch did alone is no kernel's"


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    # A process that nobody has waited for is still listed.
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def wait_for(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.05)
