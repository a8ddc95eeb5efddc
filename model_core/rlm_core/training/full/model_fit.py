"""The training loop of the full model, in one process or several (:mod:`.parallel`).

A run that was stopped goes on at the very step where it was: checkpoints hold the trained weights, the optimizers and
the place, and all random draws follow from the seed and the step.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from rlm_core.errors import DataError
from rlm_core.training.distributed import Processes, like, load_whole_state, whole, whole_state

from .model import FullModel
from .training_config import LoopConfig
from .training_data import Batch, Examples, Plan, share
from .validation import Validation, validate

LOG, BEST, CHECKPOINT, BOARD = "log.jsonl", "best.pt", "checkpoint.pt", "tensorboard"


class Loop:
    """Trains a model; ``run`` may be stopped at any time and called again on a loop made with the same folder.

    Attributes:
        epoch, batch, step: the place: epochs and batches of this epoch that are done, optimizer steps since the start.
        tokens, numbers: text tokens and numbers read.
        best: the best validation so far, of the weights in ``best.pt``; None before the first.
    """

    def __init__(
        self, model: FullModel, data: Examples, config: LoopConfig, out: Path, processes: Processes | None = None
    ) -> None:
        self.processes = processes or Processes()
        self.device = self.processes.device
        if self.processes.sharded and config.optimizer != "adamw":
            print(f"optimizer: adamw, since {config.optimizer} needs whole matrices, not shards", file=sys.stderr)
            config = replace(config, optimizer="adamw")
        self.model, self.data, self.config, self.out = model, data, config, out
        model.encoder.recompute(config.recompute)
        self._module, self._live = self.processes.prepare(model)
        self.optimizers = make_optimizers(self._live, config)
        self.plan = Plan(data, config)
        self.total = sum(-(-len(self.plan.batches(epoch)) // config.accumulation) for epoch in range(config.epochs))
        rows = data.rows_of("val")
        if len(rows) > config.validation_rows:
            rows = np.sort(np.random.default_rng(config.seed).choice(rows, config.validation_rows, replace=False))
        self.validation_rows = rows
        weights = config.position_weights or (1.0,) * model.config.numbers.positions
        self.weights = torch.tensor(weights, device=self.device)
        self.epoch = self.batch = self.step = self.tokens = self.numbers = 0
        self.best: Validation | None = None
        self._board: Any = None

    @property
    def autocast(self) -> torch.autocast:
        """Mixed precision, where it pays."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=bfloat16(self.config.precision, self.device))

    def save(self) -> None:
        """Write the checkpoint, atomically. It holds whole weights: any number of processes may go on."""
        best = self.best
        state = {
            "weights": self._weights(),
            "optimizers": [whole_state(optimizer) for optimizer in self.optimizers],
            "at": [self.epoch, self.batch, self.step, self.tokens, self.numbers],
            "best": [best.spearman, best.loss] if best is not None else None,
        }
        self._write(state, CHECKPOINT)

    def resume(self) -> bool:
        """Take up the checkpoint if there is one.

        Raises:
            DataError: it is of other optimizers, or some processes do not see it.
        """
        path = self.out / CHECKPOINT
        seen = int(self.processes.sum(torch.tensor(float(path.exists()), device=self.device)))
        if seen == 0:
            return False
        if seen < self.processes.world:
            raise DataError(
                f"{path}: only {seen} of {self.processes.world} processes see it; share --out among machines"
            )
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        if len(state["optimizers"]) != len(self.optimizers):
            raise DataError(f"{path}: of other optimizers; in shards (FSDP) all is AdamW: go on as the run began")
        _take(self._live, state["weights"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            load_whole_state(optimizer, saved)
        self.epoch, self.batch, self.step, self.tokens, self.numbers = state["at"]
        self.best = Validation(*state["best"]) if state["best"] is not None else None
        return True

    def run(self) -> None:
        """Train all epochs; the model holds the best weights by validation at the end, in evaluation mode."""
        self._board = _board(self.out / BOARD, self.step) if self.processes.main else None
        # `disable=None`: no bar where stderr is no terminal.
        with tqdm(desc="training", total=self.total, initial=self.step, unit="step", disable=None) as bar:
            while self.epoch < self.config.epochs:
                for loss in self._epoch():
                    bar.set_description(f"epoch {self.epoch + 1} loss {loss:.3f}", refresh=False)
                    bar.update(self.step - bar.n)
                self.epoch, self.batch = self.epoch + 1, 0
                self._validate()
                self.save()
        if self._board is not None:
            self._board.close()
        self.model.to(self.device).eval()
        if self.processes.main and (self.out / BEST).exists():
            _take(self.model, torch.load(self.out / BEST, map_location="cpu", weights_only=True))
        for weight in trained(self.model).values():
            self.processes.copy_from_main(weight)

    def _epoch(self) -> Iterator[float]:
        """Train the rest of an epoch, a step at a time; the loss of each."""
        config = self.config
        saved = logged = time.monotonic()
        seen = self.tokens
        batches = self.plan.batches(self.epoch)
        while self.batch < len(batches):
            self._module.train()
            numbers = range(self.batch, min(self.batch + config.accumulation, len(batches)))
            pad_id = self.model.encoder.pad_id
            parts = [self.plan.batch(batches[n], self.epoch, n, pad_id) for n in numbers]
            loss, norm, of_peak = self._step(parts)
            self.batch, self.step = numbers.stop, self.step + 1
            self.tokens += int(sum(len(self.data.texts[i]) for n in numbers for i in batches[n]))
            self.numbers += sum(part.numbers for part in parts)
            now = time.monotonic()
            if self.step % config.log_steps == 0:
                speed = round((self.tokens - seen) / max(now - logged, 1e-9))
                self._log(loss=loss, norm=norm, rate=config.learning_rate * of_peak, tokens_a_second=speed)
                logged, seen = now, self.tokens
            if config.validate_steps and self.step % config.validate_steps == 0 and self.batch < len(batches):
                self._validate()
            if self.processes.agree(now - saved >= 60 * config.checkpoint_minutes):
                self.save()
                saved = now
            yield loss

    def _step(self, parts: list[Batch]) -> tuple[float, float, float]:
        """One step on all numbers of some batches: mean loss in nats, norm of the gradient, share of the peak rates."""
        # Each process drops out other values.
        torch.manual_seed(self.config.seed * 1_000_003 + self.step + (self.processes.rank << 40))
        of_peak = set_rates(self.optimizers, self.config, self.step, self.total)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        count = sum(part.numbers for part in parts)
        total = torch.zeros((), device=self.device)
        mine = share(parts, self.processes)
        for number, part in enumerate(mine, 1):
            batch = part.to(self.device)
            with self.processes.accumulating(self._module, last=number == len(mine)):
                with self.autocast:
                    scores = self._module(batch.ids, batch.mask, batch.asks, batch.tokens)
                loss = -(scores * self.weights).sum() / count
                # Gradients of several processes are averaged.
                (loss * self.processes.world).backward()
            total += loss.detach()
        norm = whole(nn.utils.clip_grad_norm_(list(trained(self._live).values()), self.config.clip))
        for optimizer in self.optimizers:
            optimizer.step()
        return float(self.processes.sum(total)), float(norm), of_peak

    def _validate(self) -> None:
        """Log the validation, keep the weights if they are the best."""
        weights = self._weights()
        if self._live is not self.model:
            _take(self.model.to(self.device), weights)
        self.model.eval()
        budget = self.config.tokens_a_batch
        found = validate(self.model, self.data, self.validation_rows, self.autocast, budget, self.processes)
        if self._live is not self.model:
            self.model.cpu()
        self._log(validation=found.loss, spearman=found.spearman, epoch=self.epoch)
        if self.best is None or found.better_than(self.best):
            self.best = found
            self._write(weights, BEST)

    def _weights(self) -> dict[str, Tensor]:
        """What training has changed; neither a frozen base nor what is computed from the settings."""
        return {name: whole(weight.detach()) for name, weight in trained(self._live).items()}

    def _write(self, state: object, name: str) -> None:
        if self.processes.main:
            path = self.out / name
            partial = path.with_suffix(".partial")
            torch.save(state, partial)
            partial.replace(path)

    def _log(self, **values: float) -> None:
        if not self.processes.main:
            return
        line = {"step": self.step, "tokens": self.tokens, "time": round(time.time())}
        with (self.out / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, **values}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, self.step)


def bfloat16(precision: str, device: torch.device) -> bool:
    """Whether to multiply in bfloat16: as told, or where the device has instructions for it."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    able: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))


def _take(model: FullModel, weights: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, weight in trained(model).items():
            weight.copy_(like(weights[name], weight))


def _board(folder: Path, step: int) -> Any:
    """A TensorBoard log that goes on after ``step``; None where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        print(f"tensorboard is not installed: the log is {LOG} alone", file=sys.stderr)
        return None
    return SummaryWriter(folder, purge_step=step + 1)


def trained(model: FullModel) -> dict[str, nn.Parameter]:
    """The parameters that training changes, by name; a frozen or adapted base is not among them."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def make_optimizers(model: FullModel, config: LoopConfig) -> list[torch.optim.Optimizer]:
    """The optimizers of a run. Groups hold their highest rate as ``peak``.

    Muon (arXiv 2502.16982) takes the matrices inside of layers; adapters have too low a rank for it.
    """
    matrices: list[dict[str, object]] = []
    others: list[dict[str, object]] = []
    for in_encoder, factor in ((True, config.encoder_rate), (False, 1.0)):
        own = {name: w for name, w in trained(model).items() if name.startswith("encoder.") == in_encoder}
        inner = [w for name, w in own.items() if config.optimizer == "muon" and _is_matrix(name, w)]
        ids = {id(weight) for weight in inner}
        outer = [weight for weight in own.values() if id(weight) not in ids]
        for groups, weights, rate in (
            (matrices, inner, config.matrix_learning_rate),
            (others, outer, config.learning_rate),
        ):
            if weights:
                groups.append({"params": weights, "lr": rate * factor, "peak": rate * factor})
    found: list[torch.optim.Optimizer] = []
    if matrices:
        found.append(torch.optim.Muon(matrices, weight_decay=config.weight_decay, adjust_lr_fn="match_rms_adamw"))
    if others and config.optimizer == "adafactor":
        found.append(torch.optim.Adafactor(others, weight_decay=config.weight_decay))
    elif others:
        found.append(torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=config.weight_decay))
    return found


def _is_matrix(name: str, weight: nn.Parameter) -> bool:
    return weight.ndim == 2 and ".layers." in name and "lora_" not in name


def set_rates(optimizers: list[torch.optim.Optimizer], config: LoopConfig, step: int, total: int) -> float:
    """Set the rates of a step (0-based): linear warm-up, then a cosine; the share of the peak."""
    warm = min(1.0, (step + 1) / max(config.warmup_steps, 1))
    fall = 0.5 * (1 + math.cos(math.pi * min(1.0, step / max(total, 1))))
    share = warm * (config.final_rate + (1 - config.final_rate) * fall)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * share
    return share
