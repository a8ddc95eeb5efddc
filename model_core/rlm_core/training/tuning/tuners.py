"""One slice (or setting of networks) tuned: what it would answer to held-out groups, and the change to the model.

Rows are split into folds of whole groups. Each fold is answered by a fit to the others, in which the corrections of
the wide part are again out of fold and the number of steps is chosen on a fold of its own; the model that is written is
fitted to all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlm_core.inference.bins import Scale
from rlm_core.inference.calibration import scores
from rlm_core.inference.features import feature_names
from rlm_core.inference.residuals import spread_key

from .additions import Addition, Grams, Trees
from .draft import Draft
from .level import MIN_MEASUREMENTS, Level, fit_level
from .material import Array, Material, Rows
from .slice_head import Asked, SliceHead, Still, fit
from .student import Opened

FEWEST_GROUPS = 3


@dataclass(frozen=True, slots=True)
class Answers:
    """Medians in log10 and scores of the measured values, ``(rows,)`` each.

    A score is the smallest level whose central interval covers the value; of forests that answer alone, the residual
    in units of its expected size.
    """

    median: Array
    score: Array


class Tuner(Protocol):
    """Tunes one slice or forest."""

    kind: str

    def shipped(self) -> Answers:
        """What the model answers to the rows as it is."""
        ...

    def held_out(self) -> Answers:
        """What tuned models answer to the rows whose groups they have not seen."""
        ...

    def put(self, draft: Draft) -> None:
        """Change a model as a fit to all rows says."""
        ...


def folds_of(groups: npt.NDArray[np.str_], most: int = 5) -> Rows:
    """The fold of every row: whole groups, the largest first, each to the smallest fold so far."""
    names, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sizes = np.zeros(min(most, len(names)))
    fold = np.zeros(len(names), np.int64)
    for name in np.argsort(-counts, kind="stable"):
        fold[name] = sizes.argmin()
        sizes[fold[name]] += counts[name]
    return fold[inverse]


def suffices(folds: Rows) -> bool:
    """Whether there are groups enough to judge by, and rows enough for a level without any one fold."""
    counts = np.bincount(folds)
    return len(counts) >= FEWEST_GROUPS and len(folds) - int(counts.max()) >= MIN_MEASUREMENTS


class HeadTuner:
    """A slice that the query head answers, with enough rows: a correction of the wide part, then the slice's head."""

    kind = "tuned"

    def __init__(
        self, student: Opened, material: Material, number: int, folds: Rows, still: tuple[Material, bool] | None
    ) -> None:
        self._student, self._material, self._number, self._folds = student, material, number, folds
        self._rows = material.rows_of(number)
        self._addition: Addition
        kept = still[0] if still is not None else None
        # Original rows hold the wide part too; the team's own unlabelled texts are its to learn about.
        original = kept if still is not None and still[1] else None
        name = student.slices[number]
        if feature_names(name.split("/")[0]):
            self._addition = Trees(material, number, self._rows, name, folds)
        else:
            self._addition = Grams(student, material, number, folds, original)
        self._still = self._before(kept) if kept is not None else None
        self._steps: list[int] = []

    def shipped(self) -> Answers:
        """See :class:`Tuner`."""
        return self._answers(None, self._asked(self._material.wide[self._rows]), np.arange(len(self._rows)))

    def held_out(self) -> Answers:
        """See :class:`Tuner`."""
        median, score = np.zeros(len(self._rows)), np.zeros(len(self._rows))
        count = int(self._folds.max()) + 1
        for fold in range(count):
            stop = (fold + 1) % count
            mine, inner = np.flatnonzero(self._folds == fold), np.flatnonzero(self._folds == stop)
            rest = np.flatnonzero(self._folds != fold)
            asked = self._asked(self._out_of_fold(fold))
            train = np.setdiff1d(rest, inner)
            _, steps = fit(
                self._student.head,
                self._number,
                asked.rows(torch.from_numpy(train)),
                held_out=asked.rows(torch.from_numpy(inner)),
                still=self._still,
            )
            self._steps.append(steps)
            part, _ = fit(
                self._student.head, self._number, asked.rows(torch.from_numpy(rest)), still=self._still, steps=steps
            )
            found = self._answers(part, asked.rows(torch.from_numpy(mine)), mine)
            median[mine], score[mine] = found.median, found.score
        return Answers(median, score)

    def put(self, draft: Draft) -> None:
        """See :class:`Tuner`; :meth:`held_out` has chosen the number of steps."""
        wide = np.zeros(len(self._rows))
        for fold in np.unique(self._folds):
            mine = self._folds == fold
            wide[mine] = self._addition.without(frozenset({int(fold)}))[mine]
        steps = int(np.median(self._steps))
        part, _ = fit(self._student.head, self._number, self._asked(wide), still=self._still, steps=steps)
        part.written(draft.head)
        self._addition.put(draft)

    def _out_of_fold(self, fold: int) -> Array:
        """Wide predictions without a fold; those of every other fold's rows are without that fold too."""
        wide = self._addition.without(frozenset({fold})).copy()
        for other in np.unique(self._folds):
            if other != fold:
                mine = self._folds == other
                wide[mine] = self._addition.without(frozenset({fold, int(other)}))[mine]
        return wide

    def _asked(self, wide: Array) -> Asked:
        evidence = self._material.evidence[torch.from_numpy(self._rows)]
        return Asked(self._material.asked(self._student, self._rows, wide), evidence)

    def _before(self, still: Material) -> Still | None:
        rows = still.rows_of(self._number)
        if not len(rows):
            return None
        inputs = still.asked(self._student, rows, still.wide[rows])
        asked = Asked(inputs, still.evidence[torch.from_numpy(rows)])
        with torch.no_grad():
            before = SliceHead(self._student.head, self._number)(asked).softmax(1)
        return Still(asked, before)

    def _answers(self, part: SliceHead | None, asked: Asked, rows: Rows) -> Answers:
        found = distributions(self._student, part or SliceHead(self._student.head, self._number), asked)
        scale = self._student.card.slices[self._number].scale
        values = self._material.corpus.rows.value[self._rows[rows]]
        median = scale.quantiles(found, [0.5])[:, 0]
        return Answers(np.log10(np.maximum(median, scale.floor or 1e-12)), scores(found, scale, values))


def distributions(student: Opened, part: SliceHead, asked: Asked) -> Array:
    """Distributions over the outcomes, ``(rows, outcomes)``; no mass at the floor of a slice that has none."""
    with torch.no_grad():
        logits: Tensor = part(asked).double()
        if student.card.slices[part.number].scale.floor == 0:
            logits[:, 0] = -torch.inf
        result: Array = logits.softmax(1).numpy()
    return result


def _at_floor(probabilities: Array, moved: Scale) -> Array:
    """Distributions on a scale some of whose bins have moved to the floor: their mass belongs to it."""
    if not moved.floor:
        return probabilities
    gone = np.concatenate([[False], moved.edges[1:] <= np.log10(moved.floor)])
    found = np.where(gone, 0.0, probabilities)
    found[:, 0] += probabilities[:, gone].sum(axis=1)
    return found


class LevelTuner:
    """A slice that the query head answers, with few rows: level and slope alone."""

    kind = "level"

    def __init__(self, student: Opened, material: Material, number: int, folds: Rows) -> None:
        self._student, self._number, self._folds = student, number, folds
        rows = material.rows_of(number)
        self._actual, self._values = material.actual[rows], material.corpus.rows.value[rows]
        asked = Asked(material.asked(student, rows, material.wide[rows]), material.evidence[torch.from_numpy(rows)])
        self._found = distributions(student, SliceHead(student.head, number), asked)
        self._scale = student.card.slices[number].scale
        median = self._scale.quantiles(self._found, [0.5])[:, 0]
        self._median = np.log10(np.maximum(median, self._scale.floor or 1e-12))

    def shipped(self) -> Answers:
        """See :class:`Tuner`."""
        return Answers(self._median, scores(self._found, self._scale, self._values))

    def held_out(self) -> Answers:
        """See :class:`Tuner`."""
        median, score = np.zeros(len(self._median)), np.zeros(len(self._median))
        entry = self._student.card.slices[self._number]
        for fold in np.unique(self._folds):
            mine = self._folds == fold
            moved = fit_level(self._median[~mine], self._actual[~mine]).slice(entry).scale
            found = _at_floor(self._found[mine], moved)
            median[mine] = np.log10(np.maximum(moved.quantiles(found, [0.5])[:, 0], moved.floor or 1e-12))
            score[mine] = scores(found, moved, self._values[mine])
        return Answers(median, score)

    def put(self, draft: Draft) -> None:
        """See :class:`Tuner`."""
        level = fit_level(self._median, self._actual)
        entry = draft.slices[self._number]
        draft.slices[self._number] = level.slice(entry)
        prefix, _, metric = entry.name.rpartition("/")
        if entry.name in draft.forests:
            draft.forests[entry.name] = level.forest(draft.forests[entry.name])
        elif prefix in draft.parts:
            draft.parts[prefix] = level.part(draft.parts[prefix], metric)


class ForestTuner:
    """A forest that answers alone: trees on its residuals, or with few rows level and slope."""

    def __init__(self, student: Opened, material: Material, number: int, rows: Rows, folds: Rows, *, few: bool) -> None:
        self.kind = "level" if few else "tuned"
        self._key = str(material.keys[rows[0]])
        self._folds, self._wide, self._actual = folds, material.wide[rows], material.actual[rows]
        self._group = material.corpus.rows.group[rows]
        self._addition = None if few else Trees(material, number, rows, self._key, folds)
        spread = student.forests.get(spread_key(self._key))
        told = material.told[number][np.searchsorted(material.rows_of(number), rows)]
        self._sized = spread is not None
        self._log_size = spread.predict(told) if spread is not None else np.zeros(len(rows))

    def shipped(self) -> Answers:
        """See :class:`Tuner`."""
        return Answers(self._wide, (self._actual - self._wide) / 10**self._log_size)

    def held_out(self) -> Answers:
        """See :class:`Tuner`."""
        median, score = np.zeros(len(self._wide)), np.zeros(len(self._wide))
        for fold in np.unique(self._folds):
            mine = self._folds == fold
            slope = 1.0
            if self._addition is not None:
                median[mine] = self._addition.without(frozenset({int(fold)}))[mine]
            else:
                level = self._level(~mine)
                median[mine], slope = level.of(self._wide[mine]), level.slope if self._sized else 1.0
            score[mine] = (self._actual[mine] - median[mine]) / (slope * 10 ** self._log_size[mine])
        return Answers(median, score)

    def put(self, draft: Draft) -> None:
        """See :class:`Tuner`."""
        if self._addition is not None:
            self._addition.put(draft)
            return
        level, spread = self._level(np.ones(len(self._wide), bool)), spread_key(self._key)
        draft.forests[self._key] = level.forest(draft.forests[self._key])
        if spread in draft.forests:
            draft.forests[spread] = level.spread(draft.forests[spread])

    def _level(self, chosen: npt.NDArray[np.bool_]) -> Level:
        return fit_level(self._wide[chosen], self._actual[chosen])
