"""The facts of two texts of one function -> which of them costs more, whatever the unknown parts cost.

What both texts have costs the same on both sides, calls of unknown cost included. What only one of them has is as cheap
on the side that seems to cost more, and as expensive on the other, as such parts usually are; of what may run less
often than is likely, that side counts half of the difference. A direction is stated only if it is the same for small
and for large inputs, or at the sizes that are given. No length, comment or style of a text counts.

Nothing here is fitted: the ranges of unknown costs are those of calls and operations that were measured. How often a
direction is right is in docs/design/cost-analysis.md.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlm_core.cost.at_sizes import evaluated
from rlm_core.cost.domain.called_names import written_calls
from rlm_core.cost.domain.syntax import nodes_of, parsed_function
from rlm_core.queries.function_sizes import analysis_sizes, inputs_of
from rlm_core.types import CodeText, CostTerm, Metric, SizeValue, WaitKind, WorkFacts

from .work_mixture import LEAST_WORK, known_wait

# Sizes that are those of small inputs and of large ones.
_TYPICAL, _LARGE = 10.0, 1000.0
# The base of an exponent grows for at most so many items: a worst case has passed every other cost by then.
_MOST_EXPONENT = 40.0
# The side that seems to cost more counts this share of what is likely beyond the least.
_SHARE_OF_LIKELY = 0.5
_MOST_COST = 1e30
_LEAST_CHANGE = math.log10(1.05)
"""A likely change below this is none: unit costs are not known better, and a rewrite of one line is not a change."""
# Operations that hardly ever run code of a program's classes, and cost about the same for all others.
_EVEN_OPERATIONS = frozenset({"format", "bool", "iter"})
# What a size may come from if somebody asked about it, rather than where it was seen.
_GIVEN = frozenset({"query", "comment", "settings"})
_WAIT = " waits"


@dataclass(frozen=True, slots=True)
class _UnknownCosts:
    """What calls, operations and waits of unknown cost take, in seconds or bytes."""

    call: float
    operation: float
    wait: float

    def of(self, name: str) -> float:
        """The cost of one unknown part by its name in the facts."""
        return self.wait if name.endswith(_WAIT) else self.call if name.endswith("()") else self.operation


@dataclass(frozen=True, slots=True)
class _Range:
    """Costs of unknown parts of one metric: ``shared`` are those tried for what both texts have."""

    cheap: _UnknownCosts
    usual: _UnknownCosts
    expensive: _UnknownCosts
    shared: tuple[_UnknownCosts, _UnknownCosts]


_RANGES: Mapping[Metric, _Range] = {
    "latency": _Range(
        cheap=_UnknownCosts(1e-7, 2e-8, 1e-7),
        usual=_UnknownCosts(2e-6, 1e-7, 1e-3),
        expensive=_UnknownCosts(5e-6, 2e-7, 1.0),
        shared=(_UnknownCosts(1e-7, 2e-8, 1e-7), _UnknownCosts(1e-4, 1e-6, 1.0)),
    ),
    "memory": _Range(
        cheap=_UnknownCosts(0.0, 0.0, 0.0),
        usual=_UnknownCosts(64.0, 0.0, 0.0),
        expensive=_UnknownCosts(1024.0, 32.0, 1024.0),
        shared=(_UnknownCosts(0.0, 0.0, 0.0), _UnknownCosts(4096.0, 64.0, 4096.0)),
    ),
}


@dataclass(frozen=True, slots=True)
class Direction:
    """Which of two texts costs more: log10 of the second cost over the first.

    ``likely`` is the change with usual unknown costs, ``least`` the smallest over all that is unknown, with its sign.
    ``sizes`` are those at which the texts were compared; empty for small and large inputs alike.
    """

    likely: float
    least: float
    sizes: tuple[SizeValue, ...] = ()


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number of seconds, bytes or calls: what is certain, and what is likely."""

    least: float
    likely: float

    def at(self, share: float) -> float:
        return self.least + share * (self.likely - self.least)


@dataclass(frozen=True, slots=True)
class _Costs:
    """The costs of one text at sizes: its known part, and how often each unknown part runs, by name."""

    known: _Amount
    unknown: Mapping[str, _Amount]


def direction(before: CodeText, after: CodeText, metric: Metric) -> Direction | None:
    """Return which of two texts of a function costs more; None where the facts do not show it.

    Both texts have facts from one reading (:func:`.pair_facts.with_pair_facts`). Sizes of ``after`` that somebody gave
    are those of both texts.
    """
    first, second = before.work, after.work
    if first is None or second is None or metric not in _RANGES:
        return None
    if bool(first.nodes) != bool(second.nodes) or (first.endless is None) != (second.endless is None):
        return None
    if _is_generator(before) != _is_generator(after):
        # A call of a generator runs nothing of it.
        return None
    sizes = tuple(size for size in after.sizes if size.source in _GIVEN)
    values, low, high, likely = _RANGES[metric], math.inf, -math.inf, 0.0
    for one, other in _at_all_sizes(before, after, metric, sizes):
        for shared in values.shared:
            low = min(low, _change(one, other, metric, shared, values.expensive, values.cheap, 1.0, _SHARE_OF_LIKELY))
            high = max(high, _change(one, other, metric, shared, values.cheap, values.expensive, _SHARE_OF_LIKELY, 1.0))
        usual = _change(one, other, metric, values.usual, values.usual, values.usual, 1.0, 1.0)
        likely = max(likely, usual, key=abs)
    least = low if low > 0 else min(high, 0.0)
    if not least or least * likely <= 0 or abs(likely) < _LEAST_CHANGE:
        return None
    if _makes_other_objects(*((before, after) if likely > 0 else (after, before))):
        return None
    return Direction(likely, least, sizes)


def _at_all_sizes(
    before: CodeText, after: CodeText, metric: Metric, sizes: tuple[SizeValue, ...]
) -> Iterator[tuple[_Costs, _Costs]]:
    """The costs of both texts for each choice of the sizes that are not given.

    A size that is that of no input may be as large as the inputs, or 1.
    """
    largest = max((size.value for size in sizes), default=0.0)
    choices = [(_TYPICAL, {1.0, _TYPICAL, max(largest, _TYPICAL)})] if sizes else []
    choices = choices or [(_TYPICAL, {1.0, _TYPICAL}), (_LARGE, {1.0, _LARGE})]
    for inputs, others in choices:
        for other in sorted(others):
            yield _costs(before, metric, sizes, inputs, other), _costs(after, metric, sizes, inputs, other)


def _costs(code: CodeText, metric: Metric, sizes: Sequence[SizeValue], inputs: float, others: float) -> _Costs:
    """The costs of a text where inputs that are not given have one size and sizes of no input have another."""
    work = code.work
    assert work is not None
    values = dict.fromkeys(inputs_of(code.text, work), inputs) | analysis_sizes(code, sizes)
    costs = work.of(metric)
    known = _evaluated(costs.terms, values, others)
    if not costs.terms:
        known = _Amount(costs.known.least, costs.known.likely)
    if metric == "latency":
        least, likely = known_wait(work)
        known = _Amount(known.least + least, known.likely + likely)
    return _Costs(known, _unknown(work, values, others))


def _unknown(work: WorkFacts, values: Mapping[str, float], others: float) -> dict[str, _Amount]:
    """How often each part of unknown cost runs."""
    repeated = {calls.name: _evaluated(calls.terms, values, others) for calls in work.repeated}
    unknown = {
        name: repeated.get(name, _Amount(times, times)) for name, times in work.unknown if name not in _EVEN_OPERATIONS
    }
    for wait in work.waits:
        if wait.seconds is None or wait.kind is not WaitKind.TIME:
            name = f"{wait.call}{_WAIT}"
            times = unknown.get(name, _Amount(0.0, 0.0))
            unknown[name] = _Amount(times.least, times.likely + wait.share)
    return unknown


def _evaluated(terms: Sequence[CostTerm], values: Mapping[str, float], others: float) -> _Amount:
    """The value of a sum at sizes; an exponential part is a worst case, and counts as such."""
    exponential, rest = [], []
    for term in terms:
        (exponential if any(factor.base > 1 for factor in term.factors) else rest).append(term)
    amount = evaluated(rest, values, others)
    if not exponential:
        return _Amount(amount.least, amount.likely)
    limited = {name: min(value, _MOST_EXPONENT) for name, value in values.items()}
    worst = evaluated(exponential, limited, min(others, _MOST_EXPONENT)).likely
    return _Amount(amount.least + worst, amount.likely + worst)


def _change(
    first: _Costs,
    second: _Costs,
    metric: Metric,
    shared: _UnknownCosts,
    of_first: _UnknownCosts,
    of_second: _UnknownCosts,
    share_of_first: float,
    share_of_second: float,
) -> float:
    """Log10 of the second cost over the first, for one choice of everything that is unknown.

    Args:
        first: costs of the earlier text.
        second: costs of the later text.
        metric: latency or memory.
        shared: the costs of unknown parts that both have.
        of_first: those of the parts that only the first has.
        of_second: those of the parts that only the second has.
        share_of_first: the share of what is likely beyond the least that counts, of the first text.
        share_of_second: the same of the second text.
    """
    one, other = first.known.at(share_of_first), second.known.at(share_of_second)
    nothing = _Amount(0.0, 0.0)
    for name in first.unknown.keys() | second.unknown.keys():
        times = first.unknown.get(name, nothing).at(share_of_first)
        others = second.unknown.get(name, nothing).at(share_of_second)
        both = min(times, others)
        one += both * shared.of(name) + (times - both) * of_first.of(name)
        other += both * shared.of(name) + (others - both) * of_second.of(name)
    return math.log10(_within(other, metric) / _within(one, metric))


def _within(cost: float, metric: Metric) -> float:
    return min(max(cost, LEAST_WORK[metric]), _MOST_COST)


def _makes_other_objects(cheaper: CodeText, other: CodeText) -> bool:
    """Return whether a text calls a class, by its usual spelling, that another text does not call.

    Its ``__init__`` may be an inherited one that was not read.
    """
    calls, others = written_calls(cheaper.text), written_calls(other.text)
    if calls is None or others is None:
        return True
    return any(name.lstrip("_")[:1].isupper() and name not in others for name in calls.lines)


def _is_generator(code: CodeText) -> bool:
    node = parsed_function(code.text)
    if node is None:
        return False
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in nodes_of(node))
