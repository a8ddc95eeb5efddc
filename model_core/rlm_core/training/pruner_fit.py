"""Measured configurations -> a ``Pruner``: one forest per kernel (needs scikit-learn).

A forest learns how far a configuration is from the best one of its kernel, device and sizes, as log2 of the ratio,
capped at a factor of eight: differences between worse configurations do not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlm_core.errors import DataError
from rlm_core.measurement.gpu.autotune_pruner import Choice, Pruner, features, numbers, sizes_of
from rlm_core.measurement.gpu.bench_rows import Row
from rlm_core.queries.devices import canonical_device

_FARTHEST = 3.0  # log2 of the ratio
_LEAST = 20  # trials of a kernel


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration of a kernel and the seconds that it took."""

    kernel: str
    choice: Choice
    seconds: float


def trials_of(rows: Iterable[Row]) -> Iterator[Trial]:
    """The trials in rows of ``rlm-lsp bench triton --configs all``."""
    for row in rows:
        config, kernel, launches = row.get("config"), row.get("kernel"), row.get("launches")
        if row.get("status") != "ok" or not isinstance(config, Mapping) or not kernel or not row.get("latency"):
            continue
        launch: Mapping[str, Any] = next((entry for entry in launches or () if entry.get("kernel") == kernel), {})
        settings = numbers(config)
        sizes = sizes_of(launch.get("arguments") or row.get("case") or {}, settings)
        yield Trial(str(kernel), Choice(settings, sizes, canonical_device(str(row["device"]))), float(row["latency"]))


def fit(trials: Sequence[Trial], *, seeds: int = 2) -> Pruner:
    """A forest for each kernel with enough trials.

    Raises:
        DataError: no kernel has enough.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    from .student.forest_fit import to_forest

    by_kernel: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_kernel[trial.kernel].append(trial)
    forests = {}
    for kernel, kernel_trials in by_kernel.items():
        if len(kernel_trials) < _LEAST:
            continue
        best: dict[tuple[object, ...], float] = {}
        for trial in kernel_trials:
            cell = (trial.choice.device, trial.choice.sizes)
            best[cell] = min(best.get(cell, np.inf), trial.seconds)
        matrix = np.stack([features(trial.choice) for trial in kernel_trials])
        far = [np.log2(trial.seconds / best[trial.choice.device, trial.choice.sizes]) for trial in kernel_trials]
        columns = np.flatnonzero(np.isfinite(matrix).any(axis=0))
        models = [
            HistGradientBoostingRegressor(
                max_iter=200,
                learning_rate=0.08,
                max_leaf_nodes=24,
                min_samples_leaf=min(15, max(2, len(kernel_trials) // 20)),
                l2_regularization=1.0,
                max_features=0.4,
                random_state=seed,
            ).fit(matrix[:, columns], np.minimum(far, _FARTHEST))
            for seed in range(seeds)
        ]
        forests[kernel] = to_forest(models, columns)
    if not forests:
        raise DataError(f"no kernel has {_LEAST} measured configurations; measure with rlm-lsp bench triton first")
    return Pruner(forests)
