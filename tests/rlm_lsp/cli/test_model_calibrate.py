"""``rlm-lsp model calibrate`` and ``show`` of a converted model, and models by name wherever one is given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rlm_core.inference import model_store
from rlm_core.inference.model_store import ModelOrigin
from rlm_core.training.datasets.schema import read_rows, write_rows
from rlm_core.training.full import published
from rlm_lsp.cli.app import app
from rlm_lsp.lsp import prediction_service
from rlm_lsp.settings import files

from tests.rlm_core.training.full.published_checkpoints import write_checkpoint

pytestmark = pytest.mark.extras


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("converted")
    write_checkpoint(folder / "checkpoint")
    published.install(folder / "checkpoint", folder / "tiny", "tiny", ModelOrigin("owner/tiny", "0c92", "mit"))
    return folder / "tiny"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, converted: Path) -> Path:
    """A converted model in the user's folder, by the name ``tiny``."""
    monkeypatch.setattr(files, "user_file", lambda: tmp_path / "config" / "config.toml")
    monkeypatch.setattr(model_store, "folder", lambda: tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(converted, tmp_path / "models" / "tiny")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Rows of APPS of 40 groups, of CodeNet's C++ of two."""
    rows = [
        {
            "id": f"code-regression/{space}/{number}/memory",
            "text": f"{language} {number}",
            "callees": [],
            "language": language,
            "basis": "program",
            "metric": "memory",
            "device": "x86-64",
            "workload": {"judge": space},
            "value": 1000.0 + number,
            "group": f"{space}/{number}",
            "family": f"{space}/{number}",
            "held_out": "problem",
            "split": "cal",
            "source": "test",
        }
        for space, language, count in (("apps", "python", 40), ("cdss", "cpp", 2))
        for number in range(count)
    ]
    write_rows(rows, tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def refusal(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    return line.removeprefix("rlm-lsp: error: ")


def test_a_model_is_calibrated_and_shows_it(tiny: Path, data: Path) -> None:
    shown = run("model", "show", "tiny").stdout.splitlines()
    assert "source       owner/tiny@0c92" in shown
    assert "license      mit" in shown
    cells = [line.split("  ") for line in shown if line.startswith(("space", "APPS", "CDSS", "KBSS", "ENAS"))]
    assert [[cell.strip() for cell in row if cell.strip()] for row in cells] == [
        ["space", "answers", "languages", "device", "unit", "calibrated on"],
        ["APPS", "program memory", "python", "any", "1 B", "uncalibrated"],
        [
            "CDSS",
            "program memory",
            "c, cpp, csharp, d, fortran, go and 11 more",
            "any",
            "1024 B",
            "uncalibrated",
        ],
        ["KBSS", "kernel latency", "triton", "nvidia-rtx-a6000", "0.001 s", "uncalibrated"],
        ["ENAS", "network accuracy", "onnx", "any", "0.01", "uncalibrated"],
    ]
    result = run("model", "calibrate", "tiny", "--data", data)
    assert (result.exit_code, result.stderr) == (0, "")
    header, cpp, apps, note, name = result.stdout.splitlines()
    assert header.split("  ")[0] == "task"
    assert apps.split()[:4] == ["program/python/memory", "APPS", "40", "40"]
    assert apps.split()[-1].endswith("%")
    assert cpp.split()[:4] == ["program/cpp/memory", "CDSS", "2", "2"]
    assert cpp.split()[-1] == "uncalibrated"
    assert note.startswith("program/cpp/memory is not calibrated: its rows are of 2 groups")
    summary = model_store.summary(tiny)
    assert name == f"model        {summary.model_id}"
    assert {file.state for file in model_store.verify(summary)} == {"ok"}
    assert "40 rows of 40 groups" in run("model", "show", "tiny").stdout
    facts = json.loads(run("model", "show", "tiny", "--format", "json").stdout)
    assert facts["trained"]["origin"] == {"source": "owner/tiny", "revision": "0c92", "license": "mit"}
    assert facts["spaces"][0]["calibrated"]["python"]["groups"] == 40
    assert facts["spaces"][1]["calibrated"] == {}
    assert "python" not in facts["spaces"][1]["languages"]  # APPS answers for it


def test_a_task_of_too_few_groups_keeps_what_it_has(tiny: Path, data: Path, tmp_path: Path) -> None:
    run("model", "calibrate", "tiny", "--data", data)
    kernels = tmp_path / "kernels.parquet"
    kernel = {"basis": "kernel", "language": "triton", "metric": "latency", "device": "nvidia-rtx-a6000"}
    rows = list(read_rows([data]))
    few = [row for row in rows if row["language"] == "python"][:10]
    write_rows([*(row | kernel | {"workload": {}, "value": 1e-3} for row in rows[:40]), *few], kernels)
    result = run("model", "calibrate", "tiny", "--data", kernels)
    assert "program/python/memory keeps its calibration: its rows are of 10 groups" in result.stdout
    shown = run("model", "show", "tiny").stdout
    assert shown.count("40 rows of 40 groups") == 2


def test_bad_input_is_one_line(tiny: Path, data: Path, tmp_path: Path) -> None:
    before = (tiny / "card.json").read_bytes()
    for arguments, message in (
        (("builtin", "--data", data), "builtin is a student"),
        (("nothing", "--data", data), "no such model"),
        (("http://gpu-box:8765", "--data", data), "is a model server"),
        (("tiny", "--data", tmp_path / "none.parquet"), "not a readable Parquet file"),
        (("tiny", "--data", data, "--split", "val"), "answers no row of val; it answers APPS"),
        (("tiny", "--data", data, "--most", "20"), "a calibration needs 30"),
    ):
        assert message in refusal(run("model", "calibrate", *arguments))
    assert (tiny / "card.json").read_bytes() == before


def test_an_installed_model_is_named_wherever_a_model_is_given(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "solution.py"
    program.write_text("import sys\nfor line in sys.stdin:\n    print(line)\n")
    answer = run("predict", program, "--model", "tiny", "--format", "json")
    assert answer.exit_code == 0
    assert model_store.summary(tiny).model_id in answer.stdout
    assert run("doctor", "--model", "tiny").exit_code == 0
    assert refusal(run("predict", program, "--model", "tinny")).startswith("tinny: no such model; run rlm-lsp model")
    # What the settings choose is found in the same way, also by the language server.
    monkeypatch.setenv("RLM_LSP_MODEL", "tiny")
    assert model_store.summary(tiny).model_id in run("predict", program, "--format", "json").stdout
    assert prediction_service._load("tiny", threads=1).model_id == model_store.summary(tiny).model_id
