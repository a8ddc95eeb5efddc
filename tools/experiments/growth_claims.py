"""How often what is said of the growth of functions is true: ``python -m tools.experiments.growth_claims DATA...``.

In: data sets of slopes (``rlm-lsp data build scaled``) of packages that the head was not fitted on. Out: JSON with the
claims that would be shown (from a probability of 80 % on), by metric and class, and how many of them agree with the
measured slopes of the inputs that they name. Claims about inputs that were not made larger, and about the worst case,
which the measured inputs need not be, are counted apart.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_core.inference.input_growth import INPUT_GROWTH, METRICS, STEP_ENDS, InputGrowthHead
from rlm_core.inference.model_store import builtin
from rlm_core.training.datasets.scaled import read_slopes
from rlm_core.training.datasets.schema import read_facts
from rlm_core.training.input_growth_fit import TOLERANCE
from rlm_core.types import CodeText, GrowthEstimate

# The slope in each of the inputs that a claim names.
_SLOPES = {"1": 0.0, "log n": 0.1, "sqrt n": 0.5, "n": 1.0, "n log n": 1.1, "mn": 1.0, "n^2": 2.0, "n^3": 3.0}


@dataclass(slots=True)
class Tally:
    """Functions, those that grow, and the claims about them."""

    functions: int = 0
    grow: int = 0
    grow_and_claimed: int = 0
    claims: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    not_measured: int = 0
    in_worst_case: int = 0

    def add(self, slopes: Mapping[str, float], estimate: GrowthEstimate | None) -> bool | None:
        """Count a function; return whether its claim is right, None without a claim that can be judged."""
        self.functions += 1
        grows = any(slope >= STEP_ENDS[1] for slope in slopes.values())
        self.grow += grows
        if estimate is None or not estimate.is_claim:
            return None
        if estimate.in_worst_case:
            self.in_worst_case += 1
            return None
        self.grow_and_claimed += grows and estimate.growth_class != "1"
        named = [slopes[name] for name in estimate.named_sizes if name in slopes]
        if estimate.growth_class == "1":
            named = [max(slopes.values())]
        if not named:
            self.not_measured += 1
            return None
        self.claims[estimate.growth_class] += 1
        expected = _SLOPES.get(estimate.growth_class)
        right = expected is not None and all(abs(slope - expected) <= TOLERANCE for slope in named)
        self.right[estimate.growth_class] += right
        return right

    def to_json(self) -> dict[str, Any]:
        """The counts and shares."""
        growth = {name: count for name, count in self.claims.items() if name != "1"}
        said = sum(growth.values())
        right = sum(self.right[name] for name in growth)
        return {
            "functions": self.functions,
            "that grow": self.grow,
            "of these with a claim of growth": round(self.grow_and_claimed / max(self.grow, 1), 3),
            "claims of growth": said,
            "right": round(right / max(said, 1), 3),
            "claims of none": self.claims["1"],
            "right of none": round(self.right["1"] / max(self.claims["1"], 1), 3),
            "by class": {name: [self.right[name], count] for name, count in sorted(self.claims.items())},
            "about inputs that did not grow in the measurement": self.not_measured,
            "about the worst case": self.in_worst_case,
        }


def claims(rows: Iterable[dict[str, Any]], head: InputGrowthHead, wrong: list[str]) -> dict[str, Any]:
    """The tallies by metric; what is wrong is added to ``wrong``."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for row in rows:
        code = CodeText(row["text"], "python", "call", work=read_facts(row["work"]))
        estimates = head.estimates(code)
        for metric in METRICS:
            if not (slopes := row[metric]):
                continue
            estimate = estimates.get(metric)
            if tallies[metric].add(slopes, estimate) is False and estimate is not None:
                said = f"{estimate.growth_class} in {', '.join(estimate.sizes)} ({estimate.probability:.0%})"
                wrong.append(f"{row['source']} {metric}: {said}; measured {slopes}\n{row['text']}")
    return {metric: tally.to_json() for metric, tally in tallies.items()}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--model", type=Path, default=builtin(), help="directory of a model")
    parser.add_argument("--wrong", type=Path, help="also write the claims that are wrong to this file")
    options = parser.parse_args()
    wrong: list[str] = []
    rows = [row for path in options.data for row in read_slopes(path)]
    print(json.dumps(claims(rows, InputGrowthHead(options.model / INPUT_GROWTH), wrong), indent=1))
    if options.wrong is not None:
        options.wrong.write_text("\n\n".join(wrong), encoding="utf-8")


if __name__ == "__main__":
    main()
