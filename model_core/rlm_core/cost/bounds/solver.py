"""The bound solver: how often a loop goes on, from how its iterations move what its condition compares.

Input: a gap, the distance of a condition from failing, as a quantity in symbols; and the transition of each symbol,
which is its value behind an iteration as a quantity in symbols: ``x + c``, ``c * x``, or something else. Output: the
number of iterations until the gap is closed, as a quantity in sizes.

Exact where the gap is a number and iterations move it by the same number. Otherwise an estimate of the leading part:
``d / c`` for a gap that gets smaller by ``c``, ``log(d)`` for one that gets smaller by a share, ``log(b)`` for a symbol
that is multiplied up to ``b``, and the root of ``b`` for a power of a symbol that moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..domain.quantities import (
    LINEAR,
    ONE,
    ZERO,
    Monomial,
    Quantity,
    Range,
    ceiling,
    constant,
    is_whole,
    mixed,
    of_size,
)

NEVER = constant(math.inf)
"""The number of iterations of a loop whose condition never fails."""
_MOST_EXACT = 2.0**53
_LEAST_SHARE, _MOST_SHARE = 0.05, 0.95
_NEGLIGIBLE = 1e-9
_EQUAL_SHARES = 0.1
_NONE: Range = (0.0, 0.0, 0.0)

End = Literal["at zero", "below zero", "at other than zero"]


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a condition is from failing.

    It fails where ``distance`` is zero or below (``at zero``: of ``a < b`` that is ``b - a``), below zero (of
    ``a <= b``), or zero (``at other than zero``: of ``a != b``, which holds at any other distance).
    """

    distance: Quantity
    end: End = "at zero"


def iterations(gap: Gap, transitions: Mapping[str, Quantity], starts: Mapping[str, Quantity]) -> Quantity | None:
    """The number of iterations until a gap is closed; :data:`NEVER`, or None where that is not known.

    Args:
        gap: how far the condition is from failing, in symbols and sizes.
        transitions: the value of each symbol behind an iteration; one that it lacks may become anything.
        starts: the value of each symbol before the first iteration.
    """
    distance, start = without_rest(gap.distance), gap.distance.substituted(starts)
    symbols = [name for name in distance.names if name in starts]
    if symbols and _is_exact(distance, starts) and not _is_linear(distance, starts):
        return _power(distance, transitions, starts, symbols) if transitions.keys() >= set(symbols) else None
    step = pace(gap, transitions, starts)
    if step is None:
        return None
    if not step.is_share:
        low, likely, high = step.amount
        if gap.end == "at other than zero" and likely > 0:
            return _arithmetic(start.times(-1.0), (-high, -likely, -low), gap.end)
        return _arithmetic(start, step.amount, gap.end)
    if step.amount[1] > 1:
        return _multiplied(distance, symbols[0], step.amount, transitions, starts)
    if gap.end == "below zero" and len(symbols) == 1 and distance.times(step.amount[1]) == transitions[symbols[0]]:
        fixed = start.constant  # a share of something is not less than nothing
        return NEVER if fixed is not None and fixed[0] >= 0 else None
    return _shrunk(distance, step.amount, starts)


@dataclass(frozen=True, slots=True)
class Pace:
    """How an iteration closes a gap: the amount that it adds to the distance, or the share that it leaves of it.

    A share above 1 is the factor by which it multiplies the one symbol that goes up to a bound.
    """

    amount: Range
    is_share: bool = False


def pace(gap: Gap, transitions: Mapping[str, Quantity], starts: Mapping[str, Quantity]) -> Pace | None:
    """How iterations move a gap that is linear in its symbols; None where they make something else of it."""
    distance = without_rest(gap.distance)
    symbols = [name for name in distance.names if name in starts]
    if not symbols or not _is_exact(distance, starts) or any(symbol not in transitions for symbol in symbols):
        return None
    if not _is_linear(distance, starts):
        return None
    moved = _moved(distance, transitions, symbols).constant
    if moved is not None:
        return Pace(moved)
    if not all(_is_linear(transitions[symbol], starts) for symbol in symbols):
        return None
    shares = [_share(distance, transitions, symbol) for symbol in symbols]
    if not all(share[2] for share in shares):
        return None  # an iteration makes something else of it, such as the next node of a list
    usual = [share[1] for share in shares]
    if max(usual) < _MOST_SHARE and max(usual) - min(usual) < _EQUAL_SHARES:
        return Pace(shares[0], is_share=True)
    return Pace(shares[0], is_share=True) if len(symbols) == 1 and usual[0] > 1 / _MOST_SHARE else None


def _moved(distance: Quantity, transitions: Mapping[str, Quantity], symbols: Sequence[str]) -> Quantity:
    """The amount by which an iteration changes a distance that is linear in its symbols."""
    step = ZERO
    for symbol in symbols:
        change = without_rest(transitions[symbol] - of_size(symbol))
        step = step + change * Quantity({(): distance.terms[_linear(symbol)]})
    return without_rest(step)


def _arithmetic(start: Quantity, step: Range, end: End) -> Quantity | None:
    """The iterations that close a gap which each of them makes smaller by ``-step``."""
    fixed, slowest, usual, fastest = start.constant, -step[2], -step[1], -step[0]
    if fixed is not None and not all(math.isfinite(value / usual if usual else value) for value in fixed):
        return None
    if fastest <= 0:
        # No iteration gets closer: the condition holds for ever if it holds at first.
        is_open = fixed is not None and (fixed[0] > 0 or (end == "below zero" and fixed[0] >= 0))
        return NEVER if is_open else None
    if slowest < 0 or usual <= 0:
        return None
    if fixed is None:
        closed = start + constant(usual) if end == "below zero" else start
        return closed * Quantity({(): (1 / fastest, 1 / usual, 1 / slowest if slowest else 2 / usual)})
    if slowest < fastest:
        low, likely, high = (max(ceiling(value / usual), 0.0) for value in fixed)
        return constant(min(low, 1.0), 2 * high, likely)
    is_whole_number = all(is_whole(value) for value in (*fixed, usual))
    if end == "at other than zero" and not is_whole_number:
        return None
    ends = [_closed_after(value, usual, end) for value in fixed]
    if math.inf in ends:
        return NEVER if min(ends) == math.inf else None
    # Rounded sums of fractions may be one iteration off.
    off = 0.0 if is_whole_number and max(ends) < _MOST_EXACT else 1.0
    return constant(max(min(ends) - off, 0.0), max(ends) + off, ends[1])


def _closed_after(distance: float, step: float, end: End) -> float:
    """The iterations after which a gap of a known size is closed; infinite where it is never exactly zero."""
    times = distance / step
    if end == "at other than zero":
        return times if times >= 0 and is_whole(times) else math.inf
    if distance < 0 or (distance == 0 and end == "at zero"):
        return 0.0
    return float(math.floor(times) + 1) if end == "below zero" else float(math.ceil(times))


def _share(distance: Quantity, transitions: Mapping[str, Quantity], symbol: str) -> Range:
    """The share of a symbol that an iteration leaves in a distance that is linear in it."""
    key = _linear(symbol)
    before, after = distance.terms[key][1], distance.substituted(transitions).terms.get(key, _NONE)
    low, high = sorted((after[0] / before, after[2] / before))
    return low, after[1] / before, high


def _shrunk(distance: Quantity, share: Range, starts: Mapping[str, Quantity]) -> Quantity:
    """The iterations that each leave a share of a gap, until no more than its fixed part is left of it, or 1."""
    own = Quantity({key: amount for key, amount in distance.terms.items() if not _names(key).isdisjoint(starts)})
    left = without_rest(own - distance).constant
    unit = left[1] if left is not None and left[1] > 0 else 1.0
    return _logarithm(own.substituted(starts).times(1 / unit), tuple(1 / max(one, _LEAST_SHARE) for one in share))


def _multiplied(
    distance: Quantity,
    symbol: str,
    factor: Range,
    transitions: Mapping[str, Quantity],
    starts: Mapping[str, Quantity],
) -> Quantity | None:
    """The iterations in which a symbol that each of them multiplies gets beyond a bound.

    ``2 * x + 1`` doubles ``x + 1``, so that it moves also from zero.
    """
    key = _linear(symbol)
    added = transitions[symbol].terms.get((), _NONE)[1] / (factor[1] - 1)
    amount, start = distance.terms[key][1], (starts[symbol] + constant(max(added, 0.0))).constant
    if amount >= 0 or (start is not None and start[2] <= 0):
        return None
    bound = Quantity({monomial: value for monomial, value in distance.terms.items() if monomial != key})
    unit = -amount * (start[1] if start is not None and start[1] > 0 else 1.0)
    known = bound.substituted(starts).constant
    if known is not None and known[2] <= 0:
        return None  # what is beyond its bound already is not known well
    return _logarithm(bound.substituted(starts).times(1 / unit), factor) if bound.terms else None


def _logarithm(size: Quantity, factors: Sequence[float]) -> Quantity:
    """How often something is multiplied by a factor, in a range, until it is so many times as large."""
    slowest, usual, fastest = (math.log2(max(factor, 1.0)) for factor in sorted(factors))
    fixed = size.constant
    if fixed is None:
        slow = 1 / slowest if slowest else 2 / usual
        return size.log() * Quantity({(): (1 / fastest, 1 / usual, slow)})
    low, likely, high = (math.log2(max(abs(value), 1.0)) for value in fixed)
    most = (high / slowest if slowest else 2 * high / usual) + 2
    return constant(max(low / fastest - 1, 0.0), most, likely / usual + 1)


def _power(
    distance: Quantity, transitions: Mapping[str, Quantity], starts: Mapping[str, Quantity], symbols: list[str]
) -> Quantity | None:
    """The iterations in which a power of a symbol, which moves by a fixed amount, gets beyond a bound."""
    if len(symbols) != 1:
        return None
    [symbol] = symbols
    step = without_rest(transitions[symbol] - of_size(symbol)).constant
    own = {monomial: amount for monomial, amount in distance.terms.items() if symbol in _names(monomial)}
    if step is None or step[0] <= 0 or len(own) != 1:
        return None
    [(monomial, amount)] = own.items()
    if len(monomial) != 1 or monomial[0][0][1] != LINEAR or monomial[0][1] <= 1 or amount[1] >= 0:
        return None
    bound = Quantity({key: value for key, value in distance.terms.items() if key != monomial})
    root = bound.substituted(starts).times(-1 / amount[1]).power(1 / monomial[0][1]).times(1 / step[1])
    known = root.constant
    # From a start below zero it is as many again.
    return root if known is None else constant(0.0, 2 * known[2] + 2, known[1])


def _is_linear(quantity: Quantity, symbols: Iterable[str]) -> bool:
    """Return whether a quantity has no product or power of symbols, but a number of each."""
    among = set(symbols)
    return all(monomial == _linear(name) for monomial in quantity.terms for name in _names(monomial) & among)


def _is_exact(quantity: Quantity, symbols: Iterable[str]) -> bool:
    """Return whether a quantity has its symbols a known number of times: a remainder has not."""
    return all(
        low == high or _names(monomial).isdisjoint(symbols) for monomial, (low, _, high) in quantity.terms.items()
    )


def _linear(symbol: str) -> Monomial:
    return (((symbol, LINEAR), 1.0),)


def _names(monomial: Monomial) -> set[str]:
    return {name for (name, _), _ in monomial}


def without_rest(quantity: Quantity) -> Quantity:
    """A difference without what rounding leaves of equal terms."""
    terms = {
        monomial: amount
        for monomial, amount in quantity.terms.items()
        if not monomial or max(abs(value) for value in amount) > _NEGLIGIBLE
    }
    return Quantity(terms) if terms else ZERO


def of_all(counts: list[Quantity | None]) -> Quantity | None:
    """The iterations of a loop that goes on while several conditions hold, from those of each.

    Where one of them is not known, the loop may end at any time before the others fail.
    """
    known = [count for count in counts if count is not None]
    finite = [count for count in known if count != NEVER]
    if not known:
        return None
    if not finite:
        return NEVER if len(known) == len(counts) else None
    fixed = [amount for count in finite if (amount := count.constant) is not None]
    first = finite[0]
    if len(fixed) == len(finite):
        low, likely, high = (min(amount[place] for amount in fixed) for place in range(3))
        first = constant(low, high, likely)
    if len(known) < len(counts):
        return mixed([(0.0, ZERO), (0.5, ONE), (0.5, first)])
    return first
