"""Rows of data sets -> examples of the full model: each distinct text once, its rows as sequences of numbers.

A batch holds texts of similar length, each encoded once for all of its rows that are drawn for the batch. The rows of a
text are cut into sequences: the first number of each is learned from the text alone, the others also from the numbers
before them. Metrics that were not measured are not part of any sequence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlm_core.queries.query_vector import task_parts
from rlm_core.training.corpus import Corpus, floor_of
from rlm_core.training.distributed import Processes
from rlm_core.training.full.encoders.base import reading

from .decoder import NumberQuery, QueryBatch
from .encoders.base import length_batches, pad
from .model import FullModel
from .numbers import PAD
from .training_config import ModelFitConfig

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of texts and the numbers about them; see :meth:`rlm_core.training.full.model.FullModel.forward`."""

    ids: Tensor
    mask: Tensor
    queries: QueryBatch
    tokens: Tensor
    numbers: int

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        moved = (self.ids.to(device), self.mask.to(device), self.queries.to(device), self.tokens.to(device))
        return Batch(*moved, self.numbers)

    def some(self, texts: slice) -> Batch:
        """Some of the texts."""
        tokens = self.tokens[texts]
        return Batch(self.ids[texts], self.mask[texts], self.queries[texts], tokens, int((tokens[..., 0] != PAD).sum()))

    def without_numbers(self) -> Batch:
        """The same texts without a number: they are read, and nothing is learned."""
        return Batch(self.ids, self.mask, self.queries, torch.full_like(self.tokens, PAD), 0)


@dataclass(frozen=True, slots=True)
class Examples:
    """Tokenized texts and the rows about them.

    Attributes:
        texts: token ids of each distinct text that is read.
        cropped: how many tokens each lost.
        text: ``(rows,)``, which text a row is about.
        queries: the distinct queries; ``batch`` holds them as tensors.
        query: ``(rows,)``, the query of a row.
        value: ``(rows,)``, SI units; 0 for all at or below the floor.
        tokens: ``(rows, positions)``, the values as number tokens.
        corpus: the rows themselves, in the same order.
    """

    texts: list[Ids]
    cropped: list[int]
    text: Ids
    queries: list[NumberQuery]
    batch: QueryBatch
    query: Ids
    value: npt.NDArray[np.float64]
    tokens: Tensor
    corpus: Corpus

    @property
    def lengths(self) -> Ids:
        """Tokens of each text."""
        return np.array([len(ids) for ids in self.texts], np.int64)

    def rows_of(self, split: str) -> Ids:
        """The rows of a split."""
        return np.flatnonzero(self.corpus.rows.split == split)

    def grid(self, texts: Ids, rows: Sequence[Sequence[Ids]], pad_id: int) -> Batch:
        """Texts and their sequences of rows, padded to the longest; ``rows[i]`` are those about ``texts[i]``."""
        ids, mask = pad([self.texts[i] for i in texts], pad_id)
        shape = len(texts), max(map(len, rows)), max(len(sequence) for own in rows for sequence in own)
        places = np.full(shape, -1, np.int64)
        for i, own in enumerate(rows):
            for j, sequence in enumerate(own):
                places[i, j, : len(sequence)] = sequence
        index = torch.from_numpy(places)
        known = index >= 0
        tokens = torch.where(known[..., None], self.tokens[index.clamp(min=0)], PAD)
        return Batch(ids, mask, self.batch[torch.from_numpy(self.query)[index.clamp(min=0)]], tokens, int(known.sum()))


def examples(corpus: Corpus, model: FullModel, callees: int) -> Examples:
    """The examples of a corpus.

    Args:
        corpus: texts, queries and rows.
        model: whose tokenizer, number format and queries are used.
        callees: how many called functions are read after a text.

    Raises:
        DataError: a value is not a number.
        ModelError: the model does not know a metric.
    """
    rows = corpus.rows
    keys: dict[tuple[int, ...], int] = {}
    called = rows.callees.reshape(len(rows), -1)
    text = np.empty(len(rows), np.int64)
    for row in range(len(rows)):
        near = [int(i) for i in called[row] if i >= 0][:callees]
        text[row] = keys.setdefault((int(rows.text[row]), *near), len(keys))
    names = [reading(*corpus.texts[own], [corpus.texts[i][0] for i in near], callees) for own, *near in keys]
    tokens = model.encoder.tokenize(names)
    pairs, query = np.unique(np.stack([rows.task, rows.query], 1), axis=0, return_inverse=True)
    queries = [_number_query(corpus, int(task), int(query)) for task, query in pairs]
    floors = np.array([floor_of(name) for name in corpus.tasks])[rows.task]
    value = np.where(rows.value > floors, rows.value, np.where(np.isnan(rows.value), np.nan, 0.0))
    assert model.query_tokens is not None
    numbers = torch.from_numpy(model.config.numbers.encode_many(value.tolist()))
    return Examples(
        tokens.ids,
        tokens.cropped,
        text,
        queries,
        model.query_tokens.batch(queries),
        query.ravel(),
        value,
        numbers,
        corpus,
    )


def _number_query(corpus: Corpus, task: int, query: int) -> NumberQuery:
    basis, language, metric, _ = task_parts(corpus.tasks[task])
    device, workload = corpus.queries[query]
    return NumberQuery(metric, basis, language, device, workload)


def share(parts: list[Batch], processes: Processes) -> list[Batch]:
    """The share of a step's batches that this process computes, equally many in each process; some may be empty.

    Whole batches where there are enough for all processes, otherwise pieces of them by text.
    """
    if processes.world == 1:
        return parts
    cut = -(-processes.world // len(parts))
    pieces = [part.some(slice(start, None, cut)) for part in parts for start in range(min(cut, len(part.ids)))]
    dealt = pieces[processes.rank :: processes.world]
    idle = [pieces[0].some(slice(1)).without_numbers()] * (-(-len(pieces) // processes.world) - len(dealt))
    return dealt + idle


class Plan:
    """Which texts an epoch reads, in which batches, and which rows of each text a batch holds.

    Everything depends only on the seed and the position in the run, so that a resumed run draws the same.
    """

    def __init__(self, data: Examples, config: ModelFitConfig) -> None:
        self._data, self._config = data, config
        train = data.rows_of("train")
        order = train[np.argsort(data.text[train], kind="stable")]
        texts, starts = np.unique(data.text[order], return_index=True)
        self._rows = dict(zip(texts.tolist(), np.split(order, starts[1:]), strict=True))
        self._rank = {metric: rank for rank, metric in enumerate(config.metrics)}
        groups: dict[tuple[str, str], list[int]] = {}
        for number in texts.tolist():
            first = int(self._rows[number][0])
            basis = data.corpus.tasks[data.corpus.rows.task[first]].split("/")[0]
            groups.setdefault((basis, str(data.corpus.rows.group[first])), []).append(number)
        rng = np.random.default_rng((config.seed, 0))
        self._groups = {key: rng.permutation(np.array(members)) for key, members in groups.items()}

    def batches(self, epoch: int) -> list[Ids]:
        """The texts of each batch of an epoch: of a group the next ones in turn, no basis above its share."""
        config = self._config
        rng = np.random.default_rng((config.seed, 1, epoch))
        by_basis: dict[str, list[Ids]] = {}
        for (basis, _), members in self._groups.items():
            size = math.ceil(len(members) ** config.group_power)
            by_basis.setdefault(basis, []).append(members[(epoch * size + np.arange(size)) % len(members)])
        parts = []
        for basis, found in by_basis.items():
            texts = np.concatenate(found)
            most = config.texts_per_basis.get(basis, len(texts))
            parts.append(rng.choice(texts, most, replace=False) if len(texts) > most else texts)
        chosen = np.concatenate(parts)
        lengths = self._data.lengths[chosen]
        return [chosen[places] for places in length_batches(lengths, config.tokens_per_batch, rng)]

    def batch(self, texts: Ids, epoch: int, number: int, pad_id: int) -> Batch:
        """Batch ``number`` of an epoch, which holds these texts."""
        rng = np.random.default_rng((self._config.seed, 2, epoch, number))
        rows = [self._sequences(self._rows[text], rng) for text in texts.tolist()]
        batch = self._data.grid(texts, rows, pad_id)
        if self._config.token_dropout > 0:
            hidden = torch.from_numpy(rng.random(batch.mask.shape) < self._config.token_dropout)
            hidden[:, 0] = False  # attention needs something to look at
            batch = Batch(batch.ids, batch.mask & ~hidden, batch.queries, batch.tokens, batch.numbers)
        return batch

    def _sequences(self, rows: Ids, rng: np.random.Generator) -> list[Ids]:
        """Some rows of a text in random order, cut at random; each piece in the given order of metrics, if any."""
        config = self._config
        left = rng.permutation(rows)[: config.rows_per_text]
        pieces = []
        while len(left):
            size = int(rng.integers(1, config.numbers_per_sequence + 1))
            piece, left = left[:size], left[size:]
            pieces.append(np.array(sorted(piece.tolist(), key=self._place)) if self._rank else piece)
        return pieces

    def _place(self, row: int) -> Any:
        metric = self._data.queries[self._data.query[row]].metric
        return self._rank.get(metric, len(self._rank))
