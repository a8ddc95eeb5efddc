"""How well ten measurements on an unseen device rank unseen networks: labels in, a table of Spearman out.

    python -m tools.experiments.few_shot --data nas.parquet [--model DIR] [--measured 10] [--goals FILE]

The model predicts networks of the test split on all devices but the one in question and its kin, as ``rlm-lsp adapt``
asks it; the fit sees ten true latencies of the new device. "device" leaves out all batch sizes of one device; "family"
leaves out all NVIDIA GPUs, all Xeons or all phones together, and each other device alone. Rows: the mean of the known
devices; the fit on devices alone; with operator counts of the network; and the latter on networks that ``adapt
--choose`` picked from the candidates.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rlm_core import load
from rlm_core.inference.adaptation.fit import choose, fit_device
from rlm_core.inference.adaptation.predictor import text_column_names, text_columns
from rlm_core.inference.predictor import Predictor
from rlm_core.training.evaluation.metrics import spearman
from rlm_core.types import CodeText, Query

Array = npt.NDArray[np.float64]
Setting = tuple[str, str]  # device and batch
UNSEEN, DRAWS, CANDIDATES, NETWORKS = 200, 20, 200, 600
SPACES = ("nasbench201", "fbnet", "ofa")


@dataclass(frozen=True, slots=True)
class Space:
    """Measured and predicted log10 seconds ``(networks, settings)`` and text columns ``(networks, k)``."""

    name: str
    settings: list[Setting]
    true: Array
    predicted: Array
    columns: Array


def read(path: Path, name: str, predictor: Predictor) -> Space:
    """Networks of the test split that were measured in every setting of their space, with the model's answers."""
    table = pq.read_table(path, columns=["id", "text", "metric", "device", "workload", "value", "split"])
    chosen = pc.and_(pc.equal(table["split"], "test"), pc.equal(table["metric"], "latency"))
    table = table.filter(pc.and_(chosen, pc.starts_with(table["id"], f"nas/{name}/")))
    values: dict[str, dict[Setting, float]] = defaultdict(dict)
    workloads = table["workload"].to_pylist(maps_as_pydicts="strict")
    rows = zip(
        table["text"].to_pylist(), table["device"].to_pylist(), workloads, table["value"].to_pylist(), strict=True
    )
    for text, device, workload, value in rows:
        values[text][device, workload.get("batch", "")] = value
    settings = sorted({setting for found in values.values() for setting in found})
    texts = sorted(text for text, found in values.items() if len(found) == len(settings))
    texts = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:NETWORKS]]
    codes = [CodeText(text, "onnx", "network") for text in texts]
    queries = [Query("latency", device, {"batch": batch}) for device, batch in settings]
    answers = predictor.predict(codes, [queries] * len(codes))
    medians = [[answer.median or np.nan for answer in line] for line in answers]
    names = text_column_names("network")
    true = np.log10([[values[text][setting] for setting in settings] for text in texts])
    columns = np.array([text_columns(code, names) for code in codes])
    predicted = np.log10(medians)
    # A device without training data is never among the known ones; a text for which the model abstains is left out.
    answered = np.isfinite(predicted[:, np.isfinite(predicted).any(0)]).all(1)
    return Space(name, settings, true[answered], predicted[answered], columns[answered])


def family_of(device: str) -> str:
    """GPU, Xeon or phone; else the device itself."""
    if device.startswith("nvidia-"):
        return "gpu"
    if device.startswith(("pixel-", "samsung-", "essential-")):
        return "phone"
    return "xeon" if "xeon" in device else device


def evaluate(space: Space, protocol: str, measured: int) -> dict[str, Array]:
    """Spearman on unseen networks by method, each ``(settings, draws)``."""
    found: dict[str, list[list[float]]] = {}
    kin = np.array([family_of(device) if protocol == "family" else device for device, _ in space.settings])
    candidates = min(CANDIDATES, len(space.true) // 2)
    for j in range(len(kin)):
        others = np.flatnonzero(kin != kin[j])
        others = others[np.isfinite(space.predicted[:, others]).all(0)]
        if not len(others):
            continue
        lines: dict[str, list[float]] = defaultdict(list)
        for draw in range(DRAWS):
            rows = np.random.default_rng([j, draw]).permutation(len(space.true))[: candidates + UNSEEN]
            known, target, extra = space.predicted[rows][:, others], space.true[rows, j], space.columns[rows]
            new, first = slice(candidates, None), list(range(measured))
            best = choose(known[:candidates], measured, extra[:candidates])
            predicted = {
                "mean of known devices": known[new].mean(1),
                "fit, devices alone": fit_device(known[first], target[first]).predict(known[new]),
            }
            for name, at in (("fit", first), ("fit, chosen networks", best)):
                predicted[name] = fit_device(known[at], target[at], extra[at]).predict(known[new], extra[new])
            for name, values in predicted.items():
                lines[name].append(spearman(values, target[new]) or 0.0)
        for name, line in lines.items():
            found.setdefault(name, []).append(line)
    return {name: np.array(lines) for name, lines in found.items()}


def main() -> None:
    """Ask the model about each space and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the data set of networks")
    parser.add_argument("--model", type=Path, default=None, help="an exported model; default: the one that ships")
    parser.add_argument("--measured", type=int, default=10)
    parser.add_argument("--goals", type=Path, default=None, help="also write the goals for the model card")
    arguments = parser.parse_args()
    predictor = load(arguments.model)
    goals: list[dict[str, object]] = []
    print("| space | left out | networks | method | mean | smallest mean of a setting | 95 % of draws above |")
    print("|---|---|---|---|---|---|---|")
    for name in SPACES:
        space = read(arguments.data, name, predictor)
        for protocol in ("device", "family"):
            found = evaluate(space, protocol, arguments.measured)
            for method, scores in found.items():
                means = scores.mean(1)
                numbers = [means.mean(), means.min(), np.quantile(scores, 0.05)]
                text = " | ".join(f"{number:.3f}" for number in numbers)
                print(f"| {name} | {protocol} | {len(space.true)} | {method} | {text} |", flush=True)
            if protocol == "family" and found:
                goals += goals_of(name, found, arguments.measured)
    if arguments.goals:
        arguments.goals.write_text(json.dumps(goals, indent=1) + "\n", encoding="utf-8")


def goals_of(space: str, found: dict[str, Array], measured: int) -> list[dict[str, object]]:
    """The rows of the table of goals for unseen device families."""
    means, plain = found["fit"].mean(1), found["mean of known devices"].mean(1)
    ends = [round(float(end), 4) for end in np.quantile(found["fit"], [0.025, 0.975])]
    task = f"unseen device family, {measured} measurements, unseen architectures, {space}"
    return [
        {
            "task": f"{task}: {word}",
            "which": "refit",
            "measured": round(float(value), 4),
            "interval": ends,
            "baseline": round(float(base), 4),
            "goal": goal,
            "met": bool(value >= goal),
            "note": "interval: 95 % of draws and settings; baseline: the known devices' mean",
        }
        for word, value, base, goal in (
            ("mean", means.mean(), plain.mean(), 0.95),
            ("worst setting", means.min(), plain.min(), 0.88),
        )
    ]


if __name__ == "__main__":
    main()
