"""Texts -> padded batches of similar length, and rows -> the head's inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlm_core.inference.tokenizer import PAD, Ids
from rlm_core.queries.query_vector import query_vector
from rlm_core.source.syntax_counts import facts
from rlm_core.training.corpus import Corpus
from rlm_core.training.losses import Teacher

from .config import TEXTS_PER_BASIS, EncoderFitConfig

_MULTIPLE = 16  # lengths are padded to it, so that matrix products keep few distinct shapes


def token_batches(
    lengths: npt.NDArray[np.int64], budget: int, rng: np.random.Generator | None = None
) -> Iterator[npt.NDArray[np.int64]]:
    """Indices of texts in batches of at most ``budget`` padded tokens; shuffled when a generator is given."""
    noise = rng.normal(0, 0.05, len(lengths)) if rng is not None else np.zeros(len(lengths))
    order = np.argsort(np.log(lengths) + noise, kind="stable")
    batches: list[npt.NDArray[np.int64]] = []
    start = 0
    while start < len(order):
        end, longest = start, 0
        while end < len(order):
            longest = max(longest, _padded(int(lengths[order[end]])))
            if longest * (end - start + 1) > budget and end > start:
                break
            end += 1
        batches.append(order[start:end])
        start = end
    if rng is not None:
        rng.shuffle(batches)
    yield from batches


def _padded(length: int) -> int:
    return -(-length // _MULTIPLE) * _MULTIPLE


def pad(texts: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Ids and mask, each ``(batch, tokens)``."""
    length = _padded(max(len(text) for text in texts))
    ids = np.full((len(texts), length), PAD, np.int64)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = text
    lengths = np.array([len(text) for text in texts])
    return torch.from_numpy(ids), torch.from_numpy(np.arange(length)[None, :] < lengths[:, None])


@dataclass(frozen=True, slots=True)
class HeadInputs:
    """The fixed inputs of the head, one row per query; text vectors come from a bank when a batch is made."""

    text: Tensor
    callees: Tensor
    wide: Tensor
    facts: Tensor
    task: Tensor
    date: Tensor
    query: Tensor
    target: Tensor

    def rows(self, chosen: Tensor) -> HeadInputs:
        """The inputs of some rows."""
        return HeadInputs(*(getattr(self, name)[chosen] for name in self.__slots__))


def head_inputs(
    corpus: Corpus,
    counts: npt.NDArray[np.float32],
    lengths: npt.NDArray[np.int64],
    wide: npt.NDArray[np.float64],
    position: npt.NDArray[np.float64],
) -> HeadInputs:
    """The head's inputs.

    Args:
        corpus: texts, queries and rows.
        counts: the structure of every text, ``(texts, len(structure.NAMES))``.
        lengths: the uncropped number of tokens of every text.
        wide: wide predictions on the outcome axis, ``(rows,)``.
        position: measured values on the outcome axis, ``(rows,)``.
    """
    rows = corpus.rows
    features = [
        facts(counts[text], int(lengths[text]), *([int(lengths[i]) for i in level if i >= 0] for level in levels))
        for text, levels in zip(rows.text, rows.callees, strict=True)
    ]
    queries = np.stack([query_vector(device, workload) for device, workload in corpus.queries])
    return HeadInputs(
        torch.from_numpy(rows.text),
        torch.from_numpy(rows.callees.astype(np.int64)),
        torch.from_numpy(wide.astype(np.float32)),
        torch.from_numpy(np.stack(features)),
        torch.from_numpy(rows.task),
        torch.from_numpy(rows.date.astype(np.float32)),
        torch.from_numpy(queries)[torch.from_numpy(rows.query)],
        torch.from_numpy(position.astype(np.float32)),
    )


def pool_callees(bank: Tensor, known: Tensor, callees: Tensor) -> tuple[Tensor, Tensor]:
    """Pooled vectors ``(rows, 4 * width)`` and counts ``(rows, 2)`` of callees ``(rows, 2, n)`` (text indices or -1).

    Texts whose vector is not ``known`` yet count as absent.
    """
    present = (callees >= 0) & known[callees.clamp(min=0)]
    vectors = bank[callees.clamp(min=0)]  # (rows, 2, n, width)
    weights = present.float()
    counts = weights.sum(-1)
    mean = (vectors * weights[..., None]).sum(2) / counts.clamp(min=1)[..., None]
    top = vectors.masked_fill(~present[..., None], -torch.inf).amax(2)
    top = torch.where(counts[..., None] > 0, top, 0.0)
    return torch.cat([mean, top], dim=-1).flatten(1), counts


@dataclass(slots=True)
class EncoderData:
    """Data of the training loop: cropped ids of all texts, the head's inputs, and each row's split, group and basis."""

    ids: list[Ids]
    inputs: HeadInputs
    split: npt.NDArray[np.str_]
    group: npt.NDArray[np.str_]
    basis: npt.NDArray[np.str_]
    teacher: Teacher | None = None

    def texts_of(self, split: str) -> npt.NDArray[np.int64]:
        """The texts that rows of a split are about."""
        return np.unique(self.inputs.text.numpy()[self.split == split])


_REPEATS = 4
Indices = npt.NDArray[np.int64]


class Sampler:
    """The texts of each epoch.

    Attributes:
        texts: all texts that training rows are about, ``(texts,)``; what follows is in their order.
        lengths: their tokens.
        rows_of: their training rows.
    """

    def __init__(self, data: EncoderData, config: EncoderFitConfig) -> None:
        self.data, self.config = data, config
        self.texts = data.texts_of("train")
        self.lengths = np.array([len(data.ids[i]) for i in self.texts])
        self.rows_of = _rows_of_texts(data, self.texts)
        self.groups = _groups_of_texts(data, self.rows_of)

    def sample(self, epoch: int) -> Indices:
        """The texts of an epoch: the square root of each group, the next ones in turn, no basis above its share.

        Sampled evenly, the encoder would learn the costs of large groups; a user's group is always a new one.
        """
        chosen: dict[str, list[Indices]] = {}
        for members in self.groups:
            size = math.ceil(math.sqrt(len(members)))
            basis = str(self.data.basis[self.rows_of[members[0]][0]])
            chosen.setdefault(basis, []).append(members[(epoch * size + np.arange(size)) % len(members)])
        rng = np.random.default_rng((self.config.seed, epoch, 1))
        parts = []
        for basis, found in chosen.items():
            most = self.config.texts_per_basis.get(basis, TEXTS_PER_BASIS)
            texts = np.concatenate(found)
            if len(texts) > most:
                texts = rng.choice(texts, most, replace=False)
            # A small basis comes several times, with other rows of its texts each time.
            parts += [texts] * min(_REPEATS, max(1, most // (8 * len(texts))))
        return np.concatenate(parts)

    def read(self) -> Indices:
        """The training rows of the texts that any epoch reads, ``(rows,)``."""
        places = np.unique(np.concatenate([self.sample(epoch) for epoch in range(self.config.epochs)]))
        return np.sort(np.concatenate([self.rows_of[place] for place in places]))


def _rows_of_texts(data: EncoderData, texts: Indices) -> list[Indices]:
    rows = np.flatnonzero(data.split == "train")
    of = data.inputs.text.numpy()[rows]
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], texts)
    ends = np.searchsorted(of[order], texts, side="right")
    return [rows[order[start:end]] for start, end in zip(starts, ends, strict=True)]


def _groups_of_texts(data: EncoderData, rows_of: list[Indices]) -> list[Indices]:
    """The places of the training texts by group and task (of a text's first row), in a fixed random order."""
    tasks = data.inputs.task.numpy()
    groups: dict[tuple[str, int], list[int]] = {}
    for place, rows in enumerate(rows_of):
        groups.setdefault((str(data.group[rows[0]]), int(tasks[rows[0]])), []).append(place)
    rng = np.random.default_rng(0)
    return [rng.permutation(np.array(members)) for members in groups.values()]
