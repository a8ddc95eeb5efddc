"""Leaving out statements: what counts as one, and that the rest still parses."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.source.canonical import dedent
from rlm_core.source.languages import LANGUAGES
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.statement_removal import RemovableStatements

from tests.rlm_core.neutral_edits import STANDARD_LIBRARY

FUNCTION = '''\
    @cached
    def f(self, x):
        """Doc.

        of several lines
        """
        a = 0; b = 1  # two
        for i in x:  # a comment
            if i: b += 1
            else:
                b -= 1
        try:
            g()
        except ValueError:
            raise
        with open(x) as file:
            """Not a docstring."""
            return [line
                for line in file]
'''
# The texts and nesting of the statements of a loop in other languages.
LOOPS = {
    "c": "int f(int n) { int k = 0; for (int i = 0; i < n; i++) { k += i; } while (k) k--; return k; }",
    "cpp": "class S { int f(int n) { int k = 0; for (int i = 0; i < n; i++) { k += i; } while (k) k--; return k; } };",
    "java": "class S { int f(int n) { int k = 0; for (int i = 0; i < n; i++) { k += i; } while (k) k--; return k; } }",
    "csharp": "class S { int F(int n) { int k=0; for (int i = 0; i < n; i++) { k += i; } while (k) k--; return k; } }",
    "javascript": "function f(n) { let k = 0; for (let i = 0; i < n; i++) { k += i; } while (k) k--; return k; }",
    "typescript": "function f(n: any) { let k = 0; for (let i = 0; i < n; i++) { k += i; } while (k) k--; return k; }",
    "php": "<?php\nfunction f($n) { $k = 0; for ($i = 0; $i < $n; $i++) { $k += $i; } while ($k) $k--; return $k; }",
    "go": "package a\nfunc f(n int) int {\n k := 0\n for i := 0; i < n; i++ {\n  k += i\n }\n return k\n}",
    "rust": "fn f(n: i32) -> i32 {\n let mut k = 0;\n for i in 0..n { k += i; }\n return k;\n}",
    "kotlin": "fun f(n: Int): Int {\n var k = 0\n for (i in 0 until n) { k += i }\n return k\n}",
    "swift": "func f(_ n: Int) -> Int {\n var k = 0\n for i in 0..<n { k += i }\n return k\n}",
    "scala": "def f(n: Int): Int = {\n var k = 0\n for (i <- 0 until n) { k += i }\n return k\n}",
    "ruby": "def f(n)\n k = 0\n n.times do |i|\n  k += i\n end\n return k\nend",
}


def listed(text: str, language: str) -> list[tuple[str, int]]:
    removable = RemovableStatements(text, language)
    return [(removable.text_of(statement), statement.depth) for statement in removable.statements]


def test_statements_of_a_function_are_listed_with_their_lines() -> None:
    removable = RemovableStatements(FUNCTION, "python")
    assert [(s.line, s.last_line, s.depth, removable.text_of(s)) for s in removable.statements] == [
        (6, 6, 0, "a = 0"),
        (6, 6, 0, "b = 1"),
        (7, 10, 0, "for i in x:  # a comment"),
        (8, 10, 1, "if i: b += 1"),
        (8, 8, 2, "b += 1"),
        (10, 10, 2, "b -= 1"),
        (11, 14, 0, "try:"),
        (12, 12, 1, "g()"),
        (14, 14, 1, "raise"),
        (15, 18, 0, "with open(x) as file:"),
        (17, 18, 1, "return [line"),
    ]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([FUNCTION, *STANDARD_LIBRARY]))
def test_python_without_a_statement_parses_and_lacks_only_it(text: str) -> None:
    removable = RemovableStatements(text, "python")
    before = sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(dedent(text))))
    for statement in removable.statements[:40]:
        rest = removable.without(statement)
        assert rest is not None
        after = sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(rest)))
        assert after < before or "pass" in rest


def test_a_block_that_becomes_empty_gets_pass() -> None:
    removable = RemovableStatements("def f(x):\n    if x:\n        g()\n", "python")
    outer, inner = removable.statements
    assert removable.without(inner) == "def f(x):\n    if x:\n        pass\n"
    assert removable.without(outer) == "def f(x):\n    pass\n"


def test_methods_of_a_class_and_definitions_of_a_file_are_not_statements() -> None:
    text = "import a\nclass Solution:\n    size = 3\n    def f(self):\n        return 1\nprint(Solution().f())\n"
    assert listed(text, "python") == [("size = 3", 0), ("return 1", 0), ("print(Solution().f())", 0)]


@pytest.mark.parametrize("language", sorted(LOOPS))
def test_statements_of_other_languages_keep_their_braces(language: str) -> None:
    text = LOOPS[language]
    removable = RemovableStatements(text, language)
    statements = [(removable.text_of(s).split()[0].lstrip("$"), s.depth) for s in removable.statements]
    loop = "n.times" if language == "ruby" else "for"
    name = {"c": "int", "cpp": "int", "java": "int", "csharp": "int", "javascript": "let", "typescript": "let",
            "rust": "let", "kotlin": "var", "swift": "var", "scala": "var"}.get(language, "k")  # fmt: skip
    expected = [(name, 0), (loop, 0), ("k", 1), ("return", 0)]
    if "while" in text:
        expected[3:3] = [("while", 0), ("k--;", 1)]
    assert statements == expected
    for statement in removable.statements:
        rest = removable.without(statement)
        assert rest is not None
        assert not ParsedSource(rest.encode(), language).root.has_error
        assert rest.count("{") >= text.count("{") - ("{" in removable.text_of(statement))


def test_text_without_a_grammar_has_lines() -> None:
    removable = RemovableStatements("tt.func @k() {\n  %0 = tt.load\n\n  tt.return\n}\n", "ttir")
    assert [statement.line for statement in removable.statements] == [1, 3, 4]
    assert removable.without(removable.statements[0]) == "tt.func @k() {\n\n  tt.return\n}\n"


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@given(st.text(alphabet="if x:\n\t(){};'\"#=def ", max_size=60))
def test_broken_code_has_statements_too(language: str, text: str) -> None:
    removable = RemovableStatements(text, language)
    for statement in removable.statements:
        removable.without(statement)
        assert statement.line <= statement.last_line


def test_deep_code_is_read_without_recursion() -> None:
    depth = 300
    text = "def f():\n" + "".join("\t" * (i + 1) + "if x:\n" for i in range(depth)) + "\t" * (depth + 1) + "g()\n"
    assert len(RemovableStatements(textwrap.dedent(text), "python").statements) == depth + 1
