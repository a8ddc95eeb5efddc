"""Fit predicted ratios to two releases of packages: rows of ``tools.experiments.revisions`` -> their spread.

    python -m tools.experiments.revisions_fit ROWS.jsonl

Prints the numbers of :mod:`rlm_core.inference.revisions`, and what they give on packages left out in turn.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from rlm_core.inference.revisions import MOST_WIDENING, REVISIONS, revised
from rlm_core.types import LEVELS, MEDIAN, CostRatio, Metric

from .revisions import Row, log_of

Array = npt.NDArray[np.float64]
_UPPER = LEVELS[MEDIAN + 1 :]
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Changes:
    """Changed functions whose ratio rests on model and work facts, as arrays; logarithms are log10."""

    package: npt.NDArray[np.str_]
    true: Array
    predicted: Array
    agreed: Array
    repeat: Array

    def errors(self, metric: Metric) -> Array:
        """The distance of the truth from the ratio that revisions confirm."""
        kept = [
            revised(CostRatio("call", metric, None, "", 10**log, (), (), None, agreed)).ratio
            for log, agreed in zip(self.predicted, self.agreed, strict=True)
        ]
        result: Array = np.abs(self.true - np.log10(np.array(kept, np.float64)))
        return result


def main() -> None:
    """Print the spread of both metrics, and the coverage of its bands on packages left out in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=Path, help="the rows.jsonl of a run")
    lines = [json.loads(line) for line in parser.parse_args().rows.read_text(encoding="utf-8").splitlines()]
    for metric in REVISIONS:
        rows = [Row(**line) for line in lines if line["metric"] == metric and line["agreed"] is not None]
        log = log_of(metric)
        changes = Changes(
            np.array([row.package for row in rows]),
            np.array([log(row.after) - log(row.before) for row in rows]),
            np.array([row.ratio for row in rows], np.float64),
            np.array([row.agreed for row in rows], np.float64),
            np.array([row.repeat for row in rows]),
        )
        errors, everything = changes.errors(metric), np.ones(len(rows), bool)
        spread, distances = _fitted(changes, errors, everything)
        inside, width = np.zeros(len(rows), bool), np.zeros(len(rows))
        for package in np.unique(changes.package):
            held = changes.package == package
            its, steps = _fitted(changes, errors, ~held)
            reach = _reach(steps[_UPPER.index(0.9)], 0.9, _sizes(changes, its), changes.repeat)
            inside[held], width[held] = (errors <= reach + _ROUNDING)[held], 2 * reach[held]
        by_package = [inside[changes.package == name].mean() for name in np.unique(changes.package)]
        print(
            f"{metric}: RevisionSpread({spread.round(3).tolist()}, {np.round(distances, 2).tolist()}, {len(rows)});"
            f" error {np.median(errors):.4f}; 80 % bands of packages left out: {inside.mean():.3f} inside,"
            f" {np.mean(by_package):.3f} as mean of packages, {10 ** np.median(width):.2f}x wide"
        )


def _sizes(changes: Changes, spread: Array) -> Array:
    sizes: Array = spread[0] + spread[1] * np.minimum(np.abs(changes.predicted), MOST_WIDENING)
    return sizes


def _reach(step: float, level: float, sizes: Array, repeat: Array) -> Array:
    """How far a band reaches from its median: what revisions add, joined with what repeating a measurement does."""
    result: Array = np.hypot(step * sizes, NormalDist().inv_cdf(level) * repeat)
    return result


def _fitted(changes: Changes, errors: Array, chosen: npt.NDArray[np.bool_]) -> tuple[Array, list[float]]:
    """The expected size of an error, and the distances at ``_UPPER`` that cover the functions chosen."""
    ones = np.ones_like(errors)
    inputs = np.stack([ones, np.minimum(np.abs(changes.predicted), MOST_WIDENING)], axis=1)
    spread = np.maximum(np.linalg.lstsq(inputs[chosen], errors[chosen], rcond=None)[0], [1e-3, 0.0])
    sizes = _sizes(changes, spread)
    distances = []
    for level in _UPPER:
        # What is left of an error when the spread of repetitions is taken from it, in units of the size.
        free = errors**2 - (NormalDist().inv_cdf(level) * changes.repeat) ** 2
        steps = np.sqrt(np.maximum(free, 0.0)) / sizes
        distances.append(float(np.quantile(steps[chosen], 2 * level - 1, method="higher")))
    return spread, distances


if __name__ == "__main__":
    main()
