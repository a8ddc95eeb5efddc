"""Candidates for one function -> which of them to measure: all but those that another one is known to beat.

Every pair is compared. A candidate that another one is known to beat is left out; a pair of which it is unknown which
one is faster says nothing. How often the fastest is among the others is in docs/agents.md.
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
CONFIDENCE = 0.85
"""The share of problems in which the candidates to measure have one within :data:`CLOSE` times of the fastest."""
CLOSE = 1.2


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
    that were given.
    """

    candidates: tuple[RankedCandidate, ...]
    compared: int
    pairs: int
    at_sizes: bool = False

    @property
    def measure(self) -> int:
        """The number of the first candidates to measure."""
        return sum(not candidate.slower_than for candidate in self.candidates)


def rank(predictor: Predictor, texts: Sequence[CodeText], sizes: Sequence[SizeValue] = ()) -> Ranking:
    """Rank the texts of one function by latency.

    Args:
        predictor: one that compares texts.
        texts: the candidates, at least two and at most :data:`MOST_CANDIDATES`.
        sizes: the sizes of their inputs; without them, candidates are compared for small and large inputs alike.

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
    faster = np.zeros((len(texts), len(texts)), dtype=bool)
    told = [(pair, line[0]) for pair, line in zip(places, ratios, strict=True) if line[0].direction is not None]
    for (one, other), ratio in told:
        faster[(one, other) if ratio.direction == "higher" else (other, one)] = True
    return Ranking(ranked(faster), len(told), len(places), bool(told) and all(ratio.sizes for _, ratio in told))


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
