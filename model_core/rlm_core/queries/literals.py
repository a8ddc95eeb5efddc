"""The values of Python expressions made of literals, plain arithmetic, ranges and comprehensions; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from tree_sitter import Node

from rlm_core.cost.torch_trace.arithmetic import binary
from rlm_core.source.parsed import name_text

_MAX_DEPTH = 40
_MAX_ITEMS = 4096
_OPERATORS: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "**": ast.Pow,
    "<<": ast.LShift, ">>": ast.RShift,
}  # fmt: skip
Names = Mapping[str, Any]


def value_of(node: Node | None, names: Names, depth: int = 0) -> Any:
    """The value of an expression under known ``names``; a dotted name such as ``torch.float16`` is its text.

    Raises:
        ValueError: the value depends on what runs, or it is too large.
    """
    read = _READERS.get(node.type) if node is not None else None
    if node is None or read is None or depth > _MAX_DEPTH:
        raise ValueError("not a plain value")
    try:
        return read(node, names, depth + 1)
    except (TypeError, ArithmeticError, KeyError) as error:
        raise ValueError("not a plain value") from error


def constants(root: Node) -> dict[str, Any]:
    """The values of the names that a file assigns at its top level, where they are known."""
    values: dict[str, Any] = {}
    for statement in root.named_children:
        node = statement.named_children[0] if statement.type == "expression_statement" else None
        left = node.child_by_field_name("left") if node is not None and node.type == "assignment" else None
        if node is None or left is None or left.type != "identifier":
            continue
        try:
            values[name_text(left)] = value_of(node.child_by_field_name("right"), values)
        except ValueError:
            values.pop(name_text(left), None)
    return values


def arguments_of(call: Node) -> tuple[list[Node], dict[str, Node]]:
    """The positional and the named arguments of a call."""
    listed = call.child_by_field_name("arguments")
    children = listed.named_children if listed is not None else []
    named = {
        name_text(child.child_by_field_name("name")): value
        for child in children
        if child.type == "keyword_argument" and (value := child.child_by_field_name("value")) is not None
    }
    plain = [child for child in children if child.type not in ("keyword_argument", "comment")]
    return plain, named


def _items(node: Node, names: Names, depth: int) -> list[Any]:
    return [value_of(child, names, depth) for child in node.named_children if child.type != "comment"]


def _integer(node: Node, names: Names, depth: int) -> int:
    text = name_text(node)
    if len(text) > 40:
        raise ValueError("too long")
    return int(text, 0)


def _string(node: Node, names: Names, depth: int) -> str:
    if any(child.type == "interpolation" for child in node.named_children):
        raise ValueError("depends on what runs")
    return "".join(name_text(child) for child in node.named_children if child.type == "string_content")


def _dictionary(node: Node, names: Names, depth: int) -> dict[Any, Any]:
    """The entries with known values."""
    entries = {}
    for pair in node.named_children:
        if pair.type == "pair":
            try:
                key = value_of(pair.child_by_field_name("key"), names, depth)
                entries[key] = value_of(pair.child_by_field_name("value"), names, depth)
            except ValueError:
                continue
    return entries


def _unary(node: Node, names: Names, depth: int) -> Any:
    value = value_of(node.child_by_field_name("argument"), names, depth)
    if name_text(node.child_by_field_name("operator")) != "-":
        raise ValueError("not a plain value")
    return -value


def _binary(node: Node, names: Names, depth: int) -> Any:
    left = value_of(node.child_by_field_name("left"), names, depth)
    right = value_of(node.child_by_field_name("right"), names, depth)
    return binary(_OPERATORS[name_text(node.child_by_field_name("operator"))], left, right)


def _call(node: Node, names: Names, depth: int) -> Any:
    function = name_text(node.child_by_field_name("function"))
    plain, named = arguments_of(node)
    if named or function not in ("range", "list", "tuple", "int", "dict"):
        raise ValueError("not a plain value")
    values = [value_of(argument, names, depth) for argument in plain]
    if function == "range":
        items = range(*values)
        if len(items) > _MAX_ITEMS:
            raise ValueError("too long")
        return list(items)
    convert: Callable[[Any], Any] = {"list": list, "tuple": tuple, "int": int, "dict": dict}[function]
    return convert(values[0])


def _comprehension(node: Node, names: Names, depth: int) -> list[Any]:
    clauses = [child for child in node.named_children if child.type in ("for_in_clause", "if_clause")]
    if len(clauses) != 1 or clauses[0].type != "for_in_clause":
        raise ValueError("not a plain value")
    target, iterable = clauses[0].child_by_field_name("left"), clauses[0].child_by_field_name("right")
    body = node.child_by_field_name("body")
    if target is None or target.type != "identifier":
        raise ValueError("not a plain value")
    values = value_of(iterable, names, depth)
    if len(values) > _MAX_ITEMS:
        raise ValueError("too long")
    return [value_of(body, {**names, name_text(target): value}, depth) for value in values]


def _only(node: Node, names: Names, depth: int) -> Any:
    return value_of(next((child for child in node.named_children if child.type != "comment"), None), names, depth)


_READERS: dict[str, Callable[[Node, Names, int], Any]] = {
    "integer": _integer,
    "float": lambda node, names, depth: float(name_text(node)),
    "string": _string,
    "true": lambda node, names, depth: True,
    "false": lambda node, names, depth: False,
    "none": lambda node, names, depth: None,
    "identifier": lambda node, names, depth: names[name_text(node)],
    "attribute": lambda node, names, depth: "".join(name_text(node).split()),
    "list": _items,
    "tuple": lambda node, names, depth: tuple(_items(node, names, depth)),
    "expression_list": lambda node, names, depth: tuple(_items(node, names, depth)),
    "dictionary": _dictionary,
    "parenthesized_expression": _only,
    "unary_operator": _unary,
    "binary_operator": _binary,
    "call": _call,
    "list_comprehension": _comprehension,
    "generator_expression": _comprehension,
}
