"""What a hover says of measurements: their values, and on what, when and on how many runs they were made."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rlm_core.types import Band, Prediction

from . import values as render

if TYPE_CHECKING:
    from rlm_core.measurement import Measurement

    from rlm_lsp.history.measured import Measured

MOST_MEASURED = 6


def measured_value(one: Measured) -> str:
    """The median of a measurement, marked where it is stale."""
    return render.measured(one.measurement) + (" (stale)" if one.stale else "")


def measured_words(measured: Sequence[Measured], beside: Sequence[Prediction] = ()) -> Iterable[str]:
    """Where and when the measurements were made, once for those of the same run.

    Values are told where they do not stand ``beside`` a prediction already.
    """
    found: dict[tuple[str, bool], list[str]] = {}
    for one in measured:
        its = one.measurement
        value = "" if any(one.answers(prediction) for prediction in beside) else f" {measured_value(one)}"
        at = f" at {render.workload(its.asked)}" if its.basis not in ("call", "program") and its.asked else ""
        where = f"on {its.device}{at}, {its.workload.get('runtime', '')}, {its.measured_at[:10]}"
        low, high = max(its.low, 0.0), max(its.high, 0.0)
        spread = render.band(its.metric, Band(low, high, 0.8), render.MEASURED_FLOORS[its.metric])
        rests = f"{_counted(its)}, {spread}" if low < high else _counted(its)
        words = f"{render.METRIC_WORDS[its.metric]}{value} ({rests})"
        found.setdefault((where, one.stale), []).append(words)
    for (where, _), words_of in itertools.islice(found.items(), MOST_MEASURED):
        yield f"measured {where}: {' and '.join(words_of)}"
    if len(found) > MOST_MEASURED:
        yield f"{len(found) - MOST_MEASURED} more measurements: rlm-lsp measure list --functions"
    if any(stale for _, stale in found):
        yield "stale: the source has changed since it was measured"


def _counted(its: Measurement) -> str:
    """On what a measurement rests."""
    if its.basis == "program":
        return f"{its.calls:,} runs on {its.workload.get('input', 'its input')}"
    if its.basis != "call":
        return f"{its.calls:,} runs" if its.calls > 1 else "1 run"
    resumes = "calls" if its.kind == "function" else "resumes"
    return f"{its.calls:,} {resumes} in {its.tests:,} tests"
