"""``rlm-lsp measure programs`` as a user has it: what it says first, what it keeps, what stays when it is stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rlm_core.measurement import Store
from rlm_lsp.cli.app import app

from .test_measure import wait_for

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with two programs and two inputs."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "inputs").mkdir()
    (tmp_path / "solutions" / "first.py").write_text("import sys\nprint(sum(range(int(sys.stdin.readline()))))\n")
    (tmp_path / "solutions" / "second.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "inputs" / "large.txt").write_text("100000\n")
    (tmp_path / "inputs" / "small.txt").write_text("10\n")
    return tmp_path


def arguments(home: Path, *more: str) -> list[str]:
    inputs = [str(home / "inputs" / name) for name in ("large.txt", "small.txt")]
    return [
        *("measure", "programs", str(home / "solutions"), "--inputs", *inputs),
        *("--python", sys.executable, "--store", str(home / "m.sqlite3"), *more),
    ]


def test_a_dry_run_says_what_would_run_and_runs_nothing(home: Path) -> None:
    trace = home / "ran"
    (home / "solutions" / "second.py").write_text(f"open({str(trace)!r}, 'w')\n")
    done = CliRunner().invoke(app, arguments(home, "--dry-run", "--sandbox", "limits"))
    assert done.exit_code == 0
    assert "programs: 2 python" in done.stdout
    assert "4 pairs of program and input, each once to warm up and 5 times to measure" in done.stdout
    assert "sandbox: limits alone" in done.stdout
    assert "limits of a run: 10 s, 2,048 MiB of memory, 64 processes, 256 MiB a file" in done.stdout
    assert f"{sys.executable} {home / 'solutions' / 'first.py'} < large.txt, small.txt" in done.stdout
    assert not trace.exists()
    assert not (home / "m.sqlite3").exists()


def test_measurements_are_kept_and_a_failure_is_told(home: Path) -> None:
    done = CliRunner().invoke(app, arguments(home, "--repeat", "2"))
    assert done.exit_code == 0
    assert "second.py < large.txt: exit status 3; it does not count" in done.stderr
    form = re.compile(r"first.py < (\w+).txt: [\d.]+ m?s \(.*s\), [\d.]+ MiB")
    lines = [form.fullmatch(line) for line in done.stdout.splitlines()]
    assert [line and line[1] for line in lines] == ["large", "small"]
    assert "measured 1 of 2 programs, 2 pairs of program and input; 2 failed" in done.stderr
    listed = CliRunner().invoke(
        app, ["measure", "list", "--functions", "--format", "json", "--store", str(home / "m.sqlite3")]
    )
    rows = json.loads(listed.stdout)
    assert {(row["function"], row["input"]) for row in rows} == {
        ("first.py:<file>", "large.txt"),
        ("first.py:<file>", "small.txt"),
    }


def test_nothing_measured_is_status_1_and_bad_usage_2(home: Path) -> None:
    (home / "solutions" / "first.py").unlink()
    assert CliRunner().invoke(app, arguments(home, "--repeat", "1")).exit_code == 1
    for more, told in (
        (("--language", "cobol"), "programs are measured in python, c,"),
        (("--language", "go"), "no program in go"),
    ):
        done = CliRunner().invoke(app, arguments(home, *more))
        assert done.exit_code == 2
        assert told in done.stderr
    assert CliRunner().invoke(app, ["measure", "programs", str(home)]).exit_code == 2


def test_ctrl_c_keeps_what_was_measured(home: Path) -> None:
    # The second program runs until it is stopped; with one run each, the first is kept by then.
    (home / "solutions" / "second.py").write_text("import time\ntime.sleep(1000)\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "rlm_lsp", *arguments(home, "--repeat", "1", "--timeout", "500")]
    store = Store(home / "m.sqlite3")
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: len(store.all()) == 4)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert f"kept in {store.path}" in told
    assert {one.file for one in store.all()} == {"first.py"}
