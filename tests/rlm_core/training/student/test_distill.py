"""A student learns from a teacher's distributions: as its targets, from labelled and unlabelled texts, asked once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rlm_core
import torch
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import CodeText, Prediction, Query
from rlm_core.errors import DataError, ModelError
from rlm_core.inference.calibration import Scale
from rlm_core.inference.card import read_card
from rlm_core.inference.predictor import Predictor, WithoutComparison
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.datasets.texts import SCHEMA
from rlm_core.training.full.encoders.scratch import ScratchEncoder
from rlm_core.training.full.predictor import TorchPredictor
from rlm_core.training.student import distill as distill_module
from rlm_core.training.student.batches import EncoderData, HeadInputs
from rlm_core.training.student.config import TrainConfig
from rlm_core.training.student.distill import ANSWERS, DistillConfig, Distilling, distill, masses_of
from rlm_core.training.student.export import WEIGHTS
from rlm_core.training.student.network import Student, StudentConfig
from rlm_core.training.student.train import _task, fit_scales
from rlm_core.types import LEVELS, Basis
from safetensors.torch import load_file

from tests.rlm_core.training.conftest import CONFIG as STUDENT
from tests.rlm_core.training.full.tiny import Trained, run_cli

SCALE = Scale(64.0, np.linspace(np.log10(64), 6, 65))
OUTCOMES = 65
TEXTS = [("def fresh_one(items):\n\tfor x in items:\n\t\tpass", "python"), ("fn main() {}", "rust")]


class Counting(WithoutComparison):
    """A predictor that counts the queries that another answers."""

    def __init__(self, base: Predictor) -> None:
        self.base, self.asked = base, 0

    @property
    def model_id(self) -> str:
        return self.base.model_id

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return self.base.default_queries(basis, language)

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return self.base.devices(basis)

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        self.asked += sum(map(len, queries))
        return self.base.predict(texts, queries)


@pytest.fixture(scope="module")
def predictor(full: Trained) -> TorchPredictor:
    """The teacher: the tiny full model."""
    return TorchPredictor(full.directory, "cpu")


@pytest.fixture(scope="module")
def corpus(full: Trained) -> Corpus:
    return load_corpus([full.data], ("train", "val", "cal"))


@pytest.fixture(scope="module")
def settings() -> TrainConfig:
    return replace(TrainConfig(), model=replace(TrainConfig().model, context=48))


@pytest.fixture(scope="module")
def out(full: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder, with its tokenizer."""
    folder = tmp_path_factory.mktemp("distilled")
    (folder / "tokenizer.model").write_bytes((full.directory / "tokenizer.model").read_bytes())
    return folder


@pytest.fixture(scope="module")
def task(corpus: Corpus, settings: TrainConfig, out: Path) -> EncoderData:
    return _task(corpus, corpus.encode(Tokenizer.load(out / "tokenizer.model")), fit_scales(corpus), settings)


@given(st.lists(st.floats(1.0, 1e8), min_size=len(LEVELS), max_size=len(LEVELS)))
def test_masses_are_probabilities_that_reach_the_levels_at_the_quantiles(values: list[float]) -> None:
    quantiles = np.sort(values)
    [masses] = masses_of(quantiles[None, :], SCALE)
    assert masses.min() >= 0
    assert masses.sum() == pytest.approx(1)
    reached = np.cumsum(masses)
    for level, value in zip(LEVELS, quantiles, strict=True):
        if value <= SCALE.floor:
            assert masses[0] >= level - 1e-9
        elif value < 1e6:
            place = float(SCALE.position(value))
            assert reached[int(np.ceil(place + 1e-6))] >= level - 1e-6


def test_the_masses_of_a_spread_out_teacher_give_its_quantiles_back() -> None:
    quantiles = np.geomspace(200, 5e5, len(LEVELS))
    found = SCALE.quantiles(masses_of(quantiles[None, :], SCALE), LEVELS)[0]
    # A bin is a fifteenth of a decade wide and spreads what is in it evenly.
    np.testing.assert_allclose(found, quantiles, rtol=0.12)


def test_training_rows_and_unlabelled_texts_get_targets_and_others_none(
    predictor: TorchPredictor, task: EncoderData, corpus: Corpus, settings: TrainConfig, out: Path
) -> None:
    teaching = Distilling(predictor, DistillConfig(weight=0.25), TEXTS)
    found = teaching.extended(task, corpus, fit_scales(corpus), settings, out)
    assert found.teacher is not None
    rows = len(corpus.rows)
    weight = found.teacher.weight.numpy()
    assert set(weight[:rows][corpus.rows.split == "train"]) == {0.25}
    assert set(weight[:rows][corpus.rows.split != "train"]) == {0.0}
    # Two metrics of the one text in a language that has training rows.
    assert weight[rows:].tolist() == [1.0, 1.0]
    assert len(found.ids) == len(task.ids) + 1
    assert found.inputs.text[rows:].tolist() == [len(task.ids)] * 2
    assert found.split[rows:].tolist() == ["train"] * 2
    sums = found.teacher.targets.float().sum(1)[found.teacher.weight > 0]
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=2e-3, rtol=0)
    assert all(len(getattr(found.inputs, name)) == rows + 2 for name in HeadInputs.__slots__)
    assert len(found.group) == len(found.basis) == rows + 2


def test_targets_lie_where_the_teacher_says(
    predictor: TorchPredictor, task: EncoderData, corpus: Corpus, settings: TrainConfig, out: Path
) -> None:
    found = Distilling(predictor, DistillConfig()).extended(task, corpus, fit_scales(corpus), settings, out)
    assert found.teacher is not None
    rows = corpus.rows
    row = next(i for i in np.flatnonzero(rows.split == "train") if rows.callees[i].max() < 0)
    basis, language, metric = corpus.tasks[rows.task[row]].split("/")
    assert (basis, language) == ("call", "python")
    code = CodeText(corpus.texts[rows.text[row]][0], "python", "call")
    [[answer]] = predictor.predict([code], [[Query("latency" if metric == "latency" else "memory")]])
    scale = fit_scales(corpus)[rows.task[row]]
    [median] = scale.quantiles(found.teacher.targets[row : row + 1].double().numpy(), [0.5])[0]
    assert answer.median is not None
    assert np.log10(median) == pytest.approx(np.log10(answer.median), abs=0.1)


def test_the_teacher_is_queried_once(
    predictor: TorchPredictor, task: EncoderData, corpus: Corpus, settings: TrainConfig, out: Path
) -> None:
    (out / ANSWERS).unlink(missing_ok=True)
    first, second, third = (Counting(predictor) for _ in range(3))
    one = Distilling(first, DistillConfig()).extended(task, corpus, fit_scales(corpus), settings, out)
    assert first.asked == int((corpus.rows.split == "train").sum())
    other = Distilling(second, DistillConfig()).extended(task, corpus, fit_scales(corpus), settings, out)
    assert second.asked == 0
    assert one.teacher is not None
    assert other.teacher is not None
    assert torch.equal(one.teacher.targets, other.teacher.targets)
    Distilling(third, DistillConfig(), TEXTS).extended(task, corpus, fit_scales(corpus), settings, out)
    assert third.asked == 2


def test_answers_of_the_teacher_are_kept_when_it_fails(
    predictor: TorchPredictor,
    task: EncoderData,
    corpus: Corpus,
    settings: TrainConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(distill_module, "_BATCH", 1)
    monkeypatch.setattr(distill_module, "_KEPT_BATCHES", 2)
    first, second = Counting(predictor), Counting(predictor)
    answered = first.predict

    def breaks_down(texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        if first.asked >= 3:
            raise ModelError("out of memory")
        return answered(texts, queries)

    monkeypatch.setattr(first, "predict", breaks_down)
    with pytest.raises(ModelError):
        Distilling(first, DistillConfig()).extended(task, corpus, fit_scales(corpus), settings, tmp_path)
    kept = pq.read_table(tmp_path / ANSWERS).num_rows
    assert 0 < kept <= first.asked
    Distilling(second, DistillConfig()).extended(task, corpus, fit_scales(corpus), settings, tmp_path)
    assert second.asked == int((corpus.rows.split == "train").sum()) - kept


def test_a_damaged_file_of_answers_is_reported(
    predictor: TorchPredictor, task: EncoderData, corpus: Corpus, settings: TrainConfig, tmp_path: Path
) -> None:
    (tmp_path / ANSWERS).write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match=r"teacher\.parquet: cannot be read .*; delete it"):
        Distilling(predictor, DistillConfig()).extended(task, corpus, fit_scales(corpus), settings, tmp_path)


def test_no_more_unlabelled_texts_than_wanted_are_read(predictor: TorchPredictor, corpus: Corpus) -> None:
    texts = [(f"def g{number}():\n\tpass", "python") for number in range(20)]
    found = Distilling(predictor, DistillConfig(unlabelled=5), texts)._unlabelled(corpus)
    assert len(found.texts) == 5
    own = [corpus.texts[0]]
    assert Distilling(predictor, DistillConfig(), own)._unlabelled(corpus).texts == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[distill]\nweigth = 0.5\n", r"\[distill\]: unknown key 'weigth'; known: weight"),
        ("[distill]\nweight = 2.0\n", r"weight must lie within 0\.\.1"),
        ("distill = 3\n", r"\[distill\] must be a table"),
    ],
)
def test_a_wrong_table_is_named(full: Trained, tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "c.toml").write_text(table)
    with pytest.raises(DataError, match=message):
        distill(TorchPredictor(full.directory, "cpu"), [full.data], tmp_path / "c.toml", tmp_path / "out")


def test_the_command_trains_a_student_that_can_be_exported(full: Trained, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(STUDENT + "[distill]\nweight = 0.5\n")
    unlabelled = pa.table({"text": [TEXTS[0][0]], "language": ["python"]}, schema=SCHEMA)
    pq.write_table(unlabelled, tmp_path / "texts.parquet")
    arguments = ["--teacher", full.directory, "--data", full.data, "--texts", tmp_path / "texts.parquet"]
    run = [*arguments, "--config", tmp_path / "c.toml", "--out", tmp_path / "run"]
    printed = run_cli("train", *run).stderr
    assert "answers 170 of 170 questions" in printed
    assert (tmp_path / "run" / ANSWERS).exists()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["teacher"].startswith("tiny-full-")
    run_cli("export", "--model", tmp_path / "run", "--out", tmp_path / "exported")
    code = CodeText(TEXTS[0][0], "python", "call")
    [[answer]] = rlm_core.load(tmp_path / "exported").predict([code], [[Query("latency")]])
    assert answer.basis == "call"


def test_a_full_model_continues_from_a_students_encoder(full: Trained, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(STUDENT)
    run_cli("train", "--data", full.data, "--config", tmp_path / "c.toml", "--out", tmp_path / "run")
    run_cli("export", "--model", tmp_path / "run", "--out", tmp_path / "exported")
    student = Student(StudentConfig(**read_card(tmp_path / "run").sizes))
    student.load_state_dict(load_file(tmp_path / "run" / WEIGHTS))
    encoder = ScratchEncoder.from_student(tmp_path / "run", 100).eval()
    ids = torch.arange(5, 45)[None]
    states = student.encoder.eval().states(ids)
    torch.testing.assert_close(encoder(ids, torch.ones_like(ids, dtype=torch.bool)), states, atol=1e-5, rtol=1e-4)
    exported = ScratchEncoder.from_student(tmp_path / "exported", 100).eval()
    alike = torch.cosine_similarity(exported(ids, torch.ones_like(ids, dtype=torch.bool)), states, dim=2)
    assert alike.min() > 0.99
    with pytest.raises(ModelError, match=r"card\.json: cannot be read"):
        ScratchEncoder.from_student(tmp_path, 100)
