"""Boosted regression trees as flat arrays, evaluated in numpy, for all bases but functions.

A forest reads the features of one text under one query (``features``) and gives log10 of the value in SI
units. Trained with scikit-learn, kept in ``trees.safetensors``; evaluating runs nothing but array arithmetic.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rlm_core.errors import ModelError

_TYPES = {
    "feature": np.int16,
    "threshold": np.float32,
    "left": np.int32,
    "right": np.int32,
    "missing_left": np.bool_,
    "value": np.float32,
    "roots": np.int32,
    "offset": np.float32,
}
_FIELDS = tuple(_TYPES)


@dataclass(frozen=True, slots=True)
class Forest:
    """All nodes of all trees, ``(nodes,)`` each; a leaf has ``feature`` -1. ``roots (trees,)`` are node numbers.

    ``offset (3,)`` is what is added to the leaves: a constant, and a feature (its number, -1 for none) by a factor.
    """

    feature: npt.NDArray[np.int16]
    threshold: npt.NDArray[np.float32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    missing_left: npt.NDArray[np.bool_]
    value: npt.NDArray[np.float32]
    roots: npt.NDArray[np.int32]
    offset: npt.NDArray[np.float32]

    def predict(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Features ``(rows, features)``, NaN where unknown -> ``(rows,)``."""
        node = np.repeat(self.roots[None, :], len(features), axis=0)
        rows = np.arange(len(features))[:, None]
        while True:
            split = self.feature[node]
            if (split < 0).all():
                break
            value = features[rows, np.maximum(split, 0)]
            goes_left = np.where(np.isnan(value), self.missing_left[node], value <= self.threshold[node])
            node = np.where(split < 0, node, np.where(goes_left, self.left[node], self.right[node]))
        constant, column, factor = float(self.offset[0]), int(self.offset[1]), float(self.offset[2])
        total: npt.NDArray[np.float64] = self.value[node].sum(axis=1, dtype=np.float64) + constant
        if column < 0:
            return total
        estimate = features[:, column].astype(np.float64)
        # Without the estimate the leaves have to do alone, scaled back to the whole; those that add to it cannot.
        alone = total / (1 - factor) if factor < 1 else np.full_like(total, np.nan)
        whole: npt.NDArray[np.float64] = np.where(np.isnan(estimate), alone, total + factor * estimate)
        return whole


def fingerprint(names: Sequence[str]) -> int:
    """A number that changes when the features do: a forest can only be used with the features it was trained on."""
    return zlib.crc32("\n".join(names).encode())


def basis_of(key: str) -> str:
    """The basis that a forest's key belongs to."""
    return key.partition("/")[0]


def save(forests: Mapping[str, Forest], names: Mapping[str, Sequence[str]], path: Path) -> None:
    """Write forests by :func:`rlm_core.inference.features.forest_key`; ``names`` are the features of each basis."""
    from safetensors.numpy import save_file

    tensors = {
        f"{key}/{field}": np.ascontiguousarray(getattr(f, field)) for key, f in forests.items() for field in _FIELDS
    }
    # An empty dictionary would make a header that cannot be read.
    save_file(tensors, path, metadata={key: str(fingerprint(names[basis_of(key)])) for key in forests} or None)


def put(forests: Mapping[str, Forest], names: Mapping[str, Sequence[str]], path: Path) -> None:
    """Replace the forests of the bases that ``forests`` have in a file of :func:`save`; the others stay as they are."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    bases = {basis_of(key) for key in forests}
    with safe_open(path, "numpy") as file:
        prints = {key: text for key, text in (file.metadata() or {}).items() if basis_of(key) not in bases}
        tensors = {f"{key}/{field}": file.get_tensor(f"{key}/{field}") for key in prints for field in _FIELDS}
    tensors |= {
        f"{key}/{field}": np.ascontiguousarray(getattr(f, field)) for key, f in forests.items() for field in _FIELDS
    }
    prints |= {key: str(fingerprint(names[basis_of(key)])) for key in forests}
    save_file(tensors, path, metadata=prints)


def load(path: Path, names: Mapping[str, Sequence[str]]) -> dict[str, Forest]:
    """Read what :func:`save` wrote; ``names`` are the features of this version of the program, by basis.

    Raises:
        ModelError: the file is missing, corrupt, or was trained on other features.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            prints = file.metadata() or {}
            forests = {key: Forest(*(file.get_tensor(f"{key}/{field}") for field in _FIELDS)) for key in prints}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path}: missing or corrupt ({error}); reinstall the model") from None
    for key, forest in forests.items():
        known = names.get(basis_of(key))
        if known is None or prints[key] != str(fingerprint(known)):
            raise ModelError(f"{path}: {key} was trained on other features; train the model again")
        _check(forest, len(known), f"{path}: {key}")
    return forests


def _check(forest: Forest, features: int, where: str) -> None:
    """A damaged or hostile file must end in a message, not in an endless walk: children come after their parent."""
    if not _sound(forest, features):
        raise ModelError(f"{where}: corrupt; reinstall the model")


def _sound(forest: Forest, features: int) -> bool:
    arrays = {field: getattr(forest, field) for field in _FIELDS}
    if any(array.ndim != 1 or array.dtype != _TYPES[field] for field, array in arrays.items()):
        return False
    count = len(forest.feature)
    if any(len(arrays[field]) != count for field in _FIELDS[:6]) or len(forest.offset) != 3:
        return False
    inner = np.flatnonzero(forest.feature >= 0)
    children = np.stack([forest.left[inner], forest.right[inner]])
    return (
        bool((forest.feature < features).all())
        and bool(np.isfinite(forest.offset).all() and np.isfinite(forest.value).all())
        and -1 <= float(forest.offset[1]) < features
        and bool(((forest.roots >= 0) & (forest.roots < count)).all())
        and bool(((children > inner) & (children < count)).all())
    )
