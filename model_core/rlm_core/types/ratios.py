"""Which of two texts costs more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .predictions import Abstention, Band
from .sizes import SizeValue
from .vocabulary import DIRECTION_CONFIDENCE, Basis, Metric, exceedance

_BELOW_ONE = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Crossing:
    """The value of a size from which on another one of two texts costs less: the second where ``is_second``."""

    size: str
    value: float
    is_second: bool


@dataclass(frozen=True, slots=True)
class CostRatio:
    """A cost after an edit over the cost before it, or why it is unknown; ``quantiles`` are those at ``LEVELS``.

    ``agreed`` is the log10 change of a function on which the model and the work facts agree; None where the ratio does
    not rest on both. ``is_decided``: the texts show which of them costs more. ``sizes`` are those at which the costs
    were compared; empty for small inputs. ``crossing`` is known where both texts fix everything but one size.
    """

    basis: Basis
    metric: Metric
    device: str | None
    model: str
    ratio: float | None
    bands: tuple[Band, ...]
    quantiles: tuple[float, ...] = ()
    abstained: Abstention | None = None
    agreed: float | None = None
    is_decided: bool = True
    sizes: tuple[SizeValue, ...] = ()
    crossing: Crossing | None = None

    def above(self, ratio: float) -> float:
        """The calibrated probability of a larger ratio; NaN when the model abstains."""
        return exceedance(self.quantiles, ratio)

    @property
    def direction(self) -> Literal["higher", "lower"] | None:
        """Which way the cost changes, if at least 80 % of such answers are right; None where it is unknown."""
        if not self.is_decided:
            return None
        # A ratio of certainly 1 has none.
        if self.above(1.0) >= DIRECTION_CONFIDENCE:
            return "higher"
        return "lower" if 1 - self.above(_BELOW_ONE) >= DIRECTION_CONFIDENCE else None

    def has_grown(self, ratio: float, probability: float) -> bool:
        """Return whether the cost is certainly at least ``ratio`` times what it was.

        That is never said of two texts of a function that leave anything unknown: by how much their cost changes is
        not known well enough.
        """
        return self.agreed is None and self.above(ratio) >= probability

    def has_fallen(self, ratio: float, probability: float) -> bool:
        """Return whether the cost was certainly at least ``ratio`` times what it is; see :meth:`has_grown`."""
        return self.agreed is None and 1 - self.above(1 / ratio) >= probability
