"""The wide part of the student: ridge regression on hashed token n-grams, summed up to a few numbers a text.

A text's unigrams and bigrams of token ids are hashed to buckets and weighted by TF-IDF (sublinear, unit length). Each slice of
the data (``basis/language``) has weights for every role that the text can play (the unit itself, a callee at level 1 or 2)
and every metric, so a text's contribution is a vector of ``roles x metrics`` numbers, cached next to its encoding. What a
deep encoder of a few million parameters cannot memorise (rare names of libraries and problems), this part can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .errors import ModelError
from .tokenizer import Ids

Array = npt.NDArray[np.float32]
METRICS = ("latency", "memory")
MAX_TOKENS = 3000
CALENDAR_START, CALENDAR_STEP, CALENDAR_NODES = 2020.5, 0.5, 14
_GOLDEN, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class Bag:
    """Hashed n-grams of a text: ascending ``buckets`` and their ``1 + log(count)``."""

    buckets: npt.NDArray[np.int64]
    weights: Array


@dataclass(frozen=True, slots=True)
class WideSlice:
    """Weights of one slice: ``idf (buckets,)`` and ``weights (roles, metrics, buckets)``, log10 SI units a unit of TF-IDF."""

    idf: Array
    weights: Array

    @property
    def bits(self) -> int:
        """The hash width: log2 of the number of buckets."""
        return int(len(self.idf)).bit_length() - 1

    def contributions(self, ids: Ids) -> Array:
        """What a text adds to a prediction in each role. Shape ``(roles, metrics)``, log10 units."""
        unit = tfidf(bag(ids, self.bits), self.idf)
        return (self.weights[:, :, unit.buckets].astype(np.float32) @ unit.weights).astype(np.float32)


def bag(ids: Ids, bits: int) -> Bag:
    """Unigrams and bigrams of token ids, hashed to ``2**bits`` buckets."""
    tokens = ids[:MAX_TOKENS].astype(np.uint64) + np.uint64(1)
    unigrams = tokens * _GOLDEN
    bigrams = (unigrams[:-1] * np.uint64(1_000_003) + tokens[1:]) * _GOLDEN
    hashed = np.concatenate([unigrams, bigrams])
    hashed = ((hashed ^ (hashed >> np.uint64(29))) * _MIX) >> np.uint64(64 - bits)
    buckets, counts = np.unique(hashed.astype(np.int64), return_counts=True)
    return Bag(buckets, (1 + np.log(counts)).astype(np.float32))


def tfidf(counts: Bag, idf: Array) -> Bag:
    """The bag weighted by inverse document frequency and scaled to unit length."""
    weights = counts.weights * idf[counts.buckets]
    return Bag(counts.buckets, (weights / max(float(np.linalg.norm(weights)), 1e-9)).astype(np.float32))


def combine(own: Array, level1: Sequence[Array], level2: Sequence[Array]) -> Array:
    """The wide prediction of a unit from contributions of its text and of its callees. Shape ``(metrics,)``, log10 units.

    Callees count by the square root of their number: between a sum (all are called) and a mean (few are called often).
    """
    total = own[0].copy()
    for role, callees in ((1, level1), (2, level2)):
        if callees and role < len(own):
            total += np.sum([callee[role] for callee in callees], axis=0) / np.sqrt(len(callees))
    return total


def load(path: Path) -> dict[str, WideSlice]:
    """Read the slices of a ``wide.safetensors`` file.

    Raises:
        ModelError: the file is missing or corrupt.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
        names = sorted({name.rpartition("/")[0] for name in tensors})
        slices = {name: WideSlice(tensors[f"{name}/idf"], tensors[f"{name}/weights"]) for name in names}
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ModelError(f"{path}: missing or corrupt ({error}); reinstall the model") from None
    return {
        # Kept as float16 on disk; idf is used on every token, so it is widened once.
        name: WideSlice(part.idf.astype(np.float32), part.weights)
        for name, part in slices.items()
    }


def save(slices: Mapping[str, WideSlice], path: Path) -> None:
    """Write slices as float16."""
    from safetensors.numpy import save_file

    tensors: dict[str, npt.NDArray[np.float16]] = {}
    for name, part in slices.items():
        tensors[f"{name}/idf"] = part.idf.astype(np.float16)
        tensors[f"{name}/weights"] = part.weights.astype(np.float16)
    save_file(tensors, path)


def calendar(dates: npt.ArrayLike) -> Array:
    """Piecewise-linear basis over half years. Decimal years ``(rows,)`` -> ``(rows, nodes)``; all zero for date 0."""
    years = np.asarray(dates, dtype=np.float64)[:, None]
    nodes = CALENDAR_START + CALENDAR_STEP * np.arange(CALENDAR_NODES)
    return np.clip(1 - np.abs(years - nodes[None, :]) / CALENDAR_STEP, 0, None).astype(np.float32)
