"""The trainer: rates, checkpoints, the best weights, and that a stopped run continues as if it had not been stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rlm_core.errors import DataError
from rlm_core.training.trainer import (
    RunSettings,
    StepResult,
    Trainer,
    Validation,
    make_optimizers,
    rate_share,
    set_rates,
    trained,
)
from torch import nn

SETTINGS = RunSettings(epochs=3, seed=0, warmup_steps=2, final_rate=0.1, log_steps=1, checkpoint_minutes=0)


class Line(nn.Module):
    """A line with dropout, and an offset that is not trained."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.slope, self.dropout = nn.Linear(4, 1), nn.Dropout(0.2)
        self.offset = nn.Parameter(torch.ones(1), requires_grad=False)


class LineTrainer(Trainer[Line, int, torch.Tensor]):
    """Fits the line to sums; ``seen`` is state of the trainer itself."""

    def __init__(self, out: Path, settings: RunSettings = SETTINGS, seed: int = 0) -> None:
        self.seen = 0
        out.mkdir(exist_ok=True)
        super().__init__(Line(seed), settings, out)

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        return make_optimizers([], [(list(trained(self.live).values()), 0.1)], 0.01)

    def items(self, epoch: int) -> Sequence[int]:
        return range(10 * epoch, 10 * epoch + 5)

    def load(self, item: int) -> torch.Tensor:
        return torch.randn(8, 4, generator=torch.Generator().manual_seed(item))

    def tokens_of(self, item: int) -> int:
        return 8

    def backward(self, batch: torch.Tensor) -> dict[str, float]:
        self.seen += len(batch)
        loss = (self.model.slope(self.model.dropout(batch))[:, 0] - batch.sum(1)).square().mean()
        loss.backward()
        return {"loss": float(loss.detach())}

    def validate(self) -> Validation:
        batch = self.load(1000)
        return Validation(float((self.model.slope(batch)[:, 0] - batch.sum(1)).square().mean().detach()))

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def load_state(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


def logged(out: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if name in line]


def test_training_lowers_the_loss_and_keeps_the_best_weights(tmp_path: Path) -> None:
    trainer = LineTrainer(tmp_path)
    trainer.run()
    assert (trainer.epoch, trainer.batch, trainer.step, trainer.tokens) == (3, 0, 15, 15 * 8)
    losses = logged(tmp_path, "validation")
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    assert trainer.best == Validation(min(losses))
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    assert best.keys() == {"slope.weight", "slope.bias"}
    assert all(torch.equal(weight, best[name]) for name, weight in trained(trainer.model).items())
    assert not trainer.model.training
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.parametrize("stop", [1, 5, 7, 14])
def test_a_stopped_run_continues_to_the_same_weights_and_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    straight = LineTrainer(tmp_path / "straight")
    straight.run()
    step = LineTrainer.take_step

    def stopping(self: LineTrainer, batch: torch.Tensor) -> StepResult:
        if self.step == stop:
            raise KeyboardInterrupt
        return step(self, batch)

    monkeypatch.setattr(LineTrainer, "take_step", stopping)
    with pytest.raises(KeyboardInterrupt):
        LineTrainer(tmp_path / "stopped").run()
    monkeypatch.undo()
    again = LineTrainer(tmp_path / "stopped", seed=5)
    assert again.resume()
    assert again.step == stop
    again.run()
    assert all(torch.equal(a, b) for a, b in zip(straight.model.parameters(), again.model.parameters(), strict=True))
    assert (again.step, again.tokens, again.seen, again.best) == (
        straight.step,
        straight.tokens,
        straight.seen,
        straight.best,
    )
    for name in ("loss", "norm", "rate", "validation"):
        assert logged(tmp_path / "straight", name) == logged(tmp_path / "stopped", name)


def test_there_is_nothing_to_resume_in_an_empty_folder(tmp_path: Path) -> None:
    assert not LineTrainer(tmp_path).resume()


def test_a_finished_run_resumes_to_its_best_weights_without_a_step(tmp_path: Path) -> None:
    first = LineTrainer(tmp_path)
    first.run()
    again = LineTrainer(tmp_path, seed=5)
    assert again.resume()
    again.run()
    assert again.step == first.step
    assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), again.model.parameters(), strict=True))


def test_the_checkpoint_of_another_version_is_refused(tmp_path: Path) -> None:
    trainer = LineTrainer(tmp_path)
    torch.save({"weights": {}, "at": [0, 0, 0]}, trainer.checkpoint)
    with pytest.raises(DataError, match=r"checkpoint\.pt: .* or by an earlier version; .*another directory"):
        trainer.resume()


def test_a_broken_save_leaves_the_previous_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = LineTrainer(tmp_path)
    trainer.save()
    before = trainer.checkpoint.read_bytes()

    def broken(state: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(DataError, match=r"checkpoint\.pt: cannot be written \(disk full\); free some space"):
        trainer.save()
    assert trainer.checkpoint.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.pt"]


def test_validation_within_an_epoch(tmp_path: Path) -> None:
    LineTrainer(tmp_path, replace(SETTINGS, epochs=1, validate_steps=2)).run()
    assert len(logged(tmp_path, "validation")) == 3


def test_rates_rise_and_fall() -> None:
    settings = replace(SETTINGS, warmup_steps=10)
    shares = [rate_share(settings, step, step / 100) for step in range(101)]
    assert shares[0] == pytest.approx(0.1)
    assert max(shares) == shares[9]
    assert shares[9:] == sorted(shares[9:], reverse=True)
    assert shares[-1] == pytest.approx(0.1)
    optimizers = make_optimizers([], [([nn.Parameter(torch.ones(2))], 0.3)], 0.0)
    set_rates(optimizers, shares[-1])
    assert optimizers[0].param_groups[0]["lr"] == pytest.approx(0.1 * 0.3)


def test_the_peak_is_a_share_of_the_given_rate() -> None:
    assert rate_share(replace(SETTINGS, warmup_steps=1, peak_rate=1.02, final_rate=0.02), 0, 0.0) == pytest.approx(1.02)


def test_ranking_decides_unless_the_losses_differ_clearly() -> None:
    assert Validation(2.0, 0.6).better_than(Validation(1.9, 0.5))
    assert not Validation(6.0, 0.9).better_than(Validation(3.0, 0.1))
    assert Validation(3.0, 0.1).better_than(Validation(6.0, 0.9))
    assert not Validation(2.0, 0.5).better_than(Validation(2.0, 0.5))


def test_without_a_ranking_the_lower_loss_is_better() -> None:
    assert Validation(1.9).better_than(Validation(2.0))
    assert not Validation(2.0).better_than(Validation(1.9))
    assert not Validation(2.0).better_than(Validation(2.0))
