"""Spans, names and texts of tree-sitter nodes."""

from __future__ import annotations

from tree_sitter import Node

from rlm_core.types import Span


def span_of(first: Node, last: Node | None = None) -> Span:
    """The span from the start of ``first`` to the end of ``last`` (default: of ``first`` itself)."""
    last = last or first
    start, end = first.start_point, last.end_point
    return Span(start.row, start.column, end.row, end.column, first.start_byte, last.end_byte)


def name_text(node: Node | None) -> str:
    """The text of a name node, empty when the grammar found none."""
    return node.text.decode("utf-8", errors="replace") if node is not None and node.text else ""


def qualname(node: Node) -> str:
    """A Python definition's name with what it stands in, as in ``__qualname__``."""
    names = [name_text(node.child_by_field_name("name"))]
    parent = node.parent
    while parent is not None:
        if parent.type == "function_definition":
            names += ["<locals>", name_text(parent.child_by_field_name("name"))]
        elif parent.type == "class_definition":
            names.append(name_text(parent.child_by_field_name("name")))
        parent = parent.parent
    return ".".join(reversed(names))


def unit_text(source: bytes, span: Span) -> str:
    """The text of a unit with the indentation of its first line, so that dedenting it is exact."""
    line_start = source.rfind(b"\n", 0, span.start_byte) + 1
    indent = source[line_start : span.start_byte]
    start = line_start if not indent.strip() else span.start_byte
    return source[start : span.end_byte].decode("utf-8", errors="replace")
