"""How a recursive call changes its arguments: by a share, by a fixed amount, or by splitting a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..domain.frames import Recursive
from ..domain.quantities import LINEAR, Quantity
from ..domain.values import Value

SYMBOL = "#"


@dataclass(frozen=True, slots=True)
class Move:
    """How a recursive call changes a symbol: the share that it passes on, or the fixed amount that it adds.

    ``any_less``: a loop makes the call once for each smaller size, or for each one closer to the end.
    """

    symbol: str
    ratio: float
    added: float
    step: Recursive
    any_less: bool = False


def move_of(step: Recursive, start: Mapping[str, Quantity], bounds: Mapping[str, Quantity]) -> Move | None:
    """How a recursive call gets closer to its end; None where that is not known."""
    best: Move | None = None
    for name, value in step.arguments.items():
        amount = value.size if value.size is not None and value.kind not in ("int", "float") else value.number
        if amount is None:
            continue
        for symbol in start:
            key = (((symbol, LINEAR), 1.0),)
            if key not in amount.terms:
                continue
            least, slope, most = amount.terms[key]
            added = amount.terms.get((), (0.0, 0.0, 0.0))[1]
            # What is collected of another argument does not end the recursion.
            if 0 < slope < 0.99 and symbol == step.given.get(name):
                # The mean over a loop that runs once for each item that is left.
                per_item = step.times.terms.get(key, (0.0, 0.0, 0.0))[1]
                if least == most and (per_item > 0 or (per_item < 0 and symbol in bounds)):
                    return Move(symbol, 1.0, -per_item, step, any_less=True)
                if per_item < 0:
                    continue  # a mean between the symbol and an end that is not known
                return Move(symbol, slope, 0.0, step)
            # Counting up to a bound takes as many steps as counting down; what only grows says nothing.
            if abs(slope - 1) < 0.01 and (added < 0 or (added > 0 and symbol in bounds)):
                move = Move(symbol, 1.0, added, step)
                best = move if best is None or _rank(move, bounds) > _rank(best, bounds) else best
    if best is None and step.times.constant is None and not repeats_on_others(step):
        # `rest - cost` for each of several costs.
        best = next((Move(symbol, 1.0, -1.0, step) for symbol in start if falls(step, symbol)), None)
    return best


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


def _rank(move: Move, bounds: Mapping[str, Quantity]) -> int:
    return 2 if move.added < 0 else int(move.symbol in bounds)


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
    """The symbol of the end of a range that two calls split: one passes on its start, the other its end.

    They do not both take a fixed amount from an end, as ``start + 1`` and ``end - 1`` do: those are all ways to shrink
    a range. Scans from both ends that meet at a pivot take an amount that varies.
    """
    if len(steps) != 2 or len(start) < 2:
        return None
    kept = [
        {name for name in start if any(_is_symbol(value, name) for value in step.arguments.values())} for step in steps
    ]
    first, second = kept[0] - kept[1], kept[1] - kept[0]
    if len(first) != 1 or len(second) != 1:
        return None
    [begin], [end] = first, second
    moved = all(_has(step, name) for step, name in zip(steps, (end, begin), strict=True))
    return None if moved else end


def _has(step: Recursive, symbol: str) -> bool:
    """Return whether a recursive call passes on a symbol with the same amount added or taken away in each run."""
    key = (((symbol, LINEAR), 1.0),)
    return any(
        amount is not None
        and key in amount.terms
        and abs(amount.terms[key][1] - 1) < 0.01
        and len(set(amount.terms.get((), (0.0,)))) == 1
        for value in step.arguments.values()
        for amount in (value.number, value.size)
    )


def _is_symbol(value: Value, symbol: str) -> bool:
    """Return whether a number is a symbol as it is."""
    number = value.number
    if number is None:
        return value.kind == "unknown" and value.name == symbol
    return number.terms == {(((symbol, LINEAR), 1.0),): (1.0, 1.0, 1.0)}
