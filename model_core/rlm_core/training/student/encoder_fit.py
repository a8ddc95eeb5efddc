"""Training of the student on labels: encoder and deep head together, callees from a bank of earlier encodings.

A callee's vector enters the head as it was last encoded, without a gradient, so a caller costs one encoding in training
as it does in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlm_core.inference.tokenizer import Ids
from rlm_core.training.losses import soft_cross_entropy
from rlm_core.training.trainer import RunSettings, Trainer, Validation, make_optimizers

from .batches import EncoderData, HeadInputs, Indices, Sampler, pad, pool_callees, token_batches
from .config import EncoderFitConfig
from .network import Encoder, Student

_ENCODED_TOKENS = 32_768  # padded, at once
UNKNOWN = 1  # the tokenizer's unknown id replaces dropped tokens


@dataclass(slots=True)
class Bank:
    """The latest vector of every text, ``(texts, width)``, and whether it has one."""

    vectors: Tensor
    known: Tensor

    @classmethod
    def empty(cls, texts: int, width: int, device: torch.device | None = None) -> Bank:
        """A bank without vectors."""
        return cls(torch.zeros(texts, width, device=device), torch.zeros(texts, dtype=torch.bool, device=device))


def encode_texts(student: Student, ids: list[Ids], chosen: Indices, bank: Bank) -> None:
    """Fill the bank with the encodings of the chosen texts."""
    mode = student.encoder.training
    student.encoder.eval()
    device = bank.vectors.device
    lengths = np.array([len(ids[i]) for i in chosen])
    with torch.inference_mode(), autocast(device):
        for batch in token_batches(lengths, _ENCODED_TOKENS) if len(chosen) else ():
            texts = chosen[batch]
            tokens, mask = pad([ids[i] for i in texts])
            index = torch.from_numpy(texts).to(device)
            bank.vectors[index] = student.encoder(tokens.to(device), mask.to(device)).float()
            bank.known[index] = True
    student.encoder.train(mode)


def head_logits(student: Student, inputs: HeadInputs, vectors: Tensor, bank: Bank) -> Tensor:
    """The deep part's logits for rows whose units have the given vectors, ``(rows, outcomes)``."""
    device = bank.vectors.device
    callees, counts = pool_callees(bank.vectors, bank.known, inputs.callees.to(device))
    logits: Tensor = student.head.deep(
        vectors, callees, counts, inputs.task.to(device), inputs.date.to(device), inputs.query.to(device)
    )
    return logits


def autocast(device: torch.device) -> torch.autocast:
    """Mixed precision for a training step."""
    return torch.autocast(device.type, dtype=torch.bfloat16)


def student_optimizers(
    model: torch.nn.Module, encoder: Encoder, matrix_rate: float, rate: float, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """Muon for the encoder's matrices, AdamW for all other weights of ``model``."""
    matrices = [weight for weight in encoder.layers.parameters() if weight.ndim == 2]
    ids = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in ids and weight.requires_grad]
    return make_optimizers([(matrices, matrix_rate)], [(others, rate)], weight_decay)


class EncoderTrainer(Trainer[Student, Indices, Indices]):
    """Trains a student's encoder and deep head; an item is the texts of a batch, as positions in the sampler."""

    def __init__(self, student: Student, data: EncoderData, config: EncoderFitConfig, out: Path) -> None:
        self.data, self.config = data, config
        self.sampler = Sampler(data, config)
        settings = RunSettings(
            config.epochs,
            config.seed,
            config.warmup_steps,
            final_rate=0.005,
            peak_rate=1.005,
            checkpoint_minutes=config.checkpoint_minutes,
        )
        super().__init__(student, settings, out)
        self.bank = Bank.empty(len(data.ids), student.config.width, self.device)
        # The compiled encoder shares the student's weights; lengths vary, so shapes are dynamic.
        self.encode = torch.compile(student.encoder, dynamic=True) if config.compile else student.encoder
        first = self.items(0)
        self.rows_per_batch = sum(len(self.sampler.rows_of[i]) for batch in first for i in batch) / len(first)

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        """See :class:`Trainer`."""
        config, student = self.config, self.live
        return student_optimizers(
            student, student.encoder, config.matrix_learning_rate, config.learning_rate, config.weight_decay
        )

    def items(self, epoch: int) -> list[Indices]:
        """See :class:`Trainer`."""
        sample = self.sampler.sample(epoch)
        rng = np.random.default_rng((self.config.seed, epoch))
        return [
            sample[batch] for batch in token_batches(self.sampler.lengths[sample], self.config.tokens_per_batch, rng)
        ]

    def load(self, item: Indices) -> Indices:
        """See :class:`Trainer`."""
        return item

    def tokens_of(self, item: Indices) -> int:
        """See :class:`Trainer`."""
        return int(self.sampler.lengths[item].sum())

    def backward(self, batch: Indices) -> dict[str, float]:
        """The loss of some rows of each text of a batch."""
        config, device = self.config, self.device
        rng = np.random.default_rng((config.seed, self.epoch, self.batch))
        texts = self.sampler.texts[batch]
        tokens, mask = pad([self.data.ids[i] for i in texts])
        dropped = (torch.rand(tokens.shape) < config.token_dropout) & mask
        dropped[:, 0] = False  # the language
        tokens = torch.where(dropped, UNKNOWN, tokens)
        most = config.rows_per_text
        rows = [self.sampler.rows_of[i] for i in batch]
        rows = [rng.choice(members, most, replace=False) if len(members) > most else members for members in rows]
        owner = torch.from_numpy(np.repeat(np.arange(len(texts)), [len(members) for members in rows])).to(device)
        chosen = torch.from_numpy(np.concatenate(rows))
        inputs = self.data.inputs.rows(chosen)
        teacher = self.data.teacher.rows(chosen) if self.data.teacher is not None else None
        with autocast(device):
            vectors = self.encode(tokens.to(device), mask.to(device))
            logits = head_logits(self.model, inputs, vectors[owner], self.bank)
        loss = soft_cross_entropy(logits, inputs.target, config.label_sigma, teacher)
        # Batches of long texts hold few rows: weigh by rows, so that each row counts the same.
        (loss * (len(inputs.text) / self.rows_per_batch)).backward()
        index = torch.from_numpy(texts).to(device)
        self.bank.vectors[index] = vectors.detach().float()
        self.bank.known[index] = True
        return {"loss": float(loss.detach())}

    def validate(self) -> Validation:
        """Encode what the split and the callees need; the loss of the ``val`` rows."""
        data, inputs = self.data, self.data.inputs
        # The training rows' callees are for the next epoch; after the last one there is none.
        splits = ("train", "val") if self.epoch < self.config.epochs else ("val",)
        rows = torch.from_numpy(np.flatnonzero(np.isin(data.split, splits)))
        used = np.unique(inputs.callees[rows].numpy())
        stale = used[(used >= 0) & ~np.isin(used, self.sampler.texts)]
        encode_texts(self.model, data.ids, np.union1d(stale, data.texts_of("val")), self.bank)
        held_out = inputs.rows(torch.from_numpy(np.flatnonzero(data.split == "val")))
        with torch.inference_mode(), autocast(self.device):
            vectors = self.bank.vectors[held_out.text.to(self.device)]
            logits = head_logits(self.model, held_out, vectors, self.bank).float()
        return Validation(float(soft_cross_entropy(logits, held_out.target, self.config.label_sigma)))

    def state(self) -> dict[str, Any]:
        """The bank; half precision holds the vectors of a training step exactly, which are computed in bfloat16."""
        return {"vectors": self.bank.vectors.half(), "known": self.bank.known}

    def load_state(self, state: dict[str, Any]) -> None:
        """See :class:`Trainer`."""
        self.bank = Bank(state["vectors"].to(self.device).float(), state["known"].to(self.device))
