"""``rlm-lsp bench torch``: modules with inputs on this processor."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from lsprotocol import types
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement.gpu.bench_rows import Row, read_rows
from rlm_lsp.cli.app import app

from tests.lsp.recording import Recording, recording

pytestmark = pytest.mark.extras

MODULE = """
from pathlib import Path

import torch
from torch import nn

from .sizes import WIDTH

print("what a module prints is no row")


class Model(nn.Module):
    def __init__(self, width, *, bias):
        super().__init__()
        self.layer = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        return torch.relu(self.layer(x)), x.sum()


def get_inputs():
    return [torch.randn(32, WIDTH)]


def get_init_inputs():
    return [[WIDTH], {"bias": False}]
"""
FAILS = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x @ x


def get_inputs():
    return [torch.randn(3, 5)]
"""


def bench(folder: Path, *arguments: str) -> Result:
    command = ["bench", "torch", str(folder), "--device", "cpu", "--threads", "1", "--seconds", "0.01", *arguments]
    return CliRunner().invoke(app, [*command, "--out", str(folder / "rows.jsonl")])


def rows_of(folder: Path) -> list[Row]:
    return list(read_rows(folder / "rows.jsonl"))


def test_modules_are_measured_in_each_dtype_and_a_bad_one_costs_its_own_rows(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "sizes.py").write_text("WIDTH = 64\n")
    (tmp_path / "a_good.py").write_text(MODULE)
    (tmp_path / "b_fails.py").write_text(FAILS)
    first = bench(tmp_path, "--dtype", "fp32", "--dtype", "bf16")
    assert first.exit_code == 1
    assert f"will run on cpu: {tmp_path / 'a_good.py'} (Model)" in first.stderr
    rows = rows_of(tmp_path)
    outcomes = [(Path(row["path"]).name, row["case"]["dtype"], row["status"]) for row in rows]
    assert outcomes == [
        ("a_good.py", "fp32", "ok"),
        ("a_good.py", "bf16", "ok"),
        ("b_fails.py", "fp32", "error"),
        ("b_fails.py", "bf16", "error"),
    ]
    for row in rows[:2]:
        assert 0 < row["p20"] <= row["latency"] <= row["p80"]
        assert (row["parameters"], row["inputs"], row["outputs"]) == (64 * 64, ["32x64"], ["32x64", "1"])
        assert row["memory"] is None or 0 <= row["memory"] < 2**30
        assert row["machine"]["threads"] == "1"
    assert "b_fails.py:7" in rows[2]["error"]
    again = bench(tmp_path, "--dtype", "fp32", "--dtype", "bf16")
    assert (again.exit_code, again.stdout) == (0, "")
    assert "0 new rows, 4 known" in again.stderr


@pytest.mark.asyncio
@pytest.mark.timeout(180)
async def test_the_hover_of_a_module_shows_local_measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    text = MODULE.replace("from .sizes import WIDTH", "WIDTH = 64")
    path = tmp_path / "module.py"
    path.write_text(text)
    began = datetime.now(UTC).date()
    assert bench(tmp_path).exit_code == 0
    line = text[: text.index("class Model")].count("\n")
    async with recording(types.ClientCapabilities(), tmp_path) as session:
        uri = session.open(path)
        shown = await hover(session, uri, line)
        assert f"measured on {cpu_name()} at backend eager, dtype fp32, torch-" in shown
        assert any(f"threads=1, {day}: latency " in shown for day in (began, datetime.now(UTC).date()))
        assert "stale" not in shown
        session.change(uri, text.replace("torch.relu", "torch.tanh"))
        shown = await hover(session, uri, line)
        assert "(stale)" in shown
        assert "stale: the code has changed since it was measured" in shown


async def hover(session: Recording, uri: str, line: int) -> str:
    place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, 7))
    found = await session.client.text_document_hover_async(place)
    assert found is not None
    assert isinstance(found.contents, types.MarkupContent)
    return found.contents.value


def test_a_file_without_inputs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("import torch\nclass Model(torch.nn.Module): pass\n")
    result = CliRunner().invoke(app, ["bench", "torch", str(path), "--device", "cpu"])
    assert result.exit_code == 2
    assert result.stderr.strip().endswith("holds no module with get_inputs; name a file that does")
