"""How often a recursive function runs: the shape of its recursive calls -> the number of calls, and sums over them.

A function is read once with a symbol for each argument that changes from call to call. ``recurrence`` sees how the
symbol changes (``n - 1``, ``n // 2``, a part of a list) and how many recursive calls each call makes.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .frames import Function, Recursive
from .quantities import LINEAR, Monomial, Quantity, Range, constant, exponential, of_size

SYMBOL = "#"
_MOST_EXACT = 20_000
_CACHES = frozenset({"cache", "lru_cache", "cached", "memoize", "memoized", "memo"})
_EVEN_BASE = 0.5
_BRANCHING = 1.5  # recursive calls per call


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The recursion of a function: ``calls`` in all, ``depth`` of them open at once; ``size`` is what shrinks.

    ``ratio`` is the share of the size that a call passes on, 1 where it passes on a fixed amount less, and
    ``branches`` the number of recursive calls per call.
    """

    calls: Quantity
    depth: Quantity
    size: str
    ratio: float
    branches: float
    name: str

    def total(self, cost: Quantity) -> Quantity:
        """The sum over all calls of a cost that depends on the size."""
        return self._summed(cost, self.calls, self.branches)

    def open_at_once(self, held: Quantity) -> Quantity:
        """The sum over the calls that are open at once."""
        return self._summed(held, self.depth, 1.0)

    def _summed(self, cost: Quantity, calls: Quantity, branches: float) -> Quantity:
        result = Quantity({})
        for monomial, coefficient in cost.terms.items():
            power = sum(p for (name, form), p in monomial if name == self.size and form == LINEAR)
            term = Quantity({monomial: coefficient})
            if power <= 0:
                result = result + term * calls
            elif self.ratio < 1:
                shrink = branches * self.ratio**power
                if shrink < 0.97:
                    result = result + term.times(1 / (1 - shrink))
                elif shrink < 1.03:
                    result = result + term * of_size(self.size).log()
                else:
                    # Of a geometric series that rises towards the smallest calls, which are most of all calls.
                    series = (1 - 1 / branches) / (1 - 1 / shrink)
                    result = result + Quantity({_without(monomial, self.size): coefficient}).times(series) * calls
            elif branches < 1.05:
                result = result + (term * calls).times(1 / (power + 1))
            else:
                small = Quantity({_without(monomial, self.size): coefficient}).times(2.0**power)
                result = result + small * calls
        return result


def _without(monomial: Monomial, size: str) -> Monomial:
    return tuple((factor, power) for factor, power in monomial if factor[0] != size)


def recurrence(
    steps: Sequence[Recursive],
    start: Mapping[str, Quantity],
    base: float,
    *,
    cached: bool,
    base_share: float,
    fallback: str,
) -> Recurrence:
    """The recursion with these recursive calls.

    Args:
        steps: the recursive calls of one call.
        start: what the symbols stand for in the first call, by symbol.
        base: the size at and below which a call makes no recursive call.
        cached: whether calls with equal arguments run once.
        base_share: the share of calls that was taken to end at once.
        fallback: the name of the size where no argument is known to shrink.
    """
    shrinking: list[tuple[str, float, float, float]] = []  # symbol, ratio, amount less, how many calls
    branches = 0.0
    for step in steps:
        weight = step.share[1]
        branches += weight
        change = _change(step, start)
        if change is not None:
            shrinking.append((*change, weight))
    branches = branches / max(1 - base_share, 0.05)
    branches = 1.0 if branches < 1.3 else round(branches) if abs(branches - round(branches)) < 0.2 else branches
    if not shrinking:
        size = of_size(fallback)
        parts = any(
            value.kind == "unknown" and "." in value.name for step in steps for value in step.arguments.values()
        )
        if branches > _BRANCHING and not parts:
            # Each call tries several ways, and no argument says how deep: backtracking.
            return Recurrence(exponential(2.0, size), size, fallback, 1.0, branches, "tries all ways")
        return Recurrence(size, size.log(), fallback, 1.0, 1.0, "calls itself for each part")
    symbol = shrinking[0][0]
    first = start.get(symbol, of_size(symbol))
    known = first.constant
    ratios = [ratio for _, ratio, _, _ in shrinking if ratio < 1]
    if ratios:
        ratio = sum(ratios) / len(ratios)
        ratio = min(max(ratio, 0.05), 0.95)
        depth = of_size(symbol).log().times(1 / math.log2(1 / ratio))
        if branches < 1.3:
            return Recurrence(depth, depth, symbol, ratio, 1.0, "halves its input")
        power = min(math.log(branches) / math.log(1 / ratio), 6.0)
        power = round(power) if abs(power - round(power)) < 0.1 else power
        return Recurrence(
            of_size(symbol).power(power).times(2.0 - 1.0 / branches), depth, symbol, ratio, branches, "halves its input"
        )
    decrements = [max(less, 1e-9) for _, _, less, _ in shrinking]
    depth = (of_size(symbol) - constant(base)).times(1 / min(decrements))
    if known is not None:
        depth = _each(known, lambda size: max(math.ceil((size - base) / min(decrements)), 0.0) + 1)
    symbols = sorted({entry[0] for entry in shrinking})
    if cached and len(symbols) > 1:
        # One call for each combination of arguments.
        calls = depth
        for other in symbols:
            if other != symbol:
                calls = calls * start.get(other, of_size(other))
        return Recurrence(calls, depth, symbol, 1.0, 1.0, "calls itself")
    if cached or branches < 1.3:
        return Recurrence(depth, depth, symbol, 1.0, 1.0, "calls itself")
    scale = max(len(decrements), 1)
    weights = [branches / scale] * scale
    if known is not None and known[2] <= _MOST_EXACT:
        calls = _each(known, lambda size: _count(size, base, decrements, weights))
        return Recurrence(calls, depth, symbol, 1.0, branches, "calls itself")
    root = _root(decrements, weights)
    return Recurrence(exponential(root, of_size(symbol)), depth, symbol, 1.0, branches, "calls itself")


def _change(step: Recursive, start: Mapping[str, Quantity]) -> tuple[str, float, float] | None:
    """The symbol that a recursive call shrinks: its name, the share passed on, and the fixed amount less."""
    best: tuple[str, float, float] | None = None
    for value in step.arguments.values():
        amount = value.size if value.size is not None and value.kind not in ("int", "float") else value.number
        if amount is None:
            continue
        for symbol in start:
            key = (((symbol, LINEAR), 1.0),)
            if key not in amount.terms:
                continue
            slope = amount.terms[key][1]
            less = -amount.terms.get((), (0.0, 0.0, 0.0))[1]
            if 0 < slope < 0.99:
                return symbol, slope, 0.0
            if abs(slope - 1) < 0.01 and less != 0:
                # Counting up to a bound takes as many steps as counting down.
                best = symbol, 1.0, abs(less)
    return best


def _each(known: Range, count: Callable[[float], float]) -> Quantity:
    """A count for the least, the likely and the largest size."""
    low, likely, high = (count(size) for size in known)
    return Quantity({(): (low, likely, high)})


def _count(size: float, base: float, decrements: Sequence[float], weights: Sequence[float]) -> float:
    """The number of calls where each makes ``weights[i]`` calls with ``decrements[i]`` less, down to ``base``."""
    steps = [max(round(less), 1) for less in decrements]
    levels = max(int(size - base), 0)
    counts = [1.0] * (levels + 1)
    for level in range(1, levels + 1):
        total = 1.0
        for less, weight in zip(steps, weights, strict=True):
            total += weight * (counts[level - less] if level >= less else 1.0)
        counts[level] = min(total, 1e290)
    return counts[levels]


def _root(decrements: Sequence[float], weights: Sequence[float]) -> float:
    """The base of the growth: the root of ``sum(weight * x**-decrement) = 1``."""
    low, high = 1.0, 1.0 + sum(weights)
    for _ in range(50):
        middle = (low + high) / 2
        value = sum(weight * middle**-less for less, weight in zip(decrements, weights, strict=True))
        low, high = (middle, high) if value > 1 else (low, middle)
    return round((low + high) / 2, 3)


@lru_cache(maxsize=128)
def changing_parameters(node: Function) -> dict[str, float] | None:
    """The parameters that a function's calls of itself change; None for a function that does not call itself.

    The values are the largest constants that the parameters are compared with, which end the recursion.
    """
    if isinstance(node, ast.Lambda):
        return None
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    is_method = bool(names) and names[0] in ("self", "cls")
    given = names[1:] if is_method else names
    changing: dict[str, float] = {}
    recursive = False
    comparisons: dict[str, float] = {}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and _calls(inner.func, node.name, is_method=is_method):
            recursive = True
            for name, argument in zip(given, inner.args, strict=False):
                if not (isinstance(argument, ast.Name) and argument.id == name):
                    changing.setdefault(name, 1.0)
            for keyword in inner.keywords:
                if keyword.arg in given and not (
                    isinstance(keyword.value, ast.Name) and keyword.value.id == keyword.arg
                ):
                    changing.setdefault(str(keyword.arg), 1.0)
        elif isinstance(inner, ast.Compare) and len(inner.ops) == 1:
            limit = _limit(inner)
            if limit is not None:
                comparisons[limit[0]] = max(comparisons.get(limit[0], -math.inf), limit[1])
    if not recursive:
        return None
    return {name: comparisons.get(name, 0.0 if name not in comparisons else 1.0) for name in changing}


def _calls(function: ast.expr, name: str, *, is_method: bool) -> bool:
    if isinstance(function, ast.Name):
        return function.id == name and not is_method
    return (
        isinstance(function, ast.Attribute)
        and function.attr == name
        and isinstance(function.value, ast.Name)
        and function.value.id in ("self", "cls")
    )


def _limit(test: ast.Compare) -> tuple[str, float] | None:
    left, right, op = test.left, test.comparators[0], test.ops[0]
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "len" and left.args:
        left = left.args[0]
    if isinstance(left, ast.Name) and isinstance(right, ast.Constant) and isinstance(right.value, (int, float)):
        value = float(right.value)
        if isinstance(op, (ast.Lt,)):
            return left.id, value - 1
        if isinstance(op, (ast.LtE, ast.Eq)):
            return left.id, value
        if isinstance(op, (ast.Gt,)):
            return left.id, value
    return None


def base_share(node: Function) -> float:
    """The share of calls of a recursive function that end at once: half of them if each calls itself twice or more."""
    if isinstance(node, ast.Lambda):
        return _EVEN_BASE
    is_method = bool(node.args.args) and node.args.args[0].arg in ("self", "cls")
    sites = sum(
        isinstance(inner, ast.Call) and _calls(inner.func, node.name, is_method=is_method) for inner in ast.walk(node)
    )
    return 0.05 if sites < 2 else _EVEN_BASE


def is_cached(node: Function) -> bool:
    """Whether a decorator keeps the results of calls."""
    if isinstance(node, ast.Lambda):
        return False
    for decorator in node.decorator_list:
        part = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
        if name in _CACHES:
            return True
    # A dictionary that results are looked up in and stored to.
    stores = {
        target.value.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Assign)
        for target in inner.targets
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)
    }
    return any(
        isinstance(inner, ast.Compare)
        and len(inner.ops) == 1
        and isinstance(inner.ops[0], (ast.In, ast.NotIn))
        and isinstance(inner.comparators[0], ast.Name)
        and inner.comparators[0].id in stores
        for inner in ast.walk(node)
    )
