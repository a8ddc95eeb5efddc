"""Sentences about work facts: what a unit waits for, where its cost comes from, and how the cost grows.

Input: the facts of a unit and its predictions. Output: clauses that name lines of the file; the hover, the findings and
the comparison with ``HEAD`` share them. Numbers are written as in labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.source.units import has_no_parameters
from rlm_core.types import (
    Amount,
    Cause,
    CauseKind,
    CostFacts,
    Growth,
    GrowthClass,
    GrowthEstimate,
    Metric,
    Prediction,
    Unit,
    Wait,
    WaitKind,
    WorkFacts,
)

from rlm_lsp.history.work_changes import GrowthRise, WaitChange, usual_waits

from . import labels
from .escaping import printable

MOST_FACTS = 3
# Below it a class is less likely than all others together.
LEAST_GROWTH = 0.5
# Smaller amounts are not worth a line, whatever their share: a function's usual glue, and a page of objects.
_LEAST_AMOUNT: Mapping[Metric, float] = {"latency": labels.LEAST_WAIT, "memory": 2.0**20}
# An event that happens in nearly all calls is stated without "may".
_SURE = 0.95
# A loop whose cost is nearly that of one line in it is not a second cause.
_MOST_OF_LOOP = 0.8
# A probability that is shown as 100 % is not shown.
_CERTAIN = 0.995
_MAX_NAME = 60
_MOST_LINES = 3
_WAITED_FOR: Mapping[WaitKind, str] = {
    WaitKind.NETWORK: "the network",
    WaitKind.PROCESS: "a process",
    WaitKind.USER: "the user",
    WaitKind.THREAD: "a thread",
}
_UNKNOWN_TIME = "for an unknown time"
_CALLED: Mapping[CauseKind, str] = {
    CauseKind.CALL: "calls",
    CauseKind.ALLOCATION: "allocates",
    CauseKind.NUMBER: "computes with large numbers",
    CauseKind.PATTERN: "matches a pattern that may backtrack",
}


@dataclass(frozen=True, slots=True)
class _Fact:
    """A clause and how much of the predicted cost it explains."""

    weight: float
    text: str


def facts(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[str]:
    """What dominates the cost of a unit, the largest first, as clauses that name lines of the file.

    A unit that may not end and waits of unknown length come first; then known waits and causes of at least a quarter of
    the predicted cost.
    """
    work = analysed.code.work
    if work is None:
        return []
    by_metric = {prediction.metric: prediction for prediction in reversed(predictions)}
    entries: list[_Fact] = []
    if work.endless is not None and "latency" in by_metric:
        entries.append(_Fact(math.inf, f"line {file_line(analysed.unit, work.endless)} {labels.MAY_NOT_END}"))
    for metric, prediction in by_metric.items():
        cost = prediction.median or work.of(metric).typical or work.of(metric).known.likely
        if metric == "latency":
            cost = max(cost, labels.known_wait(work).likely)
            entries += _waits(analysed.unit, work, prediction, cost)
        entries += _causes(analysed, metric, cost)
    # The sort is stable: of equal weights the order above stays.
    entries.sort(key=lambda fact: -fact.weight)
    return [fact.text for fact in entries[:MOST_FACTS]]


def _possible_waits(work: WorkFacts, prediction: Prediction) -> list[Wait]:
    """The waits of a unit, the most likely first; a judge does not make a program wait for its input."""
    waits = (wait for wait in work.waits if not (prediction.basis == "program" and wait.kind is WaitKind.USER))
    return sorted(waits, key=lambda wait: -wait.share)


def _waits(unit: Unit, work: WorkFacts, prediction: Prediction, cost: float) -> Iterator[_Fact]:
    """One clause per kind of wait and called names; of known waits only those that matter."""
    usual, waits = usual_waits(work, prediction.basis), _possible_waits(work, prediction)
    calls: dict[tuple[WaitKind, int], dict[str, None]] = {}
    for wait in waits:
        calls.setdefault((wait.kind, wait.line), {})[wait.call] = None
    groups: dict[tuple[WaitKind, tuple[str, ...]], list[Wait]] = {}
    for wait in waits:
        groups.setdefault((wait.kind, tuple(calls[wait.kind, wait.line])), []).append(wait)
    for (_, names), group in groups.items():
        seconds = [wait.seconds for wait in group if wait.seconds is not None]
        likely = sum(amount.likely for amount in seconds)
        if len(seconds) < len(group) or group[0].kind is not WaitKind.TIME:
            # Rare waits of unknown length follow the frequent ones.
            yield _Fact(math.inf if group[0] in usual else 0.5, _wait_clause(unit, names, group))
        elif likely >= max(labels.LEAST_WAIT, labels.LEAST_COST_SHARE * cost):
            yield _Fact(likely / cost if cost else 1.0, _wait_clause(unit, names, group))


def _wait_clause(unit: Unit, names: Sequence[str], group: Sequence[Wait]) -> str:
    """``line 12 waits for the network (`requests.get`)``, ``lines 3 and 9 sleep 2 s together``."""
    kind = group[0].kind
    lines = sorted({file_line(unit, wait.line) for wait in group})
    several, may = len(lines) > 1, max(wait.share for wait in group) < _SURE
    ending = "" if several or may else "s"
    subject = f"{_lines(lines)}{' may' if may else ''}"
    amounts = [wait.seconds for wait in group if wait.seconds is not None]
    length = _length(amounts) if len(amounts) == len(group) else ""
    together = " together" if several and length else ""
    if kind is WaitKind.TIME:
        sleeps = all("sleep" in name.lower() for name in names)
        verb, called = ("sleep", "") if sleeps else ("wait", _named(*names))
        return f"{subject} {verb}{ending} {length or _UNKNOWN_TIME}{together}{called}"
    return f"{subject} wait{ending} for {_WAITED_FOR[kind]}{f' {length}' if length else ''}{together}{_named(*names)}"


def _length(amounts: Sequence[Amount]) -> str:
    """The length of waits together: ``1 s``, ``0.5–2 s``, ``up to 30 s``."""
    least, likely, most = (sum(getattr(a, bound) for a in amounts) for bound in ("least", "likely", "most"))
    if least <= 0:
        return f"up to {labels.quantity('latency', most)}" if 0 < most < math.inf else ""
    if most <= least * 1.05:
        return labels.quantity("latency", likely)
    low, high = labels.quantity("latency", least), labels.quantity("latency", most)
    return f"at least {low}" if math.isinf(most) else f"{low} to {high}"


def _causes(analysed: AnalysedUnit, metric: Metric, cost: float) -> Iterator[_Fact]:
    """One clause per line with a large cost.

    The computing time of calls on a line that waits is not worth one, and neither is a loop whose cost is that of one
    line in it.
    """
    unit, work = analysed.unit, analysed.code.work
    assert work is not None, "units without facts have no causes"
    largest: dict[int, Cause] = {}
    costs = work.of(metric)
    waiting = {wait.line for wait in work.waits} if metric == "latency" else set()
    for cause in sorted(costs.causes, key=lambda cause: -cause.amount):
        if cause.kind is not CauseKind.CALL or cause.line not in waiting:
            largest.setdefault(cause.line, cause)
    lines = analysed.code.text.splitlines()
    for cause in largest.values():
        if cause.kind is CauseKind.LOOP and any(
            other.amount >= _MOST_OF_LOOP * cause.amount and _is_inside(lines, cause.line, other.line)
            for other in largest.values()
        ):
            continue
        matters = cause.amount >= max(_LEAST_AMOUNT[metric], labels.LEAST_COST_SHARE * cost)
        if matters and cause.kind is not CauseKind.WAIT:
            yield _Fact(cause.amount / cost if cost else 1.0, _cause_clause(unit, cause, metric, costs))


def _is_inside(lines: Sequence[str], outer: int, inner: int) -> bool:
    """Whether a line belongs to the block that another one opens, by indentation."""
    if not outer < inner < len(lines):
        return False
    depth = _indentation(lines[outer])
    return all(_indentation(line) > depth for line in lines[outer + 1 : inner + 1] if line.strip())


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _cause_clause(unit: Unit, cause: Cause, metric: Metric, costs: CostFacts) -> str:
    """``line 7 runs 10,000,000 times: about 300 ms``, ``line 3 allocates 760 MiB``."""
    line, amount = f"line {file_line(unit, cause.line)}", labels.quantity(metric, cause.amount)
    often = f" {labels.number(cause.count)} times" if cause.count is not None and cause.count >= 2 else ""
    match cause.kind:
        case CauseKind.ALLOCATION if metric == "memory":
            return f"{line} allocates {amount}{_named(cause.name)}"
        case CauseKind.LOOP:
            return f"{line} runs{often}: about {amount}" if often else f"{line} runs a loop: about {amount}"
        case CauseKind.RECURSION:
            itself = f"calls itself{often or _branching(costs)}: about {amount}"
            if cause.name == unit.qualname.rpartition(".")[2]:
                return f"{_code(cause.name)} ({line}) {itself}"
            return f"{line} calls {_code(cause.name)}, which {itself}"
        case CauseKind.CALL:
            return f"{line} calls {_code(cause.name)}{often}: about {amount}"
        case kind:
            return f"{line} {_CALLED.get(kind, 'costs')}{_named(cause.name)}: about {amount}"


def _branching(costs: CostFacts) -> str:
    """How often a function with exponential growth calls itself: `` about 2^n times in `n```."""
    base = next((growth for growth in _named_growth(costs.growth) if growth.base > 1), None)
    return f" about {labels.number(base.base)}^n times in {_code(base.size)}" if base is not None else ""


def growth_lines(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[str]:
    """How the latency of a unit grows with its inputs, and its memory where that differs.

    The estimate of a prediction takes precedence; without one the facts are quoted. A function without parameters has
    no inputs to grow with, and a unit that may not end has no latency.
    """
    work = analysed.code.work
    by_metric = {prediction.metric: prediction for prediction in reversed(predictions)}
    texts: dict[Metric, str] = {}
    for metric in ("latency", "memory"):
        prediction = by_metric.get(metric)
        if prediction is None or (metric == "latency" and work is not None and work.endless is not None):
            continue
        if prediction.growth is not None:
            estimate = prediction.growth
            without_inputs = not named_sizes(estimate.sizes) and has_no_parameters(analysed.unit.text)
            text = growth_words(estimate) if not without_inputs else ""
            # That memory is constant is usual: only the latency says so.
            text = "" if metric == "memory" and estimate.growth_class == "1" else text
        else:
            text = _growth_of_facts(work.of(metric).growth) if work is not None else ""
        if text and text not in texts.values():
            texts[metric] = text
    return [f"{labels.METRIC_WORDS[metric]} {text}" for metric, text in texts.items()]


def growth_words(estimate: GrowthEstimate) -> str:
    """``grows about as n^2 in `values` (72 % probability)``; empty where the class is not known well enough."""
    if estimate.growth_class == "other" or estimate.probability < LEAST_GROWTH:
        return ""
    probable = f" ({estimate.probability * 100:.0f} % probability)" if estimate.probability < _CERTAIN else ""
    if estimate.growth_class == "1":
        return f"does not grow with the inputs{probable}"
    return f"grows about as {growth_form(estimate.growth_class, estimate.sizes)}{probable}"


def growth_form(growth_class: GrowthClass, sizes: Sequence[str]) -> str:
    """A class with its inputs: ``n^2 in `values```, ```rows` × `cols```."""
    named = named_sizes(sizes)
    if growth_class == "mn" and len(named) > 1:
        return " × ".join(map(_code, named[:_MOST_LINES]))
    # Of a product all sizes are named, or none is.
    if not named or (growth_class == "mn" and len(named) < len(sizes)):
        return "mn in the sizes of inputs" if growth_class == "mn" else f"{growth_class} in the size of an input"
    sizes = named
    return f"{growth_class} in {_and([_code(size) for size in sizes[:_MOST_LINES]])}"


def named_sizes(sizes: Sequence[str]) -> list[str]:
    """The sizes that the text names; the analysis numbers the others, as in ``?2``."""
    return [size for size in sizes if not size.startswith("?")]


def _named_growth(growth: Sequence[Growth]) -> list[Growth]:
    named = named_sizes([term.size for term in growth])
    return [term for term in growth if term.size in named]


def _growth_of_facts(growth: Sequence[Growth]) -> str:
    # A product with a size that has no name would read as if the size were not there.
    if not growth or len(_named_growth(growth)) < len(growth):
        return ""
    if len(growth) == 1:
        return f"grows about as {_term(growth[0], 'n')} in {_code(growth[0].size)}"
    return f"grows about as {' × '.join(_term(term, _code(term.size)) for term in growth[:_MOST_LINES])}"


def _term(growth: Growth, size: str) -> str:
    """``n``, ``n^2 log n``, ``sqrt n`` or ``2^n``."""
    parts = [f"{labels.number(growth.base)}^{size}"] if growth.base > 1 else []
    if growth.degree:
        parts.append({1.0: size, 0.5: f"sqrt {size}"}.get(growth.degree, f"{size}^{growth.degree:.2g}"))
    if growth.logs:
        parts.append(f"log {size}" if growth.logs == 1 else f"log^{growth.logs:.2g} {size}")
    return " ".join(parts) or "1"


def unknown_waits(analysed: AnalysedUnit, prediction: Prediction) -> str:
    """What a latency does not include, such as ``the wait for the network (line 12)``; empty if there is nothing.

    A measured one includes what the unit waited for.
    """
    work = analysed.code.work
    if work is None or prediction.metric != "latency" or prediction.source != "predicted":
        return ""
    if work.endless is not None:
        return f"line {file_line(analysed.unit, work.endless)}, which {labels.MAY_NOT_END}"
    shown = usual_waits(work, prediction.basis)
    waits = [wait for wait in shown if wait.seconds is None or wait.kind is not WaitKind.TIME]
    kinds = list(dict.fromkeys(wait.kind for wait in waits))
    if not kinds:
        return ""
    lines = sorted({file_line(analysed.unit, wait.line) for wait in waits})
    times = [f"for {_WAITED_FOR[kind]}" if kind is not WaitKind.TIME else "of unknown length" for kind in kinds]
    return f"the wait {_and(times)} ({_lines(lines)})"


def rise_words(rise: GrowthRise) -> str:
    """``growth of latency from n to n^2 in `values```."""
    metric, after = labels.METRIC_WORDS[rise.metric], rise.after
    return f"growth of {metric} from {rise.before.growth_class} to {growth_form(after.growth_class, after.sizes)}"


def rise_mark(rise: GrowthRise) -> str:
    """``n → n^2``."""
    return f"{rise.before.growth_class} → {rise.after.growth_class}"


def wait_changes(unit: Unit, change: WaitChange) -> list[str]:
    """``now waits for the network (line 12)``, ``now may not end (line 9)``, ``now waits 1 s``."""
    clauses = []
    if change.endless is not None:
        clauses.append(f"now {labels.MAY_NOT_END} (line {file_line(unit, change.endless)})")
    for wait in change.waits:
        subject = "now waits" if wait.share >= _SURE else "now may wait"
        waited = _UNKNOWN_TIME if wait.kind is WaitKind.TIME else f"for {_WAITED_FOR[wait.kind]}"
        clauses.append(f"{subject} {waited} (line {file_line(unit, wait.line)})")
    if change.seconds is not None:
        before, after = (labels.quantity("latency", seconds) for seconds in change.seconds)
        clauses.append(f"now waits {after}" + (f" instead of {before}" if change.seconds[0] > 0 else ""))
    return clauses


def file_line(unit: Unit, line: int) -> int:
    """The 1-based line of the file for a 0-based line of the unit's text."""
    return unit.span.start_line + line + 1


def plain(text: str) -> str:
    """A clause without Markdown."""
    return text.replace("`", "")


def _lines(lines: Sequence[int]) -> str:
    """``line 3``, ``lines 3 and 9``, ``lines 3, 9 and 4 more``."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    shown = [str(line) for line in lines[:_MOST_LINES]]
    return f"lines {_and([*shown, f'{len(lines) - _MOST_LINES} more'] if len(lines) > _MOST_LINES else shown)}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _named(*names: str) -> str:
    shown = [_code(name) for name in names if name.strip()]
    return f" ({_and(shown[:_MOST_LINES])})" if shown else ""


def _code(name: str) -> str:
    """A piece of source text on one line, as code."""
    text = printable(" ".join(name.replace("`", "'").split()))
    return f"`{text if len(text) <= _MAX_NAME else f'{text[: _MAX_NAME - 1]}…'}`"
