"""The cost of a function at several values of one size, as far as measurements or its text support it.

Input: a text and its predictions. Output: the texts to ask a predictor about, and a :class:`SizeTable` of its answers;
sizes without a number that something supports are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlm_core.cost.at_sizes import depends_on_nothing
from rlm_core.queries.function_sizes import inputs_of, text_at
from rlm_core.types import CodeText, MeasuredPrediction, Metric, Prediction, SizedPrediction, SizeValue, small_answer

from .cost_curve import curve_of

TABLE_SIZES = (10.0, 1e3, 1e5)
_METRICS: tuple[Metric, ...] = ("latency", "memory")


@dataclass(frozen=True, slots=True)
class SizeRow:
    """The costs at one value of a size: only those that something supports."""

    value: float
    costs: tuple[SizedPrediction, ...]


@dataclass(frozen=True, slots=True)
class SizeTable:
    """The costs of a function at several values of ``size``."""

    size: str
    rows: tuple[SizeRow, ...]


def texts_for_table(code: CodeText, predictions: Sequence[Prediction]) -> list[CodeText]:
    """The texts of a function with each of the sizes of a table; empty where no size supports a number."""
    if code.basis != "call" or code.language != "python":
        return []
    name = _size_of(code, predictions)
    if name is None:
        return []
    others = tuple(size for size in code.sizes if size.name != name)
    texts = [replace(code, sizes=(SizeValue(name, value, "query"), *others)) for value in TABLE_SIZES]
    if any(curve_of(small.cost, small.growth) is not None for small in _measured(predictions)):
        return texts
    at_sizes = text_at(texts[0], texts[0].sizes)
    is_fixed = at_sizes is not None and any(
        at_sizes.work is not None and depends_on_nothing(at_sizes.work, metric) for metric in _METRICS
    )
    return texts if is_fixed or _grows(predictions, name) else []


def size_table(texts: Sequence[CodeText], answers: Sequence[Sequence[Prediction]]) -> SizeTable | None:
    """The table of the answers about :func:`texts_for_table`; None where none has a number at its size."""
    rows = []
    for text, line in zip(texts, answers, strict=True):
        costs = tuple(answer for answer in line if isinstance(answer, SizedPrediction) and answer.at.kind != "bound")
        if costs:
            rows.append(SizeRow(text.sizes[0].value, costs))
    return SizeTable(texts[0].sizes[0].name, tuple(rows)) if rows else None


def _measured(predictions: Sequence[Prediction]) -> list[MeasuredPrediction]:
    return [
        answer
        for answer in map(small_answer, predictions)
        if isinstance(answer, MeasuredPrediction) and answer.ratio is None
    ]


def _grows(predictions: Sequence[Prediction], name: str) -> bool:
    """Return whether a latency probably grows with an input, without which no number at its sizes is predicted."""
    growths = (answer.growth for answer in predictions if answer.metric == "latency")
    return any(growth is not None and name in growth.named_sizes for growth in growths)


def _size_of(code: CodeText, predictions: Sequence[Prediction]) -> str | None:
    """The size whose values a table shows: that of a curve, else of the growth, else the only one."""
    for answer in _measured(predictions):
        curve = curve_of(answer.cost, answer.growth)
        if curve is not None:
            return curve.size
    inputs = dict.fromkeys(inputs_of(code.text, code.work).values())
    named = [name for answer in predictions if answer.growth is not None for name in answer.growth.named_sizes]
    return next((name for name in named if name in inputs), next(iter(inputs), None) if len(inputs) == 1 else None)
