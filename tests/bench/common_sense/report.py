"""Prints how far predictions agree with common sense.

    python -m tests.bench.common_sense.report [--json FILE] [--model PATH] [--facts] [--stdlib FOLDER] [--alarms FILE]
        [--markdown FILE [--before FIGURES.json]]

Input: the suite of this folder with ``truth.json``, a model (by default the one that ships), and a folder of Python
files that hardly wait (by default the standard library). Output: one line per goal with its figure and count, and the
worst cases. ``--facts`` judges the work facts without the model.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import rlm_core.loading
from rlm_core.inference.adaptation.predictor import UserCorrections

from .alarms import alarms, standard_library
from .judging import Verdict, answers, edit_verdicts, function_verdicts, growth_verdicts
from .measure import TRUTH
from .suite import edits, functions, growth

_WORST = 15


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the report; ``goal`` is a least share, or a most for errors and false alarms."""

    title: str
    value: float
    goal: float | None
    count: int
    at_most: bool = False

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.goal is None or (self.value <= self.goal if self.at_most else self.value >= self.goal)


def main() -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", type=Path, help="model directory (default: the one that ships)")
    parser.add_argument("--facts", action="store_true", help="judge the work facts, not the model's predictions")
    parser.add_argument("--json", type=Path, help="file for figures and verdicts")
    parser.add_argument("--stdlib", type=Path, default=standard_library(), help="folder to count false alarms in")
    parser.add_argument("--alarms", type=Path, help="file for the labelled functions of that folder")
    parser.add_argument("--markdown", type=Path, help="file for the figures as a page of the model card")
    parser.add_argument("--before", type=Path, help="an earlier --json file, for a column of that table")
    parser.add_argument("--worst", type=int, default=_WORST, help="cases to list per line")
    arguments = parser.parse_args()
    verdicts = all_verdicts(arguments.model, facts=arguments.facts)
    labelled, count = alarms(arguments.stdlib)
    figures = [*figures_of(verdicts), Figure("standard library labelled", len(labelled) / max(count, 1), None, count)]
    _print(figures, verdicts, arguments.worst)
    kinds = Counter(alarm.label.split(",")[0] for alarm in labelled)
    print(f"standard library: {len(labelled)} of {count} functions have a label: {dict(kinds.most_common(12))}")
    if arguments.alarms:
        lines = [f"{a.location}\t{a.unit}\t{a.label}\t{'; '.join(a.causes)}" for a in labelled]
        arguments.alarms.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if arguments.json:
        record = {"figures": [asdict(f) for f in figures], "verdicts": [asdict(verdict) for verdict in verdicts]}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if arguments.markdown:
        before = json.loads(arguments.before.read_text(encoding="utf-8"))["figures"] if arguments.before else None
        arguments.markdown.write_text(markdown(figures, before), encoding="utf-8")


def all_verdicts(model: Path | None, *, facts: bool = False) -> list[Verdict]:
    """The verdicts about the whole suite."""
    truths = json.loads(TRUTH.read_text(encoding="utf-8"))["values"]
    # As users get it whose CPU was not scored, without what one user has measured.
    predictor = UserCorrections(is_unscored=True).around(rlm_core.loading.load(model))
    cases = functions()
    verdicts = [
        verdict
        for case, answer in zip(cases, answers(predictor, cases), strict=True)
        for verdict in function_verdicts(case, answer, truths[case.name], facts=facts)
    ]
    verdicts += edit_verdicts(predictor, edits(), truths, facts=facts)
    return verdicts + growth_verdicts(predictor, growth(), facts=facts)


def figures_of(verdicts: Sequence[Verdict]) -> list[Figure]:
    """The lines of the report."""

    def share(title: str, goal: float, select: Callable[[Verdict], bool]) -> Figure:
        chosen = [verdict for verdict in verdicts if select(verdict)]
        value = sum(verdict.good for verdict in chosen) / len(chosen) if chosen else math.nan
        return Figure(title, value, goal, len(chosen))

    def line(title: str, goal: float, name: str) -> Figure:
        return share(title, goal, lambda verdict: verdict.line == name)

    errors = [abs(verdict.error) for verdict in verdicts if verdict.line == "latency covered"]
    waits = sorted({verdict.line for verdict in verdicts if verdict.line.startswith("waits: ")})
    return [
        line("cost fixed by the text: inside the band, or above a floor within 3x", 0.85, "latency covered"),
        Figure("the same: median absolute log10 error", statistics.median(errors), 0.25, len(errors), at_most=True),
        line("the same: within a factor of 10", 0.95, "latency within 10x"),
        line("memory fixed by the text: within a factor of 2", 0.90, "memory within 2x"),
        share("waits and endless loops: labelled", 0.95, lambda verdict: verdict.line.startswith("waits: ")),
        *(line(f"  {name.removeprefix('waits: ')}", 0.95, name) for name in waits),
        line("no wait label where nothing waits", 0.99, "no wait label where nothing waits"),
        line("edits with a true ratio of at least 2: right direction", 0.95, "edit direction"),
        line("edits of literals: magnitude within 3x", 0.95, "edit within 3x"),
        line("neutral edits within 1.05x", 0.98, "neutral"),
        line("glue code under 10 µs stays under 100 µs", 0.99, "glue"),
        line("growth class: exact", 0.75, "growth exact"),
        line("growth class: within one class", 0.90, "growth within one class"),
    ]


_PAGE = """# Common sense

Small functions and edits whose cost is in their text, with the truth measured: loops over literal ranges, recursion,
allocations, waits, and code that only looks expensive. The model was not trained on them. The analysis was changed
where a whole kind of case failed here, so expect somewhat less on other code. *Before* is the model without work facts.

{table}
The command that writes this page:

```sh { .not-run reason="analyses the standard library for minutes" }
python -m tests.bench.common_sense.report --markdown docs/model-card/common-sense.md
```
"""


def markdown(figures: Sequence[Figure], before: Sequence[Mapping[str, Any]] | None = None) -> str:
    """The figures as a page of the model card, next to those of an earlier report."""
    earlier = {entry["title"]: entry["value"] for entry in before or ()}
    columns = ["", *(["before"] if earlier else []), "now", "goal", "count"]
    lines = [f"| {' | '.join(columns)} |".replace("|  |", "| |", 1), f"|{'---|' * len(columns)}"]
    for figure in figures:
        shown = [_shown(figure, earlier.get(figure.title, math.nan))] if earlier else []
        goal = "-" if figure.goal is None else ("at most " if figure.at_most else "") + _shown(figure, figure.goal)
        cells = [figure.title.strip(), *shown, _shown(figure, figure.value), goal, f"{figure.count:,}"]
        lines.append(f"| {' | '.join(cells)} |")
    return _PAGE.replace("{table}", "\n".join(lines) + "\n")


def _shown(figure: Figure, value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.2g}" if figure.at_most else f"{100 * value:.3g} %"


def _print(figures: Sequence[Figure], verdicts: Sequence[Verdict], worst: int) -> None:
    print(f"{'':68} {'figure':>7} {'goal':>6} {'count':>6}")
    for figure in figures:
        goal = "-" if figure.goal is None else f"{'≤' if figure.at_most else ''}{figure.goal:g}"
        missed = "" if figure.reached else "  missed"
        print(f"{figure.title:68} {figure.value:7.3f} {goal:>6} {figure.count:6}{missed}")
    for name in dict.fromkeys(verdict.line for verdict in verdicts):
        bad = [verdict for verdict in verdicts if verdict.line == name and not verdict.good]
        bad.sort(key=lambda verdict: -abs(verdict.error) if not math.isnan(verdict.error) else 0.0)
        if bad:
            print(f"\n{name}: {len(bad)} wrong")
        for verdict in bad[:worst]:
            print(f"  {verdict.name:60} {verdict.shown}")
    print()


if __name__ == "__main__":
    main()
