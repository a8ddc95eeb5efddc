"""``rlm-lsp tune`` of a full model: trained on from where it stands, kept only if held-out groups say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rlm_core import DataError
from rlm_core.inference import model_store
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.full.predictor import TorchPredictor
from rlm_core.training.full.training_config import ModelFitConfig
from rlm_core.training.tuning.full import tune_full
from rlm_core.training.tuning.run import Options
from rlm_lsp.cli.app import app

from tests.rlm_core.training.full.tiny import Trained, rows

LOOP = ModelFitConfig(
    epochs=12, learning_rate=3e-3, tokens_per_batch=512, warmup_steps=5, group_power=1.0, precision="float32"
)


def team_rows(shift: float) -> list[dict[str, Any]]:
    """Latencies of functions that the tiny model was not trained on."""
    found = [row for row in rows(200)[len(rows()) :] if row["metric"] == "latency"]
    for row in found:
        row["value"] *= shift
    return found


def quietly(text: str) -> None:
    """Nobody listens."""


def test_a_full_model_moves_towards_shifted_labels(full: Trained, tmp_path: Path) -> None:
    write_rows(team_rows(6.0), tmp_path / "team.parquet")
    out = tmp_path / "model"
    found = tune_full([tmp_path / "team.parquet"], full.directory, out, Options("ours", fewest=100), quietly, LOOP)
    assert found.refused is None
    for result in found.results:
        assert result.after.error < 0.7 * result.before.error
    predictor, summary = TorchPredictor(out, "cpu"), model_store.summary(out)
    assert found.model == predictor.model_id == summary.model_id
    assert predictor.devices("call") == ("measured-x86-64",)
    assert summary.tuned_from == TorchPredictor(full.directory, "cpu").model_id
    assert {one.state for one in model_store.verify(summary)} == {"ok"}


def test_shuffled_labels_are_refused(full: Trained, tmp_path: Path) -> None:
    found = team_rows(1.0)
    rng = np.random.default_rng(0)
    for row, value in zip(found, rng.permutation([row["value"] for row in found]), strict=True):
        row["value"] = float(value)
    write_rows(found, tmp_path / "team.parquet")
    options = Options("ours", fewest=100)
    result = tune_full([tmp_path / "team.parquet"], full.directory, tmp_path / "model", options, quietly, LOOP)
    assert result.model is None
    assert "no model is written" in str(result.refused)
    assert [path.name for path in tmp_path.iterdir()] == ["team.parquet"]


def test_few_rows_are_refused_with_the_way_out(full: Trained, tmp_path: Path) -> None:
    write_rows(team_rows(1.0)[:60], tmp_path / "team.parquet")
    arguments = ["tune", "--data", tmp_path / "team.parquet", "--model", full.directory, "--out", tmp_path / "model"]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 2
    assert "tune a student, or add a device with rlm-lsp adapt" in result.stderr


def test_original_rows_are_not_taken(full: Trained, tmp_path: Path) -> None:
    options = replace(Options("ours"), keep=(full.data,))
    with pytest.raises(DataError, match="--keep is for students"):
        tune_full([full.data], full.directory, tmp_path / "model", options, quietly)
