"""The gain from `rlm-lsp tune` on unseen packages: tuned on half of the modules, asked of the rest.

    python -m tools.experiments.tune_halves --labels LABELS.jsonl.gz --source-cache DIR --work DIR [--packages NAME...]
        [--model DIR] [--fewest 200] [--out FIGURES.json]

A module's half is decided by a hash of its name. A package counts when both halves have ``--fewest`` rows. The half
that is asked about is of the split ``test``, which tuning never reads. Reported for each package and metric: median
absolute error in log10, Spearman and the share inside the 80 % band, before and after; over all packages the mean
change of both metrics with an interval by Student's t. A package that tuning refuses counts as it was before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rlm_core import RlmError
from rlm_core.inference import model_store
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.datasets.functions import FunctionBuilder
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.training.evaluation.rows import Row, predict_table, select
from rlm_core.training.tuning.run import Options, tune
from rlm_core.types import Query
from scipy import stats

_LEAST = {"latency": 5e-8, "memory": 64.0}  # what a value is at least for its logarithm


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one metric of one package on the half that tuning has not read."""

    error: float
    spearman: float
    coverage: float


def main() -> None:
    """Tune on each package, print a line each and what they have in common."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--source-cache", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--packages", nargs="*")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--fewest", type=int, default=200)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    model = model_store.find(args.model)
    found = {}
    for name, path in _halves(args.labels, args.source_cache, args.work, args.packages, args.fewest).items():
        held = select([path], ("test",), 0).rows
        tuned, place = model, args.work / f"{name}-model"
        try:
            if not place.exists() and tune([path], model, place, Options(name), lambda line: None).model is None:
                print(f"{name}: nothing would be better; left as it was", flush=True)
        except RlmError as error:
            print(f"{name}: {error}", flush=True)
        tuned = place if place.exists() else model
        found[name] = {"before": _figures(model, held), "after": _figures(tuned, held)}
        print(f"{name}, {len(held)} rows asked: {_line(found[name])}", flush=True)
    errors: list[float] = []
    ranks: list[float] = []
    for both in found.values():
        pairs = [(both["before"][metric], both["after"][metric]) for metric in both["before"]]
        errors.append(float(np.mean([after.error / before.error - 1 for before, after in pairs])))
        ranks.append(float(np.mean([after.spearman - before.spearman for before, after in pairs])))
    print(f"{len(found)} packages: error {_mean(errors)}, Spearman {_mean(ranks)} (mean, 95 % interval)")
    if args.out:
        report = {
            name: {when: {m: asdict(f) for m, f in by.items()} for when, by in both.items()}
            for name, both in found.items()
        }
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _halves(labels: Path, cache: Path, work: Path, packages: list[str] | None, fewest: int) -> dict[str, Path]:
    """A data set for each package: one half of its modules to train on, the other as test rows."""
    rows: dict[str, list[dict[str, object]]] = {}
    for row in FunctionBuilder(labels, cache).rows():
        name = str(row["family"])
        if packages and name not in packages:
            continue
        learnt = hashlib.sha256(f"half/{row['group']}".encode()).digest()[0] % 2
        rows.setdefault(name, []).append({**row, "split": "train" if learnt else "test", "held_out": "module"})
    found = {}
    work.mkdir(parents=True, exist_ok=True)
    for name, mine in rows.items():
        counts = [sum(row["split"] == split for row in mine) for split in ("train", "test")]
        if min(counts) < fewest:
            print(f"{name}: {counts[0]} and {counts[1]} rows in its halves, left out", flush=True)
            continue
        write_rows(mine, work / f"{name}.parquet")
        found[name] = work / f"{name}.parquet"
    return found


def _figures(model: Path, rows: list[Row]) -> dict[str, Figures]:
    # Asked without a device: what the model answers for this machine.
    pairs = [(row.code, Query(row.query.metric)) for row in rows]
    answers = predict_table(OnnxPredictor(model), pairs).table
    metrics = np.array([row.query.metric for row in rows])
    values = np.array([row.value for row in rows])
    found = {}
    for metric, least in _LEAST.items():
        mine = (metrics == metric) & np.isfinite(answers.median)
        if mine.sum() < 2:
            continue
        actual, median = _log(values[mine], least), _log(answers.median[mine], least)
        inside = (values[mine] >= answers.low80[mine]) & (values[mine] <= answers.high80[mine])
        error = float(np.median(np.abs(actual - median)))
        found[metric] = Figures(error, spearman(median, actual) or 0.0, float(inside.mean()))
    return found


def _log(values: npt.NDArray[np.float64], least: float) -> npt.NDArray[np.float64]:
    return np.log10(np.maximum(values, least))


def _line(both: dict[str, dict[str, Figures]]) -> str:
    parts = []
    for metric, before in both["before"].items():
        after = both["after"][metric]
        parts.append(
            f"{metric} error {before.error:.3f} to {after.error:.3f}, Spearman {before.spearman:.3f} to"
            f" {after.spearman:.3f}, inside {before.coverage:.0%} to {after.coverage:.0%}"
        )
    return "; ".join(parts)


def _mean(changes: list[float]) -> str:
    mean = float(np.mean(changes))
    if len(changes) < 2:
        return f"{mean:+.3f}"
    low, high = stats.t.interval(0.95, len(changes) - 1, mean, stats.sem(changes))
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"


if __name__ == "__main__":
    main()
