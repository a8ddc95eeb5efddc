"""How often a recursive function runs: the shape of its recursive calls -> the number of calls, and sums over them.

A function is read once with a symbol for each argument that changes from call to call. ``recurrence`` sees how the
symbol changes (``n - 1``, ``n // 2``, a part of a list) and how many recursive calls each call makes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

from ..domain.combinatorics import ways_to_choose
from ..domain.frames import Recursive
from ..domain.quantities import ONE, Quantity, Range, ceiling, constant, exponential, of_size, product, raised
from ..domain.records import replace
from .argument_transitions import (
    Move,
    falls,
    grows,
    is_fixed,
    move_of,
    narrows,
    passes_another,
    repeats_on_others,
    split_range,
)
from .recurrence import Recurrence
from .recursion_ways import (
    CERTAIN,
    TYPICAL_WAYS,
    Ways,
    count_calls,
    count_calls_of_two,
    each_of,
    growth_base,
    typical_ways,
)

_MOST_EXACT = 20_000
_BRANCHING = 1.5  # recursive calls per call
_PARTITION = (0.7, 1.1)  # of the size, passed on by all recursive calls together
_FEWEST_MET = 0.1  # of the combinations of arguments
_MORE = 1.05  # calls per call, at least, where each may make several
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
    levels: Quantity | None = None,
    multiplies: float = 1.0,
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
        levels: how deep the recursion gets, where a list that each level appends to says so.
        multiplies: how many results a call makes of each result of a recursive call.
    """
    share = max(1 - base_share, 0.05)
    branches = min(sum(step.share[1] for step in steps) / share, most)
    branches = 1.0 if branches < 1.3 else round(branches) if abs(branches - round(branches)) < 0.2 else branches
    if levels is not None and not cached:
        return _backtracking(steps, start, share, levels)
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
    if not moves or is_walk or (len(moves) < len(steps) and (branches >= _BRANCHING or _repeats(steps, moves))):
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
    if multiplies > 1 and not cached and branches < 1.3:
        # What handles each result counts like calls, which would make as many.
        size = of_size(symbol)
        span = (bounds or {}).get(symbol, size) if moves[0].added > 0 else size - constant(base)
        multiplies = min(multiplies, TYPICAL_WAYS)
        return Recurrence(exponential(multiplies, span), span, symbol, 1.0, multiplies, "tries all ways")
    others = [name for name in start if any(falls(step, name) for step in steps)] if cached else []
    return _counted(moves, start, base, cached or most < 2, share, branches, bounds or {}, others, most)


def _repeats(steps: Sequence[Recursive], moves: Sequence[Move]) -> bool:
    """Return whether a loop repeats a call that no argument makes smaller."""
    moving = [move.step for move in moves]
    return any(step.times.constant is None for step in steps if not any(step is other for other in moving))


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
    several = len(moves)
    likely = sum(min(one.step.share[1] / share, 1.0) for one in moves)
    known = span.substituted(start).constant
    calls = exponential(1 + likely, span)
    if known is not None and known[2] <= _MOST_EXACT:
        least = raised(1 + several, max(known[0], 0.0)) if likely > CERTAIN * several else max(known[0], 0.0) + 1
        calls = constant(least, raised(1 + several, max(known[2], 0.0)), raised(1 + likely, max(known[1], 0.0)))
    return Recurrence(calls, span, move.symbol, 1.0, 1.0 + likely, "tries all ways")


def _backtracking(
    steps: Sequence[Recursive], start: Mapping[str, Quantity], share: float, levels: Quantity
) -> Recurrence:
    """The recursion of calls that append to a list until it is full, and take back what they appended."""
    depth = levels.constant
    items = made = 0.0
    for step in steps:
        count = max(step.times.substituted(start).evaluate(typical_ways)[1], 0.0)
        items, made = items + count, made + count * min(step.share[1] / share, 1.0)
    if depth is None or depth[2] > _MOST_EXACT:
        calls = exponential(max(made, 1.05), levels)
        return Recurrence(calls, levels + ONE, next(iter(levels.names), ""), 1.0, max(made, 1.0), "tries all ways")
    in_order = any(narrows(step, start) for step in steps)

    def count_to(places: float, each: float) -> float:
        filled = range(1, int(places) + 1)
        return 1.0 + sum(
            product(_ways_to_fill(items, place, places, in_order), raised(each, place)) for place in filled
        )

    each = made / items if items else 0.0
    is_certain = each > CERTAIN
    low = count_to(depth[0], each) if is_certain else depth[0] + 1
    high = count_to(depth[2], each if is_certain else 1.0)
    calls = constant(low, high, count_to(depth[1], each))
    return Recurrence(calls, levels + ONE, "", 1.0, 2.0, "tries all ways")


def _ways_to_fill(items: float, places: int, most: float, in_order: bool) -> float:
    """The ways to fill so many places from items: in order, each once if there are just enough, or with repetitions."""
    if in_order or abs(items - most) < 0.5:
        return ways_to_choose(
            "combinations" if in_order else "permutations", round(min(items, sys.float_info.max)), places
        )
    return raised(items, places)


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
        depth = each_of(known[symbol], lambda span: max(ceiling(span / stride), 0.0) + 1)
    symbols = list(spans)
    fallen = [other for other in others if other not in spans]
    if cached and len(symbols) + len(fallen) > 1:
        # One call for each combination of arguments; of those that fall by amounts that vary some are never met.
        calls = depth
        for other in symbols[1:]:
            levels = known.get(other)
            calls = calls * (start.get(other, of_size(other)) if levels is None else each_of(levels, lambda n: n + 1))
        for other in fallen:
            calls = calls * start.get(other, of_size(other)) * constant(_FEWEST_MET, 1.0)
        return Recurrence(calls, depth, symbol, 1.0, 1.0, "calls itself")
    grouped: dict[tuple[str, float], tuple[Move, Ways]] = {}
    for move in moves:
        ways_of, key = Ways.of(move, symbol, share), (move.symbol, move.added)
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
    if len(symbols) == 2 and len(known) == 2:
        sizes = [known[one][1] for one in symbols]
        if (sizes[0] + 1) * (sizes[1] + 1) <= _MOST_EXACT:
            deep = depth + each_of(known[symbols[1]], lambda span: max(span, 0.0))
            calls = constant(
                count_calls_of_two(
                    sizes,
                    [
                        (symbols.index(move.symbol), abs(move.added), way.likely(1.0))
                        for move, way in zip(moves, ways, strict=True)
                    ],
                )
            )
            return Recurrence(calls, deep, symbol, 1.0, several, name)
    if symbol in known and known[symbol][2] <= _MOST_EXACT:
        first = start.get(symbol)
        offset = 0.0 if moves[0].added > 0 or first is None else base

        def count(span: float, share: str) -> float:
            chosen = [getattr(way.for_span(span) if share == "likely" else way, share) for way in ways]
            return count_calls(span, strides, chosen, offset)

        low, likely, high = known[symbol]
        if all(way.is_certain for way in ways):
            calls = each_of(known[symbol], lambda span: count(span, "likely"))
        else:
            calls = constant(max(low, 0.0) + 1, count(high, "most"), count(likely, "likely"))
        return Recurrence(calls, depth, symbol, 1.0, several, name)
    weights = [way.likely(TYPICAL_WAYS) for way in ways]
    on_parts = sum(way.on_parts for way in ways)
    if (on_parts or any(repeats_on_others(move.step) for move in moves)) and sum(weights) - on_parts <= _MORE:
        # The parts that calls get are together no more than there are, and what is left does not branch.
        return Recurrence(depth, depth, symbol, 1.0, 1.0, "calls itself")
    root = growth_base(strides, weights) if sum(weights) > _MORE else _MORE
    return Recurrence(exponential(root, spans[symbol]), depth, symbol, 1.0, several, name)
