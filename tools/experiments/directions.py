"""How often the answer which of two functions takes longer is right, and by how much their costs differ then.

    python -m tools.experiments.directions PAIRS.jsonl

In: one JSON object per line: ``before`` and ``after`` (texts of modules), ``name`` (the qualified name of the function
in both), ``ratio`` (the measured cost of the second over that of the first) and, if the costs were measured at them,
``sizes`` by name. Out: the number of pairs with an answer and of right answers, of all and of pairs that differ by at
least 1.25x, and the quantiles of measured over likely changes that ``rlm_core.inference.pair_ratio`` has.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rlm_core.inference.pair_direction import direction
from rlm_core.inference.pair_facts import with_pair_facts
from rlm_core.inference.pair_ratio import scaled_change
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import LEVELS, CodeText, SizeValue

_REAL = math.log10(1.25)


def code_of(text: str, name: str) -> CodeText:
    """The function of a module's text by its qualified name."""
    units = Analyser().analyse(ParsedSource(text.encode(), "python"))
    return next(unit.code for unit in units if unit.unit.qualname == name)


def report(rows: Iterable[Mapping[str, Any]]) -> str:
    """A line of figures, and the quantiles of the answered pairs."""
    changes, scaled = [], []
    for row in rows:
        first, second = with_pair_facts(*(code_of(row[side], row["name"]) for side in ("before", "after")))
        sizes = tuple(SizeValue(name, float(value)) for name, value in row.get("sizes", {}).items())
        change = direction(first, replace(second, sizes=sizes))
        measured = math.log10(row["ratio"])
        changes.append((measured, change is not None and measured * change.likely > 0, change is not None))
        if change is not None:
            scaled.append(measured / scaled_change(change))
    real = [entry for entry in changes if abs(entry[0]) >= _REAL]
    lines = [
        f"{name}: {len(some)} pairs, {sum(said for *_, said in some)} answered,"
        f" {sum(right for _, right, _ in some)} right"
        for name, some in (("all", changes), ("at least 1.25x", real))
    ]
    quantiles: list[float] = np.quantile(scaled, LEVELS).tolist() if scaled else []
    return "\n".join([*lines, " ".join(f"{value:.2f}" for value in quantiles)])


def main() -> None:
    """Read the file that the command line names, and print the figures."""
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    print(report([json.loads(line) for line in lines]))


if __name__ == "__main__":
    main()
