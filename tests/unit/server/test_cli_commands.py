"""The other commands: version, doctor, serve's options, data build, and what a missing extra says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rlm_lsp import __version__
from rlm_lsp.cli import app
from typer.testing import CliRunner, Result

pytestmark = pytest.mark.timeout(120)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"rlm-lsp {__version__}\n"


def test_doctor_shows_versions_the_model_and_a_self_test() -> None:
    result = run("doctor")
    assert result.exit_code == 0
    for word in ("python", "onnxruntime", "pygls", "processor", "model", "cold", "warm"):
        assert word in result.stdout


def test_doctor_fails_when_the_model_cannot_be_loaded(tmp_path: Path) -> None:
    result = run("doctor", "--model", tmp_path / "nothing")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("rlm-lsp: error: ")


@pytest.mark.parametrize("address", ["2087", "localhost:", "localhost:http", ":2087", "localhost:70000"])
def test_serve_refuses_a_bad_address(address: str) -> None:
    result = run("serve", "--tcp", address)
    assert result.exit_code == 2
    assert "is not HOST:PORT" in result.stderr


def test_the_server_starts_without_heavy_imports() -> None:
    code = (
        "import sys, rlm_lsp.cli, rlm_lsp.commands.serve;"
        "print([name for name in ('torch', 'pyarrow', 'scipy', 'rich', 'numpy', 'onnxruntime') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--data", "x.parquet", "--config", "c.toml", "--out", "o"],
        ["export", "--model", "m", "--out", "o"],
        ["eval", "--data", "x.parquet"],
        ["data", "build", "leethub", "--labels", "l.jsonl", "--out", "o.parquet"],
    ],
)
def test_a_missing_extra_is_one_line_with_the_way_out(command: list[str]) -> None:
    code = (
        "import sys; from rlm_lsp.commands.extras import TRAINING; sys.modules.update(dict.fromkeys(TRAINING));"
        "from rlm_lsp.cli import main; main()"
    )
    found = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert re.fullmatch(r"rlm-lsp: error: \w+ is not installed; run: pip install '\.\[train\]'\n", found.stderr)


def test_data_build_writes_a_data_set_and_reports_what_is_missing(tmp_path: Path) -> None:
    repository = tmp_path / "cache" / "someone+solutions" / "repo"
    subprocess.run(["git", "init", "--quiet", "--bare", repository], check=True)
    solution = "class Solution {\n    int f() { return 1; }\n}\n"
    blob = subprocess.run(
        ["git", f"--git-dir={repository}", "hash-object", "-w", "--stdin"],
        input=solution,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    label = {
        "repo": "someone/solutions",
        "path": "a.java",
        "blob": blob,
        "slug": "a",
        "language": "java",
        "runtime_ms": 3,
        "memory_mb": 40.5,
        "date": "2024-05-01",
    }
    labels = tmp_path / "labels.jsonl"
    rows = [label, {**label, "blob": "0" * 40}, {**label, "repo": "no/where"}, {**label, "language": "python"}]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out.parquet"
    arguments = ("data", "build", "leethub", "--labels", labels, "--out", out, "--source-cache", tmp_path / "cache")
    result = run(*arguments, "--offline", "--languages", "java")
    assert result.exit_code == 0
    first, *missing = result.stdout.splitlines()
    assert first == f"{out}: 2 rows of 1 units"
    assert sorted(line.split(";")[0] for line in missing) == [
        "  left out 1: blob not in the repository",
        "  left out 1: repository not found",
    ]
    assert out.stat().st_size > 0
    assert run(*arguments, "--languages", "cobol").exit_code == 2
