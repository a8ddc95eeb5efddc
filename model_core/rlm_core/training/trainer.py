"""The trainer of every network: student encoder, pretraining and full model supply batches, losses and validation.

It owns epochs and steps, the learning rate schedule, gradient clipping, checkpoints, the log, TensorBoard and the best
weights, in one process or several (:mod:`.distributed`). A run that was stopped continues bit for bit: a checkpoint
holds weights, optimizers and position, and all random draws depend only on the seed and the position.
"""

from __future__ import annotations

import json
import math
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from tqdm import tqdm

from rlm_core.errors import DataError
from rlm_core.files import atomic_write

from .distributed import Processes, like, load_whole_state, whole, whole_state

BOARD = "tensorboard"
_CLEARLY = 0.5  # nats; a larger difference in loss decides before any ranking does

Model = TypeVar("Model", bound=nn.Module)
Item = TypeVar("Item")
Batch = TypeVar("Batch")
Groups = Sequence[tuple[Sequence[nn.Parameter], float]]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings that all training runs share.

    Attributes:
        epochs: passes over the data; a subclass may end a run by another rule (:attr:`Trainer.progress`).
        seed: of all random draws.
        warmup_steps: steps over which the learning rates rise linearly from zero.
        peak_rate, final_rate: highest and lowest point of the cosine that follows, as shares of the given rates.
        clip: largest norm of the gradient.
        log_steps: steps between two lines of the log.
        validate_steps: steps between two validations within an epoch; 0: only at its end.
        checkpoint_minutes: minutes between two checkpoints within an epoch.
    """

    epochs: int
    seed: int
    warmup_steps: int
    final_rate: float
    peak_rate: float = 1.0
    clip: float = 1.0
    log_steps: int = 20
    validate_steps: int = 0
    checkpoint_minutes: float = 4.0


@dataclass(frozen=True, slots=True)
class Validation:
    """The quality of a model on held-out rows.

    Attributes:
        loss: mean loss of a row, in nats.
        spearman: mean rank correlation of predicted and measured values over tasks; None where it is not measured.
    """

    loss: float
    spearman: float | None = None

    def better_than(self, other: Validation) -> bool:
        """Return whether it ranks better, or as well with a lower loss.

        A loss that is lower by half a nat outweighs any ranking: early weights rank by chance.
        """
        if abs(self.loss - other.loss) > _CLEARLY:
            return self.loss < other.loss
        return (self.spearman or 0.0, -self.loss) > (other.spearman or 0.0, -other.loss)


@dataclass(frozen=True, slots=True)
class StepResult:
    """One optimizer step: the figures of :meth:`Trainer.backward` and the norm of the gradient before clipping."""

    figures: dict[str, float]
    norm: float


class Trainer(ABC, Generic[Model, Item, Batch]):
    """Trains a model. ``run`` may be stopped at any time; ``resume`` on a new trainer with the same folder continues.

    Args:
        model: trained in place; holds the best weights at the end of :meth:`run`.
        settings: of the run.
        out: the folder of checkpoint, best weights and log.
        processes: those that train together; None for a single process.

    Attributes:
        module: what to call in training: ``model``, or its wrapper for several processes.
        live: the model that holds the trained weights: ``model``, or its sharded copy.
        epoch, batch, step: the position: finished epochs, finished batches of this epoch, optimizer steps so far.
        tokens: text tokens read.
        best: the best validation so far, with its weights in ``best_file``; None before the first.
    """

    title, unit = "training", "step"
    log_file, best_file, checkpoint_file = "log.jsonl", "best.pt", "checkpoint.pt"
    board = False  # whether the log also goes to TensorBoard

    def __init__(self, model: Model, settings: RunSettings, out: Path, processes: Processes | None = None) -> None:
        self.processes = processes or Processes()
        self.device = self.processes.device
        self.model, self.settings, self.out = model, settings, out
        self.module, self.live = self.processes.prepare(model)
        self.optimizers = self.make_optimizers()
        self.epoch = self.batch = self.step = self.tokens = 0
        self.best: Validation | None = None
        self._board: Any = None

    @abstractmethod
    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        """The optimizers of ``live``, see :func:`make_optimizers`."""

    @abstractmethod
    def items(self, epoch: int) -> Sequence[Item]:
        """Return the items that the steps of an epoch read, in order; the same for the same epoch."""

    @abstractmethod
    def load(self, item: Item) -> Batch:
        """The batch of an item at the current position."""

    @abstractmethod
    def tokens_of(self, item: Item) -> int:
        """The text tokens of an item."""

    @abstractmethod
    def backward(self, batch: Batch) -> dict[str, float]:
        """Compute the loss of a batch and the gradients; returns figures for the log, among them ``loss``."""

    def validate(self) -> Validation | None:
        """Score ``model``, which is in evaluation mode; None for a model without held-out rows."""
        return None

    def state(self) -> dict[str, Any]:
        """Return the tensors and plain values that a checkpoint holds besides weights, optimizers and position."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""

    @property
    def progress(self) -> tuple[int, int]:
        """The finished part of the run and the whole, by default in steps."""
        return self.step, self.total

    @cached_property
    def total(self) -> int:
        """Steps of all epochs."""
        return sum(len(self.items(epoch)) for epoch in range(self.settings.epochs))

    @property
    def checkpoint(self) -> Path:
        """The file with the state of an unfinished run."""
        return self.out / self.checkpoint_file

    def run(self) -> None:
        """Train to the end; ``model`` then holds the best weights and is in evaluation mode."""
        if self.board and self.processes.main:
            self._board = _tensorboard(self.out / BOARD, self.step, self.log_file)
        done, total = self.progress
        # `disable=None`: no progress bar where stderr is not a terminal.
        scale = self.unit != "step"
        with tqdm(desc=self.title, total=total, initial=done, unit=self.unit, unit_scale=scale, disable=None) as bar:
            while self._unfinished():
                self._epoch(bar)
        if self._board is not None:
            self._board.close()
        self.model.to(self.device).eval()
        best = self.out / self.best_file
        if self.best is not None and self.processes.main and best.exists():
            _load(self.model, torch.load(best, map_location="cpu", weights_only=True))
        for weight in trained(self.model).values():
            self.processes.copy_from_main(weight)

    def take_step(self, batch: Batch) -> StepResult:
        """One optimizer step."""
        # Each process drops out other values.
        torch.manual_seed(self.settings.seed * 1_000_003 + self.step + (self.processes.rank << 40))
        done, total = self.progress
        set_rates(self.optimizers, rate_share(self.settings, self.step, done / max(total, 1)))
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        figures = self.backward(batch)
        norm = whole(nn.utils.clip_grad_norm_(list(trained(self.live).values()), self.settings.clip))
        for optimizer in self.optimizers:
            optimizer.step()
        return StepResult(figures, float(norm))

    def save(self) -> None:
        """Write the checkpoint. It holds whole weights, so a run may continue with any number of processes."""
        state = {
            "weights": self._weights(),
            "optimizers": [whole_state(optimizer) for optimizer in self.optimizers],
            "at": [self.epoch, self.batch, self.step, self.tokens],
            "best": [self.best.loss, self.best.spearman] if self.best is not None else None,
            "state": self.state(),
        }
        self._write(state, self.checkpoint_file)

    def resume(self) -> bool:
        """Restore the checkpoint; False if there is none.

        Raises:
            DataError: it was written with other optimizers, or some processes cannot see it.
        """
        path, processes = self.checkpoint, self.processes
        visible = int(processes.sum(torch.tensor(float(path.exists()), device=self.device)))
        if visible == 0:
            return False
        if visible < processes.world:
            raise DataError(f"{path}: only {visible} of {processes.world} processes see it; share --out among machines")
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if len(state.get("optimizers", ())) != len(self.optimizers) or "state" not in state:
            raise DataError(
                f"{path}: written with other optimizers (with FSDP, all is AdamW) or by an earlier version;"
                " resume as the run began, or start again in another directory"
            )
        _load(self.live, state["weights"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            load_whole_state(optimizer, saved)
        self.epoch, self.batch, self.step, self.tokens = state["at"]
        self.best = Validation(*state["best"]) if state["best"] is not None else None
        self.load_state(state["state"])
        return True

    def log(self, **values: float) -> None:
        """Append a line to the log; only the main process writes."""
        if not self.processes.main:
            return
        line = {"step": self.step, "tokens": self.tokens, "time": round(time.time())}
        with (self.out / self.log_file).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, **values}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, self.step)

    def _unfinished(self) -> bool:
        done, total = self.progress
        return done < total

    def _epoch(self, bar: Any) -> None:
        """Train the rest of an epoch, or of the run if that ends first."""
        settings, items = self.settings, self.items(self.epoch)
        saved = logged = time.monotonic()
        seen = self.tokens
        while self.batch < len(items) and self._unfinished():
            self.module.train()
            item = items[self.batch]
            result = self.take_step(self.load(item))
            self.batch, self.step, self.tokens = self.batch + 1, self.step + 1, self.tokens + self.tokens_of(item)
            bar.set_description(f"epoch {self.epoch + 1} loss {result.figures['loss']:.3f}", refresh=False)
            bar.update(self.progress[0] - bar.n)
            now = time.monotonic()
            if self.step % settings.log_steps == 0:
                rate = self.optimizers[-1].param_groups[-1]["lr"]
                speed = round((self.tokens - seen) / max(now - logged, 1e-9))
                self.log(**result.figures, norm=result.norm, rate=rate, tokens_per_second=speed)
                logged, seen = now, self.tokens
            if settings.validate_steps and self.step % settings.validate_steps == 0 and self.batch < len(items):
                self._validate()
            if self.processes.agree(now - saved >= 60 * settings.checkpoint_minutes):
                self.save()
                saved = now
        if self.batch == len(items):
            self.epoch, self.batch = self.epoch + 1, 0
            self._validate()
        self.save()

    def _validate(self) -> None:
        """Log the validation; keep the weights if they are the best."""
        weights = self._weights()
        if self.live is not self.model:
            _load(self.model.to(self.device), weights)
        self.model.eval()
        result = self.validate()
        if self.live is not self.model:
            self.model.cpu()
        if result is None:
            return
        ranking = {} if result.spearman is None else {"spearman": result.spearman}
        self.log(validation=result.loss, **ranking, epoch=self.epoch)
        if self.best is None or result.better_than(self.best):
            self.best = result
            self._write(weights, self.best_file)

    def _weights(self) -> dict[str, Tensor]:
        return {name: whole(weight.detach()) for name, weight in trained(self.live).items()}

    def _write(self, state: object, name: str) -> None:
        if self.processes.main:
            try:
                with atomic_write(self.out / name) as partial:
                    torch.save(state, partial)
            except (OSError, RuntimeError) as error:  # torch's writer raises the latter where the disk is full
                reason = (
                    (error.strerror or error)
                    if isinstance(error, OSError)
                    else "torch stopped writing; is the disk full?"
                )
                raise DataError(
                    f"{self.out / name}: cannot be written ({reason}); free some space, then continue with --resume"
                ) from None


def trained(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that training changes, by name; those of a frozen or adapted base are not among them."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def make_optimizers(
    matrices: Groups, others: Groups, weight_decay: float, *, adafactor: bool = False
) -> list[torch.optim.Optimizer]:
    """Muon (arXiv 2502.16982) for matrices inside layers, and AdamW or Adafactor for the other weights.

    Args:
        matrices: weights for Muon with their learning rate, which each group keeps as ``peak``; may be empty.
        others: the same for all other weights.
        weight_decay: of all weights.
        adafactor: use Adafactor instead of AdamW.
    """

    def groups(pairs: Groups) -> list[dict[str, Any]]:
        return [{"params": list(weights), "lr": rate, "peak": rate} for weights, rate in pairs if len(weights)]

    optimizers: list[torch.optim.Optimizer] = []
    if inner := groups(matrices):
        optimizers.append(torch.optim.Muon(inner, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"))
    if outer := groups(others):
        # One kernel for all weights; on a CPU, PyTorch's own choice.
        fused = True if all(weight.is_cuda for group in outer for weight in group["params"]) else None
        optimizers.append(
            torch.optim.Adafactor(outer, weight_decay=weight_decay)
            if adafactor
            else torch.optim.AdamW(outer, betas=(0.9, 0.98), weight_decay=weight_decay, fused=fused)
        )
    return optimizers


def rate_share(settings: RunSettings, step: int, progress: float) -> float:
    """Learning rates as a share of their peak: a linear warm-up times a cosine.

    Args:
        settings: of the run.
        step: 0-based.
        progress: share of the run that is done, 0..1.
    """
    warm = min(1.0, (step + 1) / max(settings.warmup_steps, 1))
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return warm * (settings.final_rate + (settings.peak_rate - settings.final_rate) * cosine)


def set_rates(optimizers: Sequence[torch.optim.Optimizer], share: float) -> None:
    """Set every learning rate to a share of its peak."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * share


def _load(model: nn.Module, weights: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, weight in trained(model).items():
            weight.copy_(like(weights[name], weight))


def _tensorboard(folder: Path, step: int, log: str) -> Any:
    """A TensorBoard writer that continues after ``step``; None where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        print(f"TensorBoard is not installed; the log is in {log} only", file=sys.stderr)
        return None
    return SummaryWriter(folder, purge_step=step + 1)
