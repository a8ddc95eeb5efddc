"""Models side by side on the ``test`` split: a teacher, its distilled student, a student that saw labels alone.

    python -m tools.experiments.distilled --data functions.parquet --model labels=DIR --model distilled=DIR

Of each and each metric: Spearman of the medians; the mean negative log-likelihood in nats of log10 of the value, from
the calibrated quantiles (piecewise even between them, exponential beyond); the share of values in the 80 % band. Rows
at or below the floor, whose likelihood is a mass, and rows that a model abstains from are left out. The differences
from the first model have intervals by bootstrap over whole families.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import rlm_core
from rlm_core.training.datasets.splits import TEST_PACKAGES
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.training.evaluation.rows import Row, select
from rlm_core.types import LEVELS

Array = npt.NDArray[np.float64]
_RESAMPLES, _BATCH = 500, 256
_NARROWEST = 1e-3  # decades between two quantiles


def main() -> None:
    """Ask all models, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--model", action="append", required=True, help="NAME=DIR; the first one is compared with")
    parser.add_argument("--most", type=int, default=3000, help="rows per task and device")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = [row for row in select(arguments.data, ("test",), arguments.most).rows if _is_unseen(row)]
    quantiles = {name: quantiles_of(Path(folder), rows) for name, _, folder in map(_split, arguments.model)}
    known = np.all([np.isfinite(found).all(1) for found in quantiles.values()], axis=0)
    figures = []
    for metric in sorted({row.query.metric for row in rows}):
        mine = np.flatnonzero(known & np.array([row.query.metric == metric for row in rows]))
        values = np.log10([rows[i].value for i in mine])
        families = np.array([rows[i].whole for i in mine])
        first: dict[str, Array] | None = None
        for name, found in quantiles.items():
            line, samples = scored(found[mine], values, families)
            entry: dict[str, object] = {"model": name, "metric": metric, "rows": len(mine), **line}
            if first is not None:
                for key, drawn in samples.items():
                    ends = np.quantile(drawn - first[key], [0.025, 0.975])
                    entry[f"{key} - first"] = [round(float(end), 4) for end in ends]
            first = first or samples
            figures.append(entry)
            print(json.dumps(entry), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _split(argument: str) -> tuple[str, str, str]:
    return argument.partition("=")


def _is_unseen(row: Row) -> bool:
    return row.code.basis != "call" or row.project_group in TEST_PACKAGES


def quantiles_of(folder: Path, rows: list[Row]) -> Array:
    """log10 of the calibrated quantiles, ``(rows, LEVELS)``; NaN where the model abstains or reaches the floor."""
    predictor = rlm_core.load(str(folder))
    found = np.full((len(rows), len(LEVELS)), np.nan)
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        answers = predictor.predict([row.code for row in batch], [[row.query] for row in batch])
        for place, (row, [answer]) in enumerate(zip(batch, answers, strict=True), start):
            if answer.quantiles and row.value > answer.floor:
                found[place] = np.log10(np.maximum(answer.quantiles, max(answer.floor, 1e-300)))
    return found


def scored(
    quantiles: Array, values: Array, families: npt.NDArray[np.str_]
) -> tuple[dict[str, float], dict[str, Array]]:
    """Figures of one model and metric, and the same over resampled families."""
    losses = nll(quantiles, values)
    low, high = LEVELS.index(0.1), LEVELS.index(0.9)
    inside = (values >= quantiles[:, low]) & (values <= quantiles[:, high])
    median = quantiles[:, LEVELS.index(0.5)]

    def figures(chosen: npt.NDArray[np.int64]) -> dict[str, float]:
        return {
            "spearman": spearman(median[chosen], values[chosen]) or 0.0,
            "nll": float(losses[chosen].mean()),
            "coverage": float(inside[chosen].mean()),
        }

    names = np.unique(families)
    members = {name: np.flatnonzero(families == name) for name in names}
    rng = np.random.default_rng(0)
    drawn = [
        figures(np.concatenate([members[name] for name in rng.choice(names, len(names))])) for _ in range(_RESAMPLES)
    ]
    whole = figures(np.arange(len(values)))
    return {key: round(value, 4) for key, value in whole.items()}, {
        key: np.array([one[key] for one in drawn]) for key in whole
    }


def nll(quantiles: Array, values: Array) -> Array:
    """Negative log-density at the values: even between quantiles, exponential tails with the outer quantiles' mass."""
    rising = np.maximum.accumulate(quantiles, axis=1) + _NARROWEST * np.arange(len(LEVELS))
    levels = np.array(LEVELS)
    place = (rising <= values[:, None]).sum(1)
    inner = np.clip(place, 1, len(levels) - 1)
    rows = np.arange(len(values))
    result: Array = np.log(rising[rows, inner] - rising[rows, inner - 1]) - np.log(np.diff(levels)[inner - 1])
    for outside, edge, near, mass in (
        (place == 0, rising[:, 0], rising[:, 1], levels[0]),
        (place == len(levels), rising[:, -1], rising[:, -2], 1 - levels[-1]),
    ):
        # The density goes on from the outer interval's, then falls.
        scale = np.abs(near - edge)[outside] * mass / (levels[1] - levels[0])
        result[outside] = np.log(scale / mass) + np.abs(values - edge)[outside] / scale
    return result


if __name__ == "__main__":
    main()
