"""How often conditions hold, and what comparing, testing and choosing cost."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import library
from ..bounds.counters import FLIPPED, NEGATED, Counter
from ..domain.context import Context
from ..domain.dispatch import evaluate, peek
from ..domain.folding import MISSING, compared
from ..domain.frames import SAMPLES, LoopVariable
from ..domain.lattice import joined
from ..domain.meter import scaled
from ..domain.quantities import ONE, Range, constant, is_whole, mixed, part_of
from ..domain.syntax import walk
from ..domain.values import NUMBERS, Value, literal, number_of
from ..library.unit_costs import primitive, seconds
from .library_calls import apply_rule
from .objects import special

_MOST_SAMPLED_NODES = 24
_MOST_PERIOD = 64
_COMPARE_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_SPECIAL = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
_GOES_ON = (0.0, 0.5, 1.0)  # how often the next part of `and` or `or` is looked at
_SAME, _SAME_NUMBER = 0.3, 0.1  # how often two values are equal


@dataclass(frozen=True, slots=True)
class Condition:
    """How often a condition is true (``share``) and false (``rest``), as (least, likely, most).

    Where it depends on the variable of a loop over known numbers: the sampled iterations in which it is true and false.
    """

    share: Range
    rest: Range
    variable: LoopVariable | None = None
    hits: Sequence[int] = ()
    misses: Sequence[int] = ()


def judge(context: Context, test: ast.expr) -> Condition:
    """How often a condition is true and false; evaluating it is paid for."""
    value = evaluate(context, test)
    truth = value.truth
    if truth is not None and not (context.frame.loops and _reads_size(test)):
        return certain(truth)
    sampled = _sampled(context, test)
    if sampled is not None:
        return sampled
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


def _sampled(context: Context, test: ast.expr) -> Condition | None:
    """How often a condition on the variable of a loop over known numbers holds: exact where that is arithmetic."""
    frame = context.frame
    variables = {loop.variable.name for loop in frame.loops if loop.variable is not None}
    if not variables:
        return None
    nodes = list(ast.walk(test))
    names = variables & {node.id for node in nodes if isinstance(node, ast.Name)}
    loop = next(
        (
            loop
            for loop in reversed(frame.loops)
            if loop.variable is not None
            and loop.variable.name in names
            and frame.names.get(loop.variable.name) is loop.variable.value
        ),
        None,
    )
    if loop is None or loop.variable is None or len(nodes) > _MOST_SAMPLED_NODES or not loop.variable.points:
        return None
    variable = loop.variable
    hits: list[int] = []
    misses: list[int] = []
    held = frame.held
    try:
        for k in variable.points:
            truth = _holds_at(context, test, variable, k)
            if truth is None:
                return None
            (hits if truth else misses).append(k)
    finally:
        frame.held = held
        frame.names[variable.name] = variable.value
    number = len(hits) + len(misses)
    share = (hits and len(hits) / number) or 0.0
    low = high = share
    if variable.is_sampled:
        exact = _exact_share(context, test, variable) if number == SAMPLES else None
        if exact is not None:
            low = share = high = exact
        else:
            # One threshold falls between two points; few of many iterations may be missed by a sample.
            rare = min(1 / number, max(1 / variable.count, 1e-6))
            low, high = max(share - 2 / number, 0.0), min(share + 2 / number, 1.0)
            share = min(max(share, rare), 1 - rare)
    if any(outer.may_leave for outer in frame.loops[frame.loops.index(loop) :]) and high > 0 and low < 1:
        # Not all iterations run: of those that do, either the one or the other may be missing.
        return Condition((0.0, share, 1.0), (0.0, 1 - share, 1.0), variable, hits, misses)
    return Condition((low, share, high), (1 - high, 1 - share, 1 - low), variable, hits, misses)


def _holds_at(context: Context, test: ast.expr, variable: LoopVariable, k: int) -> bool | None:
    """Return whether a condition holds in an iteration."""
    context.frame.names[variable.name] = variable.at(k)
    return peek(context, test).truth


def _exact_share(context: Context, test: ast.expr, variable: LoopVariable) -> float | None:
    """The share of all iterations in which ``variable < number`` or a test of its remainder holds."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        share = _exact_share(context, test.operand, variable)
        return None if share is None else 1 - share
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return None
    left, right, op = test.left, test.comparators[0], type(test.ops[0])
    if isinstance(right, ast.Name) and right.id == variable.name and op in FLIPPED:
        left, right, op = right, left, FLIPPED[op]
    whole = variable.count
    if isinstance(left, ast.Name) and left.id == variable.name and op in FLIPPED:
        bound = number_of(peek(context, right))
        limit = bound.exact if bound is not None else None
        if limit is None:
            return None
        counter = Counter(variable.start, "+", variable.step)
        if op in (ast.Eq, ast.NotEq):
            at = counter.first(ast.Eq, limit)
            equal = 0.0 if at is None or at[0] >= whole else 1 / whole
            return (equal if op is ast.Eq else 1 - equal) if at is not None else None
        begins, ends = counter.first(op, limit), counter.first(NEGATED[op], limit)
        if begins is None or ends is None:
            return None
        # A comparison holds either from a trip on or up to one.
        return part_of(ends[0], whole) if begins[0] == 0 else 1 - part_of(begins[0], whole)
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and isinstance(left.right, ast.Constant):
        divisor, step = left.right.value, variable.step
        if not (isinstance(divisor, int) and 0 < divisor <= _MOST_PERIOD and is_whole(step)):
            return None
        period = divisor // math.gcd(divisor, int(step))
        held = [_holds_at(context, test, variable, k) for k in range(period)]
        context.frame.names[variable.name] = variable.value
        if None in held or not isinstance(left.left, ast.Name) or _mentions(right, variable.name):
            return None
        if math.isinf(whole):
            return sum(map(bool, held)) / period
        rounds, over = divmod(int(whole), period)
        return (rounds * sum(map(bool, held)) + sum(map(bool, held[:over]))) / whole
    return None


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
    if right.kind in ("list", "tuple", "deque", "array"):
        count = context.length(right)
        checked = mixed([(0.5, ONE), (0.5, count)])
        context.meter.spend(seconds("contains.list.text" if left.kind == "str" else "contains.list", checked))
        return Value("bool")
    if right.kind in ("str", "bytes"):
        context.meter.spend(seconds("contains.text", context.length(right)))
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
    for chance, points, part in (
        (share, condition.hits, node.body),
        (condition.rest, condition.misses, node.orelse),
    ):
        with context.region() as meter:
            context.path = scaled(context.path, chance)
            if condition.variable is not None:
                condition.variable.points = points
            results.append((chance[1], evaluate(context, part)))
        meters.append((chance, meter))
    if condition.variable is not None:
        condition.variable.points = sorted([*condition.hits, *condition.misses])
    context.meter.branch(meters)
    return joined(results)


def certain(truth: bool) -> Condition:
    """A condition that always holds, or never."""
    share = (1.0, 1.0, 1.0) if truth else (0.0, 0.0, 0.0)
    return Condition(share, rest_of(share))


def _reads_size(test: ast.expr) -> bool:
    """Return whether a condition asks for the size of a container, which iterations of a loop change."""
    operand = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(operand, ast.Name) or any(
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "len"
        for inner in walk(test)
    )


def rest_of(share: Range) -> Range:
    """How often a condition is false that is true so often."""
    return 1 - share[2], 1 - share[1], 1 - share[0]


def _mentions(node: ast.expr, name: str) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(node))
