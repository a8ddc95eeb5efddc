"""The training loop of the student: encoder and head together, callees from a bank of earlier encodings.

A callee's vector enters the head as it was last encoded (no gradient flows into it), so a caller costs one encoding in
training too. Checkpoints hold everything; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from rlm_core.inference.tokenizer import Ids

from .batches import HeadInputs, Sampler, Task, Teacher, pad, pool_callees, soft_targets, token_batches
from .config import LoopConfig
from .network import Encoder, Student

UNKNOWN = 1  # the tokenizer's unknown id stands for dropped tokens


@dataclass(slots=True)
class Bank:
    """The latest vector of every text, ``(texts, width)``, and whether it has one."""

    vectors: Tensor
    known: Tensor


def encode_texts(
    student: Student, ids: list[Ids], chosen: npt.NDArray[np.int64], bank: Bank, budget: int = 32768
) -> int:
    """Fill the bank with the encodings of texts; the number of tokens read."""
    student.encoder.eval()
    lengths = np.array([len(ids[i]) for i in chosen])
    with torch.inference_mode(), autocast(bank.vectors.device):
        for batch in token_batches(lengths, budget) if len(chosen) else ():
            texts = chosen[batch]
            tokens, mask = pad([ids[i] for i in texts])
            vectors = student.encoder(tokens.to(bank.vectors.device), mask.to(bank.vectors.device))
            index = torch.from_numpy(texts).to(bank.vectors.device)
            bank.vectors[index] = vectors.float()
            bank.known[index] = True
    student.encoder.train()
    return int(lengths.sum())


def head_logits(student: Student, inputs: HeadInputs, vectors: Tensor, bank: Bank) -> Tensor:
    """The deep part's logits for rows whose units have the given vectors, ``(rows, outcomes)``."""
    device = bank.vectors.device
    callees, counts = pool_callees(bank.vectors, bank.known, inputs.callees.to(device))
    logits: Tensor = student.head.deep(
        vectors, callees, counts, inputs.slice.to(device), inputs.date.to(device), inputs.query.to(device)
    )
    return logits


def loss_of(logits: Tensor, inputs: HeadInputs, sigma: float, teacher: Teacher | None = None) -> Tensor:
    """Mean cross-entropy against the soft targets, mixed with a teacher's where there is one, in nats."""
    target = soft_targets(inputs.target, logits.shape[1], sigma)
    if teacher is not None:
        target = torch.lerp(target, teacher.targets.float(), teacher.weight[:, None])
    target = target.to(logits.device)
    return -(target * F.log_softmax(logits.float(), dim=1)).sum(1).mean()


def autocast(device: torch.device) -> torch.autocast:
    """Mixed precision for a training step."""
    return torch.autocast(device.type, dtype=torch.bfloat16)


def optimizers(
    model: nn.Module, encoder: Encoder, matrix_rate: float, rate: float, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """Muon for the encoder's matrices, AdamW for everything else of ``model``."""
    matrices = [p for p in encoder.layers.parameters() if p.ndim == 2]
    ids = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in ids]
    return [
        torch.optim.Muon(matrices, lr=matrix_rate, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=weight_decay),
    ]


class Loop:
    """Trains a student; ``run`` may be stopped at any time and called again on a loop made with the same folder."""

    def __init__(self, student: Student, task: Task, config: LoopConfig, out: Path) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.student, self.task, self.config, self.out = student.to(self.device), task, config, out
        width = student.config.width
        self.bank = Bank(
            torch.zeros(len(task.ids), width, device=self.device),
            torch.zeros(len(task.ids), dtype=torch.bool, device=self.device),
        )
        self.optimizers = optimizers(
            student, student.encoder, config.matrix_learning_rate, config.learning_rate, config.weight_decay
        )
        # The compiled encoder shares the student's weights; lengths vary, so shapes are dynamic.
        self.encode = torch.compile(student.encoder, dynamic=True) if config.compile else student.encoder
        self.sampler = Sampler(task, config)
        self.epoch = self.batch = self.step = self.tokens = 0
        self.best = math.inf
        self.rng = np.random.default_rng()  # of the current epoch
        self.interrupted: dict[str, Any] | None = None  # the random states of an epoch that goes on
        first = self.sampler.sample(0)
        lengths = self.sampler.lengths[first]
        self.steps_an_epoch = sum(1 for _ in token_batches(lengths, config.tokens_a_batch))
        self.rows_a_batch = sum(len(self.sampler.rows_of[i]) for i in first) / self.steps_an_epoch

    @property
    def checkpoint(self) -> Path:
        """Where the state of an unfinished run is kept."""
        return self.out / "checkpoint.pt"

    def save(self) -> None:
        """Write the checkpoint, atomically."""
        state = {
            "student": self.student.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "bank": {"vectors": self.bank.vectors.half(), "known": self.bank.known},
            "at": [self.epoch, self.batch, self.step, self.tokens],
            "best": self.best,
            "random": _random_states(self.rng, self.device),
        }
        partial = self.checkpoint.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self.checkpoint)

    def resume(self) -> bool:
        """Take up the checkpoint if there is one."""
        if not self.checkpoint.exists():
            return False
        state: dict[str, Any] = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        self.student.load_state_dict(state["student"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.bank = Bank(state["bank"]["vectors"].float(), state["bank"]["known"])
        self.epoch, self.batch, self.step, self.tokens = state["at"]
        self.best = state["best"]
        self.interrupted = state.get("random")
        return True

    def run(self) -> None:
        """Train all epochs; the student holds the best weights by validation loss at the end."""
        total = self.steps_an_epoch * self.config.epochs
        self._log(steps_an_epoch=self.steps_an_epoch, rows_a_batch=round(self.rows_a_batch, 1))
        # `disable=None`: no bar where stderr is no terminal.
        with tqdm(desc="training", total=total, initial=min(self.step, total), unit="step", disable=None) as bar:
            while self.epoch < self.config.epochs:
                for loss in self._epoch(total):
                    bar.set_description(f"epoch {self.epoch + 1} loss {loss:.3f}", refresh=False)
                    bar.update(min(self.step, total) - bar.n)
                self.epoch, self.batch = self.epoch + 1, 0
                self._validate()
                self.save()
        best = self.out / "best.pt"
        if best.exists():
            self.student.load_state_dict(torch.load(best, map_location=self.device, weights_only=True))

    def _epoch(self, total: int) -> Any:
        self.rng = rng = np.random.default_rng((self.config.seed, self.epoch))
        torch.manual_seed(self.config.seed * 1000 + self.epoch)
        saved = logged = time.monotonic()
        seen = 0
        smooth = math.nan
        self.student.train()
        rows_of, lengths, texts = self.sampler.rows_of, self.sampler.lengths, self.sampler.texts
        sample = self.sampler.sample(self.epoch)
        for number, places in enumerate(token_batches(lengths[sample], self.config.tokens_a_batch, rng)):
            batch = sample[places]
            if number < self.batch:
                continue
            if number and self.interrupted is not None:
                _restore_random_states(self.interrupted, rng, self.device)
            self.interrupted = None
            loss = self._step(texts[batch], [rows_of[i] for i in batch], total, rng)
            share = 0.05 * sum(len(rows_of[i]) for i in batch) / self.rows_a_batch
            smooth = loss if math.isnan(smooth) else (smooth + share * loss) / (1 + share)
            self.batch, self.step = number + 1, self.step + 1
            count = int(lengths[batch].sum())
            self.tokens, seen = self.tokens + count, seen + count
            now = time.monotonic()
            if now - logged > 20:
                self._log(loss=smooth, tokens_a_second=round(seen / (now - logged)))
                logged, seen = now, 0
            if now - saved > 60 * self.config.checkpoint_minutes:
                self.save()
                saved = now
            yield smooth

    def _step(
        self, texts: npt.NDArray[np.int64], rows: list[npt.NDArray[np.int64]], total: int, rng: np.random.Generator
    ) -> float:
        config = self.config
        warm = min(1.0, (self.step + 1) / config.warmup_steps)
        decay = 0.5 * (1 + math.cos(math.pi * min(1.0, self.step / total))) + 0.005
        for optimizer, peak in zip(self.optimizers, (config.matrix_learning_rate, config.learning_rate), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * warm * decay
        tokens, mask = pad([self.task.ids[i] for i in texts])
        dropped = (torch.rand(tokens.shape) < config.token_dropout) & mask
        dropped[:, 0] = False  # the language
        tokens = torch.where(dropped, UNKNOWN, tokens)
        chosen = [rng.choice(r, config.rows_a_text, replace=False) if len(r) > config.rows_a_text else r for r in rows]
        owner = torch.from_numpy(np.repeat(np.arange(len(texts)), [len(r) for r in chosen])).to(self.device)
        picked = torch.from_numpy(np.concatenate(chosen))
        inputs = self.task.inputs.rows(picked)
        teacher = self.task.teacher.rows(picked) if self.task.teacher is not None else None
        with autocast(self.device):
            vectors = self.encode(tokens.to(self.device), mask.to(self.device))
            logits = head_logits(self.student, inputs, vectors[owner], self.bank)
        loss = loss_of(logits, inputs, config.label_sigma, teacher)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        # Batches of long texts hold few rows: weigh by rows, so that each row counts the same.
        (loss * (len(inputs.text) / self.rows_a_batch)).backward()
        nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        index = torch.from_numpy(texts).to(self.device)
        self.bank.vectors[index] = vectors.detach().float()
        self.bank.known[index] = True
        return float(loss.detach())

    def _validate(self) -> None:
        """Encode what the split and the callees need, log the validation loss, keep the best weights."""
        inputs = self.task.inputs
        # The training rows' callees are for the next epoch; after the last one there is none.
        splits = ("train", "val") if self.epoch < self.config.epochs else ("val",)
        used = np.unique(inputs.callees[torch.from_numpy(self.split_rows(*splits))].numpy())
        stale = used[(used >= 0) & ~np.isin(used, self.sampler.texts)]
        encode_texts(self.student, self.task.ids, np.union1d(stale, self.task.texts_of("val")), self.bank)
        rows = inputs.rows(torch.from_numpy(self.split_rows("val")))
        self.student.eval()
        with torch.inference_mode(), autocast(self.device):
            logits = head_logits(self.student, rows, self.bank.vectors[rows.text.to(self.device)], self.bank).float()
        self.student.train()
        loss = float(loss_of(logits, rows, self.config.label_sigma))
        self._log(validation=loss, epoch=self.epoch)
        if loss < self.best:
            self.best = loss
            torch.save(self.student.state_dict(), self.out / "best.pt")

    def split_rows(self, *splits: str) -> npt.NDArray[np.int64]:
        """The rows of some splits."""
        return np.flatnonzero(np.isin(self.task.split, splits))

    def _log(self, **values: float) -> None:
        line = {"step": self.step, "tokens": self.tokens, "time": round(time.time())}
        with (self.out / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, **values}) + "\n")


def _random_states(rng: np.random.Generator, device: torch.device) -> dict[str, Any]:
    """What makes an epoch that goes on draw the numbers that it would have drawn."""
    states: dict[str, Any] = {"numpy": json.dumps(rng.bit_generator.state), "torch": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def _restore_random_states(states: dict[str, Any], rng: np.random.Generator, device: torch.device) -> None:
    rng.bit_generator.state = json.loads(states["numpy"])
    torch.set_rng_state(states["torch"].cpu())
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)
