"""Training of the full model, in one process or several: batches of sequences of numbers, their loss, validation.

The rows of a split are predicted for validation during a run, and for calibration at its end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from rlm_core.training.distributed import Processes
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.training.trainer import RunSettings, Trainer, Validation, make_optimizers, trained

from .decoding import distribution, log_prob, quantiles
from .encoders.base import encode
from .model import FullModel, TextMemory
from .sequences import Slot
from .training_config import ModelFitConfig
from .training_data import Batch, Examples, Ids, Plan, share

Array = npt.NDArray[np.float64]
_CHUNK = 64  # texts whose vectors are held at once
_FEWEST = 3  # rows of a task that can be ranked
_MEDIAN = 0.5
Numbered = Sequence[tuple[int, Ids]]
# Compiled layers read lengths that are multiples of this: masks of other lengths are not aligned for the GPU's kernels.
_MULTIPLE = 16


def validate(
    model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int, processes: Processes
) -> Validation:
    """Score a model, which is in evaluation mode, on rows, each without the other numbers of its text."""
    answers = processes.spread(rows, data.text[rows], lambda own: _answers(model, data, own, autocast, budget))
    medians, losses = answers.T
    slices = data.corpus.rows.task[rows]
    each = [
        spearman(medians[mine], data.value[rows[mine]]) or 0.0
        for mine in (np.flatnonzero(slices == number) for number in np.unique(slices))
        if len(mine) >= _FEWEST
    ]
    return Validation(float(losses.mean()), float(np.mean(each)) if each else 0.0)


def _answers(model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int) -> Array:
    """Medians and losses of rows, ``(rows, 2)``."""
    answers = np.empty((len(rows), 2))
    for places, memories in _encoded(model, data, rows, autocast, budget):
        queries = [[data.queries[data.query[rows[place]]] for place in own] for own in places]
        found = quantiles(model, memories, [[[Slot(query)] for query in own] for own in queries], (_MEDIAN,))
        values = [[float(data.value[rows[place]]) for place in own] for own in places]
        slots = [[[Slot(query, x)] for query, x in zip(*own, strict=True)] for own in zip(queries, values, strict=True)]
        scored = log_prob(model, memories, slots)
        for own, medians, scores in zip(places, found, scored, strict=True):
            answers[own, 0] = [one.smooth[0] for one in medians]
            answers[own, 1] = [-score[0] for score in scores]
    return answers


def medians(model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int) -> Array:
    """The medians of rows in SI units, ``(rows,)``; 0 for all at or below the floor."""
    found = np.empty(len(rows))
    for places, memories in _encoded(model, data, rows, autocast, budget):
        queries = [[[Slot(data.queries[data.query[rows[place]]])] for place in own] for own in places]
        for own, answers in zip(places, quantiles(model, memories, queries, (_MEDIAN,)), strict=True):
            found[own] = [answer.smooth[0] for answer in answers]
    return found


def scores(model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int) -> Array:
    """Nonconformity of rows: the smallest level whose central interval covers the value (``calibration``).

    A value at or below the floor is covered as soon as the interval's lower end reaches the floor.
    """
    found = np.empty(len(rows))
    # `disable=None`: no bar where stderr is not a terminal.
    with tqdm(desc="calibrating", total=len(rows), unit="row", disable=None) as bar:
        for places, memories in _encoded(model, data, rows, autocast, budget):
            queries = [[data.queries[data.query[rows[place]]] for place in own] for own in places]
            values = [data.value[rows[own]].tolist() for own in places]
            for own, answer in zip(places, distribution(model, memories, queries, values), strict=True):
                at_floor = np.maximum(0.0, 1 - 2 * answer.through)
                found[own] = np.where(data.value[rows[own]] <= 0, at_floor, np.abs(2 * answer.at - 1))
                bar.update(len(own))
    return found


def _encoded(
    model: FullModel, data: Examples, rows: Ids, autocast: torch.autocast, budget: int
) -> Iterator[tuple[list[Ids], list[TextMemory]]]:
    """The rows' places by text and the encoded texts, some texts of similar length at a time."""
    if len(rows) == 0:
        return  # a process may have no share
    text = data.text[rows]
    order = np.lexsort((text, -data.lengths[text]))
    starts = np.flatnonzero(np.diff(text[order], prepend=-1))
    ordered = text[order][starts].tolist()
    places = dict(zip(ordered, np.split(order, starts[1:]), strict=True))
    for start in range(0, len(ordered), _CHUNK):
        chosen = ordered[start : start + _CHUNK]
        with torch.inference_mode(), autocast:
            vectors = encode(model.encoder, [data.texts[i] for i in chosen], budget)
        memories = [TextMemory(own.float(), data.cropped[i]) for i, own in zip(chosen, vectors, strict=True)]
        yield [places[i] for i in chosen], memories


class FullTrainer(Trainer[FullModel, Numbered, list[Batch]]):
    """Trains a full model; an item is the numbered text batches of a step, whose gradients are summed up.

    Attributes:
        numbers: numbers read.
    """

    board = True

    def __init__(
        self,
        model: FullModel,
        data: Examples,
        config: ModelFitConfig,
        out: Path,
        processes: Processes | None = None,
    ) -> None:
        if processes is not None and processes.sharded and config.optimizer != "adamw":
            print(f"optimizer: adamw, since {config.optimizer} needs whole matrices, not shards", file=sys.stderr)
            config = replace(config, optimizer="adamw")
        if processes is not None and processes.sharded and config.compile:
            print("compile: false, since layers are gathered from their shards", file=sys.stderr)
            config = replace(config, compile=False)
        self.data, self.config, self.plan = data, config, Plan(data, config)
        self.numbers = 0
        model.encoder.recompute(config.recompute)
        if config.compile:
            compile_layers(model.encoder)
        settings = RunSettings(
            config.epochs,
            config.seed,
            config.warmup_steps,
            config.final_rate,
            clip=config.clip,
            log_steps=config.log_steps,
            validate_steps=config.validate_steps,
            checkpoint_minutes=config.checkpoint_minutes,
        )
        super().__init__(model, settings, out, processes)
        rows = data.rows_of("val")
        if len(rows) > config.validation_rows:
            rows = np.sort(np.random.default_rng(config.seed).choice(rows, config.validation_rows, replace=False))
        self.validation_rows = rows
        weights = config.position_weights or (1.0,) * model.config.numbers.positions
        self.weights = torch.tensor(weights, device=self.device)

    @property
    def autocast(self) -> torch.autocast:
        """Mixed precision where it is faster."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=bfloat16(self.config.precision, self.device))

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        """See :class:`Trainer`."""
        return full_optimizers(self.live, self.config)

    def items(self, epoch: int) -> list[Numbered]:
        """See :class:`Trainer`."""
        numbered = list(enumerate(self.plan.batches(epoch)))
        size = self.config.accumulation
        return [numbered[start : start + size] for start in range(0, len(numbered), size)]

    def load(self, item: Numbered) -> list[Batch]:
        """See :class:`Trainer`."""
        pad_id = self.model.encoder.pad_id
        batches = [self.plan.batch(texts, self.epoch, number, pad_id) for number, texts in item]
        return [padded(batch, pad_id, _MULTIPLE) for batch in batches] if self.config.compile else batches

    def tokens_of(self, item: Numbered) -> int:
        """See :class:`Trainer`."""
        return int(sum(len(self.data.texts[i]) for _, texts in item for i in texts))

    def backward(self, batch: list[Batch]) -> dict[str, float]:
        """The mean loss of all numbers of some batches, in nats."""
        count = sum(part.numbers for part in batch)
        total = torch.zeros((), device=self.device)
        parts = share(batch, self.processes)
        for number, part in enumerate(parts, 1):
            moved = part.to(self.device)
            with self.processes.accumulating(self.module, last=number == len(parts)):
                with self.autocast:
                    scores = self.module(moved.ids, moved.mask, moved.queries, moved.tokens)
                loss = -(scores * self.weights).sum() / count
                # Gradients of several processes are averaged.
                (loss * self.processes.world).backward()
            total += loss.detach()
        self.numbers += count
        return {"loss": float(self.processes.sum(total))}

    def validate(self) -> Validation:
        """See :class:`Trainer`."""
        budget = self.config.tokens_per_batch
        return validate(self.model, self.data, self.validation_rows, self.autocast, budget, self.processes)

    def state(self) -> dict[str, Any]:
        """See :class:`Trainer`."""
        return {"numbers": self.numbers}

    def load_state(self, state: dict[str, Any]) -> None:
        """See :class:`Trainer`."""
        self.numbers = state["numbers"]


def compile_layers(encoder: nn.Module) -> None:
    """Compile each layer of an encoder in place: all share one graph, for lengths that vary."""
    for stack in [module for module in encoder.modules() if isinstance(module, nn.ModuleList)]:
        for layer in stack:
            layer.compile(dynamic=True)


def padded(batch: Batch, pad_id: int, multiple: int) -> Batch:
    """The same batch with texts padded to a multiple of some tokens."""
    more = (0, -batch.ids.shape[1] % multiple)
    return replace(batch, ids=F.pad(batch.ids, more, value=pad_id), mask=F.pad(batch.mask, more, value=False))


def bfloat16(precision: str, device: torch.device) -> bool:
    """Return whether to multiply in bfloat16: as configured, or with ``auto`` if the device has instructions for it."""
    if precision != "auto":
        return precision == "bfloat16"
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    able: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))


def full_optimizers(model: FullModel, config: ModelFitConfig) -> list[torch.optim.Optimizer]:
    """The optimizers of a full model: only trained weights, those of the encoder at ``encoder_rate``.

    With Muon, it takes the matrices inside layers; adapters have too low a rank for it.
    """
    matrices, others = [], []
    for in_encoder, factor in ((True, config.encoder_rate), (False, 1.0)):
        weights = {name: w for name, w in trained(model).items() if name.startswith("encoder.") == in_encoder}
        inner = {
            name: w
            for name, w in weights.items()
            if config.optimizer == "muon" and w.ndim == 2 and ".layers." in name and "lora_" not in name
        }
        matrices.append((list(inner.values()), config.matrix_learning_rate * factor))
        outer = [w for name, w in weights.items() if name not in inner]
        others.append((outer, config.learning_rate * factor))
    return make_optimizers(matrices, others, config.weight_decay, adafactor=config.optimizer == "adafactor")
