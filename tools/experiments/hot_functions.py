"""Asks whether the functions in which public programs spend their time are those that the tool points at.

    python -m tools.experiments.hot_functions run --work FOLDER     # installs and profiles the programs, predicts
    python -m tools.experiments.hot_functions report --work FOLDER

``run`` installs each program of ``hot_programs.toml`` into a folder, runs it under cProfile on the input that the
table names, and takes the ten functions of its package with most own time and the ten with most time including what
they call. It predicts all functions of the package, and writes a line per program: which of the ten are in the top
fifth of the view Predicted Cost, by latency, and which have a hint by default. A program that has a line is skipped.

By chance a fifth of the ten is in the top fifth. ``report`` prints that share, and what it is among the ten.
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import rlm_core
from rlm_core.errors import RlmError
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import queries_for
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.file_units import file_units
from rlm_core.types import Prediction
from rlm_lsp.findings.relevance import growing_most, relevance
from rlm_lsp.settings.model import Settings

PROGRAMS = Path(__file__).with_name("hot_programs.toml")
_HOT, _TOP = 10, 0.2
_RUN_SECONDS = 600
_STEP = 256
_PROFILED = """
import cProfile, runpy, sys
profile = cProfile.Profile()
sys.argv = ["program.py"]
try:
    profile.runcall(runpy.run_path, sys.argv[0], run_name="__main__")
except SystemExit:
    pass
profile.dump_stats("profile.pstats")
"""


@dataclass(frozen=True, slots=True)
class HotFunction:
    """A function that a profile names, and the reason for its ``hint``.

    ``rank``: the share of the package's functions that are predicted to cost more; None without a predicted latency.
    """

    name: str
    seconds: float
    rank: float | None
    hint: str | None


@dataclass(frozen=True, slots=True)
class Program:
    """The hottest functions of a program, by own time and with what they call, among all ``functions``."""

    name: str
    functions: int
    hints: int
    own: tuple[HotFunction, ...]
    cumulative: tuple[HotFunction, ...]


@dataclass(frozen=True, slots=True)
class _Predicted:
    unit: AnalysedUnit
    latency: float | None
    hint: str | None


def profiled(name: str, entry: dict[str, str], folder: Path) -> pstats.Stats:
    """Install and run a program under the profiler.

    Raises:
        RlmError: it cannot be installed, or ends with an error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    site = folder / "site"
    if not site.exists():
        options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--target", str(site)]
        _run([sys.executable, "-m", "pip", "install", *options, entry["requires"]], folder, dict(os.environ))
    (folder / "program.py").write_text(entry["program"], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONHASHSEED": "0"}
    _run([sys.executable, "-c", _PROFILED], folder, environment)
    return pstats.Stats(str(folder / "profile.pstats"))


def _run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_RUN_SECONDS, check=False
    )
    if ended.returncode != 0:
        raise RlmError(f"{command[2][:40]!r}: status {ended.returncode}: {ended.stderr[-500:]}")


def predicted(predictor: Predictor, package: Path) -> list[tuple[Path, _Predicted]]:
    """The predictions of all functions of a package, without its tests."""
    analyser, settings = Analyser(call_sizes=True), Settings()
    found: list[tuple[Path, _Predicted]] = []
    paths = [package] if package.is_file() else sorted(package.rglob("*.py"))
    for path in paths:
        if {"test", "tests"} & set(path.relative_to(package.parent).parts) or path.stat().st_size == 0:
            continue
        try:
            units = [unit for text in file_units(analyser, path) for unit in text.units if unit.code.basis == "call"]
        except RlmError:
            continue
        answered: list[tuple[AnalysedUnit, Sequence[Prediction]]] = []
        for start in range(0, len(units), _STEP):
            step = units[start : start + _STEP]
            queries = [queries_for(predictor, unit.code) for unit in step]
            answered += zip(step, predictor.predict([unit.code for unit in step], queries), strict=True)
        reasons = [relevance(unit.code, line, settings) for unit, line in answered]
        growing = growing_most(answered, settings) if not any(reasons) else None
        for (unit, line), reason in zip(answered, reasons, strict=True):
            latency = next((one.median for one in line if one.metric == "latency"), None)
            found.append((path, _Predicted(unit, latency, "growth" if unit is growing else reason)))
    return found


def judge(name: str, stats: pstats.Stats, found: Sequence[tuple[Path, _Predicted]]) -> Program:
    """Compare a profile with the predictions for the functions of the package."""
    costs = sorted((one.latency for _, one in found if one.latency is not None), reverse=True)
    of_file: dict[str, list[int]] = {}
    for number, (path, _) in enumerate(found):
        of_file.setdefault(str(path), []).append(number)
    times: dict[int, tuple[float, float]] = {}
    for (file, line, called), (_, _, own, cumulative, _) in stats.stats.items():  # type: ignore[attr-defined]
        place = _unit_at(found, of_file.get(file, ()), line, called)
        if place is not None:
            before = times.get(place, (0.0, 0.0))
            times[place] = before[0] + own, max(before[1], cumulative)

    def hottest(by: Literal[0, 1]) -> tuple[HotFunction, ...]:
        places = sorted(times, key=lambda place: -times[place][by])[:_HOT]
        return tuple(_hot(found[place][1], times[place][by], costs) for place in places)

    hints = sum(one.hint is not None for _, one in found)
    return Program(name, len(found), hints, hottest(0), hottest(1))


def _unit_at(found: Sequence[tuple[Path, _Predicted]], places: Sequence[int], line: int, called: str) -> int | None:
    """The innermost of some functions at a line with the name that the profile has."""
    candidates = [
        place
        for place in places
        if found[place][1].unit.unit.qualname.rpartition(".")[2] == called
        and found[place][1].unit.unit.span.start_line < line <= found[place][1].unit.unit.span.end_line + 1
    ]
    return max(candidates, key=lambda place: found[place][1].unit.unit.span.start_line, default=None)


def _hot(one: _Predicted, seconds: float, costs: Sequence[float]) -> HotFunction:
    above = sum(cost > one.latency for cost in costs) / len(costs) if one.latency is not None else None
    return HotFunction(one.unit.unit.qualname, seconds, above, one.hint)


def run(work: Path) -> None:
    """Profile and predict the programs that have no line yet."""
    out = work / "programs.jsonl"
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    done = {json.loads(line)["name"] for line in lines}
    predictor = rlm_core.load(threads=1)
    for name, entry in tomllib.loads(PROGRAMS.read_text(encoding="utf-8")).items():
        if name in done:
            continue
        try:
            folder = (work / name).resolve()
            stats = profiled(name, entry, folder)
            program = judge(name, stats, predicted(predictor, folder / "site" / entry["package"]))
        except (RlmError, subprocess.TimeoutExpired, OSError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(program)) + "\n")
        print(f"{name}: {program.functions} functions", flush=True)


def report(work: Path) -> None:
    """Print the shares of the hottest functions in the top fifth and with a hint."""
    rows = [json.loads(line) for line in (work / "programs.jsonl").read_text(encoding="utf-8").splitlines()]
    print(f"{'program':<16} functions  hints   own: top fifth, hint, both   with calls: top fifth, hint, both")
    sums = {"own": [0, 0, 0, 0], "cumulative": [0, 0, 0, 0]}
    for row in rows:
        cells = []
        for kind, total in sums.items():
            hot = row[kind]
            top = [one["rank"] is not None and one["rank"] < _TOP for one in hot]
            hint = [one["hint"] is not None for one in hot]
            counts = [sum(top), sum(hint), sum(map(all, zip(top, hint, strict=True))), len(hot)]
            total[:] = [one + other for one, other in zip(total, counts, strict=True)]
            cells.append(f"{counts[0]:>14} {counts[1]:>5} {counts[2]:>5} of {counts[3]:>2}")
        print(f"{row['name']:<16} {row['functions']:>9} {row['hints']:>6} {'   '.join(cells)}")
    functions, hints = sum(row["functions"] for row in rows), sum(row["hints"] for row in rows)
    print(f"{len(rows)} programs, {functions} functions, {hints / max(functions, 1):.1%} with a hint")
    for kind, (top_count, hint_count, both_count, all_count) in sums.items():
        shares = (f"{count / all_count:.1%}" for count in (top_count, hint_count, both_count))
        print(f"{kind}: top fifth, hint and both: {', '.join(shares)} of {all_count}")


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(prog="python -m tools.experiments.hot_functions", description=__doc__)
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("--work", type=Path, required=True, help="folder of programs, profiles and results")
    given = parser.parse_args()
    {"run": run, "report": report}[given.command](given.work)


if __name__ == "__main__":
    main()
