"""The facts of a unit at given sizes: the sums over sizes that they hold, evaluated.

Input: :class:`WorkFacts` and the values of sizes, by the names that the analysis gives them. Output: the facts as they
would be if the text fixed these sizes, or the part of the cost that is certain at them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rlm_core.types import (
    Amount,
    CallCount,
    Cause,
    CauseKind,
    CostFacts,
    CostTerm,
    Growth,
    UnknownCalls,
    Wait,
    WorkFacts,
)

from .domain.quantities import Range, product, raised, range_product, range_sum

_MOST_EXPONENT = 900.0  # of a base, as in quantities
_EVEN = 0.5  # share of the runs
_LEAST_CALLS = 0.5
# A wait of unknown length that fewer calls reach does not make a cost unknown.
_USUAL = 0.5


def evaluated(terms: Sequence[CostTerm], sizes: Mapping[str, float], missing: float = 0.0) -> Amount:
    """The value of a sum at sizes; one that is not given has the value ``missing``.

    No result is negative or infinite, as for all facts.
    """
    total: Range = (0.0, 0.0, 0.0)
    for term in terms:
        total = range_sum(total, _value(term, sizes, missing))
    return Amount(*map(stated, total))


def _value(term: CostTerm, sizes: Mapping[str, float], missing: float = 0.0) -> Range:
    factor = 1.0
    for growth in term.factors:
        factor = product(factor, _factor(growth, max(sizes.get(growth.size, missing), 0.0)))
    return range_product((term.least, term.likely, term.most), (factor, factor, factor))


def _factor(growth: Growth, size: float) -> float:
    value = raised(size, growth.degree) if growth.degree else 1.0
    if growth.logs:
        value = product(value, raised(math.log2(max(size, 2.0)), growth.logs))
    return product(value, raised(growth.base, min(size, _MOST_EXPONENT))) if growth.base != 1 else value


def names_of(terms: Iterable[CostTerm]) -> dict[str, None]:
    """The sizes that a sum depends on, in their order in it."""
    return {factor.size: None for term in terms for factor in term.factors}


def sizes_of(work: WorkFacts) -> dict[str, None]:
    """The sizes that the costs of a unit depend on, and the number of its unknown calls and its waits."""
    return {name: None for terms in sums_of(work) for name in names_of(terms)}


def sums_of(work: WorkFacts | None) -> list[tuple[CostTerm, ...]]:
    """All sums over sizes that the facts of a unit hold."""
    if work is None:
        return []
    sums = [work.latency.terms, work.memory.terms]
    sums += [wait.terms for wait in work.waits]
    return [*sums, *(calls.terms for calls in work.repeated)]


def facts_at(work: WorkFacts, sizes: Mapping[str, float]) -> WorkFacts:
    """The facts of a unit if its text fixed these sizes; sizes that are not given stay unknown."""
    repeated = tuple(_left(calls, sizes) for calls in work.repeated)
    times = {calls.name: evaluated(calls.terms, sizes, _TYPICAL).likely for calls in work.repeated}
    unknown = tuple(sorted(((name, times.get(name, known)) for name, known in work.unknown), key=lambda call: -call[1]))
    latency, memory = _costs_at(work.latency, sizes), _costs_at(work.memory, sizes)
    left = {name for terms in (latency.terms, *(calls.terms for calls in repeated)) for name in names_of(terms)}
    return replace(
        work,
        latency=_with_loop(latency, work.latency, sizes),
        memory=memory,
        waits=tuple(_wait_at(wait, sizes) for wait in work.waits),
        unknown_calls=work.unknown_calls + _added(work, times, is_call=True),
        unknown_sizes=len(left),
        opaque=work.opaque + _added(work, times, is_call=False),
        unknown=unknown,
        repeated=tuple(calls for calls in repeated if names_of(calls.terms)),
    )


# The sizes for which facts give typical and large costs.
_TYPICAL, _LARGE = 10.0, 1000.0


def _added(work: WorkFacts, times: Mapping[str, float], *, is_call: bool) -> float:
    """The unknown calls, or operations, at the sizes less those at typical ones."""
    before = dict(work.unknown)
    return sum(value - before.get(name, 0.0) for name, value in times.items() if name.endswith("()") is is_call)


def _costs_at(costs: CostFacts, sizes: Mapping[str, float]) -> CostFacts:
    if not costs.terms or names_of(costs.terms).keys().isdisjoint(sizes):
        return costs
    known = evaluated(costs.terms, sizes)
    typical = evaluated(costs.terms, sizes, _TYPICAL).likely
    guessed = max(costs.typical - evaluated(costs.terms, {}, _TYPICAL).likely, 0.0)  # for unknown calls
    left = substituted(costs.terms, sizes)
    scale = typical / (costs.typical - guessed) if costs.typical > guessed else 1.0
    return CostFacts(
        known,
        stated(typical + guessed),
        stated(evaluated(costs.terms, sizes, _LARGE).likely + guessed),
        tuple(factor for factor in costs.growth if factor.size not in sizes),
        tuple(replace(cause, amount=stated(cause.amount * scale)) for cause in costs.causes),
        left if names_of(left) else (),
    )


def _with_loop(at_sizes: CostFacts, costs: CostFacts, sizes: Mapping[str, float]) -> CostFacts:
    """Computing time at sizes, with what the sizes repeat as the loop that it is in a text that fixes them.

    A loop over an unknown number of items is not a cause: no amount could be stated for it.
    """
    once = evaluated([term for term in costs.terms if not term.factors], {}).likely
    grown = at_sizes.known.likely - once
    if at_sizes is costs or grown <= 0:
        return at_sizes
    times = 1.0
    for factor in costs.growth:
        times = product(times, _factor(factor, max(sizes.get(factor.size, 0.0), 0.0)))
    return replace(at_sizes, causes=(Cause(CauseKind.LOOP, 0, "", grown, stated(times)), *at_sizes.causes))


def substituted(terms: Sequence[CostTerm], sizes: Mapping[str, float]) -> tuple[CostTerm, ...]:
    """A sum with the values of some of its sizes in place of their names."""
    merged: dict[tuple[Growth, ...], Range] = {}
    for term in terms:
        inside = tuple(factor for factor in term.factors if factor.size in sizes)
        left = tuple(factor for factor in term.factors if factor.size not in sizes)
        value = _value(replace(term, factors=inside), sizes)
        merged[left] = range_sum(merged[left], value) if left in merged else value
    return tuple(CostTerm(*total, factors) for factors, total in merged.items())


def _left(calls: UnknownCalls, sizes: Mapping[str, float]) -> UnknownCalls:
    return UnknownCalls(calls.name, substituted(calls.terms, sizes))


def _wait_at(wait: Wait, sizes: Mapping[str, float]) -> Wait:
    names = names_of(wait.terms)
    if not names or not names.keys() <= sizes.keys():
        return wait
    seconds = evaluated(wait.terms, sizes)
    amount = likely_wait((seconds.least, seconds.likely, seconds.most), wait.share, on_error=wait.on_error)
    return replace(wait, seconds=amount, per=(), terms=())


def depends_on_nothing(work: WorkFacts, metric: str) -> bool:
    """Return whether facts fix a cost: every size, call, operation and usual wait is known."""
    if not work.fixed or work.endless is not None or names_of(work.of(metric).terms):
        return False
    return metric != "latency" or not unknown_waits(work)


def unknown_waits(work: WorkFacts) -> bool:
    """Return whether most calls wait for a time that the facts do not fix, or each item of an input does."""
    usual = [wait for wait in work.waits if wait.share >= _USUAL and not wait.on_error]
    known = {(wait.line, wait.kind) for wait in work.waits if wait.is_known and not wait.per}
    in_loops = any((wait.line, wait.kind) not in known for wait in work.loop_waits)
    return in_loops or any(not wait.is_known or wait.per for wait in usual)


def likely_wait(seconds: Range, share: float, *, on_error: bool) -> Amount:
    """The seconds that a unit waits at a place which a share of its calls reaches.

    What more than half of the runs do not wait for is not likely, whatever the mean is; of two branches that are as
    likely as each other, the mean is.
    """
    low, likely, high = seconds
    if share < _EVEN or on_error:
        likely = 0.0
    elif share == _EVEN:
        likely *= _EVEN
    return Amount(low, max(likely, low), high)


def calls_at(work: WorkFacts, sizes: Mapping[str, float]) -> list[CallCount]:
    """The calls of unknown cost at sizes, the most frequent first; those that hardly run are left out."""
    known = {calls.name: evaluated(calls.terms, sizes).likely for calls in work.repeated}
    counts = [CallCount(name, known.get(name, times)) for name, times in work.unknown if name.endswith("()")]
    return sorted((count for count in counts if count.times >= _LEAST_CALLS), key=lambda count: -count.times)


def stated(value: float) -> float:
    """A number as facts have it: not negative, and :func:`finite`."""
    return max(finite(value), 0.0)


def finite(value: float) -> float:
    """A number as JSON has it, which knows no infinity."""
    return min(max(value, -sys.float_info.max), sys.float_info.max)
