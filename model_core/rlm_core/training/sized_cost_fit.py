"""Labels at several sizes -> the forests of costs at sizes: ``python -m rlm_core.training.sized_cost_fit``.

One forest gives the decades between the cost at sizes and the one for small inputs, a second one the size of its
errors. Rows are functions at one size each, with the sizes that the facts of their text depend on, as users give them.
Packages are split as a whole: the growth head behind the features and the forests behind the errors have not seen the
package of a row.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingRegressor

from rlm_core.cost.at_sizes import depends_on_nothing
from rlm_core.inference import input_growth, sized_cost
from rlm_core.inference.adaptation.predictor import with_corrections
from rlm_core.inference.card import read_card
from rlm_core.inference.cost_curve import COVERAGE
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.sized_cost import FEATURES, MOST_WIDTH, RATIO, RISING, SIZED_COST, WIDTH, log_seconds
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.trees import Forest
from rlm_core.queries.function_sizes import text_at
from rlm_core.types import MEDIAN, CodeText, Query, SizeValue

from .datasets.cache import default_cache
from .datasets.scaled import labelled_functions, read_labels
from .input_growth_fit import SlopeRows, fit_scaling, read_pairs
from .input_growth_fit import fit as fit_growth
from .student.forest_fit import to_forest
from .student.ngram_ridge_fit import fold_of

Array = npt.NDArray[np.float64]
FOLDS = 4
FACTORS = (1, 3, 10, 30, 100)
_LARGEST = 1e300  # of a number as an input
_RATIO_TREES, _WIDTH_TREES = 120, 80
_NEAR = 0.15  # decades: smaller errors have the same weight
_LEAST_ERROR = 0.05  # decades: what measurements differ by


def open_points(label: dict[str, Any], code: CodeText) -> Iterator[tuple[dict[str, Any], CodeText, CodeText]]:
    """The points of a label at which its text does not fix the cost, with the function at their sizes.

    Each comes with the function whose facts have the sizes in them. Points with all inputs grown count.
    """
    grown = label["points"][0]["grown"]
    points = {point["factor"]: point for point in label["points"][::-1] if point["grown"] == grown}
    for factor in FACTORS:
        point = points.get(factor)
        if point is None or point["seconds"] <= 0:
            continue
        sizes = tuple(SizeValue(name, float(min(size, _LARGEST)), "recorded") for name, size in point["sizes"].items())
        at_sizes = text_at(code, sizes)
        if at_sizes is not None and at_sizes.work is not None and not depends_on_nothing(at_sizes.work, "latency"):
            yield point, replace(code, sizes=sizes), at_sizes


@dataclass(frozen=True, slots=True)
class SizedRows:
    """Functions at one size each.

    ``features (rows, features)``, the measured ``decades (rows,)`` above the cost for small inputs, the ``factor`` of
    the sizes over those of the tests, and whether a number may be stated (``is_open``) if the band is narrow.
    """

    features: npt.NDArray[np.float32]
    decades: Array
    factor: npt.NDArray[np.int64]
    package: npt.NDArray[np.str_]
    is_open: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.features)


def read_rows(
    labels: Iterable[dict[str, Any]],
    cache: Path,
    predictor: Predictor,
    growth_of: Callable[[str], Sequence[Forest]],
    *,
    download: bool = True,
) -> SizedRows:
    """The rows of labels; ``growth_of`` gives the forests of the growth head for a package."""
    features, others = [], []
    for label, code in labelled_functions(labels, cache, download=download):
        [[small]] = predictor.predict([code], [[Query("latency")]])
        points = list(open_points(label, code)) if small.quantiles else []
        inputs = input_growth.inputs_of(code) if points else ()
        if not inputs:
            continue
        table = input_growth.step_probabilities(growth_of(label["package"]), input_growth.features_of(code, inputs))
        steps = dict(zip(inputs, table, strict=True))
        for point, with_sizes, at_sizes in points:
            row = sized_cost.features_of(with_sizes, at_sizes, small.quantiles, steps)
            if row is not None:
                features.append(row)
                above = log_seconds(point["seconds"]) - log_seconds(small.quantiles[MEDIAN])
                is_open = sized_cost.is_stated(with_sizes, row, 0.0, steps)
                others.append((above, point["factor"], label["package"], is_open))
    decades, factors, packages, are_open = zip(*others, strict=True) if others else ((), (), (), ())
    return SizedRows(
        np.concatenate(features or [np.zeros((0, len(FEATURES)), np.float32)]),
        np.array(decades, np.float64),
        np.array(factors, np.int64),
        np.array(packages, np.str_),
        np.array(are_open, np.bool_),
    )


def growth_heads(pairs: SlopeRows) -> list[list[Forest]]:
    """The forests of the growth of latency, one head per fold that has not seen the packages of this fold."""
    fold = np.array([fold_of(name, FOLDS) for name in pairs.family.tolist()])
    heads = [fit_growth(pairs, "latency", fold != number) for number in range(FOLDS)]
    scores = np.zeros((len(pairs), len(input_growth.STEPS)))
    for number, head in enumerate(heads):
        scores[fold == number] = input_growth.step_scores(head, pairs.features[fold == number])
    scaling = fit_scaling(pairs.slopes["latency"], scores)
    return [scaling.of_forests(head) for head in heads]


def fit_ratio(features: npt.NDArray[np.float32], decades: Array) -> Forest:
    """The forest of the decades above the cost for small inputs; it never falls with a size.

    The second of two fits weighs rows by the inverse of their errors in the first, so that the median is met rather
    than the mean: the leaves of a fit of absolute errors would not keep to what may only rise.
    """
    columns = _columns(features)
    rising = [int(FEATURES[column] in RISING) for column in columns]
    weights = np.ones(len(decades))
    for _ in range(2):
        model = _boosted(_RATIO_TREES, monotonic_cst=rising).fit(features[:, columns], decades, sample_weight=weights)
        weights = 1 / np.maximum(np.abs(decades - model.predict(features[:, columns])), _NEAR)
        weights /= weights.mean()
    return to_forest([model], columns)


def fit_width(features: npt.NDArray[np.float32], errors: Array) -> Forest:
    """The forest of the logarithm of the size of errors in decades."""
    columns = _columns(features)
    model = _boosted(_WIDTH_TREES).fit(features[:, columns], np.log(np.abs(errors) + _LEAST_ERROR))
    return to_forest([model], columns)


def _columns(features: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The columns with a value in some row: the learner takes no others."""
    return np.flatnonzero(np.isfinite(features).any(axis=0))


def _boosted(rounds: int, **more: Any) -> HistGradientBoostingRegressor:
    shape = {"max_leaf_nodes": 12, "min_samples_leaf": 40, "l2_regularization": 5.0, "max_features": 0.4}
    return HistGradientBoostingRegressor(
        max_iter=rounds, learning_rate=0.08, early_stopping=False, random_state=0, **shape, **more
    )


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """What forests that have not seen a row's package say of it: decades, and half of the width of the band."""

    decades: Array
    half: Array
    scale: float
    """What the size of an error is multiplied with, so that the band covers its share of the rows."""


def out_of_fold(rows: SizedRows) -> OutOfFold:
    """The answers for each fold of packages, by forests that were fitted on the others."""
    fold = np.array([fold_of(name, FOLDS) for name in rows.package.tolist()])
    ratio = _by_fold(fold, rows.features, rows.decades, fit_ratio)
    errors = rows.decades - ratio
    sizes = np.exp(_by_fold(fold, rows.features, errors, fit_width))
    scale = float(np.quantile(np.abs(errors) / sizes, COVERAGE))
    return OutOfFold(ratio, scale * sizes, scale)


def _by_fold(
    fold: npt.NDArray[np.int64],
    features: npt.NDArray[np.float32],
    values: Array,
    fitted: Callable[[npt.NDArray[np.float32], Array], Forest],
) -> Array:
    found = np.zeros(len(values))
    for number in np.unique(fold):
        seen = fold != number
        found[~seen] = fitted(features[seen], values[seen]).predict(features[~seen])
    return found


def fit(rows: SizedRows, judged: OutOfFold) -> dict[str, Forest]:
    """Both forests, fitted on all rows; the width is that of errors of forests that have not seen the package."""
    width = fit_width(rows.features, rows.decades - judged.decades)
    offset = (width.offset + np.array([np.log(judged.scale), 0, 0])).astype(np.float32)
    return {RATIO: fit_ratio(rows.features, rows.decades), WIDTH: replace(width, offset=offset)}


def figures(rows: SizedRows, decades: Array, half: Array) -> dict[str, Any]:
    """By factor and among all rows: how many numbers are stated, and how good they and those for small inputs are."""
    stated = rows.is_open & (2 * half <= MOST_WIDTH)
    result: dict[str, Any] = {}
    for factor in np.unique(rows.factor).tolist():
        of_factor = rows.factor == factor
        chosen = of_factor & stated
        if not chosen.any():
            continue
        now, before = (np.abs(rows.decades - one)[chosen] for one in (decades, np.zeros(len(rows))))
        result[f"{factor} times"] = {
            "functions": int(chosen.sum()),
            "share of functions": round(float(chosen.sum() / of_factor.sum()), 3),
            "error in decades": _rounded(np.median(before), np.median(now)),
            "within 3x": _rounded(np.mean(before < math.log10(3)), np.mean(now < math.log10(3))),
            "within 10x": _rounded(np.mean(before < 1), np.mean(now < 1)),
            "inside the band": round(float(np.mean(now <= half[chosen])), 3),
            "median width": round(float(10 ** np.median(2 * half[chosen])), 1),
        }
    return result


def _rounded(*values: float) -> list[float]:
    """The figures of the number for small inputs and of the forests."""
    return [round(float(value), 3) for value in values]


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the forests on all rows, print how they answer for unseen packages, and add them to a model."""
    parser = argparse.ArgumentParser(description="Fit the forests of costs at sizes and add them to a model.")
    parser.add_argument("--labels", type=Path, action="append", required=True, help="labels at several sizes")
    parser.add_argument("--slopes", type=Path, action="append", required=True, help="`data build scaled` of them")
    parser.add_argument("--source-cache", type=Path, default=default_cache(), help="folder of wheels and archives")
    parser.add_argument("--model", type=Path, required=True, help="directory of an exported model with a growth head")
    parser.add_argument("--write", action="store_true", help="add the forests to the model")
    options = parser.parse_args(arguments)
    predictor = with_corrections(OnnxPredictor(options.model, threads=1), cpu=False)
    heads = growth_heads(read_pairs(options.slopes))
    rows = read_rows(
        read_labels(options.labels), options.source_cache, predictor, lambda name: heads[fold_of(name, FOLDS)]
    )
    judged = out_of_fold(rows)
    result = {"rows": len(rows), "packages": len(np.unique(rows.package))}
    print(json.dumps(result | {"unseen packages, by folds": figures(rows, judged.decades, judged.half)}, indent=1))
    if options.write:
        card = read_card(options.model)  # before a file of it changes
        sized_cost.save(fit(rows, judged), options.model / SIZED_COST)
        replace(card, files={}).write(options.model, list(dict.fromkeys([*card.files, SIZED_COST])))


if __name__ == "__main__":
    main()
