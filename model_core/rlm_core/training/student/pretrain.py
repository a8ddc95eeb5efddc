"""Pretraining of the encoder without labels: hidden spans of tokens, and numbers computed from the text itself.

In come the cropped ids of many texts and, for each, its syntax counts (``syntax_counts``) and what else can be
computed without running it; out comes an encoder that knows the languages and can count before it sees a measurement
(masked spans: arXiv 1810.04805, 1907.10529; synthetic targets for regression: arXiv 2509.26476, section 4).
"""

from __future__ import annotations

import dis
import os
import types
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rlm_core.errors import DataError
from rlm_core.inference.tokenizer import Ids
from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.source.languages import LANGUAGES, by_name
from rlm_core.source.syntax_counts import NAMES, structure
from rlm_core.training.corpus import Corpus
from rlm_core.training.datasets.texts import read_texts
from rlm_core.training.trainer import RunSettings, Trainer

from .batches import Indices, pad, token_batches
from .config import PretrainConfig
from .encoder_fit import UNKNOWN, autocast, student_optimizers
from .network import Encoder, Norm, StudentConfig

CHECKPOINT = "pretrain.pt"
_MEAN_SPAN = 2.5
TARGETS = (*NAMES, "bytecode", "opcodes", "parameters", "macs")
_PYTHON = frozenset(name for name, entry in LANGUAGES.items() if entry.grammar == LANGUAGES["python"].grammar)
_CHUNK = 500  # texts for a process at a time


class PretrainingModel(nn.Module):
    """An encoder with the two heads that pretraining alone needs: hidden tokens, and counts."""

    def __init__(self, encoder: Encoder, config: StudentConfig, targets: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.hidden = nn.Linear(config.width, config.width)
        self.norm = Norm(config.width)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.count = nn.Linear(config.width, targets)

    def words(self, states: Tensor) -> Tensor:
        """Token vectors ``(n, width)`` -> logits over the vocabulary, with the encoder's own embedding."""
        x = self.norm(F.gelu(self.hidden(states)))
        return F.linear(x * x.shape[-1] ** -0.5, self.encoder.embed.weight.to(x.dtype), self.bias.to(x.dtype))


@dataclass(slots=True)
class Texts:
    """Cropped ids of the texts and their targets ``(texts, targets)``, standardised, NaN where one has no meaning."""

    ids: list[Ids]
    targets: npt.NDArray[np.float32]


def standardised(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Columns with mean 0 and variance 1 over their known values, clipped to five deviations."""
    count = np.maximum((~np.isnan(values)).sum(axis=0), 1)  # a column may have no value at all
    inner = values - np.nansum(values, axis=0, dtype=np.float64) / count
    spread = np.maximum(np.sqrt(np.nansum(inner**2, axis=0) / count), 1e-3)
    result: npt.NDArray[np.float32] = np.clip(inner / spread, -5, 5).astype(np.float32)
    return result


def hide_spans(lengths: npt.NDArray[np.int64], width: int, share: float, rng: np.random.Generator) -> Tensor:
    """Select the tokens to hide, ``(batch, width)``: spans of geometric length that fill ``share`` of each text."""
    starts = rng.random((len(lengths), width)) < share / _MEAN_SPAN
    spans = rng.geometric(1 / _MEAN_SPAN, starts.shape) * starts
    left = np.zeros(len(lengths), np.int64)
    hidden = np.zeros(starts.shape, bool)
    for place in range(1, width):  # 0 is the language
        left = np.maximum(left - 1, spans[:, place])
        hidden[:, place] = left > 0
    return torch.from_numpy(hidden & (np.arange(width)[None, :] < lengths[:, None]))


class Pretrainer(Trainer[PretrainingModel, Indices, Indices]):
    """Pretrains an encoder until it has read ``config.tokens``; an item is the texts of a batch."""

    title, unit = "pretraining", "token"
    log_file, checkpoint_file = "pretrain.jsonl", CHECKPOINT

    def __init__(self, model: PretrainingModel, texts: Texts, config: PretrainConfig, out: Path) -> None:
        self.texts, self.config = texts, config
        self.lengths = np.array([len(text) for text in texts.ids])
        self.targets = torch.from_numpy(texts.targets)
        settings = RunSettings(
            epochs=0,  # tokens decide
            seed=config.seed,
            warmup_steps=config.warmup_steps,
            final_rate=0.02,
            peak_rate=1.02,
            log_steps=50,
            checkpoint_minutes=config.checkpoint_minutes,
        )
        super().__init__(model, settings, out)
        encoder = model.encoder
        self.read = torch.compile(encoder.states, dynamic=True) if config.compile else encoder.states

    @property
    def progress(self) -> tuple[int, int]:
        """Tokens read, and tokens to read."""
        return self.tokens, self.config.tokens

    def make_optimizers(self) -> list[torch.optim.Optimizer]:
        """See :class:`Trainer`."""
        config = self.config
        rates = config.matrix_learning_rate, config.learning_rate
        return student_optimizers(self.live, self.live.encoder, *rates, weight_decay=0.01)

    def items(self, epoch: int) -> list[Indices]:
        """See :class:`Trainer`."""
        rng = np.random.default_rng((self.config.seed, epoch))
        return list(token_batches(self.lengths, self.config.tokens_per_batch, rng))

    def load(self, item: Indices) -> Indices:
        """See :class:`Trainer`."""
        return item

    def tokens_of(self, item: Indices) -> int:
        """See :class:`Trainer`."""
        return int(self.lengths[item].sum())

    def backward(self, batch: Indices) -> dict[str, float]:
        """The two losses of a batch: of hidden tokens (nats) and of standardised counts (smooth L1)."""
        config, device, model = self.config, self.device, self.model
        tokens, mask = pad([self.texts.ids[i] for i in batch])
        rng = np.random.default_rng((config.seed, self.epoch, self.batch))
        hidden = hide_spans(self.lengths[batch], tokens.shape[1], config.hidden_share, rng)
        tokens, mask, hidden = tokens.to(device), mask.to(device), hidden.to(device)
        with autocast(device):
            states = self.read(torch.where(hidden, UNKNOWN, tokens), mask)
            words = F.cross_entropy(model.words(states[hidden]).float(), tokens[hidden], reduction="sum")
            counts = model.count(model.encoder.pooled(states, mask)).float()
        targets = self.targets[batch]
        known = ~targets.isnan()
        error = F.smooth_l1_loss(counts.cpu()[known], targets[known], beta=0.5, reduction="sum")
        # A batch of a few short texts may have nothing hidden or nothing to count.
        words = words / hidden.sum().clamp(min=1)
        error = (error / known.sum().clamp(min=1)).to(device)
        loss = words + config.count_weight * error
        loss.backward()
        return {"loss": float(loss.detach()), "words": float(words.detach()), "counts": float(error.detach())}


def pretrain(
    encoder: Encoder, sizes: StudentConfig, texts: Texts, config: PretrainConfig, out: Path, *, resume: bool
) -> int:
    """Train ``encoder`` in place until it has read ``config.tokens``; returns the number of tokens read.

    Raises:
        DataError: there is no text.
    """
    if not texts.ids:
        raise DataError("nothing to pretrain on; give data sets with a train split")
    trainer = Pretrainer(PretrainingModel(encoder, sizes, texts.targets.shape[1]), texts, config, out)
    if resume:
        trainer.resume()
    trainer.run()
    return trainer.tokens


def synthetic_targets(texts: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
    """The targets of (canonical text, language) pairs, ``(texts, targets)``; NaN where one has no meaning."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return np.array(list(pool.map(_targets, texts, chunksize=500)), dtype=np.float32).reshape(-1, len(TARGETS))


def _targets(entry: tuple[str, str]) -> list[float]:
    text, language = entry
    values: npt.NDArray[np.float32] = structure(text, language)
    if by_name(language).grammar is None:
        values = np.full(len(NAMES), np.nan, np.float32)
    lengths = [np.nan, np.nan]
    if language in _PYTHON:
        lengths = _bytecode(text)
    return [*values.tolist(), *lengths, *_network(text, language)]


def _bytecode(text: str) -> list[float]:
    """log1p of the number of instructions and of distinct operations of all code in a text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(text, "text", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return [np.nan, np.nan]
    total, kinds, pending = 0, set(), [code]
    while pending:
        current = pending.pop()
        operations = [instruction.opname for instruction in dis.get_instructions(current)]
        total += len(operations)
        kinds.update(operations)
        pending += [constant for constant in current.co_consts if isinstance(constant, types.CodeType)]
    return [float(np.log1p(total)), float(np.log1p(len(kinds)))]


def _network(text: str, language: str) -> list[float]:
    """log1p of the parameters and multiply-accumulates of a graph."""
    if language != "onnx":
        return [np.nan, np.nan]
    from rlm_core.errors import RlmError
    from rlm_core.source.onnx_graph.costs import costs, total
    from rlm_core.source.onnx_graph.parse import parse

    try:
        found = total(costs(parse(text)))
    except RlmError:
        return [np.nan, np.nan]
    return [float(np.log1p(found.parameters)), float(np.log1p(found.macs))]


def pretraining_texts(corpus: Corpus, files: Sequence[Path]) -> list[tuple[str, str]]:
    """The distinct texts of the ``train`` split and of files, without those of any other split.

    The functions that a row calls count as texts of its split. Texts are compared in the neutral form, because a data
    set and a file may hold the same function in different forms and with other names.

    Returns:
        (text, language) pairs, each in the form in which it was found.

    Raises:
        DataError: a file is missing or is not a file of texts.
    """
    train_rows = corpus.rows.split == "train"
    found = dict.fromkeys(_texts(corpus, train_rows))
    for path in files:
        found.update(dict.fromkeys(read_texts(path)))
    held_out, candidates = _texts(corpus, ~train_rows), list(found)
    forms = _neutral_forms([*held_out, *candidates])
    excluded = set(forms[: len(held_out)])
    return [text for text, form in zip(candidates, forms[len(held_out) :], strict=True) if form not in excluded]


def _texts(corpus: Corpus, chosen: np.ndarray) -> list[tuple[str, str]]:
    """The texts of rows and of the functions that they call."""
    callees = corpus.rows.callees[chosen]
    return [corpus.texts[text] for text in np.union1d(corpus.rows.text[chosen], callees[callees >= 0])]


def _neutral_forms(texts: Sequence[tuple[str, str]]) -> list[str]:
    if len(texts) <= _CHUNK:
        return [_neutral_form(entry) for entry in texts]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(_neutral_form, texts, chunksize=_CHUNK))


def _neutral_form(entry: tuple[str, str]) -> str:
    return canonical(*entry, CanonicalForm.NEUTRAL)
