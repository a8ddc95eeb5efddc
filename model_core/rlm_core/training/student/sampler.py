"""Which texts an epoch reads."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .config import TEXTS_A_BASIS, LoopConfig
from .task import Task

_REPEATS = 4
Indices = npt.NDArray[np.int64]


class Sampler:
    """The texts of each epoch.

    Attributes:
        texts: all texts that training rows are about, ``(texts,)``; what follows is in their order.
        lengths: their tokens.
        rows_of: their training rows.
    """

    def __init__(self, task: Task, config: LoopConfig) -> None:
        self.task, self.config = task, config
        self.texts = task.texts_of("train")
        self.lengths = np.array([len(task.ids[i]) for i in self.texts])
        self.rows_of = _rows_of_texts(task, self.texts)
        self.groups = _groups_of_texts(task, self.rows_of)

    def sample(self, epoch: int) -> Indices:
        """The texts of an epoch: the square root of each group, the next ones in turn, no basis above its share.

        Sampled evenly, the encoder would learn what the large groups cost by heart; a user's group is always a new one.
        """
        chosen: dict[str, list[Indices]] = {}
        for members in self.groups:
            size = math.ceil(math.sqrt(len(members)))
            basis = str(self.task.basis[self.rows_of[members[0]][0]])
            chosen.setdefault(basis, []).append(members[(epoch * size + np.arange(size)) % len(members)])
        rng = np.random.default_rng((self.config.seed, epoch, 1))
        parts = []
        for basis, found in chosen.items():
            most = self.config.texts_a_basis.get(basis, TEXTS_A_BASIS)
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


def _rows_of_texts(task: Task, texts: Indices) -> list[Indices]:
    rows = np.flatnonzero(task.split == "train")
    of = task.inputs.text.numpy()[rows]
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], texts)
    ends = np.searchsorted(of[order], texts, side="right")
    return [rows[order[start:end]] for start, end in zip(starts, ends, strict=True)]


def _groups_of_texts(task: Task, rows_of: list[Indices]) -> list[Indices]:
    """The places of the training texts by group and slice (of a text's first row), in a fixed random order."""
    slices = task.inputs.slice.numpy()
    groups: dict[tuple[str, int], list[int]] = {}
    for place, rows in enumerate(rows_of):
        groups.setdefault((str(task.group[rows[0]]), int(slices[rows[0]])), []).append(place)
    rng = np.random.default_rng(0)
    return [rng.permutation(np.array(members)) for members in groups.values()]
