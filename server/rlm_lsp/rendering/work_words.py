"""Sentences about work facts: what a unit waits for, and where its cost comes from.

Input: the facts of a unit and its predictions. Output: clauses that name lines of the file; the hover, the findings and
the comparison with ``HEAD`` share them. Numbers are written as in labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import (
    Amount,
    Cause,
    CauseKind,
    Growth,
    Metric,
    Prediction,
    Unit,
    Wait,
    WaitKind,
    WorkFacts,
)

from rlm_lsp.history.comparison import WaitChange, usual_waits

from . import labels
from .escaping import printable

MOST_FACTS = 3
# Smaller amounts are not worth a line, whatever their share: a function's usual glue, and a page of objects.
_LEAST_AMOUNT: Mapping[Metric, float] = {"latency": labels.LEAST_WAIT, "memory": 2.0**20}
# An event that happens in nearly all calls is stated without "may".
_SURE = 0.95
# A loop whose cost is nearly that of one line in it is not a second cause.
_MOST_OF_LOOP = 0.8
# Sums of floats may be a little larger than the whole.
_ROUNDING = 1 + 1e-9
_MAX_NAME = 60
MOST_LINES = 3
# Quadratic time of a pattern is usual and matters for long texts only.
_LEAST_DEGREE = 3.0
WAITED_FOR: Mapping[WaitKind, str] = {
    WaitKind.NETWORK: "the network",
    WaitKind.DATABASE: "a database",
    WaitKind.PROCESS: "a process",
    WaitKind.USER: "the user",
    WaitKind.THREAD: "a thread",
}
_UNKNOWN_TIME = "for an unknown time"
_CALLED: Mapping[CauseKind, str] = {
    CauseKind.ALLOCATION: "allocates",
    CauseKind.NUMBER: "computes with large numbers",
}


@dataclass(frozen=True, slots=True)
class _Fact:
    """A clause and how much of the predicted cost it explains."""

    weight: float
    text: str


def facts(analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[str]:
    """Return what dominates the cost of a unit, the largest first, as clauses that name lines of the file.

    A unit that may not end and waits of unknown length come first; then known waits and causes of at least a quarter of
    the predicted cost. Amounts are parts of the predicted cost: together they are not more than it.
    """
    work = analysed.code.work
    if work is None:
        return []
    by_metric = {prediction.metric: prediction for prediction in reversed(predictions)}
    entries: list[_Fact] = []
    if work.endless is not None and "latency" in by_metric:
        entries.append(_Fact(math.inf, f"line {file_line(analysed.unit, work.endless)} {labels.MAY_NOT_END}"))
    for metric, prediction in by_metric.items():
        cost = prediction.median if prediction.median is not None else work.of(metric).typical
        if metric == "latency":
            cost = max(cost, labels.known_wait(work).likely)
            entries += _waits(analysed.unit, work, prediction, cost)
            entries += _worst_cases(analysed.unit, work)
        entries += _causes(analysed, prediction, cost)
    # The sort is stable: of equal weights the order above stays.
    entries.sort(key=lambda fact: -fact.weight)
    return [fact.text for fact in entries[:MOST_FACTS]]


def parts_of(work: WorkFacts, metric: Metric, prediction: Prediction | None) -> list[Cause]:
    """The causes of a cost, with amounts that are parts of its prediction.

    A worst case is not part of it. The analysis adds up costs at typical sizes where the text fixes none, and the
    prediction may be for smaller ones.
    Where it says more than is predicted, its amounts are scaled down to the prediction: two numbers for one cost would
    contradict each other. Without a prediction they stay as they are.
    """
    costs = work.of(metric)
    causes = [cause for cause in costs.causes if math.isfinite(cause.amount) and cause.worst_case is None]
    whole = max([costs.typical, costs.known.likely, *(cause.amount for cause in causes)])
    if prediction is None or prediction.median is None or whole <= 0:
        return causes
    predicted = prediction.median - (labels.known_wait(work).likely if metric == "latency" else 0.0)
    scale = min(predicted / whole, 1.0)
    return [replace(cause, amount=cause.amount * scale) for cause in causes] if scale > 0 else []


def worst_cases(work: WorkFacts) -> list[Cause]:
    """The regular expressions of a unit that backtrack for some texts, the fastest growth first."""
    causes = [cause for cause in work.latency.causes if cause.worst_case is not None]
    return sorted(
        causes, key=lambda cause: (-cause.worst_case.base, -cause.worst_case.degree) if cause.worst_case else ()
    )


def worst_case_form(growth: Growth) -> str:
    """How a worst case grows with the length n of a text: ``2^n`` or ``n^3``."""
    return "2^n" if growth.base > 1 else f"n^{growth.degree:.0f}"


def _worst_cases(unit: Unit, work: WorkFacts) -> Iterator[_Fact]:
    """One clause per line that matches a pattern which backtracks far for some texts, such as an attacker's."""
    lines: set[int] = set()
    for cause in worst_cases(work):
        growth = cause.worst_case
        if growth is None or cause.line in lines or (growth.base <= 1 and growth.degree < _LEAST_DEGREE):
            continue
        lines.add(cause.line)
        clause = (
            f"in the worst case, line {file_line(unit, cause.line)} takes time that grows as {worst_case_form(growth)}"
        )
        yield _Fact(0.5, f"{clause} with the length of the text, to match {code(cause.name)}")


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
        likely, most = (sum(getattr(amount, bound) for amount in seconds) for bound in ("likely", "most"))
        if len(seconds) < len(group) or not (group[0].kind is WaitKind.TIME or group[0].is_known):
            # Rare waits of unknown length follow the frequent ones.
            yield _Fact(math.inf if group[0] in usual else 0.5, _wait_clause(unit, names, group))
        elif max(likely, most) >= max(labels.LEAST_WAIT, labels.LEAST_COST_SHARE * cost):
            # A rare sleep, such as that before another try, is part of no likely cost.
            weight = (likely / cost if cost else 1.0) if likely > 0 else 0.5
            yield _Fact(weight, _wait_clause(unit, names, group))


def _wait_clause(unit: Unit, names: Sequence[str], group: Sequence[Wait]) -> str:
    """``line 12 waits for the network (`requests.get`)``, ``lines 3 and 9 sleep 2 s together``."""
    kind = group[0].kind
    lines = sorted({file_line(unit, wait.line) for wait in group})
    several, may = len(lines) > 1, max(wait.share for wait in group) < _SURE
    ending = "" if several or may else "s"
    subject = f"{lines_of(lines)}{' may' if may else ''}"
    # What is waited for one item is not less for some calls, there may only be none.
    amounts = [
        replace(wait.seconds, least=wait.seconds.likely) if wait.per else wait.seconds
        for wait in group
        if wait.seconds is not None
    ]
    length = _length(amounts) if len(amounts) == len(group) else ""
    if all(wait.each is not None for wait in group):
        length = labels.times_each([replace(wait, per=()) for wait in group])
    together = " together" if several and length else ""
    together += _repeated(group) if length else ""
    together += " after an error" if all(wait.on_error for wait in group) else ""
    if kind is WaitKind.TIME:
        sleeps = all("sleep" in name.lower() for name in names)
        verb, called = ("sleep", "") if sleeps else ("wait", _named(*names))
        return f"{subject} {verb}{ending} {length or _UNKNOWN_TIME}{together}{called}"
    return f"{subject} wait{ending} for {WAITED_FOR[kind]}{f' {length}' if length else ''}{together}{_named(*names)}"


def _repeated(group: Sequence[Wait]) -> str:
    """Return the clause for what repeats a wait, such as `` for each item of `jobs```."""
    sizes = dict.fromkeys(size for wait in group for size in wait.per)
    if not sizes:
        return ""
    named = [size for size in sizes if not size.startswith("?")]  # the analysis numbers the others
    return f" for each item of {and_words([code(size) for size in named])}" if named else " in each iteration"


def _length(amounts: Sequence[Amount]) -> str:
    """The length of waits together: ``1 s``, ``0.5–2 s``, ``up to 30 s``."""
    least, likely, most = (sum(getattr(a, bound) for a in amounts) for bound in ("least", "likely", "most"))
    if least <= 0:
        return f"up to {labels.quantity('latency', most)}" if 0 < most < math.inf else ""
    if most <= least * 1.05:
        return labels.quantity("latency", likely)
    low, high = labels.quantity("latency", least), labels.quantity("latency", most)
    return f"at least {low}" if math.isinf(most) else f"{low} to {high}"


def _causes(analysed: AnalysedUnit, prediction: Prediction, cost: float) -> Iterator[_Fact]:
    """One clause per line with a large cost, as long as they are not more than the predicted cost together.

    The computing time of calls on a line that waits is not worth one, and neither is a loop whose cost is that of one
    line in it.
    """
    unit, work, metric = analysed.unit, analysed.code.work, prediction.metric
    assert work is not None, "units without facts have no causes"
    largest: dict[int, Cause] = {}
    waiting = {wait.line for wait in work.waits} if metric == "latency" else set()
    for cause in sorted(parts_of(work, metric, prediction), key=lambda cause: -cause.amount):
        if cause.kind is not CauseKind.CALL or cause.line not in waiting:
            largest.setdefault(cause.line, cause)
    lines = analysed.code.text.splitlines()
    # Without a prediction, amounts at sizes that nothing supports would be claims.
    has_amounts = prediction.median is not None or work.fixed
    left = cost - (labels.known_wait(work).likely if metric == "latency" else 0.0) if has_amounts else math.inf
    for cause in largest.values():
        if cause.kind is CauseKind.LOOP and any(
            other.amount >= _MOST_OF_LOOP * cause.amount and _is_inside(lines, cause.line, other.line)
            for other in largest.values()
        ):
            continue
        matters = cause.amount >= max(_LEAST_AMOUNT[metric], labels.LEAST_COST_SHARE * cost)
        # Lines of a loop and the loop around them are not two parts of the cost.
        if matters and cause.kind is not CauseKind.WAIT and cause.amount <= left * _ROUNDING:
            left -= cause.amount
            amount = labels.quantity(metric, cause.amount) if has_amounts else ""
            yield _Fact(cause.amount / cost if cost else 1.0, _cause_clause(unit, cause, metric, amount))


def _is_inside(lines: Sequence[str], outer: int, inner: int) -> bool:
    """Return whether a line belongs to the block that another one opens, by indentation."""
    if not outer < inner < len(lines):
        return False
    depth = _indentation(lines[outer])
    return all(_indentation(line) > depth for line in lines[outer + 1 : inner + 1] if line.strip())


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _cause_clause(unit: Unit, cause: Cause, metric: Metric, amount: str) -> str:
    """``line 7 runs 10,000,000 times: about 300 ms``, ``line 3 allocates 760 MiB``; ``amount`` may be empty."""
    line, about = f"line {file_line(unit, cause.line)}", f": about {amount}" if amount else ""
    if cause.kind is CauseKind.ALLOCATION and metric == "memory":
        return f"{line} allocates{f' {amount}' if amount else ''}{_named(cause.name)}"
    if _is_own_recursion(unit, cause):
        return f"{code(cause.name)} ({line}) calls itself{_often(cause)}{about}"
    return f"{line} {_does(unit, cause)}{about}"


def _does(unit: Unit, cause: Cause) -> str:
    """Describe what the line of a cause does: ``runs 10,000,000 times``, ``calls `sorted` 20 times``."""
    often = _often(cause)
    match cause.kind:
        case CauseKind.LOOP:
            return f"runs{often or ' a loop'}"
        case CauseKind.RECURSION:
            calls = "" if _is_own_recursion(unit, cause) else f"calls {code(cause.name)}, which "
            return f"{calls}calls itself{often}"
        case CauseKind.CALL:
            return f"calls {code(cause.name)}{often}"
        case kind:
            return f"{_CALLED.get(kind, 'costs')}{_named(cause.name)}"


def _is_own_recursion(unit: Unit, cause: Cause) -> bool:
    return cause.kind is CauseKind.RECURSION and cause.name == unit.qualname.rpartition(".")[2]


def _often(cause: Cause) -> str:
    return f" {labels.number(cause.count)} times" if cause.count is not None and cause.count >= 2 else ""


def costly_lines(analysed: AnalysedUnit, prediction: Prediction) -> list[tuple[int, str]]:
    """The 0-based lines of the file that cost most of a prediction, the most expensive first, and what they do."""
    unit, work = analysed.unit, analysed.code.work
    if work is None:
        return []
    parts = [(cause.amount, cause.line, _does(unit, cause)) for cause in parts_of(work, prediction.metric, prediction)]
    for wait in work.waits if prediction.metric == "latency" else ():
        if wait.is_known and wait.seconds is not None and wait.seconds.likely > 0:
            seconds = wait.seconds.likely
            parts.append((seconds, wait.line, f"waits {labels.quantity('latency', seconds)}"))
    found: dict[int, str] = {}
    for amount, line, words in sorted(parts, key=lambda part: -part[0]):
        if amount >= labels.LEAST_COST_SHARE * (prediction.median or 0.0):
            found.setdefault(file_line(unit, line) - 1, words)
    return list(found.items())


def unknown_waits(analysed: AnalysedUnit, prediction: Prediction) -> str:
    """Return what a latency excludes, such as ``the wait for the network (line 12)``; empty if there is nothing.

    A measured one includes what the unit waited for.
    """
    work = analysed.code.work
    if work is None or prediction.metric != "latency" or prediction.source != "predicted":
        return ""
    if work.endless is not None:
        return f"line {file_line(analysed.unit, work.endless)}, which {labels.MAY_NOT_END}"
    shown = usual_waits(work, prediction.basis)
    waits = [wait for wait in shown if not wait.is_known]
    kinds = list(dict.fromkeys(wait.kind for wait in waits))
    if not kinds:
        return ""
    lines = sorted({file_line(analysed.unit, wait.line) for wait in waits})
    times = [f"for {WAITED_FOR[kind]}" if kind is not WaitKind.TIME else "of unknown length" for kind in kinds]
    return f"the wait {and_words(times)} ({lines_of(lines)})"


def wait_changes(unit: Unit, change: WaitChange) -> list[str]:
    """``now waits for the network (line 12)``, ``now may not end (line 9)``, ``now waits 1 s``."""
    clauses = []
    if change.endless is not None:
        clauses.append(f"now {labels.MAY_NOT_END} (line {file_line(unit, change.endless)})")
    for wait in change.waits:
        subject = "now waits" if wait.share >= _SURE else "now may wait"
        waited = _UNKNOWN_TIME if wait.kind is WaitKind.TIME else f"for {WAITED_FOR[wait.kind]}"
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


def lines_of(lines: Sequence[int]) -> str:
    """``line 3``, ``lines 3 and 9``, ``lines 3, 9 and 4 more``."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    shown = [str(line) for line in lines[:MOST_LINES]]
    return f"lines {and_words([*shown, f'{len(lines) - MOST_LINES} more'] if len(lines) > MOST_LINES else shown)}"


def and_words(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _named(*names: str) -> str:
    shown = [code(name) for name in names if name.strip()]
    return f" ({and_words(shown[:MOST_LINES])})" if shown else ""


def code(name: str) -> str:
    """A piece of source text on one line, as code."""
    text = printable(" ".join(name.replace("`", "'").split()))
    return f"`{text if len(text) <= _MAX_NAME else f'{text[: _MAX_NAME - 1]}…'}`"
