"""How often conditions hold, and what comparing, testing and choosing cost."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .. import library
from ..domain.context import Context
from ..domain.dispatch import evaluate, peek
from ..domain.folding import MISSING, compared
from ..domain.lattice import joined
from ..domain.meter import scaled
from ..domain.quantities import ONE, Range, constant, mixed
from ..domain.syntax import Function, walk
from ..domain.values import NUMBERS, SIZED, Value, literal, number_of
from ..library.unit_costs import primitive, seconds
from .library_calls import apply_rule
from .objects import special

_COMPARE_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_SPECIAL = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
_GOES_ON = (0.0, 0.5, 1.0)  # how often the next part of `and` or `or` is looked at
_SAME, _SAME_NUMBER = 0.3, 0.1  # how often two values are equal
_SMALL = 3.0  # a number of items


@dataclass(frozen=True, slots=True)
class Condition:
    """How often a condition is true (``share``) and false (``rest``), as (least, likely, most)."""

    share: Range
    rest: Range


def judge(context: Context, test: ast.expr) -> Condition:
    """How often a condition is true and false; evaluating it is paid for."""
    value = evaluate(context, test)
    truth = value.truth
    if truth is not None:
        return certain(truth)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        share = _guess(context, test.operand, peek(context, test.operand))
        return Condition(rest_of(share), share)
    share = _guess(context, test, value)
    return Condition(share, rest_of(share))


def _guess(context: Context, test: ast.expr, value: Value) -> Range:
    if isinstance(value.payload, tuple) and value.payload[:1] == ("default",):
        return (0.0, 0.85, 1.0) if value.payload[1] else (0.0, 0.15, 1.0)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left = peek(context, test.left)
        if isinstance(left.payload, tuple) and left.payload[:1] == ("default",):
            right = peek(context, test.comparators[0])
            holds = compared(type(test.ops[0]), left.payload[1], right.constant) if right.known else MISSING
            if holds is not MISSING:
                return (0.0, 0.85, 1.0) if holds else (0.0, 0.15, 1.0)
        # Two numbers are rarely the same; a name, a kind or a flag is more often the one that is asked for.
        right = peek(context, test.comparators[0])
        same = _SAME_NUMBER if left.kind in NUMBERS and right.kind in NUMBERS else _SAME
        if isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In)):
            return (0.0, same, 1.0)
        if isinstance(test.ops[0], (ast.NotEq, ast.IsNot, ast.NotIn)):
            return (0.0, 1 - same, 1.0)
    return (0.0, 0.5, 1.0)


def is_for_small_inputs(context: Context, test: ast.expr, *, leaves: bool) -> bool:
    """Return whether a condition holds only where a size that the text does not fix is hardly more than zero, or wrong.

    In a loop and in a recursion sizes get there. That an argument is 1 may choose what to do, unless the call ends
    there (``leaves``).
    """
    if context.frame.loops or any(frame.recurses for frame in (context.frame, *context.open)):
        return False
    if isinstance(test, ast.BoolOp):
        small = [is_for_small_inputs(context, part, leaves=leaves) for part in test.values]
        return any(small) if isinstance(test.op, ast.And) else all(small)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        value = peek(context, test.operand)
        if value.kind == "unknown" and isinstance(test.operand, ast.Name):
            return context.frame.node is not None and _is_container(context.frame.node, test.operand.id)
        size = value.size if value.kind in SIZED else value.number if value.kind == "int" else None
        return size is not None and size.constant is None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    left, right = (peek(context, side) for side in (test.left, test.comparators[0]))
    if isinstance(test.ops[0], ast.Is):
        return right.kind == "none" and left.kind == "unknown" and bool(left.name) and left.payload is None
    if right.kind in SIZED and right.size is not None and right.size.exact == 0:
        return isinstance(test.ops[0], ast.Eq)
    size, limit = number_of(left), right.number.exact if right.number is not None else None
    if isinstance(test.ops[0], ast.NotEq):
        # Two lengths that have to be the same.
        lengths = [side.number for side in (left, right) if side.kind == "int" and side.number is not None]
        return leaves and len(lengths) == 2 and all(length.constant is None for length in lengths)
    is_below = isinstance(test.ops[0], (ast.Eq, ast.Lt, ast.LtE)) and (leaves or left.kind != "unknown")
    return is_below and size is not None and size.constant is None and limit is not None and limit <= _SMALL


def _is_container(function: Function, name: str) -> bool:
    """Return whether a function loops over what a name holds, or asks for its length."""
    for part in walk(function):
        match part:
            case ast.For(iter=ast.Name(id=used)) | ast.comprehension(iter=ast.Name(id=used)):
                pass
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=used)]):
                pass
            case _:
                continue
        if used == name:
            return True
    return False


def evaluate_boolean(context: Context, node: ast.BoolOp) -> Value:
    """Return the value of ``and`` or ``or``, which evaluate their parts as far as they must."""
    reach = context.meter.reach
    share: Range = (1.0, 1.0, 1.0)
    results: list[tuple[float, Value]] = []
    is_or = isinstance(node.op, ast.Or)
    for part in node.values:
        low, likely, high = (a * b for a, b in zip(reach, share, strict=True))
        if share != (1.0, 1.0, 1.0):
            context.meter.reach = (low, likely, high)
        value = evaluate(context, part)
        context.meter.spend(primitive("boolean"))
        truth = value.truth
        if truth is is_or or part is node.values[-1]:
            results.append((share[1], value))
            break
        if truth is None:
            results.append((share[1] * (1 - _GOES_ON[1]), value))
            share = scaled(share, _GOES_ON)
    context.meter.reach = reach
    if len(results) == 1:
        return results[0][1]
    return joined(results)


def evaluate_comparison(context: Context, node: ast.Compare) -> Value:
    """Return the value of a comparison, also of several in a row."""
    left = evaluate(context, node.left)
    result: Value = Value("bool")
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = evaluate(context, part)
        result = _compare(context, op, left, right)
        if len(node.ops) > 1 and result.truth is False:
            return result
        if len(node.ops) > 1 and not result.known:
            result = Value("bool") if result.kind == "bool" else result
        left = right
    return result


def _compare(context: Context, op: ast.cmpop, left: Value, right: Value) -> Value:
    if isinstance(op, (ast.In, ast.NotIn)):
        return _contains(context, left, right)
    sign = _COMPARE_SIGNS.get(type(op))
    for side in (left, right):
        if sign is not None and library.special_rule(side, _SPECIAL[sign]) is not None:
            computed = special(context, side, _SPECIAL[sign], right if side is left else left)
            if computed is not None:
                return computed
        rule = library.operator_rule("array", sign) if side.kind == "array" and sign is not None else None
        if rule is not None and sign is not None:
            return apply_rule(context, rule, sign, [left, right], {}, None)
    context.meter.spend(primitive("is" if isinstance(op, (ast.Is, ast.IsNot)) else "compare"))
    if sign is not None:
        computed = special(context, left, _SPECIAL[sign], right)
        if computed is not None:
            return computed
        context.miss(sign, left, right)
    holds = compared(type(op), left.constant, right.constant) if left.known and right.known else MISSING
    if holds is not MISSING:
        return literal(holds)
    if isinstance(op, (ast.Is, ast.IsNot)) and "none" in (left.kind, right.kind):
        other = right if left.kind == "none" else left
        if other.kind not in ("unknown", "none") and not other.optional:
            return literal(isinstance(op, ast.IsNot))
    return Value("bool")


def _contains(context: Context, left: Value, right: Value) -> Value:
    context.note_kind(right.kind)
    if right.kind in ("list", "tuple", "deque", "array"):
        count = context.length(right)
        checked = context.searched(count)
        context.meter.spend(seconds("contains.list.text" if left.kind == "str" else "contains.list", checked))
        return Value("bool")
    if right.kind in ("str", "bytes", "bytearray"):
        # Texts are mostly asked for parts that each of them has, or has early on.
        searched = mixed([(0.5, ONE), (0.5, context.length(right))])
        context.meter.spend(seconds("contains.text", searched))
        if left.known and right.known and isinstance(left.constant, str) and isinstance(right.constant, str):
            return literal(left.constant in right.constant)
        return Value("bool")
    if right.kind == "iterator":
        context.consume(right, constant(0.5))
        return Value("bool")
    computed = special(context, right, "__contains__", left)
    if computed is not None:
        return computed
    context.miss("in", right)
    context.meter.spend(primitive("contains.range" if right.kind == "range" else "contains.set"))
    return Value("bool")


def evaluate_conditional(context: Context, node: ast.IfExp) -> Value:
    """Return the value of ``body if test else orelse``."""
    condition = judge(context, node.test)
    share = condition.share
    if share[0] == 1:
        return evaluate(context, node.body)
    if share[2] == 0:
        return evaluate(context, node.orelse)
    results, meters = [], []
    for chance, part in ((share, node.body), (condition.rest, node.orelse)):
        with context.region() as meter:
            context.path = scaled(context.path, chance)
            results.append((chance[1], evaluate(context, part)))
        meters.append((chance, meter))
    context.meter.branch(meters)
    return joined(results)


def certain(truth: bool) -> Condition:
    """A condition that always holds, or never."""
    share = (1.0, 1.0, 1.0) if truth else (0.0, 0.0, 0.0)
    return Condition(share, rest_of(share))


def rest_of(share: Range) -> Range:
    """How often a condition is false that is true so often."""
    return 1 - share[2], 1 - share[1], 1 - share[0]
