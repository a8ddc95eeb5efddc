"""Before and after tuning on held-out groups, and whether the tuned slice may be kept.

Ranks are compared within folds: each fold is answered by a model of its own, and the small differences of level between
those would count as mistakes in one ranking of all.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_core.training.evaluation.metrics import Figure, members, spearman, with_interval

from .bands import Bands, Names
from .material import Array, Rows
from .tuners import Answers

_ENOUGH_GROUPS = 5  # for an interval of a correlation
_FEWEST = 4  # rows of a fold whose ranks say something
_WORTH = 5.0  # .03 of Spearman weigh as much as 15 % of the error
_MOST_LOST = 0.05  # of Spearman, whatever the error gains


@dataclass(frozen=True, slots=True)
class Figures:
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
class Verdict:
    """What tuning of a slice (or setting of networks) came to; ``refused`` says why it is left as it was.

    ``kind`` is ``tuned``, or ``level`` where level and slope alone were fitted.
    """

    key: str
    kind: str
    rows: int
    groups: int
    before: Figures
    after: Figures
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
    answers: tuple[Answers, Answers],
    bands: Bands,
    fresh: npt.NDArray[np.bool_],
) -> Verdict:
    """Compare the answers before and after, on rows ``fresh`` whose text no other fold has.

    Args:
        key: the slice or setting.
        kind: how it was tuned.
        actual: log10 of the measured values, ``(rows,)``.
        groups: of the rows.
        folds: of the rows.
        answers: the model's own and those to held-out groups.
        bands: of the slice.
        fresh: the rows that count, ``(rows,)``.
    """
    before, after = answers
    covered = np.zeros(len(actual), bool)
    for fold in np.unique(folds):
        mine = folds == fold
        covered[mine] = bands.after(after.score[~mine], groups[~mine], after.score[mine])
    found = [
        _figures(answer.median[fresh], actual[fresh], groups[fresh], folds[fresh], inside[fresh])
        for answer, inside in ((before, bands.before(before.score)), (after, covered))
    ]
    count = len(np.unique(groups))
    return Verdict(key, kind, len(actual), count, found[0], found[1], _refusal(found[0], found[1], count))


def _figures(median: Array, actual: Array, groups: Names, folds: Rows, covered: npt.NDArray[np.bool_]) -> Figures:
    def rank(rows: Rows) -> float | None:
        values, weights = [], []
        for mine in members(folds[rows]):
            value = spearman(median[rows[mine]], actual[rows[mine]]) if len(mine) >= _FEWEST else None
            if value is not None:
                values.append(value)
                weights.append(len(mine))
        return float(np.average(values, weights=weights)) if values else None

    errors = np.abs(median - actual)
    return Figures(with_interval(groups, rank), float(np.median(errors)), float(errors.mean()), float(covered.mean()))


def _refusal(before: Figures, after: Figures, groups: int) -> str | None:
    ranked, was = after.spearman, before.spearman
    if ranked is None:
        return "the held-out values or their predictions are all alike"
    if groups >= _ENOUGH_GROUPS and ranked.low is not None and ranked.low <= 0:
        return (
            f"the values of held-out groups do not go with their code (Spearman {ranked.value:.2f}, interval from"
            f" {ranked.low:.2f}); check that each value was measured of the text beside it"
        )
    gained = ranked.value - (was.value if was is not None else 0.0)
    told = (
        f"median error {before.error:.3f} to {after.error:.3f}, mean {before.mean_error:.3f} to"
        f" {after.mean_error:.3f}, Spearman {gained:+.3f}"
    )
    # The median alone is at the mercy of a few rows, the mean of the far ones.
    change = (_change(before.error, after.error) + _change(before.mean_error, after.mean_error)) / 2
    if gained < -_MOST_LOST or change >= _WORTH * gained:
        return f"it would not be better on held-out groups ({told})"
    return None


def _change(before: float, after: float) -> float:
    """The relative change of an error; of none at all, whether there is one now."""
    return (after - before) / before if before > 0 else float(after > 0)
