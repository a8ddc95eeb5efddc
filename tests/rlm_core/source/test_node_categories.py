"""Categories of syntax nodes: one table for the node types of all grammars."""

from __future__ import annotations

import pytest
from rlm_core.source import languages
from rlm_core.source.node_categories import node_category
from rlm_core.source.parsed import ParsedSource

CATEGORIES = {
    "loops": ["for_statement", "while_statement", "do_statement", "for_expression", "loop_expression",
              "for_in_clause", "enhanced_for_statement", "foreach_statement", "until"],
    "branches": ["if_statement", "switch_expression", "match_arm", "case_clause", "conditional_expression", "unless",
                 "ternary_expression", "when_entry", "elif_clause", "guard_statement"],
    "calls": ["call", "call_expression", "method_invocation", "object_creation_expression", "new_expression",
              "macro_invocation", "function_call_expression", "method_call"],
    "functions": ["function_definition", "method_declaration", "lambda", "function_item", "method",
                  "constructor_declaration", "func_literal", "lambda_expression", "function_declarator"],
    "classes": ["class_definition", "class_declaration", "struct_specifier", "impl_item", "interface_declaration",
                "trait_item", "class"],
    "returns": ["return_statement", "yield", "yield_expression", "return_expression", "jump_expression"],
    "assignments": ["assignment", "augmented_assignment", "assignment_expression", "short_var_declaration",
                    "variable_declarator", "let_declaration", "init_declarator"],
    "operations": ["binary_operator", "unary_expression", "update_expression", "comparison_operator", "not_operator",
                   "boolean_operator", "infix_expression", "inc_statement", "additive_expression"],
    "subscripts": ["subscript", "index_expression", "subscript_expression", "array_access"],
    "strings": ["string", "string_literal", "raw_string_literal", "template_string", "interpreted_string_literal"],
    "collections": ["list", "dictionary", "array", "tuple_expression", "list_comprehension", "set", "hash",
                    "initializer_list", "array_creation_expression", "composite_literal"],
    "raises": ["raise_statement", "throw_statement", "try_statement", "except_clause", "catch_block", "rescue"],
    "literals": ["integer", "number_literal", "true", "null", "float", "decimal_integer_literal", "none", "nil"],
}  # fmt: skip
PROGRAMS = {
    "python": "def f(a):\n    for i in a:\n        if i:\n            g(i)\n    return a[0] + 1\n",
    "cpp": "int f(int a) { for (int i = 0; i < a; ++i) { if (i) { g(i); } } return b[0] + 1; }",
    "java": "class A { int f(int a) { for (int i = 0; i < a; ++i) { if (i > 0) { g(i); } } return b[0] + 1; } }",
    "go": "package p\nfunc f(a int) int { for i := 0; i < a; i++ { if i > 0 { g(i) } }; return b[0] + 1 }\n",
    "rust": "fn f(a: i32) -> i32 { for i in 0..a { if i > 0 { g(i); } } return b[0] + 1; }",
    "typescript": "function f(a: number) { for (const i of b) { if (i) { g(i); } } return b[0] + 1; }",
    "javascript": "function f(a) { for (const i of b) { if (i) { g(i); } } return b[0] + 1; }",
    "csharp": "class A { int f(int a) { for (int i = 0; i < a; ++i) { if (i > 0) { g(i); } } return b[0] + 1; } }",
}


def test_a_node_type_has_the_category_that_its_name_says() -> None:
    expected = {kind: name for name, kinds in CATEGORIES.items() for kind in kinds}
    assert {kind: node_category(kind) for kind in expected} == expected


def test_names_punctuation_and_lists_are_not_counted() -> None:
    kinds = ("identifier", "block", "module", "comment", "(", "+", "", "parameters", "type", "argument_list", "pair")
    assert {kind: node_category(kind) for kind in kinds} == dict.fromkeys(kinds)


def categories(text: str, language: str) -> set[str]:
    """The categories of all nodes of a text."""
    seen, nodes = set(), [ParsedSource(text.encode(), language).root]
    while nodes:
        node = nodes.pop()
        category = node_category(node.type) if node.is_named else None
        seen |= {category} if category else set()
        nodes += node.children
    return seen


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_same_program_has_the_same_categories_in_every_language(language: str) -> None:
    found = categories(PROGRAMS[language], language)
    assert found >= {"loops", "branches", "calls", "functions", "returns", "subscripts", "operations", "literals"}
    assert languages.LANGUAGES[language].grammar is not None
