"""How often a recursive function runs: the shape of its recursive calls -> the number of calls, and sums over them.

A function is read once with a symbol for each argument that changes from call to call. ``recurrence`` sees how the
symbol changes (``n - 1``, ``n // 2``, a part of a list) and how many recursive calls each call makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from ..domain.frames import Recursive
from ..domain.quantities import LINEAR, ONE, Quantity, constant, exponential, mixed, of_size, raised
from ..domain.records import replace
from .argument_transitions import (
    Move,
    depth_by_others,
    falls,
    grows,
    is_fixed,
    moves_of,
    passes_another,
    repeats_on_others,
    split_range,
    swaps,
)
from .links import way_down
from .recurrence import Recurrence
from .solver import Gap
from .structure_walks import StructureWalk

_BRANCHING = 1.5  # recursive calls per call
_PARTITION = (0.7, 1.1)  # of the size, passed on by all recursive calls together
_FEWEST_MET = 0.1  # of the combinations of arguments
_MORE = 1.05  # calls per call, at least, where each may make several
_CERTAIN = 0.9  # share of the runs: nothing decides how many calls are made
_TYPICAL_WAYS = 3.0  # of a size that the text does not fix
_SWAPPED = 0.5  # of the calls pass on their arguments in another order, where one recursive call does
_NEARLY = 0.1  # a whole number of calls
_AT_MOST = constant(0.0, 1.0, 1.0)
_FEW_LEVELS = 6.0  # where the text fixes how deep calls get
_SEARCH = 1.5  # calls for each item that a search places and takes back


def recurrence(
    steps: Sequence[Recursive],
    start: Mapping[str, Quantity],
    gaps: Sequence[Gap] = (),
    *,
    cached: bool,
    base_share: float,
    fallback: str,
    checks: int = 1,
    most: float = math.inf,
    resumed: Set[str] = frozenset(),
    walk: StructureWalk | None = None,
    nodes: Quantity | None = None,
) -> Recurrence:
    """The recursion with these recursive calls.

    Args:
        steps: the recursive calls of one call.
        start: what the symbols stand for in the first call, by symbol.
        gaps: how far the conditions are from failing on which the function calls itself.
        cached: whether calls with equal arguments run once.
        base_share: the share of calls that was taken to end at once.
        fallback: the name of the size where no argument is known to shrink.
        checks: how many statements end a call at once.
        most: how many recursive calls a call makes on one path at most; infinite where a loop repeats one.
        resumed: the parameters from which a call goes on where the one that it made has ended.
        walk: the walk over a structure that the recursion is, if it is one.
        nodes: those of the graph that the recursion searches, if it does.
    """
    share = max(1 - base_share, 0.05)
    branches = min(sum(step.share[1] for step in steps) / share, most)
    is_whole = abs(branches - round(branches)) < _NEARLY
    branches = 1.0 if branches < 1.3 else round(branches) if abs(branches - round(branches)) < 0.2 else branches
    steps = [step for step in steps if not swaps(step, start)]
    if not steps:
        return Recurrence(constant(1.0, 2.0, 1.0 + _SWAPPED), ONE, "", 1.0, 1.0, "calls itself")
    moves = moves_of(steps, start, gaps)
    end = split_range(steps, start) if len(moves) < len(steps) else None
    if end is not None:
        size = of_size(end)
        if most < 2:
            return Recurrence(size.log(), size.log(), end, 0.5, 1.0, "halves its input")
        return Recurrence(size.times(1.5), size.log(), end, 0.5, 2.0, "halves its input", share)
    # A call with fixed arguments, such as the last step of a tower, makes none that the others do not count.
    steps = [step for step in steps if not is_fixed(step, start)] or steps
    if any(step.tries for step in steps) and len(moves) < len(steps) and not cached:
        size = of_size(fallback)
        return Recurrence(exponential(_SEARCH, size), size, fallback, 1.0, 2.0, "tries all ways")
    is_walk = any(passes_another(move.step) for move in moves)
    is_resumed = any(move.symbol == move.step.given.get(name) for move in moves for name in resumed)
    if nodes is not None:
        return Recurrence(mixed([(0.0, ONE), (1.0, nodes)]), nodes, "", 1.0, 1.0, "calls itself for each part")
    if walk is not None and all(passes_another(step) and walk.parameter in step.given for step in steps):
        return _of_structure(walk, steps, most, share)
    if not moves or is_walk or is_resumed or len(moves) < len(steps):
        return _of_parts(steps, start, fallback, may_guess=not moves and branches * share ** (checks - 1) > _BRANCHING)
    any_less = next((move for move in moves if move.any_less), None)
    if any_less is not None:
        # Each size doubles the number of calls.
        span, symbol = any_less.depth, any_less.symbol
        if cached or most < 2:
            return Recurrence(span, span, symbol, 1.0, 1.0, "calls itself")
        likely = 1 + sum(min(move.step.share[1] / share, 1.0) for move in moves)
        other = depth_by_others(steps, start, gaps, symbol)
        levels = other.constant if other is not None else None
        if levels is not None and levels[1] <= _FEW_LEVELS:
            return Recurrence(span.power(levels[1]), constant(levels[1]), symbol, 1.0, 1.0, "calls itself")
        if other is not None and levels is None:
            # Ways to choose so many of the items: exponential only where both grow.
            calls = exponential(likely**0.5, span) * exponential(likely**0.5, other)
            return Recurrence(calls, span, symbol, 1.0, likely, "tries all ways")
        return Recurrence(exponential(likely, span), span, symbol, 1.0, likely, "tries all ways")
    if any(move.ratio < 1 for move in moves):
        found = _of_shares([move for move in moves if move.ratio < 1], branches, share, most)
        # A power of the size is certain only where the number of calls is.
        return found if is_whole else replace(found, calls=found.calls * _AT_MOST)
    others = [name for name in start if any(falls(step, name) for step in steps)] if cached else []
    return _counted(moves, start, share, branches, others, most, cached=cached)


def _of_structure(walk: StructureWalk, steps: Sequence[Recursive], most: float, share: float) -> Recurrence:
    """The recursion of calls for the parts of a structure, whose size has the name of the first one's."""
    whole = steps[0].given[walk.parameter]
    parts = frozenset({whole, *(step.arguments[walk.parameter].name for step in steps)}) - {""}
    size, down = of_size(whole), of_size(whole) if walk.is_chain else way_down(whole)
    # Calls for missing parts end at once, and what a call finds may spare the others.
    calls = size.times(1 / share if walk.asks_end else 1.0) * (ONE if walk.of_all else _AT_MOST)
    return Recurrence(
        down if most < 2 and not walk.is_chain else calls,
        down,
        whole,
        1.0,
        1.0,
        "calls itself for each part",
        parts=tuple(parts),
        subtrees=frozenset() if walk.is_of_items else parts,
    )


def _of_parts(
    steps: Sequence[Recursive], start: Mapping[str, Quantity], fallback: str, *, may_guess: bool
) -> Recurrence:
    """The recursion where a call that nothing makes smaller is for a part of the input.

    How deep the others get does not say how many calls there are.
    """
    values = [value for step in steps for value in step.arguments.values()]
    # What only grows, such as a message or a depth, is passed down to the parts of parts.
    parts = any((value.kind == "unknown" and "." in value.name) or grows(value, start) for value in values)
    known = {name: amount.constant[1] for name, amount in start.items() if amount.constant is not None}
    sized = max(known, key=lambda name: known[name], default=fallback)
    size = of_size(sized if known.get(sized, 0.0) > 1 else fallback)
    # Where each call tries several ways, neither an argument nor a number of checks says how deep.
    return Recurrence(
        size * (ONE if all(map(passes_another, steps)) else _AT_MOST),
        size.log(),
        sized,
        1.0,
        1.0,
        "calls itself for each part",
        parts=(fallback, *start),
        guessed=may_guess and not parts,
    )


def _of_shares(moves: Sequence[Move], branches: float, share: float, most: float) -> Recurrence:
    """The recursion of calls that pass on a share, by the master theorem; one path makes ``most`` of them at most."""
    symbol, depth = moves[0].symbol, moves[0].depth
    passed_on = sum(move.ratio for move in moves)
    if len(moves) > 1 and _PARTITION[0] < passed_on < _PARTITION[1]:
        # The items below and above a pivot: together nearly all of them.
        passed_on, branches = 1.0, min(len(moves), most)
    ratio = min(max(passed_on / len(moves), 0.05), 0.95)
    if branches < 1.3:
        return Recurrence(depth, depth, symbol, ratio, 1.0, "halves its input")
    power = min(math.log(branches) / math.log(1 / ratio), 6.0)
    power = round(power) if abs(power - round(power)) < 0.1 else power
    calls = of_size(symbol).power(power).times(2.0 - 1.0 / branches)
    return Recurrence(calls, depth, symbol, ratio, branches, "halves its input", share)


def _counted(
    moves: Sequence[Move],
    start: Mapping[str, Quantity],
    share: float,
    branches: float,
    others: Sequence[str],
    most: float,
    *,
    cached: bool,
) -> Recurrence:
    """The recursion of calls that pass on a fixed amount more or less; ``others`` fall by amounts that vary.

    Of the recursive calls in the text one path makes ``most`` at most.
    """
    symbol = moves[0].symbol
    stride = min(max(move.less, 1e-9) for move in moves)
    # How many calls in a row end the recursion, by what they change: the smallest step takes most.
    depths = {move.symbol: move.depth for move in sorted(moves, key=lambda move: -move.less)}
    known = [fixed for levels in depths.values() if (fixed := levels.constant) is not None]
    depth = depths[symbol] if depths[symbol].constant is None else depths[symbol] + ONE
    if cached:
        # One call for each combination of arguments; of those that fall by amounts that vary some are never met.
        met = {move.symbol: move.depth.times(move.less) if move.varies else depths[move.symbol] for move in moves}
        calls = ONE
        for levels in met.values():
            calls = calls * (levels if levels.constant is None else levels + ONE)
        for name in others:
            calls = calls if name in depths else calls * start.get(name, of_size(name)) * constant(_FEWEST_MET, 1.0)
        return Recurrence(calls, depth, symbol, 1.0, 1.0, "calls itself")
    if most < 2:
        for name, levels in depths.items():
            depth = depth if name == symbol else depth + levels
        return Recurrence(depth, depth, symbol, 1.0, 1.0, "calls itself")
    grouped: dict[tuple[str, float], tuple[Move, _Ways]] = {}
    for move in moves:
        ways_of, key = _Ways.of(move, symbol, share), (move.symbol, move.less)
        grouped[key] = (move, ways_of + grouped[key][1] if key in grouped else ways_of)
    exclusive = min(most / max(sum(way.most(1.0) for _, way in grouped.values()), 1e-9), 1.0)
    moves = [move for move, _ in grouped.values()]
    ways = [replace(way, share=way.share * exclusive, on_parts=way.on_parts * exclusive) for _, way in grouped.values()]
    if sum(way.most(100.0) for way in ways) < 1.3:
        return Recurrence(depth, depth, symbol, 1.0, 1.0, "calls itself")
    name = "calls itself" if all(way.most(1.0) <= 2 for way in ways) else "tries all ways"
    weights = [way.likely(_TYPICAL_WAYS) for way in ways]
    on_parts = sum(way.on_parts for way in ways)
    if (on_parts or any(repeats_on_others(move.step) for move in moves)) and sum(weights) - on_parts <= _MORE:
        # The parts that calls get are together no more than there are, and what is left does not branch.
        return Recurrence(depth, depth, symbol, 1.0, 1.0, "calls itself")
    root = _growth_base([max(move.less, 1e-9) for move in moves], weights) if sum(weights) > _MORE else _MORE
    calls = exponential(root, depths[symbol].times(stride))
    if len(depths) > 1 and not known:
        # Each argument may end the calls alone: they are exponentially many only where all grow.
        calls = ONE
        for levels in depths.values():
            calls = calls * exponential(root ** (1 / len(depths)), levels.times(stride))
    if len(known) == len(depths):
        # Either argument may end a call: together they bound how deep it gets.
        likely, high = sum(fixed[1] for fixed in known), sum(fixed[2] for fixed in known)
        count = _tree(root**stride, likely)
        if len(depths) == 1 and likely == high and all(way.share > _CERTAIN for way in ways):
            calls = constant(max(count / 2, 1.0), 2 * count, count)
        else:
            widest = max(sum(way.most(high * stride) for way in ways), _MORE)
            calls = constant(1.0, _tree(widest, high), count)
    return Recurrence(calls, depth, symbol, 1.0, max(branches, 2.0), name)


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
        if left[2] < 0:
            # A loop over what is left up to the end of a range.
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
