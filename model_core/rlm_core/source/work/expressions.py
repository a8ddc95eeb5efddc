"""What expressions evaluate to, and what evaluating them costs."""

from __future__ import annotations

import ast
import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlm_core.types import CauseKind

from . import library, object_sizes
from .frames import SAMPLES, Frame, Loop, LoopVariable, State, joined, table_of
from .meter import Meter, scaled
from .quantities import ONE, ZERO, Quantity, Range, constant, exponential, mixed
from .trips import FLIPPED, NEGATED, Counter
from .unit_costs import each, primitive, seconds
from .values import MISSING, NONE, UNKNOWN, Entries, Value

_MOST_BITS = 4096
_MOST_TEXT = 10_000
_MOST_PARTS = 16
_MOST_SHARED = 256  # CPython keeps one object for each small number
_GENERATOR_BYTES = 500.0  # a generator object with its frame
_MOST_DEPTH = 80
_MOST_SAMPLED_NODES = 24
_MOST_PERIOD = 64
_DIGIT_BITS = 30
ENDLESS = 1e290
_SUBSCRIPTS = {"dict": "subscript.dict", "tuple": "subscript.tuple", "str": "subscript.text", "bytes": "subscript.text"}
_SLICES = {"str": "slice.text", "bytes": "slice.text", "tuple": "slice.tuple"}
_FORMATTED = {"int": "fstring.int", "float": "fstring.float"}
_PRODUCERS: dict[type[ast.expr], str] = {
    ast.ListComp: "comprehension", ast.SetComp: "comprehension.set", ast.DictComp: "comprehension.dict",
    ast.GeneratorExp: "generator",
}  # fmt: skip

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Pow: operator.pow,
}  # fmt: skip
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_COMPARE_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_NUMBERS = frozenset({"int", "float", "bool"})
_LARGE_BLOCK = 1 << 20  # bytes
_MOST_COMPILED_TEXT, _MOST_COMPILED_BITS = 4096, 128
_SEQUENCES = frozenset({"list", "tuple", "str", "bytes", "bytearray"})
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict", "str", "bytes", "bytearray", "deque"})


def literal(value: Any) -> Value:
    """A value that the text fixes."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return Value("bool", value, number=constant(float(value)))
    if isinstance(value, int):
        bits = value.bit_length()
        size = constant(bits / _DIGIT_BITS) if bits > 64 else None
        number = constant(float(value)) if bits < 1000 else None
        return Value("int", value, number=number, size=size)
    if isinstance(value, float):
        return Value("float", value, number=constant(value) if math.isfinite(value) else None)
    if isinstance(value, str):
        return Value("str", value, size=constant(len(value)), item=Value("str", size=ONE))
    if isinstance(value, bytes):
        return Value("bytes", value, size=constant(len(value)), item=Value("int"))
    if isinstance(value, tuple):
        return Value("tuple", value, size=constant(len(value)), item=literal(value[0]) if value else UNKNOWN)
    return UNKNOWN


def number_of(value: Value) -> Quantity | None:
    """A number's value; an unknown argument counts as a number of its name."""
    if value.number is not None:
        return value.number
    if value.kind == "unknown" and value.name:
        return Quantity({(((value.name, ""), 1.0),): (1.0, 1.0, 1.0)})
    return None


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


class Expressions(State):
    """Evaluates expressions; calls are left to a subclass."""

    deep = 0

    @abstractmethod
    def call(self, node: ast.Call) -> Value:
        """Evaluate a call."""

    @abstractmethod
    def consume(self, value: Value, share: Quantity | None = None) -> Quantity:
        """The number of items that iterating yields; spends what producing them takes."""

    def value(self, node: ast.expr | None) -> Value:
        """Evaluate an expression."""
        if node is None:
            return NONE
        self.step()
        handler = _HANDLERS.get(type(node))
        if handler is None or self.deep > _MOST_DEPTH:
            return UNKNOWN
        self.deep += 1
        try:
            return handler(self, node)
        finally:
            self.deep -= 1

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
        if truth is not None:
            return Condition((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)) if truth else Condition((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        sampled = self.sampled(test)
        if sampled is not None:
            return sampled
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
            if isinstance(test.ops[0], (ast.Eq, ast.Is, ast.In)):
                return (0.0, 0.3, 1.0)
            if isinstance(test.ops[0], (ast.NotEq, ast.IsNot, ast.NotIn)):
                return (0.0, 0.7, 1.0)
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
        number = variable.at(k)
        self.frame.names[variable.name] = literal(int(number) if number == int(number) else number)
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
                equal = float(at is not None and at[0] < whole)
                return (equal if op is ast.Eq else whole - equal) / whole if at is not None else None
            begins, ends = counter.first(op, limit), counter.first(NEGATED[op], limit)
            if begins is None or ends is None:
                return None
            # A comparison holds either from a trip on or up to one.
            return (min(ends[0], whole) if begins[0] == 0 else whole - min(begins[0], whole)) / whole
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and isinstance(left.right, ast.Constant):
            divisor, step = left.right.value, variable.step
            if not (isinstance(divisor, int) and 0 < divisor <= _MOST_PERIOD and step == int(step)):
                return None
            period = divisor // math.gcd(divisor, int(step))
            held = [self._holds_at(test, variable, k) for k in range(period)]
            self.frame.names[variable.name] = variable.value
            rounds, over = divmod(int(whole), period)
            if None in held or not isinstance(left.left, ast.Name) or _mentions(right, variable.name):
                return None
            return (rounds * sum(map(bool, held)) + sum(map(bool, held[:over]))) / whole
        return None

    # One method per kind of expression.

    def _constant(self, node: ast.Constant) -> Value:
        return literal(node.value)

    def _name(self, node: ast.Name) -> Value:
        value = self.frame.lookup(node.id)
        if value is not None:
            return value
        for frame in reversed(self.open):
            function = frame.node
            is_method = "." in frame.qualname.rpartition("<locals>.")[2]
            if (
                isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
                and function.name == node.id
                and not is_method
            ):
                return Value("user-function", name=node.id, payload=(function, frame))
        return self.global_value(node.id)

    def global_value(self, name: str) -> Value:
        """The value of a name that the function does not bind."""
        scope = self.frame.scope
        text = scope.constant(name)
        if text is not None:
            return self._outer_constant(text)
        definition = scope.function(name)
        if definition is not None and not scope.is_class(name):
            return Value("user-function", name=name, payload=definition)
        if scope.is_class(name):
            return Value("class", name=name)
        dotted = scope.imported(name)
        if dotted is not None:
            return imported_value(dotted)
        if library.rule_for(f"builtins.{name}") is not None:
            return Value("function", name=f"builtins.{name}")
        conventional = library.CONVENTIONAL.get(name)
        if conventional is not None:
            return imported_value(conventional)
        return Value("unknown", name=name)

    def _outer_constant(self, text: str) -> Value:
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return UNKNOWN
        outer, self.frame = self.frame, Frame(self.frame.scope, line=self.frame.line, depth=self.frame.depth + 1)
        try:
            # Computed at import: not paid for by the function, and not its memory.
            value = self.scratch(tree) if self.frame.depth < _MOST_DEPTH // 8 else UNKNOWN
        finally:
            self.frame = outer
        return replace(value, bytes=ZERO)

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        return self.attribute_of(base, node.attr, node)

    def attribute_of(self, base: Value, name: str, node: ast.Attribute | None = None) -> Value:
        """An attribute of a value."""
        if base.kind == "module":
            return imported_value(f"{base.name}.{name}")
        self.meter.spend(primitive("load.attribute"))
        if isinstance(base.payload, dict) and name in base.payload:
            stored: Value = base.payload[name]
            return stored
        computed = self.property_of(base, name)
        if computed is not None:
            return computed
        self.opaque += base.kind in ("unknown", "object", "class")
        if base.kind == "unknown" and base.name == "self":
            known_attribute = self.instance_attribute(name)
            if known_attribute is not None:
                return known_attribute
        known = library.attribute(base, name)
        if known is not None:
            return known
        owner = self._class_of(base)
        if owner is not None:
            text = self.frame.scope.constant(f"{owner}.{name}")
            if text is not None:
                return self._outer_constant(text)
        if base.kind == "unknown" and base.name:
            return Value("unknown", name=f"{base.name}.{name}")
        return UNKNOWN

    @abstractmethod
    def property_of(self, base: Value, name: str) -> Value | None:
        """What a property of the program's own classes returns; spends what it costs."""

    @abstractmethod
    def instance_attribute(self, name: str) -> Value | None:
        """What ``__init__`` stores in an attribute of ``self``, None where that is not known."""

    def _class_of(self, base: Value) -> str | None:
        if base.kind == "class":
            return base.name
        if base.kind == "object" and base.payload is not None:
            return base.name
        if base.kind == "unknown" and base.name in ("self", "cls"):
            return self.frame.qualname.split(".<locals>")[0].rpartition(".")[0] or None
        return None

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if self._is_compiled(node.left) and self._is_compiled(node.right):
            computed = _compiled(node.op, left.constant, right.constant)
            if computed is not None:
                self.compiled.add(id(node))
                return replace(computed, bytes=ZERO)
        if "array" in (left.kind, right.kind):
            left = library.temporary(left) if not is_stored(node.left) else left
            right = library.temporary(right) if not is_stored(node.right) else right
        result = self.operation(node.op, left, right)
        temporaries = [
            value
            for value, part in ((left, node.left), (right, node.right))
            if not is_stored(part) and value is not result.payload
        ]
        if result.kind == "array":
            result = replace(result, payload=None)
        self.hold(result, *temporaries)
        return result

    def _is_compiled(self, node: ast.expr) -> bool:
        """Whether an expression is a constant when the program runs."""
        if isinstance(node, ast.UnaryOp):
            node = node.operand
        return isinstance(node, ast.Constant) or id(node) in self.compiled

    def operation(self, op: ast.operator, left: Value, right: Value) -> Value:
        """A binary operation; spends what it costs."""
        sign = _SIGNS[type(op)]
        for side in (left, right):
            rule = library.operator_rule(side.kind, sign) if side.kind == "array" else None
            if rule is not None:
                return self.apply_rule(rule, sign, [left, right], {}, None)
        if left.kind in _NUMBERS and right.kind in _NUMBERS:
            boxed = next((side for side in (left, right) if side.name.startswith("numpy.")), None)
            if boxed is not None:
                self.meter.spend(primitive("numpy.number"))
                return replace(boxed, constant=MISSING, number=None)
            return self._arithmetic(op, left, right)
        if isinstance(op, ast.Mult):
            for text, count in ((left, right), (right, left)):
                if text.kind in _SEQUENCES and count.kind in ("int", "bool", "unknown"):
                    return self._repeated(text, count)
        if isinstance(op, ast.Add) and left.kind in _SEQUENCES and (right.kind in (left.kind, "unknown")):
            return self._concatenated(left, right)
        if isinstance(op, ast.Mod) and left.kind in ("str", "bytes"):
            self.meter.spend(primitive("percent"))
            return Value("str", size=left.size, bytes=constant(60))
        if left.kind in ("set", "dict", "frozenset") and isinstance(op, (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)):
            items = self.length(left)
            if isinstance(op, (ast.BitOr, ast.BitXor)):
                items = items + self.length(right)
            self.meter.spend(seconds("build.set", items))
            return replace(left, constant=MISSING, size=items, bytes=object_sizes.container(left.kind, items))
        if left.kind == "unknown" or right.kind == "unknown":
            self.opaque += 1
            self.meter.spend(primitive("binary.int"))
            number = _combined(op, number_of(left), number_of(right))
            return Value("unknown", number=number)
        self.meter.spend(primitive("binary.int"))
        return UNKNOWN

    def _arithmetic(self, op: ast.operator, left: Value, right: Value) -> Value:
        is_float = "float" in (left.kind, right.kind) or isinstance(op, ast.Div)
        if left.known and right.known:
            folded = _folded(op, left.constant, right.constant)
            if folded is not MISSING:
                self.meter.spend(_operation_seconds(op, is_float=is_float))
                result = literal(folded)
                if isinstance(op, ast.Pow) and result.size is not None:
                    self.meter.spend(seconds("bigint.multiply", result.size.times(0.5)))
                return replace(result, bytes=constant(object_sizes.scalar(result.kind, folded)))
        if isinstance(op, ast.Pow) and not is_float:
            return self._big_power(left, right)
        if isinstance(op, ast.LShift) and left.size is None and right.number is not None:
            left = replace(left, size=ONE) if right.number.evaluate(lambda name: 10.0)[1] > _MOST_BITS else left
        number = _combined(op, number_of(left), number_of(right))
        if is_float:
            self.meter.spend(_operation_seconds(op, is_float=True))
            return Value("float", number=number, bytes=constant(object_sizes.scalar("float")))
        digits = self._digits(op, left, right)
        if digits is None:
            self.meter.spend(_operation_seconds(op, is_float=False))
            limits = number.constant if number is not None else None
            is_shared = limits is not None and limits[0] >= 0 and limits[2] <= _MOST_SHARED and limits[0] < limits[2]
            return Value("int", number=number, bytes=ZERO if is_shared else constant(object_sizes.scalar("int")))
        return Value("int", number=number, size=digits, bytes=digits.times(4.0) + constant(24))

    def _digits(self, op: ast.operator, left: Value, right: Value) -> Quantity | None:
        """The digits of a large result; pays for the operation. None where both numbers are small."""
        if left.size is None and right.size is None:
            return None
        if isinstance(op, ast.LShift) and right.number is not None:
            digits = (left.size or ONE) + right.number.times(1 / _DIGIT_BITS)
            self.meter.spend(seconds("bigint.shift", digits))
            return digits
        both = [value.size for value in (left, right) if value.size is not None]
        longest = both[0] if len(both) == 1 else mixed([(0.5, both[0]), (0.5, both[1])])
        if isinstance(op, ast.Mult) and len(both) == 2:
            self.meter.spend(seconds("bigint.multiply", longest))
            return both[0] + both[1]
        if isinstance(op, (ast.FloorDiv, ast.Mod)) and len(both) == 2:
            self.meter.spend(seconds("bigint.divide", longest))
            return both[1] if isinstance(op, ast.Mod) else both[0]
        if isinstance(op, (ast.Mod, ast.FloorDiv)) and right.size is None:
            self.meter.spend(seconds("bigint.divide.small", longest))
            return None if isinstance(op, ast.Mod) else longest
        is_product = isinstance(op, ast.Mult)
        self.meter.spend(seconds("bigint.small" if is_product else "bigint.add", longest))
        return longest + ONE if is_product else longest

    def _big_power(self, left: Value, right: Value) -> Value:
        base, exponent = number_of(left), number_of(right)
        self.meter.spend(primitive("binary.int") * 4)
        if base is None or exponent is None:
            return Value("int")
        base_value, power = base.constant, exponent.constant
        if base_value is not None and max(abs(base_value[0]), abs(base_value[2])) <= 1:
            return Value("int", number=constant(base_value[0], 1.0))
        if power is None or base_value is None:
            if base_value is not None and base_value[1] > 1:
                return Value("int", number=exponential(base_value[1], exponent))
            return Value("int", number=base.power(power[1]) if power is not None and 0 <= power[1] <= 8 else None)
        bits = max(power[1], 0.0) * math.log2(max(base_value[1], 2.0))
        number = base.power(power[1]) if bits < 900 and power[1] >= 0 else None
        if bits <= _MOST_BITS:
            return Value("int", number=number, bytes=constant(bits / 8 + 28))
        digits = constant(bits / _DIGIT_BITS)
        if math.log2(max(base_value[1], 2.0)) % 1 == 0:
            # Most digits of a power of two are zeros.
            self.meter.spend(seconds("bigint.multiply", digits.times(0.5)).times(0.1))
        else:
            self.meter.spend(seconds("bigint.multiply", digits.times(0.5)).times(1.5))
        return Value("int", size=digits, bytes=digits.times(4.0))

    def _repeated(self, text: Value, count: Value) -> Value:
        times = number_of(count)
        if times is None:
            times = self.named_size(count)
        if text.known and count.known and isinstance(text.constant, (str, bytes)):
            length = len(text.constant) * max(int(count.constant), 0)
            if length <= _MOST_TEXT:
                folded = literal(text.constant * int(count.constant))
                return replace(folded, bytes=object_sizes.container(text.kind, constant(length)))
        size = self.length(text) * times
        if text.name == "array.array":
            width = text.bytes - constant(object_sizes.ARRAY_HEADER)
            result = replace(text, size=size, bytes=width * times + constant(object_sizes.ARRAY_HEADER))
            self.meter.spend(seconds("repeat.text", result.bytes))
            self._note_allocation(result)
            return result
        self.meter.spend(seconds("repeat.list" if text.kind in ("list", "tuple") else "repeat.text", size))
        held = object_sizes.container(text.kind, size)
        if text.kind in ("list", "tuple"):
            held = held + (
                text.bytes - object_sizes.container(text.kind, self.length(text)) if text.bytes.terms else ZERO
            )
        result = Value(text.kind, size=size, item=text.item, bytes=held)
        self._note_allocation(result)
        return result

    def _note_allocation(self, value: Value, name: str = "") -> None:
        _low, likely, _ = value.bytes.evaluate(lambda size: 10.0)
        if likely >= _LARGE_BLOCK and value.kind != "array" and name != "bytes":
            self.meter.spend(library.new_pages(table_of(value)))
        if likely >= 1 << 16:
            self.meter.cause(CauseKind.ALLOCATION, self.frame.line, name or value.kind, value.bytes)

    def _concatenated(self, left: Value, right: Value) -> Value:
        if left.known and right.known and isinstance(left.constant, (str, bytes, tuple)):
            try:
                if len(left.constant) + len(right.constant) <= _MOST_TEXT:
                    self.meter.spend(primitive("concat.text"))
                    return literal(left.constant + right.constant)
            except TypeError:
                return UNKNOWN
        size = self.length(left) + self.length(right)
        self.meter.spend(seconds(f"concat.{left.kind}" if left.kind in ("list", "tuple") else "concat.text", size))
        item = left.item if left.item is not None else right.item
        held = object_sizes.container(left.kind, size)
        return Value(left.kind, size=size, item=item, bytes=held)

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            return literal(not truth) if truth is not None else Value("bool")
        if value.known and isinstance(value.constant, (int, float)):
            folded = value.constant
            if isinstance(node.op, ast.USub):
                return literal(-folded)
            if isinstance(node.op, ast.Invert):
                return literal(~folded) if isinstance(folded, int) else UNKNOWN
            return literal(+folded)
        if value.kind == "array":
            rule = library.operator_rule("array", "-")
            return self.apply_rule(rule, "-", [value, literal(0)], {}, None) if rule is not None else value
        self.meter.spend(primitive("unary"))
        number = number_of(value)
        return replace(value, constant=MISSING, number=number.times(-1.0) if number is not None else None)

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
                results.append((share[1] / 2, value))
                share = (0.0, share[1] / 2, share[2])
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

    def _sequence(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        kind = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[type(node)]
        parts: list[Value] = []
        size, held = ZERO, ZERO
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner = self.value(element.value)
                size = size + self.consume(inner)
                parts.append(inner.item or UNKNOWN)
            else:
                part = self.value(element)
                parts.append(part)
                size = size + ONE
                if not is_stored(element):
                    held = held + part.bytes
        if kind == "tuple" and parts and all(part.known for part in parts) and len(parts) == len(node.elts):
            return (
                literal(tuple(part.constant for part in parts)) if len(parts) <= 64 else _sized(kind, parts, size, held)
            )
        self.meter.spend(seconds(f"build.{kind}", size))
        value = _sized(kind, parts, size, held + object_sizes.container(kind, size))
        if kind in ("tuple", "list") and len(parts) == len(node.elts) <= _MOST_PARTS:
            value = replace(value, payload=tuple(parts))
        self.hold(value)
        return value

    def _dict(self, node: ast.Dict) -> Value:
        keys = [self.value(key) for key in node.keys if key is not None]
        entries = self.values(node.values)
        size = constant(len(keys))
        held = ZERO
        for part, value in zip(node.values, entries, strict=True):
            if not is_stored(part):
                held = held + value.bytes
        for key, value in zip(node.keys, entries, strict=True):
            if key is None:
                size = size + self.length(value)
        self.meter.spend(seconds("build.dict", size))
        item = joined([(1 / len(keys), replace(key, bytes=ZERO)) for key in keys]) if keys else UNKNOWN
        entry = joined([(1 / len(entries), replace(value, bytes=ZERO)) for value in entries]) if entries else UNKNOWN
        bytes_ = held + object_sizes.container("dict", size)
        parts = None
        if len(keys) == len(node.keys) <= _MOST_PARTS and all(key.known for key in keys):
            pairs = ((key.constant, replace(value, bytes=ZERO)) for key, value in zip(keys, entries, strict=True))
            parts = Entries(tuple(pairs))
        result = Value("dict", size=size, item=item, entry=entry, bytes=bytes_, payload=parts)
        self.hold(result)
        return result

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        if base.kind == "array":
            index = self._index(node.slice)
            rule = library.operator_rule("array", "[]")
            if rule is None:
                return UNKNOWN
            chosen = self.apply_rule(rule, "[]", [base, index], {}, None)
            self.hold(chosen, *(() if isinstance(node.slice, ast.Name) else (index,)))
            return chosen
        if isinstance(node.slice, ast.Slice):
            return self._slice_of(base, node.slice)
        index = self.value(node.slice)
        if base.known and index.known:
            try:
                return literal(base.constant[index.constant])
            except (TypeError, IndexError, KeyError, ValueError):
                return UNKNOWN
        if (
            isinstance(base.payload, tuple)
            and index.known
            and isinstance(index.constant, int)
            and base.kind in ("tuple", "list")
        ):
            part = base.payload[index.constant] if -len(base.payload) <= index.constant < len(base.payload) else None
            return replace(part, bytes=ZERO) if isinstance(part, Value) else UNKNOWN
        self.opaque += base.kind in ("unknown", "object")
        self.meter.spend(primitive(_SUBSCRIPTS.get(base.kind, "subscript.list")))
        if base.kind == "dict" and index.known:
            stored = entry_of(base, index.constant)
            if stored is not None:
                return stored
        item = base.entry if base.kind == "dict" else base.item
        if item is not None:
            return replace(item, bytes=ZERO)
        if base.kind == "unknown" and base.name:
            return Value("unknown", name=f"{base.name}[]")
        return UNKNOWN

    def _index(self, node: ast.expr) -> Value:
        """The index of an array: a value, a slice, or a tuple of them."""
        if isinstance(node, ast.Slice):
            bounds = tuple(
                self.value(part) if part is not None else NONE for part in (node.lower, node.upper, node.step)
            )
            return Value("slice", payload=bounds)
        if isinstance(node, ast.Tuple):
            return Value("tuple", size=constant(len(node.elts)), payload=tuple(self._index(part) for part in node.elts))
        return self.value(node)

    def _slice_of(self, base: Value, node: ast.Slice) -> Value:
        lower, upper, step = (
            self.value(part) if part is not None else None for part in (node.lower, node.upper, node.step)
        )
        if base.known and all(part is None or part.known for part in (lower, upper, step)):
            try:
                bounds = slice(*(part.constant if part is not None else None for part in (lower, upper, step)))
                self.meter.spend(primitive("slice"))
                return literal(base.constant[bounds])
            except (TypeError, ValueError):
                return UNKNOWN
        size = self.sliced_size(self.length(base), lower, upper, step)
        self.meter.spend(seconds(_SLICES.get(base.kind, "slice"), size))
        kind = base.kind if base.kind in _SEQUENCES else "list" if base.kind == "unknown" else base.kind
        held = object_sizes.container(kind, size) if kind in _SEQUENCES else ZERO
        item = base.item if base.item is not None else Value("unknown", name=f"{base.name}[]" if base.name else "")
        result = Value(kind, size=size, item=item, bytes=held, payload=None)
        self.hold(result)
        return result

    def sliced_size(self, whole: Quantity, lower: Value | None, upper: Value | None, step: Value | None) -> Quantity:
        """The number of items in a slice of ``whole`` items."""
        total = whole.exact
        if total is not None and total < 2**53 and all(part is None or part.known for part in (lower, upper, step)):
            try:
                bounds = slice(*(None if part is None else part.constant for part in (lower, upper, step)))
                return constant(len(range(*bounds.indices(round(total)))))
            except (TypeError, ValueError):
                return whole

        def bound(value: Value | None, default: Quantity) -> Quantity:
            if value is None or value.kind == "none":
                return default
            number = number_of(value)
            if number is None:
                return default.times(0.5)
            exact = number.exact
            if exact is not None and exact < 0:
                return whole + number
            fixed, total = number.constant, whole.constant
            if fixed is not None and total is not None:
                low, likely, high = (max(min(a, b), 0.0) for a, b in zip(fixed, total, strict=True))
                return Quantity({(): (low, likely, high)})
            return number

        size = bound(upper, whole) - bound(lower, ZERO)
        if step is not None and step.known and isinstance(step.constant, (int, float)) and abs(step.constant) > 1:
            size = size.times(1 / abs(step.constant))
        fixed = size.constant
        if fixed is not None:
            low, likely, high = (max(value, 0.0) for value in fixed)
            return Quantity({(): (low, likely, high)})
        return size

    def _joined_text(self, node: ast.JoinedStr) -> Value:
        size = ZERO
        texts: list[str] | None = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                size = size + constant(len(str(part.value)))
                if texts is not None:
                    texts.append(str(part.value))
                continue
            if isinstance(part, ast.FormattedValue):
                inner = self.value(part.value)
                self.opaque += inner.kind in ("unknown", "object")
                self.meter.spend(primitive(_FORMATTED.get(inner.kind, "fstring")))
                if (
                    inner.known
                    and texts is not None
                    and part.format_spec is None
                    and len(str(inner.constant)[:200]) < 200
                ):
                    texts.append(str(inner.constant))
                    size = size + constant(len(str(inner.constant)))
                else:
                    texts = None
                    size = size + (inner.size if inner.kind == "str" and inner.size is not None else constant(4.0))
        self.meter.spend(seconds("concat.text", size))
        if texts is not None and sum(map(len, texts)) < _MOST_TEXT:
            return literal("".join(texts))
        return Value("str", size=size, item=Value("str", size=ONE), bytes=object_sizes.container("str", size))

    def _lambda(self, node: ast.Lambda) -> Value:
        self.meter.spend(primitive("lambda"))
        return Value("user-function", payload=(node, self.frame))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> Value:
        kind = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict"}[type(node)]
        names, held_before = dict(self.frame.names), self.frame.held
        self.meter.spend(primitive(_PRODUCERS[type(node)]))
        with self.region() as body:
            count, item, entry = self._generated(node.generators, node, body)
        self.frame.restore(names, held_before)
        if kind != "list":
            count = distinct(item, count)
        held = object_sizes.container(kind, count, grown=True) + item.bytes * count
        if entry is not None:
            held = held + entry.bytes * count
        self.meter.add(body)
        for fresh in (item, entry):
            if fresh is not None and fresh.bytes.terms:
                self.meter.spend(library.collection_cost(fresh, count))
        bare = replace(item, bytes=ZERO)
        result = Value(
            kind, size=count, item=bare, entry=replace(entry, bytes=ZERO) if entry is not None else None, bytes=held
        )
        self.hold(result)
        self._note_allocation(result, "comprehension")
        return result

    def _generated(
        self, generators: list[ast.comprehension], node: ast.expr, outer: Meter
    ) -> tuple[Quantity, Value, Value | None]:
        """The number of elements that nested loops of a comprehension yield, and an average element; all paid for."""
        first, rest = generators[0], generators[1:]
        iterable = self.value(first.iter)
        trips = self.consume(iterable)
        variable = self.bind_items(first.target, iterable)
        if variable is not None:
            variable.restart()
        self.frame.loops.append(Loop(variable))
        share = ONE
        with self.region() as body:
            for test in first.ifs:
                condition = self.judged(test)
                if condition.variable is not None:
                    condition.variable.points = condition.hits
                self.meter.spend(primitive("branch"))
                share = share * Quantity({(): condition.share})
            with self.region() as inner:
                entry: Value | None = None
                if rest:
                    self.meter.spend(primitive("loop.start"))
                    count, item, entry = self._generated(rest, node, inner)
                else:
                    count = ONE
                    if isinstance(node, ast.DictComp):
                        item, entry = self.value(node.key), self.value(node.value)
                        if is_stored(node.value) and entry.kind not in _NUMBERS:
                            entry = replace(entry, bytes=ZERO)
                    else:
                        element = node.elt  # type: ignore[attr-defined]
                        item = self.value(element)
                        if is_stored(element) and item.kind not in _NUMBERS:
                            item = replace(item, bytes=ZERO)
                    self.meter.spend(each(_PRODUCERS[type(node)]))
            self.meter.add(inner, share)
        self.frame.loops.pop()
        outer.add(body, trips)
        _low, likely, _high = trips.evaluate(lambda name: 10.0)
        if likely >= 1000:
            outer.cause(CauseKind.LOOP, self.frame.line, first.iter, body.total * trips, trips)
        return count * share * trips, item, entry

    def _generator(self, node: ast.GeneratorExp) -> Value:
        names, held_before = dict(self.frame.names), self.frame.held
        first = node.generators[0]
        iterable = self.value(first.iter)
        self.meter.spend(primitive("generator"))
        self.meter.hold(self.frame.held + constant(_GENERATOR_BYTES))
        body = Meter(self.meter.parallel)
        with self.region(body):
            count, item, _ = self._lazily(node, iterable, body)
        self.frame.restore(names, held_before)
        result = Value("iterator", size=count, item=item, payload=body, name="generator", bytes=object_sizes.GENERATOR)
        if library.is_endless(iterable.size):
            result = replace(without_end(item, body), name="generator", bytes=object_sizes.GENERATOR)
        self.hold(result)
        return result

    def _lazily(self, node: ast.GeneratorExp, iterable: Value, body: Meter) -> tuple[Quantity, Value, None]:
        # The first iterable is evaluated when the generator is made; all the rest when it is consumed.
        stand_in = ast.comprehension(node.generators[0].target, _Evaluated(iterable), node.generators[0].ifs, 0)
        count, item, _ = self._generated([stand_in, *node.generators[1:]], node, body)
        return count, item, None

    def bind_items(self, target: ast.expr, iterable: Value) -> LoopVariable | None:
        """Bind a loop's target to an average item; the loop variable where it runs over known numbers."""
        item = iterable.item if iterable.item is not None else Value("unknown", name=_label(target))
        if item.kind == "unknown" and not item.name and isinstance(target, ast.Name):
            item = Value("unknown", name=target.id)
        if iterable.kind not in ("range", "iterator"):
            item = replace(item, bytes=ZERO)
        self.bind_target(target, item)
        bounds = iterable.payload if iterable.kind == "range" or iterable.name == library.COUNTING else None
        if isinstance(target, ast.Name) and isinstance(bounds, tuple) and len(bounds) == 3:
            return LoopVariable(target.id, *bounds, value=item)
        return None

    def bind_target(self, target: ast.expr, value: Value) -> None:
        """Bind the names of an assignment's target."""
        if isinstance(target, ast.Name):
            self.frame.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.meter.spend(primitive("unpack"))
            parts = value.payload if isinstance(value.payload, tuple) and value.kind in ("tuple", "list") else None
            if parts is None and value.known and isinstance(value.constant, tuple):
                parts = tuple(literal(part) for part in value.constant)
            for index, element in enumerate(target.elts):
                inner = element.value if isinstance(element, ast.Starred) else element
                if parts is not None and index < len(parts) and isinstance(parts[index], Value):
                    self.bind_target(inner, parts[index])
                else:
                    item = value.item if value.item is not None and value.kind != "unknown" else None
                    self.bind_target(inner, item or Value("unknown", name=_label(inner)))
        elif isinstance(target, ast.Starred):
            self.bind_target(target.value, value)
        elif isinstance(target, ast.Subscript):
            self.store_item(target, value)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            self.meter.spend(primitive("store.attribute"))
            if isinstance(base.payload, dict) and base.kind == "object":
                base.payload[target.attr] = value
                if value.bytes.terms:
                    self.frame.held = self.frame.held + value.bytes

    def store_item(self, target: ast.Subscript, value: Value) -> None:
        """``target[index] = value``: a dict may get an item more."""
        base = self.value(target.value)
        index = self._index(target.slice)
        if base.kind == "array":
            rule = library.operator_rule("array", "[]=")
            if rule is not None:
                self.apply_rule(rule, "[]=", [base, index, value], {}, None)
            return
        self.meter.spend(primitive("store.dict" if base.kind == "dict" else "store.subscript"))
        if base.kind == "dict" and isinstance(target.value, ast.Name) and not _is_update(base, index):
            self.grown(target.value.id, base, ONE, index, value)

    def grown(self, name: str, base: Value, count: Quantity, item: Value, entry: Value | None = None) -> None:
        """Rebind a container that got ``count`` items more."""
        size = self.length(base) + count
        added = item.bytes * count + (entry.bytes * count if entry is not None else ZERO)
        if item.bytes.terms:
            self.meter.spend(library.collection_cost(item, count))
        kind = base.kind
        shell = object_sizes.container(kind, size, grown=True) - object_sizes.container(
            kind, self.length(base), grown=True
        )
        self.frame.bind(
            name,
            replace(
                base,
                constant=MISSING,
                size=size,
                item=base.item if base.item is not None and base.item.kind != "unknown" else replace(item, bytes=ZERO),
                entry=base.entry
                if entry is None or (base.entry is not None and base.entry.kind != "unknown")
                else replace(entry, bytes=ZERO),
                bytes=base.bytes + added + shell,
                payload=None,
            ),
        )
        self.hold()

    def _await(self, node: ast.Await) -> Value:
        self.meter.spend(primitive("await"))
        return self.value(node.value)

    def _yield(self, node: ast.Yield) -> Value:
        value = self.value(node.value)
        self.frame.yields = self.frame.yields + self.meter.weighted(ONE)
        self.meter.spend(primitive("yield"))
        self.frame.results.append((1.0, value))
        return UNKNOWN

    def _yield_from(self, node: ast.YieldFrom) -> Value:
        value = self.value(node.value)
        count = self.consume(value)
        self.meter.spend(count.times(primitive("yield")))
        self.frame.yields = self.frame.yields + self.meter.weighted(count)
        self.frame.results.append((1.0, value.item or UNKNOWN))
        return UNKNOWN

    def _named(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.bind_target(node.target, value)
        return value

    def _starred(self, node: ast.Starred) -> Value:
        return self.value(node.value)

    def _evaluated(self, node: _Evaluated) -> Value:
        return node.result

    def _call(self, node: ast.Call) -> Value:
        return self.call(node)

    @abstractmethod
    def apply_rule(
        self, rule: library.Rule, name: str, args: Sequence[Value], keywords: dict[str, Value], receiver: Value | None
    ) -> Value:
        """Let a rule of the library work out a call."""


class _Evaluated(ast.expr):
    """An expression whose value is known already."""

    _fields = ()

    def __init__(self, result: Value) -> None:
        super().__init__()
        self.result = result


def rest_of(share: Range) -> Range:
    """How often a condition is false that is true so often."""
    return 1 - share[2], 1 - share[1], 1 - share[0]


def _mentions(node: ast.expr, name: str) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node))


def without_end(item: Value, body: Meter) -> Value:
    """An iterator without end, which is not a fault while it is not consumed; ``body`` is what one item costs."""
    rest = Meter(body.parallel, unknown=body.unknown, waits=body.waits, causes=body.causes)
    return Value("iterator", size=library.ENDLESS, item=item, step=body.total, payload=rest)


def distinct(item: Value, count: Quantity) -> Quantity:
    """The number of different values among ``count`` items: a remainder has only as many as its divisor."""
    number, total = item.number, count.constant
    limits = number.constant if number is not None and item.kind in ("int", "unknown") else None
    if limits is None or total is None or limits[0] == limits[2]:
        return count
    most = limits[2] - limits[0] + 1
    low, likely, high = (min(value, most) for value in total)
    return Quantity({(): (low, likely, high)})


def entry_of(base: Value, key: object) -> Value | None:
    """The value of a key in a dict display."""
    if isinstance(base.payload, Entries):
        for known, value in base.payload.pairs:
            if type(known) is type(key) and known == key:
                return value
    return None


def _is_update(base: Value, index: Value) -> bool:
    return index.known and entry_of(base, index.constant) is not None


def _label(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


def _sized(kind: str, parts: list[Value], size: Quantity, held: Quantity) -> Value:
    item = joined([(1 / len(parts), replace(part, bytes=ZERO)) for part in parts]) if parts else UNKNOWN
    return Value(kind, size=size, item=item, bytes=held)


def is_stored(node: ast.expr) -> bool:
    """Whether an expression only refers to an object that something else holds."""
    is_part = isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)
    return is_part or isinstance(node, (ast.Name, ast.Attribute, ast.Constant))


def imported_value(dotted: str) -> Value:
    """What a dotted name of a library is: a constant, a function with or without a rule, or a module."""
    known = library.attribute(Value("module", name=dotted.rpartition(".")[0]), dotted.rpartition(".")[2])
    if known is not None:
        return known
    if library.rule_for(dotted) is not None:
        return Value("function", name=dotted)
    return Value("module", name=dotted)


def _compiled(op: ast.operator, left: Any, right: Any) -> Value | None:
    """The constant that CPython's compiler makes of an operation on constants; None for one that it leaves.

    Source of the limits: ``Python/ast_opt.c`` of CPython 3.12.
    """
    if MISSING in (left, right):
        return None
    for text, count in ((left, right), (right, left)):
        if isinstance(text, (str, bytes)) and isinstance(op, ast.Mult):
            if not isinstance(count, int) or len(text) * count > _MOST_COMPILED_TEXT:
                return None
            return literal(text * count)
    if isinstance(left, (str, bytes)) or isinstance(right, (str, bytes)):
        return literal(left + right) if isinstance(op, ast.Add) and type(left) is type(right) else None
    result = _folded(op, left, right)
    if isinstance(result, int) and result.bit_length() > _MOST_COMPILED_BITS:
        return None
    return literal(result) if isinstance(result, (int, float)) else None


def _folded(op: ast.operator, left: Any, right: Any) -> Any:
    """The value of an operation on numbers; ``MISSING`` where it would be large or fails."""
    try:
        if isinstance(op, (ast.Pow, ast.LShift)):
            if isinstance(left, int) and isinstance(right, int):
                bits = (
                    right + left.bit_length() if isinstance(op, ast.LShift) else abs(right) * max(left.bit_length(), 1)
                )
                if bits > _MOST_BITS:
                    return MISSING
            elif isinstance(op, ast.LShift):
                return MISSING
        result = _BINARY[type(op)](left, right)
    except (ArithmeticError, TypeError, ValueError, KeyError):
        return MISSING
    if isinstance(result, complex):
        return MISSING
    return result


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
    if left is None or right is None:
        return None
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


_HANDLERS: dict[type[ast.expr], Callable[[Any, Any], Value]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._boolean,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._conditional,
    ast.List: Expressions._sequence,
    ast.Tuple: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Dict: Expressions._dict,
    ast.Subscript: Expressions._subscript,
    ast.JoinedStr: Expressions._joined_text,
    ast.Lambda: Expressions._lambda,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._generator,
    ast.Await: Expressions._await,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
    ast.NamedExpr: Expressions._named,
    ast.Starred: Expressions._starred,
    ast.Call: Expressions._call,
    _Evaluated: Expressions._evaluated,
}
