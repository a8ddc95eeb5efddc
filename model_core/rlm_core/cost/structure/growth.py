"""How the cost of outlined routines grows: loops multiply, calls of local functions add, recursion by its shape.

A rule-based estimate from the outline alone: an amortised loop costs nothing more than the loop around it, a loop over
a literal range is constant, halving and searching are logarithmic.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .parts import CallSite, Loop, Outline, Routine

_MAX_CALL_DEPTH = 8
_SORTS = re.compile(r"(?:stable_|partial_)?[sS]ort\w*|sorted|toSorted|Slice(?:Stable)?|Ints|Strings|OrderBy\w*")
_LOGARITHMIC = re.compile(
    r"heappush|heappop|heappushpop|heapreplace|lower_bound|upper_bound|bisect(?:_left|_right)?|insort\w*|Search\w*|poll|offer|"
    r"(?:floor|ceiling|higher|lower)(?:Key|Entry)?|binary_?[sS]earch\w*|gcd"
)
_LINEAR = re.compile(r"sum|Counter|set|list|join|reversed?|accumulate|(?:max|min)_element|fill|max|min")
_DIRECTIONS = re.compile(r"dirs?\b|directions|ascii_lowercase|DIRECTIONS|26\b")


class Order(NamedTuple):
    """``base**n * n**degree * log(n)**logs``; a larger tuple grows faster."""

    base: float = 1.0
    degree: float = 0.0
    logs: float = 0.0

    def times(self, other: Order) -> Order:
        """The product."""
        return Order(max(self.base, other.base), self.degree + other.degree, self.logs + other.logs)


def loop_order(loop: Loop | None) -> Order:
    """How often the body of a loop runs in one run of its function."""
    degree = logs = 0.0
    rounds = 0
    while loop is not None and rounds < 60:
        if loop.kind in ("halving", "search"):
            logs += 1
        elif loop.kind == "sqrt":
            degree += 0.5
        elif loop.kind in ("count", "each", "while", "worklist", "endless") and not _bounded(loop):
            degree += 1
        loop, rounds = loop.parent, rounds + 1
    return Order(1.0, degree, logs)


def _bounded(loop: Loop) -> bool:
    """Return whether a loop adds nothing to the loops around it: directions, or the items of an item."""
    if _DIRECTIONS.match(loop.bound):
        return True
    outer = loop.parent
    if outer is None or loop.kind == "while":
        return False
    if outer.kind == "worklist":
        return True
    if loop.kind != "each":
        return False
    words = re.findall(r"[A-Za-z_]\w*", loop.bound[:80])
    return loop.bound in outer.variables or ("[" in loop.bound and any(name in words for name in outer.variables))


def orders(structure: Outline) -> list[Order]:
    """The order of every routine, as if it were called once."""
    by_name: dict[str, Routine] = {}
    for routine in structure.routines:
        if routine.name:
            by_name.setdefault(routine.name, routine)
    known: dict[int, Order] = {}
    return [_order(routine, by_name, known, 0) for routine in structure.routines]


def _order(routine: Routine, by_name: dict[str, Routine], known: dict[int, Order], depth: int) -> Order:
    if id(routine) in known:
        return known[id(routine)]
    known[id(routine)] = Order()  # of recursion through another function
    best = Order()
    for loop in routine.loops:
        best = max(best, loop_order(loop))
    recursive: list[CallSite] = []
    for call in routine.calls:
        if call.name == routine.name and call.name:
            recursive.append(call)
            continue
        around = loop_order(call.loop)
        callee = by_name.get(call.name)
        if callee is not None and callee is not routine and depth < _MAX_CALL_DEPTH:
            around = around.times(_order(callee, by_name, known, depth + 1))
        elif _SORTS.fullmatch(call.name):
            around = around.times(Order(1.0, 1.0, 1.0))
        elif _LOGARITHMIC.fullmatch(call.name):
            around = around.times(Order(1.0, 0.0, 1.0))
        elif _LINEAR.fullmatch(call.name) and "," not in call.arguments and "()" not in call.arguments:
            around = around.times(Order(1.0, 1.0, 0.0))
        best = max(best, around)
    if recursive:
        best = max(best, _recursion(routine, recursive, best))
    known[id(routine)] = best
    return best


_HALF = re.compile(r"/\s*2|>>\s*1|\bmid\b|\bm\b")
_TREE = re.compile(r"left|right|next|child")
_STEP = re.compile(r"-\s*\d")


def _recursion(routine: Routine, calls: list[CallSite], own: Order) -> Order:
    """The order of a recursive routine, by the number and the arguments of its calls of itself."""
    if routine.memoised:
        return Order(1.0, float(max(routine.parameters, 1)), 0.0).times(own)
    if any(_TREE.search(call.arguments) for call in calls):
        return Order(1.0, 1.0, 0.0)
    if all(_HALF.search(call.arguments) for call in calls):
        return own.times(Order(1.0, 0.0, 1.0)) if len(calls) == 1 else max(own, Order(1.0, 1.0, float(own.degree >= 1)))
    if len(calls) > 1 and all(_STEP.search(call.arguments) for call in calls):
        return Order(2.0, 0.0, 0.0)
    return own.times(Order(1.0, 1.0, 0.0)) if own.degree == 0 else own
