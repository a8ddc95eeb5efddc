"""Candidates for one function -> the chance of each that it is the fastest, and how many of them to measure.

Every pair is compared. A pair of which it is unknown which one is faster says nothing; the others say it with their
probability. A strength per candidate explains all pairs together (Bradley and Terry 1952), and the chance that a
candidate is the fastest is its share of the strengths (Luce 1959).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from rlm_core.errors import DataError, ModelError
from rlm_core.types import CodeText, Query, SizeValue

from .predictor import Predictor

MOST_CANDIDATES = 30  # 435 pairs
CONFIDENCE = 0.8
"""The chance with which the fastest candidate should be among those to measure."""
# Keeps strengths finite: as if each candidate had drawn a comparison or so.
_RIDGE = 0.05
_ROUNDS, _STEP = 200, 0.5


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate by its place among the texts that were given, and the chance that it is the fastest of them."""

    place: int
    chance: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates, most promising first; the first ``measure`` of them contain the fastest with ``confidence``.

    ``compared`` of ``pairs`` pairs said which one is faster. ``at_sizes`` is whether these were compared at the sizes
    that were given.
    """

    candidates: tuple[RankedCandidate, ...]
    measure: int
    confidence: float
    compared: int
    pairs: int
    at_sizes: bool = False


def rank(
    predictor: Predictor, texts: Sequence[CodeText], sizes: Sequence[SizeValue] = (), confidence: float = CONFIDENCE
) -> Ranking:
    """Rank the texts of one function by latency.

    Args:
        predictor: one that compares texts.
        texts: the candidates, at least two and at most :data:`MOST_CANDIDATES`.
        sizes: the sizes of their inputs; without them, candidates are compared for small and large inputs alike.
        confidence: the chance with which the fastest should be among those to measure, from 0 to 1.

    Raises:
        DataError: too few or too many candidates, or one that is not a function.
        ModelError: the model cannot compare texts.
    """
    if not 2 <= len(texts) <= MOST_CANDIDATES:
        raise DataError(f"rank takes 2 to {MOST_CANDIDATES} candidates, not {len(texts)}")
    if any(text.basis != "call" for text in texts):
        raise DataError("rank takes functions: programs and kernels have judges and devices")
    places = list(combinations(range(len(texts)), 2))
    pairs = [(texts[one], replace(texts[other], sizes=tuple(sizes), measured=())) for one, other in places]
    ratios = predictor.compare(pairs, [(Query("latency"),)] * len(pairs))
    if ratios is None:
        raise ModelError(f"{predictor.model_id} cannot compare two texts; name an exported model")
    faster = np.full((len(texts), len(texts)), 0.5)
    told = [(pair, line[0]) for pair, line in zip(places, ratios, strict=True) if line[0].direction is not None]
    for (one, other), ratio in told:
        faster[one, other] = ratio.above(1.0)
        faster[other, one] = 1 - faster[one, other]
    chances = fastest(faster)
    order = sorted(range(len(texts)), key=lambda place: (-chances[place], place))
    ranked = tuple(RankedCandidate(place, float(chances[place])) for place in order)
    return Ranking(
        ranked,
        _needed([candidate.chance for candidate in ranked], confidence),
        confidence,
        len(told),
        len(places),
        bool(told) and all(ratio.sizes for _, ratio in told),
    )


def fastest(faster: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The chance of each candidate to be the fastest, ``(n,)``.

    ``faster[i, j]`` is the probability that ``i`` is faster than ``j``, 0.5 where it is unknown.
    """
    others = 1 - np.eye(len(faster))
    strengths = np.zeros(len(faster))
    for _ in range(_ROUNDS):
        explained = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        gradient = ((faster - explained) * others).sum(axis=1) - _RIDGE * strengths
        curvature = (explained * (1 - explained) * others).sum(axis=1) + _RIDGE
        strengths += _STEP * gradient / curvature
    shares = np.exp(strengths - strengths.max())
    chances: npt.NDArray[np.float64] = shares / shares.sum()
    return chances


def _needed(chances: Sequence[float], confidence: float) -> int:
    """The number of candidates whose chances add up to a confidence."""
    total = np.cumsum(chances)
    return min(int(np.searchsorted(total, confidence - 1e-9)) + 1, len(chances))
