"""How well ten measurements on an unseen device rank unseen networks: label files in, a table of Spearman out.

    python tests/bench/few_shot.py --labels DATA/nas [--noise 0.05] [--measured 10]

The other devices' true latencies, with noise for the error of a model, stand in for its predictions. "device" leaves
out all batch sizes of one device; "family" leaves out all NVIDIA GPUs, all Xeons or all phones together, and the
Raspberry Pi, Eyeriss and the FPGA each alone. Rows: the mean of the known devices; the fit on devices alone; with
operator counts of the network, as ``rlm-lsp adapt`` does (here taken from the architecture's code); and the latter on
networks that ``adapt --choose`` picked from 500.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rlm_core.adapt import choose, fit_device
from rlm_core.evaluate.metrics import spearman

Array = npt.NDArray[np.float64]
UNSEEN, DRAWS, CANDIDATES = 200, 20, 500
# Cells without a path from input to output run in almost no time where dead edges are pruned; logs need a floor.
SMALLEST_MS = 0.3
PHONES = ("pixel2", "pixel3", "samsung_a50", "samsung_s7", "essential_ph")
GPUS = ("1080ti", "2080ti", "titan_rtx", "titanxp", "titanx", "v100")


@dataclass(frozen=True, slots=True)
class Space:
    """``values`` (architectures, settings) in log10 ms, the settings' names, and text columns (architectures, k)."""

    name: str
    settings: list[str]
    values: Array
    columns: Array


def read(folder: Path, name: str, kinds: Callable[[dict[str, str]], list[int]], skip: int) -> Space:
    """All architectures of a label file; ``kinds`` counts the operators of a row."""
    with gzip.open(folder / f"{name}_latency.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    settings = list(rows[0])[skip:]
    values = np.log10([[max(float(row[setting]), SMALLEST_MS) for setting in settings] for row in rows])
    return Space(name, settings, values, np.log10(1 + np.array([kinds(row) for row in rows], np.float64)))


def cell_kinds(row: dict[str, str]) -> list[int]:
    """NAS-Bench-201: pointwise and spatial convolutions, pools, and the edges that are merged."""
    arch = row["arch_str"]
    kinds = [arch.count(name) for name in ("nor_conv_1x1", "nor_conv_3x3", "avg_pool", "skip_connect")]
    return [5 * kinds[0] + 2, 5 * kinds[1] + 5, 5 * kinds[2] + 2, 5 * sum(kinds)]


def layer_kinds(row: dict[str, str]) -> list[int]:
    """FBNet: pointwise, depthwise and grouped convolutions of the layers that are not skipped."""
    layers = [layer for layer in row["arch_str"].split() if layer != "skip"]
    grouped = sum(layer.endswith("_g2") for layer in layers)
    return [2 * (len(layers) - grouped), len(layers), grouped]


def stage_kinds(row: dict[str, str]) -> list[int]:
    """Once-for-all: blocks (pointwise convolutions, merges) and depthwise convolutions by kernel size."""
    kernels = [int(kernel) for kernel in row["kernel"].split()]
    depths = [int(depth) for depth in row["depth"].split()]
    used = [kernel for stage, depth in enumerate(depths) for kernel in kernels[4 * stage : 4 * stage + depth]]
    return [2 * len(used), *(used.count(size) for size in (3, 5, 7))]


def family_of(setting: str) -> str:
    """GPU, Xeon or phone; else the device itself."""
    device = next((name for name in (*GPUS, *PHONES) if setting.replace("titan_xp", "titanxp").startswith(name)), "")
    if device in GPUS:
        return "gpu"
    if device in PHONES:
        return "phone"
    return "xeon" if setting.startswith(("gold", "silver")) else setting


def left_out(setting: str, protocol: str) -> str:
    """What must be unknown when ``setting`` is new: its device or its family."""
    if protocol == "family":
        return family_of(setting)
    return next((n for n in GPUS if setting.replace("titan_xp", "titanxp").startswith(n)), setting)


def evaluate(space: Space, protocol: str, measured: int, noise: float) -> dict[str, Array]:
    """Spearman on unseen networks by method, each ``(settings, draws)``."""
    found: dict[str, list[list[float]]] = {}
    groups = np.array([left_out(setting, protocol) for setting in space.settings])
    for j in range(len(groups)):
        others = np.flatnonzero(groups != groups[j])
        if not len(others):
            continue
        lines: dict[str, list[float]] = {}
        for draw in range(DRAWS):
            rng = np.random.default_rng([j, draw])
            rows = rng.choice(len(space.values), CANDIDATES + UNSEEN, replace=False)
            known = space.values[rows][:, others]
            # Half of a model's error is shared by devices, as it comes from the text.
            shared, own = rng.standard_normal((len(rows), 1)), rng.standard_normal(known.shape)
            known = known + noise * known.std(0) * (shared + own) / np.sqrt(2)
            target, extra = space.values[rows, j], space.columns[rows]
            new, first = slice(CANDIDATES, None), list(range(measured))
            best = choose(known[:CANDIDATES], measured, extra[:CANDIDATES])
            predicted = {
                "mean of known devices": known[new].mean(1),
                "fit, devices alone": fit_device(known[first], target[first]).predict(known[new]),
            }
            for name, at in (("fit", first), ("fit, chosen networks", best)):
                predicted[name] = fit_device(known[at], target[at], extra[at]).predict(known[new], extra[new])
            for name, values in predicted.items():
                lines.setdefault(name, []).append(spearman(values, target[new]) or 0.0)
        for name, line in lines.items():
            found.setdefault(name, []).append(line)
    return {name: np.array(lines) for name, lines in found.items()}


def main() -> None:
    """Read the labels and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=Path, required=True, help="the folder of NAS label files")
    parser.add_argument("--noise", type=float, default=0.05, help="error of predictions, in standard deviations")
    parser.add_argument("--measured", type=int, default=10)
    arguments = parser.parse_args()
    spaces = [
        read(arguments.labels, "nasbench201", cell_kinds, 2),
        read(arguments.labels, "fbnet", layer_kinds, 3),
        read(arguments.labels, "ofa", stage_kinds, 5),
    ]
    print("| space | left out | method | mean | smallest mean of a setting | 95 % of draws above |")
    print("|---|---|---|---|---|---|")
    for space in spaces:
        for protocol in ("device", "family"):
            for name, scores in evaluate(space, protocol, arguments.measured, arguments.noise).items():
                means = scores.mean(1)
                print(
                    f"| {space.name} | {protocol} | {name} | {means.mean():.3f} | {means.min():.3f}"
                    f" | {np.quantile(scores, 0.05):.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
