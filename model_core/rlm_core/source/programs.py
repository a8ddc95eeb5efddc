"""The programs of a text that is a solution: the whole file, or each ``class Solution`` of a file with several.

Whether a file is a solution is decided in :mod:`.solutions`. The functions of a Python file are separate units.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from rlm_core.types import Span, Unit

from . import languages
from .parsed import ParsedSource, name_text, span_of, unit_text
from .solutions import solution_class

_PREAMBLE = re.compile(
    r"package|import|using|use_|namespace_use|file_scoped|preproc_|php_tag|extern_|\w*attribute_item|mod_"
)
_CALLABLE = re.compile(r"function|method|class|object_definition|impl_item|module\Z")


def find_programs(parsed: ParsedSource) -> list[Unit]:
    """The programs of a solution: the whole file, or each ``class Solution`` if there are several.

    A file without code has none.
    """
    source, language, root = parsed.source, parsed.language, parsed.root
    solutions = [node for node in root.named_children if _is_solution(node, language)]
    code = [node for node in root.named_children if not _is_costless(node, language)]
    if not code:
        return []
    # The `;` after a C++ class is not a named node.
    whole = span_of(code[0], next(node for node in reversed(root.children) if not _is_costless(node, language)))
    if len(solutions) > 1:
        return [_named_unit(source, _declared_name(node), span_of(node), language) for node in solutions]
    if solutions:
        return [_named_unit(source, _declared_name(solutions[0]), whole, language)]
    named = next((name for node in code if (name := _declared_name(node)) is not None), None)
    # The first line of a Python function belongs to the function.
    if named is not None and language != "python":
        return [_named_unit(source, named, whole, language)]
    first = code[0] if language == "python" else next((n for n in code if not _PREAMBLE.match(n.type)), code[0])
    head = _first_line(source, first)
    return [Unit("program", language, "<file>", unit_text(source, whole), whole, head, head)]


def _named_unit(source: bytes, name: Node | None, span: Span, language: str) -> Unit:
    assert name is not None, "only definitions with a name are passed"
    return Unit("program", language, name_text(name), unit_text(source, span), span, span_of(name), span_of(name))


def _first_line(source: bytes, node: Node) -> Span:
    """The span of the first line of a node."""
    span = span_of(node)
    line_end = source.find(b"\n", span.start_byte)
    line = source[span.start_byte : line_end if line_end >= 0 else len(source)].rstrip()
    return Span(
        span.start_line,
        span.start_column,
        span.start_line,
        span.start_column + len(line),
        span.start_byte,
        span.start_byte + len(line),
    )


def _is_costless(node: Node, language: str) -> bool:
    if "comment" in node.type:
        return True
    is_docstring = node.type == "expression_statement" and [child.type for child in node.named_children] == ["string"]
    return is_docstring and language == "python"


def _is_solution(node: Node, language: str) -> bool:
    node = _definition(node)
    return node.type == languages.by_name(language).class_node and solution_class(name_text(_name(node)))


def _definition(node: Node) -> Node:
    """The definition in a decorated, exported, templated or plain statement."""
    if node.type in ("decorated_definition", "export_statement"):
        inner = node.child_by_field_name("definition") or node.child_by_field_name("declaration")
    elif node.type in ("template_declaration", "global_statement"):
        inner = node.named_children[-1] if node.named_children else None
    else:
        inner = None
    return inner if inner is not None else node


def _declared_name(node: Node) -> Node | None:
    """The name of a function or class that a top-level node declares; None for everything else."""
    node = _definition(node)
    if node.type in ("lexical_declaration", "variable_declaration"):
        for declarator in node.named_children:
            value = declarator.child_by_field_name("value")
            if value is not None and "function" in value.type:
                return declarator.child_by_field_name("name")
        return None
    if not _CALLABLE.search(node.type):
        return None
    return _innermost(node.child_by_field_name("declarator")) or _name(node)


def _innermost(declarator: Node | None) -> Node | None:
    """The identifier inside C's declarators: ``*f(int x)`` declares ``f``."""
    while declarator is not None and "identifier" not in declarator.type:
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type == "reference_declarator" and declarator.named_children:
            inner = declarator.named_children[-1]
        declarator = inner
    return declarator


def _name(node: Node) -> Node | None:
    name = node.child_by_field_name("name") or node.child_by_field_name("type")
    if name is None:
        names = [child for child in node.named_children if "identifier" in child.type]
        name = names[0] if names else None
    return name
