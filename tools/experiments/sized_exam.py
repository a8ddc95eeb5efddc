"""How good costs at given sizes are on functions that were measured at several sizes.

    python -m tools.experiments.sized_exam LABELS... --source-cache DIR [--count 300] [--seed 0] [--any]

In: labels of `python -m tools.label_run.collect`. Of functions with a loop over an input that grew (with ``--any``, of
all), ``--count`` are drawn (0: all of them); each is predicted at the recorded sizes of its inputs at 1, 10 and 100
times those of the tests, as `rlm-lsp predict` does without measurements. Out: JSON with the number of answers of each
kind, by factor: how many numbers have the measured time inside their band and within a factor of 3 and 10, next to the
number for small inputs, and how many lower bounds hold.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rlm_core.cost.input_uses import USES, input_uses
from rlm_core.inference.adaptation.predictor import with_corrections
from rlm_core.inference.model_store import builtin
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.sized_predictor import may_end_early
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.datasets.scaled import labelled_functions, read_labels
from rlm_core.types import CodeText, Prediction, Query, SizedPrediction, SizeValue

_FACTORS = (1, 10, 100)
_LOOPS = [USES.index(name) for name in ("loops", "comprehensions")]
_LEAST = 5e-8  # seconds: below, nothing is resolved
_HOLDS = 1.25  # a bound may be above a time by what measurements differ by


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer at sizes ``factor`` times those of the tests, next to the measured ``seconds``.

    ``kind`` is that of :class:`~rlm_core.types.CostAtSizes`, ``fixed`` for a text that fixes its cost without sizes,
    or ``small inputs``.
    """

    kind: str
    factor: int
    seconds: float
    answer: Prediction
    may_end_early: bool


def loops_over(text: str, inputs: list[str]) -> bool:
    """Return whether a function has a loop over one of some inputs."""
    return any(input_uses(text).features(name)[place] for name in inputs for place in _LOOPS)


def judged(predictor: Predictor, label: dict[str, Any], code: CodeText) -> Iterator[Judged]:
    """The answers about one function."""
    grown = label["points"][0]["grown"]
    for point in label["points"]:
        if point["grown"] != grown or point["factor"] not in _FACTORS or point["seconds"] <= 0:
            continue
        sizes = tuple(SizeValue(name, float(min(size, 1e300)), "query") for name, size in point["sizes"].items())
        [[answer]] = predictor.predict([replace(code, sizes=sizes)], [[Query("latency")]])
        kind = "fixed" if code.work is not None and code.work.fixed else "small inputs"
        if isinstance(answer, SizedPrediction):
            kind = answer.at.kind
        yield Judged(kind, point["factor"], max(point["seconds"], _LEAST), answer, may_end_early(code))


def report(rows: Sequence[Judged]) -> dict[str, Any]:
    """The figures of all answers, by kind."""
    kinds = {kind: [row for row in rows if row.kind == kind] for kind in sorted({row.kind for row in rows})}
    result: dict[str, Any] = {"asked": len(rows)} | {kind: len(of_kind) for kind, of_kind in kinds.items()}
    for kind in ("arithmetic", "predicted"):
        of_kind = kinds.get(kind, [])
        groups = {"all": of_kind} | {
            f"{factor} times": [row for row in of_kind if row.factor == factor] for factor in _FACTORS
        }
        groups["loop that may end early"] = [row for row in of_kind if row.may_end_early]
        groups["others"] = [row for row in of_kind if not row.may_end_early]
        result[f"{kind}, figures"] = {name: numbers(group) for name, group in groups.items() if group}
    bounds = [
        row.answer.at.least <= row.seconds * _HOLDS
        for row in rows
        if isinstance(row.answer, SizedPrediction) and row.answer.at.least > 0
    ]
    return result | {"bounds": len(bounds), "bounds that hold": round(float(np.mean(bounds)), 3) if bounds else None}


def numbers(rows: Sequence[Judged]) -> dict[str, Any]:
    """The figures of numbers at sizes; of errors and shares, first that of the number for small inputs."""
    errors = np.array([[_error(_small(row.answer), row), _error(row.answer, row)] for row in rows])
    bands = [row.answer.bands[0] for row in rows]
    below = [row.seconds < band.low for row, band in zip(rows, bands, strict=True)]
    above = [row.seconds > band.high for row, band in zip(rows, bands, strict=True)]
    return {
        "answers": len(rows),
        "error in decades": np.median(errors, axis=0).round(3).tolist(),
        "within 3x": np.mean(errors < math.log10(3), axis=0).round(3).tolist(),
        "within 10x": np.mean(errors < 1, axis=0).round(3).tolist(),
        "inside the band": round(1 - float(np.mean(below) + np.mean(above)), 3),
        "below": round(float(np.mean(below)), 3),
        "median width": round(float(np.median([band.high / max(band.low, _LEAST) for band in bands])), 1),
    }


def _small(answer: Prediction) -> Prediction:
    return answer.small if isinstance(answer, SizedPrediction) else answer


def _error(answer: Prediction, row: Judged) -> float:
    return abs(math.log10(max(answer.median or 0.0, _LEAST) / row.seconds))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="+", type=Path)
    parser.add_argument("--source-cache", type=Path, required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--any", action="store_true", help="also functions without a loop over an input that grew")
    options = parser.parse_args()
    found = [
        (label, code)
        for label, code in labelled_functions(read_labels(options.labels), options.source_cache)
        if options.any or loops_over(code.text, label["points"][0]["grown"])
    ]
    count = min(options.count or len(found), len(found))
    predictor = with_corrections(OnnxPredictor(builtin(), threads=1))
    rows = [
        row
        for label, code in random.Random(options.seed).sample(found, count)
        for row in judged(predictor, label, code)
    ]
    print(json.dumps({"functions": len(found), "drawn": count} | report(rows), indent=1))


if __name__ == "__main__":
    main()
