"""How well the features of networks rank NAS-Bench-201: accuracy from few labels, latency on each device.

    python -m tools.experiments.nas_accuracy --data nas.parquet [--texts 3000] [--skip-latency]

Accuracy: Kendall's tau of CIFAR-10 test accuracy after 200 epochs on networks that are not fitted, from 156, 1,562 and
80 % of them; drawn by row, and by group (no network that computes the same function as a fitted one). Latency:
Spearman by device and batch from 75 %, next to the ceiling from equal graphs that were measured twice. Intervals:
bootstrap.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from rlm_core.inference.features import network
from scipy.stats import kendalltau, norm, rankdata, spearmanr
from sklearn.ensemble import HistGradientBoostingRegressor
from tqdm import tqdm

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_SPACE = "nas/nasbench201/"
_SIZES = (156, 1562, 0.8)
_TESTED, _LANDMARKS, _DRAWS = 4000, 3000, 5
_NEIGHBOURHOODS = 600  # the most frequent ones, for the kernel
_ACCURACY_ONLY = ("all_", "macs_third", "macs_halved", "activations_halved", "dead", "depth", "open", "largest")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=None, help="use that many texts, drawn at random")
    parser.add_argument("--skip-latency", action="store_true")
    arguments = parser.parse_args()
    rows = [row for row in _read(arguments.data) if row["id"].startswith(_SPACE)]
    texts = sorted({row["text"] for row in rows})
    if arguments.texts:
        texts = [str(text) for text in np.random.default_rng(0).permutation(texts)[: arguments.texts]]
    described = {text: network.describe(text) for text in tqdm(texts, desc="features", mininterval=10)}
    rows = [row for row in rows if row["text"] in described]
    accuracy([row for row in rows if row["id"].endswith("/accuracy/cifar10/200/test")], described)
    if not arguments.skip_latency:
        latency([row for row in rows if row["metric"] == "latency"], described)


def _read(path: Path) -> list[dict[str, Any]]:
    columns = ["id", "text", "metric", "device", "workload", "value", "group"]
    return pq.read_table(path, columns=columns).to_pylist()  # type: ignore[no-any-return]


def accuracy(rows: list[dict[str, Any]], described: dict[str, network.Described]) -> None:
    """Trees, a kernel on paths and neighbourhoods, and their mean."""
    value = np.array([row["value"] for row in rows])
    groups = np.unique([row["group"] for row in rows], return_inverse=True)[1]
    parts = [described[row["text"]] for row in rows]
    names = [not name.startswith(_ACCURACY_ONLY) for name in network.TEXT_NAMES]
    trees = _scaled(np.stack([part.values for part in parts])[:, names])
    blocks = [trees, *_counted(parts)]
    joined = np.concatenate([block / np.sqrt(3 * block.shape[1]) for block in blocks], axis=1)
    for size in _SIZES:
        count = int(size * len(rows)) if isinstance(size, float) else size
        if count > 0.9 * len(rows):
            continue
        for by in ("row", "group"):
            found: dict[str, list[float]] = defaultdict(list)
            drawn: list[float] = []
            for seed in range(_DRAWS if count < len(rows) / 2 else 1):
                fitted, tested = _draw(groups if by == "group" else np.arange(len(rows)), count, seed)
                target = norm.ppf((rankdata(value[fitted]) - 0.5) / len(fitted))
                guess = {
                    "trees": _boosted(trees, fitted, tested, target),
                    "kernel": _kernel(joined, fitted, tested, target),
                }
                guess["mean"] = sum(
                    ((part - part.mean()) / part.std() for part in guess.values()), np.zeros(len(tested))
                )
                for name, part in guess.items():
                    found[name].append(kendalltau(part, value[tested])[0])
                drawn += _scores(guess["mean"], value[tested], lambda a, b: float(kendalltau(a, b)[0]))
            low, high = np.quantile(drawn, [0.025, 0.975])
            text = ", ".join(f"{name} {np.mean(scores):.3f}" for name, scores in found.items())
            print(
                f"accuracy, {count} fitted, by {by}: {text}; 95 % of the mean of both [{low:.3f}, {high:.3f}]",
                flush=True,
            )


def _counted(parts: list[network.Described]) -> list[Array]:
    """Logarithms of the counts of operator paths, and of the most frequent neighbourhoods."""
    frequency: dict[str, int] = defaultdict(int)
    for part in parts:
        for label in part.counts:
            frequency[label] += 1
    near = [label for label in frequency if ":" in label]
    near = sorted(near, key=lambda label: (-frequency[label], label))[:_NEIGHBOURHOODS]
    paths = sorted(label for label in frequency if ":" not in label)
    return [
        _scaled(np.log1p([[part.counts.get(label, 0.0) for label in kept] for part in parts])) for kept in (paths, near)
    ]


def _scaled(matrix: npt.NDArray[Any]) -> Array:
    matrix = np.nan_to_num(matrix).astype(np.float32)
    spread = matrix.std(0)
    return np.asarray((matrix - matrix.mean(0))[:, spread > 1e-9] / spread[spread > 1e-9])


def _draw(groups: npt.NDArray[Any], count: int, seed: int) -> tuple[Index, Index]:
    """``count`` rows, whole groups at a time, and rows of other groups."""
    random = np.random.default_rng(seed)
    order = np.argsort(random.permutation(groups.max() + 1)[groups], kind="stable")
    rest = order[count:]
    rest = rest[groups[rest] != groups[order[count - 1]]]
    return order[:count], random.permutation(rest)[:_TESTED]


def _boosted(matrix: Array, fitted: Index, tested: Index, target: Array) -> Array:
    few, many = len(fitted) < 1000, len(fitted) > 5000
    total = np.zeros(len(tested))
    for seed in range(2):
        model = HistGradientBoostingRegressor(
            max_iter=150 if few else 900 if many else 400,
            learning_rate=0.06,
            max_leaf_nodes=8 if few else 31 if many else 16,
            min_samples_leaf=3 if few else 8,
            l2_regularization=1.0,
            max_features=0.3,
            early_stopping=False,
            random_state=seed,
        )
        total += model.fit(matrix[fitted], target).predict(matrix[tested])
    return total


def _kernel(matrix: Array, fitted: Index, tested: Index, target: Array) -> Array:
    """Kernel ridge regression with a Gaussian kernel; on a sample where there are many rows."""
    chosen = np.random.default_rng(0).permutation(len(fitted))[:_LANDMARKS]
    near, goal = matrix[fitted[chosen]], target[chosen]
    gram = np.exp(-0.3 * _squares(near, near)) + 0.01 * np.eye(len(near))
    weights = np.linalg.solve(gram, goal - goal.mean())
    return np.asarray(np.exp(-0.3 * _squares(matrix[tested], near)) @ weights)


def _squares(a: Array, b: Array) -> Array:
    return np.asarray(np.maximum(0, (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T))


def latency(rows: list[dict[str, Any]], described: dict[str, network.Described]) -> None:
    """Boosted trees for each device and batch."""
    settings: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        settings[f"{row['device']} {dict(row['workload']).get('batch', '')}".strip()].append(row)
    scores, ceilings = [], []
    for setting, mine in sorted(settings.items()):
        matrix = np.nan_to_num(np.stack([described[row["text"]].values for row in mine]))
        matrix = matrix[:, matrix.std(0) > 1e-9]
        value = np.log([row["value"] for row in mine])
        order = np.random.default_rng(0).permutation(len(mine))
        fitted, tested = order[: int(0.75 * len(mine))], order[int(0.75 * len(mine)) :]
        model = HistGradientBoostingRegressor(max_iter=250, learning_rate=0.08, max_features=0.3, random_state=0)
        guess = model.fit(matrix[fitted], value[fitted]).predict(matrix[tested])
        drawn = _scores(guess, value[tested], lambda a, b: float(spearmanr(a, b)[0]))
        low, high = np.quantile(drawn, [0.025, 0.975])
        scores.append(spearmanr(guess, value[tested])[0])
        ceilings.append(_ceiling(mine))
        print(f"latency, {setting}: {scores[-1]:.4f} [{low:.4f}, {high:.4f}], ceiling {ceilings[-1]:.4f}", flush=True)
    print(f"latency, {len(scores)} settings: mean {np.mean(scores):.4f}, least {min(scores):.4f}; ", end="")
    print(f"mean ceiling {np.mean(ceilings):.4f}")


def _ceiling(rows: list[dict[str, Any]]) -> float:
    """The square root of the rank correlation between two measurements of equal graphs, over all such pairs."""
    same: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        same[row["text"]].append(row["value"])
    random = np.random.default_rng(0)
    pairs = np.array([random.permutation(values)[:2] for values in same.values() if len(values) > 1])
    return float(np.sqrt(max(0.0, spearmanr(pairs[:, 0], pairs[:, 1])[0]))) if len(pairs) > 2 else float("nan")


def _scores(guess: Array, value: Array, score: Callable[[Array, Array], float], rounds: int = 100) -> list[float]:
    """The score of bootstrap samples of the tested rows."""
    random = np.random.default_rng(0)
    drawn = (random.integers(0, len(value), len(value)) for _ in range(rounds))
    return [score(guess[rows], value[rows]) for rows in drawn]


if __name__ == "__main__":
    main()
