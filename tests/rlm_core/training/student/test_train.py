"""``rlm-lsp train`` and ``eval`` from end to end on a tiny model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from rlm_core.errors import DataError, ModelError
from rlm_core.inference.card import read_card
from rlm_core.inference.encoder import encode, open_session
from rlm_core.inference.novelty import DISTANCE, NoveltyDetector, fit_novelty_detector
from rlm_core.training.corpus import Corpus
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.evaluation.card_model import heading
from rlm_core.training.student.batches import Indices
from rlm_core.training.student.encoder_fit import EncoderTrainer
from rlm_core.training.student.export import export_encoder, read_encoder
from rlm_core.training.student.network import Student, StudentConfig
from rlm_core.training.student.train import _thinned, encode_all, texts_by_prefix, train
from rlm_core.training.trainer import StepResult
from safetensors.numpy import load_file

from tests.rlm_core.training.conftest import CONFIG, Trained, function_rows, run_cli

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
    assert sorted(card.files) == [
        *("distance.safetensors", "student.safetensors", "tokenizer.model", "trees.safetensors", "wide.safetensors")
    ]
    assert [entry.name for entry in card.tasks] == [
        *("call/python/latency", "call/python/memory", "kernel/triton/latency"),
        *("program/java/latency", "program/java/memory"),
    ]
    assert card.trained["rows"] == 46 + 40
    assert card.trained["epochs"] == 1
    assert card.trained["pretraining_tokens"] == 4000
    # Kernels are predicted by their forest, which asks the encoder only what is unlike its training texts.
    assert [entry.deep_weight for entry in card.tasks if entry.name.startswith("kernel/")] == [1.0]
    assert {
        prefix.partition("@")[0] for prefix in NoveltyDetector.load(trained.directory / DISTANCE).regions
    } == card.encoded
    assert {"pretraining", "n-gram ridge and trees", "encoder"} <= card.trained["seconds"].keys()


def test_the_card_knows_the_devices_of_the_training_rows(trained: Trained) -> None:
    card = read_card(trained.directory)
    assert card.devices == {
        "call": ["x86-64"],
        "kernel": ["nvidia-a100-sxm4-80gb", "nvidia-l40s"],
        "program": ["leetcode"],
    }
    assert card.defaults["kernel"] == {"device": "nvidia-a100-sxm4-80gb", "workload": {}}
    assert card.defaults["network/accuracy"]["device"] is None


def test_todays_date_is_the_last_of_the_training_rows(trained: Trained) -> None:
    workload = read_card(trained.directory).defaults["program"]["workload"]
    assert workload["judge"] == "leetcode"
    assert workload["date"].startswith("2024-12-1")


def test_calibration_of_few_families_uses_the_calibration_and_the_training_rows(trained: Trained) -> None:
    card = read_card(trained.directory)
    levels = card.calibration.to_json()
    assert levels["call"]["rows"] == 6 + 30
    assert levels["program"]["rows"] == 2 + 16
    # Kernels have residuals instead; their forest has not seen the validation rows either.
    assert "kernel" not in levels
    assert card.residuals["kernel/triton/latency"].rows == 8 + 40 + 8


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

    step, left = EncoderTrainer.take_step, [0]

    def stopping(self: EncoderTrainer, batch: Indices) -> StepResult:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return step(self, batch)

    monkeypatch.setattr(EncoderTrainer, "take_step", stopping)
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
    config.write_text(CONFIG.replace("vocabulary = 540", "vocabulary = 8192"))
    with pytest.raises(DataError, match="too few for a vocabulary of 8192"):
        train([trained.data], config, tmp_path / "run")


def test_too_small_a_vocabulary_is_said(trained: Trained, tmp_path: Path) -> None:
    config = tmp_path / "small.toml"
    config.write_text(CONFIG.replace("vocabulary = 540", "vocabulary = 300"))
    with pytest.raises(DataError, match=r"vocabulary of 300 does not hold the fixed symbols; raise it in \[model\]"):
        train([trained.data], config, tmp_path / "run")


def test_unmeasured_metrics_are_accepted(trained: Trained, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_rows([row for row in function_rows(24) if row["metric"] == "latency"], path)
    train([path], trained.config, tmp_path / "run")
    assert [entry.name for entry in read_card(tmp_path / "run").tasks] == ["call/python/latency"]


def test_checkpoints_hold_tensors_and_plain_values_only(trained: Trained) -> None:
    for name in ("checkpoint.pt", "best.pt"):
        assert torch.load(trained.directory / name, weights_only=True)


def test_eval_accounts_for_every_test_row(trained: Trained) -> None:
    printed = run_cli("eval", "--data", trained.data, "--model", trained.exported, "--format", "json")
    report = json.loads(printed)
    # So few groups are too few to calibrate on: all rows are abstained from, each with a reason.
    assert report["slices"] == []
    assert {basis: sum(reasons.values()) for basis, reasons in report["abstained"].items()} == {
        "call": 6,
        "program": 2,
        "kernel": 8,
    }


def test_training_goes_on_with_the_encoder_and_tokenizer_of_an_exported_student(
    trained: Trained, data: Path, tmp_path: Path
) -> None:
    config = tmp_path / "on.toml"
    # Its own sizes are another model's: those of the student that it goes on with hold.
    config.write_text(
        CONFIG.replace("32", "64").replace("[pretrain]", f"[pretrain]\nstart = {str(trained.exported)!r}")
    )
    train([data], config, tmp_path / "run")
    before, after = read_card(trained.exported), read_card(tmp_path / "run")
    assert after.sizes["width"] == before.sizes["width"]
    assert after.sizes["head_hidden"] == 64
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == (trained.exported / "tokenizer.model").read_bytes()
    assert after.trained["start"] == before.model_id
    assert "pretraining_tokens" not in after.trained
    assert "pretraining" not in after.trained["seconds"]
    first = read_encoder(trained.exported).state_dict()["embed.weight"]
    learnt = torch.from_numpy(weights_of(tmp_path / "run")["encoder.embed.weight"])
    assert 0 < (learnt - first).abs().max() < 0.1 * first.abs().max()
    assert f"Continued with the encoder of `{before.model_id}`." in heading(after)


def test_a_run_that_goes_on_with_another_student_is_another_run(trained: Trained, data: Path, tmp_path: Path) -> None:
    config = tmp_path / "on.toml"
    config.write_text(CONFIG.replace("[pretrain]", f"[pretrain]\nstart = {str(tmp_path / 'student')!r}"))
    with pytest.raises(ModelError, match=r"student: no such model; run rlm-lsp model list"):
        train([data], config, tmp_path / "run")
    shutil.copytree(trained.exported, tmp_path / "student")
    train([data], config, tmp_path / "run")
    card = json.loads((tmp_path / "student" / "card.json").read_text())
    (tmp_path / "student" / "card.json").write_text(json.dumps({**card, "name": "another"}))
    with pytest.raises(DataError, match="the run in it used other data or settings; name another directory"):
        train([data], config, tmp_path / "run", resume=True)


SIZES = StudentConfig(vocabulary=64, width=16, layers=1, heads=2, hidden=24, context=32, head_hidden=16)


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_thinning_keeps_at_most_so_many_rows_of_a_slice_and_split(mixed_corpus: Corpus, most: int) -> None:
    kept = _thinned(mixed_corpus, most, seed=0)
    assert np.all(np.diff(kept) > 0)
    thinned = mixed_corpus.rows.chosen(kept)
    for split in np.unique(mixed_corpus.rows.split):
        for number in range(len(mixed_corpus.tasks)):
            had = np.sum((mixed_corpus.rows.split == split) & (mixed_corpus.rows.task == number))
            has = np.sum((thinned.split == split) & (thinned.task == number))
            assert has == min(most, had)
    assert _thinned(mixed_corpus, most, seed=0).tolist() == kept.tolist()


def test_every_text_is_encoded_by_the_exported_encoder(tmp_path: Path) -> None:
    student = Student(SIZES).eval()
    export_encoder(student, tmp_path / "encoder.onnx")
    ids = [np.arange(5, 5 + length, dtype=np.int32) for length in (3, 20, 7)]
    bank = encode_all(tmp_path / "encoder.onnx", ids)
    assert bank.known.all()
    session = open_session(tmp_path / "encoder.onnx")
    for vector, text in zip(bank.vectors.numpy(), ids, strict=True):
        assert vector.tolist() == encode(session, text).tolist()


def test_distances_are_fitted_by_language_and_basis(mixed_corpus: Corpus, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(mixed_corpus.texts), 8)).astype(np.float32)
    parts = texts_by_prefix(mixed_corpus, vectors)
    fit_novelty_detector(parts["train"], parts["cal"]).save(tmp_path / DISTANCE)
    found = NoveltyDetector.load(tmp_path / DISTANCE)
    assert sorted(found.regions) == mixed_corpus.prefixes()
    train = mixed_corpus.rows.text[mixed_corpus.rows.split == "train"]
    mine = np.intersect1d(train, mixed_corpus.rows.text[mixed_corpus.rows_of("kernel/triton")])
    np.testing.assert_allclose(found.regions["kernel/triton"].mean, vectors[mine].mean(axis=0), atol=1e-5)


def test_the_trained_directory_names_its_files_and_slices(trained: Trained) -> None:
    card = read_card(trained.directory)
    [kernels] = [entry for entry in card.tasks if entry.name.startswith("kernel/")]
    assert (kernels.intercept, kernels.calendar) == (0.0, ())
    assert kernels.scale.floor == 0
    assert set(NoveltyDetector.load(trained.directory / DISTANCE).regions) == card.encoded
