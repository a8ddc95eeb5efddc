"""The boundary around what is shown of a unit: where rendering fails, the reason takes the place of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from rlm_core.boundary import guarded
from rlm_core.inference.guarded import text_alone, without_answer
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import Prediction

_Shown = TypeVar("_Shown")


def shown(
    analysed: AnalysedUnit,
    predictions: Sequence[Prediction],
    show: Callable[[AnalysedUnit, Sequence[Prediction]], _Shown],
) -> _Shown:
    """Return what ``show`` renders for a unit; if it raises, what it renders for the text alone with the reason."""

    def reason(error: Exception) -> _Shown:
        alone = replace(analysed, code=text_alone(analysed.code), sizes=None, failure=type(error).__name__)
        return show(alone, [without_answer(prediction, error) for prediction in predictions])

    return guarded(f"what is shown of {analysed.unit.qualname}", lambda: show(analysed, predictions), reason)
