"""Commands with ``--ray`` over a real cluster of two nodes: what they give and keep is what they do without it."""

from __future__ import annotations

import json
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import rlm_core
from click.testing import CliRunner, Result
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement import Store
from rlm_core.measurement.gpu.bench_rows import read_rows
from rlm_lsp.cli.app import app

from tests.paths import REPOSITORY

pytestmark = pytest.mark.timeout(300)

MODEL = Path(rlm_core.__file__).parent / "builtin" / "head.onnx"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.02)


def models(folder: Path, count: int) -> list[Path]:
    """Models that differ by their names alone."""
    return [Path(shutil.copy(MODEL, folder / f"model{number}.onnx")) for number in range(count)]


def bench(out: Path, seconds: str, *more: str | Path) -> list[str | Path]:
    return [
        *("bench", "onnx", *more, "--out", out, "--seconds", seconds, "--threads", "1", "--no-store"),
        *("--provider", "CPUExecutionProvider"),
    ]


def test_predictions_are_those_of_this_process_byte_by_byte(address: str, tmp_path: Path) -> None:
    places = [REPOSITORY / "examples", REPOSITORY / "model_core" / "rlm_core" / "inference" / "adaptation"]
    here, there = (invoke("predict", *places, "--format", "json", *more) for more in ((), ("--ray", address)))
    assert (there.exit_code, here.exit_code) == (0, 0), there.stderr
    assert len(json.loads(here.stdout)) > 100
    assert there.stdout == here.stdout

    rows = tmp_path / "rows.jsonl"
    code = {"text": "def f(n):\n    return sum(range(n))", "language": "python", "basis": "call"}
    asked = [{"id": number, **code, "queries": [{"metric": "latency"}]} for number in range(100)]
    rows.write_text("\n".join([*map(json.dumps, asked), "no row"]) + "\n")
    here, there = (invoke("predict", "--batch", rows, *more) for more in ((), ("--ray", address)))
    assert (there.exit_code, here.exit_code) == (2, 2), there.stderr
    assert len(here.stdout.splitlines()) == 101
    assert there.stdout == here.stdout


def test_a_model_server_is_not_queried_through_a_cluster() -> None:
    done = invoke("predict", "--model", "http://127.0.0.1:1", "--ray", "auto", REPOSITORY / "examples")
    assert done.exit_code == 2
    assert "the model server http://127.0.0.1:1 does all the work" in done.stderr


def test_models_are_measured_once_each(address: str, tmp_path: Path) -> None:
    out, paths = tmp_path / "rows.jsonl", models(tmp_path, 3)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\x08\x07not a model")
    done = invoke(*bench(out, "0.01", *paths, broken), "--ray", address)
    assert done.exit_code == 1, done.stderr
    rows = {Path(row["path"]).name: row for row in read_rows(out)}
    assert {name: row["status"] for name, row in rows.items()} == {
        **{path.name: "ok" for path in paths},
        "broken.onnx": "error",
    }
    assert {rows[path.name]["machine"]["cpu"] for path in paths} == {cpu_name()}
    assert len(done.stdout.splitlines()) == 4
    # What one run has measured, with a cluster or without, the next one knows.
    again = invoke(*bench(out, "0.01", *paths))
    assert (again.exit_code, again.stdout) == (0, "")
    assert "0 new rows, 3 known" in again.stderr


def test_what_was_measured_before_an_interrupt_is_kept(address: str, tmp_path: Path) -> None:
    out, paths = tmp_path / "rows.jsonl", models(tmp_path, 3)
    command = [sys.executable, "-m", "rlm_lsp", *map(str, bench(out, "1", *paths)), "--ray", address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: (out.exists() and b"\n" in out.read_bytes()) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    kept = len(out.read_bytes().splitlines())
    assert 1 <= kept < 3
    done = invoke(*bench(out, "1", *paths))
    assert done.exit_code == 0, done.stderr
    assert f"{3 - kept} new rows, {kept} known" in done.stderr
    names = Counter(Path(json.loads(line)["path"]).name for line in out.read_text().splitlines())
    assert names == Counter(path.name for path in paths)


def test_modules_are_measured_on_a_device_that_the_cluster_has(address: str, tmp_path: Path) -> None:
    (tmp_path / "linear.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.inner = nn.Linear(4, 4)\n\n    def forward(self, x):\n"
        "        return self.inner(x)\n\n\ndef get_inputs():\n    return [torch.zeros(1, 4)]\n"
    )
    for more, message in (
        ((), "choose --device cpu or --device cuda"),
        (("--device", "cuda"), "no node of the cluster has 1 CPU and 1 GPU"),
    ):
        done = invoke(
            *("bench", "torch", tmp_path / "linear.py", "--out", tmp_path / "rows.jsonl", "--no-store", *more),
            *("--ray", address),
        )
        assert done.exit_code == 2
        assert message in done.stderr.splitlines()[-1]
    done = invoke(
        *("bench", "torch", tmp_path / "linear.py", "--out", tmp_path / "rows.jsonl", "--no-store"),
        *("--seconds", "0.01", "--device", "cpu", "--ray", address),
    )
    assert done.exit_code == 0, done.stderr
    [row] = read_rows(tmp_path / "rows.jsonl")
    assert (row["status"], row["device"]) == ("ok", f"cpu ({platform.machine()})")


def test_programs_are_measured_on_the_nodes(address: str, tmp_path: Path) -> None:
    programs, given = tmp_path / "solutions", tmp_path / "large.txt"
    programs.mkdir()
    given.write_text("1000\n")
    for name in ("first", "second", "third"):
        (programs / f"{name}.py").write_text("import sys\nprint(sum(range(int(sys.stdin.readline()))))\n")
    (programs / "fails.py").write_text("import sys\nsys.exit(3)\n")
    store = tmp_path / "m.sqlite3"
    done = invoke(
        *("measure", "programs", programs, "--inputs", given, "--repeat", "2", "--python", sys.executable),
        *("--sandbox", "limits", "--store", store, "--ray", address),
    )
    assert done.exit_code == 0, done.stderr
    assert "measured 3 of 4 programs, 3 pairs of program and input; 1 failed" in done.stderr
    assert "fails.py < large.txt: exit status 3" in done.stderr
    kept = Store(store).all()
    assert Counter(one.file for one in kept) == {"first.py": 2, "second.py": 2, "third.py": 2}
    assert {one.device for one in kept} == {cpu_name()}
    assert len({one.run for one in kept}) == 1


def test_tests_are_measured_on_the_nodes(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes" / "__init__.py").write_text(
        "def square(side):\n    return side * side\n\n\ndef cube(side):\n    return side * side * side\n"
    )
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(
            "from shapes import cube, square\n\n\ndef test_square():\n    assert square(2) == 4\n\n\n"
            f"def test_cube():\n    assert cube(2) == {8 if number else 9}\n"
        )
    (tmp_path / "conftest.py").write_text("")
    monkeypatch.chdir(tmp_path)
    for name in ("PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    store = tmp_path / "kept" / "m.sqlite3"
    done = invoke(
        *("measure", "tests", "--no-memory", "--python", sys.executable, "--store", store, "--ray", address),
        *("--", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path),
    )
    assert done.exit_code == 0, done.stderr + done.stdout
    kept = {one.qualname: one for one in Store(store).all()}
    assert kept.keys() == {"square", "cube"}
    assert {one.tests for one in kept.values()} == {3}
    assert {(one.metric, one.device) for one in kept.values()} == {("latency", cpu_name())}
    assert "latency: 2 functions in 6 tests" in done.stderr
    assert "assert 8 == 9" in done.stdout
    assert not list((store.parent / "runs").iterdir())


def test_a_kind_of_gpu_is_requested_only_where_it_has_an_effect(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("def f(n):\n    return n\n")
    for more, says in (
        ((), "--ray-gpu H100: needs a cluster; add --ray ADDRESS"),
        (("--ray", "auto"), "--ray-gpu H100: this work runs on CPUs; leave the option out"),
    ):
        done = invoke("predict", file, "--ray-gpu", "H100", *more)
        assert done.exit_code == 2
        assert done.stderr == f"rlm-lsp: error: {says}\n"
