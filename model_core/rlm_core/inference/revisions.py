"""How the cost of a function changes from one revision to the next: a predicted ratio -> one that revisions confirm.

Ratios of functions are fitted on generated edits, nearly all of which change the cost. Most functions that differ
between two releases of a package cost what they cost before: on such functions an uncorrected ratio is further from
the truth than a ratio of 1. What holds is a change on which the model and the work facts agree, if it is not small.
A measurement is carried over by that, with a band as wide as revisions showed, wider where a large change is predicted.

The numbers come from ``tools/experiments/revisions_fit.py``: functions of 19 packages from PyPI, each measured at two
releases with the same tests. Ratios of texts that fix their cost are arithmetic and stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlm_core.types import LEVELS, MEDIAN, CalibrationSource, CodeText, CostRatio, Metric, Query

from .calibration import bands
from .pair_direction import GIVEN
from .predictor import Predictor

# Half of a change counts where they agree on this much of it, next to nothing where on little, and all where on more.
_HALF_AGREED, _STEEPNESS = 0.5, 3
# What only one of the two sees says little: this share of it decides the direction.
_LEAN, _MOST_LEANING = 0.02, 0.3
MOST_WIDENING = 1.0
_GROUPS = 19
_TASK = "revisions"


@dataclass(frozen=True, slots=True)
class RevisionSpread:
    """The spread of changes between revisions, for one metric in log10.

    ``agreement_counts`` says whether agreed changes were found to be real. An error is expected to be ``spread[0] +
    spread[1] * |predicted log10 ratio|``; ``distances`` are those of ``LEVELS`` above the median from it, in that unit,
    and ``rows`` is the number of functions.
    """

    agreement_counts: bool
    spread: tuple[float, float]
    distances: tuple[float, ...]
    rows: int


REVISIONS: Mapping[Metric, RevisionSpread] = {
    "latency": RevisionSpread(True, (0.093, 0.27), (0.0, 0.0, 0.35, 1.01, 1.95, 2.88, 4.46, 7.42), 574),
    "memory": RevisionSpread(False, (0.119, 0.656), (0.0, 0.0, 0.0, 1.2, 2.76, 4.73, 7.1, 8.87), 596),
}


def _is_revised(ratio: CostRatio) -> bool:
    return bool(ratio.bands) and ratio.bands[0].source.task.startswith(f"{_TASK}/")


def agreement(moved: float, work: float) -> float:
    """The change, in log10, on which the model's medians and the work facts agree: 0 where their directions differ."""
    return math.copysign(min(abs(moved), abs(work)), moved) if moved * work > 0 else 0.0


def _confirmed(predicted: float, agreed: float) -> float:
    """Return the part of a predicted change that counts, in log10: between it and the agreed change if not small."""
    if predicted * agreed <= 0:
        return 0.0
    counted = abs(agreed) ** _STEEPNESS
    share = counted / (counted + _HALF_AGREED**_STEEPNESS)
    return math.copysign(share * math.sqrt(predicted * agreed), predicted)


def of_revisions(ratio: CostRatio) -> CostRatio:
    """The ratio of two revisions of a function, rather than of two ways to write it.

    Which revision costs more is known where both texts fix the cost without sizes that are given. Other directions,
    which hold for rewrites, are mostly wrong: what a commit adds is often not reached by a call, whatever the sizes.
    """
    is_given = any(size.source in GIVEN for size in ratio.sizes)
    if ratio.agreed is None and not is_given:
        return ratio
    return revised(replace(ratio, agreed=ratio.agreed or 0.0, is_decided=False))


def compare_revisions(
    predictor: Predictor, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
) -> list[list[CostRatio]] | None:
    """Compare the revisions of units; None where the model cannot compare texts."""
    ratios = predictor.compare(pairs, queries)
    return [[of_revisions(ratio) for ratio in line] for line in ratios] if ratios is not None else None


def revised(ratio: CostRatio) -> CostRatio:
    """A ratio of two revisions of a function; one without a known agreement (``ratio.agreed``) as it is.

    So is one that is corrected already.
    """
    model = REVISIONS.get(ratio.metric)
    if ratio.ratio is None or ratio.agreed is None or model is None or _is_revised(ratio):
        return ratio
    predicted = math.log10(ratio.ratio)
    centre = _confirmed(predicted, ratio.agreed) if model.agreement_counts else 0.0
    centre += _LEAN * min(max(predicted, -_MOST_LEANING), _MOST_LEANING)
    size = model.spread[0] + model.spread[1] * min(abs(predicted), MOST_WIDENING)
    steps = np.array([*(-step for step in reversed(model.distances)), 0.0, *model.distances])
    quantiles = tuple(float(10**log) for log in centre + size * steps)
    assert len(quantiles) == len(LEVELS), "a distance for each level"
    source = CalibrationSource(f"{_TASK}/{ratio.basis}/{ratio.metric}")
    banded = bands(quantiles, _GROUPS, model.rows, source)
    return replace(ratio, ratio=quantiles[MEDIAN], bands=banded, quantiles=quantiles)
