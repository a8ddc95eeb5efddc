"""How often conditions hold, and what comparing, testing and choosing cost."""

from __future__ import annotations

import ast
import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import library
from .domain.meter import Meter, scaled
from .domain.quantities import ONE, Quantity, Range, constant, is_whole, mixed, part_of
from .domain.values import NUMBERS, Value, literal, number_of
from .frames import SAMPLES, LoopVariable, joined
from .library.unit_costs import primitive, seconds
from .operations import Operations
from .trips import FLIPPED, NEGATED, Counter

_MOST_SAMPLED_NODES = 24
_MOST_PERIOD = 64
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_COMPARE_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_GOES_ON = (0.0, 0.5, 1.0)  # how often the next part of `and` or `or` is looked at
_SAME, _SAME_NUMBER = 0.3, 0.1  # how often two values are equal
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict", "str", "bytes", "bytearray", "deque"})


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


class Conditions(Operations):
    """Judges conditions; evaluating their parts is left to a subclass."""

    @abstractmethod
    def value(self, node: ast.expr | None) -> Value:
        """Evaluate an expression."""

    @abstractmethod
    def consume(self, value: Value, share: Quantity | None = None) -> Quantity:
        """The number of items that iterating yields; spends what producing them takes."""

    def values(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Evaluate expressions from left to right."""
        return [self.value(node) for node in nodes]

    def scratch(self, node: ast.expr) -> Value:
        """Evaluate an expression without paying for it."""
        with self.region(Meter()):
            return self.value(node)

    def probability(self, test: ast.expr) -> Range:
        """How often a condition is true, as (least, likely, most); evaluating it is paid for."""
        return self.judged(test).share

    def judged(self, test: ast.expr) -> Condition:
        """How often a condition is true and false; evaluating it is paid for."""
        value = self.value(test)
        truth = self.truth(value)
        if truth is not None and not (self.frame.loops and _reads_size(test)):
            return certain(truth)
        sampled = self.sampled(test)
        if sampled is not None:
            return sampled
        if truth is not None:
            return certain(truth)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            share = self._guess(test.operand, self.scratch(test.operand))
            return Condition(rest_of(share), share)
        share = self._guess(test, value)
        return Condition(share, rest_of(share))

    def _guess(self, test: ast.expr, value: Value) -> Range:
        if isinstance(value.payload, tuple) and value.payload[:1] == ("default",):
            return (0.0, 0.85, 1.0) if value.payload[1] else (0.0, 0.15, 1.0)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left = self.scratch(test.left)
            if isinstance(left.payload, tuple) and left.payload[:1] == ("default",):
                right = self.scratch(test.comparators[0])
                compare = _COMPARE.get(type(test.ops[0]))
                if right.known and compare is not None:
                    try:
                        return (0.0, 0.85, 1.0) if compare(left.payload[1], right.constant) else (0.0, 0.15, 1.0)
                    except TypeError:
                        pass
            # Two numbers are rarely the same; a name, a kind or a flag is more often the one that is asked for.
            right = self.scratch(test.comparators[0])
            same = _SAME_NUMBER if left.kind in NUMBERS and right.kind in NUMBERS else _SAME
            if isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In)):
                return (0.0, same, 1.0)
            if isinstance(test.ops[0], (ast.NotEq, ast.IsNot, ast.NotIn)):
                return (0.0, 1 - same, 1.0)
        return (0.0, 0.5, 1.0)

    def truth(self, value: Value) -> bool | None:
        """Whether a value is true, None where the text does not say."""
        if value.known:
            try:
                return bool(value.constant)
            except Exception:
                return None
        if value.kind in _CONTAINERS and value.size is not None and value.size.exact is not None:
            return value.size.exact > 0
        if value.kind in ("user-function", "function", "module", "class"):
            return True
        return None

    def sampled(self, test: ast.expr) -> Condition | None:
        """How often a condition on the variable of a loop over known numbers holds: exact where that is arithmetic."""
        frame = self.frame
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
                truth = self._holds_at(test, variable, k)
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
            exact = self._exact_share(test, variable) if number == SAMPLES else None
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

    def _holds_at(self, test: ast.expr, variable: LoopVariable, k: int) -> bool | None:
        """Whether a condition holds in an iteration."""
        self.frame.names[variable.name] = variable.at(k)
        return self.truth(self.scratch(test))

    def _exact_share(self, test: ast.expr, variable: LoopVariable) -> float | None:
        """The share of all iterations in which ``variable < number`` or a test of its remainder holds."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            share = self._exact_share(test.operand, variable)
            return None if share is None else 1 - share
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
            return None
        left, right, op = test.left, test.comparators[0], type(test.ops[0])
        if isinstance(right, ast.Name) and right.id == variable.name and op in FLIPPED:
            left, right, op = right, left, FLIPPED[op]
        whole = variable.count
        if isinstance(left, ast.Name) and left.id == variable.name and op in FLIPPED:
            bound = number_of(self.scratch(right))
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
            held = [self._holds_at(test, variable, k) for k in range(period)]
            self.frame.names[variable.name] = variable.value
            if None in held or not isinstance(left.left, ast.Name) or _mentions(right, variable.name):
                return None
            if math.isinf(whole):
                return sum(map(bool, held)) / period
            rounds, over = divmod(int(whole), period)
            return (rounds * sum(map(bool, held)) + sum(map(bool, held[:over]))) / whole
        return None

    def _boolean(self, node: ast.BoolOp) -> Value:
        reach = self.meter.reach
        share: Range = (1.0, 1.0, 1.0)
        results: list[tuple[float, Value]] = []
        is_or = isinstance(node.op, ast.Or)
        for part in node.values:
            low, likely, high = (a * b for a, b in zip(reach, share, strict=True))
            if share != (1.0, 1.0, 1.0):
                self.meter.reach = (low, likely, high)
            value = self.value(part)
            self.meter.spend(primitive("boolean"))
            truth = self.truth(value)
            if truth is is_or or part is node.values[-1]:
                results.append((share[1], value))
                break
            if truth is None:
                results.append((share[1] * (1 - _GOES_ON[1]), value))
                share = scaled(share, _GOES_ON)
        self.meter.reach = reach
        if len(results) == 1:
            return results[0][1]
        return joined(results)

    def _compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        result: Value = Value("bool")
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            result = self._comparison(op, left, right)
            if len(node.ops) > 1 and self.truth(result) is False:
                return result
            if len(node.ops) > 1 and not result.known:
                result = Value("bool") if result.kind == "bool" else result
            left = right
        return result

    def _comparison(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._contains(left, right)
        sign = _COMPARE_SIGNS.get(type(op))
        for side in (left, right):
            rule = library.operator_rule("array", sign) if side.kind == "array" and sign is not None else None
            if rule is not None and sign is not None:
                return self.apply_rule(rule, sign, [left, right], {}, None)
        self.meter.spend(primitive("is" if isinstance(op, (ast.Is, ast.IsNot)) else "compare"))
        compare = _COMPARE.get(type(op))
        if left.known and right.known and compare is not None:
            try:
                return literal(bool(compare(left.constant, right.constant)))
            except TypeError:
                return Value("bool")
        if isinstance(op, (ast.Is, ast.IsNot)) and "none" in (left.kind, right.kind):
            other = right if left.kind == "none" else left
            if other.kind not in ("unknown", "none"):
                return literal(isinstance(op, ast.IsNot))
        return Value("bool")

    def _contains(self, left: Value, right: Value) -> Value:
        if right.kind in ("list", "tuple", "deque", "array"):
            count = self.length(right)
            checked = mixed([(0.5, ONE), (0.5, count)])
            self.meter.spend(seconds("contains.list.text" if left.kind == "str" else "contains.list", checked))
            return Value("bool")
        if right.kind in ("str", "bytes"):
            self.meter.spend(seconds("contains.text", self.length(right)))
            if left.known and right.known and isinstance(left.constant, str) and isinstance(right.constant, str):
                return literal(left.constant in right.constant)
            return Value("bool")
        if right.kind == "iterator":
            self.consume(right, constant(0.5))
            return Value("bool")
        self.opaque += right.kind in ("unknown", "object")
        self.meter.spend(primitive("contains.range" if right.kind == "range" else "contains.set"))
        return Value("bool")

    def _conditional(self, node: ast.IfExp) -> Value:
        condition = self.judged(node.test)
        share = condition.share
        if share[0] == 1:
            return self.value(node.body)
        if share[2] == 0:
            return self.value(node.orelse)
        results, meters = [], []
        for chance, points, part in (
            (share, condition.hits, node.body),
            (condition.rest, condition.misses, node.orelse),
        ):
            with self.region() as meter:
                self.path = scaled(self.path, chance)
                if condition.variable is not None:
                    condition.variable.points = points
                results.append((chance[1], self.value(part)))
            meters.append((chance, meter))
        if condition.variable is not None:
            condition.variable.points = sorted([*condition.hits, *condition.misses])
        self.meter.branch(meters)
        return joined(results)


def certain(truth: bool) -> Condition:
    """A condition that always holds, or never."""
    share = (1.0, 1.0, 1.0) if truth else (0.0, 0.0, 0.0)
    return Condition(share, rest_of(share))


def _reads_size(test: ast.expr) -> bool:
    """Whether a condition asks for the size of a container, which the first trip of a loop knows and others change."""
    operand = test.operand if isinstance(test, ast.UnaryOp) else test
    return isinstance(operand, ast.Name) or any(
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "len"
        for inner in ast.walk(test)
    )


def rest_of(share: Range) -> Range:
    """How often a condition is false that is true so often."""
    return 1 - share[2], 1 - share[1], 1 - share[0]


def _mentions(node: ast.expr, name: str) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node))
