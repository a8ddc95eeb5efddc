"""Candidates for one function or kernel -> which of them to measure: all but those that another one is known to beat.

Every pair is compared. A candidate that another one is known to beat is left out; a pair of which it is unknown which
one is faster says nothing. Of kernels it is known where the texts fix the launches of both and the predictions differ
by :data:`KERNEL_RATIO`. How often the fastest is among the others is in docs/agents.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from rlm_core.errors import DataError, ModelError
from rlm_core.types import CodeText, Prediction, Query, SizeValue

from .predictor import Predictor

MOST_CANDIDATES = 30  # 435 pairs
CONFIDENCE = 0.85
"""The share of problems in which the candidates to measure have one within :data:`CLOSE` times of the fastest."""
CLOSE = 1.2
KERNEL_CONFIDENCE = 0.9
"""The same share for kernels."""
KERNEL_RATIO = 2.5
"""By how much the predictions of two kernels must differ: which one is faster is then right, or they are within 1.2
times of each other, in nine of ten pairs of kernels that took no part in choosing this number."""


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate by its place among the texts that were given, and the places of those that are known to be faster.

    ``slower_than`` is empty for a candidate to measure, also where candidates are said to be faster in a circle.
    """

    place: int
    slower_than: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates to measure, and after them the others; both with those that beat the most others first.

    ``compared`` of ``pairs`` pairs said which one is faster. ``at_sizes`` is whether these were compared at the sizes
    that were given, and ``confidence`` the probability that one of those to measure is within :data:`CLOSE` times of
    the fastest.
    """

    candidates: tuple[RankedCandidate, ...]
    compared: int
    pairs: int
    at_sizes: bool = False
    confidence: float = CONFIDENCE

    @property
    def measure(self) -> int:
        """The number of the first candidates to measure."""
        return sum(not candidate.slower_than for candidate in self.candidates)


def rank(
    predictor: Predictor, texts: Sequence[CodeText], sizes: Sequence[SizeValue] = (), query: Query | None = None
) -> Ranking:
    """Rank the texts of one function or kernel by latency.

    Args:
        predictor: one that compares texts.
        texts: the candidates, at least two and at most :data:`MOST_CANDIDATES`.
        sizes: the sizes of the inputs of functions; without them, candidates are compared for small and large inputs
            alike.
        query: the device and the workload of kernels.

    Raises:
        DataError: too few or too many candidates, or one that is neither a function nor, as all others, a kernel.
        ModelError: the model cannot compare texts.
    """
    if not 2 <= len(texts) <= MOST_CANDIDATES:
        raise DataError(f"rank takes 2 to {MOST_CANDIDATES} candidates, not {len(texts)}")
    if all(text.basis == "kernel" for text in texts):
        return _rank_kernels(predictor, texts, query or Query("latency"))
    if any(text.basis != "call" for text in texts):
        raise DataError("rank takes functions or kernels: name candidates of one kind")
    places = list(combinations(range(len(texts)), 2))
    pairs = [(texts[one], replace(texts[other], sizes=tuple(sizes), measured=())) for one, other in places]
    ratios = predictor.compare(pairs, [(Query("latency"),)] * len(pairs))
    if ratios is None:
        raise ModelError(f"{predictor.model_id} cannot compare two texts; name an exported model")
    faster = np.zeros((len(texts), len(texts)), dtype=bool)
    told = [(pair, line[0]) for pair, line in zip(places, ratios, strict=True) if line[0].direction is not None]
    for (one, other), ratio in told:
        faster[(one, other) if ratio.direction == "higher" else (other, one)] = True
    return Ranking(ranked(faster), len(told), len(places), bool(told) and all(ratio.sizes for _, ratio in told))


def _rank_kernels(predictor: Predictor, texts: Sequence[CodeText], query: Query) -> Ranking:
    seconds = [_of_known_launch(line[0]) for line in predictor.predict(texts, [(query,)] * len(texts))]
    medians = np.array(seconds)
    # A comparison with NaN, of a kernel of which it is not known, is false.
    faster = medians[:, None] * KERNEL_RATIO <= medians[None, :]
    count = len(texts)
    return Ranking(
        ranked(faster), int(faster.sum()), count * (count - 1) // 2, at_sizes=True, confidence=KERNEL_CONFIDENCE
    )


def kernel_ratio(before: Prediction, after: Prediction) -> float | None:
    """The latency of a kernel over that of another one, where it is known which is faster; None elsewhere."""
    ratio = _of_known_launch(after) / _of_known_launch(before)
    return ratio if ratio >= KERNEL_RATIO or ratio <= 1 / KERNEL_RATIO else None


def _of_known_launch(prediction: Prediction) -> float:
    """The predicted seconds of a kernel whose text fixes its launches; NaN of any other."""
    is_known = prediction.launch is not None and not prediction.launch.assumed
    return prediction.median or math.nan if is_known else math.nan


def ranked(faster: npt.NDArray[np.bool_]) -> tuple[RankedCandidate, ...]:
    """The candidates in order, where ``faster[i, j]`` says that ``i`` is faster than ``j``.

    Candidates that are faster than each other in a circle do not leave each other out.
    """
    reached = faster.copy()
    for middle in range(len(faster)):
        reached |= reached[:, middle : middle + 1] & reached[middle : middle + 1, :]
    beats = reached & ~reached.T
    candidates = [
        RankedCandidate(place, tuple(np.flatnonzero(beats[:, place]).tolist())) for place in range(len(faster))
    ]
    wins = beats.sum(axis=1)
    return tuple(sorted(candidates, key=lambda one: (bool(one.slower_than), -wins[one.place], one.place)))
