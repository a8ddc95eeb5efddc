"""Categories of syntax nodes that tree-sitter grammars mostly share: a node's type -> loops, branches, calls ...

Types are classified by their names, so one table serves all languages.
"""

from __future__ import annotations

import re
from functools import cache


def _types(stems: str, endings: str = "", more: str = "") -> re.Pattern[str]:
    """Node types made of a stem and an ending, with any words between them; and ``more`` whole names."""
    patterns = [rf"(?:{stems.replace(' ', '|')})(?:_\w+)??_?(?:{endings.replace(' ', '|')})"] if stems else []
    return re.compile("|".join([*patterns, *more.split()]))


# A node has the first category whose pattern its type matches.
_CATEGORIES = (
    (
        "loops",
        _types(
            "for while do loop repeat foreach enhanced until",
            "statement expression loop in_clause",
            "for while until do_while",
        ),
    ),
    (
        "branches",
        _types(
            "if elif switch match case when conditional ternary guard unless",
            "statement expression clause entry arm",
            "if unless case when conditional match_arm",
        ),
    ),
    (
        "calls",
        _types(
            "call invocation object_creation new",
            "expression",
            r"(?:\w+_)?call (?:\w+_)?invocation new \w*call_expression macro_invocation",
        ),
    ),
    (
        "functions",
        _types(
            "function method constructor lambda closure arrow_function",
            "definition declaration literal expression item declarator",
            "method lambda function func_literal lambda_literal",
        ),
    ),
    ("classes", _types("class struct impl interface object trait", "definition declaration specifier item", "class")),
    ("returns", _types("return yield", "statement expression", "return yield jump_expression")),
    (
        "assignments",
        _types(
            "variable let init property",
            "declarator declaration",
            r"(?:\w+_)?assignment(?:_\w+)? augmented_\w+ short_var_declaration",
        ),
    ),
    (
        "operations",
        _types(
            "binary unary update comparison boolean not additive multiplicative infix prefix postfix equality",
            "operator expression operation",
            "binary unary inc_statement dec_statement conjunction_expression disjunction_expression",
        ),
    ),
    (
        "subscripts",
        _types(
            "",
            "",
            r"subscript(?:_\w+)? index_expression indexing_\w+ element_access_\w+ array_access element_reference",
        ),
    ),
    ("strings", _types("", "", r"string(?:_literal)? (?:interpreted|template|line|raw)_string(?:_\w+)?")),
    (
        "collections",
        _types(
            "list dictionary set tuple array object hash composite initializer collection",
            "literal expression comprehension list",
            r"list dictionary set tuple array object hash \w*comprehension array_creation_expression",
        ),
    ),
    ("raises", _types("raise throw try except catch rescue", "statement expression clause block", "rescue catch")),
    ("literals", _types("", "", r"\w*_literal integer float number int true false none null nil")),
)


@cache
def node_category(node_type: str) -> str | None:
    """The category of a node type (``loops``, ``calls`` ...); None for types that are not counted."""
    return next((category for category, pattern in _CATEGORIES if pattern.fullmatch(node_type)), None)
