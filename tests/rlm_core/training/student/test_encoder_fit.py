"""Training of the encoder: what it learns from, and what it keeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from rlm_core.training.student.batches import EncoderData
from rlm_core.training.student.config import EncoderFitConfig
from rlm_core.training.student.encoder_fit import Bank, EncoderTrainer, encode_texts
from rlm_core.training.student.network import Student, StudentConfig

SIZES = StudentConfig(vocabulary=64, width=16, layers=1, heads=2, hidden=24, context=32, head_hidden=16, slices=4)
BASES = ("call", "program")
# Few texts a basis, so that none comes several times an epoch.
CONFIG = EncoderFitConfig(
    epochs=2, tokens_per_batch=128, warmup_steps=1, texts_per_basis=dict.fromkeys(BASES, 8), compile=False
)


def make_trainer(task: EncoderData, out: Path, config: EncoderFitConfig = CONFIG) -> EncoderTrainer:
    torch.manual_seed(0)
    return EncoderTrainer(Student(SIZES), task, config, out)


def logged(out: Path, key: str) -> list[float]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [line[key] for line in lines if key in line]


def test_training_lowers_the_validation_loss(task: EncoderData, tmp_path: Path) -> None:
    make_trainer(task, tmp_path, EncoderFitConfig(epochs=12, tokens_per_batch=128, warmup_steps=1, compile=False)).run()
    losses = logged(tmp_path, "validation")
    assert len(losses) == 12
    assert min(losses[-3:]) < losses[0] - 0.3


def test_the_best_weights_are_kept(task: EncoderData, tmp_path: Path) -> None:
    trainer = make_trainer(task, tmp_path)
    trainer.run()
    assert trainer.best is not None
    assert trainer.best.loss == min(logged(tmp_path, "validation"))
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    weights = trainer.model.state_dict()
    # The prior's precision is not trained.
    assert weights.keys() - best.keys() == {"head.prior.precision"}
    assert all(torch.equal(weights[name], value) for name, value in best.items())


def test_only_training_rows_teach(task: EncoderData, tmp_path: Path) -> None:
    held = np.flatnonzero(task.split == "test")
    before = make_trainer(task, tmp_path)
    before.run()
    task.inputs.target[torch.from_numpy(held)] += 30
    (tmp_path / "other").mkdir()
    after = make_trainer(task, tmp_path / "other")
    after.run()
    assert all(torch.equal(a, b) for a, b in zip(before.model.parameters(), after.model.parameters(), strict=True))


def test_a_checkpoint_restores_everything(task: EncoderData, tmp_path: Path) -> None:
    trainer = make_trainer(task, tmp_path)
    trainer.run()
    again = make_trainer(task, tmp_path)
    assert again.resume()
    assert (again.epoch, again.batch, again.step, again.tokens, again.best) == (
        2,
        0,
        trainer.step,
        trainer.tokens,
        trainer.best,
    )
    assert torch.equal(again.bank.known, trainer.bank.known)
    torch.testing.assert_close(again.bank.vectors, trainer.bank.vectors, atol=1e-3, rtol=1e-3)


def test_padding_does_not_change_a_vector(task: EncoderData) -> None:
    torch.manual_seed(0)
    student = Student(SIZES)
    texts = np.arange(len(task.ids))
    bank = Bank(torch.zeros(len(texts), SIZES.width), torch.zeros(len(texts), dtype=torch.bool))
    encode_texts(student, task.ids, texts, bank)
    assert bank.known.all()
    student.eval()
    with torch.inference_mode():
        alone = torch.cat([student.encoder(torch.from_numpy(ids.astype(np.int64))[None]) for ids in task.ids])
    # The bank is filled in bfloat16.
    torch.testing.assert_close(bank.vectors, alone, atol=0.1, rtol=0.05)
