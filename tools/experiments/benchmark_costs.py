"""How well the library's costs and growth fit benchmarks of libraries: texts with parameters, and measured times.

    python -m tools.experiments.benchmark_costs LABELS RESULTS... [--part development|exam] [--worst 20]

In: rows with the name of an asv benchmark, its parameters and seconds, and the ``results/benchmarks.json`` of the
projects, as ``owner+name.json``. A benchmark becomes a class whose ``__init__`` is its setup, with the parameters as
constants, and its timed method is predicted. Out: how many have a cost that the text fixes; of these how many have the
time in their band and within 10 times, after a factor for the machine (the median of the development half); and how
many series over one number grow as was measured. Halves are by module of the benchmarks.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import json
import math
import os
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import RlmError
from rlm_core.inference.adaptation.predictor import with_corrections
from rlm_core.inference.model_store import builtin
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.entry_store import VARIABLE
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Query

_IMPORTS = "import numpy as np\nimport networkx as nx\nfrom numpy import random\n\n"
_GROWS = 0.25  # decades per decade
_MACHINE = 2.0  # of 2008 against the reference, before the median is known


@dataclass(frozen=True, slots=True)
class Answer:
    """A benchmark with what was measured and what is said of it; ``band`` is None where the text fixes no cost."""

    name: str
    params: tuple[str, ...]
    seconds: float
    median: float
    band: tuple[float, float] | None
    unknown: tuple[str, ...]


def in_part(row: dict[str, Any]) -> str:
    """The half of a row: by the module of its benchmark."""
    key = f"{row['project']} {row['name'].partition('.')[0]}"
    return "exam" if hashlib.sha256(key.encode()).digest()[0] % 2 else "development"


def as_class(code: str, names: Sequence[str], values: Sequence[str]) -> str | None:
    """The text of a benchmark whose setup is ``__init__`` and whose parameters are constants; None if it has none."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if not classes:
        return None
    given = "\n".join(f"{name} = {value}" for name, value in zip(names, values, strict=False))
    for function in classes[-1].body:
        if not isinstance(function, ast.FunctionDef):
            continue
        if function.name == "setup":
            function.name = "__init__"
        own = [argument.arg for argument in function.args.args]
        del function.args.args[1:]
        try:
            constants = ast.parse(given).body
        except SyntaxError:
            constants = []
        # asv passes parameters by position.
        for place, statement in enumerate(constants):
            if place + 1 < len(own) and isinstance(statement, ast.Assign):
                statement.targets = [ast.Name(own[place + 1], ast.Store())]
        function.body = [*constants[: len(own) - 1], *function.body]
    return _IMPORTS + ast.unparse(ast.fix_missing_locations(tree))


def answers(rows: Sequence[dict[str, Any]], codes: dict[str, dict[str, Any]]) -> Iterator[Answer]:
    """What is said of each row."""
    predictor: Predictor = with_corrections(OnnxPredictor(builtin(), threads=1))
    known: dict[str, tuple[float, tuple[float, float] | None, tuple[str, ...]] | None] = {}
    for row in rows:
        entry = codes.get(row["repo"].replace("/", "+"), {}).get(row["name"], {})
        text = as_class(entry.get("code", ""), row["param_names"] or [], row["params"] or [])
        if text is None:
            continue
        method = row["name"].rpartition(".")[2]
        key = f"{method} {text}"
        if key not in known:
            known[key] = _said(predictor, text, method)
        said = known[key]
        if said is not None:
            yield Answer(row["name"], tuple(row["params"] or ()), row["seconds"], *said)


def _said(
    predictor: Predictor, text: str, method: str
) -> tuple[float, tuple[float, float] | None, tuple[str, ...]] | None:
    try:
        units = Analyser().analyse(ParsedSource(text.encode(), "python"))
    except RlmError:
        return None
    code = next((unit.code for unit in units if unit.unit.qualname.endswith(f".{method}")), None)
    if code is None or code.work is None:
        return None
    [[prediction]] = predictor.predict([code], [[Query("latency")]])
    if prediction.median is None or prediction.band is None:
        return None
    band = (prediction.band.low, prediction.band.high) if code.work.fixed else None
    return prediction.median, band, tuple(name for name, _ in code.work.unknown[:3])


def figures(found: Sequence[Answer], machine: float) -> Iterator[str]:
    """The lines of the report."""
    answered = [answer for answer in found if answer.band is not None]
    inside = [answer.band[0] <= answer.seconds / machine <= answer.band[1] for answer in answered if answer.band]
    near = [abs(math.log10(answer.seconds / machine / answer.median)) <= 1 for answer in answered]
    yield (
        f"{len(found)} rows, {len(answered) / max(len(found), 1):.1%} answered; of these inside"
        f" {sum(inside) / max(len(inside), 1):.1%}, within 10x {sum(near) / max(len(near), 1):.1%}"
    )
    right = said = 0
    for series in _series(answered):
        times = [(size, answer.seconds, answer.median) for size, answer in series]
        (first, slow, least), (last, fast, most) = times[0], times[-1]
        span = math.log(last / first)
        measured, claimed = math.log(fast / slow) / span, math.log(most / least) / span
        said += 1
        right += (measured > _GROWS) is (claimed > _GROWS) and abs(measured - claimed) < 0.5
    yield f"{said} series over a number, exponent within .5 and growing or not as measured: {right / max(said, 1):.1%}"


def _series(found: Sequence[Answer]) -> Iterator[list[tuple[float, Answer]]]:
    """Rows of a benchmark in which only one number differs, with at least 10 times between its ends."""
    groups: dict[tuple[Any, ...], list[tuple[float, Answer]]] = defaultdict(list)
    for answer in found:
        for place, value in enumerate(answer.params):
            try:
                number = float(value)
            except ValueError:
                continue
            if number > 0:
                rest = (*answer.params[:place], *answer.params[place + 1 :])
                groups[answer.name, place, rest].append((number, answer))
    for group in groups.values():
        group.sort(key=lambda entry: entry[0])
        if len(group) >= 3 and group[-1][0] >= 10 * group[0][0]:
            yield group


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--part", choices=("development", "exam"), default="development")
    parser.add_argument("--machine", type=float, default=0.0, help="factor of the machine (0: the median)")
    parser.add_argument("--worst", type=int, default=0)
    options = parser.parse_args(arguments)
    os.environ[VARIABLE] = "off"
    with gzip.open(options.labels, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if in_part(row) == options.part]
    codes = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in options.results}
    found = list(answers(rows, codes))
    ratios = [answer.seconds / answer.median for answer in found if answer.band is not None]
    machine = options.machine or (statistics.median(ratios) if ratios else _MACHINE)
    print(f"machine {machine:.2f}")
    print("\n".join(figures(found, machine)))
    missing: dict[str, int] = defaultdict(int)
    for answer in found:
        for name in answer.unknown if answer.band is None else ():
            missing[name] += 1
    worst = sorted(
        (answer for answer in found if answer.band is not None),
        key=lambda answer: -abs(math.log10(answer.seconds / machine / answer.median)),
    )
    seen: set[str] = set()
    for answer in worst:
        if answer.name not in seen and len(seen) < options.worst:
            seen.add(answer.name)
            ratio = answer.seconds / machine / answer.median
            print(f"{ratio:9.3g} {answer.seconds:.2e} {answer.name} {answer.params}")
    if options.worst:
        print(sorted(missing.items(), key=lambda entry: -entry[1])[: 2 * options.worst])


if __name__ == "__main__":
    main()
