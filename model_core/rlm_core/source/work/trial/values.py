"""The operations of a trial run on Python's own values: each is bounded in time and memory, all others are refused.

A value is a number, a text, bytes, a moment or duration, ``None``, a container of the standard library, an iterator
over one, or an object of the machine. Whoever adds an operation here has to bound it: what looks at all parts of a
value pays for them with :func:`weigh`, what consumes an iterable takes it from :func:`metered`, and results have a
largest size.
"""

from __future__ import annotations

import ast
import collections
import datetime
import operator
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ..values import MOST_BITS

MOST_ITEMS = 100_000  # of a container
_MOST_CHARACTERS = 1_000_000
_MOST_BITS = 300_000  # of the result of an operator
WIDEST = 200  # characters of a field with a width
_MOST_DIGITS = 400  # of a decimal number, before or behind the point
_ITEMS_PER_STEP, _CHARACTERS_PER_STEP = 8, 256
_LINEAR, _QUADRATIC = 11, 20  # log2 of the bits, and of the product of two numbers' bits, for a step


class Refused(BaseException):
    """The trial ends here: an operation is not among those that are carried out. Programs cannot catch it."""


class Spent(Refused):
    """The budget of steps is used up."""


class Own:
    """A value of the program's own: operators on it run the program's methods, which pay for themselves."""

    __slots__ = ()

    def is_a(self, kind: Any) -> bool:
        """Whether it is an object of a class of the program, or that class."""
        return False

    def is_steady(self) -> bool:
        """Whether its hash is the same in each run."""
        return False


class Budget:
    """The steps that a trial may still take."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps.

        Raises:
            Spent: there are no more.
        """
        self.left -= steps
        if self.left < 0:
            raise Spent


MOMENTS = frozenset({datetime.date, datetime.datetime, datetime.time, datetime.timedelta})
SCALARS = frozenset({int, float, complex, bool, type(None), range, Decimal, Fraction}) | MOMENTS
TEXTS = frozenset({str, bytes})
_NUMBERS = frozenset({int, float, bool})
MAPPINGS = frozenset({dict, collections.defaultdict, collections.Counter, collections.OrderedDict})
SETS = frozenset({set, frozenset})
COLLECTIONS = frozenset({list, tuple, set, frozenset, collections.deque, bytearray})
CONTAINERS = COLLECTIONS | MAPPINGS
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}  # fmt: skip
_OTHERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.MatMult: operator.matmul,
}  # fmt: skip
_IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd, ast.Sub: operator.isub, ast.BitAnd: operator.iand, ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right, ast.NotIn: lambda left, right: left not in right,
}  # fmt: skip


def weigh(value: Any, budget: Budget) -> None:
    """Pay for an operation that looks at all parts of a value, as equality and hashing do; parts that repeat count."""
    kind = type(value)
    if kind in SCALARS:
        return
    if kind in TEXTS:
        budget.spend(len(value) // _CHARACTERS_PER_STEP)
        return
    stack = [value]
    while stack:
        one = stack.pop()
        kind = type(one)
        if kind in CONTAINERS:
            budget.spend(1 + len(one) // _ITEMS_PER_STEP)
            stack += [part for part in one if type(part) not in SCALARS]
            if kind in MAPPINGS:
                stack += [part for part in one.values() if type(part) not in SCALARS]
        elif kind in TEXTS:
            budget.spend(len(one) // _CHARACTERS_PER_STEP)


def made(value: Any, budget: Budget) -> Any:
    """A new value, paid for by its size: all that a trial makes together stays small.

    Raises:
        Refused: it is too large.
    """
    kind = type(value)
    if kind in TEXTS:
        if len(value) > _MOST_CHARACTERS:
            raise Refused
        budget.spend(len(value) // _CHARACTERS_PER_STEP)
    elif kind in CONTAINERS:
        if len(value) > MOST_ITEMS:
            raise Refused
        budget.spend(len(value) // _ITEMS_PER_STEP)
    return value


def metered(value: Any, budget: Budget) -> Any:
    """What a consumer of an iterable gets: it pays for each item, so an iterator without end ends the trial."""
    if isinstance(value, (list, tuple, set, frozenset, dict, str, bytes, bytearray, collections.deque)):
        budget.spend(len(value) // _ITEMS_PER_STEP)
        return in_order(value) if type(value) in SETS else value
    return _counted(iter(value), budget)


def in_order(items: Any) -> list[Any]:
    """The items of a set in an order that is the same in each run: that of texts depends on a random seed.

    Raises:
        Refused: the order of other items depends on where they are in memory.
    """
    if all(type(item) in _NUMBERS for item in items):
        return list(items)
    if all(type(item) in TEXTS for item in items):
        return sorted(items, key=lambda item: (type(item) is str, item))
    if all(type(item) is tuple and all(type(part) in _NUMBERS for part in item) for item in items):
        return list(items)
    if all(isinstance(item, Own) and item.is_steady() for item in items):
        return list(items)
    raise Refused


def _counted(items: Iterator[Any], budget: Budget) -> Iterator[Any]:
    for taken, item in enumerate(items):
        if taken > MOST_ITEMS:
            raise Spent
        if not taken % _ITEMS_PER_STEP:
            budget.spend()
        yield item


def operate(op: type[ast.operator], left: Any, right: Any, budget: Budget, *, in_place: bool = False) -> Any:
    """The result of a binary operation.

    Raises:
        Refused: not an operation on these types, or the result would be large.
    """
    kinds = type(left), type(right)
    if kinds[0] in SCALARS and kinds[1] in SCALARS:
        if kinds == (int, int):
            _pay_for_bits(op, left, right, budget)
        function = _BINARY.get(op)
        if function is not None:
            result = bounded(function(left, right), _MOST_BITS)
        elif op is ast.Pow or op is ast.LShift or op is ast.RShift:
            result = _power_or_shift(op, left, right, budget)
        else:
            raise Refused
        if type(result) is int and result.bit_length() > MOST_BITS:
            budget.spend(result.bit_length() >> _LINEAR)
        return result
    if isinstance(left, Own) or isinstance(right, Own):
        function = (_IN_PLACE if in_place else {}).get(op) or _BINARY.get(op) or _OTHERS[op]
        return function(left, right)
    if kinds[0] is _VIEWS[0] or kinds[1] is _VIEWS[0]:
        left, right = (set(metered(side, budget)) if type(side) is _VIEWS[0] else side for side in (left, right))
        kinds = type(left), type(right)
    if op is ast.Mod and kinds[0] is str:
        return made(left % checked_fields(left, right, budget), budget)
    if not (kinds[0] in SCALARS | TEXTS | CONTAINERS and kinds[1] in SCALARS | TEXTS | CONTAINERS):
        raise Refused
    if op is ast.Mult:
        sequence, count = (right, left) if kinds[0] in SCALARS else (left, right)
        if type(count) not in (int, bool) or type(sequence) not in (
            str,
            bytes,
            bytearray,
            list,
            tuple,
            collections.deque,
        ):
            raise Refused
        total = len(sequence) * max(count, 0)
        if total > (_MOST_CHARACTERS if type(sequence) in TEXTS else MOST_ITEMS):
            raise Refused
        return made(sequence * count, budget)
    if op is ast.Mod and kinds[0] in TEXTS:
        raise Refused
    sizes = sum(len(side) for side in (left, right) if type(side) not in SCALARS)
    function = (_IN_PLACE if in_place else _BINARY).get(op) or _BINARY.get(op)
    if function is None:
        raise Refused
    if kinds[0] in TEXTS:
        if sizes > _MOST_CHARACTERS:
            raise Refused
        return made(function(left, right), budget)
    if sizes > MOST_ITEMS:
        raise Refused
    budget.spend(sizes // _ITEMS_PER_STEP if op is not ast.Add or not in_place else len(right) // _ITEMS_PER_STEP)
    if kinds[0] in SETS or kinds[0] in MAPPINGS:
        weigh(right, budget)
    return function(left, right)


def _pay_for_bits(op: type[ast.operator], left: int, right: int, budget: Budget) -> None:
    """Pay for an operation on large numbers: those that multiply or divide take time as the product of their sizes."""
    bits = left.bit_length(), right.bit_length()
    if max(bits) > MOST_BITS:
        is_linear = op in (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
        budget.spend(max(bits) >> _LINEAR if is_linear else (bits[0] * bits[1]) >> _QUADRATIC)


def _power_or_shift(op: type[ast.operator], left: Any, right: Any, budget: Budget) -> Any:
    if not {type(left), type(right)} <= {int, bool}:
        if op is not ast.Pow:
            raise TypeError
        if type(left) is Fraction and _bits(left) * abs(float(right)) > MOST_BITS:
            raise Refused
        return bounded(left**right)
    if op is ast.RShift:
        return left >> right
    bits = right + left.bit_length() if op is ast.LShift else abs(right) * max(left.bit_length(), 1)
    if bits > _MOST_BITS:
        raise Refused
    if op is ast.Pow and bits > MOST_BITS:
        budget.spend(bits * bits >> _QUADRATIC)
    return left << right if op is ast.LShift else left**right


def bounded(value: Any, most: int = MOST_BITS) -> Any:
    """A number, if it is not too large; ``most`` are its bits."""
    kind = type(value)
    if (kind is int or kind is Fraction) and _bits(value) > (most if kind is int else MOST_BITS):
        raise Refused
    if kind is Decimal and value.is_finite() and abs(value.adjusted()) > _MOST_DIGITS:
        raise Refused
    return value


def _bits(number: int | Fraction) -> int:
    """The bits that a number takes."""
    return max(number.numerator.bit_length(), number.denominator.bit_length())


_FIELD = re.compile(r"%(?:\(\w*\))?[-+ #0]*(\d*)(?:\.(\d*))?[diouxXeEfFgGcrsa%]?")


def checked_fields(template: str, given: Any, budget: Budget) -> Any:
    """What is given to ``template % given``, if the text stays short.

    Raises:
        Refused: a field is wide, or something else than a value is given.
    """
    if "*" in template or any(int(digits or 0) > WIDEST for found in _FIELD.findall(template) for digits in found):
        raise Refused
    for part in given if type(given) is tuple else (given,):
        if type(part) not in SCALARS | TEXTS | CONTAINERS and not isinstance(part, Own):
            raise Refused
    weigh(given, budget)
    return given


def compare(op: type[ast.cmpop], left: Any, right: Any, budget: Budget) -> bool:
    """Whether a comparison holds.

    Raises:
        Refused: not a comparison of these types.
    """
    function = _COMPARE[op]
    if op is ast.Is or op is ast.IsNot or (type(left) in _NUMBERS and type(right) in _NUMBERS):
        return bool(function(left, right))
    for side in (left, right):
        kind = type(side)
        if kind in SCALARS or isinstance(side, Own):
            continue
        if kind not in TEXTS and kind not in CONTAINERS:
            if op in (ast.In, ast.NotIn) and side is right and isinstance(side, Iterator):
                right = metered(side, budget)
                continue
            if op not in (ast.Eq, ast.NotEq, ast.In, ast.NotIn) or isinstance(side, Iterator):
                raise Refused
        elif side is left or op not in (ast.In, ast.NotIn) or kind in (list, tuple, collections.deque):
            weigh(side, budget)
    return bool(function(left, right))


_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def items_of(value: Any, budget: Budget) -> Iterator[Any]:
    """An iterator over a value, which a loop of the machine pays for trip by trip.

    Raises:
        Refused: not one of Python's own iterables.
    """
    kind = type(value)
    if (
        kind not in CONTAINERS
        and kind not in TEXTS
        and kind is not range
        and not isinstance(value, (Iterator, Own, *_VIEWS))
    ):
        raise Refused
    iterator: Iterator[Any] = iter(in_order(value) if kind in SETS else value)
    return iterator
