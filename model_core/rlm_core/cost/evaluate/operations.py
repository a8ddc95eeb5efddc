"""Binary operations on values: results and costs."""

from __future__ import annotations

import ast
import math
from typing import Any

from rlm_core.types import CauseKind

from .. import library
from ..domain import object_sizes
from ..domain.context import Context, table_of
from ..domain.folding import MISSING, MOST_BITS, MOST_TEXT, operation, repeated
from ..domain.quantities import ONE, ZERO, Quantity, constant, exponential, mixed, product
from ..domain.records import replace
from ..domain.values import DIGIT_BITS, NUMBERS, SEQUENCES, UNKNOWN, Value, literal, number_of
from ..library.unit_costs import primitive, seconds
from .library_calls import apply_rule
from .objects import special

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_LARGE_BLOCK = 1 << 20  # bytes
_MOST_COMPILED_TEXT, _MOST_COMPILED_BITS = 4096, 128
# Objects of the library that are computed with: the cost of an operation, and the bytes of its result.
_COMPUTED = {
    "fractions.Fraction": ("fractions.add", 120), "decimal.Decimal": ("decimal.add", 104),
    "pathlib.Path": ("pathlib.Path", 120),
    **dict.fromkeys(("datetime.date", "datetime.datetime", "datetime.timedelta"), ("datetime.datetime", 48)),
}  # fmt: skip
_LESS = Quantity({(): (0.0, 0.5, 1.0)})  # the share of a divisor that remains


def binary_operation(context: Context, op: ast.operator, left: Value, right: Value) -> Value:
    """Return the result of a binary operation; spends what it costs."""
    computed = special(context, left, _METHODS[type(op)], right)
    if computed is None and library.special_rule(right, _METHODS[type(op)]) is not None:
        computed = special(context, right, _METHODS[type(op)], left)
    if computed is not None:
        return computed
    sign = _SIGNS[type(op)]
    if isinstance(op, ast.Div) and left.kind == "unknown" and right.kind == "str":
        left = Value("object", name="pathlib.Path", bytes=left.bytes)  # nothing else is divided by a text
    for side in (left, right):
        rule = library.operator_rule(side.kind, sign) if side.kind == "array" else None
        if rule is not None:
            return apply_rule(context, rule, sign, [left, right], {}, None)
    for side in (left, right):
        if side.name in _COMPUTED:
            cost, held = _COMPUTED[side.name]
            context.meter.spend(primitive(cost))
            return replace(side, constant=MISSING, bytes=constant(held))
    if left.kind in NUMBERS and right.kind in NUMBERS:
        boxed = next((side for side in (left, right) if side.name.startswith("numpy.")), None)
        if boxed is not None:
            context.meter.spend(primitive("numpy.number"))
            return replace(boxed, constant=MISSING, number=None)
        return _arithmetic(context, op, left, right)
    if isinstance(op, ast.Mult):
        for text, count in ((left, right), (right, left)):
            if text.kind in SEQUENCES and count.kind in ("int", "bool", "unknown"):
                return _repeat(context, text, count)
    if isinstance(op, ast.Add) and left.kind in SEQUENCES and (right.kind in (left.kind, "unknown")):
        return _concatenate(context, left, right)
    if isinstance(op, ast.Add) and left.kind == "unknown" and right.kind in ("list", "tuple"):
        # Of what is added to a list or a tuple, only arrays are neither.
        return _concatenate(context, replace(left, kind=right.kind, size=context.length(left)), right)
    if isinstance(op, ast.Add) and left.kind == "unknown" and right.kind in ("str", "bytes") and not right.known:
        # The text that a loop builds is added to what a loop reads: a text.
        return _concatenate(context, replace(left, kind=right.kind, size=context.length(left)), right)
    if isinstance(op, ast.Mod) and left.kind in ("str", "bytes"):
        context.meter.spend(primitive("percent"))
        return Value("str", size=left.size, bytes=constant(60))
    if left.kind in ("set", "dict", "frozenset") and isinstance(op, (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)):
        items = context.length(left)
        if isinstance(op, (ast.BitOr, ast.BitXor)):
            items = items + context.length(right)
        context.meter.spend(seconds("build.set", items))
        return replace(left, constant=MISSING, size=items, bytes=object_sizes.container(left.kind, items))
    context.miss(sign, left, right)
    if left.kind == "unknown" or right.kind == "unknown":
        context.meter.spend(primitive("binary.int"))
        number = _combined(op, number_of(left), number_of(right))
        if not (left.is_number and right.is_number):
            return Value("unknown", number=number)
        is_float = isinstance(op, ast.Div) or "float" in (left.kind, right.kind, left.type, right.type)
        return Value("unknown", number=number, type="float" if is_float else "int")
    context.meter.spend(primitive("binary.int"))
    return UNKNOWN


def _arithmetic(context: Context, op: ast.operator, left: Value, right: Value) -> Value:
    is_float = "float" in (left.kind, right.kind) or isinstance(op, ast.Div)
    if left.known and right.known:
        folded = operation(type(op), left.constant, right.constant)
        if folded is not MISSING:
            context.meter.spend(_operation_seconds(op, is_float=is_float))
            result = literal(folded)
            if isinstance(op, ast.Pow) and result.size is not None:
                context.meter.spend(seconds("bigint.multiply", result.size.times(0.5)))
            return replace(result, bytes=constant(object_sizes.scalar(result.kind, folded)))
    if isinstance(op, ast.Pow) and not is_float:
        return _big_power(context, left, right)
    if isinstance(op, ast.LShift) and left.size is None and right.number is not None:
        left = replace(left, size=ONE) if right.number.evaluate(lambda name: 10.0)[1] > MOST_BITS else left
    number = _combined(op, number_of(left), number_of(right))
    if is_float:
        context.meter.spend(_operation_seconds(op, is_float=True))
        return Value("float", number=number, bytes=constant(object_sizes.scalar("float")))
    digits = _digits(context, op, left, right)
    if digits is None:
        context.meter.spend(_operation_seconds(op, is_float=False))
        limits = number.constant if number is not None else None
        is_shared = limits is not None and 0 <= limits[0] < limits[2] <= object_sizes.MOST_SHARED
        return Value("int", number=number, bytes=ZERO if is_shared else constant(object_sizes.scalar("int")))
    return Value("int", number=number, size=digits, bytes=digits.times(4.0) + constant(24))


def _digits(context: Context, op: ast.operator, left: Value, right: Value) -> Quantity | None:
    """The digits of a large result; pays for the operation. None where both numbers are small."""
    left, right = _with_digits(left), _with_digits(right)
    if left.size is None and right.size is None:
        return None
    if isinstance(op, ast.LShift) and right.number is not None:
        digits = (left.size or ONE) + right.number.times(1 / DIGIT_BITS)
        context.meter.spend(seconds("bigint.shift", digits))
        return digits
    both = [value.size for value in (left, right) if value.size is not None]
    longest = both[0] if len(both) == 1 else mixed([(0.5, both[0]), (0.5, both[1])])
    if isinstance(op, ast.Mult) and len(both) == 2:
        context.meter.spend(seconds("bigint.multiply", longest))
        return both[0] + both[1]
    if isinstance(op, (ast.FloorDiv, ast.Mod)) and len(both) == 2:
        context.meter.spend(seconds("bigint.divide", longest))
        return both[1] if isinstance(op, ast.Mod) else both[0]
    if isinstance(op, (ast.Mod, ast.FloorDiv)) and right.size is None:
        context.meter.spend(seconds("bigint.divide.small", longest))
        return None if isinstance(op, ast.Mod) else longest
    is_product = isinstance(op, ast.Mult)
    context.meter.spend(seconds("bigint.small" if is_product else "bigint.add", longest))
    return longest + ONE if is_product else longest


def _big_power(context: Context, left: Value, right: Value) -> Value:
    base, exponent = number_of(left), number_of(right)
    context.meter.spend(primitive("binary.int") * 4)
    if base is None or exponent is None:
        return Value("int")
    base_value, power = base.constant, exponent.constant
    if base_value is not None and max(abs(base_value[0]), abs(base_value[2])) <= 1:
        return Value("int", number=constant(base_value[0], 1.0))
    if power is None or base_value is None:
        if base_value is not None and base_value[1] > 1:
            digits = exponent.times(math.log2(base_value[1]) / DIGIT_BITS)
            context.meter.spend(seconds("bigint.multiply", digits.times(0.5)).times(1.5))
            return Value("int", number=exponential(base_value[1], exponent), size=digits)
        return Value("int", number=base.power(power[1]) if power is not None and 0 <= power[1] <= 8 else None)
    bits = product(max(power[1], 0.0), math.log2(max(base_value[1], 2.0)))
    number = base.power(power[1]) if bits < 900 and power[1] >= 0 else None
    if bits <= MOST_BITS:
        return Value("int", number=number, bytes=constant(bits / 8 + 28))
    digits = constant(bits / DIGIT_BITS)
    if math.log2(max(base_value[1], 2.0)) % 1 == 0:
        # Most digits of a power of two are zeros.
        context.meter.spend(seconds("bigint.multiply", digits.times(0.5)).times(0.1))
    else:
        context.meter.spend(seconds("bigint.multiply", digits.times(0.5)).times(1.5))
    return Value("int", size=digits, bytes=digits.times(4.0))


def _repeat(context: Context, text: Value, count: Value) -> Value:
    times = number_of(count)
    if times is None:
        times = context.named_size(count)
    if text.known and count.known and isinstance(text.constant, (str, bytes)):
        folded = repeated(text.constant, count.constant)
        if folded is not MISSING:
            return replace(literal(folded), bytes=object_sizes.container(text.kind, constant(len(folded))))
    size = context.length(text) * times
    if text.name == "array.array":
        width = text.bytes - constant(object_sizes.ARRAY_HEADER)
        result = replace(text, size=size, bytes=width * times + constant(object_sizes.ARRAY_HEADER))
        context.meter.spend(seconds("repeat.text", result.bytes))
        note_allocation(context, result)
        return result
    context.meter.spend(seconds("repeat.list" if text.kind in ("list", "tuple") else "repeat.text", size))
    held = object_sizes.container(text.kind, size)
    if text.kind in ("list", "tuple"):
        held = held + (
            text.bytes - object_sizes.container(text.kind, context.length(text)) if text.bytes.terms else ZERO
        )
    result = Value(text.kind, size=size, item=text.item, bytes=held)
    note_allocation(context, result)
    return result


def note_allocation(context: Context, value: Value, name: str = "") -> None:
    """Note a large new value as a cause of memory; pages that are new take time too."""
    _low, likely, _ = value.bytes.evaluate(lambda size: 10.0)
    if likely >= _LARGE_BLOCK and value.kind != "array" and name != "bytes":
        context.meter.spend(library.new_pages(table_of(value)))
    if likely >= 1 << 16:
        context.meter.cause(CauseKind.ALLOCATION, context.frame.line, name or value.kind, value.bytes)


def _concatenate(context: Context, left: Value, right: Value) -> Value:
    if left.known and right.known and isinstance(left.constant, (str, bytes, tuple)):
        try:
            if len(left.constant) + len(right.constant) <= MOST_TEXT:
                context.meter.spend(primitive("concat.text"))
                return literal(left.constant + right.constant)
        except TypeError:
            return UNKNOWN
    size = context.length(left) + context.length(right)
    context.note_kind(left.kind)
    context.meter.spend(seconds(f"concat.{left.kind}" if left.kind in ("list", "tuple") else "concat.text", size))
    item = left.item if left.item is not None else right.item
    held = object_sizes.container(left.kind, size)
    return Value(left.kind, size=size, item=item, bytes=held)


def compiled(op: ast.operator, left: Any, right: Any) -> Value | None:
    """The constant that CPython's compiler makes of an operation on constants; None for one that it leaves.

    Source of the limits: ``Python/ast_opt.c`` of CPython 3.12.
    """
    if MISSING in (left, right):
        return None
    for text, count in ((left, right), (right, left)):
        if isinstance(text, (str, bytes)) and isinstance(op, ast.Mult):
            result = repeated(text, count, _MOST_COMPILED_TEXT)
            return literal(result) if result is not MISSING else None
    if isinstance(left, (str, bytes)) or isinstance(right, (str, bytes)):
        return literal(left + right) if isinstance(op, ast.Add) and type(left) is type(right) else None
    result = operation(type(op), left, right)
    if isinstance(result, int) and result.bit_length() > _MOST_COMPILED_BITS:
        return None
    return literal(result) if isinstance(result, (int, float)) else None


def _with_digits(value: Value) -> Value:
    """A number whose size is known, with its digits if it takes several."""
    limits = value.number.constant if value.number is not None and value.kind == "int" else None
    if value.size is not None or limits is None or abs(limits[1]) < 1 << DIGIT_BITS or not math.isfinite(limits[1]):
        return value
    return replace(value, size=constant(math.log2(abs(limits[1])) / DIGIT_BITS))


def _operation_seconds(op: ast.operator, *, is_float: bool) -> float:
    """The seconds of an operation on small numbers."""
    if isinstance(op, ast.Pow):
        return primitive("power.float" if is_float else "power.int")
    if isinstance(op, ast.Div):
        return primitive("binary.float" if is_float else "divide.true")
    if is_float:
        return primitive("binary.float")
    return primitive({ast.Mod: "modulo.int", ast.FloorDiv: "divide.int"}.get(type(op), "binary.int"))


def _combined(op: ast.operator, left: Quantity | None, right: Quantity | None) -> Quantity | None:
    """The quantity of an operation on numbers that are not known exactly."""
    divisor = right.constant if right is not None else None
    if divisor is not None and divisor[1] > 0 and isinstance(op, ast.BitAnd):
        return constant(0.0, divisor[2])
    if divisor is not None and divisor[1] > 1 and isinstance(op, ast.Mod):
        return constant(0.0, divisor[2] - 1)
    if right is not None and isinstance(op, ast.Mod):
        return right * _LESS
    if left is None or right is None:
        return None
    if divisor is None and isinstance(op, (ast.LShift, ast.Pow)):
        base = left.constant
        if base is None or base[1] < 1 or (isinstance(op, ast.Pow) and base[1] <= 1):
            return None
        is_power = isinstance(op, ast.Pow)
        return exponential(base[1], right) if is_power else exponential(2.0, right).times(base[1])
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.Mult):
        return left * right
    if divisor is not None and divisor[1] > 0 and isinstance(op, (ast.Div, ast.FloorDiv)):
        return left.times(1 / divisor[1])
    if divisor is not None and 0 <= divisor[1] <= 60 and isinstance(op, ast.RShift):
        return left.times(0.5 ** divisor[1])
    if divisor is not None and 0 <= divisor[1] <= 60 and isinstance(op, ast.LShift):
        return left.times(2.0 ** divisor[1])
    if divisor is not None and 0 <= divisor[1] <= 8 and isinstance(op, ast.Pow):
        return left.power(divisor[1])
    return None


_METHODS: dict[type[ast.operator], str] = {
    ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.FloorDiv: "__floordiv__",
    ast.Mod: "__mod__", ast.Pow: "__pow__", ast.MatMult: "__matmul__", ast.BitAnd: "__and__", ast.BitOr: "__or__",
    ast.BitXor: "__xor__", ast.LShift: "__lshift__", ast.RShift: "__rshift__",
}  # fmt: skip
