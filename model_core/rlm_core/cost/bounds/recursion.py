"""How often a recursive function runs: the shape of its recursive calls -> the number of calls, and sums over them.

A function is read once with a symbol for each argument that changes from call to call. ``recurrence`` sees how the
symbol changes (``n - 1``, ``n // 2``, a part of a list) and how many recursive calls each call makes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..domain.frames import Recursive
from ..domain.quantities import LINEAR, ONE, Quantity, Range, ceiling, constant, exponential, of_size, raised
from ..domain.records import replace
from .argument_transitions import (
    Move,
    falls,
    grows,
    is_fixed,
    move_of,
    passes_another,
    repeats_on_others,
    split_range,
    swaps,
)
from .recurrence import Recurrence

_BRANCHING = 1.5  # recursive calls per call
_PARTITION = (0.7, 1.1)  # of the size, passed on by all recursive calls together
_FEWEST_MET = 0.1  # of the combinations of arguments
_MORE = 1.05  # calls per call, at least, where each may make several
_CERTAIN = 0.9  # share of the runs: nothing decides how many calls are made
_TYPICAL_WAYS = 3.0  # of a size that the text does not fix
_SWAPPED = 0.5  # of the calls pass on their arguments in another order, where one recursive call does
_SEARCH = 1.5  # calls for each item that a search places and takes back


def recurrence(
    steps: Sequence[Recursive],
    start: Mapping[str, Quantity],
    base: float,
    *,
    cached: bool,
    base_share: float,
    fallback: str,
    checks: int = 1,
    most: float = math.inf,
    bounds: Mapping[str, Quantity] | None = None,
) -> Recurrence:
    """The recursion with these recursive calls.

    Args:
        steps: the recursive calls of one call.
        start: what the symbols stand for in the first call, by symbol.
        base: the size at and below which a call makes no recursive call.
        cached: whether calls with equal arguments run once.
        base_share: the share of calls that was taken to end at once.
        fallback: the name of the size where no argument is known to shrink.
        checks: how many statements end a call at once.
        most: how many recursive calls a call makes on one path at most; infinite where a loop repeats one.
        bounds: what symbols are compared with where that ends the recursion, by symbol.
    """
    share = max(1 - base_share, 0.05)
    branches = min(sum(step.share[1] for step in steps) / share, most)
    branches = 1.0 if branches < 1.3 else round(branches) if abs(branches - round(branches)) < 0.2 else branches
    steps = [step for step in steps if not swaps(step, start)]
    if not steps:
        return Recurrence(constant(1.0, 2.0, 1.0 + _SWAPPED), ONE, "", 1.0, 1.0, "calls itself")
    end = split_range(steps, start)
    if end is not None:
        size = of_size(end)
        return Recurrence(size.times(1.5), size.log(), end, 0.5, 2.0, "halves its input", share)
    moves = [move for step in steps if (move := move_of(step, start, bounds or {})) is not None]
    # A call with fixed arguments, such as the last step of a tower, makes none that the others do not count.
    steps = [step for step in steps if not is_fixed(step, start)] or steps
    searches = any(step.tries for step in steps)
    if searches and not moves and not cached:
        size = of_size(fallback)
        return Recurrence(exponential(_SEARCH, size), size, fallback, 1.0, 2.0, "tries all ways")
    is_walk = any(passes_another(move.step) for move in moves)
    if not moves or is_walk or len(moves) < len(steps):
        # A call that nothing makes smaller is for a part of the input: how deep the others get does not say how many.
        size = of_size(fallback)
        values = [value for step in steps for value in step.arguments.values()]
        parts = any(value.kind == "unknown" and "." in value.name for value in values)
        # What only grows, such as a message or a depth, is passed down to the parts of parts.
        parts = parts or any(grows(value, start) for value in values)
        # Each call tries several ways, and neither an argument nor a number of checks says how deep.
        guessed = branches * share ** (checks - 1) > _BRANCHING and not parts and not moves
        known = {name: amount.constant[1] for name, amount in start.items() if amount.constant is not None}
        sized = max(known, key=lambda name: known[name], default=fallback)
        size = of_size(sized if known.get(sized, 0.0) > 1 else fallback)
        return Recurrence(
            size, size.log(), sized, 1.0, 1.0, "calls itself for each part", parts=(fallback, *start), guessed=guessed
        )
    symbol = moves[0].symbol
    if any(move.any_less for move in moves):
        return _of_all_smaller(moves, start, base, bounds or {}, share, cached=cached or most < 2)
    ratios = [move.ratio for move in moves if move.ratio < 1]
    if ratios:
        passed_on = sum(ratios)
        if len(ratios) > 1 and _PARTITION[0] < passed_on < _PARTITION[1]:
            # The items below and above a pivot: together nearly all of them.
            passed_on = 1.0
        ratio = min(max(passed_on / len(ratios), 0.05), 0.95)
        depth = of_size(symbol).log().times(1 / math.log2(1 / ratio))
        if branches < 1.3:
            return Recurrence(depth, depth, symbol, ratio, 1.0, "halves its input")
        power = min(math.log(branches) / math.log(1 / ratio), 6.0)
        power = round(power) if abs(power - round(power)) < 0.1 else power
        calls = of_size(symbol).power(power).times(2.0 - 1.0 / branches)
        return Recurrence(calls, depth, symbol, ratio, branches, "halves its input", share)
    others = [name for name in start if any(falls(step, name) for step in steps)] if cached else []
    return _counted(moves, start, base, cached or most < 2, share, branches, bounds or {}, others, most)


def _of_all_smaller(
    moves: Sequence[Move],
    start: Mapping[str, Quantity],
    base: float,
    bounds: Mapping[str, Quantity],
    share: float,
    *,
    cached: bool,
) -> Recurrence:
    """The recursion of calls that call themselves for each smaller size: each size doubles their number."""
    move = next(move for move in moves if move.any_less)
    if move.added > 0:
        span = bounds[move.symbol].substituted(start) - start.get(move.symbol, of_size(move.symbol))
    else:
        span = of_size(move.symbol) - constant(base)
    if cached:
        return Recurrence(span, span, move.symbol, 1.0, 1.0, "calls itself")
    likely = sum(min(one.step.share[1] / share, 1.0) for one in moves)
    return Recurrence(exponential(1 + likely, span), span, move.symbol, 1.0, 1.0 + likely, "tries all ways")


def _counted(
    moves: Sequence[Move],
    start: Mapping[str, Quantity],
    base: float,
    cached: bool,
    share: float,
    branches: float,
    bounds: Mapping[str, Quantity],
    others: Sequence[str],
    all_at_once: float,
) -> Recurrence:
    """The recursion of calls that pass on a fixed amount more or less; ``others`` fall by amounts that vary.

    Of the recursive calls in the text one path makes ``all_at_once`` at most.
    """
    symbol = moves[0].symbol
    # How far each symbol is from its end: in all, and in the first call where that is known.
    spans: dict[str, Quantity] = {}
    for move in moves:
        end = constant(base) if move.added < 0 else bounds.get(move.symbol)
        if end is not None and move.added > 0:
            spans[move.symbol] = end.substituted(start) - start.get(move.symbol, of_size(move.symbol))
        else:
            spans[move.symbol] = of_size(move.symbol) - constant(base)
    known: dict[str, Range] = {}
    for name, span in spans.items():
        fixed = span.substituted(start).constant
        if fixed is not None:
            known[name] = fixed
    stride = min(max(abs(move.added), 1e-9) for move in moves)
    depth = spans[symbol].times(1 / stride)
    if symbol in known:
        depth = _each_of(known[symbol], lambda span: max(ceiling(span / stride), 0.0) + 1)
    symbols = list(spans)
    fallen = [other for other in others if other not in spans]
    if cached and len(symbols) + len(fallen) > 1:
        # One call for each combination of arguments; of those that fall by amounts that vary some are never met.
        calls = depth
        for other in symbols[1:]:
            levels = known.get(other)
            calls = calls * (start.get(other, of_size(other)) if levels is None else _each_of(levels, lambda n: n + 1))
        for other in fallen:
            calls = calls * start.get(other, of_size(other)) * constant(_FEWEST_MET, 1.0)
        return Recurrence(calls, depth, symbol, 1.0, 1.0, "calls itself")
    grouped: dict[tuple[str, float], tuple[Move, _Ways]] = {}
    for move in moves:
        ways_of, key = _Ways.of(move, symbol, share), (move.symbol, move.added)
        grouped[key] = (move, ways_of + grouped[key][1] if key in grouped else ways_of)
    exclusive = min(all_at_once / max(sum(way.most(1.0) for _, way in grouped.values()), 1e-9), 1.0)
    moves = [move for move, _ in grouped.values()]
    ways = [replace(way, share=way.share * exclusive, on_parts=way.on_parts * exclusive) for _, way in grouped.values()]
    strides = [max(abs(move.added), 1e-9) for move in moves]
    most = sum(way.most(100.0) for way in ways)
    if cached or most < 1.3:
        return Recurrence(depth, depth, symbol, 1.0, 1.0, "calls itself")
    name = "calls itself" if all(way.most(1.0) <= 2 for way in ways) else "tries all ways"
    several = max(branches, 2.0)
    weights = [way.likely(_TYPICAL_WAYS) for way in ways]
    on_parts = sum(way.on_parts for way in ways)
    if (on_parts or any(repeats_on_others(move.step) for move in moves)) and sum(weights) - on_parts <= _MORE:
        # The parts that calls get are together no more than there are, and what is left does not branch.
        return Recurrence(depth, depth, symbol, 1.0, 1.0, "calls itself")
    root = _growth_base(strides, weights) if sum(weights) > _MORE else _MORE
    calls = exponential(root, spans[symbol])
    if len(known) == len(symbols):
        # Either span may end a call: together they bound how deep it gets.
        _, likely, high = (ceiling(max(sum(span), 0.0) / stride) for span in zip(*known.values(), strict=True))
        count = _tree(root**stride, likely)
        if len(symbols) == 1 and likely == high and all(way.share > _CERTAIN for way in ways):
            calls = constant(max(count / 2, 1.0), 2 * count, count)
        else:
            most = max(sum(way.most(high * stride) for way in ways), _MORE)
            calls = constant(1.0, _tree(most, high), count)
    return Recurrence(calls, depth, symbol, 1.0, several, name)


@dataclass(frozen=True, slots=True)
class _Ways:
    """How many calls a recursive call in the text makes, by the size that it shrinks: ``slope * size + fixed``.

    ``share`` of them is likely made.
    ``on_parts`` of those that are likely made get a part of what a loop runs over.
    """

    slope: float
    fixed: float
    share: float
    on_parts: float = 0.0

    @classmethod
    def of(cls, move: Move, symbol: str, all_runs: float) -> _Ways:
        """From the loops around the call; ``all_runs`` is the share of runs that do not end at once.

        A loop over the parts of an object counts once where the call gets another one: it may be a node of a tree.
        """
        share = min(move.step.share[1] / max(all_runs, 1e-9), 1.0)
        linear = (((symbol, LINEAR), 1.0),)
        times = move.step.times
        terms = times.terms
        left = terms.get(linear, (0.0, 0.0, 0.0))
        if move.added > 0 and left[2] < 0:
            # A loop over what is left up to the end of the range.
            return cls(-left[0], max(terms.get((), (0.0, 0.0, 0.0))[2], 0.0), share)
        if not terms.keys() <= {(), linear}:
            return (
                cls(0.0, 1.0, share, on_parts=share)
                if repeats_on_others(move.step)
                else cls(0.0, max(times.evaluate(lambda name: _TYPICAL_WAYS)[1], 1.0), min(share, 0.9))
            )
        slope, fixed = (terms.get(key, (0.0, 0.0, 0.0)) for key in (linear, ()))
        most = slope[2] + fixed[2]
        return cls(slope[2], fixed[2], share * (slope[1] + fixed[1]) / most if most > 0 else share)

    def __add__(self, other: _Ways) -> _Ways:
        """Those of two calls that change the same argument alike."""
        mine, theirs = self.slope + self.fixed, other.slope + other.fixed
        share = (mine * self.share + theirs * other.share) / (mine + theirs) if mine + theirs > 0 else self.share
        on_parts = self.on_parts + other.on_parts
        return _Ways(self.slope + other.slope, self.fixed + other.fixed, share, on_parts=on_parts)

    def most(self, size: float) -> float:
        """The calls that are made if all conditions hold."""
        return max(self.slope * size + self.fixed, 0.0)

    def likely(self, size: float) -> float:
        """The calls that are likely made."""
        return self.most(size) * self.share


def _each_of(known: Range, count: Callable[[float], float]) -> Quantity:
    """A count for the least, the likely and the largest size."""
    low, likely, high = (count(size) for size in known)
    return constant(low, high, likely)


def _growth_base(decrements: Sequence[float], weights: Sequence[float]) -> float:
    """The base of the growth: the root of ``sum(weight * x**-decrement) = 1``."""
    low, high = 1.0, 1.0 + sum(weights)
    for _ in range(50):
        middle = (low + high) / 2
        value = sum(weight * middle**-less for less, weight in zip(decrements, weights, strict=True))
        low, high = (middle, high) if value > 1 else (low, middle)
    return round((low + high) / 2, 3)


def _tree(branches: float, levels: float) -> float:
    """The calls of a tree of so many levels below the first call."""
    return (raised(branches, levels + 1) - 1) / (branches - 1)
