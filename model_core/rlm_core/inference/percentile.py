"""Where a prediction stands among the values that the model learned from: "more than 63 % of the Python functions"."""

from __future__ import annotations

from typing import Any

from rlm_core.types import Prediction

from .predictor import Predictor

# Kernels, modules and networks are measured at many sizes and on many devices: their values are not comparable.
_COMPARABLE = frozenset({"call", "program"})


def share_below(predictor: Predictor, prediction: Prediction, language: str) -> float | None:
    """The share of the model's training values above the floor that are below the median of a prediction.

    None where values are not comparable, for a median at or below the floor, for a device that this user has added, and
    for a model that does not tell.
    """
    # The server imports this before a model is there, and numpy only with one.
    from rlm_core.queries.query_vector import task_name

    from .adaptation.cpu_score import ScaledPredictor
    from .student import OnnxPredictor

    own: Any = predictor
    value = prediction.median
    if value is None or value <= prediction.floor or prediction.basis not in _COMPARABLE:
        return None
    while not isinstance(own, OnnxPredictor):
        # The training values are those of the machine where they were measured.
        if isinstance(own, ScaledPredictor) and prediction.bands[0].source.cpu_scale:
            value *= own.cpu.overall
        own = getattr(own, "base", None)
        if own is None:
            return None
    if prediction.device not in own.devices(prediction.basis):
        return None
    name = task_name(prediction.basis, language, prediction.metric)
    scales = {entry.name: entry.scale for entry in own.card.slices}
    return scales[name].share_below(value) if name in scales else None
