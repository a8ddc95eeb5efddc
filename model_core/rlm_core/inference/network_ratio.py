"""The ratio of the latencies of two networks in one setting, with a band that is narrower for networks that are alike.

The errors of two networks that spend their time in the same kinds of kernels are nearly the same, and cancel in the
ratio. How alike two networks are is the share of their time that they spend in the same columns of work. The band of
the ratio is that of the setting, times a factor that depends on it.
"""

from __future__ import annotations

import math

import numpy as np

from rlm_core.types import MEDIAN, Abstention, AbstentionCode, CalibrationSource, CodeText, CostRatio, Prediction, Query

from .calibration import bands
from .network_cost import BASIS, NetworkCosts
from .network_work import Array

# The errors of two networks correlate by ALIKE * exp(-(distance / RANGE)^2). On 234 networks of development families,
# left out in turn, the 80 % band of the ratio then holds for .78 to .81 of pairs at every distance.
_ALIKE, _RANGE = 0.95, 0.12


def network_ratio(
    costs: NetworkCosts, texts: tuple[CodeText, CodeText], answers: tuple[Prediction, Prediction], model: str
) -> CostRatio | None:
    """The latency or memory of the second network over that of the first; None where they are not sums over kernels.

    ``answers`` are the predictions for both texts, of one query.
    """
    before, after = answers
    if before.basis != BASIS or before.metric == "accuracy":
        return None
    source = CalibrationSource(f"{BASIS}/onnx/{before.metric}@{before.device}")
    reason = before.abstained or after.abstained
    if before.metric == "energy":
        # How alike the errors of two energies are was not measured.
        details = {"basis": BASIS, "metric": "energy"}
        return _missing(after, model, reason or Abstention(AbstentionCode.RATIO_NOT_CALIBRATED, details))
    is_latency = before.metric == "latency"
    if is_latency and (reason or before.parts is None or after.parts is None):
        return None if reason is None or before.device not in costs.devices else _missing(after, model, reason)
    if reason is not None or not before.median or after.median is None:
        return _missing(after, model, reason)
    ratio = after.median / before.median
    if not is_latency:
        # Both are counted, not fitted.
        quantiles = (ratio,) * len(after.quantiles)
        return CostRatio(BASIS, after.metric, after.device, model, ratio, bands(quantiles, 0, 0, source), quantiles)
    spread = max((before, after), key=lambda answer: answer.quantiles[-1] / (answer.median or 1.0))
    factor = (
        0.0
        if texts[0].text == texts[1].text
        else width_factor(*(_shares(costs, *one) for one in zip(texts, answers, strict=True)))
    )
    quantiles = tuple(ratio * (quantile / spread.quantiles[MEDIAN]) ** factor for quantile in spread.quantiles)
    banded = bands(quantiles, after.bands[0].groups, after.bands[0].rows, source)
    return CostRatio(BASIS, after.metric, after.device, model, quantiles[MEDIAN], banded, quantiles)


def width_factor(first: Array, second: Array) -> float:
    """How much wider the band of a ratio is than that of a latency, from both networks' shares of time."""
    distance = float(np.abs(first - second).sum()) / 2
    return math.sqrt(2 * (1 - _ALIKE * math.exp(-((distance / _RANGE) ** 2))))


def _shares(costs: NetworkCosts, code: CodeText, answer: Prediction) -> Array:
    """The share of the time in each column of work, ``(columns,)``."""
    seconds = costs.seconds_by_column(code.text, Query("latency", answer.device, answer.workload))
    shares: Array = seconds / max(float(seconds.sum()), 1e-300)
    return shares


def _missing(answer: Prediction, model: str, reason: Abstention | None) -> CostRatio:
    return CostRatio(BASIS, answer.metric, answer.device, model, None, (), (), reason)
