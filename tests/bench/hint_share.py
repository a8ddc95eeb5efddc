"""``python -m tests.bench.hint_share FOLDER...``: the share of functions that get a hint by default, and why.

Input: folders of Python sources, such as installed packages. Nothing is compared with git and there are no budgets, so
only costs, growth and waits count. Every function must have a prediction, which its hover shows.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rlm_core import RlmError, load
from rlm_core.inference.query_selection import queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.units import read_source
from rlm_lsp.findings.relevance import growing_most, relevance
from rlm_lsp.settings.model import Settings
from rlm_lsp.sources import find_sources


def files(folder: Path) -> Iterator[list[AnalysedUnit]]:
    """The functions of each file of a folder, without those of its tests."""
    analyser = Analyser()
    for source in find_sources([folder], lambda error: None):
        if source.path.suffix == ".py" and "tests" not in source.path.parts:
            try:
                units = analyser.analyse(read_source(source.path), source.path)
            except RlmError:
                continue
            yield [unit for unit in units if unit.unit.kind == "function"]


def main() -> None:
    """Print one line per folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+")
    parser.add_argument("--list", action="store_true", help="also print each function that gets a hint")
    arguments = parser.parse_args()
    settings, predictor = Settings(), load("builtin")
    for folder in arguments.folders:
        reasons: Counter[str] = Counter()
        functions = hovers = 0
        for units in files(folder):
            queries = [queries_for(predictor, unit.code, settings.selection) for unit in units]
            answered = list(zip(units, predictor.predict([unit.code for unit in units], queries), strict=True))
            functions, hovers = functions + len(units), hovers + sum(bool(line) for _, line in answered)
            found = [relevance(unit.code, predictions, settings) for unit, predictions in answered]
            growing = growing_most(answered, settings) if not any(found) else None
            for (unit, predictions), of_unit in zip(answered, found, strict=True):
                reason = "growth of its file" if unit is growing else of_unit
                if reason is not None:
                    reasons[reason] += 1
                    if arguments.list:
                        medians = {entry.metric: entry.median for entry in predictions}
                        growth = predictions[0].growth
                        print(f"  {reason:8} {unit.unit.qualname} {medians} {growth}")
        share = sum(reasons.values()) / max(functions, 1)
        print(f"{folder.name}: {functions} functions, {hovers} with a hover, {share:.1%} with a hint {dict(reasons)}")


if __name__ == "__main__":
    main()
