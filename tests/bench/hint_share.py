"""``python -m tests.bench.hint_share FOLDER...``: the share of functions that get a hint by default, and why.

Input: folders of Python sources, such as installed packages. Nothing is compared with git and there are no budgets, so
only costs, growth and waits count. Every function must have a prediction, which its hover shows.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from rlm_core import RlmError, load
from rlm_core.inference.query_selection import queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.units import read_source
from rlm_lsp.findings.relevance import relevance
from rlm_lsp.settings.model import Settings
from rlm_lsp.sources import find_sources

_STEP = 256


def functions(folder: Path) -> list[AnalysedUnit]:
    """The functions of a folder, without those of its tests."""
    analyser = Analyser()
    units = []
    for source in find_sources([folder], lambda error: None):
        if source.path.suffix == ".py" and "tests" not in source.path.parts:
            try:
                units += analyser.analyse(read_source(source.path), source.path)
            except RlmError:
                continue
    return [unit for unit in units if unit.unit.kind == "function"]


def main() -> None:
    """Print one line per folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+")
    parser.add_argument("--list", action="store_true", help="also print each function that gets a hint")
    arguments = parser.parse_args()
    settings, predictor = Settings(), load("builtin")
    for folder in arguments.folders:
        units = functions(folder)
        reasons: Counter[str] = Counter()
        hovers = 0
        for start in range(0, len(units), _STEP):
            step = units[start : start + _STEP]
            queries = [queries_for(predictor, unit.code, settings.selection) for unit in step]
            answers = predictor.predict([unit.code for unit in step], queries)
            for unit, predictions in zip(step, answers, strict=True):
                hovers += bool(predictions)
                reason = relevance(unit.code, predictions, settings)
                if reason is not None:
                    reasons[reason] += 1
                    if arguments.list:
                        medians = {entry.metric: entry.median for entry in predictions}
                        growth = predictions[0].growth
                        print(f"  {reason:8} {unit.unit.qualname} {medians} {growth}")
        share = sum(reasons.values()) / max(len(units), 1)
        print(f"{folder.name}: {len(units)} functions, {hovers} with a hover, {share:.1%} with a hint {dict(reasons)}")


if __name__ == "__main__":
    main()
