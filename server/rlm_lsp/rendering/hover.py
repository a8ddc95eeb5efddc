"""The text of a hover: a table of costs, what matters about them in a few lines, and what they rest on as details.

Input: a unit, its predictions and what else is known about it. Output: Markdown or plain text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlm_core.inference.size_table import SizeTable
from rlm_core.measurement.known import OLD_DAYS
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.source import languages
from rlm_core.types import (
    MEASURED_FLOORS,
    Anchor,
    Band,
    Basis,
    CostRatio,
    MeasuredCost,
    MeasuredPrediction,
    MeasurementMark,
    Metric,
    Prediction,
    Unit,
    small_answer,
)

from rlm_lsp.budgets.syntax import Budget, bound

from . import abstentions, escaping, growth_words, labels, launch_words, loop_wait_words, size_words, work_words
from .curve_plot import details_plots
from .finding_messages import percent

MOST_ROWS = 24
UNCHANGED = "unchanged"
MOST_NAMES = 3
MOST_MEASURED = 6
_MEANING: Mapping[Basis, str] = {
    "call": "About 80 % of calls should fall within the 80 % band, for inputs like those in a project's tests, often"
    " small ones",
    "program": "About 80 % of runs should fall within the 80 % band, on the tests of an online judge",
    "kernel": "About 80 % of launches should fall within the 80 % band, at these sizes on this GPU",
    "module": "About 80 % of forward passes should fall within the 80 % band, at these sizes on this GPU",
    "network": "About 80 % of networks like this one should fall within the 80 % band, in accuracy after training and"
    " in the time of one batch on this device",
}
_AT_GIVEN_SIZES = "About 80 % of calls at these sizes should fall within the 80 % band"
_WITH_SUCH_INPUTS = "About 80 % of calls with such inputs should fall within the 80 % band"
_AT_SIZES = frozenset({"kernel", "module", "network"})
_DOUBTS: Mapping[MeasurementMark, str] = {
    MeasurementMark.OTHER_MACHINE: "measured on another processor and not scaled to this one, since one has no score"
    " of rlm-lsp doctor",
    MeasurementMark.OTHER_PYTHON: "measured with another Python than that of the project",
    MeasurementMark.OLD: f"measured more than {OLD_DAYS} days ago",
}
_DOUBTS_IN_SHORT: Mapping[MeasurementMark, str] = {
    MeasurementMark.OTHER_MACHINE: "on another processor",
    MeasurementMark.OTHER_PYTHON: "with another Python",
    MeasurementMark.OLD: "long ago",
}
_MORE: Mapping[Metric, str] = {
    "latency": "slower",
    "memory": "uses more memory",
    "accuracy": "more accurate",
    "energy": "uses more energy",
}


@dataclass(frozen=True, slots=True)
class HoverText:
    """The summary that a developer reads first, and the details; each Markdown or plain text.

    ``plots`` is a block of HTML for clients that show it within Markdown; empty where there is nothing to plot.
    """

    summary: str
    details: str
    plots: str = ""

    def together(self, *, markdown: bool, plots: bool = False) -> str:
        """Both in one text, with the ``plots`` if the client shows them."""
        title = "**Details**" if markdown else "Details"
        parts = [self.summary]
        parts += [self.plots] if plots and self.plots else []
        parts += [title, self.details] if self.details else []
        return "\n\n".join(parts)


def hover_text(
    analysed: AnalysedUnit,
    predictions: Sequence[Prediction],
    *,
    markdown: bool,
    against_head: str = "",
    shares: Sequence[tuple[Prediction, float]] = (),
    budgets: Sequence[tuple[Budget, Prediction]] = (),
    table: SizeTable | None = None,
) -> HoverText:
    """The text of a hover, as Markdown or plain text.

    The summary has the table, what its range means, the change since ``HEAD``, the budgets, lines with a cheaper
    rewrite, the main cause and the growth.

    Args:
        analysed: the unit.
        predictions: at least one.
        markdown: whether the client shows Markdown.
        against_head: the text of :func:`head_words`.
        shares: predictions with the share of comparable units that cost less.
        budgets: budgets with the predictions that they apply to.
        table: the costs at several sizes.
    """
    unit, basis = analysed.unit, predictions[0].basis
    quote = escaping.markdown if markdown else escaping.printable
    answered = [prediction for prediction in predictions if prediction.bands]
    by_model = [prediction for prediction in answered if prediction.source == "predicted"]
    at = size_words.shared_sizes(answered)
    mixed = size_words.mixed_sizes(answered)
    what = f"one call at {quote(size_words.sizes(at))}" if at else labels.BASIS_WORDS[basis]
    what = f"one call, {quote(mixed)}" if mixed else what
    blocks = [f"{_title(unit, markdown)}: {what}"]
    if answered:
        rows = _rows(answered)
        blocks.append(_table(rows) if markdown else _lines(rows))
        calls = "; a measured band is the spread of the calls" if len(by_model) < len(answered) else ""
        # Nothing was checked that a share could be of.
        meaning = [] if all(prediction.uncalibrated for prediction in answered) else [f"{_meaning(answered)}{calls}."]
        blocks += meaning
        if table is not None:
            blocks.append(_size_table(table, markdown))
    causes = work_words.facts(analysed, predictions)
    missing = [work_words.unknown_waits(analysed, prediction) for prediction in answered]
    # Only a change is worth a line here.
    first = [f"against HEAD: {against_head}"] if against_head not in ("", UNCHANGED) else []
    first += [_budget(budget, prediction, quote) for budget, prediction in budgets]
    first += growth_words.curable_lines(analysed, predictions)
    first += causes[:1]
    first += growth_words.growth_lines(analysed, predictions)
    first += map(quote, launch_words.hover_lines(predictions))
    first += map(quote, size_words.hover_lines(answered))
    if any(prediction.metric == "latency" for prediction in predictions):
        first += loop_wait_words.hover_lines(unit, analysed.code.work)
    first += [f"the predicted latency does not include {text}" for text in dict.fromkeys(filter(None, missing))]
    first = [_plain(note, markdown) for note in first]
    # These numbers mean nothing without the sizes and the device.
    query = [*map(quote, _shared_query(answered))]
    if analysed.sizes is not None and answered:
        query.append(_plain(abstentions.sizes_origin(analysed.sizes, unit.kind), markdown))
    first += query if basis in _AT_SIZES else []
    first += measured_words(analysed.code.measured, answered[:MOST_ROWS], quote)
    first += _abstained(predictions, quote)
    first += [abstentions.failed_analysis(analysed.failure)] if analysed.failure and answered else []
    if first:
        blocks.append(_listed(first, markdown))
    notes = [_plain(cause, markdown) for cause in causes[1:]]
    notes += [f"against HEAD: {UNCHANGED}"] if against_head == UNCHANGED else []
    if len(answered) > MOST_ROWS:
        notes.append(f"{len(answered) - MOST_ROWS} more are not shown")
    notes += query if basis not in _AT_SIZES else []
    notes += dict.fromkeys(
        text for one in by_model if (text := abstentions.other_judge(analysed.code, one)) is not None
    )
    notes += [_share(prediction, share, unit.language) for prediction, share in shares]
    notes += map(quote, _calibration(by_model))
    notes += map(quote, _scaled(by_model))
    if any(prediction.truncated for prediction in predictions):
        notes.append("the text is long: the model read only its beginning and end")
    if any(prediction.source != "measured" for prediction in predictions):
        notes.append(f"predicted by model {quote(predictions[0].model)}; nothing was run")
    return HoverText("\n\n".join(blocks), _listed(notes, markdown), details_plots(answered, table))


def _meaning(answered: Sequence[Prediction]) -> str:
    """Describe what a band promises, at the given sizes where all predictions hold for these."""
    if size_words.shared_sizes(answered):
        return _AT_GIVEN_SIZES
    if size_words.mixed_sizes(answered):
        return _WITH_SUCH_INPUTS
    return _MEANING[answered[0].basis]


def _budget(budget: Budget, prediction: Prediction, quote: Callable[[str], str]) -> str:
    """``budget 1 ms: 12 % likely to exceed``; why it is not known for a model that abstains."""
    above = prediction.above(budget.value)
    name = f"budget {bound(budget)}"
    name += f" on {quote(prediction.device or budget.device)}" if budget.device is not None else ""
    if math.isnan(above):
        return f"{name}: not checked, since there is no prediction"
    if budget.metric == "accuracy":
        return f"{name}: {percent(1 - above)} likely to fall below"
    return f"{name}: {percent(above)} likely to exceed"


def head_words(
    state: str, changes: Sequence[CostRatio], others: Sequence[str] = (), *, quote: Callable[[str], str] = str
) -> str:
    """Describe how a unit has changed since git's ``HEAD``; ``state`` is that of ``HeadDiff``, ``others`` come first.

    ``quote`` escapes what comes from outside, such as names of devices.
    """
    if state != "changed":
        return {"new": "new", "same": UNCHANGED}[state]
    ratios = [
        f"{labels.METRIC_WORDS[change.metric]} {UNCHANGED}"
        if labels.is_same(change)
        else f"{labels.METRIC_WORDS[change.metric]}: cannot tell which costs more{_at_sizes(change)}"
        if labels.is_open_at_sizes(change)
        else f"{labels.METRIC_WORDS[change.metric]} {labels.about(change.ratio)} ({_percent(change.bands[0])} band"
        f" {labels.ratio_band(change.bands[0])}){_at_sizes(change)}"
        for change in changes
        if change.ratio is not None and change.bands and not (others and not change.is_decided)
    ]
    if ratios or others:
        return ", ".join([*others, *ratios])
    reasons = dict.fromkeys(
        abstentions.reason(change.abstained, quote) for change in changes if change.abstained is not None
    )
    return f"changed, but the ratio cannot be predicted{''.join(f' because {reason}' for reason in list(reasons)[:1])}"


def _at_sizes(change: CostRatio) -> str:
    """The sizes at which costs were compared, and the one at which the ratio turns; empty where neither is known."""
    at = f" {size_words.ratio_sizes(change)}" if change.sizes else ""
    return at + (f"; {size_words.crossing_words(change.crossing)}" if change.crossing is not None else "")


def measured_words(
    measured: Sequence[Anchor], shown: Sequence[Prediction] = (), quote: Callable[[str], str] = str
) -> Iterable[str]:
    """Describe where and when measurements were made, once per run, and how far they hold.

    Values are given where they are not next to a prediction already (``shown``). ``quote`` escapes what comes from
    outside, such as names of inputs.
    """
    by_run: dict[str, list[str]] = {}
    stale = False
    for anchor in measured:
        cost = anchor.cost
        answer = _answer_with(cost, shown)
        is_stale = anchor.before is not None and answer is None
        stale |= is_stale
        value = f" {labels.measured(cost)}" if answer is None or answer.ratio is not None else ""
        value += " (stale)" if is_stale else ""
        at = f" at {labels.workload(dict(cost.workload))}" if cost.workload and cost.kind in _AT_SIZES else ""
        origin = "; committed with the project" if cost.committed else ""
        runtime = f", {cost.runtime}" if cost.runtime else ""
        where = quote(f"on {cost.device}{at}{runtime}, {cost.date}{origin}")
        low, high = max(cost.low, 0.0), max(cost.high, 0.0)
        spread = labels.band(cost.metric, Band(low, high, 0.8), MEASURED_FLOORS[cost.metric])
        sizes = f", at {size_words.measured_sizes(cost)}" if cost.sizes else ""
        rests = quote(f"{_counted(cost)}, {spread}{sizes}" if low < high else f"{_counted(cost)}{sizes}")
        changed = "before the code changed, " if answer is not None and answer.ratio is not None else ""
        by_run.setdefault(f"{changed}{where}", []).append(f"{labels.METRIC_WORDS[cost.metric]}{value} ({rests})")
    for where, words in itertools.islice(by_run.items(), MOST_MEASURED):
        yield f"measured {where}: {' and '.join(words)}"
    if len(by_run) > MOST_MEASURED:
        yield f"{len(by_run) - MOST_MEASURED} more measurements: rlm-lsp measure list --functions"
    if stale:
        yield "stale: the code has changed since it was measured"
    yield from _anchored(shown)
    yield from _doubts(measured)


def measured_note(answer: MeasuredPrediction) -> str:
    """Return the source of a number: ``measured 2026-11-23``, ``2 µs measured 2026-11-23, times 2.1×``."""
    cost, ratio = answer.cost, answer.ratio
    words = f"measured {cost.date}"
    if cost.sizes:
        words += f" at {size_words.measured_sizes(cost)}"
    if ratio is not None and ratio.ratio is not None:
        words = f"{labels.measured(cost)} {words}, times {labels.times(ratio.ratio)}"
    return ", ".join([words, *(_DOUBTS_IN_SHORT[mark] for mark in cost.marks)])


def _answer_with(cost: MeasuredCost, shown: Sequence[Prediction]) -> MeasuredPrediction | None:
    """The answer that rests on a measurement."""
    answers = (answer for answer in map(small_answer, shown) if isinstance(answer, MeasuredPrediction))
    return next((answer for answer in answers if answer.cost == cost), None)


def _anchored(shown: Sequence[Prediction]) -> Iterable[str]:
    """Describe how measurements were corrected for changed code."""
    for answer in shown:
        ratio = answer.ratio if isinstance(answer, MeasuredPrediction) else None
        if isinstance(answer, MeasuredPrediction) and ratio is not None and ratio.ratio is not None:
            band = f" ({_percent(ratio.bands[0])} band {labels.ratio_band(ratio.bands[0])})" if ratio.bands else ""
            yield (
                f"{labels.METRIC_WORDS[answer.metric]}: {labels.measured(answer.cost)} measured, times"
                f" {labels.times(ratio.ratio)}{band}, the predicted ratio of the present code to the measured one"
            )


def _doubts(measured: Sequence[Anchor]) -> Iterable[str]:
    """Describe why measurements may not hold here as they are, once for all metrics."""
    metrics: dict[str, dict[str, None]] = {}
    for anchor in measured:
        cost = anchor.cost
        words = [_DOUBTS[mark] for mark in cost.marks]
        if cost.cpu_ratio is not None:
            scale = labels.ratio_digits(cost.cpu_ratio)
            words.append(f"scaled by {scale} from the processor that it was measured on to this one")
        for text in words:
            metrics.setdefault(text, {})[labels.METRIC_WORDS[cost.metric]] = None
    for text, names in metrics.items():
        yield f"{_joined(list(names))}: {text}"


def _counted(cost: MeasuredCost) -> str:
    """The number of runs or calls behind a measurement."""
    if cost.kind == "program":
        return f"{cost.calls:,} runs on {dict(cost.workload).get('input', 'its input')}"
    if cost.kind in _AT_SIZES:
        return f"{cost.calls:,} runs" if cost.calls > 1 else "1 run"
    resumes = "calls" if cost.kind == "function" else "resumes"
    if cost.tool == "cProfile":
        return f"mean of {cost.calls:,} {resumes} under cProfile, whose cost is subtracted"
    if cost.tool:
        benchmarks = "1 benchmark" if cost.tests == 1 else f"{cost.tests:,} benchmarks"
        return f"{cost.calls:,} {resumes} in {benchmarks} of {cost.tool}"
    return f"{cost.calls:,} {resumes} in {cost.tests:,} tests"


def _listed(notes: Sequence[str], markdown: bool) -> str:
    return "\n".join(f"- {note}" for note in notes) if markdown else "\n".join(notes)


def _title(unit: Unit, markdown: bool) -> str:
    if unit.qualname == "<file>":
        name = "this file"
    else:
        name = escaping.code_span(unit.qualname) if markdown else escaping.printable(unit.qualname)
    return f"**{name}**" if markdown else name


def _rows(predictions: Sequence[Prediction]) -> list[dict[str, str]]:
    """The cells of each prediction by column; empty columns are left out, and so is what all predictions share."""
    common = _common(predictions)
    rows = []
    for prediction in predictions[:MOST_ROWS]:
        workload = {name: value for name, value in prediction.workload.items() if (name, value) not in common}
        cells = {"": labels.METRIC_WORDS[prediction.metric]}
        cells["device"] = prediction.device or "" if ("device", prediction.device) not in common else ""
        cells["at"] = labels.workload(workload)
        cells["median"] = labels.marked_median(prediction)
        for band in prediction.bands:
            cells[f"{_percent(band)} {'interval' if prediction.uncalibrated else 'band'}"] = labels.band(
                prediction.metric, band, prediction.floor
            )
        cells |= launch_words.cells(prediction)
        # What it would say without the measurement of this unit.
        if isinstance(prediction, MeasuredPrediction):
            cells["predicted"] = labels.marked_spread(prediction.predicted)
        rows.append(cells)
    columns = dict.fromkeys(name for cells in rows for name in cells if name != "predicted")
    kept = [name for name in (*columns, "predicted") if any(cells.get(name) for cells in rows)]
    return [{name: cells.get(name, "") for name in kept} for cells in rows]


def _size_table(table: SizeTable, markdown: bool) -> str:
    """The costs at several sizes, one row per size."""
    metrics = dict.fromkeys(cost.metric for row in table.rows for cost in row.costs)
    rows = []
    for row in table.rows:
        costs = {cost.metric: labels.marked_spread(cost) for cost in row.costs}
        cells = {table.size: labels.size(row.value)}
        rows.append(cells | {labels.METRIC_WORDS[metric]: costs.get(metric, "") for metric in metrics})
    if markdown:
        return _table(rows)
    lines = (
        f"at {table.size}={cells[table.size]}: "
        + ", ".join(f"{name} {text}" for name, text in list(cells.items())[1:] if text)
        for cells in rows
    )
    return "\n".join(map(escaping.printable, lines))


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    return escaping.table([list(map(escaping.markdown, line)) for line in (rows[0], *(row.values() for row in rows))])


def _lines(rows: Sequence[Mapping[str, str]]) -> str:
    lines = []
    for cells in rows:
        of = cells[""] + (f" on {cells['device']}" if cells.get("device") else "")
        of += f" at {cells['at']}" if cells.get("at") else ""
        values = (f"{name} {text}" for name, text in cells.items() if name not in ("", "device", "at") and text)
        lines.append(escaping.printable(f"{of}: {', '.join(values)}"))
    return "\n".join(lines)


def _common(predictions: Sequence[Prediction]) -> set[tuple[str, str | None]]:
    """The device and the parts of the workload that all predictions share."""
    queries = [{("device", one.device), *one.workload.items()} for one in predictions]
    return set.intersection(*queries) if queries else set()


def _shared_query(predictions: Sequence[Prediction]) -> list[str]:
    """Device and workload, as far as they are the same for all predictions."""
    common = dict(_common(predictions))
    device = common.pop("device", None)
    workload = labels.workload({name: value for name, value in common.items() if value and value != device})
    words = [f"on {device}"] if device else []
    words += [workload if device else f"at {workload}"] if workload else []
    return [", ".join(words)] if words else []


def _share(prediction: Prediction, share: float, language: str) -> str:
    title, kinds = languages.LANGUAGES[language].title, abstentions.KINDS[prediction.basis]
    above = f" (those above {labels.quantity(prediction.metric, prediction.floor)})" if prediction.floor > 0 else ""
    return f"{_MORE[prediction.metric]} than {percent(share)} of comparable {title} {kinds}{above}"


def _calibration(predictions: Sequence[Prediction]) -> list[str]:
    """Describe what the bands were calibrated on, once for all metrics and devices with the same calibration."""
    several = len({prediction.device for prediction in predictions if prediction.device}) > 1
    names_by_words: dict[str, dict[str, None]] = {}
    for prediction in predictions:
        words = abstentions.calibration(prediction.basis, prediction.bands[0])
        name = labels.METRIC_WORDS[prediction.metric]
        name += f" on {prediction.device}" if several and prediction.device else ""
        names_by_words.setdefault(words, {})[name] = None
    return [f"{_joined(list(names))}: {words}" for words, names in names_by_words.items()]


def _joined(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _scaled(predictions: Sequence[Prediction]) -> Iterable[str]:
    """Describe how the numbers were scaled to this machine; nothing if they were not."""
    for prediction in predictions:
        note = abstentions.scaling(prediction.bands[0].source)
        if note:
            yield f"{labels.METRIC_WORDS[prediction.metric]}: {note}"


def _abstained(predictions: Sequence[Prediction], quote: Callable[[str], str]) -> list[str]:
    """Describe why there is no prediction, once per reason."""
    notes = (
        f"{labels.METRIC_WORDS[prediction.metric]}: no prediction because"
        f" {abstentions.reason(prediction.abstained, quote)}"
        for prediction in predictions
        if prediction.abstained is not None
    )
    return list(dict.fromkeys(notes))


def _percent(band: Band) -> str:
    return f"{band.coverage * 100:.0f} %"


def _plain(text: str, markdown: bool) -> str:
    return text if markdown else text.replace("`", "")
