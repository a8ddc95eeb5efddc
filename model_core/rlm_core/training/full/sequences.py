"""Questions to the full model, and how they become batches.

A question is a sequence of slots: numbers that are known and numbers that are wanted, in the order in which the model
is to write them. Questions of one pattern about texts of similar length form a group, which is decoded as one grid of
``(inputs, branches)``. A metric that is neither known nor wanted is left out of the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlm_core.errors import ModelError

from .decoder import Cache, Memory, NumberQuery, QueryBatch
from .encoders.base import length_batches
from .model import FullModel, TextMemory
from .numbers import PAD


@dataclass(frozen=True, slots=True)
class Slot:
    """One number: its query (None for a model without queries) and its value (None where it is wanted)."""

    query: NumberQuery | None = None
    value: float | str | None = None


Question = Sequence[Slot]


@dataclass(frozen=True, slots=True)
class Group:
    """Questions of one pattern about texts of similar length.

    Attributes:
        texts: ``(inputs,)``, indices of the texts.
        places: by question its input, branch, and index among the questions about that text.
        queries: ``(inputs, branches, numbers)``; None for a model without queries.
        tokens: ``(inputs, branches, numbers, positions)``, padding where a number is wanted.
        wanted: by number whether it is wanted.
    """

    texts: list[int]
    places: list[tuple[int, int, int]]
    queries: QueryBatch | None
    tokens: Tensor
    wanted: tuple[bool, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Inputs and branches."""
        return self.tokens.shape[0], self.tokens.shape[1]


def groups(
    model: FullModel,
    memories: Sequence[TextMemory],
    questions: Sequence[Sequence[Question]],
    most: int | None = None,
) -> Iterator[Group]:
    """Groups that together hold every question once.

    Args:
        model: answers them.
        memories: the encoded texts.
        questions: ``questions[i]`` are those about text i.
        most: questions of a group, where that is less than the device's limit.

    Raises:
        ModelError: the model does not know a metric, or cannot write so many numbers.
        DataError: a known value cannot be written.
    """
    limits = model.limits
    most = limits.questions if most is None else min(most, limits.questions)
    patterns: dict[tuple[bool, ...], dict[int, list[int]]] = {}
    for text, own in enumerate(questions):
        for index, question in enumerate(own):
            pattern = tuple(slot.value is None for slot in question)
            if not 0 < len(pattern) <= model.config.max_numbers:
                raise ModelError(
                    f"question of {len(pattern)} numbers: this model writes 1 to {model.config.max_numbers}"
                )
            patterns.setdefault(pattern, {}).setdefault(text, []).append(index)
    for pattern, by_text in patterns.items():
        texts = np.array(sorted(by_text))
        lengths = np.array([len(memories[text].vectors) for text in texts], np.int64)
        for batch in length_batches(lengths, limits.text_tokens):
            part: dict[int, list[int]] = {}
            for text in texts[batch].tolist():
                for start in range(0, len(by_text[text]), most):
                    share = by_text[text][start : start + most]
                    if sum(map(len, part.values())) + len(share) > most:
                        yield _group(model, pattern, part, questions)
                        part = {}
                    part[text] = share
            yield _group(model, pattern, part, questions)


def _group(
    model: FullModel, pattern: tuple[bool, ...], by_text: dict[int, list[int]], questions: Sequence[Sequence[Question]]
) -> Group:
    branches = max(len(indices) for indices in by_text.values())
    numbers = model.config.numbers
    places, queries, tokens = [], [], []
    for row, (text, indices) in enumerate(by_text.items()):
        places += [(row, branch, index) for branch, index in enumerate(indices)]
        for branch in range(branches):
            # Texts with fewer questions repeat their first one; its answer is ignored.
            question = questions[text][indices[branch if branch < len(indices) else 0]]
            queries += [slot.query for slot in question]
            tokens += [
                (PAD,) * numbers.positions if slot.value is None else numbers.encode(slot.value) for slot in question
            ]
    shape = len(by_text), branches, len(pattern)
    batch = None
    if model.query_tokens is not None:
        known = [query for query in queries if query is not None]
        if len(known) < len(queries):
            raise ModelError("question without a query: this model needs to know what each number means")
        batch = model.query_tokens.batch(known).to(model.device).view(*shape)
    table = torch.tensor(tokens, device=model.device).view(*shape, numbers.positions)
    return Group(list(by_text), places, batch, table, pattern)


class PrefixCache:
    """Sequences about the inputs of ``memory``; each read makes the rows that the next one can continue.

    Args:
        model: reads.
        memory: of its inputs.
        x: ``(inputs, branches, tokens, width)``, how the sequences begin.

    Attributes:
        logits: ``(rows, vocabulary)`` of each row's next token, in double precision.
    """

    def __init__(self, model: FullModel, memory: Memory, x: Tensor) -> None:
        self._model, self._memory = model, memory
        hidden, self._cache = model.decoder(x, memory)
        self.logits = self._score(hidden[:, :, -1].flatten(0, 1))
        self._owner = torch.arange(len(self.logits), device=x.device) // x.shape[1]
        self._place = torch.arange(len(self.logits), device=x.device)

    def read(self, rows: Tensor, x: Tensor, last: bool = False) -> None:
        """Go on from some rows.

        Args:
            rows: ``(new rows,)``, ascending, the row that each continues; a row may be left out or repeated.
            x: ``(new rows, tokens, width)``, what each reads.
            last: nothing will be read after this, so that nothing needs to be kept.
        """
        owner, place = self._owner[rows], self._place[rows]
        inputs = self._memory.inputs
        counts = torch.bincount(owner, minlength=inputs)
        column = torch.arange(len(owner), device=owner.device) - (counts.cumsum(0) - counts)[owner]
        widest = int(counts.max())
        # Where an input has fewer rows than another, row 0 fills up the grid.
        grid = torch.zeros(inputs, widest, dtype=torch.int64, device=owner.device)
        grid[owner, column] = torch.arange(len(owner), device=owner.device)
        size = max(self._model.limits.rows // inputs, 1)
        caches: list[Cache] = []
        hidden = []
        for start in range(0, widest, size):
            part = grid[:, start : start + size]
            out, longer = self._model.decoder(x[part], self._memory, self._cache.select(place[part.flatten()]))
            hidden.append(out[:, :, -1])
            if not last:
                caches.append(longer)
        self.logits = self._score(torch.cat(hidden, 1)[owner, column])
        chunk = column // size
        wide = (widest - chunk * size).clamp(max=size)
        self._owner, self._place = owner, chunk * size * inputs + owner * wide + column % size
        if not last:
            self._cache = Cache.join(caches)

    def _score(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self._model.decoder.logits(hidden)
        return logits.double()
