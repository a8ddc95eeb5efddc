"""Data sets of slopes -> the forests of the growth head of functions: ``python -m rlm_core.training.input_growth_fit``.

One forest per metric and step, fitted together as a classifier. Rows are pairs of a function and one of its inputs;
packages are split as a whole, so ``--folds`` says how the head answers for packages that it has not seen.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingClassifier

from rlm_core.inference import input_growth
from rlm_core.inference.card import read_card
from rlm_core.inference.input_growth import (
    METRICS,
    STEPS,
    features_of,
    softmax,
    step_of,
    step_probabilities,
    step_scores,
)
from rlm_core.inference.trees import Forest
from rlm_core.types import LEAST_GROWTH, CodeText

from .datasets.scaled import read_slopes
from .datasets.schema import read_facts
from .student.forest_fit import to_forest
from .student.ngram_ridge_fit import fold_of

Array = npt.NDArray[np.float64]
FOLDS = 8
_TREES, _RATE, _LEAVES, _LEAF_ROWS, _L2, _SHARE_OF_FEATURES = 150, 0.05, 8, 15, 5.0, 0.3
_CENTRES = np.array([0.0, 0.5, 1.0, 2.0])
"""The slope that a step stands for."""
TOLERANCE = 0.3
_NEVER = -9.0
_PULL = 1e-3


@dataclass(frozen=True, slots=True)
class SlopeRows:
    """Pairs of a function and an input: ``features (rows, features)``, slopes by metric ``(rows,)``, NaN if unknown."""

    features: input_growth.Array
    slopes: dict[str, Array]
    family: npt.NDArray[np.str_]
    function: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.features)


def read_pairs(paths: Sequence[Path]) -> SlopeRows:
    """The pairs of data sets of slopes.

    Raises:
        DataError: a file is missing or is not a data set of slopes.
    """
    features, slopes, families, functions = [], [], [], []
    for row in (row for path in paths for row in read_slopes(path)):
        of_metric = [row[metric] or {} for metric in METRICS]
        inputs = sorted({name for one in of_metric for name in one})
        code = CodeText(row["text"], "python", "call", work=read_facts(row["work"]))
        features.append(features_of(code, inputs))
        slopes += [[one.get(name, np.nan) for one in of_metric] for name in inputs]
        families += [row["family"]] * len(inputs)
        functions += [row["id"]] * len(inputs)
    table = np.array(slopes).reshape(-1, len(METRICS))
    by_metric = {metric: table[:, place] for place, metric in enumerate(METRICS)}
    return SlopeRows(np.concatenate(features), by_metric, np.array(families), np.array(functions))


def fit(rows: SlopeRows, metric: str, chosen: npt.NDArray[np.bool_], *, seed: int = 0) -> list[Forest]:
    """The forests of a metric, one per step, fitted on the chosen rows that have a slope."""
    chosen = chosen & np.isfinite(rows.slopes[metric])
    steps = np.array([step_of(slope) for slope in rows.slopes[metric][chosen]])
    model = HistGradientBoostingClassifier(
        max_iter=_TREES,
        learning_rate=_RATE,
        max_leaf_nodes=_LEAVES,
        min_samples_leaf=_LEAF_ROWS,
        l2_regularization=_L2,
        max_features=_SHARE_OF_FEATURES,
        early_stopping=False,
        random_state=seed,
    ).fit(rows.features[chosen], steps)
    places = {int(step): place for place, step in enumerate(model.classes_)}
    return [_of_class(model, places[step]) if step in places else _leaf(_NEVER) for step in range(len(STEPS))]


def _leaf(value: float) -> Forest:
    """A forest that always says the same, such as that a step which no row has is out of the question."""
    one = np.zeros(1, np.int32)
    return Forest(
        np.array([-1], np.int16), np.zeros(1, np.float32), one, one, np.ones(1, np.bool_),
        np.array([value], np.float32), one, np.array([0.0, -1.0, 0.0], np.float32),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _OneClass:
    """One output of a classifier, in the form that :func:`to_forest` reads."""

    _baseline_prediction: Array
    _predictors: list[tuple[Any]]


def _of_class(model: HistGradientBoostingClassifier, place: int) -> Forest:
    if len(model.classes_) == 2:  # then there is one tree a round, for the second class against the first
        if not place:
            return _leaf(0.0)
        place = 0
    trees = [(of_classes[place],) for of_classes in model._predictors]
    baseline = np.ravel(model._baseline_prediction)[place : place + 1]
    return to_forest([_OneClass(baseline, trees)], np.arange(len(input_growth.FEATURES)))


def out_of_fold(rows: SlopeRows, metric: str, folds: int = FOLDS) -> Array:
    """The scores of the steps from forests that have not seen a row's package, ``(rows, steps)``."""
    fold = np.array([fold_of(family, folds) for family in rows.family.tolist()])
    table = np.zeros((len(rows), len(STEPS)))
    for number in np.unique(fold):
        table[fold == number] = step_scores(fit(rows, metric, fold != number), rows.features[fold == number])
    return table


@dataclass(frozen=True, slots=True)
class Scaling:
    """What makes the probabilities of unseen packages true: scores times ``factor``, plus one number per step."""

    factor: float
    added: Array

    def __call__(self, scores: Array) -> Array:
        """The scaled scores, ``(rows, steps)``."""
        return scores * self.factor + self.added

    def of_forests(self, forests: Sequence[Forest]) -> list[Forest]:
        """The forests with the scaled scores."""
        return [
            replace(
                forest,
                value=(forest.value * self.factor).astype(np.float32),
                offset=(forest.offset * np.array([self.factor, 1, 1]) + np.array([added, 0, 0])).astype(np.float32),
            )
            for forest, added in zip(forests, self.added, strict=True)
        ]


def fit_scaling(slopes: Array, scores: Array) -> Scaling:
    """The scaling with the largest likelihood of the known steps."""
    known = np.isfinite(slopes)
    steps, scores = np.array([step_of(slope) for slope in slopes[known]]), scores[known]

    def loss(values: Array) -> float:
        scaled = Scaling(float(np.exp(values[0])), np.concatenate([[0.0], values[1:]]))(scores)
        chosen = np.log(softmax(scaled)[np.arange(len(steps)), steps] + 1e-12)
        # A weak pull to no change, for steps that few rows have.
        return float(-chosen.mean() + _PULL * (values**2).sum())

    best = minimize(loss, np.zeros(len(STEPS)), method="L-BFGS-B").x
    return Scaling(float(np.exp(best[0])), np.concatenate([[0.0], best[1:]]))


def scaled_of_others(slopes: Array, scores: Array, family: npt.NDArray[np.str_]) -> Array:
    """Probabilities scaled by what was fitted on the other half of the packages, ``(rows, steps)``."""
    half = np.array([fold_of(f"half {name}", 2) for name in family.tolist()])
    table = np.zeros_like(scores)
    for number in (0, 1):
        table[half == number] = softmax(
            fit_scaling(slopes[half != number], scores[half != number])(scores[half == number])
        )
    return table


def figures(slopes: Array, table: Array, least: float = LEAST_GROWTH) -> dict[str, float]:
    """How often a step is said, and how often its slope is right within :data:`TOLERANCE`."""
    known = np.isfinite(slopes)
    slopes, table = slopes[known], table[known]
    best = table.argmax(axis=1)
    said = table.max(axis=1) >= least
    right = np.abs(_CENTRES[best] - slopes) <= TOLERANCE
    grows = said & (best >= STEPS.index("linear"))
    return {
        "pairs": len(slopes),
        "said": float(said.mean()),
        "right where said": float(right[said].mean()) if said.any() else np.nan,
        "grow": int((slopes >= input_growth.STEP_ENDS[1]).sum()),
        "said to grow": int(grows.sum()),
        "right where said to grow": float(right[grows].mean()) if grows.any() else np.nan,
        "said to be steep": int((said & (best == STEPS.index("steep"))).sum()),
        "mean probability": float(table.max(axis=1)[said].mean()) if said.any() else np.nan,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the head on all rows, print how it answers for unseen packages, and add it to a model."""
    parser = argparse.ArgumentParser(description="Fit the growth head of functions and add it to a model.")
    parser.add_argument("--data", type=Path, action="append", required=True, help="data sets of `data build scaled`")
    parser.add_argument("--test", type=Path, action="append", default=[], help="data sets that only judge")
    parser.add_argument("--model", type=Path, help="directory of an exported model; nothing is written without it")
    options = parser.parse_args(arguments)
    rows = read_pairs(options.data)
    everything = np.ones(len(rows), np.bool_)
    report, forests = {}, {}
    for metric in METRICS:
        slopes, scores = rows.slopes[metric], out_of_fold(rows, metric)
        report[metric] = figures(slopes, scaled_of_others(slopes, scores, rows.family))
        forests[metric] = fit_scaling(slopes, scores).of_forests(fit(rows, metric, everything))
    result: dict[str, Any] = {"packages": len(np.unique(rows.family)), "unseen packages, by folds": report}
    if options.test:
        judged = read_pairs(options.test)
        result["test"] = {
            metric: figures(judged.slopes[metric], step_probabilities(forests[metric], judged.features))
            for metric in METRICS
        }
    print(json.dumps(result, indent=1))
    if options.model is not None:
        card = read_card(options.model)  # before a file of it changes
        input_growth.save(forests, options.model / input_growth.INPUT_GROWTH)
        names = list(dict.fromkeys([*card.files, input_growth.INPUT_GROWTH]))
        replace(card, files={}).write(options.model, names)


if __name__ == "__main__":
    main()
