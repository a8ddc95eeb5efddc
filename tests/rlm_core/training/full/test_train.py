"""``rlm-lsp train`` with ``kind = "full"`` from end to end on tiny models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from rlm_core.errors import DataError
from rlm_core.inference.calibration import MIN_GROUPS
from rlm_core.inference.card import SERVING
from rlm_core.training.corpus import load_corpus
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.full import store
from rlm_core.training.full.store import Serving
from rlm_core.training.full.train import _calibration_rows, train
from rlm_core.training.full.training_data import examples
from rlm_lsp.cli.app import app

from tests.rlm_core.training.full.encoders import checkpoints as checkpoints
from tests.rlm_core.training.full.tiny import CONFIG, Trained, rows, tiny_model


def test_training_writes_a_model_with_its_calibration(full: Trained) -> None:
    model, card = store.load(full.directory)
    serving = Serving.read(full.directory, card)
    assert card.name == "tiny-full"
    assert card.trained["steps"] > 0
    assert card.trained["parameters"] == sum(weight.numel() for weight in model.parameters())
    assert serving.floors == {"call/python/latency": 5e-8, "call/python/memory": 64.0}
    assert serving.devices == {"call": ["x86-64"]}
    assert serving.defaults["call"]["device"] == "x86-64"
    level = serving.calibration.lookup("call", "python", "latency", "x86-64")
    assert level is not None
    assert level.name == "call/python/latency/x86-64"
    assert level.groups >= MIN_GROUPS
    assert list(level.levels) == sorted(level.levels)


def test_the_log_reports_loss_rank_and_speed(full: Trained) -> None:
    lines = [json.loads(line) for line in (full.directory / "log.jsonl").read_text().splitlines()]
    known = set().union(*lines)
    assert {"step", "tokens", "time", "loss", "norm", "rate", "tokens_per_second", "validation", "spearman"} <= known


def test_a_second_run_needs_resume_and_the_same_settings(full: Trained, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="already holds a training run; add --resume"):
        train([full.data], full.config, full.directory)
    other = tmp_path / "other.toml"
    other.write_text(CONFIG.replace("epochs = 24", "epochs = 9"))
    with pytest.raises(DataError, match="used other data or settings"):
        train([full.data], other, full.directory, resume=True)


def test_a_finished_run_resumes_to_the_same_model(full: Trained, config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    folder.mkdir()
    for name in ("run.json", "tokenizer.model", "checkpoint.pt", "best.pt"):
        (folder / name).write_bytes((full.directory / name).read_bytes())
    train([full.data], config, folder, resume=True)
    assert store.read_card(folder).files == store.read_card(full.directory).files
    assert (folder / SERVING).read_text() == (full.directory / SERVING).read_text()


def test_a_split_that_is_missing_is_named(tmp_path: Path, config: Path) -> None:
    write_rows((row | {"split": "train"} for row in rows(4)), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="no rows of split val"):
        train([tmp_path / "rows.parquet"], config, tmp_path / "out")


def test_unlabelled_texts_are_refused(full: Trained, tmp_path: Path) -> None:
    arguments = ["train", "--data", full.data, "--texts", "t.parquet", "--config", full.config, "--out", tmp_path]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 2
    assert "uses labelled texts only" in result.stderr


def test_unseen_families_alone_calibrate_where_there_are_enough(tmp_path: Path) -> None:
    model = tiny_model()
    half = rows()
    write_rows(half, tmp_path / "unseen.parquet")
    unseen = examples(load_corpus([tmp_path / "unseen.parquet"]), model, 0)
    chosen, groups = _calibration_rows(unseen)
    assert set(groups) == set(unseen.corpus.rows.family[unseen.rows_of("cal")])
    seen = [row | {"family": "one"} for row in half]
    write_rows(seen, tmp_path / "seen.parquet")
    known = examples(load_corpus([tmp_path / "seen.parquet"]), model, 0)
    chosen, groups = _calibration_rows(known)
    assert sorted(chosen) == known.rows_of("cal").tolist()
    assert len(np.unique(groups)) == len(chosen) // 2


def test_an_adapted_pretrained_encoder_is_trained_and_kept_as_its_adapters(data: Path, tmp_path: Path) -> None:
    base = checkpoints.write(checkpoints.first(), tmp_path / "base")
    text = CONFIG.replace("epochs = 24", "epochs = 1").replace("vocabulary = 540", f'kind = "t5gemma"\nbase = "{base}"')
    text = text.replace("max_tokens = 64", "max_tokens = 64\nrank = 2").replace("[train]", "[train]\nrecompute = true")
    (tmp_path / "c.toml").write_text(text)
    train([data], tmp_path / "c.toml", tmp_path / "run")
    model, _ = store.load(tmp_path / "run")
    assert {"lora_A", "lora_B"} <= {part for name in model.encoder.weights() for part in name.split(".")}
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)["weights"]
    assert [name for name in saved if "lora_" in name]
    assert not [name for name in saved if name.startswith("encoder.") and "lora_" not in name]
