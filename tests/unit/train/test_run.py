"""``rlm-lsp train`` and ``eval`` from end to end on a tiny model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from rlm_core.card import read_card
from rlm_core.data.schema import write_rows
from rlm_core.errors import DataError
from rlm_core.train.loop import Loop
from rlm_core.train.run import train
from safetensors.numpy import load_file

from .conftest import CONFIG, Trained, function_rows, run_cli

Weights = dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]


def weights_of(directory: Path) -> Weights:
    weights: Weights = load_file(directory / "student.safetensors")
    return weights


def assert_same(first: Path, second: Path) -> None:
    one, other = weights_of(first), weights_of(second)
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert read_card(first).calibration.to_json() == read_card(second).calibration.to_json()


def test_training_writes_weights_a_tokenizer_the_wide_part_and_a_card(trained: Trained) -> None:
    card = read_card(trained.directory)
    assert sorted(card.files) == ["student.safetensors", "tokenizer.model", "wide.safetensors"]
    assert [entry.name for entry in card.slices] == [
        *("call/python/latency", "call/python/memory", "program/java/latency", "program/java/memory")
    ]
    assert card.trained["rows"] == 46
    assert card.trained["epochs"] == 1


def test_todays_date_is_the_last_of_the_training_rows(trained: Trained) -> None:
    workload = read_card(trained.directory).defaults["program"]["workload"]
    assert workload["judge"] == "leetcode"
    assert workload["date"].startswith("2024-12-1")


def test_calibration_rests_on_the_calibration_rows(trained: Trained) -> None:
    levels = read_card(trained.directory).calibration.to_json()
    assert levels["call"]["rows"] == 6
    assert levels["program"]["rows"] == 2


def test_the_log_is_a_json_object_a_line(trained: Trained) -> None:
    lines = [json.loads(line) for line in (trained.directory / "log.jsonl").read_text().splitlines()]
    assert any("validation" in line for line in lines)


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "interrupted.toml"
    config.write_text(
        CONFIG.replace("compile", "checkpoint_minutes = 0\ncompile").replace("epochs = 1", "epochs = 2", 1)
    )
    train([trained.data], config, tmp_path / "whole")

    step, left = Loop._step, [0]

    def stopping(*arguments: object) -> float:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return step(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Loop, "_step", stopping)
    for resume in (False, True):
        # In the middle of the first epoch, then of the second.
        left[0] = 3
        with pytest.raises(KeyboardInterrupt):
            train([trained.data], config, tmp_path / "stopped", resume=resume)
    monkeypatch.undo()
    train([trained.data], config, tmp_path / "stopped", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "stopped")


def test_the_same_seed_gives_the_same_model(trained: Trained, tmp_path: Path) -> None:
    train([trained.data], trained.config, tmp_path / "again")
    assert_same(trained.directory, tmp_path / "again")


def test_resuming_a_finished_run_changes_nothing(trained: Trained, tmp_path: Path) -> None:
    shutil.copytree(trained.directory, tmp_path / "run")
    train([trained.data], trained.config, tmp_path / "run", resume=True)
    assert_same(trained.directory, tmp_path / "run")


def test_a_directory_with_a_run_is_not_overwritten(trained: Trained) -> None:
    with pytest.raises(DataError, match="already holds a training run; add --resume"):
        train([trained.data], trained.config, trained.directory)


def test_a_run_is_not_resumed_with_other_settings(trained: Trained, tmp_path: Path) -> None:
    shutil.copytree(trained.directory, tmp_path / "run")
    other = tmp_path / "other.toml"
    other.write_text(CONFIG.replace("width = 32", "width = 64"))
    with pytest.raises(DataError, match="used other data or settings"):
        train([trained.data], other, tmp_path / "run", resume=True)


@pytest.mark.parametrize("split", ["train", "val", "cal"])
def test_a_data_set_without_a_split_is_refused_by_its_name(trained: Trained, tmp_path: Path, split: str) -> None:
    path = tmp_path / "rows.parquet"
    write_rows([row for row in function_rows(24) if row["split"] != split], path)
    with pytest.raises(DataError, match=f"no rows of split {split}"):
        train([path], trained.config, tmp_path / "run")


def test_too_few_texts_for_the_vocabulary_is_said(trained: Trained, tmp_path: Path) -> None:
    config = tmp_path / "large.toml"
    config.write_text(CONFIG.replace("vocabulary = 320", "vocabulary = 8192"))
    with pytest.raises(DataError, match="too few for a vocabulary of 8192"):
        train([trained.data], config, tmp_path / "run")


def test_metrics_that_nobody_measured_are_no_trouble(trained: Trained, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_rows([row for row in function_rows(24) if row["metric"] == "latency"], path)
    train([path], trained.config, tmp_path / "run")
    assert [entry.name for entry in read_card(tmp_path / "run").slices] == ["call/python/latency"]


def test_checkpoints_hold_tensors_and_plain_values_only(trained: Trained) -> None:
    for name in ("checkpoint.pt", "best.pt"):
        assert torch.load(trained.directory / name, weights_only=True)


def test_eval_reports_every_slice_of_the_test_rows(trained: Trained) -> None:
    printed = run_cli("eval", "--data", trained.data, "--model", trained.exported, "--format", "json")
    report = json.loads(printed)
    found = {(entry["basis"], entry["language"], entry["metric"]) for entry in report["slices"]}
    assert found == {
        (basis, language, metric)
        for basis, language in (("call", "python"), ("program", "java"))
        for metric in ("latency", "memory")
    }
