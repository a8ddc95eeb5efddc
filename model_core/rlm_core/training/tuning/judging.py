"""Before and after tuning on held-out groups: figures, calibrated bands, and whether a tuned task may be kept.

With ``MIN_GROUPS`` held-out groups the levels of bands are the team's. With fewer, the model's levels count as ten more
groups, so that three modules do not make a band. Ranks are compared within folds: each fold is predicted by a separate
model, and small offsets between those models would count as mistakes in one ranking of all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rlm_core.inference.calibration import INTERVALS, MIN_GROUPS, Calibration, TaskCalibration, conformal_level, parents
from rlm_core.inference.residuals import Residuals, fit_residuals
from rlm_core.queries.query_vector import task_parts
from rlm_core.training.evaluation.metrics import Figure, RankCorrelation, with_interval
from rlm_core.types import LEVELS

from .data import Array, Rows
from .student import EditableModel
from .tuners import HeldOutScores

Names = npt.NDArray[np.str_]
COVERAGE = 0.8
_PRIOR_GROUPS = 10


class Bands(Protocol):
    """How the bands of a task follow from the scores of held-out rows."""

    def before(self, scores: Array) -> npt.NDArray[np.bool_]:
        """Return whether the untuned model's 80 % bands cover rows with these scores."""
        ...

    def after(self, scores: Array, groups: Names, held: Array) -> npt.NDArray[np.bool_]:
        """Return whether bands that are calibrated on ``scores`` of ``groups`` cover rows with the scores ``held``."""
        ...

    def put(self, editable: EditableModel, scores: Array, groups: Names, devices: Names) -> None:
        """Write the calibration of all held-out rows into a model."""
        ...


class HeadBands:
    """Levels of central intervals, for a task that the query head predicts."""

    def __init__(self, name: str, calibration: Calibration) -> None:
        self._basis, self._language, self._metric, _ = task_parts(name)
        self._own = calibration

    def before(self, scores: Array) -> npt.NDArray[np.bool_]:
        """See :class:`Bands`."""
        level = self._shipped("")
        return scores <= level.at(COVERAGE) if level is not None else np.zeros(len(scores), bool)

    def after(self, scores: Array, groups: Names, held: Array) -> npt.NDArray[np.bool_]:
        """See :class:`Bands`."""
        return held <= self._level("", scores, groups, "").at(COVERAGE)

    def put(self, editable: EditableModel, scores: Array, groups: Names, devices: Names) -> None:
        """See :class:`Bands`."""
        editable.levels |= self.levels(editable.levels, scores, groups, devices)

    def levels(self, known: Mapping[str, Any], scores: Array, groups: Names, devices: Names) -> dict[str, Any]:
        """The new levels as JSON values, of the task and of devices that are ``known`` or have enough groups."""
        found: dict[str, TaskCalibration] = {}
        for device in np.unique(devices):
            selected = devices == device
            name, *_ = parents(self._basis, self._language, self._metric, str(device))
            if name in known or len(np.unique(groups[selected])) >= MIN_GROUPS:
                found[name] = self._level(name, scores[selected], groups[selected], str(device))
        _, name, *_ = parents(self._basis, self._language, self._metric, "")
        found[name] = self._level(name, scores, groups, "")
        return Calibration(found).to_json()

    def _shipped(self, device: str) -> TaskCalibration | None:
        return self._own.lookup(self._basis, self._language, self._metric, device)

    def _level(self, name: str, scores: Array, groups: Names, device: str) -> TaskCalibration:
        count, before = len(np.unique(groups)), self._shipped(device)
        team = np.array([conformal_level(scores, groups, coverage) for coverage in INTERVALS])
        if before is None or count >= MIN_GROUPS:
            return TaskCalibration(name, tuple(team.tolist()), count, len(scores))
        mixed = _mixed(team, np.array(before.levels), count)
        return TaskCalibration(name, tuple(mixed.tolist()), before.groups + count, before.rows + len(scores))


class ForestBands:
    """Quantiles of residuals, for a forest that predicts alone."""

    def __init__(self, key: str, residuals: Residuals) -> None:
        self._key, self._own = key, residuals

    def before(self, scores: Array) -> npt.NDArray[np.bool_]:
        """See :class:`Bands`."""
        return _within(self._own, scores)

    def after(self, scores: Array, groups: Names, held: Array) -> npt.NDArray[np.bool_]:
        """See :class:`Bands`."""
        return _within(self._fitted(scores, groups), held)

    def put(self, editable: EditableModel, scores: Array, groups: Names, devices: Names) -> None:
        """See :class:`Bands`."""
        editable.residuals[self._key] = self._fitted(scores, groups)

    def _fitted(self, scores: Array, groups: Names) -> Residuals:
        team = fit_residuals(scores, groups, self._own.axis)
        if team.groups >= MIN_GROUPS:
            return team
        mixed = _mixed(np.array(team.quantiles), np.array(self._own.quantiles), team.groups)
        groups_, rows = self._own.groups + team.groups, self._own.rows + team.rows
        return Residuals(tuple(round(float(value), 4) for value in mixed), groups_, rows, self._own.axis)


def _mixed(team: Array, before: Array, groups: int) -> Array:
    share = groups / (groups + _PRIOR_GROUPS)
    return share * team + (1 - share) * before


def _within(residuals: Residuals, scores: Array) -> npt.NDArray[np.bool_]:
    low, high = residuals.quantiles[LEVELS.index(0.1)], residuals.quantiles[LEVELS.index(0.9)]
    covered: npt.NDArray[np.bool_] = (low <= scores) & (scores <= high)
    return covered


_ENOUGH_GROUPS = 5  # for an interval of a correlation
_FEWEST = 4  # rows of a fold whose ranks say something
_WORTH = 5.0  # .03 of Spearman are worth 15 % of the error
_MOST_LOST = 0.05  # of Spearman, whatever the error gains


@dataclass(frozen=True, slots=True)
class HeldOutFigures:
    """Spearman, median and mean absolute log10 error, and the share of values inside the 80 % band."""

    spearman: Figure | None
    error: float
    mean_error: float
    coverage: float

    def to_json(self) -> dict[str, Any]:
        """The figures, rounded."""
        known = (
            {key: value and round(value, 4) for key, value in asdict(self.spearman).items()} if self.spearman else None
        )
        numbers = {name: round(getattr(self, name), 4) for name in ("error", "mean_error", "coverage")}
        return {"spearman": known, **numbers}


@dataclass(frozen=True, slots=True)
class TuningResult:
    """The result of tuning a task (or setting of networks); ``refused`` says why it is left unchanged.

    ``kind`` is ``tuned``, or ``level`` where only an offset and a slope were fitted.
    """

    key: str
    kind: str
    rows: int
    groups: int
    before: HeldOutFigures
    after: HeldOutFigures
    refused: str | None

    def to_json(self) -> dict[str, Any]:
        """For the card."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "groups": self.groups,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
        }


def judge(
    key: str,
    kind: str,
    actual: Array,
    groups: Names,
    folds: Rows,
    answers: tuple[HeldOutScores, HeldOutScores],
    bands: Bands,
    fresh: npt.NDArray[np.bool_],
) -> TuningResult:
    """Compare the answers before and after, on rows ``fresh`` whose text no other fold has.

    Args:
        key: the task or setting.
        kind: how it was tuned.
        actual: log10 of the measured values, ``(rows,)``.
        groups: of the rows.
        folds: of the rows.
        answers: of the untuned model, and of models tuned without the groups.
        bands: of the task.
        fresh: whether a row counts, ``(rows,)``.
    """
    before, after = answers
    covered = np.zeros(len(actual), bool)
    for fold in np.unique(folds):
        selected = folds == fold
        covered[selected] = bands.after(after.score[~selected], groups[~selected], after.score[selected])
    found = [
        _figures(answer.median[fresh], actual[fresh], groups[fresh], folds[fresh], inside[fresh])
        for answer, inside in ((before, bands.before(before.score)), (after, covered))
    ]
    count = len(np.unique(groups))
    return TuningResult(key, kind, len(actual), count, found[0], found[1], _refusal(found[0], found[1], count))


def _figures(
    median: Array, actual: Array, groups: Names, folds: Rows, covered: npt.NDArray[np.bool_]
) -> HeldOutFigures:
    ranks = RankCorrelation(median, actual, folds, _FEWEST)
    errors = np.abs(median - actual)
    ranked = with_interval(groups, partial(ranks.mean, weighted=True))
    return HeldOutFigures(ranked, float(np.median(errors)), float(errors.mean()), float(covered.mean()))


def _refusal(before: HeldOutFigures, after: HeldOutFigures, groups: int) -> str | None:
    ranked, was = after.spearman, before.spearman
    if ranked is None:
        return "the held-out values or their predictions are all equal"
    if groups >= _ENOUGH_GROUPS and ranked.low is not None and ranked.low <= 0:
        return (
            f"the values of held-out groups do not depend on their code (Spearman {ranked.value:.2f}, interval from"
            f" {ranked.low:.2f}); check that each value was measured for the text in its row"
        )
    gained = ranked.value - (was.value if was is not None else 0.0)
    figures = (
        f"median error {before.error:.3f} to {after.error:.3f}, mean {before.mean_error:.3f} to"
        f" {after.mean_error:.3f}, Spearman {gained:+.3f}"
    )
    # The median alone depends on a few rows, the mean on outliers.
    change = (_change(before.error, after.error) + _change(before.mean_error, after.mean_error)) / 2
    if gained < -_MOST_LOST or change >= _WORTH * gained:
        return f"it would not be better on held-out groups ({figures})"
    return None


def _change(before: float, after: float) -> float:
    """The relative change of an error; from an error of 0, whether there is one after."""
    return (after - before) / before if before > 0 else float(after > 0)
