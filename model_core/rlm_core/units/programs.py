"""Whole solutions: a file as a program, or each ``class Solution`` of a file that holds several.

Outside Python every file is a program. A Python file is one only when it has a ``class Solution``: its functions are
units of their own.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from .. import languages
from ..types import Span, Unit
from .spans import name_text, span_of, unit_text

_SOLUTION = re.compile(r"Solution\w*\Z")


def find_programs(source: bytes, root: Node, language: str) -> list[Unit]:
    """The programs of a parsed file: none, the whole file, or its ``class Solution``-like classes when there are several."""
    solutions = [node for node in root.named_children if _is_solution(node, language)]
    code = [node for node in root.named_children if not _is_costless(node)]
    if not code or (language == "python" and not solutions):
        return []
    if len(solutions) > 1:
        return [_solution_unit(source, node, span_of(node), language) for node in solutions]
    whole = span_of(code[0], code[-1])
    if solutions:
        return [_solution_unit(source, solutions[0], whole, language)]
    head = span_of(code[0])
    line_end = source.find(b"\n", head.start_byte)
    line_end = len(source) if line_end < 0 else line_end
    width = len(source[head.start_byte : line_end].rstrip())
    name = Span(
        head.start_line,
        head.start_column,
        head.start_line,
        head.start_column + width,
        head.start_byte,
        head.start_byte + width,
    )
    return [Unit("program", language, "<file>", unit_text(source, whole), whole, name, name)]


def _is_costless(node: Node) -> bool:
    if "comment" in node.type:
        return True
    return node.type == "expression_statement" and node.named_child_count == 1 and node.named_children[0].type == "string"


def _is_solution(node: Node, language: str) -> bool:
    node = _definition(node)
    return node.type == languages.by_name(language).class_node and bool(_SOLUTION.match(name_text(_name(node))))


def _definition(node: Node) -> Node:
    """The class inside a decorated or exported definition."""
    if node.type in ("decorated_definition", "export_statement"):
        inner = node.child_by_field_name("definition") or node.child_by_field_name("declaration")
        return inner if inner is not None else node
    return node


def _name(node: Node) -> Node | None:
    name = node.child_by_field_name("name") or node.child_by_field_name("type")
    if name is None:
        names = [child for child in node.named_children if "identifier" in child.type]
        name = names[0] if names else None
    return name


def _solution_unit(source: bytes, node: Node, whole: Span, language: str) -> Unit:
    name = _name(_definition(node))
    assert name is not None, "a solution is recognised by its name"
    return Unit("program", language, name_text(name), unit_text(source, whole), whole, span_of(name), span_of(name))
