"""Recursive calls as transitions: what a call passes on of what it got, and how many such calls end the recursion.

A call is one more iteration of the function that makes it. The bound solver says after how many of them a condition
on which the function calls itself fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..domain.frames import Recursive
from ..domain.quantities import LINEAR, Quantity, Range, of_size
from ..domain.values import Value
from .solver import NEVER, Gap, iterations, pace

SYMBOL = "#"
_NONE: Range = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Move:
    """How a recursive call gets closer to an end, which ``depth`` calls of this kind in a row reach.

    It passes on ``ratio`` of the ``symbol``, or takes the amount ``less`` of what is left where that is 1; where it
    ``varies``, that is a likely one.
    ``any_less``: a loop makes the call once for each smaller size, or for each one closer to the end.
    """

    symbol: str
    depth: Quantity
    step: Recursive
    less: float = 0.0
    ratio: float = 1.0
    varies: bool = False
    any_less: bool = False


def moves_of(steps: Sequence[Recursive], start: Mapping[str, Quantity], gaps: Sequence[Gap]) -> list[Move]:
    """How recursive calls get closer to an end, without those of which that is not known.

    Args:
        steps: the calls.
        start: what the symbols stand for in the first call, by symbol.
        gaps: how far the conditions are from failing on which the function calls itself, in symbols.
    """
    left = [(step, _passed_on(step, start)) for step in steps]
    found: list[tuple[Move, Mapping[str, Quantity]]] = []
    while left:
        # What one call brings closer and another takes away ends nothing, unless the other is known to end.
        ends, usual = (
            [gap for gap in some if not _goes_both_ways(gap, [after for _, after in left], start)]
            for some in (gaps, [Gap(of_size(symbol)) for symbol in start])
        )
        moves = [(_move_of(step, after, start, ends, usual, found), after) for step, after in left]
        new = [(move, after) for move, after in moves if move is not None]
        if not new:
            break
        found += new
        left = [one for one, (move, _) in zip(left, moves, strict=True) if move is None]
    return [move for move, _ in found]


def depth_by_others(
    steps: Sequence[Recursive], start: Mapping[str, Quantity], gaps: Sequence[Gap], symbol: str
) -> Quantity | None:
    """How deep calls get by what they all bring closer besides a symbol: ``rest`` of ``f(items[i:], rest - 1)``."""
    for gap in gaps:
        if symbol in gap.distance.names:
            continue
        counts = [iterations(gap, _passed_on(step, start), start) for step in steps]
        if counts[0] is not None and counts[0] != NEVER and all(count == counts[0] for count in counts):
            return counts[0]
    return None


def _goes_both_ways(gap: Gap, afters: Sequence[Mapping[str, Quantity]], start: Mapping[str, Quantity]) -> bool:
    paces = [change.amount for after in afters if (change := pace(gap, after, start)) and not change.is_share]
    return any(high < 0 for _, _, high in paces) and any(low > 0 for low, _, _ in paces)


def _move_of(
    step: Recursive,
    after: dict[str, Quantity],
    start: Mapping[str, Quantity],
    gaps: Sequence[Gap],
    usual: Sequence[Gap],
    others: Sequence[tuple[Move, Mapping[str, Quantity]]],
) -> Move | None:
    """How a call gets closer to an end, or where none is stated to ``usual`` ones; None where that is not known.

    ``others`` are calls that are known to end, with what they pass on.
    """
    for symbol, amount in list(after.items()):
        least, slope, most = amount.terms.get(_linear(symbol), _NONE)
        per_item = step.times.terms.get(_linear(symbol), _NONE)[1]
        if not 0 < slope < 0.99 or not per_item:
            continue
        # The mean over a loop that runs once for each item that is left.
        upwards = [distance for gap in gaps if (distance := _left_above(gap, symbol)) is not None]
        if least == most and (per_item > 0 or upwards):
            span = start[symbol] if per_item > 0 else upwards[0].substituted(start)
            return Move(symbol, span, step, less=1.0, any_less=True)
        if per_item < 0:
            del after[symbol]  # a mean between the symbol and an end that is not known
    stated, likely = (
        [move for gap in some if (move := _closing(gap, after, start, step, others)) is not None]
        for some in (gaps, usual)
    )
    # Parts of a whole end a recursion whatever else does.
    moves = [*stated, *(move for move in likely if move.ratio < 1 or not stated)]
    if not moves and step.times.constant is None and not repeats_on_others(step):
        # `rest - cost` for each of several costs.
        moves = [Move(symbol, start[symbol], step, less=1.0) for symbol in start if falls(step, symbol)]
    return min(moves, key=_lateness, default=None)


def _closing(
    gap: Gap,
    after: Mapping[str, Quantity],
    start: Mapping[str, Quantity],
    step: Recursive,
    others: Sequence[tuple[Move, Mapping[str, Quantity]]],
) -> Move | None:
    """How calls close a gap, which the calls among ``others`` may widen; None where they do not."""
    depth, change = iterations(gap, after, start), pace(gap, after, start)
    if depth is None or depth == NEVER or change is None or gap.distance.names.isdisjoint(step.given.values()):
        return None
    # A range is as long as its end: the costs that depend on it name that.
    names = [name for name in step.given.values() if name in gap.distance.names and name in start]
    slopes = {name: gap.distance.terms.get(_linear(name), _NONE)[1] for name in names}
    symbol = names[-1] if gap.end == "at other than zero" else max(names, key=slopes.__getitem__)
    if not change.is_share:
        for other, passed in others:
            wider = pace(gap, passed, start)
            if wider is not None and not wider.is_share and wider.amount[1] * change.amount[1] < 0:
                depth = depth + other.depth.times(abs(wider.amount[1] / change.amount[1]))
        low, likely, high = change.amount
        return Move(symbol, depth, step, less=abs(likely), varies=low < high)
    factor = change.amount[1]
    return Move(symbol, depth, step, ratio=factor if factor < 1 else 1 / factor)


def _left_above(gap: Gap, symbol: str) -> Quantity | None:
    """How far a symbol is from a bound above it; None where a gap is not about that."""
    slope = gap.distance.terms.get(_linear(symbol), _NONE)[1]
    if slope > 0 and gap.end == "at other than zero":
        return gap.distance.times(-1.0)
    return gap.distance if slope < 0 else None


def _lateness(move: Move) -> tuple[bool, float]:
    """What ends a recursion first: what leaves a share, then the smallest known number of calls."""
    known = move.depth.constant
    return move.ratio == 1, known[1] if known is not None else 0.0


def _passed_on(step: Recursive, start: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """The value of each symbol in the call, in symbols.

    With the same arguments a recursion would not end: where the only argument that changes may stay as it is, it does
    not.
    """
    after = {}
    for name, value in step.arguments.items():
        symbol = step.given.get(name, "")
        amount = value.size if value.size is not None and value.kind not in ("int", "float") else value.number
        if symbol in start:
            amount = of_size(symbol) if amount is None and _is_passed_on(value, symbol) else amount
            if amount is not None:
                after[symbol] = amount
    changed = [symbol for symbol, amount in after.items() if amount != of_size(symbol)]
    if len(changed) == 1 and len(after) == len(start):
        [symbol] = changed
        if after[symbol].terms.get(_linear(symbol), _NONE)[0] == 1:
            after[symbol] = Quantity({key: (most, most, most) for key, (_, _, most) in after[symbol].terms.items()})
    return after


def _linear(symbol: str) -> tuple[tuple[tuple[str, str], float], ...]:
    return (((symbol, LINEAR), 1.0),)


def is_fixed(step: Recursive, start: Mapping[str, Quantity]) -> bool:
    """Return whether the text fixes an argument that the other recursive calls make smaller."""
    return any(
        value.number is not None and value.number.exact is not None and step.given.get(name) in start
        for name, value in step.arguments.items()
    )


def swaps(step: Recursive, start: Mapping[str, Quantity]) -> bool:
    """Return whether a recursive call passes on its arguments as they came, in another order.

    ``return distance(second, first)`` for the shorter one first: the condition does not hold for what it passes.
    """
    order = [
        next((symbol for symbol in start if _is_passed_on(value, symbol)), "")
        for name, value in step.arguments.items()
        if step.given.get(name) in start
    ]
    before = [symbol for symbol in step.given.values() if symbol in start]
    return order != before and sorted(order) == sorted(before)


def passes_another(step: Recursive) -> bool:
    """Return whether a recursive call gets another object than its own, such as a child of a node."""
    own = step.given.values()
    return not step.tries and any(
        value.kind == "unknown" and value.number is None and value.name not in ("", *own)
        for value in step.arguments.values()
    )


def repeats_on_others(step: Recursive) -> bool:
    """Return whether loops around a call run over what it does not pass on as it is: mostly the parts of an object.

    Each call then gets a part, such as a child of a node, and all together no more than there are.
    """
    if step.tries:
        return False
    own = set(step.given.values())
    changed = {
        step.given.get(name, name)
        for name, value in step.arguments.items()
        if not _is_passed_on(value, step.given.get(name, name))
        and (value.number is None or (value.number.names and own.isdisjoint(value.number.names)))
    }
    owned = tuple(f"{name}{sign}" for name in changed for sign in ".[")
    names = step.times.names
    return bool(changed) and any(name in changed or name.startswith(("?", *owned)) for name in names)


def _is_passed_on(value: Value, symbol: str) -> bool:
    """Return whether an argument is as it came, as far as its size shows."""
    if value.kind == "unknown":
        return value.name == symbol
    return value.size is not None and value.size.terms == {(((symbol, LINEAR), 1.0),): (1.0, 1.0, 1.0)}


def falls(step: Recursive, symbol: str) -> bool:
    """Return whether a call passes on what is left of a symbol after something else: ``rest - cost``."""
    key = (((symbol, LINEAR), 1.0),)
    for value in step.arguments.values():
        amount = value.size if value.size is not None and value.kind not in ("int", "float") else value.number
        if amount is not None and key in amount.terms and abs(amount.terms[key][1] - 1) < 0.01:
            rest = [coefficient for monomial, coefficient in amount.terms.items() if monomial != key]
            if rest and all(coefficient[1] < 0 for coefficient in rest):
                return True
    return False


def grows(value: Value, start: Mapping[str, Quantity]) -> bool:
    """Return whether an argument is a symbol with something added."""
    amount = value.size if value.size is not None else value.number
    return amount is not None and any(
        (((symbol, LINEAR), 1.0),) in amount.terms and amount.terms.get((), (0.0, 0.0, 0.0))[1] > 0 for symbol in start
    )


def split_range(steps: Sequence[Recursive], start: Mapping[str, Quantity]) -> str | None:
    """The symbol of the end of a range that two calls split somewhere: one passes on its start, the other its end."""
    if len(steps) != 2 or len(start) < 2 or any(passes_another(step) for step in steps):
        return None
    kept = [
        {name for name in start if any(_is_symbol(value, name) for value in step.arguments.values())} for step in steps
    ]
    first, second = kept[0] - kept[1], kept[1] - kept[0]
    return next(iter(second)) if len(first) == len(second) == 1 else None


def _is_symbol(value: Value, symbol: str) -> bool:
    """Return whether a number is a symbol as it is."""
    number = value.number
    if number is None:
        return value.kind == "unknown" and value.name == symbol
    return number.terms == {(((symbol, LINEAR), 1.0),): (1.0, 1.0, 1.0)}
