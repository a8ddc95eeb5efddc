"""The training loop: what it samples, what it learns from, and what it keeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from rlm_core.training.student.batches import Task
from rlm_core.training.student.config import LoopConfig
from rlm_core.training.student.encoder_fit import Bank, Loop, encode_texts
from rlm_core.training.student.network import Student, StudentConfig

SIZES = StudentConfig(vocabulary=64, width=16, layers=1, heads=2, hidden=24, context=32, head_hidden=16, slices=4)
BASES = ("call", "program")
# Few texts a basis, so that none comes several times an epoch.
CONFIG = LoopConfig(epochs=2, tokens_a_batch=128, warmup_steps=1, texts_a_basis=dict.fromkeys(BASES, 8), compile=False)


def make_loop(task: Task, out: Path, config: LoopConfig = CONFIG) -> Loop:
    torch.manual_seed(0)
    return Loop(Student(SIZES), task, config, out)


def logged(out: Path, key: str) -> list[float]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [line[key] for line in lines if key in line]


def test_training_lowers_the_validation_loss(task: Task, tmp_path: Path) -> None:
    make_loop(task, tmp_path, LoopConfig(epochs=12, tokens_a_batch=128, warmup_steps=1, compile=False)).run()
    losses = logged(tmp_path, "validation")
    assert len(losses) == 12
    assert min(losses[-3:]) < losses[0] - 0.3


def test_the_best_weights_are_kept(task: Task, tmp_path: Path) -> None:
    loop = make_loop(task, tmp_path)
    loop.run()
    assert loop.best == min(logged(tmp_path, "validation"))
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    assert all(torch.equal(value, best[name]) for name, value in loop.student.state_dict().items())


def test_only_training_rows_teach(task: Task, tmp_path: Path) -> None:
    held = np.flatnonzero(task.split == "test")
    before = make_loop(task, tmp_path)
    before.run()
    task.inputs.target[torch.from_numpy(held)] += 30
    (tmp_path / "other").mkdir()
    after = make_loop(task, tmp_path / "other")
    after.run()
    assert all(torch.equal(a, b) for a, b in zip(before.student.parameters(), after.student.parameters(), strict=True))


def test_a_new_loop_in_an_empty_folder_has_nothing_to_resume(task: Task, tmp_path: Path) -> None:
    assert not make_loop(task, tmp_path).resume()


def test_a_checkpoint_restores_everything(task: Task, tmp_path: Path) -> None:
    loop = make_loop(task, tmp_path)
    loop.run()
    again = make_loop(task, tmp_path)
    assert again.resume()
    assert (again.epoch, again.batch, again.step, again.tokens, again.best) == (2, 0, loop.step, loop.tokens, loop.best)
    assert torch.equal(again.bank.known, loop.bank.known)
    torch.testing.assert_close(again.bank.vectors, loop.bank.vectors, atol=1e-3, rtol=1e-3)


def test_a_broken_save_leaves_the_old_checkpoint(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = make_loop(task, tmp_path)
    loop.save()
    before = loop.checkpoint.read_bytes()

    def broken(state: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(OSError, match="disk full"):
        loop.save()
    assert loop.checkpoint.read_bytes() == before


def test_padding_does_not_change_a_vector(task: Task) -> None:
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
