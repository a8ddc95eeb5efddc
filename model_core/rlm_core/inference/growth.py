"""The growth head of programs: how time and memory grow with the input, as class and calibrated probability.

A linear model reads hashed words and signs of structure; a small network reads its scores, the dense features, work
facts, the language and the basis. Functions have another one, see :mod:`.input_growth`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from rlm_core.errors import ModelError
from rlm_core.source import languages
from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.types import GROWTH_CLASSES, CodeText, GrowthEstimate, Prediction

from .growth_facts import FACT_FEATURES, fact_features, input_growth, size_names
from .growth_features import BITS, FEATURES, GrowthFeatures, growth_features, unit_weights
from .trees import fingerprint

Array = npt.NDArray[np.float32]
GROWTH = "growth.safetensors"
METRICS = ("latency", "memory")
BASES = ("program", "call")
LANGUAGES = tuple(sorted(name for name, entry in languages.LANGUAGES.items() if entry.grammar is not None))
OUTPUTS = len(METRICS) * len(GROWTH_CLASSES)
_CLIP = 4.0
_CACHED_TEXTS = 4_096
_MAX_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class GrowthWeights:
    """The weights of the linear model and of the network; outputs are metrics times classes.

    Shapes: ``idf (buckets,)``, ``codes (outputs, buckets)`` in units of ``scale (outputs,)``, ``offset (outputs,)``,
    ``mean`` and ``deviation`` of the dense features, ``first (inputs, hidden)``, ``first_bias (hidden,)``,
    ``last (hidden, outputs)``, ``last_bias (outputs,)``, ``temperature (metrics,)``.
    """

    idf: Array
    codes: npt.NDArray[np.int8]
    scale: Array
    offset: Array
    mean: Array
    deviation: Array
    first: Array
    first_bias: Array
    last: Array
    last_bias: Array
    temperature: Array

    def scores(self, features: GrowthFeatures) -> Array:
        """The linear model's scores of one text, ``(outputs,)``."""
        weights = unit_weights(features, self.idf)
        result: Array = (self.codes[:, features.buckets].astype(np.float32) @ weights) * self.scale + self.offset
        return result

    def standardised(self, dense: Array) -> Array:
        """Dense features in units of their deviation, ``(..., features)``."""
        result: Array = np.clip((dense - self.mean) / self.deviation, -_CLIP, _CLIP)
        return result

    def probabilities(self, features: GrowthFeatures, facts: Array, language: str, basis: str) -> Array:
        """The probability of each class, ``(metrics, classes)``; ``facts`` as in :func:`fact_features`."""
        row = head_inputs(self.scores(features), self.standardised(features.dense), facts, language, basis)
        hidden = np.maximum(row @ self.first + self.first_bias, 0)
        logits = (hidden @ self.last + self.last_bias).reshape(len(METRICS), len(GROWTH_CLASSES))
        logits = logits / self.temperature[:, None]
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        result: Array = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)
        return result


INPUTS = len(FEATURES) + OUTPUTS + len(FACT_FEATURES) + len(LANGUAGES) + len(BASES)
_SHAPES: dict[str, tuple[int | None, ...]] = {
    "idf": (2 << BITS,),
    "codes": (OUTPUTS, 2 << BITS),
    "scale": (OUTPUTS,),
    "offset": (OUTPUTS,),
    "mean": (len(FEATURES),),
    "deviation": (len(FEATURES),),
    "first": (INPUTS, None),
    "first_bias": (None,),
    "last": (None, OUTPUTS),
    "last_bias": (OUTPUTS,),
    "temperature": (len(METRICS),),
}
_HALVES = ("idf", "first", "last")


def head_inputs(scores: Array, standardised: Array, facts: Array, language: str, basis: str) -> Array:
    """The inputs of the network, ``(inputs,)``: dense features, linear scores, facts, the language and the basis."""
    known = np.array([language == name for name in LANGUAGES] + [basis == name for name in BASES], dtype=np.float32)
    return np.concatenate([standardised, scores, facts, known]).astype(np.float32)


def read_text(text: str, language: str, basis: str) -> str:
    """Return the text that the head reads: a function in neutral form, so that renaming a variable changes nothing."""
    return canonical(text, language, CanonicalForm.NEUTRAL if basis == "call" else CanonicalForm.LINES)


class GrowthHead:
    """Estimates growth; loads the weights at ``path`` on first use. Safe to use from several threads.

    Without weights (None: models from before the head) there is no estimate.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: LRUCache[tuple[str, str, str], GrowthFeatures] = LRUCache(_CACHED_TEXTS)
        self._lock = threading.Lock()

    @cached_property
    def weights(self) -> GrowthWeights:
        """The weights.

        Raises:
            ModelError: the file is missing or corrupt, or is for other features.
        """
        assert self._path is not None
        return load(self._path)

    def probabilities(self, code: CodeText) -> Array:
        """The head's probabilities for a unit, ``(metrics, classes)``."""
        key = (code.text, code.language, code.basis)
        with self._lock:
            features = self._known.get(key)
        if features is None:
            features = growth_features(read_text(code.text[:_MAX_CHARACTERS], code.language, code.basis), code.language)
            with self._lock:
                self._known[key] = features
        facts = fact_features(code.work if code.language == "python" else None)
        return self.weights.probabilities(features, facts, code.language, code.basis)

    def estimates(self, code: CodeText) -> Mapping[str, GrowthEstimate]:
        """The growth of latency and memory; empty for texts without a grammar."""
        entry = languages.LANGUAGES.get(code.language)
        if code.basis != "program" or entry is None or entry.grammar is None or not code.text.strip():
            return {}
        if self._path is None:
            return {}
        table = self.probabilities(code)
        result: dict[str, GrowthEstimate] = {}
        for index, metric in enumerate(METRICS):
            best = int(table[index].argmax())
            growth_class = GROWTH_CLASSES[best]
            sizes = size_names(input_growth(code, metric)) if growth_class not in ("1", "other") else ()
            result[metric] = GrowthEstimate(growth_class, float(table[index, best]), sizes)
        return result


def with_growth(predictions: Sequence[Prediction], estimates: Mapping[str, GrowthEstimate]) -> list[Prediction]:
    """The predictions for one unit, each with the growth of its metric."""
    return [
        replace(prediction, growth=estimates[prediction.metric]) if prediction.metric in estimates else prediction
        for prediction in predictions
    ]


def save(weights: GrowthWeights, path: Path) -> None:
    """Write the weights, the large ones as float16."""
    from safetensors.numpy import save_file

    tensors: dict[str, npt.NDArray[np.generic]] = {
        name: np.ascontiguousarray(
            getattr(weights, name), dtype=np.float16 if name in _HALVES else getattr(weights, name).dtype
        )
        for name in _SHAPES
    }
    save_file(tensors, path, metadata={"features": str(fingerprint((*FEATURES, *FACT_FEATURES, *LANGUAGES)))})


def load(path: Path) -> GrowthWeights:
    """Read what :func:`save` wrote.

    Raises:
        ModelError: the file is missing or corrupt, or is for other features.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            features = (file.metadata() or {}).get("features")
            tensors = {name: file.get_tensor(name) for name in _SHAPES}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path}: missing or corrupt ({error}); reinstall the model") from None
    if features != str(fingerprint((*FEATURES, *FACT_FEATURES, *LANGUAGES))):
        raise ModelError(f"{path}: was trained on other features; train the growth head again")
    hidden = tensors["first_bias"].shape[0] if tensors["first_bias"].ndim else 0
    for name, shape in _SHAPES.items():
        if tensors[name].shape != tuple(hidden if size is None else size for size in shape):
            raise ModelError(f"{path}: corrupt ({name}); reinstall the model")
    wide = {name: array if name == "codes" else array.astype(np.float32) for name, array in tensors.items()}
    if wide["codes"].dtype != np.int8 or not all(np.isfinite(array).all() for array in wide.values()):
        raise ModelError(f"{path}: corrupt; reinstall the model")
    return GrowthWeights(**wide)
