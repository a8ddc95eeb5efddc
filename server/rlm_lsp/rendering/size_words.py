"""Sizes in words: at which inputs a cost holds, the curve through its measurements, and a bound that names calls.

Input: predictions of functions and the sizes that they hold for. Output: clauses such as ``at items 3–40``,
``~n^1.1``, ``≥12 ms + 10k × fetch()``; labels, hovers, tables and findings share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlm_core.inference.cost_curve import CostCurve, curve_at, curve_of
from rlm_core.types import (
    CallCount,
    CostAtSizes,
    CostRatio,
    Crossing,
    HoldsFor,
    MeasuredCost,
    MeasuredPrediction,
    Metric,
    Prediction,
    SizedPrediction,
    SizeSource,
    SizeValue,
    small_answer,
)

from . import labels

SOURCE_WORDS: Mapping[SizeSource, str] = {
    "query": "asked about",
    "comment": "from a comment",
    "settings": "from the settings",
    "recorded": "recorded while measuring",
    "calls": "from a call",
}
SMALL_INPUTS = "for small inputs, like those of tests"
_PREDICTED = "is predicted from other functions that were measured at several sizes"
_MOST_NAMED = 3
_MOST_NAME = 24


def sizes(values: Sequence[SizeValue]) -> str:
    """Sizes with their names: ``items=10k n=100``; of many only the first."""
    shown = [f"{value.name}={labels.size(value.value)}" for value in values[:_MOST_NAMED]]
    return " ".join(shown) + (f" +{len(values) - _MOST_NAMED}" if len(values) > _MOST_NAMED else "")


def origins(values: Sequence[SizeValue]) -> str:
    """Sizes with the sources of their values: ``items=10k from the settings (shop.total)``."""
    by_source: dict[str, list[SizeValue]] = {}
    for value in values:
        by_source.setdefault(source(value), []).append(value)
    return ", ".join(f"{sizes(of_source)} {words}" for words, of_source in by_source.items())


def source(value: SizeValue) -> str:
    """The source of a size: ``from the settings (shop.total)``, ``from 3 of 5 calls, 10–1k (app.main)``."""
    calls = value.calls
    if calls is not None and calls.all > 1:
        counted = f"{calls.fixed} of {calls.all}" if calls.fixed < calls.all else f"{calls.all}"
        values = labels.size_ranges({"": (calls.least, calls.most)}).strip() if calls.least < calls.most else ""
        return f"from {counted} calls{f', {values}' if values else ''} ({value.rule})"
    return SOURCE_WORDS[value.source] + (f" ({value.rule})" if value.rule else "")


def measured_sizes(cost: MeasuredCost) -> str:
    """The sizes at which a function was measured: ``items 3–40, rows 10``; empty where they were not recorded."""
    return labels.size_ranges({name: (spread.least, spread.most) for name, spread in cost.sizes}, _MOST_NAMED)


def main_spread(prediction: MeasuredPrediction) -> str:
    """The range of the recorded size that matters most: that of the curve, of the growth, or the largest."""
    spreads = dict(prediction.cost.sizes)
    if not spreads:
        return ""
    curve = curve_of(prediction.cost, prediction.growth)
    named = [curve.size] if curve is not None else []
    named += prediction.growth.named_sizes if prediction.growth is not None else ()
    name = next((name for name in named if name in spreads), max(spreads, key=lambda name: spreads[name].most))
    return labels.size_ranges({name: (spreads[name].least, spreads[name].most)})


def exponent(curve: CostCurve) -> str:
    """The growth of a curve: ``~n^1.1``; ``flat`` for one that hardly grows where it was measured."""
    shown = f"{curve.exponent:.1f}".removesuffix(".0")
    return "flat" if shown == "0" else "~n" if shown == "1" else f"~n^{shown}"


def curve_words(curve: CostCurve) -> str:
    """A curve and its value at the largest round size at which it holds.

    ``~n^1.1 in items: 1k 5.6 ms (1.9–17 ms), 2.5 times beyond what was measured``.
    """
    target = _round_size(curve)
    value = curve_at(curve, target)
    words = f"{exponent(curve)} in {_short(curve.size)}"
    if value is None:
        return words
    interval = labels.band(curve.metric, value.band)
    beyond = f", {labels.times(value.beyond)} beyond what was measured" if value.beyond > 1.005 else ""
    return f"{words}: {labels.size(target)} {labels.quantity(curve.metric, value.median)} ({interval}){beyond}"


def _round_size(curve: CostCurve) -> float:
    """The largest power of ten at which a curve holds, else its largest measured size."""
    power = 10.0 ** len(str(int(curve.most)).lstrip("0")[1:]) if curve.most >= 1 else 0.0
    return power if power >= curve.least else curve.measured_to


def bound(metric: Metric, at: CostAtSizes, most: int = _MOST_NAMED) -> str:
    """A lower bound with the calls on top of it: ``≥12 ms + 10k × fetch()``."""
    parts = [f"≥{labels.quantity(metric, at.least)}", *(_calls(count) for count in at.calls[:most])]
    return " + ".join(parts) + (" + more" if len(at.calls) > most else "")


def stated_bound(prediction: Prediction) -> str | None:
    """The bound that is shown in place of a number: the number is a prediction for small inputs.

    None where there is no bound, or a measurement.
    """
    if isinstance(prediction, SizedPrediction) and prediction.at.kind == "bound" and prediction.source == "predicted":
        return bound(prediction.metric, prediction.at)
    return None


def has_bound(at: CostAtSizes) -> bool:
    """Return whether a lower bound says something about a cost."""
    return at.kind == "bound" or at.least > 0 or bool(at.calls)


def _calls(count: CallCount) -> str:
    times = labels.size(count.times)
    return _short(count.name) if times == "1" else f"{times} × {_short(count.name)}"


def _short(name: str) -> str:
    """A name on one line, without what is in front of its last part where it is long."""
    text = " ".join(name.split())
    return text if len(text) <= _MOST_NAME else text.rpartition(".")[2][-_MOST_NAME:]


def ratio_sizes(change: CostRatio) -> str:
    """The inputs for which a ratio holds: ``at items=10k``, ``for small inputs``."""
    return f"at {sizes(change.sizes)}" if change.sizes else "for small inputs"


def crossing_words(crossing: Crossing) -> str:
    """``costs less from about items=40 on``: of the second text compared with the first."""
    less = "less" if crossing.is_second else "more"
    return f"costs {less} from about {crossing.size}={labels.number(crossing.value)} on"


def holds_words(prediction: Prediction) -> str:
    """Describe for which inputs a number holds: ``at items=10k``; empty for what depends on no input."""
    if isinstance(prediction, SizedPrediction) and _is_at_sizes(prediction):
        return f"at {sizes(prediction.at.sizes)}"
    small = small_answer(prediction)
    if isinstance(small, MeasuredPrediction) and small.cost.sizes:
        return f"at {measured_sizes(small.cost)}"
    return SMALL_INPUTS if prediction.holds_for is HoldsFor.SMALL_INPUTS else ""


def measured_curve(prediction: Prediction) -> CostCurve | None:
    """The curve through what was measured of a function as it is; None where there is none."""
    small = small_answer(prediction)
    if not isinstance(small, MeasuredPrediction) or small.ratio is not None:
        return None
    return curve_of(small.cost, small.growth)


def size_notes(prediction: Prediction) -> list[str]:
    """The notes of a table row: the given sizes and their source, a bound, the curve of the measurements."""
    notes = []
    if isinstance(prediction, SizedPrediction):
        at = prediction.at
        text = f"at {origins(at.sizes)}"
        if at.kind == "predicted":
            text = f"{labels.METRIC_WORDS[prediction.metric]} predicted {text}"
            text += f"; {bound(prediction.metric, at)}" if has_bound(at) else ""
        elif stated_bound(prediction) is not None:
            text += f"; {labels.marked_spread(prediction.small)} {SMALL_INPUTS}"
        elif at.kind == "bound":
            text = f"{bound(prediction.metric, at)} {text}"
        elif at.beyond > 1.005:
            text += f", {labels.times(at.beyond)} beyond what was measured"
        notes.append(text)
    curve = measured_curve(prediction)
    if curve is not None:
        metric = "" if prediction.metric == "latency" else f"{prediction.metric} "
        notes.append(f"{metric}{curve_words(curve)}")
    return notes


def shared_sizes(predictions: Sequence[Prediction]) -> tuple[SizeValue, ...]:
    """The given sizes for which all predictions hold; empty where they hold for others or several."""
    found = {
        prediction.at.sizes if isinstance(prediction, SizedPrediction) and prediction.at.kind != "bound" else ()
        for prediction in predictions
    }
    return next(iter(found)) if len(found) == 1 else ()


def mixed_sizes(predictions: Sequence[Prediction]) -> str:
    """``latency at items=10k and peak memory for small inputs``: where not all numbers hold for the given sizes.

    Empty where all do, and where none does.
    """
    if all(map(_is_at_sizes, predictions)) or not any(map(_is_at_sizes, predictions)):
        return ""
    words = {f"{labels.METRIC_WORDS[one.metric]} {holds_words(one)}".rstrip(): None for one in predictions}
    return " and ".join(words)


def _is_at_sizes(prediction: Prediction) -> bool:
    """Return whether a number is for given sizes."""
    return isinstance(prediction, SizedPrediction) and prediction.at.kind != "bound"


def hover_lines(predictions: Sequence[Prediction]) -> list[str]:
    """Describe the sizes that numbers hold for, as far as the table of a hover does not."""
    lines: dict[str, None] = {}
    for prediction in predictions:
        word = labels.METRIC_WORDS[prediction.metric]
        if isinstance(prediction, SizedPrediction):
            at = prediction.at
            if at.kind == "bound":
                lines[f"{word} {bound(prediction.metric, at)} at {origins(at.sizes)}"] = None
                lines[f"the {word} above is {SMALL_INPUTS}"] = None
            else:
                small = labels.marked_spread(prediction.small)
                lines[f"sizes: {origins(at.sizes)}"] = None
                if at.kind == "predicted":
                    lines[f"the {word} at these sizes {_PREDICTED}"] = None
                    if has_bound(at):
                        lines[f"{word} {bound(prediction.metric, at)} at these sizes"] = None
                if small:
                    lines[f"{word} {SMALL_INPUTS}: {small}"] = None
        curve = measured_curve(prediction)
        if curve is not None:
            lines[f"{word} {curve_words(curve)}"] = None
    return list(lines)


def label_forms(prediction: Prediction, form: str) -> list[str]:
    """The texts of a hint that say for which sizes a number holds, the longest first; none where it holds for others.

    A bound takes the place of a predicted number, which is for small inputs.
    """
    if isinstance(prediction, SizedPrediction):
        at = prediction.at
        if at.kind == "bound":
            return [bound(prediction.metric, at, most) for most in (2, 1)] if prediction.source == "predicted" else []
        number = labels.marked_median(prediction)
        if form == "band" and prediction.band is not None and at.kind != "curve":
            number = labels.band(prediction.metric, prediction.band, prediction.floor)
        named = " ".join(f"{value.name} {labels.size(value.value)}" for value in at.sizes)
        values = " × ".join(labels.size(value.value) for value in at.sizes)
        return [f"{number} at {named}", f"{number} at {values}", f"{labels.marked_median(prediction)} at {values}"]
    if isinstance(prediction, MeasuredPrediction) and (recorded := main_spread(prediction)):
        number = labels.marked_median(prediction)
        return [f"{number} at {recorded}", f"{number} at {recorded.rpartition(' ')[2]}"]
    return []
