"""Features of programs, kernels, modules and networks: numbers from a text and a query, for the boosted trees.

``describe`` does what depends on the text alone, once; ``features`` joins it with a query. Both take canonical text and
never run any of it; unknown values are NaN. Functions and LeetCode's programs have no trees (:func:`has_trees`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

_SETTING = {"latency": ("batch",), "accuracy": ("dataset", "epochs", "subset")}
_MODULES = {"kernel": "kernel", "module": "module", "network": "network", "program": "program"}


def feature_names(basis: str) -> tuple[str, ...]:
    """The names of a basis' features, in order; empty for functions."""
    module = _module(basis)
    return tuple(module.NAMES) if module is not None else ()


def all_feature_names() -> dict[str, tuple[str, ...]]:
    """The names of the features of every basis with trees."""
    return {basis: feature_names(basis) for basis in _MODULES}


def forest_key(task_name: str, workload: Mapping[str, str], device: str | None) -> str:
    """The name of the forest that answers a query: one per task, and for networks one per setting.

    A network has many values per text, one for each setting (device and batch, or data set, epochs and subset), so each
    setting has enough rows.
    """
    basis, _, metric = task_name.split("/")
    if basis != "network":
        return task_name
    names = [device or ""] if metric == "latency" else []
    names += [workload.get(name, "") for name in _SETTING[metric]]
    return f"{task_name}@{'/'.join(names)}"


def estimate_name(basis: str) -> str | None:
    """The feature that estimates log10 seconds from first principles, where a basis has one."""
    return getattr(_module(basis), "ESTIMATE", None)


def learnable_names(basis: str) -> tuple[str, ...]:
    """The features that trees may split on: those that carry over to unseen texts."""
    return tuple(getattr(_module(basis), "SELECTED", feature_names(basis)))


def work_is_known(basis: str, features: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_] | None:
    """Whether the texts of rows fix what is done, ``(rows,)``; None where a basis does not tell such texts apart.

    Args:
        basis: of the rows.
        features: ``(rows, len(feature_names(basis)))``.
    """
    name, names = getattr(_module(basis), "WORK", None), feature_names(basis)
    return ~np.isnan(features[:, names.index(name)]) if name in names else None


def monotonic_names(basis: str) -> tuple[str, ...]:
    """The features with which a latency can only grow."""
    return tuple(getattr(_module(basis), "MONOTONIC", ()))


def has_trees(task: str) -> bool:
    """Return whether a task, or the task of a forest's key, is predicted by trees from features.

    Programs are if a judge other than LeetCode ran them: the head predicts LeetCode's, whose run times it ranks as well
    and with a smaller error.
    """
    basis = task.partition("/")[0]
    return basis in _MODULES and (basis != "program" or "@" in task)


def answers_alone(task: str) -> bool:
    """Return whether a task's forests answer without the query head, because their error is finer than its bins."""
    return has_trees(task) and bool(getattr(_module(task.partition("/")[0]), "ALONE", False))


def reads_ridge(basis: str) -> bool:
    """Return whether the n-gram ridge's prediction is one of the features."""
    return basis == "program"


def describe(text: str, basis: str, language: str) -> Any:
    """Extract what the features need from a canonical text; None for functions."""
    module = _module(basis)
    if module is None:
        return None
    return module.describe(text, language) if basis == "program" else module.describe(text)


def features(
    described: Any, basis: str, workload: Mapping[str, str], device: str | None, ridge: float = math.nan
) -> npt.NDArray[np.float32]:
    """The features of a described text under a query. Shape ``(len(feature_names(basis)),)``.

    ``ridge`` is the n-gram ridge's prediction in log10 of SI units, for a basis that reads it.
    """
    module = _module(basis)
    assert module is not None, basis
    last = (ridge,) if reads_ridge(basis) else ()
    result: npt.NDArray[np.float32] = module.features(described, workload, device, *last)
    return result


def _module(basis: str) -> ModuleType | None:
    # Imported on first use: most sessions see only functions.
    return import_module(f"{__name__}.{_MODULES[basis]}") if basis in _MODULES else None
