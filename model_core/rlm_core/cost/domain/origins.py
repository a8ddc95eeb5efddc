"""Where the parts of a cost that depend on sizes come from: the syntax of the unit that spends them, by its loops.

A meter adds up amounts and forgets who spent them. Its origins keep that for the amounts that grow, and for operations
that cost much whatever their sizes: what a piece of syntax spends, multiplied with what repeats it, as the meter's sum
is. What a called function spends is its call's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from .quantities import Quantity, Range, degree
from .records import record, replace

_MOST, _KEPT = 16, 8
COSTLY_KINDS = frozenset({
    "pandas.DataFrame", "pandas.Located", "pandas.LocatedSeries", "pandas.concat", "re.compile",
})  # fmt: skip
"""Kinds of values, and functions, of which one operation costs so much that a loop of them is worth a rewrite."""
ITEMS = "items"
"""The kind of a loop's place for what producing its items takes."""
_NOTHING: Range = (0.0, 0.0, 0.0)


@dataclass(slots=True)
class Place:
    """The syntax of the analysed unit that is being read: the innermost statement or expression.

    ``noted`` is the syntax that last said which kind of value it searches, copies or changes, and ``value_kind`` what.
    """

    node: ast.AST | None = None
    noted: ast.AST | None = None
    value_kind: str = ""

    @property
    def kind(self) -> str:
        """The kind of value that the syntax searches, copies or changes; empty where nothing said so."""
        return self.value_kind if self.noted is self.node else ""


@record
class PendingOrigin:
    """An amount in seconds that ``node`` spends, in the ``loops`` that repeat it, the innermost last."""

    node: ast.AST
    kind: str
    amount: Quantity
    loops: tuple[ast.AST, ...] = ()


def noted(origins: list[PendingOrigin], place: Place, amount: Quantity) -> None:
    """Note an amount that is spent at a place, if it depends on sizes or is one of :data:`COSTLY_KINDS`."""
    # Asked here too: most amounts are neither.
    if place.node is not None and (place.kind in COSTLY_KINDS or is_growing(amount)):
        gathered(origins, [PendingOrigin(place.node, place.kind, amount)])


def repeated(origins: Iterable[PendingOrigin], total: Quantity, times: Quantity, place: Place) -> list[PendingOrigin]:
    """The origins of a region that runs several times: its parts that grow, and the rest of its ``total``."""
    is_growing_loop, node = is_growing(times), place.node
    found, fixed = [], total.terms.get((), _NOTHING)
    for origin in origins:
        known = origin.amount.terms.get((), _NOTHING)
        fixed = (max(fixed[0] - known[0], 0.0), max(fixed[1] - known[1], 0.0), max(fixed[2] - known[2], 0.0))
        loops = origin.loops
        if is_growing_loop and node is not None and node is not origin.node and node not in loops:
            loops = (node, *loops)
        found.append(replace(origin, amount=origin.amount * times, loops=loops))
    if is_growing_loop and fixed[1] > 0 and node is not None:
        found.append(PendingOrigin(node, place.kind, Quantity({(): fixed}) * times))
    return found


def shared(origins: Iterable[PendingOrigin], share: Range) -> Iterable[PendingOrigin]:
    """The origins of a region that only a share of the runs enters."""
    if share == (1.0, 1.0, 1.0):
        return origins
    return [replace(origin, amount=origin.amount * Quantity({(): share})) for origin in origins]


def gathered(origins: list[PendingOrigin], more: Iterable[PendingOrigin]) -> None:
    """Add origins to others, one per place and loops; of many those are kept that grow most."""
    for origin in more:
        if not (is_growing(origin.amount) or (origin.kind in COSTLY_KINDS and origin.amount.terms)):
            continue
        for index, other in enumerate(origins):
            if other.node is origin.node and other.loops == origin.loops and other.kind == origin.kind:
                origins[index] = replace(other, amount=other.amount + origin.amount)
                break
        else:
            origins.append(origin)
    if len(origins) > _MOST:
        origins[:] = sorted(origins, key=_rank, reverse=True)[:_KEPT]


def is_growing(amount: Quantity) -> bool:
    """Return whether an amount depends on sizes."""
    terms = amount.terms
    return len(terms) > 1 or (len(terms) == 1 and () not in terms)


def _rank(origin: PendingOrigin) -> tuple[tuple[float, float, float], float]:
    leading = max(origin.amount.terms, key=degree)
    return degree(leading), origin.amount.terms[leading][1]
