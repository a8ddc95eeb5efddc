"""Numbers, copies, hashes and small helpers of the library that a trial run may use, with what bounds them."""

from __future__ import annotations

import ast
import collections
import datetime
import decimal
import hashlib
import statistics
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from .values import (
    CONTAINERS,
    MAPPINGS,
    MOST_ITEMS,
    SCALARS,
    TEXTS,
    Budget,
    Own,
    Refused,
    bounded,
    compare,
    made,
    metered,
    operate,
    weigh,
)

_MOST_CHARACTERS = 60  # of a number that is written as a text
_MOST_DEPTH = 40
_TODAY = datetime.datetime(2024, 1, 15, 12, 30, 45)

_DIGESTS = "md5 sha1 sha224 sha256 sha384 sha512 sha3_256 blake2b blake2s"
DIGEST_TYPES = frozenset(type(getattr(hashlib, name)()) for name in _DIGESTS.split())


def _decimal(budget: Budget, value: Any = 0) -> Decimal:
    if (type(value) is str and len(value) <= _MOST_CHARACTERS) or type(value) in (int, float, bool, Decimal):
        number = Decimal(value)
    else:
        raise Refused
    result: Decimal = bounded(number)
    return result


def _fraction(budget: Budget, numerator: Any = 0, denominator: Any = None) -> Fraction:
    if type(numerator) is str:
        if len(numerator) > _MOST_CHARACTERS or "e" in numerator.lower():
            raise Refused
    elif type(numerator) not in (int, float, bool, Fraction, Decimal):
        raise Refused
    if type(denominator) not in (int, bool, Fraction, type(None)):
        raise Refused
    result: Fraction = bounded(Fraction(numerator, denominator))
    return result


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers that looks at all of them."""

    def call(budget: Budget, items: Any, *args: Any, **keywords: Any) -> Any:
        numbers = list(metered(items, budget))
        if any(type(number) not in (int, float, bool, Decimal, Fraction) for number in (*numbers, *args)):
            raise Refused
        budget.spend(len(numbers))
        return bounded(function(numbers, *args, **keywords))

    return call


def _copied(budget: Budget, value: Any) -> Any:
    if type(value) in CONTAINERS:
        weigh(value, budget)
        return made(value.copy() if hasattr(value, "copy") else value, budget)
    if isinstance(value, (Own, Iterator)):
        raise Refused
    return value


def _copied_deeply(budget: Budget, value: Any, depth: int = 0) -> Any:
    """A copy of containers of containers; what they hold twice is copied twice."""
    kind = type(value)
    if kind in SCALARS or kind in TEXTS:
        return value
    if kind not in CONTAINERS or depth > _MOST_DEPTH:
        raise Refused
    budget.spend(1 + len(value))
    if kind in MAPPINGS:
        copy = value.copy()
        for key, part in value.items():
            copy[key] = _copied_deeply(budget, part, depth + 1)
        return copy
    if kind is bytearray:
        return bytearray(value)
    parts = [_copied_deeply(budget, part, depth + 1) for part in value]
    return collections.deque(parts, value.maxlen) if kind is collections.deque else kind(parts)


def _digest(name: str) -> Callable[..., Any]:
    def call(budget: Budget, data: Any = b"", **keywords: Any) -> Any:
        if keywords.keys() - {"usedforsecurity"} or type(data) not in (bytes, bytearray):
            raise Refused
        weigh(data, budget)
        return getattr(hashlib, name)(data)

    return call


def _checksum(function: Callable[[Any, int], int]) -> Callable[..., int]:
    def call(budget: Budget, data: Any, start: int = 0) -> int:
        weigh(data, budget)
        return function(data, start)

    return call


def _binary(op: type[ast.operator], *, in_place: bool = False) -> Callable[..., Any]:
    return lambda budget, left, right: operate(op, left, right, budget, in_place=in_place)


def _comparison(op: type[ast.cmpop]) -> Callable[..., bool]:
    return lambda budget, left, right: compare(op, left, right, budget)


def _item_getter(budget: Budget, *keys: Any) -> Callable[[Any], Any]:
    """Items of a value by their keys."""
    for key in keys:
        weigh(key, budget)

    def get(value: Any) -> Any:
        budget.spend()
        if type(value) not in CONTAINERS | TEXTS and not isinstance(value, Own):
            raise Refused
        found = tuple([value[key] for key in keys])
        return found[0] if len(found) == 1 else found

    return get


def _attribute_getter(budget: Budget, *names: str) -> Callable[[Any], Any]:
    """Values of an object of the program by their names."""

    def get(value: Any) -> Any:
        budget.spend()
        held = getattr(value, "values", None) if isinstance(value, Own) else None
        if type(held) is not dict:
            raise Refused
        found = tuple([held[name] for name in names])
        return found[0] if len(found) == 1 else found

    return get


def _from_keys(budget: Budget, keys: Any, value: Any = None) -> dict[Any, Any]:
    found = list(metered(keys, budget))
    weigh(found, budget)
    return dict.fromkeys(found, value)


def _from_bytes(budget: Budget, data: Any, order: str = "big", *, signed: bool = False) -> Any:
    if type(data) not in (bytes, bytearray, list, tuple):
        raise Refused
    weigh(data, budget)
    if len(data) > MOST_ITEMS // 64:
        raise Refused
    return bounded(int.from_bytes(data, order, signed=signed))  # type: ignore[arg-type]


def _partial(budget: Budget, function: Any, *args: Any, **keywords: Any) -> Any:
    if not callable(function):
        raise TypeError
    return partial(function, *args, **keywords)


def _key_of(budget: Budget, compared: Any) -> type:
    """What ``functools.cmp_to_key`` gives: keys that a function of the program compares."""

    class Key:
        __slots__ = ("item",)

        def __init__(self, item: Any) -> None:
            self.item = item

        def __lt__(self, other: Key) -> bool:
            return bool(compared(self.item, other.item) < 0)

    return Key


def _chained(budget: Budget, items: Any) -> Iterator[Any]:
    return (item for inner in metered(items, budget) for item in metered(inner, budget))


def _now(budget: Budget, *args: Any) -> datetime.datetime:
    return _TODAY


def _sum(budget: Budget, items: Any, start: Any = 0) -> Any:
    total = start
    if type(start) in TEXTS or type(start) in CONTAINERS:
        weigh(start, budget)
    for item in metered(items, budget):
        total = operate(ast.Add, total, item, budget)
    return total


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "builtins.sum": _sum,
    "builtins.dict.fromkeys": _from_keys,
    "builtins.int.from_bytes": _from_bytes,
    "copy.copy": _copied,
    "copy.deepcopy": _copied_deeply,
    "datetime.date.today": lambda budget: _TODAY.date(),
    "datetime.datetime.now": _now,
    "datetime.datetime.today": _now,
    "decimal.Decimal": _decimal,
    "fractions.Fraction": _fraction,
    "functools.cmp_to_key": _key_of,
    "functools.partial": _partial,
    "itertools.chain.from_iterable": _chained,
    "operator.attrgetter": _attribute_getter,
    "operator.itemgetter": _item_getter,
    "zlib.adler32": _checksum(zlib.adler32),
    "zlib.crc32": _checksum(zlib.crc32),
    "binascii.crc32": _checksum(zlib.crc32),
    **{f"hashlib.{name}": _digest(name) for name in _DIGESTS.split()},
    **{
        f"statistics.{name}": _of_numbers(getattr(statistics, name))
        for name in (
            "fmean", "mean", "median", "median_high", "median_low", "mode", "pstdev", "pvariance", "stdev", "variance",
        )
    },
    **{
        f"operator.{name}": _binary(op)
        for name, op in {
            "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "floordiv": ast.FloorDiv,
            "mod": ast.Mod, "pow": ast.Pow, "and_": ast.BitAnd, "or_": ast.BitOr, "xor": ast.BitXor,
        }.items()
    },
    "operator.iadd": _binary(ast.Add, in_place=True),
    "operator.neg": lambda budget, value: operate(ast.Sub, 0, value, budget),
    **{
        f"operator.{name}": _comparison(op)
        for name, op in {
            "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE, "eq": ast.Eq, "ne": ast.NotEq,
        }.items()
    },
}  # fmt: skip
CONSTANTS: dict[str, Any] = {
    f"decimal.{name}": getattr(decimal, name)
    for name in ("ROUND_HALF_UP", "ROUND_HALF_EVEN", "ROUND_DOWN", "ROUND_UP", "ROUND_CEILING", "ROUND_FLOOR")
}
METHODS: dict[type, str] = {
    Decimal: "quantize sqrt is_finite is_nan is_zero copy_abs copy_negate normalize to_integral_value exp ln log10",
    Fraction: "limit_denominator",
    **dict.fromkeys(DIGEST_TYPES, "update digest hexdigest copy"),
}
FIELDS: dict[type, str] = {Fraction: "numerator denominator", int: "real imag numerator denominator"}
