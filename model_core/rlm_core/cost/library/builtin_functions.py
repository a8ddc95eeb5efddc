"""Rules for Python's other builtins: numbers, texts, objects; ``open`` and ``print`` are in :mod:`.system`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from ..domain import object_sizes
from ..domain.folding import MISSING, operation, rounded
from ..domain.quantities import ZERO, constant
from ..domain.records import replace
from ..domain.values import UNKNOWN, Call, Value, number_of
from .rules import (
    INT,
    SHORT,
    Rule,
    argument,
    bare,
    constants,
    folded,
    integer,
    literal,
    real,
    text,
)
from .unit_costs import each, primitive, seconds

_LAZY_ZEROS = 1 << 25  # bytes; smaller blocks are reused and written


_MAPPED_SECONDS = 1e-5  # of a call of mmap and one of munmap


def same_number(cost: str, name: str) -> Rule:
    """A rule of a function that hardly changes a number: ``abs`` and ``round``."""
    function: Callable[..., Any] = abs if name == "builtins.abs" else rounded

    def rule(call: Call) -> Value:
        call.spend(primitive(cost))
        known = folded(call, function)
        if known is not None:
            return known
        value = argument(call, 0)
        result = value.kind if value.kind in ("int", "float") else "unknown"
        held = constant(object_sizes.scalar(result)) if result != "unknown" else ZERO
        return Value(result, number=number_of(value), bytes=held)

    return rule


def int_rule(call: Call) -> Value:
    value = argument(call, 0)
    if value.kind in ("str", "bytes") and not (value.known and len(call.args) == 1):
        size = value.size if value.size is not None else SHORT
        limit = size.constant
        if limit is not None and limit[1] > 40:
            call.spend(seconds("bigint.text", size.times(3.33 / 30)))
            return Value("int", size=size.times(3.33 / 30), bytes=size.times(0.45))
        call.spend(seconds("builtins.int.text", size))
        return folded(call, int) or integer()
    call.spend(primitive("builtins.int.text" if value.kind == "str" else "builtins.int"))
    known = folded(call, int)
    if known is not None:
        return known
    return replace(value, bytes=ZERO) if value.kind == "int" else integer(number_of(value))


def float_rule(call: Call) -> Value:
    value = argument(call, 0)
    call.spend(primitive("builtins.float.text" if value.kind == "str" else "builtins.float"))
    return folded(call, float) or real(number_of(value) if value.kind != "str" else None)


def str_rule(call: Call) -> Value:
    if not call.args:
        return literal("")
    value = call.args[0]
    return text_of(call, value) if len(call.args) == 1 else text(call.length(value))


def text_of(call: Call, value: Value, *, quoted: bool = False) -> Value:
    """``str(value)`` or ``repr(value)``: containers item by item."""
    if value.kind == "str" and not quoted:
        call.spend(primitive("call.builtin"))
        return bare(value)
    if value.kind == "int" and value.size is not None and not value.known:
        call.spend(seconds("bigint.text", value.size))
        return text(value.size.times(9.03))
    if value.kind in ("int", "float", "bool", "none"):
        call.spend(primitive("builtins.str.float" if value.kind == "float" else "builtins.str"))
        known = constants([value])
        if known is not None:
            try:
                return literal(str(known[0]))
            except ValueError:
                return text(SHORT)
        limits = value.number.constant if value.number is not None else None
        if value.kind == "int" and limits is not None:
            low, likely, high = (math.log10(max(abs(limit), 1.0)) // 1 + 1 for limit in limits)
            return text(constant(low, high, likely))
        return text(constant(16.0, 20.0) if value.kind == "float" else constant(1.0, 12.0, 4.0))
    if value.kind in ("list", "tuple", "set", "dict", "frozenset", "deque") and value.size is not None:
        item = value.item or UNKNOWN
        per = "builtins.repr.float" if item.kind == "float" else "builtins.repr"
        parts = value.size.times(2.0 if value.kind == "dict" else 1.0)
        call.spend(seconds(per, parts))
        size = parts.times(9.0 if item.kind in ("int", "bool", "unknown") else 20.0)
        call.allocate(size.times(1.25))
        return text(size)
    if value.kind in ("str", "bytes"):
        call.spend(seconds("builtins.repr.text", call.length(value)))
        return text(call.length(value))
    call.spend(primitive("builtins.str.object"))
    return text(SHORT)


def repr_rule(call: Call) -> Value:
    return text_of(call, argument(call, 0), quoted=True)


def blank(kind: str) -> Rule:
    """``bytes`` and ``bytearray``: of a number, that many zeros; of a text or an iterable, its bytes."""

    def rule(call: Call) -> Value:
        value = argument(call, 0)
        if not call.args:
            call.spend(primitive("call.builtin"))
            return text(ZERO, kind)
        if value.kind in ("int", "bool"):
            size = value.number if value.number is not None else call.length(UNKNOWN)
            fixed_size = size.exact
            # The operating system gives out large blocks as zeros; ``bytearray`` writes them again.
            is_lazy = kind == "bytes" and fixed_size is not None and fixed_size > _LAZY_ZEROS
            call.spend(constant(_MAPPED_SECONDS) if is_lazy else seconds("builtins.bytes", size))
            return text(size, kind)
        if value.kind in ("str", "bytes", "bytearray", "array", "unknown"):
            size = call.length(value)
            call.spend(seconds("builtins.bytes.copy", size))
            return text(size, kind)
        size = call.consume(value)
        call.spend(seconds("builtins.bytes.items", size))
        return text(size, kind)

    return rule


def pow_rule(call: Call) -> Value:
    if len(call.args) == 3:
        base, exponent, modulus = call.args
        bits = ZERO
        for value in (exponent,):
            if value.known and isinstance(value.constant, int):
                bits = constant(value.constant.bit_length())
            else:
                bits = value.size.times(30.0) if value.size is not None else constant(1.0, 64.0, 20.0)
        each_bit = constant(each("builtins.pow.modulo"))
        if modulus.size is not None:
            each_bit = each_bit + seconds("builtins.pow.modulo.digits", modulus.size)
        call.spend(constant(primitive("builtins.pow.modulo")) + bits * each_bit)
        known = constants(call.args)
        if known is not None and all(isinstance(part, int) and part.bit_length() <= 512 for part in known):
            return folded(call, pow) or INT
        return Value("int", size=modulus.size, bytes=INT.bytes)
    call.spend(primitive("power.int"))
    known = constants(call.args)
    if known is not None and len(known) == 2 and all(isinstance(part, (int, float)) for part in known):
        base, exponent = known
        if operation(ast.Pow, base, exponent) is not MISSING or isinstance(base, float) or isinstance(exponent, float):
            return folded(call, pow) or UNKNOWN
        bits = min(abs(exponent), 10**15) * base.bit_length()
        digits = constant(bits / 30)
        call.spend(seconds("bigint.multiply", digits.times(0.5)).times(1.5))
        return Value("int", size=digits, bytes=digits.times(4.0) + constant(24))
    return UNKNOWN


def hash_rule(call: Call) -> Value:
    value = argument(call, 0)
    if value.kind in ("str", "bytes"):
        call.spend(seconds("builtins.hash.text", call.length(value)))
    elif value.kind == "tuple":
        call.spend(seconds("builtins.hash.tuple", call.length(value)))
    else:
        call.spend(primitive("call.builtin"))
    return INT
