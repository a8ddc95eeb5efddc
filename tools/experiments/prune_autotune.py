"""How close to the best does measuring the promising tenth of a kernel's configurations come?

    python -m tools.experiments.prune_autotune --labels benchmark_hub_cuda_hip.jsonl.gz

For each kernel and GPU: rank its configurations, measure the best ranked share, and compare the fastest of those with
the fastest of all. ``known kernel`` has seen the kernel on other GPUs but never on this one; ``rule`` is for kernels
without measurements; ``other kernels`` is a forest fitted to all other kernels on all GPUs. Random and the rule
are means over seeds. Intervals are bootstraps over the pairs of kernel and GPU.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.measurement.gpu.autotune_pruner import Choice, Pruner, numbers
from rlm_core.queries.devices import canonical_device
from rlm_core.training.datasets.builder import read_labels
from rlm_core.training.pruner_fit import Trial, fit

Order = npt.NDArray[np.int64]
_DRAWS = 300


def main() -> None:
    """Evaluate and print a table; ``--out`` keeps it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    pairs = read_pairs(arguments.labels)
    table: dict[str, dict[str, float]] = {}
    for (kernel, device), trials in pairs.items():
        row = table[f"{kernel} on {device}"] = {}
        seconds = np.array([trial.seconds for trial in trials])
        kept = math.ceil(arguments.share * len(trials))
        for name, orders in rankings(pairs, kernel, device).items():
            row[name] = float(np.mean([seconds[order[:kept]].min() / seconds.min() - 1 for order in orders]))
        print(f"{kernel} on {device}: " + ", ".join(f"{name} {value:.1%}" for name, value in row.items()), flush=True)
    summary = {
        name: summarise([row[name] for row in table.values() if name in row]) for name in next(iter(table.values()))
    }
    print(f"\nmeasuring {arguments.share:.0%}: mean distance from the best, 95 % interval; worst; pairs within 10 %")
    for name, one in summary.items():
        print(f"{name:28} {one['mean']:.1%} [{one['low']:.1%}, {one['high']:.1%}]  {one['worst']:.1%}  {one['within']}")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps({"share": arguments.share, "summary": summary, "pairs": table}, indent=1))


def read_pairs(labels: Path) -> dict[tuple[str, str], list[Trial]]:
    """The trials of each kernel on each GPU."""
    pairs: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for row in read_labels(labels, frozenset({"kernel_id", "config", "device", "latency_ms"}), "tunable kernels"):
        size = row["input_size"]
        total = math.prod(size) if isinstance(size, list) else size
        choice = Choice(numbers(row["config"]), (math.log2(total),), canonical_device(row["device"]))
        kernel = str(row["kernel_id"]).partition("/")[2]
        pairs[kernel, row["device"]].append(Trial(kernel, choice, row["latency_ms"] * 1e-3))
    return dict(pairs)


def rankings(pairs: Mapping[tuple[str, str], Sequence[Trial]], kernel: str, device: str) -> dict[str, list[Order]]:
    """Orders of the configurations of one kernel on one GPU, most promising first, by who ranked them."""
    own = [trial.choice for trial in pairs[kernel, device]]
    seen = [trial for (one, where), trials in pairs.items() if one == kernel and where != device for trial in trials]
    family = kernel.partition("_")[0]
    others = [
        replace(trial, kernel="all")
        for (one, _), trials in pairs.items()
        if one.partition("_")[0] != family
        for trial in trials
    ]
    random = np.random.default_rng(0)
    draws = [random.permutation(len(own)) for _ in range(_DRAWS)]
    usual = np.array([64 <= choice.threads <= 512 and choice.threads % 32 == 0 for choice in own])
    ruled = [np.concatenate([draw[usual[draw]], draw[~usual[draw]]]) for draw in draws]
    by_size: Callable[[Choice], Any] = lambda choice: (-choice.tile, -choice.threads)  # noqa: E731
    return {
        "known kernel, unseen GPU": [np.array(fit(seen).rank(kernel, own))],
        "rule": ruled,
        "rule, as shipped": [np.array(Pruner().rank(None, own))],
        "other kernels": [np.array(fit(others).rank("all", own))],
        "largest tile first": [np.array(sorted(range(len(own)), key=lambda place: by_size(own[place])))],
        "random": draws,
    }


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Mean with its bootstrap interval, the worst, and how many are within 10 %."""
    array = np.array(values)
    random = np.random.default_rng(0)
    means = [random.choice(array, len(array)).mean() for _ in range(5000)]
    low, high = np.quantile(means, [0.025, 0.975])
    within = f"{int((array <= 0.1).sum())} of {len(array)}"
    return {"mean": array.mean(), "low": low, "high": high, "worst": array.max(), "within": within}


if __name__ == "__main__":
    main()
