"""Features of kernels, modules and networks: numbers extracted from a text and a query, for the boosted trees.

``describe`` does what depends on the text alone, once; ``features`` joins it with a query. Both take canonical text and
never run any of it; unknown values are NaN. Bases without features (functions, programs) have no trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

_SETTING = {"latency": ("batch",), "accuracy": ("dataset", "epochs", "subset")}
_MODULES = {"kernel": "kernel", "module": "module", "network": "network"}


def feature_names(basis: str) -> tuple[str, ...]:
    """The names of a basis' features, in order; empty for a basis without trees."""
    module = _module(basis)
    return tuple(module.NAMES) if module is not None else ()


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


def monotonic_names(basis: str) -> tuple[str, ...]:
    """The features with which a latency can only grow."""
    return tuple(getattr(_module(basis), "MONOTONIC", ()))


def answers_alone(basis: str) -> bool:
    """Whether the forests answer without the query head: their error is finer than its bins."""
    return bool(getattr(_module(basis), "ALONE", False))


def describe(text: str, basis: str) -> Any:
    """What the features need of a canonical text; None for a basis without trees."""
    module = _module(basis)
    return module.describe(text) if module is not None else None


def features(described: Any, basis: str, workload: Mapping[str, str], device: str | None) -> npt.NDArray[np.float32]:
    """The features of a described text under a query. Shape ``(len(feature_names(basis)),)``."""
    module = _module(basis)
    assert module is not None, basis
    result: npt.NDArray[np.float32] = module.features(described, workload, device)
    return result


def _module(basis: str) -> ModuleType | None:
    # Imported on first use: most sessions see only functions.
    return import_module(f"{__name__}.{_MODULES[basis]}") if basis in _MODULES else None
