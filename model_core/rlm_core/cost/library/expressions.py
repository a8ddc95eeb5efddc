"""Expressions of the tables: quantities and values in terms of a call's arguments, in a small part of Python's syntax.

Quantities are numbers, ``+ - * / **``, and

    len(x), items(x)            items or characters; iterating over ``items`` is paid for
    number(x)                   the value of a number; not known of most arguments
    a or b                      b where a is not known
    between(low, likely, high)  a range; without the likely value, the geometric mean
    log2(q), some(q)            the logarithm; one or all, equally likely
    str.find, str.find(q)       seconds: the fixed part of the unit cost of that name; all of it, for q items
    each(str.find)              seconds per item

Values are

    x, self                     an argument, the object of a method
    None, bool, int, float      without more, any value of the kind
    tuple(size=2, item=float)   a kind with fields of :class:`Value`; a kind alone has none
    object(io.StringIO, bytes=200)   an object of a type; ``owner`` is that of the method, or the function itself
    str[q], bytes[q], text[q]   with their memory; ``text`` is of the kind of the object
    int[q], float[q], index[q]  a number of that value, an int of at most that value
    list[q, item], grown[q, item]    with fresh items; the second with the room that appending reserves
    lazy(q, item, step)         an iterator, and the seconds per item
    array[q], pandas.Series[q]  an array of so many elements, an object of a type with so many rows
    item(x), entry(x), bare(x)  an item of a container, a value of a dict, a value without its memory
    pair(x, y)                  a fresh tuple
    literal(1.5)                a constant
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..domain import object_sizes
from ..domain.quantities import ONE, Quantity, constant, mixed
from ..domain.values import NONE, UNKNOWN, Call, Value, number_of
from . import rules
from .unit_costs import each, primitive, seconds


@dataclass(slots=True)
class Arguments:
    """The arguments of a call by the names of the signature; an iterable is consumed once however often it is named."""

    call: Call
    parameters: Mapping[str, tuple[int, tuple[str, ...]]]
    receiver: Value | None = None
    is_method: bool = False
    consumed: dict[str, Quantity] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """The argument of a parameter, ``UNKNOWN`` if it is absent."""
        if name == "self":
            return self.receiver if self.receiver is not None else rules.receiver(self.call)
        position, keywords = self.parameters[name]
        if self.is_method and position >= 0 and rules.bound(self.call) is None:
            position += 1
        return rules.argument(self.call, position, *keywords)

    def length(self, name: str) -> Quantity | None:
        """The number of items of an argument."""
        return self.call.length(self.value(name))

    def items(self, name: str) -> Quantity:
        """The number of items of an argument that is iterated over."""
        if name not in self.consumed:
            self.consumed[name] = self.call.consume(self.value(name))
        return self.consumed[name]


class AttributeOwner(Arguments):
    """The owner of an attribute as ``self``: reading an attribute is not a call."""

    def __init__(self, owner: Value) -> None:
        super().__init__(None, {}, owner)  # type: ignore[arg-type] # what an attribute states asks for nothing of it

    def length(self, name: str) -> Quantity | None:
        """The number of items of the owner; None where it is not known."""
        return self.value(name).size


Evaluated = Callable[[Arguments], Any]
_PLAIN: dict[str, Value] = {
    "None": NONE, "unknown": UNKNOWN, "bool": rules.BOOL, "int": rules.INT, "float": rules.FLOAT,
}  # fmt: skip
_KINDS = frozenset({
    "int", "float", "bool", "complex", "str", "bytes", "bytearray", "array", "list", "tuple", "set", "dict", "slice",
    "memoryview", "iterator", "view", "class", "object", "function", "module", "unknown",
})  # fmt: skip
_TEXTS = frozenset({"str", "bytes", "text"})
_FIELDS = frozenset({"size", "item", "entry", "bytes", "number", "name"})


class Compiler:
    """Compiles the expressions of one entry; an error is a ``ValueError`` or a ``KeyError`` without a place."""

    def __init__(self, parameters: Mapping[str, tuple[int, tuple[str, ...]]], owner: str) -> None:
        self._parameters, self._owner = parameters, owner

    def quantity(self, text: str) -> Evaluated:
        """A quantity that may be None where it rests on a number that is not known."""
        return self._quantity(_tree(text))

    def value(self, text: str) -> Evaluated:
        """A value."""
        if text in _KINDS and text not in _PLAIN:  # also ``class``, which Python cannot parse
            return _always(Value(text) if text != "unknown" else UNKNOWN)
        return self._value(_tree(text))

    def _name(self, node: ast.expr) -> str:
        name = _dotted(node)
        if name != "self" and name not in self._parameters:
            raise ValueError(f"{name!r} is not a parameter")
        return name

    def _quantity(self, node: ast.expr) -> Evaluated:
        match node:
            case ast.Constant(value=int() | float() as number):
                return _always(constant(float(number)))
            case ast.BinOp():
                return self._operation(node)
            case ast.BoolOp(op=ast.Or(), values=[first, second]):
                known, other = self._quantity(first), self._quantity(second)
                return lambda call: known(call) or other(call)
            case ast.Call(func=ast.Name(id="len"), args=[argument]):
                name = self._name(argument)
                return lambda call: call.length(name)
            case ast.Call(func=ast.Name(id="items"), args=[argument]):
                name = self._name(argument)
                return lambda call: call.items(name)
            case ast.Call(func=ast.Name(id="number"), args=[argument]):
                name = self._name(argument)
                return lambda call: number_of(call.value(name))
            case ast.Call(func=ast.Name(id="log2"), args=[of]):
                return _computed(lambda number: number.log(), self._quantity(of))
            case ast.Call(func=ast.Name(id="some"), args=[of]):
                return _computed(lambda count: mixed([(0.5, ONE), (0.5, count)]), self._quantity(of))
            case ast.Call(func=ast.Name(id="between"), args=[first, *middle, last]):
                low, high = _number(first), _number(last)
                likely = _number(middle[0]) if middle else (low * high) ** 0.5
                return _always(constant(low, high, likely))
            case ast.Call(func=ast.Name(id="each"), args=[cost]):
                return _always(constant(each(_dotted(cost))))
            case ast.Call(func=cost, args=[count], keywords=[]):
                name = _dotted(cost)
                primitive(name)
                counted = self._quantity(count)
                if isinstance(counted, _Always):
                    return _always(seconds(name, counted.result))
                return lambda call: seconds(name, counted(call))
        return _always(seconds(_dotted(node)))

    def _operation(self, node: ast.BinOp) -> Evaluated:
        if isinstance(node.op, ast.Div | ast.Pow):
            factor = _number(node.right)
            of = self._quantity(node.left)
            if isinstance(node.op, ast.Pow):
                return _computed(lambda left: left.power(factor), of)
            return _computed(lambda left: left.times(1 / factor), of)
        left, right = self._quantity(node.left), self._quantity(node.right)
        match node.op:
            case ast.Add():
                return _computed(lambda a, b: a + b, left, right)
            case ast.Sub():
                return _computed(lambda a, b: a - b, left, right)
            case ast.Mult():
                return _computed(lambda a, b: a * b, left, right)
        raise ValueError(f"unknown operator in {ast.unparse(node)!r}")

    def _value(self, node: ast.expr) -> Evaluated:
        match node:
            case ast.Constant(value=None):
                return _always(NONE)
            case ast.Name(id=name) if name == "self" or name in self._parameters:
                return lambda call: call.value(name)
            case ast.Name(id=name) if name in _PLAIN:
                return _always(_PLAIN[name])
            case ast.Name(id=name) if name in _KINDS:
                return _always(Value(name))
            case ast.Subscript(value=ast.Name(id=name), slice=inner):
                return self._sized(name, inner)
            case ast.Subscript(value=ast.Attribute() as type_, slice=inner):
                return _applied(partial(rules.rows, _dotted(type_)), self._quantity(inner))
            case ast.Call(func=ast.Name(id="bare"), args=[inner]):
                return _applied(rules.bare, self._value(inner))
            case ast.Call(func=ast.Name(id="item"), args=[inner]):
                return _applied(lambda value: rules.bare(value.item), self._value(inner))
            case ast.Call(func=ast.Name(id="entry"), args=[inner]):
                return _applied(lambda value: rules.bare(value.entry), self._value(inner))
            case ast.Call(func=ast.Name(id="pair"), args=parts):
                return _applied(rules.pair, *map(self._value, parts))
            case ast.Call(func=ast.Name(id="literal"), args=[ast.Constant(value=known)]):
                return _always(rules.literal(known))
            case ast.Call(func=ast.Name(id="lazy"), args=[size, item, step]):
                return _applied(rules.lazy, self._quantity(size), self._value(item), self._quantity(step))
            case ast.Call(func=ast.Name(id=kind), args=names, keywords=fields) if kind in _KINDS:
                return self._constructed(kind, names, fields)
        raise ValueError(f"not a value: {ast.unparse(node)!r}")

    def _sized(self, kind: str, inner: ast.expr) -> Evaluated:
        if kind == "text":
            return _applied(rules.text, self._quantity(inner), _receiver_kind)
        if kind in _TEXTS:
            return _applied(rules.text, self._quantity(inner), _always(kind))
        if kind == "array":
            return _applied(partial(rules.rows, kind), self._quantity(inner))
        if kind == "index":
            return _applied(_index, self._quantity(inner))
        if kind in ("int", "float"):
            return _applied(rules.integer if kind == "int" else rules.real, self._quantity(inner))
        if kind in ("list", "grown") and isinstance(inner, ast.Tuple) and len(inner.elts) == 2:
            size, item, grown = self._quantity(inner.elts[0]), self._value(inner.elts[1]), kind == "grown"
            return _applied(
                lambda count, value: rules.container("list", count, value, grown=grown, fresh=True), size, item
            )
        raise ValueError(f"no size can be given to {kind!r} like this")

    def _constructed(self, kind: str, names: list[ast.expr], fields: list[ast.keyword]) -> Evaluated:
        parts: dict[str, Evaluated] = {}
        if len(names) > 1:
            raise ValueError(f"{kind} has one name")
        for name in names:
            dotted = _dotted(name)
            parts["name"] = _always(self._owner if dotted == "owner" else dotted)
        for keyword in fields:
            if keyword.arg not in _FIELDS:
                raise ValueError(f"{keyword.arg!r} is not a field of a value")
            compile_ = self._value if keyword.arg in ("item", "entry") else self._quantity
            parts[keyword.arg] = compile_(keyword.value)
        keys = list(parts)
        return _applied(
            lambda *known: Value(kind, **dict(zip(keys, known, strict=True))),
            *parts.values(),
        )


@dataclass(frozen=True, slots=True)
class _Always:
    """Evaluates to the same result whatever the arguments are."""

    result: Any

    def __call__(self, call: Arguments) -> Any:
        return self.result


_always = _Always


def _applied(function: Callable[..., Any], *operands: Evaluated) -> Evaluated:
    """A function of operands; computed once where they are the same in every call."""
    if all(isinstance(operand, _Always) for operand in operands):
        return _always(function(*(operand.result for operand in operands if isinstance(operand, _Always))))
    return lambda call: function(*[operand(call) for operand in operands])


def _computed(function: Callable[..., Any], *operands: Evaluated) -> Evaluated:
    """A quantity of quantities; not known where one of them is not."""

    def known(*values: Any) -> Any:
        return None if any(value is None for value in values) else function(*values)

    return _applied(known, *operands)


def _receiver_kind(call: Arguments) -> str:
    return rules.text_kind(call.value("self"))


def _index(size: Quantity) -> Value:
    """A position in so many items, or a number of positions: CPython shares small ints."""
    limits = size.constant
    is_shared = limits is not None and limits[2] <= object_sizes.MOST_SHARED
    return rules.bare(rules.INT) if is_shared else rules.INT


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"not an expression: {text!r}") from None


def _number(node: ast.expr) -> float:
    try:
        return float(ast.literal_eval(node))
    except (ValueError, TypeError):
        raise ValueError(f"not a number: {ast.unparse(node)!r}") from None


def _dotted(node: ast.expr) -> str:
    """A dotted name; one that is not Python's is written as a text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    name = ast.unparse(node)
    if not name.replace(".", "").isidentifier():
        raise ValueError(f"not a name: {name!r}")
    return name
