"""The values of Python expressions made of literals, plain arithmetic, ranges and comprehensions; nothing is run."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping
from typing import Any

from tree_sitter import Node

from rlm_core.cost.concrete.frame import evaluate
from rlm_core.cost.concrete.values import LibraryName
from rlm_core.cost.domain.syntax import dotted_name, parse_expression
from rlm_core.cost.torch_trace.context import FAILURES, new_context
from rlm_core.cost.torch_trace.recorder import Recorder
from rlm_core.source.parsed import name_text

_MAX_ITEMS = 4096
_CALLED = frozenset({"range", "list", "tuple", "int", "dict"})
# What an expression may consist of besides attributes, calls and comprehensions. A condition is not among it: the
# evaluator follows one branch where the condition depends on what runs.
_PARTS = (ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.UnaryOp, ast.operator, ast.USub,
          ast.expr_context)  # fmt: skip
Names = Mapping[str, Any]


def value_of(node: Node | None, names: Names) -> Any:
    """The value of an expression under known ``names``; a dotted name such as ``torch.float16`` is its text.

    Raises:
        ValueError: the value depends on what runs, or it is too large.
    """
    # In brackets, since the expression may go on in another line.
    tree = parse_expression(f"({name_text(node)})") if node is not None else None
    return _value(tree, names)


def _value(tree: ast.expr | None, names: Names) -> Any:
    """The value of an expression; of a dict, the entries that are known."""
    if isinstance(tree, ast.Dict):
        entries = {}
        for key, value in zip(tree.keys, tree.values, strict=True):
            with contextlib.suppress(ValueError, TypeError):
                entries[_value(key, names)] = _value(value, names)
        return entries
    if tree is None or not _is_plain(tree):
        raise ValueError("not a plain value")
    unknown = {part.id: LibraryName(part.id) for part in ast.walk(tree) if isinstance(part, ast.Name)}
    recorder = Recorder(most_iterations=_MAX_ITEMS)
    try:
        value = evaluate(new_context({}, {**unknown, **names}, recorder), tree)
    except FAILURES as error:
        raise ValueError("too large") from error
    if recorder.unknown:
        raise ValueError("too long")
    return _known(value)


def _is_plain(node: ast.AST) -> bool:
    """Return whether an expression's value depends on nothing but names."""
    if isinstance(node, ast.Attribute):
        return bool(dotted_name(node))
    if isinstance(node, ast.Call):
        is_known = isinstance(node.func, ast.Name) and node.func.id in _CALLED and not node.keywords
        return is_known and all(map(_is_plain, node.args))
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        (first, *rest) = node.generators
        is_loop = not rest and not first.ifs and isinstance(first.target, ast.Name)
        return is_loop and _is_plain(first.iter) and _is_plain(node.elt)
    return isinstance(node, _PARTS) and all(map(_is_plain, ast.iter_child_nodes(node)))


def _known(value: Any) -> Any:
    """A value in which all is known."""
    if isinstance(value, LibraryName) and "." in value.path:
        return value.path
    if isinstance(value, dict):
        return {_known(key): _known(entry) for key, entry in value.items()}
    if isinstance(value, range) and len(value) > _MAX_ITEMS:
        raise ValueError("too long")
    if isinstance(value, (list, range)):
        return [_known(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_known(item) for item in value)
    if value is not None and not isinstance(value, (int, float, str)):
        raise ValueError("depends on what runs")
    return value


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
