"""How far a text is from the training texts: Mahalanobis distance of encodings, with a threshold per language.

The mean is that of the language's training texts, the covariance that of the basis within its languages; the threshold
is the quantile of the calibration split's distances that is kept in ``QUANTILE``. Beyond it the model abstains
(arXiv 1807.03888).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rlm_core.errors import ModelError
from rlm_core.types import Abstention, AbstentionCode

DISTANCE = "distance.safetensors"
QUANTILE = 0.995
_RIDGE = 0.02  # of the mean variance, added to every direction: directions that training hardly used say little
_SMALLEST = 1e-6  # variance; its whitening still fits into half precision
_ENOUGH = 1000
_LEAST = 1.1  # a short function of plain names is this far out; prose and data begin slightly earlier

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Region:
    """The region of a language's training texts: ``mean (width,)``, ``whiten (width, width)``, largest distance."""

    mean: Array
    whiten: Array
    limit: float

    def distance(self, vectors: Array) -> npt.NDArray[np.float64]:
        """Root mean square of the whitened deviations. ``(rows, width)`` -> ``(rows,)``; about 1 in training."""
        deviations = (vectors - self.mean) @ self.whiten
        result: npt.NDArray[np.float64] = np.sqrt(np.mean(deviations.astype(np.float64) ** 2, axis=1))
        return result


class NoveltyDetector:
    """The regions of a model, by ``basis/language``, for programs of each judge but LeetCode with ``@judge``."""

    def __init__(self, regions: Mapping[str, Region]) -> None:
        self.regions = dict(regions)

    def reason(self, prefix: str, vector: Array) -> Abstention | None:
        """The reason to abstain from a text that is too far away, None for others."""
        region = self.regions.get(prefix)
        if region is None:
            return None
        distance = float(region.distance(vector[None, :])[0])
        if distance <= region.limit:
            return None
        # As many digits as it takes to see that one is larger.
        digits = next((n for n in range(1, 4) if f"{distance:.{n}f}" != f"{region.limit:.{n}f}"), 4)
        details = {"distance": f"{distance:.{digits}f}", "limit": f"{region.limit:.{digits}f}"}
        return Abstention(AbstentionCode.UNLIKE_TRAINING_DATA, {**details, "basis": prefix.partition("/")[0]})

    @classmethod
    def load(cls, path: Path) -> NoveltyDetector:
        """Read what :meth:`save` wrote.

        Raises:
            ModelError: the file is missing or corrupt.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            tensors = {name: tensor.astype(np.float32) for name, tensor in load_file(path).items()}
            regions = {}
            for prefix in (name.removesuffix("/mean") for name in tensors if name.endswith("/mean")):
                mean, whiten = tensors[f"{prefix}/mean"], tensors[f"{prefix.split('/')[0]}/whiten"]
                if mean.ndim != 1 or whiten.shape != (len(mean), len(mean)):
                    raise ValueError(f"the shapes of {prefix} do not fit")
                regions[prefix] = Region(mean, whiten, tensors[f"{prefix}/limit"].item())
            return cls(regions)
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ModelError(f"{path}: missing or corrupt ({error}); reinstall the model") from None

    def save(self, path: Path) -> None:
        """Write the regions."""
        from safetensors.numpy import save_file

        tensors: dict[str, npt.NDArray[np.generic]] = {}
        for prefix, region in self.regions.items():
            tensors[f"{prefix}/mean"] = region.mean.astype(np.float32)
            tensors[f"{prefix}/limit"] = np.array([region.limit], np.float32)
            tensors[f"{prefix.split('/')[0]}/whiten"] = region.whiten.astype(np.float16)
        save_file(tensors, path)


def fit_novelty_detector(
    train: Mapping[str, Array], calibration: Mapping[str, Array], known: NoveltyDetector | None = None
) -> NoveltyDetector:
    """Fit the regions from the encodings of training and calibration texts, ``(texts, width)`` by prefix.

    The regions of a basis share the matrix that whitens; ``known`` is a detector whose matrices are kept.
    """
    kept = {prefix.split("/")[0]: region.whiten for prefix, region in known.regions.items()} if known else {}
    regions: dict[str, Region] = {}
    for basis in {prefix.split("/")[0] for prefix in train}:
        members = {prefix: vectors for prefix, vectors in train.items() if prefix.split("/")[0] == basis}
        means = {prefix: vectors.mean(axis=0) for prefix, vectors in members.items()}
        inner = np.concatenate([vectors - means[prefix] for prefix, vectors in members.items()]).astype(np.float64)
        values, directions = np.linalg.eigh(inner.T @ inner / max(len(inner) - 1, 1))
        values = np.maximum(values, 0) + _RIDGE * max(float(values.mean()), _SMALLEST)
        whiten = kept.get(basis, (directions / np.sqrt(values)).astype(np.float32))
        distances_of = {
            prefix: Region(means[prefix].astype(np.float32), whiten, np.inf).distance(calibration.get(prefix, vectors))
            for prefix, vectors in members.items()
        }
        everywhere = np.concatenate(list(distances_of.values()))
        for prefix, distances in distances_of.items():
            # A quantile so far out needs many texts: a language with few takes that of its basis.
            chosen = distances if len(distances) >= _ENOUGH else everywhere
            # Within the spread of the training texts nothing is far, however alike the calibration texts are.
            limit = max(float(np.quantile(chosen, QUANTILE)), _LEAST) if len(chosen) else np.inf
            regions[prefix] = Region(means[prefix].astype(np.float32), whiten, limit)
    return NoveltyDetector(regions)
