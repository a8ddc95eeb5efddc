"""The label of an inlay hint: what fits of the costs of a unit into a few characters.

Input: the predictions of a unit, the form that the user chose and the width. Output: one line such as ``10–160 µs ·
≤3 KiB``, ``✓ 5.6 ms at items 3–40``, ``≥12 ms + 10k × fetch()``. A label never exceeds its width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from rlm_core.types import Metric, Prediction, WorkFacts

from rlm_lsp.settings.model import MAX_LABEL, LabelForm

from . import size_words
from .growth_words import growth_form
from .labels import (
    JOIN,
    METRIC_WORDS,
    band,
    marked_median,
    marked_spread,
    median,
    source_mark,
    spread,
    upper,
    wait_forms,
)

Marks = Mapping[Metric, Sequence[str]]
_Text = Callable[[], str]
_UNMARKED: Marks = MappingProxyType({})


def label(
    predictions: Sequence[Prediction],
    form: LabelForm = "band",
    width: int = MAX_LABEL,
    marks: Marks = _UNMARKED,
    *,
    named: bool = False,
    work: WorkFacts | None = None,
    with_growth: bool = False,
) -> str:
    """The label of a unit's predictions, in at most ``width`` characters; empty if there is nothing to show.

    Of a metric that is predicted at several sizes or devices the first prediction is shown, and ``+5`` stands for five
    more where there is room. ``marks`` follow their metrics, in the longest of their forms that fits; a metric with a
    mark is shortened to its median, since a ratio says nothing about an upper end. If ``named``, the names of the
    metrics precede them. A unit that waits, as ``work`` says, shows that and its computing time in place
    of its latency, even where the model abstains. ``with_growth`` adds how the latency grows, such as
    ``∝ n^2 in rows``. A label that is too long first gets a shorter form of the last metrics (an upper end, or a
    median), then fewer metrics, of which marked ones stay longest, and finally loses its
    marks.
    """
    waits = wait_forms(predictions, work) if work is not None else ()
    shown = [
        prediction
        for prediction in predictions
        if prediction.band is not None or (waits and prediction.metric == "latency")
    ]
    first = list({prediction.metric: prediction for prediction in reversed(shown)}.values())[::-1]
    for marked in _shorter(marks):
        texts = {
            prediction.metric: _texts(prediction, form, waits, prediction.metric in marked, with_growth=with_growth)
            for prediction in first
        }
        for metrics in _fewer(list(texts), marked):
            more = sum(prediction.metric in metrics for prediction in shown) - len(metrics)
            for parts in _combinations([texts[metric] for metric in metrics]):
                text = JOIN.join(
                    f"{METRIC_WORDS[metric] if named else ''} {part} {marked.get(metric, '')}".strip()
                    for metric, part in zip(metrics, parts, strict=True)
                )
                if len(text) <= width:
                    return f"{text} +{more}" if more and len(f"{text} +{more}") <= width else text
    return ""


def _texts(
    prediction: Prediction, form: LabelForm, waits: Sequence[str], has_mark: bool, *, with_growth: bool
) -> Sequence[_Text]:
    """The texts for one metric, the longest first; made when they are needed, since the first one usually fits."""
    if waits and prediction.metric == "latency":
        return [partial(str, text) for text in waits]
    full, short = _MARKED_FORMS[form] if source_mark(prediction) else _FORMS[form]
    sized = [] if has_mark else size_words.label_forms(prediction, form)
    if sized:
        # For which sizes a number holds says more than a second metric does.
        return [*(partial(str, text) for text in sized), partial(marked_median, prediction)]
    plain = [partial(full, prediction), partial(median if short is _upper and has_mark else short, prediction)]
    growth = prediction.growth if with_growth and prediction.metric == "latency" else None
    if growth is None or not growth.is_claim or growth.growth_class == "1" or growth.in_worst_case:
        return plain
    forms = growth_form(growth).replace("`", ""), growth.growth_class
    return [*(partial(_joined, full, prediction, form) for form in forms), *plain]


def _joined(text: Callable[[Prediction], str], prediction: Prediction, growth: str) -> str:
    return f"{text(prediction)} ∝ {growth}"


def _combinations(texts: Sequence[Sequence[_Text]]) -> Iterator[Sequence[str]]:
    """One text per metric: the full ones, then a shorter one of the last metrics; all texts of a single metric."""
    if len(texts) == 1:
        yield from ([text()] for text in texts[0])
        return
    for in_full in range(len(texts), -1, -1):
        yield [(forms[0] if number < in_full else forms[1])() for number, forms in enumerate(texts)]


def _shorter(marks: Marks) -> Iterator[Mapping[Metric, str]]:
    """The marks in their longest forms, then in shorter ones, then none."""
    for length in range(max(map(len, marks.values()), default=0)):
        yield {metric: forms[min(length, len(forms) - 1)] for metric, forms in marks.items() if forms}
    yield {}


def _fewer(metrics: list[Metric], marks: Mapping[Metric, str]) -> Iterator[list[Metric]]:
    """All, then one less and so on; the last goes first, and those without a mark before those with one."""
    shown = list(metrics)
    while shown:
        yield list(shown)
        plain = [number for number, metric in enumerate(shown) if metric not in marks]
        del shown[plain[-1] if plain else -1]


def _band(prediction: Prediction) -> str:
    assert prediction.band is not None, "abstained predictions have no label"
    return band(prediction.metric, prediction.band, prediction.floor)


def _upper(prediction: Prediction) -> str:
    assert prediction.band is not None, "abstained predictions have no label"
    return upper(prediction.metric, max(prediction.band.high, prediction.floor))


# The full and the short form of one metric.
_FORMS: dict[str, tuple[Callable[[Prediction], str], Callable[[Prediction], str]]] = {
    "band": (_band, _upper),
    "median": (median, median),
    "median±": (lambda prediction: spread(prediction) or _band(prediction), median),
}


def _marked_distances(prediction: Prediction) -> str:
    """The marked median and its distance to the ends of the band; the median alone where all calls are the same."""
    interval = prediction.band
    same = interval is None or interval.low == interval.high
    distances = "" if same else spread(prediction)
    return f"{source_mark(prediction)} {distances}" if distances else marked_spread(prediction)


# The same for what has a mark: a measured median says more than the spread of the calls.
_MARKED_FORMS: dict[str, tuple[Callable[[Prediction], str], Callable[[Prediction], str]]] = {
    "band": (marked_spread, marked_median),
    "median": (marked_median, marked_median),
    "median±": (_marked_distances, marked_median),
}
