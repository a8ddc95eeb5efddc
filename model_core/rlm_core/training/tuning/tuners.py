"""One task (or setting of networks) tuned: predictions for held-out groups, and the change to the model.

Rows are split into folds of whole groups. Each fold is predicted by a fit to the others, in which the corrections are
again out of fold and the number of steps is chosen on a separate fold; the model that is written is fitted to all rows.

Of the query head, only the part of the task is fitted (:class:`TaskHead`): an embedding that steers the base, a bias
over the outcomes, a precision with which it is drawn to the prediction of the n-gram ridge or trees, and a weight of
the deep part's evidence, some three hundred numbers. The rest is frozen, so predictions of other tasks cannot change.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rlm_core.inference.adaptation.fit import MIN_MEASUREMENTS
from rlm_core.inference.calibration import Scale, scores
from rlm_core.inference.features import has_trees
from rlm_core.inference.ngram_ridge import part_name
from rlm_core.inference.residuals import spread_key
from rlm_core.queries.query_vector import task_parts
from rlm_core.training.losses import soft_cross_entropy
from rlm_core.training.student.batches import HeadInputs
from rlm_core.training.student.config import EncoderFitConfig
from rlm_core.training.student.network import Head

from .corrections import AffineCorrection, Correction, NgramCorrection, TreeCorrection, fit_correction
from .data import Array, Rows, TuningData
from .student import EditableModel, LoadedStudent

_SIGMA = EncoderFitConfig().label_sigma
_RATE, _MOST_STEPS, _PATIENCE = 0.02, 120, 15
_DISTANCE = 1e-3  # nats for a squared distance of one from the previous weights
_ANCHOR = 0.1  # nats for a nat of divergence from the previous predictions
FEWEST_GROUPS = 3


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Rows of one task for the head: inputs, with the wide prediction, and the deep part's evidence."""

    inputs: HeadInputs
    evidence: Tensor

    def rows(self, chosen: Tensor) -> TaskBatch:
        """The same for some rows."""
        return TaskBatch(self.inputs.rows(chosen), self.evidence[chosen])


@dataclass(frozen=True, slots=True)
class AnchorRows:
    """Rows whose predictions should not change, and their previous distributions ``(rows, outcomes)``."""

    batch: TaskBatch
    before: Tensor


class TaskHead(nn.Module):
    """Logits of one task over a frozen head: ``(rows, outcomes)``."""

    def __init__(self, head: Head, number: int) -> None:
        super().__init__()
        self.number = number
        self.base = copy.deepcopy(head.base).eval().requires_grad_(False)
        self.weight = nn.Parameter(head.weight[number].detach().clone())
        for tensor in self.fitted():
            tensor.requires_grad_(True)

    def fitted(self) -> list[Tensor]:
        """The tensors to fit; in the tables only the row of the task has a gradient."""
        base = self.base
        return [base.asked.slice.weight, base.bias.weight, base.precision, self.weight]

    def forward(self, batch: TaskBatch) -> Tensor:
        """Logits ``(rows, outcomes)``."""
        i = batch.inputs
        logits: Tensor = self.base(i.wide, i.facts, i.task, i.date, i.query) + self.weight * batch.evidence
        return logits

    def write_to(self, head: Head) -> None:
        """Put the task's rows into a head."""
        with torch.no_grad():
            for target, source in (
                (head.base.asked.slice.weight, self.base.asked.slice.weight),
                (head.base.bias.weight, self.base.bias.weight),
                (head.base.precision, self.base.precision),
            ):
                target[self.number] = source[self.number]
            head.weight[self.number] = self.weight


def fit(
    head: Head,
    number: int,
    train: TaskBatch,
    *,
    held_out: TaskBatch | None = None,
    anchors: AnchorRows | None = None,
    steps: int = _MOST_STEPS,
) -> tuple[TaskHead, int]:
    """Fit a task to rows for ``steps`` steps, or up to the best step on ``held_out``; also the number of steps."""
    part = TaskHead(head, number)
    start = [parameter.detach().clone() for parameter in part.fitted()]
    optimizer = torch.optim.Adam(part.fitted(), lr=_RATE)
    best, best_step, state = math.inf, 0, copy.deepcopy(part.state_dict())
    for step in range(steps + 1):
        if held_out is not None:
            with torch.no_grad():
                reached = float(soft_cross_entropy(part(held_out), held_out.inputs.target, _SIGMA))
            if reached < best - 1e-4:
                best, best_step, state = reached, step, copy.deepcopy(part.state_dict())
            elif step - best_step >= _PATIENCE:
                break
        if step == steps:
            break
        loss = soft_cross_entropy(part(train), train.inputs.target, _SIGMA)
        moved = sum(((now - then) ** 2).sum() for now, then in zip(part.fitted(), start, strict=True))
        loss = loss + _DISTANCE * moved
        if anchors is not None:
            now = F.log_softmax(part(anchors.batch), dim=1)
            loss = loss + _ANCHOR * F.kl_div(now, anchors.before, reduction="batchmean")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            part.base.precision.clamp_(min=0)
            part.weight.clamp_(min=0)
    if held_out is not None:
        part.load_state_dict(state)
        return part, best_step
    return part, steps


@dataclass(frozen=True, slots=True)
class HeldOutScores:
    """Medians in log10 and scores of the measured values, ``(rows,)`` each.

    A score is the smallest level whose central interval covers the value; of forests that predict alone, the residual
    in units of its expected size.
    """

    median: Array
    score: Array


class Tuner(Protocol):
    """Tunes one task or forest."""

    kind: str

    def shipped(self) -> HeldOutScores:
        """The untuned model on the rows."""
        ...

    def held_out(self) -> HeldOutScores:
        """Tuned models on the rows whose groups they have not seen."""
        ...

    def put(self, editable: EditableModel) -> None:
        """Change a model by a fit to all rows."""
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
    """Return whether there are enough groups to judge by, and enough rows without any one fold to fit a line."""
    counts = np.bincount(folds)
    return len(counts) >= FEWEST_GROUPS and len(folds) - int(counts.max()) >= MIN_MEASUREMENTS


class HeadTuner:
    """A task that the query head predicts, with enough rows: its n-gram ridge or trees are corrected, then its head."""

    kind = "tuned"

    def __init__(
        self,
        student: LoadedStudent,
        tuning_data: TuningData,
        number: int,
        folds: Rows,
        anchors: tuple[TuningData, bool] | None,
    ) -> None:
        self._student, self._tuning_data, self._number, self._folds = student, tuning_data, number, folds
        self._rows = tuning_data.rows_of(number)
        self._correction: Correction
        kept = anchors[0] if anchors is not None else None
        # Original rows also anchor the n-gram ridge; the team's unlabelled texts may change it.
        original = kept if anchors is not None and anchors[1] else None
        name = student.tasks[number]
        if has_trees(name):
            self._correction = TreeCorrection(tuning_data, number, self._rows, name, folds)
        else:
            self._correction = NgramCorrection(student, tuning_data, number, folds, original)
        self._anchors = self._before(kept) if kept is not None else None
        self._steps: list[int] = []

    def shipped(self) -> HeldOutScores:
        """See :class:`Tuner`."""
        return self._answers(None, self._batch(self._tuning_data.wide[self._rows]), np.arange(len(self._rows)))

    def held_out(self) -> HeldOutScores:
        """See :class:`Tuner`."""
        median, score = np.zeros(len(self._rows)), np.zeros(len(self._rows))
        count = int(self._folds.max()) + 1
        for fold in range(count):
            stop = (fold + 1) % count
            selected, inner = np.flatnonzero(self._folds == fold), np.flatnonzero(self._folds == stop)
            rest = np.flatnonzero(self._folds != fold)
            batch = self._batch(self._out_of_fold(fold))
            train = np.setdiff1d(rest, inner)
            _, steps = fit(
                self._student.head,
                self._number,
                batch.rows(torch.from_numpy(train)),
                held_out=batch.rows(torch.from_numpy(inner)),
                anchors=self._anchors,
            )
            self._steps.append(steps)
            part, _ = fit(
                self._student.head, self._number, batch.rows(torch.from_numpy(rest)), anchors=self._anchors, steps=steps
            )
            found = self._answers(part, batch.rows(torch.from_numpy(selected)), selected)
            median[selected], score[selected] = found.median, found.score
        return HeldOutScores(median, score)

    def put(self, editable: EditableModel) -> None:
        """See :class:`Tuner`; :meth:`held_out` has chosen the number of steps."""
        wide = np.zeros(len(self._rows))
        for fold in np.unique(self._folds):
            selected = self._folds == fold
            wide[selected] = self._correction.without(frozenset({int(fold)}))[selected]
        steps = int(np.median(self._steps))
        part, _ = fit(self._student.head, self._number, self._batch(wide), anchors=self._anchors, steps=steps)
        part.write_to(editable.head)
        self._correction.put(editable)

    def _out_of_fold(self, fold: int) -> Array:
        """Wide predictions without a fold; those of every other fold's rows are without that fold too."""
        wide = self._correction.without(frozenset({fold})).copy()
        for other in np.unique(self._folds):
            if other != fold:
                selected = self._folds == other
                wide[selected] = self._correction.without(frozenset({fold, int(other)}))[selected]
        return wide

    def _batch(self, wide: Array) -> TaskBatch:
        evidence = self._tuning_data.evidence[torch.from_numpy(self._rows)]
        return TaskBatch(self._tuning_data.head_inputs(self._student, self._rows, wide), evidence)

    def _before(self, anchors: TuningData) -> AnchorRows | None:
        rows = anchors.rows_of(self._number)
        if not len(rows):
            return None
        inputs = anchors.head_inputs(self._student, rows, anchors.wide[rows])
        batch = TaskBatch(inputs, anchors.evidence[torch.from_numpy(rows)])
        with torch.no_grad():
            before = TaskHead(self._student.head, self._number)(batch).softmax(1)
        return AnchorRows(batch, before)

    def _answers(self, part: TaskHead | None, batch: TaskBatch, rows: Rows) -> HeldOutScores:
        found = distributions(self._student, part or TaskHead(self._student.head, self._number), batch)
        scale = self._student.card.tasks[self._number].scale
        values = self._tuning_data.corpus.rows.value[self._rows[rows]]
        median = scale.quantiles(found, [0.5])[:, 0]
        return HeldOutScores(np.log10(np.maximum(median, scale.floor or 1e-12)), scores(found, scale, values))


def distributions(student: LoadedStudent, part: TaskHead, batch: TaskBatch) -> Array:
    """Distributions over the outcomes, ``(rows, outcomes)``; no mass at the floor of a task without one."""
    with torch.no_grad():
        logits: Tensor = part(batch).double()
        if student.card.tasks[part.number].scale.floor == 0:
            logits[:, 0] = -torch.inf
        result: Array = logits.softmax(1).numpy()
    return result


def _at_floor(probabilities: Array, moved: Scale) -> Array:
    """Distributions on a scale with bins that have moved to the floor, which gets their mass."""
    if not moved.floor:
        return probabilities
    gone = np.concatenate([[False], moved.edges[1:] <= np.log10(moved.floor)])
    found = np.where(gone, 0.0, probabilities)
    found[:, 0] += probabilities[:, gone].sum(axis=1)
    return found


class AffineTuner:
    """A task that the query head predicts, with few rows: only an offset and a slope."""

    kind = "level"

    def __init__(self, student: LoadedStudent, tuning_data: TuningData, number: int, folds: Rows) -> None:
        self._student, self._number, self._folds = student, number, folds
        rows = tuning_data.rows_of(number)
        self._actual, self._values = tuning_data.actual[rows], tuning_data.corpus.rows.value[rows]
        batch = TaskBatch(
            tuning_data.head_inputs(student, rows, tuning_data.wide[rows]), tuning_data.evidence[torch.from_numpy(rows)]
        )
        self._found = distributions(student, TaskHead(student.head, number), batch)
        self._scale = student.card.tasks[number].scale
        median = self._scale.quantiles(self._found, [0.5])[:, 0]
        self._median = np.log10(np.maximum(median, self._scale.floor or 1e-12))

    def shipped(self) -> HeldOutScores:
        """See :class:`Tuner`."""
        return HeldOutScores(self._median, scores(self._found, self._scale, self._values))

    def held_out(self) -> HeldOutScores:
        """See :class:`Tuner`."""
        median, score = np.zeros(len(self._median)), np.zeros(len(self._median))
        entry = self._student.card.tasks[self._number]
        for fold in np.unique(self._folds):
            selected = self._folds == fold
            moved = fit_correction(self._median[~selected], self._actual[~selected]).move_task(entry).scale
            found = _at_floor(self._found[selected], moved)
            median[selected] = np.log10(np.maximum(moved.quantiles(found, [0.5])[:, 0], moved.floor or 1e-12))
            score[selected] = scores(found, moved, self._values[selected])
        return HeldOutScores(median, score)

    def put(self, editable: EditableModel) -> None:
        """See :class:`Tuner`."""
        correction = fit_correction(self._median, self._actual)
        entry = editable.tasks[self._number]
        editable.tasks[self._number] = correction.move_task(entry)
        task = task_parts(entry.name)
        part = part_name(task)
        if entry.name in editable.forests:
            editable.forests[entry.name] = correction.move_forest(editable.forests[entry.name])
        elif part in editable.parts:
            editable.parts[part] = correction.move_ridge(editable.parts[part], task)


class ForestTuner:
    """A forest that predicts alone: trees on its residuals, or with few rows an offset and a slope."""

    def __init__(
        self, student: LoadedStudent, tuning_data: TuningData, number: int, rows: Rows, folds: Rows, *, few: bool
    ) -> None:
        self.kind = "level" if few else "tuned"
        self._key = str(tuning_data.keys[rows[0]])
        self._folds, self._wide, self._actual = folds, tuning_data.wide[rows], tuning_data.actual[rows]
        self._group = tuning_data.corpus.rows.group[rows]
        self._correction = None if few else TreeCorrection(tuning_data, number, rows, self._key, folds)
        spread = student.forests.get(spread_key(self._key))
        features = tuning_data.features[number][np.searchsorted(tuning_data.rows_of(number), rows)]
        self._sized = spread is not None
        self._log_size = spread.predict(features) if spread is not None else np.zeros(len(rows))

    def shipped(self) -> HeldOutScores:
        """See :class:`Tuner`."""
        return HeldOutScores(self._wide, (self._actual - self._wide) / 10**self._log_size)

    def held_out(self) -> HeldOutScores:
        """See :class:`Tuner`."""
        median, score = np.zeros(len(self._wide)), np.zeros(len(self._wide))
        for fold in np.unique(self._folds):
            selected = self._folds == fold
            slope = 1.0
            if self._correction is not None:
                median[selected] = self._correction.without(frozenset({int(fold)}))[selected]
            else:
                correction = self._affine(~selected)
                median[selected], slope = (
                    correction.apply(self._wide[selected]),
                    correction.slope if self._sized else 1.0,
                )
            score[selected] = (self._actual[selected] - median[selected]) / (slope * 10 ** self._log_size[selected])
        return HeldOutScores(median, score)

    def put(self, editable: EditableModel) -> None:
        """See :class:`Tuner`."""
        if self._correction is not None:
            self._correction.put(editable)
            return
        correction, spread = self._affine(np.ones(len(self._wide), bool)), spread_key(self._key)
        editable.forests[self._key] = correction.move_forest(editable.forests[self._key])
        if spread in editable.forests:
            editable.forests[spread] = correction.move_spread(editable.forests[spread])

    def _affine(self, chosen: npt.NDArray[np.bool_]) -> AffineCorrection:
        return fit_correction(self._wide[chosen], self._actual[chosen])
