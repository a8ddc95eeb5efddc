"""The gain from costs of callees on packages that the model has not seen, cold and with measurements.

    python -m tools.experiments.propagated_costs --data CALLS.parquet... [--packages NAME...] [--most 500]
        [--model DIR] [--out FIGURES.json]

The rows are functions of the packages named, or else of those that hold test rows alone; at most ``--most`` of each,
chosen by a hash. Nothing may have been trained on the packages named (``model_core/labels/unseen.jsonl.gz``). They are
predicted without the cost analysis, from their text alone, with predicted callees, with half of the package measured
(each half is judged with the other one known), and with all but the function itself measured. Reported by condition:
Spearman and median error in decades, pooled and as mean of packages; share inside the 80 % band and its median width in
decades; and by package.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.inference import model_store
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.corpus import floor_of
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.training.package_graph import GraphReader, PackageGraph, read_graph
from rlm_core.types import Metric, Prediction, Query

Mask = npt.NDArray[np.bool_]
METRICS: tuple[Metric, ...] = ("latency", "memory")
_FEWEST = 30  # functions of a package with figures
_LARGE = 100  # functions of a package whose coverage is judged
_BATCH = 128


@dataclass(frozen=True, slots=True)
class Answers:
    """Log10 median and ends of the 80 % band of some functions."""

    median: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def main() -> None:
    """Predict, print a table, and write all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--packages", nargs="+", help="packages to judge (default: those with test rows alone)")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    graph = read_graph(arguments.data)
    rows = chosen_rows(graph, arguments.packages or unseen_packages(graph), arguments.most)
    model = model_store.find(arguments.model)
    half = np.array([zlib.crc32(graph.texts[text].encode()) % 2 == 0 for text in graph.text])
    nothing, everything = np.zeros(len(graph), bool), np.ones(len(graph), bool)
    alone, whole = OnnxPredictor(model, propagate=False), OnnxPredictor(model)
    without_facts = OnnxPredictor(model, join_facts=False, propagate=False)
    parts = [(rows[~half[rows]], half), (rows[half[rows]], ~half)]
    answers = {
        "without the cost analysis": (rows, predict(without_facts, graph, rows, nothing)),
        "text alone": (rows, predict(alone, graph, rows, nothing)),
        "predicted callees": (rows, predict(whole, graph, rows, nothing)),
        "half measured": joined([(judged, predict(whole, graph, judged, known)) for judged, known in parts]),
        "all measured": (rows, predict(whole, graph, rows, everything)),
    }
    figures: dict[str, Any] = {}
    for metric in METRICS:
        for name, (places, by_metric) in answers.items():
            figures[f"{metric}, {name}"] = found = judge(graph, metric, places, by_metric[metric])
            print(
                f"{metric}, {name}: " + ", ".join(f"{key} {value}" for key, value in found["all"].items()), flush=True
            )
        gains(figures[f"{metric}, text alone"], figures[f"{metric}, half measured"], metric)
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def unseen_packages(graph: PackageGraph) -> list[str]:
    """The packages that hold test rows alone."""
    seen = np.isin(graph.split, ("train", "val", "cal"))
    return sorted(set(graph.package[graph.split == "test"].tolist()) - set(graph.package[seen].tolist()))


def chosen_rows(graph: PackageGraph, packages: Sequence[str], most: int) -> npt.NDArray[np.int64]:
    """The measured functions of some packages, at most so many of each."""
    has_value = np.isfinite(graph.values["latency"]) | np.isfinite(graph.values["memory"])
    rows = np.flatnonzero(np.isin(graph.package, packages) & has_value)
    order = sorted(rows.tolist(), key=lambda row: zlib.crc32(f"row/{row}".encode()))
    counts: dict[str, int] = {}
    kept = []
    for row in order:
        name = str(graph.package[row])
        counts[name] = counts.get(name, 0) + 1
        if counts[name] <= most:
            kept.append(row)
    return np.array(sorted(kept))


def predict(
    predictor: OnnxPredictor, graph: PackageGraph, rows: npt.NDArray[np.int64], measured: Mask
) -> dict[str, Answers]:
    """The answers about functions; those of ``measured`` that have values are known, but not the function itself."""
    reader = GraphReader(graph, measured)
    found: dict[str, list[tuple[float, float, float]]] = {metric: [] for metric in METRICS}
    for start in range(0, len(rows), _BATCH):
        codes = [reader.code(int(row)) for row in rows[start : start + _BATCH]]
        for line in predictor.predict(codes, [[Query(metric) for metric in METRICS]] * len(codes)):
            for answer in line:
                found[answer.metric].append(_logs(answer))
    return {metric: Answers(*np.array(lines).T) for metric, lines in found.items()}


def joined(parts: Sequence[tuple[npt.NDArray[np.int64], dict[str, Answers]]]) -> tuple[npt.NDArray[np.int64], Any]:
    """The rows and answers of all parts."""
    names = "median", "low", "high"
    together = {
        metric: Answers(*(np.concatenate([getattr(found[metric], name) for _, found in parts]) for name in names))
        for metric in METRICS
    }
    return np.concatenate([rows for rows, _ in parts]), together


def _logs(answer: Prediction) -> tuple[float, float, float]:
    if answer.band is None or answer.median is None:
        return np.nan, np.nan, np.nan
    floor = max(answer.floor, 1e-30)
    low, median, high = (np.log10(max(v, floor)) for v in (answer.band.low, answer.median, answer.band.high))
    return float(median), float(low), float(high)


def judge(graph: PackageGraph, metric: str, rows: npt.NDArray[np.int64], answers: Answers) -> dict[str, Any]:
    """Figures over all functions and by package."""
    values = np.log10(np.maximum(graph.values[metric][rows], floor_of(f"call/python/{metric}")))
    usable = np.isfinite(values) & np.isfinite(answers.median)
    packages = graph.package[rows]
    by_package = {
        str(name): _figures(values, answers, usable & (packages == name))
        for name in np.unique(packages[usable])
        if (usable & (packages == name)).sum() >= _FEWEST
    }
    overall = _figures(values, answers, usable)
    for key in ("spearman", "error"):
        overall[f"{key} by package"] = round(float(np.mean([entry[key] for entry in by_package.values()])), 4)
    large = [entry["inside"] for entry in by_package.values() if entry["rows"] >= _LARGE]
    overall["packages with 72-88 % inside"] = f"{sum(0.72 <= share <= 0.88 for share in large)} of {len(large)}"
    return {"all": overall, "packages": by_package}


def _figures(values: npt.NDArray[np.float64], answers: Answers, mask: Mask) -> dict[str, Any]:
    actual, median, low, high = (part[mask] for part in (values, answers.median, answers.low, answers.high))
    return {
        "rows": int(mask.sum()),
        "spearman": round(spearman(median, actual) or 0.0, 4),
        "error": round(float(np.median(np.abs(median - actual))), 4),
        "inside": round(float(np.mean((actual >= low - 1e-9) & (actual <= high + 1e-9))), 4),
        "width": round(float(np.median(high - low)), 4),
    }


def gains(before: dict[str, Any], after: dict[str, Any], metric: str) -> None:
    """Return the gain from measuring half of a package, over packages."""
    pairs = [
        (entry, after["packages"][name]) for name, entry in before["packages"].items() if name in after["packages"]
    ]
    rank = np.mean([new["spearman"] - old["spearman"] for old, new in pairs])
    error = np.mean([new["error"] / old["error"] - 1 for old, new in pairs])
    narrower = [10 ** (old["width"] - new["width"]) for old, new in pairs]
    met = [
        new["spearman"] - old["spearman"] >= 0.06 and new["error"] <= 0.75 * old["error"] and ratio >= 2.5
        for (old, new), ratio in zip(pairs, narrower, strict=True)
    ]
    print(
        f"{metric}, half measured, mean of {len(pairs)} packages: Spearman {rank:+.3f}, error {error:+.1%}, band"
        f" {np.median(narrower):.2f}x narrower (median); Spearman +.06, error -25 % and 2.5x at once in {sum(met)}"
    )


if __name__ == "__main__":
    main()
