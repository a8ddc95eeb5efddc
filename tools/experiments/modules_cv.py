"""How well features read out of the source predict the latency of PyTorch modules on unseen problems, five folds.

    python -m tools.experiments.modules_cv LABELS.jsonl.gz SOURCE_CACHE [--seeds 2] [--ablate]

Rows are eager and default-compile measurements; v0 and v1 sizes of a problem share a group. Printed for each learner:
Spearman pooled, between problems (medians of their rows) and per device (mean), and the median error as a factor. The
ceiling is what two measurements of the same text, backend and device agree to. Needs the train extra.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.inference.features import module
from rlm_core.source.canonical import canonical
from rlm_core.training.datasets.cache import find_repository, read_blobs
from scipy.stats import spearmanr
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GroupKFold

Array = npt.NDArray[Any]
_BACKENDS = {"torch": "eager", "torch_compile_inductor_default": "compile"}
_ESTIMATE = module.NAMES.index("log_estimate")


def load(labels: Path, cache: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The rows (repeats of a text, backend and device as one median) and the canonical texts by blob."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(labels, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["backend"] in _BACKENDS and row["source_blob"]:
                found[row["source_blob"], _BACKENDS[row["backend"]], row["device"]].append(row)
    rows = []
    for (blob, backend, device), same in found.items():
        level, name = same[0]["kernel_id"].split("/")[1:3]
        number = re.match(r"\d+", name)
        values = [row["latency_ms"] / 1e3 for row in same]
        group = f"{level}-{number[0] if number else name}"
        rows.append({"blob": blob, "backend": backend, "device": device, "group": group, "values": values})
    names: list[str] = sorted({str(row["blob"]) for row in rows})
    repository = find_repository(cache, "ScalingIntelligence/KernelBench", download=False)
    assert repository is not None, "the repository is not in the cache; build the triton data first"
    blobs = read_blobs(repository, names)
    texts = {blob: canonical(data.decode(), "pytorch") for blob, data in blobs if data is not None}
    return [row for row in rows if row["blob"] in texts], texts


def out_of_fold(x: Array, y: Array, groups: list[str], offset: Array | None, seeds: int, **options: Any) -> Array:
    """Predictions of log10 seconds for unseen problems; the trees learn what is beyond ``offset``."""
    result = np.zeros(len(y))
    base = np.zeros(len(y)) if offset is None else offset
    for train, test in GroupKFold(5).split(x, y, groups):
        weights = _weights([groups[row] for row in train])
        for seed in range(seeds):
            trees = HistGradientBoostingRegressor(random_state=seed, **options)
            trees.fit(x[train], (y - base)[train], sample_weight=weights)
            result[test] += (trees.predict(x[test]) + base[test]) / seeds
    return result


def _weights(groups: list[str]) -> Array:
    # A problem measured on many devices counts as the square root of its rows.
    _, place, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return 1.0 / np.sqrt(counts[place])


def plain(rows: list[dict[str, Any]], texts: dict[str, str], y: Array, groups: list[str]) -> Array:
    """The baseline: trees on the device, the backend and TF-IDF of the text reduced by SVD inside each fold."""
    devices = sorted({row["device"] for row in rows})
    blobs = sorted(texts)
    where = {blob: place for place, blob in enumerate(blobs)}
    index = np.array([where[row["blob"]] for row in rows])
    query = np.array([[devices.index(row["device"]), row["backend"] != "eager"] for row in rows], dtype=float)
    result = np.zeros(len(y))
    for train, test in GroupKFold(5).split(query, y, groups):
        tfidf = TfidfVectorizer(token_pattern=r"[A-Za-z_]+|\d+", ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        tfidf.fit([texts[blobs[place]] for place in np.unique(index[train])])
        svd = TruncatedSVD(64, random_state=0).fit(
            tfidf.transform([texts[blobs[place]] for place in np.unique(index[train])])
        )
        x = np.hstack([query, svd.transform(tfidf.transform([texts[blob] for blob in blobs]))[index]])
        trees = HistGradientBoostingRegressor(
            max_iter=300, learning_rate=0.06, categorical_features=[0], random_state=0
        )
        result[test] = trees.fit(x[train], y[train]).predict(x[test])
    return result


def scores(rows: list[dict[str, Any]], y: Array, guess: Array) -> str:
    """Spearman pooled, between problems and per device, and the median factor of the error."""
    kept = np.isfinite(guess)
    rows, y, guess = [row for row, keep in zip(rows, kept, strict=True) if keep], y[kept], guess[kept]
    problems, devices = np.array([row["group"] for row in rows]), np.array([row["device"] for row in rows])
    medians = [(np.median(y[problems == name]), np.median(guess[problems == name])) for name in np.unique(problems)]
    texts = np.array([row["blob"] for row in rows])
    versions = [(np.median(y[texts == name]), np.median(guess[texts == name])) for name in np.unique(texts)]
    each = [spearmanr(y[devices == name], guess[devices == name])[0] for name in np.unique(devices)]
    figures = [
        spearmanr(y, guess)[0],
        spearmanr(*zip(*medians, strict=True))[0],
        spearmanr(*zip(*versions, strict=True))[0],
    ]
    factor = 10 ** np.median(np.abs(y - guess))
    names = ("pooled", "problems", "texts", "per device")
    shown = " ".join(
        f"{name} {value:.3f}" for name, value in zip(names, [*figures, statistics.mean(each)], strict=True)
    )
    return f"{shown} | median factor {factor:.2f} | rows {len(y)}"


def ceiling(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Array, Array]:
    """Rows measured more than once: one measurement, and the median of the others."""
    kept = [row for row in rows if len(row["values"]) > 1]
    first = np.log10([row["values"][0] for row in kept])
    rest = np.log10([statistics.median(row["values"][1:]) for row in kept])
    return kept, first, rest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", type=Path)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument(
        "--ablate", action="store_true", help="also without the estimate as offset and with the raw totals alone"
    )
    options = parser.parse_args()
    rows, texts = load(options.labels, options.cache)
    y = np.log10([statistics.median(row["values"]) for row in rows])
    groups = [row["group"] for row in rows]
    described = {blob: module.describe(text) for blob, text in texts.items()}
    x = np.array([module.features(described[row["blob"]], {"backend": row["backend"]}, row["device"]) for row in rows])
    estimate = x[:, _ESTIMATE].astype(float)
    print(f"{len(rows)} rows, {len(set(groups))} problems, {len(texts)} texts")
    print("ceiling (repeats)       ", scores(*ceiling(rows)))
    print("estimate alone          ", scores(rows, y, estimate))
    print("plain: device and text  ", scores(rows, y, plain(rows, texts, y, groups)))
    offset = np.where(np.isfinite(estimate), estimate, np.nanmedian(estimate))
    trees = {
        "max_iter": 400,
        "learning_rate": 0.04,
        "max_leaf_nodes": 24,
        "min_samples_leaf": 20,
        "l2_regularization": 5.0,
        "max_features": 0.3,
    }
    ratio = out_of_fold(x, y, groups, offset, options.seeds, **trees)
    print("features, log ratio     ", scores(rows, y, ratio))
    repeated = np.array([len(row["values"]) > 1 for row in rows])
    again = [row for row, keep in zip(rows, repeated, strict=True) if keep]
    print("  on the repeated rows  ", scores(again, y[repeated], ratio[repeated]))
    if options.ablate:
        direct = out_of_fold(x, y, groups, None, options.seeds, **trees)
        print("features, log seconds   ", scores(rows, y, direct))
        print("mean of the two         ", scores(rows, y, (ratio + direct) / 2))


if __name__ == "__main__":
    main()
