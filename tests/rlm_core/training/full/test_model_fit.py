"""The training loop: what a batch holds, what learns, and that a stopped run goes on as if it had not been."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.model_fit import FullTrainer, bfloat16, full_optimizers
from rlm_core.training.full.training_config import ModelFitConfig
from rlm_core.training.full.training_data import Batch, Examples, Plan, examples
from rlm_core.training.trainer import StepResult, trained
from torch import nn

from tests.rlm_core.training.full.tiny import tiny_model

CONFIG = ModelFitConfig(
    epochs=2,
    tokens_per_batch=256,
    learning_rate=3e-3,
    warmup_steps=2,
    token_dropout=0.1,
    group_power=1.0,
    precision="float32",
    log_steps=1,
    checkpoint_minutes=0,
)


def model(seed: int = 0) -> FullModel:
    return tiny_model(seed=seed, sharpness=1.0, dropout=0.1)


@pytest.fixture(scope="module")
def corpus(data: Path) -> Corpus:
    return load_corpus([data], ("train", "val", "cal"))


@pytest.fixture(scope="module")
def found(corpus: Corpus) -> Examples:
    return examples(corpus, model(), 2)


def logged(out: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if name in line]


def test_each_distinct_text_is_read_once_with_what_it_calls(found: Examples, corpus: Corpus) -> None:
    rows = corpus.rows
    assert len(found.texts) == len(np.unique(rows.text))
    assert len(found.texts) == len(rows) // 2
    called = np.flatnonzero(rows.callees.max(axis=(1, 2)) >= 0)[0]
    alone = examples(corpus, model(), 0)
    assert len(found.texts[found.text[called]]) > len(alone.texts[alone.text[called]])


def test_values_at_the_floor_are_written_as_zero(found: Examples, corpus: Corpus) -> None:
    floored = corpus.rows.value == 64.0
    assert floored.any()
    assert (found.value[floored] == 0).all()
    assert (found.value[~floored] == corpus.rows.value[~floored]).all()


def test_an_epoch_reads_each_training_text_once_and_no_other(found: Examples) -> None:
    plan = Plan(found, CONFIG)
    read = np.concatenate(plan.batches(0))
    assert sorted(read.tolist()) == np.unique(found.text[found.rows_of("train")]).tolist()


def test_an_epoch_takes_the_root_of_a_group_in_turn_and_no_more_of_a_basis_than_its_share(found: Examples) -> None:
    corpus = replace(found.corpus, rows=replace(found.corpus.rows, group=np.full(len(found.text), "one")))
    plan = Plan(replace(found, corpus=corpus), replace(CONFIG, group_power=0.5))
    texts = len(np.unique(found.text[found.rows_of("train")]))
    epochs = [set(np.concatenate(plan.batches(epoch)).tolist()) for epoch in range(texts)]
    size = int(np.ceil(np.sqrt(texts)))
    assert {len(epoch) for epoch in epochs} == {size}
    assert not epochs[0] & epochs[1]
    assert len(set().union(*epochs)) == texts
    few = Plan(found, replace(CONFIG, texts_per_basis={"call": 5}))
    assert len(np.concatenate(few.batches(0))) == 5


def test_a_batch_holds_every_row_of_its_texts_once(found: Examples) -> None:
    plan = Plan(found, CONFIG)
    for number, texts in enumerate(plan.batches(0)):
        batch = plan.batch(texts, 0, number, 0)
        assert batch.numbers == int((batch.tokens[..., 0] != 0).sum()) == 2 * len(texts)
        assert int(batch.mask.sum(1).min()) > 0
        again = plan.batch(texts, 0, number, 0)
        assert torch.equal(batch.tokens, again.tokens)
        assert torch.equal(batch.mask, again.mask)


def test_both_metrics_come_first_and_alone_and_after_the_other(found: Examples) -> None:
    plan = Plan(found, replace(CONFIG, numbers_per_sequence=2))
    seen = set()
    for number, texts in enumerate(plan.batches(0)):
        batch = plan.batch(texts, 0, number, 0)
        written = batch.tokens[..., 0] != 0
        for names, there in zip(batch.queries.names.flatten(0, 1), written.flatten(0, 1), strict=True):
            seen.add(tuple(names[there, 0].tolist()))
    assert {(1,), (2,), (1, 2), (2, 1)} <= seen


def test_a_given_order_is_kept_and_skips_what_is_unknown(found: Examples) -> None:
    plan = Plan(found, replace(CONFIG, order="memory, latency", numbers_per_sequence=2))
    seen = set()
    for number, texts in enumerate(plan.batches(0)):
        batch = plan.batch(texts, 0, number, 0)
        written = batch.tokens[..., 0] != 0
        for names, there in zip(batch.queries.names.flatten(0, 1), written.flatten(0, 1), strict=True):
            seen.add(tuple(names[there, 0].tolist()))
    assert seen - {()} == {(1,), (2,), (2, 1)}


def test_training_lowers_the_loss_and_keeps_the_best_weights(found: Examples, tmp_path: Path) -> None:
    trainer = FullTrainer(model(), found, replace(CONFIG, epochs=6), tmp_path)
    trainer.run()
    losses = logged(tmp_path, "validation")
    assert losses[-1] < 0.7 * losses[0]
    assert trainer.best is not None
    assert trainer.best.loss in losses
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    assert all(torch.equal(weight, best[name]) for name, weight in trained(trainer.model).items())
    assert not trainer.model.training
    assert list((tmp_path / "tensorboard").glob("events*"))


class _StoppedError(Exception):
    pass


@pytest.mark.parametrize("optimizer", ["adamw", "adafactor", "muon"])
def test_a_stopped_run_goes_on_at_the_step_where_it_was(
    found: Examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str
) -> None:
    config = replace(CONFIG, optimizer=optimizer, accumulation=2)
    straight = FullTrainer(model(), found, config, tmp_path / "straight")
    (tmp_path / "straight").mkdir()
    straight.run()
    assert straight.step == straight.total > 6

    step = FullTrainer.take_step

    def stopping(self: FullTrainer, parts: list[Batch]) -> StepResult:
        if self.step == straight.total // 4 + 1:
            raise _StoppedError
        return step(self, parts)

    (tmp_path / "stopped").mkdir()
    monkeypatch.setattr(FullTrainer, "take_step", stopping)
    with pytest.raises(_StoppedError):
        FullTrainer(model(), found, config, tmp_path / "stopped").run()
    monkeypatch.setattr(FullTrainer, "take_step", step)
    again = FullTrainer(model(seed=5), found, config, tmp_path / "stopped")
    assert again.resume()
    assert again.step == straight.total // 4 + 1
    assert again.epoch == 0
    assert again.batch > 0
    again.run()
    for one, other in zip(straight.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert (again.step, again.tokens, again.numbers) == (straight.step, straight.tokens, straight.numbers)
    assert again.best == straight.best
    assert logged(tmp_path / "straight", "validation") == logged(tmp_path / "stopped", "validation")


def test_accumulated_batches_make_the_step_of_one_large_batch(found: Examples, tmp_path: Path) -> None:
    config = replace(CONFIG, token_dropout=0.0)
    plan = Plan(found, config)
    parts = [plan.batch(texts, 0, number, 0) for number, texts in enumerate(plan.batches(0)[:3])]
    texts = np.concatenate(plan.batches(0)[:3])
    rows = [[np.array([row]) for row in np.flatnonzero(found.text == text)] for text in texts]
    alone = [found.grid(texts[i : i + 1], rows[i : i + 1], 0) for i in range(len(texts))]
    whole = found.grid(texts, rows, 0)
    assert sum(part.numbers for part in parts) == whole.numbers
    gradients = []
    for batches in (alone, [whole]):
        trainer = FullTrainer(tiny_model(sharpness=1.0), found, replace(config, clip=1e9), tmp_path)
        trainer.take_step(batches)
        gradients.append([weight.grad for weight in trained(trainer.model).values() if weight.grad is not None])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_gradient_checkpointing_changes_no_gradient(found: Examples, tmp_path: Path) -> None:
    plan = Plan(found, CONFIG)
    part = plan.batch(plan.batches(0)[0], 0, 0, 0)
    gradients = []
    for recompute in (False, True):
        trainer = FullTrainer(tiny_model(), found, replace(CONFIG, recompute=recompute), tmp_path)
        trainer.take_step([part])
        gradients.append([weight.grad for weight in trained(trainer.model).values() if weight.grad is not None])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_compiled_layers_and_their_padding_change_no_gradient(
    found: Examples, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = nn.Module.compile

    def traced(self: nn.Module, **options: Any) -> None:
        # One graph, whose kernels are PyTorch's own: making others takes a minute.
        compiled(self, backend="aot_eager", fullgraph=True, **options)

    monkeypatch.setattr(nn.Module, "compile", traced)
    gradients, lengths = [], []
    for way in (False, True):
        trainer = FullTrainer(tiny_model(), found, replace(CONFIG, compile=way), tmp_path)
        batch = trainer.load(trainer.items(0)[0])
        lengths.append(batch[0].ids.shape[1])
        trainer.take_step(batch)
        gradients.append([weight.grad for weight in trained(trainer.model).values() if weight.grad is not None])
    assert lengths[1] == -(-lengths[0] // 16) * 16 > lengths[0]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


def test_position_weights_choose_what_is_learnt(found: Examples, tmp_path: Path) -> None:
    one = tiny_model()
    weights = (1.0, *(0.0,) * (one.config.numbers.positions - 1))
    trainer = FullTrainer(one, found, replace(CONFIG, position_weights=weights), tmp_path)
    part = trainer.plan.batch(trainer.plan.batches(0)[0], 0, 0, 0)
    with torch.no_grad():
        one.train()
        torch.manual_seed(0)
        scores = one(part.ids, part.mask, part.queries, part.tokens)
    loss = trainer.take_step([part]).figures["loss"]
    assert loss == pytest.approx(float(-scores[..., 0].sum() / part.numbers), rel=1e-5)


def test_what_is_frozen_is_neither_changed_nor_saved(found: Examples, tmp_path: Path) -> None:
    one = model()
    one.encoder.requires_grad_(False)
    before = {name: weight.clone() for name, weight in one.encoder.named_parameters()}
    trainer = FullTrainer(one, found, CONFIG, tmp_path)
    trainer.run()
    assert all(torch.equal(weight, before[name]) for name, weight in one.encoder.named_parameters())
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["weights"]
    assert saved
    assert not [name for name in saved if name.startswith("encoder.")]


def test_muon_takes_the_matrices_of_layers_and_the_encoder_has_its_own_pace() -> None:
    one = model()
    config = replace(CONFIG, optimizer="muon", encoder_rate=0.1, matrix_learning_rate=0.5)
    optimizers = full_optimizers(one, config)
    assert [type(optimizer).__name__ for optimizer in optimizers] == ["Muon", "AdamW"]
    rates = [[group["peak"] for group in optimizer.param_groups] for optimizer in optimizers]
    np.testing.assert_allclose(rates, [[0.05, 0.5], [3e-4, 3e-3]])
    held = sum(len(group["params"]) for optimizer in optimizers for group in optimizer.param_groups)
    assert held == len(trained(one))
    assert all(weight.ndim == 2 for group in optimizers[0].param_groups for weight in group["params"])


def test_bfloat16_is_used_as_configured() -> None:
    cpu = torch.device("cpu")
    assert bfloat16("bfloat16", cpu)
    assert not bfloat16("float32", cpu)
    assert isinstance(bfloat16("auto", cpu), bool)


def test_a_step_in_bfloat16_is_near_one_in_float32(found: Examples, tmp_path: Path) -> None:
    losses = []
    for precision in ("float32", "bfloat16"):
        trainer = FullTrainer(tiny_model(sharpness=1.0), found, replace(CONFIG, precision=precision), tmp_path)
        part = trainer.plan.batch(trainer.plan.batches(0)[0], 0, 0, 0)
        losses.append(trainer.take_step([part]).figures["loss"])
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
