"""Predictions that measurements or sizes change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .measured import MeasuredCost
from .predictions import HoldsFor, Prediction
from .ratios import CostRatio
from .sizes import SizeValue
from .vocabulary import LEVELS, NumberSource


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPrediction(Prediction):
    """The answer to a query about a unit that was measured, now or before it changed.

    ``bands`` describe calls: the measured 10 % to 90 % quantiles, joined with the band of ``ratio`` where the text or
    what it calls has changed since ``cost`` was measured. ``quantiles`` describe the unit's median if it were measured
    again, which is what a budget is compared with. ``predicted`` is the model's answer, which may be an abstention.
    """

    cost: MeasuredCost
    predicted: Prediction
    ratio: CostRatio | None = None

    @property
    def source(self) -> NumberSource:
        """The source of the number."""
        return "measured" if self.ratio is None else "anchored"

    @property
    def holds_for(self) -> HoldsFor | None:
        """The sizes at which it was measured, where they were recorded."""
        if self.basis != "call":
            return None
        return HoldsFor.MEASURED_SIZES if self.cost.sizes else HoldsFor.SMALL_INPUTS


@dataclass(frozen=True, slots=True)
class CallCount:
    """How often a call of unknown cost runs at given sizes; ``name`` is as it is written, like ``fetch()``."""

    name: str
    times: float


@dataclass(frozen=True, slots=True)
class CostAtSizes:
    """The evidence for a cost at given sizes.

    ``curve``: a line through measurements at several sizes; ``beyond`` is how far the size is above the largest of
    them, at least 1. ``arithmetic``: the text fixes everything but the sizes. Where it does not, the cost is at least
    ``least``, and the calls of unknown cost come on top of it: ``predicted`` is the number at the sizes that functions
    which were measured at several sizes suggest; of a ``bound`` there is none, and the numbers of the prediction are
    still those for small inputs.
    """

    kind: Literal["curve", "arithmetic", "predicted", "bound"]
    sizes: tuple[SizeValue, ...]
    beyond: float = 1.0
    least: float = 0.0
    calls: tuple[CallCount, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedPrediction(Prediction):
    """The answer to a query about a function at known sizes of its inputs.

    ``small`` is the answer for inputs like those of tests, measured or predicted.
    """

    at: CostAtSizes
    small: Prediction

    @property
    def source(self) -> NumberSource:
        """The source of the number."""
        kinds: dict[str, NumberSource] = {"curve": "curve", "arithmetic": "predicted", "predicted": "predicted"}
        return kinds.get(self.at.kind, self.small.source)

    def above(self, value: float) -> float:
        """The probability that the cost is above ``value``; of a bound, at least that for small inputs."""
        if self.at.least > value:
            return LEVELS[-1]
        return Prediction.above(self, value)

    @property
    def holds_for(self) -> HoldsFor | None:
        """The given sizes; of a bound, the inputs for which its number holds."""
        return self.small.holds_for if self.at.kind == "bound" else HoldsFor.GIVEN_SIZES


def small_answer(prediction: Prediction) -> Prediction:
    """The answer for inputs like those of tests: the prediction itself where it is for no given sizes."""
    return prediction.small if isinstance(prediction, SizedPrediction) else prediction
