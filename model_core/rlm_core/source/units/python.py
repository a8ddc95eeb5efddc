"""Python's functions and methods: async, nested, decorated."""

from __future__ import annotations

from functools import cache

from tree_sitter import Node, Query, QueryCursor

from rlm_core.source import languages
from rlm_core.types import Unit

from .spans import name_text, span_of, unit_text


@cache
def _definitions() -> Query:
    return Query(languages.grammar("python"), "[(function_definition) (class_definition)] @definition")


def find_python(source: bytes, root: Node) -> list[Unit]:
    """The functions of a parsed Python file, in source order; qualified names as in ``__qualname__``."""
    nodes = QueryCursor(_definitions()).captures(root).get("definition", [])
    units: list[Unit] = []
    enclosing: list[tuple[int, str]] = []
    for node in sorted(nodes, key=lambda node: node.start_byte):
        while enclosing and enclosing[-1][0] <= node.start_byte:
            enclosing.pop()
        prefix = enclosing[-1][1] if enclosing else ""
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None or name_node.is_missing:
            continue
        name = name_text(name_node)
        is_class = node.type == "class_definition"
        enclosing.append((node.end_byte, f"{prefix}{name}." if is_class else f"{prefix}{name}.<locals>."))
        if is_class:
            continue
        outer = node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node
        span = span_of(outer, node)
        header = span_of(node, _colon(node) or name_node)
        units.append(
            Unit("function", "python", prefix + name, unit_text(source, span), span, span_of(name_node), header),
        )
    return units


def _colon(node: Node) -> Node | None:
    return next((child for child in node.children if child.type == ":"), None)
