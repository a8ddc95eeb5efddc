"""How far measured costs are from curves through smaller sizes, and how many are inside the band of the curve.

    python -m tools.experiments.curve_bands LABELS...

In: label files of `python -m tools.label_run.collect`, or result files of a label run. Of each function with points at
1, 3, 10, 30 and 100 times its inputs, a curve through the points up to 3 is judged at 10 and 30, and one through those
up to 10 at 30 and 100. Functions of which nothing grows are counted apart: any curve is right there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rlm_core.inference.cost_curve import COVERAGE, curve_at, curve_of
from rlm_core.training.datasets.scaled import slopes_by_input
from rlm_core.types import MeasuredCost, SizedCalls

_KEPT = (3, 10)
_SIZE = "size"
_GROWS = 0.3


@dataclass(frozen=True, slots=True)
class Judged:
    """One value beyond a curve: ``beyond`` times the largest size, ``error`` in decades, ``spread`` of the curve."""

    package: str
    beyond: float
    error: float
    spread: float
    inside: bool
    grows: bool
    seconds: float


def judged(label: dict[str, Any]) -> Iterator[Judged]:
    """The values beyond the curves of a function."""
    together = [point for point in label["points"] if point["grown"] == label["points"][0]["grown"]]
    by_factor = {point["factor"]: point for point in together}
    grows = max(slopes_by_input(label["points"], "latency").values(), default=0.0) > _GROWS
    for last in _KEPT:
        cost = _measured([point for factor, point in by_factor.items() if factor <= last])
        curve = curve_of(cost)
        if curve is None or last not in by_factor:
            continue
        for factor, point in by_factor.items():
            value = curve_at(curve, float(factor)) if factor > last else None
            if value is not None and point["seconds"] > 0:
                error = math.log10(point["seconds"] / value.median)
                inside = value.band.low <= point["seconds"] <= value.band.high
                seconds = together[0]["seconds"]
                yield Judged(label["package"], value.beyond, error, curve.spread, inside, grows, seconds)


def _measured(points: Iterable[dict[str, Any]]) -> MeasuredCost:
    sized = tuple(
        SizedCalls({_SIZE: float(point["factor"])}, point["seconds"], point["calls"], scaled=True) for point in points
    )
    middle = sized[0].median
    calls = sum(one.calls for one in sized)
    return MeasuredCost("latency", middle, middle, middle, calls, 1, "function", "", "", "", sized=sized)


def report(rows: list[Judged]) -> dict[str, Any]:
    """The figures of some values."""
    errors = np.abs([row.error for row in rows])
    return {
        "values": len(rows),
        "inside": round(float(np.mean([row.inside for row in rows])), 3),
        "within 3x": round(float(np.mean(errors < math.log10(3))), 3),
        "error at coverage, decades": round(float(np.quantile(errors, COVERAGE)), 3),
    }


def main() -> None:
    """Print the figures by distance and by whether a function grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="+", type=Path)
    options = parser.parse_args()
    rows = []
    for path in options.labels:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            entries = [json.loads(line) for line in file]
        package = entries[0]["package"] if entries else ""
        rows += [one for label in entries if label.get("points") for one in judged({"package": package} | label)]
    for beyond in sorted({row.beyond for row in rows}):
        for grows in (True, False):
            chosen = [row for row in rows if row.beyond == beyond and row.grows is grows]
            if chosen:
                print(json.dumps({"beyond": round(beyond, 2), "grows": grows} | report(chosen)))
    slow = [row for row in rows if row.seconds > 1e-5 and row.grows]
    if slow:
        print(json.dumps({"slower than 10 us": True, "grows": True} | report(slow)))


if __name__ == "__main__":
    main()
