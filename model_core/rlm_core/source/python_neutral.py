"""Python source -> a text in which edits that cannot change a cost leave no trace.

Comments, docstrings, type hints, layout, redundant parentheses and the names of local variables are gone. Only the
syntax tree and the tokens are read; code with syntax errors is read as far as its tree goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from tree_sitter import Node, Query

from . import languages, python_names
from .parsed import ParsedSource, query_cursor
from .python_layout import lay_out

_QUERY = f"""
{languages.by_name("python").comments}
{python_names.QUERY}
[(typed_parameter type: (_) @hint) (typed_default_parameter type: (_) @hint) (assignment type: (_) @hint)
 (function_definition return_type: (_) @hint)]
(type_parameter) @skip
(parenthesized_expression) @parentheses
[(for_statement left: (tuple_pattern) @tuple) (for_in_clause left: (tuple_pattern) @tuple)
 (assignment left: (tuple_pattern) @tuple) (assignment right: (tuple) @tuple) (return_statement (tuple) @tuple)
 (augmented_assignment right: (tuple) @tuple) (for_statement right: (tuple) @tuple)
 (expression_statement (tuple) @tuple) (delete_statement (tuple) @tuple)]
[(import_from_statement ["(" ")"] @bracket) (with_clause ["(" ")"] @bracket)]
"""
# Parentheses around the whole of one of these change nothing.
_SELF_CONTAINED = re.compile(
    "identifier|call|attribute|subscript|string|concatenated_string|list|dictionary|set|tuple|list_comprehension|set_comprehension"
    "|dictionary_comprehension|true|false|none|parenthesized_expression"
)
# Parentheses change nothing either around an expression that is the whole of a part of one of these.
_DELIMITED = re.compile(
    "(return|expression|if|while|assert|raise|for)_statement|elif_clause|assignment|augmented_assignment|argument_list"
    "|list|tuple|set|pair|keyword_argument|default_parameter|expression_list|with_item|lambda"
)
# How tightly operators bind, by node type or sign.
_PRECEDENCE = {
    "conditional_expression": 0, "or": 1, "and": 2, "not_operator": 3, "comparison_operator": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "@": 10, "unary_operator": 11, "**": 12,
}  # fmt: skip
_NEEDS_PARENTHESES = frozenset(("named_expression", "yield", "generator_expression", "lambda", "ERROR"))


@cache
def _query() -> Query:
    return Query(languages.grammar("python"), _QUERY)


def neutral_python(parsed: ParsedSource) -> bytes:
    """The neutral form of a text in Python, unindented and with Unix line ends."""
    source = parsed.source
    captures = query_cursor(_query()).captures(parsed.root)
    skipped = [(node.start_byte, node.end_byte) for node in captures.get("skip", ())]
    skipped += _hints(source, captures)
    skipped.sort()
    brackets = {node.start_byte for node in captures.get("bracket", ())}
    brackets.update(_brackets(captures))
    return lay_out(source, skipped, brackets, python_names.local_names(source, captures, skipped))


def _hints(source: bytes, captures: Mapping[str, Sequence[Node]]) -> Iterator[tuple[int, int]]:
    """The spans of type hints with their colon or arrow; of declarations without a value as a whole."""
    for node in captures.get("hint", ()):
        parent = node.parent
        if parent is None:
            continue
        sign = b"->" if parent.type == "function_definition" else b":"
        start = source.rfind(sign, parent.start_byte, node.start_byte)
        if parent.type == "assignment" and parent.child_by_field_name("right") is None:
            start = parent.start_byte
        if start >= 0:
            yield start, node.end_byte


def _brackets(captures: Mapping[str, Sequence[Node]]) -> Iterator[int]:
    """The offsets of parentheses that change nothing."""
    # Those of a single item with a comma are needed.
    redundant = [node for node in captures.get("tuple", ()) if node.named_child_count > 1 or node.child_count == 3]
    redundant += [node for node in captures.get("parentheses", ()) if _is_redundant(node)]
    for node in redundant:
        yield node.start_byte
        yield node.end_byte - 1


def _is_redundant(node: Node) -> bool:
    inner = next((child for child in node.named_children if child.type != "comment"), None)
    parent = node.parent
    if inner is None or parent is None or inner.type in _NEEDS_PARENTHESES:
        return False
    if _SELF_CONTAINED.fullmatch(inner.type):
        return True
    while parent is not None and parent.type == "parenthesized_expression":
        parent = parent.parent
    if parent is None or _DELIMITED.fullmatch(parent.type) is not None:
        return parent is not None
    outer = _precedence(parent)
    return outer is not None and (_precedence(inner) or -1) > outer


def _precedence(node: Node) -> int | None:
    """Return the precedence of an operation; None for anything else."""
    if node.type in _PRECEDENCE:
        return _PRECEDENCE[node.type]
    if node.type not in ("boolean_operator", "binary_operator"):
        return None
    operator = node.child_by_field_name("operator")
    return _PRECEDENCE.get(operator.type) if operator is not None else None
