"""The functions and methods of the library that a trial run may call, with what bounds them."""

from __future__ import annotations

import ast
import bisect
import builtins
import collections
import datetime
import decimal
import heapq
import itertools
import json
import math
import random
import string
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from ..values import MOST_BITS
from . import library_texts, library_values
from .library_texts import fields_filled, written
from .values import (
    CONTAINERS,
    MOMENTS,
    MOST_ITEMS,
    SCALARS,
    SETS,
    WIDEST,
    Budget,
    Own,
    Refused,
    bounded,
    in_order,
    made,
    metered,
    operate,
    weigh,
)

_MOST_ARGUMENT = 500  # of factorials and the like
_MOST_EXPONENT_BITS = 512  # of the numbers of `pow(a, b, m)`
_MOST_PRODUCTS = 8  # of the iterables of a product, repeated ones counted
_GET = " __getitem__ __contains__"
_COMMON_TEXT = (
    "startswith endswith find rfind index rindex count split rsplit splitlines strip lstrip rstrip lower upper title"
    " capitalize swapcase isdigit isalpha isalnum isspace isupper islower isdecimal isnumeric partition rpartition"
)
_LIST = f"append pop extend insert remove index count reverse sort copy clear{_GET}"
_BYTES = "decode hex"
_SET = (
    "add discard remove pop clear copy union intersection difference symmetric_difference update issubset issuperset"
    " isdisjoint difference_update intersection_update"
)
_DICT = f"get keys values items pop popitem setdefault update copy clear{_GET}"
METHODS: dict[type, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        str: (
            f"{_COMMON_TEXT} join replace removeprefix removesuffix zfill ljust rjust center isidentifier casefold"
            " encode format translate isascii"
        ),
        bytes: f"{_COMMON_TEXT} {_BYTES} join replace",
        bytearray: f"{_LIST} {_BYTES} find startswith endswith",
        list: _LIST,
        tuple: f"index count{_GET}",
        set: _SET,
        frozenset: _SET,
        dict: _DICT,
        collections.defaultdict: _DICT,
        collections.Counter: f"{_DICT} most_common total subtract",
        collections.OrderedDict: f"{_DICT} move_to_end",
        collections.deque: f"{_LIST} appendleft popleft extendleft rotate",
        int: "bit_length bit_count conjugate to_bytes",
        float: "is_integer hex",
        complex: "conjugate",
        datetime.date: "weekday isoweekday isoformat toordinal replace strftime",
        datetime.datetime: "weekday isoweekday isoformat toordinal replace date time timestamp strftime",
        datetime.timedelta: "total_seconds",
        **library_values.METHODS,
        **library_texts.METHODS,
    }.items()
}
_DAY, _TIME = "year month day", "hour minute second microsecond"
FIELDS: dict[type, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        complex: "real imag",
        datetime.date: _DAY,
        datetime.time: _TIME,
        datetime.datetime: f"{_DAY} {_TIME}",
        datetime.timedelta: "days seconds microseconds",
        **library_values.FIELDS,
        **library_texts.FIELDS,
    }.items()
}
"""Attributes of values that are data, not methods."""
# Methods that look at their arguments only.
_CHEAP = frozenset(
    {
        "add", "append", "appendleft", "bit_count", "bit_length", "clear", "discard", "endswith", "extend",
        "extendleft", "get", "is_integer", "isalnum", "isalpha", "isdigit", "items", "keys", "pop", "popitem",
        "popleft", "setdefault", "startswith", "update", "values", "__getitem__",
    }
)  # fmt: skip
_TAKING_ITERABLES = frozenset(
    {"difference", "extend", "extendleft", "intersection", "issubset", "issuperset", "join", "union", "update"}
)
_PADDING = frozenset({"zfill", "ljust", "rjust", "center"})


def call_method(receiver: Any, name: str, args: list[Any], keywords: dict[str, Any], budget: Budget) -> Any:
    """The result of a method of one of Python's own types.

    Raises:
        Refused: not a method that is carried out, or the result would be large.
    """
    kind = type(receiver)
    if name not in METHODS.get(kind, ()):
        raise Refused
    if kind in library_texts.FILE_TYPES:
        return written(receiver, name, args, budget)
    if name == "format":
        return made(fields_filled(receiver, args, keywords, budget), budget)
    if name in _TAKING_ITERABLES:
        args = [metered(arg, budget) for arg in args]
        if name == "join":
            parts = list(args[0])
            if sum(len(part) + len(receiver) for part in parts) > MOST_ITEMS:
                raise Refused
            args = [parts]
        elif kind in CONTAINERS and args and hasattr(args[0], "__len__") and len(receiver) + len(args[0]) > MOST_ITEMS:
            raise Refused
    else:
        for arg in args:
            weigh(arg, budget)
    if name == "to_bytes" and args and (type(args[0]) is not int or args[0] > MOST_ITEMS):
        raise Refused
    if name == "strftime" and len(args[0]) > WIDEST:
        raise Refused
    if name == "translate" and len(receiver) * max(map(_length, args[0].values()), default=1) > MOST_ITEMS:
        raise Refused
    if name in _PADDING and (type(args[0]) is not int or args[0] > MOST_ITEMS):
        raise Refused
    if name == "replace" and (len(receiver) + 1) * (len(args[1]) + 1) > MOST_ITEMS:
        raise Refused
    if name == "pop" and kind in SETS and receiver:
        weigh(receiver, budget)
        # Which one it is must not depend on the run.
        item = in_order(receiver)[0]
        receiver.remove(item)
        return item
    if name not in _CHEAP:
        weigh(receiver, budget)
    return made(getattr(receiver, name)(*args, **keywords), budget)


def _length(value: Any) -> int:
    return len(value) if type(value) is str else 1


def _consumer(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of iterables that looks at all their items."""

    def consume(budget: Budget, *args: Any, **keywords: Any) -> Any:
        taken = [
            arg if (type(arg) in SCALARS and type(arg) is not range) or callable(arg) else metered(arg, budget)
            for arg in args
        ]
        if any(type(arg) is str for arg in taken):
            return function(*taken, **keywords)
        listed = [
            arg if type(arg) in SCALARS or callable(arg) or type(arg) in CONTAINERS else list(arg) for arg in taken
        ]
        for arg in listed:
            weigh(arg, budget)
        return function(*listed, **keywords)

    return consume


def _lazy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives an iterator over iterables."""

    def iterate(budget: Budget, *args: Any, **keywords: Any) -> Any:
        return function(
            *(arg if type(arg) in (int, float, type(None)) or callable(arg) else metered(arg, budget) for arg in args),
            **keywords,
        )

    return iterate


def _plain(function: Callable[..., Any], *, cheap: bool = False) -> Callable[..., Any]:
    """A function of values that looks at them once."""

    def call(budget: Budget, *args: Any, **keywords: Any) -> Any:
        if not cheap:
            for arg in args:
                if isinstance(arg, Iterator) or (type(arg) is int and arg.bit_length() > MOST_BITS):
                    raise Refused
                weigh(arg, budget)
        return bounded(function(*args, **keywords))

    return call


def _small(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(budget: Budget, *args: Any) -> Any:
        if any(type(arg) is not int or abs(arg) > _MOST_ARGUMENT for arg in args):
            raise Refused
        return bounded(function(*args))

    return call


def _product(budget: Budget, items: Any, *, start: Any = 1) -> Any:
    for item in metered(items, budget):
        start = operate(ast.Mult, start, item, budget)
    return start


def _reduce(budget: Budget, function: Callable[..., Any], items: Any, *initial: Any) -> Any:
    iterator = iter(metered(items, budget))
    result = initial[0] if initial else next(iterator)
    for item in iterator:
        budget.spend()
        result = bounded(function(result, item))
    return result


def _pow(budget: Budget, base: Any, exponent: Any, modulus: Any = None) -> Any:
    if modulus is None:
        return operate(ast.Pow, base, exponent, budget)
    if any(type(part) is not int or part.bit_length() > _MOST_EXPONENT_BITS for part in (base, exponent, modulus)):
        raise Refused
    return pow(base, exponent, modulus)


def _round(budget: Budget, number: Any, digits: Any = None) -> Any:
    if type(number) not in (int, float, Decimal, Fraction) or (
        digits is not None and not -_MOST_ARGUMENT < digits < _MOST_ARGUMENT
    ):
        raise Refused
    return bounded(round(number, digits))


def _nothing(budget: Budget, *args: Any, **keywords: Any) -> None:
    """What is printed changes nothing."""


def _random(budget: Budget, *seed: Any) -> Module:
    """A generator of random numbers gives those of the module: which they are does not matter."""
    return Module("random")


def _choices(budget: Budget, items: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> Any:
    for listed in (weights, cum_weights):
        if listed is not None and type(listed) not in (list, tuple):
            raise Refused
        weigh(listed, budget)
    return _CHANCE.choices(items, weights, cum_weights=cum_weights, k=_paid(budget, k))


def _sample(budget: Budget, items: Any, k: int) -> Any:
    weigh(items, budget)
    return _CHANCE.sample(items, _paid(budget, k))


def _paid(budget: Budget, count: Any) -> int:
    """A number of items to draw, which is paid for."""
    if type(count) is not int or count > MOST_ITEMS:
        raise Refused
    budget.spend(max(count, 0))
    return count


def _random_bits(budget: Budget, bits: Any) -> int:
    if type(bits) is not int or bits > MOST_BITS:
        raise Refused
    return _CHANCE.getrandbits(bits)


def _products(budget: Budget, *args: Any, repeat: int = 1) -> Any:
    if len(args) * repeat > _MOST_PRODUCTS:
        raise Refused
    return itertools.product(*(metered(arg, budget) for arg in args), repeat=repeat)


def _isinstance(budget: Budget, value: Any, kinds: Any) -> bool:
    for kind in kinds if type(kinds) is tuple else (kinds,):
        if isinstance(kind, Own):
            if isinstance(value, Own) and value.is_a(kind):
                return True
            continue
        found = TYPES.get(kind.dotted) if isinstance(kind, LibraryFunction) else None
        if found is None:
            raise Refused
        if isinstance(value, found):
            return True
    return False


def _factory(budget: Budget, factory: Any = None, *args: Any) -> Any:
    if args or not (factory is None or callable(factory)):
        raise Refused
    return collections.defaultdict(factory)


def _bytes(budget: Budget, value: Any = b"") -> Any:
    if type(value) is int:
        if value > MOST_ITEMS:
            raise Refused
        return bytes(value)
    return bytes(metered(value, budget))


def _bytearray(budget: Budget, *value: Any) -> Any:
    return bytearray(_bytes(budget, *value))


def _ordered(budget: Budget, *items: Any, **named: Any) -> Any:
    return collections.OrderedDict(*(metered(part, budget) for part in items), **named)


def _unbound(kind: type, name: str, budget: Budget, receiver: Any, *args: Any, **keywords: Any) -> Any:
    """``str.upper(text)`` and the like."""
    if type(receiver) is not kind:
        raise TypeError
    return call_method(receiver, name, list(args), keywords, budget)


def _on_heap(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a heap, which compares an item with few others."""

    def call(budget: Budget, heap: Any, *items: Any) -> Any:
        for item in items:
            weigh(item, budget)
        return function(heap, *items)

    return call


_CHANCE = random.Random(0)  # noqa: S311 - a sequence that is always the same
_CHANCES = (
    "random randint randrange uniform choice gauss expovariate triangular normalvariate lognormvariate paretovariate"
    " weibullvariate"
)
_CONSUMERS = {
    builtins: "list tuple set frozenset dict sorted min max",
    collections: "Counter",
}
_LAZY = {
    builtins: "enumerate zip map filter iter any all",
    collections: "deque",
    itertools: (
        "count repeat cycle chain islice takewhile dropwhile accumulate pairwise combinations permutations groupby"
        " zip_longest starmap combinations_with_replacement compress filterfalse"
    ),
}
_PLAIN = {
    builtins: "abs divmod int float complex bool chr ord bin hex oct",
    datetime: "date datetime time timedelta",
    heapq: "heapify nlargest nsmallest",
    math: (
        "sqrt floor ceil trunc log log2 log10 exp sin cos tan asin acos atan atan2 hypot pow fabs fmod gcd isqrt"
        " copysign degrees radians isclose isnan isinf isfinite dist cbrt sinh cosh tanh log1p expm1 lcm"
    ),
}
_SINGLE = {
    builtins: "len range reversed next",
    bisect: "bisect bisect_left bisect_right insort insort_left insort_right",
}
_ON_HEAPS = {heapq: "heappush heappop heapreplace heappushpop"}
_SMALL = {math: "factorial comb perm"}


def _functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for kind, listed in (
        (_consumer, _CONSUMERS), (_lazy, _LAZY), (_plain, _PLAIN), (partial(_plain, cheap=True), _SINGLE),
        (_on_heap, _ON_HEAPS), (_small, _SMALL),
    ):  # fmt: skip
        for module, names in listed.items():
            for name in names.split():
                found[f"{module.__name__}.{name}"] = kind(getattr(module, name))
    for name in _CHANCES.split():
        found[f"random.{name}"] = _plain(getattr(_CHANCE, name), cheap=True)
    for owner in (str, bytes, int, dict, list, set):
        for name in METHODS[owner]:
            found[f"builtins.{owner.__name__}.{name}"] = partial(_unbound, owner, name)
    return found | library_values.FUNCTIONS | library_texts.FUNCTIONS | {
        "builtins.pow": _pow, "builtins.round": _round, "builtins.bytearray": _bytearray,
        "builtins.print": _nothing, "builtins.isinstance": _isinstance, "builtins.bytes": _bytes,
        "functools.reduce": _reduce, "math.prod": _product, "collections.defaultdict": _factory,
        "itertools.product": _products, "random.seed": _nothing, "time.sleep": _nothing,
        "random.shuffle": _plain(_CHANCE.shuffle), "random.sample": _sample, "random.choices": _choices,
        "collections.OrderedDict": _ordered, "random.Random": _random, "random.getrandbits": _random_bits,
    }  # fmt: skip


FUNCTIONS = _functions()
"""Library functions by dotted name; each takes the budget before its arguments."""
MODULES = frozenset(name.partition(".")[0] for name in FUNCTIONS) - {"builtins"} | {"dataclasses"}
TYPES: dict[str, type] = {
    f"builtins.{kind.__name__}": kind
    for kind in (int, float, bool, str, bytes, bytearray, list, tuple, set, frozenset, dict, range)
} | {
    f"{kind.__module__}.{kind.__name__}": kind
    for kind in (Decimal, Fraction, *MOMENTS, collections.deque, collections.Counter, collections.defaultdict)
}
CONSTANTS: dict[str, Any] = {
    **{f"math.{name}": getattr(math, name) for name in ("pi", "e", "inf", "tau", "nan")},
    **{
        f"string.{name}": getattr(string, name)
        for name in ("ascii_lowercase", "ascii_uppercase", "ascii_letters", "digits", "hexdigits", "punctuation")
    },
    **library_values.CONSTANTS,
}
EXCEPTIONS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        Exception, ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, LookupError,
        NotImplementedError, OSError, OverflowError, RecursionError, RuntimeError, StopIteration, TypeError,
        UnicodeDecodeError, ValueError, ZeroDivisionError, decimal.InvalidOperation, json.JSONDecodeError,
    )
}  # fmt: skip


class Module:
    """A module of the library as a value."""

    __slots__ = ("dotted",)

    def __init__(self, dotted: str) -> None:
        self.dotted = dotted


class LibraryFunction:
    """A function of the library as a value: it may be called, and passed to others."""

    __slots__ = ("budget", "dotted")

    def __init__(self, dotted: str, budget: Budget) -> None:
        self.dotted, self.budget = dotted, budget

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the function."""
        self.budget.spend()
        return made(FUNCTIONS[self.dotted](self.budget, *args, **keywords), self.budget)
