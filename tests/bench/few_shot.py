"""How well ten measurements on an unseen device rank unseen networks: labels in, a table of Spearman out.

    python tests/bench/few_shot.py --data nas.parquet [--model DIR] [--measured 10] [--json FILE]

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
from rlm_core.adapt import choose, fit_device
from rlm_core.adapt.columns import column_names, text_columns
from rlm_core.evaluate.metrics import spearman
from rlm_core.predictor import Predictor
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
    names = column_names("network")
    true = np.log10([[values[text][setting] for setting in settings] for text in texts])
    return Space(name, settings, true, np.log10(medians), np.array([text_columns(code, names) for code in codes]))


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
    parser.add_argument("--json", type=Path, default=None, help="also write the figures as JSON")
    arguments = parser.parse_args()
    predictor = load(arguments.model)
    figures = []
    print("| space | left out | networks | method | mean | smallest mean of a setting | 95 % of draws above |")
    print("|---|---|---|---|---|---|---|")
    for name in SPACES:
        space = read(arguments.data, name, predictor)
        for protocol in ("device", "family"):
            for method, scores in evaluate(space, protocol, arguments.measured).items():
                means = scores.mean(1)
                line = [float(means.mean()), float(means.min()), float(np.quantile(scores, 0.05))]
                figures.append([name, protocol, method, *line])
                numbers = " | ".join(f"{number:.3f}" for number in line)
                print(f"| {name} | {protocol} | {len(space.true)} | {method} | {numbers} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
