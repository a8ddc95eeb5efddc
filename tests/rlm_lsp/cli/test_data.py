"""``rlm-lsp data build``: labels and a source cache in, a data set and a report out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rlm_lsp.cli.app import app

pytestmark = pytest.mark.extras


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


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
