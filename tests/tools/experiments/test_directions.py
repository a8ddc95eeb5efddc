"""Measured pairs of functions: how many are answered, and how many of the answers are right."""

from __future__ import annotations

from tests.distinct_items import FAST, SLOW
from tools.experiments.directions import report

UNKNOWN = "def f(items):\n    return first(items)\n"


def test_answers_are_counted_and_judged() -> None:
    sizes = {"items": 1000}
    rows = [
        {"before": SLOW, "after": FAST, "name": "distinct", "ratio": 0.01, "sizes": sizes},
        {"before": FAST, "after": SLOW, "name": "distinct", "ratio": 0.9, "sizes": sizes},
        {"before": UNKNOWN, "after": UNKNOWN.replace("first", "second"), "name": "f", "ratio": 3.0},
    ]
    all_pairs, real, quantiles = report(rows).splitlines()
    assert all_pairs == "all: 3 pairs, 2 answered, 1 right"
    assert real == "at least 1.25x: 2 pairs, 1 answered, 1 right"
    # A wrong direction is a negative multiple.
    assert float(quantiles.split()[0]) < 0 < float(quantiles.split()[-1])
