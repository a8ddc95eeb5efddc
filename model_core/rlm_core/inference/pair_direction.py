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
from dataclasses import dataclass, replace
from itertools import pairwise

from rlm_core.cost.at_sizes import evaluated
from rlm_core.cost.domain.called_names import written_calls
from rlm_core.cost.domain.syntax import nodes_of, parsed_function
from rlm_core.queries.function_sizes import analysis_sizes, inputs_of
from rlm_core.types import CodeText, CostTerm, SizeValue, WaitKind, WorkFacts

from .work_mixture import LEAST_WORK, known_wait

# Sizes that are those of small inputs and of large ones.
_TYPICAL, _LARGE = 10.0, 1000.0
# The base of an exponent grows for at most so many items: a worst case has passed every other cost by then.
_MOST_EXPONENT = 40.0
# The side that seems to cost more counts this share of what is likely beyond the least.
_SHARE_OF_LIKELY = 0.7
_MOST_COST = 1e30
_ROUNDING = 1e-9
# More runs of an unknown part are those of a loop over a constant, which may be in a branch.
_MOST_CERTAIN = 4
_LEAST_CHANGE = math.log10(1.1)
"""A likely change below this is none: unit costs are not known better, and a comprehension as a loop costs the same."""
# Operations that hardly ever run code of a program's classes, and cost about the same for all others.
_EVEN_OPERATIONS = frozenset({"format", "bool", "iter"})
GIVEN = frozenset({"query", "comment", "settings"})
"""What a size may come from if the user asked about it, rather than where it was seen."""
_WAIT = " waits"


@dataclass(frozen=True, slots=True)
class _UnknownCosts:
    """The seconds that calls, operations and waits of unknown cost take."""

    call: float
    operation: float
    wait: float

    def of(self, name: str) -> float:
        """The cost of one unknown part by its name in the facts."""
        return self.wait if name.endswith(_WAIT) else self.call if name.endswith("()") else self.operation


# An exclusive part is between cheap and expensive; what both texts have may cost anything.
_CHEAP = _UnknownCosts(1e-7, 2e-8, 1e-7)
_USUAL = _UnknownCosts(2e-6, 1e-7, 1e-3)
_EXPENSIVE = _UnknownCosts(5e-6, 2e-7, 1.0)
_SHARED = (_CHEAP, _UnknownCosts(1e-4, 1e-6, 1.0))


@dataclass(frozen=True, slots=True)
class Direction:
    """Which of two texts costs more: log10 of the second cost over the first.

    ``likely`` is the change with usual unknown costs. ``sizes`` are those at which the texts were compared; empty for
    small and large inputs alike.
    """

    likely: float
    sizes: tuple[SizeValue, ...] = ()


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number of seconds or calls: what is certain, and what is likely."""

    least: float
    likely: float

    def at(self, share: float) -> float:
        return self.least + share * (self.likely - self.least)


@dataclass(frozen=True, slots=True)
class _Costs:
    """The costs of one text at sizes: its known part, how often each unknown part runs, and the largest size."""

    known: _Amount
    unknown: Mapping[str, _Amount]
    size: float


def direction(before: CodeText, after: CodeText) -> Direction | None:
    """Return which of two texts of a function takes longer; None where the facts do not show it.

    Both texts have facts from one reading (:func:`.pair_facts.with_pair_facts`). Sizes of ``after`` that the user gave
    are those of both texts.
    """
    first, second = before.work, after.work
    if first is None or second is None:
        return None
    if bool(first.nodes) != bool(second.nodes) or (first.endless is None) != (second.endless is None):
        return None
    if _is_generator(before) != _is_generator(after):
        # A call of a generator runs nothing of it.
        return None
    sizes = tuple(size for size in after.sizes if size.source in GIVEN)
    if _falls(before, sizes) or _falls(after, sizes):
        return None
    pairs = list(_at_all_sizes(before, after, sizes))
    changes = [_change(one, other, _USUAL, (_USUAL, _USUAL), (1.0, 1.0)) for one, other in pairs]
    likely, least = max(changes, key=abs), _least(pairs)
    if least * likely <= 0 or abs(likely) < _LEAST_CHANGE:
        return None
    if _makes_other_objects(*((before, after) if likely > 0 else (after, before))):
        return None
    return Direction(likely, sizes)


def differ_by_guards(before: CodeText, after: CodeText) -> bool:
    """Return whether two texts of a function differ only by early returns in place of branches."""
    return before.text != after.text and _without_guards(before) == _without_guards(after)


def _falls(code: CodeText, sizes: Sequence[SizeValue]) -> bool:
    """Return whether a cost gets smaller with its inputs: then what is taken off its sum was not understood."""
    costs = [_costs(code, sizes, size, {}, size).known.likely for size in (1.0, _TYPICAL, _LARGE)]
    return any(large < small - max(_ROUNDING, _ROUNDING * small) for small, large in pairwise(costs))


def _least(pairs: Sequence[tuple[_Costs, _Costs]]) -> float:
    """The change closest to none over all that is unknown, in log10; 0 where both directions are possible.

    The side that costs more counts :data:`_SHARE_OF_LIKELY` of what is likely beyond the least.
    """
    low, high = math.inf, -math.inf
    for one, other in pairs:
        for shared in _SHARED:
            # A call may work on as many items as the text that it replaces.
            expensive = replace(_EXPENSIVE, call=_EXPENSIVE.call * max(one.size / _TYPICAL, 1.0))
            low = min(low, _change(one, other, shared, (expensive, _CHEAP), (1.0, _SHARE_OF_LIKELY)))
            high = max(high, _change(one, other, shared, (_CHEAP, expensive), (_SHARE_OF_LIKELY, 1.0)))
    return low if low > 0 else min(high, 0.0)


def _at_all_sizes(before: CodeText, after: CodeText, sizes: tuple[SizeValue, ...]) -> Iterator[tuple[_Costs, _Costs]]:
    """The costs of both texts for each choice of the sizes that are not given.

    A size that is that of no input may be as large as the inputs, or 1. An input that only one of the texts depends on
    may be the largest or the smallest of all.
    """
    inputs = [set(inputs_of(code.text, code.work).values()) for code in (before, after)]
    given = {size.name for size in sizes}
    largest = max((size.value for size in sizes), default=_LARGE)
    only_before, only_after = inputs[0] - inputs[1] - given, inputs[1] - inputs[0] - given
    unequal = [
        dict.fromkeys(only_before, low) | dict.fromkeys(only_after, high)
        for low, high in ((1.0, largest), (largest, 1.0))
    ]
    is_open = not sizes or not (inputs[0] | inputs[1]) <= given
    for size in sorted({_TYPICAL, largest}) if is_open else [_TYPICAL]:
        others = {1.0, _TYPICAL, max(largest, _TYPICAL)} if sizes else {1.0, size}
        for own in ({}, *unequal) if only_before or only_after else ({},):
            for other in sorted(others):
                yield (
                    _costs(before, sizes, size, own, other),
                    _costs(after, sizes, size, own, other),
                )


def _costs(
    code: CodeText,
    sizes: Sequence[SizeValue],
    inputs: float,
    own: Mapping[str, float],
    others: float,
) -> _Costs:
    """The costs of a text at sizes.

    Args:
        code: the text with its facts.
        sizes: the given sizes of inputs.
        inputs: the size of the other inputs.
        own: the size of those that only one of the texts depends on.
        others: the size of what is not an input.
    """
    work = code.work
    assert work is not None
    values = {name: own.get(known, inputs) for name, known in inputs_of(code.text, work).items()}
    values |= analysis_sizes(code, sizes)
    costs, (least, likely) = work.latency, known_wait(work)
    known = _evaluated(costs.terms, values, others)
    if not costs.terms:
        known = _Amount(costs.known.least, costs.known.likely)
    largest = max((inputs, *(size.value for size in sizes)))
    return _Costs(_Amount(known.least + least, known.likely + likely), _unknown(work, values, others), largest)


def _unknown(work: WorkFacts, values: Mapping[str, float], others: float) -> dict[str, _Amount]:
    """How often each part of unknown cost runs; a fraction of a run is one that not every call gets to."""
    repeated = {calls.name: _evaluated(calls.terms, values, others) for calls in work.repeated}
    unknown = {
        name: repeated.get(name, _Amount(min(math.floor(times + _ROUNDING), _MOST_CERTAIN), times))
        for name, times in work.unknown
        if name not in _EVEN_OPERATIONS
    }
    for wait in work.waits:
        if wait.seconds is None or wait.kind is not WaitKind.TIME:
            name = f"{wait.call}{_WAIT}"
            times = unknown.get(name, _Amount(0.0, 0.0))
            unknown[name] = _Amount(times.least, times.likely + wait.share)
    return unknown


def _evaluated(terms: Sequence[CostTerm], values: Mapping[str, float], others: float) -> _Amount:
    """The value of a sum at sizes; an exponential part is a worst case, and counts as such."""
    exponential: list[CostTerm] = []
    rest: list[CostTerm] = []
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
    shared: _UnknownCosts,
    exclusive: tuple[_UnknownCosts, _UnknownCosts],
    shares: tuple[float, float],
) -> float:
    """Log10 of the second cost over the first, for one choice of everything that is unknown.

    Args:
        first: costs of the earlier text.
        second: costs of the later text.
        shared: the costs of unknown parts that both have.
        exclusive: those of the parts that only the first has, and only the second.
        shares: the share of what is likely beyond the least that counts, of the first text and of the second.
    """
    one, other = first.known.at(shares[0]), second.known.at(shares[1])
    nothing = _Amount(0.0, 0.0)
    for name in first.unknown.keys() | second.unknown.keys():
        times = first.unknown.get(name, nothing).at(shares[0])
        others = second.unknown.get(name, nothing).at(shares[1])
        both = min(times, others)
        one += both * shared.of(name) + (times - both) * exclusive[0].of(name)
        other += both * shared.of(name) + (others - both) * exclusive[1].of(name)
    return math.log10(_within(other) / _within(one))


def _within(cost: float) -> float:
    return min(max(cost, LEAST_WORK["latency"]), _MOST_COST)


def _makes_other_objects(cheaper: CodeText, other: CodeText) -> bool:
    """Return whether a text calls a class, by its usual spelling, that another text does not call.

    Its ``__init__`` may be an inherited one that was not read.
    """
    calls, others = written_calls(cheaper.text), written_calls(other.text)
    if calls is None or others is None:
        return True
    return any(name.lstrip("_")[:1].isupper() and name not in others for name in calls.lines)


def _without_guards(code: CodeText) -> str:
    """The code of a function with each early return as the branch that it is: ``if not x: return`` as ``if x: ...``.

    Defaults of parameters and decorators count.

    How often a branch runs is guessed from how it is written, but these run equally often.
    """
    node = parsed_function(code.text)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return code.text
    body = list(node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body)
    defaults = [default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None]
    head = [ast.Expr(part) for part in (*node.decorator_list, *defaults)]
    return ast.dump(ast.Module([*head, *_branches(body)], []))


def _branches(body: list[ast.stmt]) -> list[ast.stmt]:
    for place, statement in enumerate(body[:-1]):
        if isinstance(statement, ast.If) and not statement.orelse and [*map(_is_bare_return, statement.body)] == [True]:
            test = statement.test
            is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
            kept = test.operand if isinstance(test, ast.UnaryOp) and is_not else ast.UnaryOp(ast.Not(), test)
            return [*body[:place], ast.If(kept, _branches(body[place + 1 :]), [])]
    return body[:-1] if body and _is_bare_return(body[-1]) else body


def _is_bare_return(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Return) else statement
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _is_generator(code: CodeText) -> bool:
    node = parsed_function(code.text)
    if node is None:
        return False
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in nodes_of(node))
