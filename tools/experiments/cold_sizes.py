"""Whether sizes make a number of functions whose text does not fix their cost, judged by measurements at several sizes.

    python -m tools.experiments.cold_sizes LABELS --slopes SLOPES --source-cache DIR [--of-facts] [--exam LABELS]

In: labels of `python -m tools.label_run.collect`, and the data set of slopes made of them. Judged at 1, 10 and 100
times the sizes of the tests: the shipped number for small inputs, and boosted trees on its quantiles, on the facts, and
on the growth at the sizes. Growth head and trees answer for packages that they were not fitted on. Out: a line of JSON
per factor, for all functions and for those with a probable growth and a band of at most 30x. With ``--of-facts``, only
sizes of inputs that the facts depend on are known, as where users give them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.cost.at_sizes import depends_on_nothing
from rlm_core.inference.adaptation.predictor import with_corrections
from rlm_core.inference.input_growth import features_of, inputs_of, step_probabilities
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.trees import Forest
from rlm_core.inference.work_mixture import known_wait, stated_floor
from rlm_core.queries import function_sizes
from rlm_core.training.input_growth_fit import fit, read_pairs
from rlm_core.training.student.ngram_ridge_fit import fold_of
from rlm_core.types import LEVELS, MEDIAN, CodeText, Query, SizeValue
from sklearn.ensemble import HistGradientBoostingRegressor

from .sized_exam import functions

Array = npt.NDArray[np.float64]
_FOLDS, _COVERAGE, _INPUTS = 4, 0.8, 2
_FACTORS, _REPORTED = (1, 3, 10, 30, 100), (1, 10, 100)
_SLOPES = np.array([0.0, 0.5, 1.0, 2.0])  # that a step of growth stands for
_SMALL, _SLOPE = 0, 5  # features: the number for small inputs, and the slope of the input that the cost grows most with
_WIDEST, _STEEP = math.log10(30), 0.5
_LEAST, _LARGEST = 5e-8, 10**300


@dataclass(frozen=True, slots=True)
class Asked:
    """A function at one size, with the features of the trees."""

    package: str
    factor: int
    seconds: float
    features: tuple[float, ...]


def _log(value: float, least: float = 1e-9) -> float:
    return math.log10(min(max(value, least), 1e12))


def asked(
    label: dict[str, Any], code: CodeText, quantiles: tuple[float, ...], head: list[Forest], *, of_facts: bool
) -> Iterator[Asked]:
    """A function at the sizes at which its text does not fix its cost."""
    inputs = inputs_of(code)
    known_inputs = set(function_sizes.inputs_of(code.text, code.work).values())
    if not inputs or code.work is None or code.work.fixed or (of_facts and not known_inputs):
        return
    chances = dict(zip(inputs, step_probabilities(head, features_of(code, inputs)), strict=True))
    slopes = {name: float(chance @ _SLOPES) for name, chance in chances.items()}
    small = [_log(quantiles[place], _LEAST) for place in (MEDIAN, LEVELS.index(0.1), LEVELS.index(0.9))]
    points = {
        point["factor"]: point for point in label["points"][::-1] if point["grown"] == label["points"][0]["grown"]
    }
    for factor in _FACTORS:
        point = points.get(factor)
        if point is None or point["seconds"] <= 0:
            continue
        given = {name: size for name, size in point["sizes"].items() if not of_facts or name in known_inputs}
        sizes = {name: float(min(size, _LARGEST)) for name, size in given.items()}
        at_sizes = function_sizes.text_at(code, tuple(SizeValue(name, size, "query") for name, size in sizes.items()))
        work = at_sizes.work if at_sizes is not None else code.work
        if work is None or depends_on_nothing(work, "latency"):
            continue
        logs = {name: _log(sizes[name], 1.0) for name in inputs if name in sizes}
        growth = [sum(slopes[name] * (log - far) for name, log in logs.items()) for far in (0, 1)]
        leading = sorted(logs, key=lambda name: -slopes[name])[:_INPUTS]
        of_inputs = [value for name in leading for value in (slopes[name], logs[name], *chances[name][[0, 2, 3]])]
        of_inputs += [math.nan] * (5 * _INPUTS - len(of_inputs))
        costs = work.latency
        known = [_log(one) for one in (costs.known.least, costs.known.likely, costs.known.most, costs.typical)]
        known += [_log(stated_floor(work, "latency") + known_wait(work)[0])]
        largest = max(logs.values(), default=math.nan), max((_log(size, 1.0) for size in sizes.values()), default=0.0)
        others = [math.log1p(min(one, 1e9)) for one in (work.unknown_calls, work.opaque)]
        others += [
            float(work.unknown_sizes),
            float(at_sizes is not None),
            float(len(inputs)),
            *largest,
            sum(logs.values()),
        ]
        features = (*small, *growth, *of_inputs, *known, *(one - small[0] for one in known), *others)
        yield Asked(label["package"], factor, max(point["seconds"], _LEAST), features)


def read(path: Path, cache: Path, head_of: Callable[[str], list[Forest]], *, of_facts: bool) -> list[Asked]:
    """The functions of a label file at their sizes; ``head_of`` gives the growth head for a package."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        labels = [json.loads(line) for line in file]
    predictor = with_corrections(OnnxPredictor(builtin(), threads=1))
    rows: list[Asked] = []
    for label, code in functions(labels, cache, with_loop=False):
        [[small]] = predictor.predict([code], [[Query("latency")]])
        if small.quantiles:
            rows += asked(label, code, small.quantiles, head_of(label["package"]), of_facts=of_facts)
    return rows


def boosted(loss: str, rounds: int, features: Array, values: Array) -> HistGradientBoostingRegressor:
    """Boosted trees fitted to values."""
    shape = {"max_leaf_nodes": 12, "min_samples_leaf": 40, "l2_regularization": 5.0, "max_features": 0.4}
    model = HistGradientBoostingRegressor(loss=loss, max_iter=rounds, learning_rate=0.08, random_state=0, **shape)
    return model.fit(features, values)


def out_of_fold(fold: Array, loss: str, rounds: int, features: Array, values: Array) -> Array:
    """The predictions for each fold by trees that were fitted on the others."""
    found = np.zeros(len(values))
    for number in np.unique(fold):
        seen = fold != number
        found[~seen] = boosted(loss, rounds, features[seen], values[seen]).predict(features[~seen])
    return found


def report(rows: list[Asked], number: Array, half: Array) -> None:
    """Print the figures: errors in decades, and shares within 3x and 10x, of today's number and of the trees'."""
    table, truth = np.array([row.features for row in rows]), np.log10([row.seconds for row in rows])
    said = (half <= _WIDEST / 2) & (table[:, _SLOPE] > _STEEP)
    for name, group in (
        ("all", said | ~said),
        ("above 1 us", truth > -6),
        ("said", said),
        ("said, above 1 us", said & (truth > -6)),
    ):
        for factor in _REPORTED:
            chosen = group & np.array([row.factor == factor for row in rows])
            line: dict[str, Any] = {"of": name, "times": factor, "functions": int(chosen.sum())}
            for which, value in (("small inputs", table[:, _SMALL]), ("trees", number)):
                error = np.abs(value - truth)[chosen]
                line[which] = [
                    round(float(one), 3)
                    for one in (np.median(error), *(np.mean(error < math.log10(by)) for by in (3, 10)))
                ]
            covers = round(float(np.mean((np.abs(number - truth) <= half)[chosen])), 3)
            print(json.dumps(line | {"covers": covers, "width": round(10 ** float(2 * np.median(half[chosen])), 1)}))


def main() -> None:
    """Print the figures of unseen packages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--slopes", type=Path, required=True)
    parser.add_argument("--source-cache", type=Path, required=True)
    parser.add_argument("--of-facts", action="store_true", help="know only sizes that the facts depend on")
    parser.add_argument("--exam", type=Path, help="labels of other packages, which are judged instead")
    options = parser.parse_args()
    read_rows = partial(read, cache=options.source_cache, of_facts=options.of_facts)
    pairs = read_pairs([options.slopes])
    of_pair = np.array([fold_of(name, _FOLDS) for name in pairs.family.tolist()])
    heads = [fit(pairs, "latency", of_pair != number) for number in range(_FOLDS)]
    rows = read_rows(options.labels, head_of=lambda package: heads[fold_of(package, _FOLDS)])
    table, fold = np.array([row.features for row in rows]), np.array([fold_of(row.package, _FOLDS) for row in rows])
    above = np.log10([row.seconds for row in rows]) - table[:, _SMALL]
    number = out_of_fold(fold, "absolute_error", 120, table, above)
    errors = np.log(np.abs(above - number) + 0.05)
    size = np.exp(out_of_fold(fold, "squared_error", 80, table, errors))
    times = float(np.quantile(np.abs(above - number) / size, _COVERAGE))
    if options.exam is not None:
        head = fit(pairs, "latency", of_pair >= 0)
        rows = read_rows(options.exam, head_of=lambda _: head)
        judged = np.array([row.features for row in rows])
        number = boosted("absolute_error", 120, table, above).predict(judged)
        size, table = np.exp(boosted("squared_error", 80, table, errors).predict(judged)), judged
    report(rows, table[:, _SMALL] + number, times * size)


if __name__ == "__main__":
    main()
