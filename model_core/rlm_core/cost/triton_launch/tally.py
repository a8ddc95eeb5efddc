"""What a program does, as ranges: counts of bytes, operations and accesses, and the extent of each tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..concrete.frame import Budget, LimitReached

COUNTS = (
    "loaded", "stored", "loaded_once", "sectors", "dot", "dot_wide", "scalar", "special", "atomics", "gathered",
    "accesses", "barriers", "unlocated", "flops",
)  # fmt: skip
"""Bytes that loads and stores move; bytes loaded without those that the program has loaded at the same addresses;
bytes of the 32-byte sectors that accesses touch; operations of matrix units (and of those on FP32), of plain units and
of special functions; elements of atomics; bytes at addresses that data decide; accesses; reductions and scans; bytes at
addresses that data decide or that are at an unknown distance from the start of their tensor; floating-point operations
as their results are counted, where those of units are what they take."""
OPERATIONS = ("dot", "dot_wide", "scalar", "special")
_INDEX = {name: index for index, name in enumerate(COUNTS)}
Counts = npt.NDArray[np.float64]
_LIKELY = 8  # iterations of a loop whose number data decide


@dataclass(slots=True, eq=False)
class Tally(Budget):
    """The counts so far, ``(3, len(COUNTS))``: at least, likely and at most, and what limits the evaluation.

    ``certain`` is False where data decide whether a program gets here; ``unknown`` counts what there is no rule for.
    """

    steps_left: int
    elements_left: int
    counts: Counts = field(default_factory=lambda: np.zeros((3, len(COUNTS))))
    extents: dict[str, tuple[float, float]] = field(default_factory=dict)
    stored_to: set[str] = field(default_factory=set)
    tiles: dict[int, float] = field(default_factory=dict)  # bytes of operands of matrix products, by site
    widths: dict[str, float] = field(default_factory=dict)  # bytes of an element, by tensor
    sizes: dict[str, float] = field(default_factory=dict)  # bytes of a tensor where its shape is known
    overrun: set[str] = field(default_factory=set)  # tensors that are accessed outside
    seen: set[tuple[object, ...]] = field(default_factory=set)
    efficiency: dict[int, float] = field(default_factory=dict)
    strides: dict[int, str] = field(default_factory=dict)
    widest: int = 1
    certain: bool = True
    exact: bool = True
    unknown: int = 0

    def add(self, name: str, least: float, most: float | None = None, flops: float | None = None) -> None:
        """Count something; ``most``, ``least`` where it is not given, is also what is likely.

        ``flops``: the floating-point operations of a unit's work, as many as the work where it is not given.
        """
        most = least if most is None else most
        self._add(_INDEX[name], least, most)
        if name in OPERATIONS:
            self._add(_INDEX["flops"], least if flops is None else flops, most if flops is None else flops)

    def _add(self, index: int, least: float, most: float) -> None:
        self.counts[0, index] += least if self.certain else 0.0
        self.counts[1:, index] += most

    def add_either(self, one: Counts, other: Counts) -> None:
        """Count what happens in one of two ways."""
        least, most = np.minimum(one, other), np.maximum(one, other)
        self.counts += np.stack([least[0], most[1], most[2]])

    def add_unlimited(self, once: Counts) -> None:
        """Count what happens any number of times."""
        with np.errstate(invalid="ignore"):
            most = np.where(once[2] > 0, np.inf, 0.0)
        self.counts += np.stack([np.zeros_like(most), _LIKELY * once[1], most])

    def step(self, elements: int = 1) -> None:
        """Count a step of the evaluation.

        Raises:
            LimitReached: the budget is used up.
        """
        self.steps_left -= 1
        self.elements_left -= elements
        if self.steps_left < 0 or self.elements_left < 0:
            raise LimitReached

    def during(self, action: Callable[[], object]) -> Counts:
        """What an action counts; the counts are then as before it."""
        before = self.counts
        self.counts = np.zeros_like(before)
        try:
            action()
        finally:
            counted, self.counts = self.counts, before
        return counted
