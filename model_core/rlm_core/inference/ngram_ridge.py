"""Ridge regression on hashed token n-grams, which gives a few numbers per text.

A text's 1-2-grams of token ids and 1-3-grams of whole words are hashed to buckets and weighted by TF-IDF (sublinear,
unit length): pieces of names carry over to new packages, whole words distinguish library calls. Each part
(``basis/language``, for programs of each judge; :func:`part_name`) has weights for every role that the text can play
(the unit itself, a callee at level 1 or 2; see also ``CHANGING``) and every metric, so a text's contribution is a
vector of ``roles x metrics`` numbers for each judge, cached next to its encoding. What a deep encoder of a few million
parameters cannot memorise (rare names of libraries and problems), this part can.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_core.errors import ModelError
from rlm_core.queries.judges import JUDGES
from rlm_core.queries.query_vector import Task

from .tokenizer import Ids

Array = npt.NDArray[np.float32]
Idf = npt.NDArray[np.float32] | npt.NDArray[np.float16]
Words = npt.NDArray[np.uint64]
METRICS = ("latency", "memory")
# The bases whose last role compares a text with others of its group, see rlm_core.inference.cost_ratio.
CHANGING = ("program",)
MAX_TOKENS = 3000
_PARTS, _TYPES = ("idf", "codes", "largest"), ["F16", "I8", "F32"]  # of a file
CALENDAR_START, CALENDAR_STEP, CALENDAR_NODES = 2020.5, 0.5, 14
_WORD = re.compile(r"\w+|[^\w\s]")
_WORD_SALT = 1 << 40  # keeps words apart from token ids
_GOLDEN, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, slots=True)
class Bag:
    """Hashed n-grams of a text: ascending ``buckets`` and their ``1 + log(count)``."""

    buckets: npt.NDArray[np.int64]
    weights: Array


@dataclass(frozen=True, slots=True)
class NgramRidge:
    """Weights of one part: ``idf (buckets,)``, ``codes (roles, metrics, buckets)``, the largest of each.

    ``idf`` is float16 as it is read from a file: a text needs a few hundred of the buckets, and widens those alone.

    A weight in log10 SI units is ``sign(code) * (code / 127) ** 2 * largest``: eight bits are enough, since most
    weights are small and the square keeps those finely apart.
    """

    idf: Idf
    codes: npt.NDArray[np.int8]
    largest: Array

    @property
    def bits(self) -> int:
        """The hash width: log2 of the number of buckets."""
        return len(self.idf).bit_length() - 1

    def contributions(self, ids: Ids, words: Words) -> Array:
        """Return a text's contribution to a prediction in each role. Shape ``(roles, metrics)``, log10 units."""
        unit = tfidf(bag(ids, words, self.bits), self.idf)
        chosen = self.codes[:, :, unit.buckets].astype(np.float32) / 127
        return ((chosen * np.abs(chosen)) @ unit.weights * self.largest).astype(np.float32)


def code_weights(idf: Idf, weights: Array) -> NgramRidge:
    """A slice from its fitted weights ``(roles, metrics, buckets)``."""
    largest = np.maximum(np.abs(weights).max(axis=2), 1e-12).astype(np.float32)
    share = weights / largest[:, :, None]
    return NgramRidge(idf, np.round(127 * np.sign(share) * np.sqrt(np.abs(share))).astype(np.int8), largest)


def words_of(text: str) -> Words:
    """The words and signs of a canonical text, hashed. Shape ``(words,)``."""
    return np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in _WORD.findall(text)], dtype=np.uint64)


def bag(ids: Ids, words: Words, bits: int) -> Bag:
    """1-2-grams of token ids and 1-3-grams of words, hashed to ``2**bits`` buckets; long texts count by their start."""
    hashed = np.concatenate([_grams(ids[:MAX_TOKENS], 2, 1), _grams(words[:MAX_TOKENS], 3, _WORD_SALT)])
    hashed = ((hashed ^ (hashed >> np.uint64(29))) * _MIX) >> np.uint64(64 - bits)
    buckets, counts = np.unique(hashed.astype(np.int64), return_counts=True)
    return Bag(buckets, (1 + np.log(counts)).astype(np.float32))


def _grams(tokens: npt.NDArray[np.generic], longest: int, salt: int) -> npt.NDArray[np.uint64]:
    tokens = tokens.astype(np.uint64) + np.uint64(salt)
    grams = [tokens * _GOLDEN]
    for size in range(2, longest + 1):
        grams.append((grams[-1][:-1] * np.uint64(1_000_003) + tokens[size - 1 :]) * _GOLDEN)
    return np.concatenate(grams)


def tfidf(counts: Bag, idf: Idf) -> Bag:
    """The bag weighted by inverse document frequency and scaled to unit length."""
    weights = counts.weights * idf[counts.buckets].astype(np.float32)
    return Bag(counts.buckets, (weights / max(float(np.linalg.norm(weights)), 1e-9)).astype(np.float32))


def combine(own: Array, level1: Sequence[Array], level2: Sequence[Array]) -> Array:
    """The prediction of a unit from its text's and its callees' contributions. Shape ``(metrics,)``, log10 units.

    Callees count by the square root of their number: between a sum (all are called) and a mean (few are called often).
    """
    total: Array = own[0].copy()
    for role, callees in ((1, level1), (2, level2)):
        if callees and role < len(own):
            total += np.sum([callee[role] for callee in callees], axis=0) / np.sqrt(len(callees))
    return total


def part_name(task: Task) -> str:
    """The name of the part that predicts a task: ``basis/language``, with ``@judge`` unless it is LeetCode."""
    return f"{task.basis}/{task.language}" + (f"@{task.judge}" if task.judge else "")


def column(task: Task) -> int:
    """The place of a task among the columns of a text's contributions: the metrics of each judge in turn."""
    judge = list(JUDGES).index(task.judge) if task.judge else 0
    return judge * len(METRICS) + METRICS.index(task.metric)


def contributions(parts: Mapping[str, NgramRidge], basis: str, language: str, ids: Ids, words: Words) -> Array | None:
    """Return a text's contributions, ``(roles, columns)`` (:func:`column`); None if no part reads such texts."""
    own = f"{basis}/{language}"
    names = [own, *(f"{own}@{judge}" for judge in list(JUDGES)[1:])] if basis == "program" else [own]
    blocks = [parts[name].contributions(ids, words) if name in parts else None for name in names]
    known = next((block for block in blocks if block is not None), None)
    if known is None:
        return None
    return np.hstack([np.zeros_like(known) if block is None else block for block in blocks])


class _File(Mapping[str, NgramRidge]):
    """The parts of an open file. Each is read on first use: most sessions need one or two of them."""

    def __init__(self, path: Path) -> None:
        from safetensors import safe_open

        opener: Any = safe_open  # it has no types
        self._file = opener(path, "numpy")
        self._names = sorted({name.rpartition("/")[0] for name in self._file.keys()})  # noqa: SIM118
        self._read: dict[str, NgramRidge] = {}
        for name in self._names:
            slices = [self._file.get_slice(f"{name}/{part}") for part in _PARTS]
            idf, codes, largest = (tuple(part.get_shape()) for part in slices)
            if [part.get_dtype() for part in slices] != _TYPES or codes != (*largest, *idf) or len(codes) != 3:
                raise ValueError(f"{name} has other types or shapes")

    def __getitem__(self, name: str) -> NgramRidge:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = NgramRidge(*(self._file.get_tensor(f"{name}/{part}") for part in _PARTS))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load(path: Path) -> Mapping[str, NgramRidge]:
    """The ridges of a ``wide.safetensors`` file, which are read when they are used; the file stays open.

    Raises:
        ModelError: the file is missing or corrupt.
    """
    from safetensors import SafetensorError

    try:
        return _File(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelError(f"{path}: missing or corrupt ({error}); reinstall the model") from None


def save(slices: Mapping[str, NgramRidge], path: Path) -> None:
    """Write ridges, ``idf`` as float16."""
    from safetensors.numpy import save_file

    tensors: dict[str, npt.NDArray[np.generic]] = {}
    for name, part in slices.items():
        tensors[f"{name}/idf"] = part.idf.astype(np.float16)
        tensors[f"{name}/codes"] = part.codes
        tensors[f"{name}/largest"] = part.largest
    save_file(tensors, path)


def calendar(dates: npt.ArrayLike) -> Array:
    """Piecewise-linear basis over half years. Decimal years ``(rows,)`` -> ``(rows, nodes)``; all zero for date 0."""
    years = np.asarray(dates, dtype=np.float64)[:, None]
    nodes = CALENDAR_START + CALENDAR_STEP * np.arange(CALENDAR_NODES)
    return np.clip(1 - np.abs(years - nodes[None, :]) / CALENDAR_STEP, 0, None).astype(np.float32)
