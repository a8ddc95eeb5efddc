"""The canonical text: what carries no cost leaves no trace, and nothing else is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import SourceError
from rlm_core.source.canonical import canonical, dedent
from rlm_core.source.languages import LANGUAGES

STATEMENTS = ("x = f(x)", "y += x * 2", "if x > y:", "for x in range(9):", "return x", "z = 'a # b'", "while y: y -= 1")
NOISE = ("", "   ", "# a comment", "'''a docstring'''", '"""another"""', "\t# indented", "'a'; 'b'")
ENDS = ("", "  # why", "   ", ";", " ;  # end")

WITH_AND_WITHOUT_COMMENTS = {
    "python": ("def f():\n    '''Doc.'''\n    # why\n    return 1  # one\n", "def f():\n    return 1\n"),
    "c": ("/* a */ int f(void) { // b\n  return 1; /* c */\n}\n", "int f(void) {\n return 1;\n}\n"),
    "cpp": ("int f() { // b\n  return 1; }\n", "int f() {\n  return 1; }\n"),
    "csharp": ("class A { // b\n int F() { /* c */ return 1; } }", "class A {\n int F() { return 1; } }"),
    "go": ("package a\n\n// F is one.\nfunc F() int { return 1 /* x */ }\n", "package a\nfunc F() int { return 1 }\n"),
    "java": ("/** Doc. */\nclass A { int f() { return 1; } // b\n}", "class A { int f() { return 1; }\n}"),
    "javascript": ("/** @param x */\nconst f = x => x; // id\n", "const f = x => x;\n"),
    "kotlin": ("/* a */\nfun f(): Int { // b\n return 1 }\n", "fun f(): Int {\n return 1 }\n"),
    "php": ("<?php\n# a\n// b\nfunction f() { return 1; /* c */ }\n", "<?php\nfunction f() { return 1; }\n"),
    "ruby": ("# a\ndef f(x) # b\n  x\nend\n", "def f(x)\n  x\nend\n"),
    "rust": ("/// Doc.\nfn f() -> i32 { /* a */ 1 } // b\n", "fn f() -> i32 { 1 }\n"),
    "scala": ("/** Doc. */\ndef f(x: Int): Int = x // b\n", "def f(x: Int): Int = x\n"),
    "swift": ("/// Doc.\nfunc f() -> Int { /* a */ return 1 }\n", "func f() -> Int { return 1 }\n"),
    "triton": (
        "@triton.jit\ndef k(x, n: tl.constexpr):\n    # why\n    return tl.load(x)  # one\n",
        "@triton.jit\ndef k(x, n: tl.constexpr):\n    return tl.load(x)\n",
    ),
    "pytorch": (
        'class M(nn.Module):\n    """Doc."""\n    def forward(self, x):\n        return x  # same\n',
        "class M(nn.Module):\n    def forward(self, x):\n        return x\n",
    ),
    # Here it is the source locations that cost nothing.
    "ttir": (
        '#loc = loc("k.py":1:0)\ntt.func public @k() {\n  %0 = tt.load %p : f32 loc(#loc2)\n  tt.return loc(#loc)\n}\n',
        "tt.func public @k() {\n  %0 = tt.load %p : f32\n  tt.return\n}\n",
    ),
    "onnx": ("in 1x3x8x8\nA a\n\t·Relu\n\n·Conv3x3 8·A x2\n", "in 1x3x8x8\nA a\n\t·Relu\n·Conv3x3 8·A x2\n"),
    "typescript": (
        "// a\nfunction f(x: number): number { return x; /* b */ }\n",
        "function f(x: number): number { return x; }\n",
    ),
}


@st.composite
def functions(draw: st.DrawFn) -> list[str]:
    """The lines of a Python function that parses."""
    lines = ["def f(x, y):"]
    depth = 1
    for statement in draw(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=8)):
        lines.append("    " * depth + statement)
        depth += statement.endswith(":")
    return [*lines, "    " * depth + "return y"]


def test_every_language_has_a_sample() -> None:
    assert WITH_AND_WITHOUT_COMMENTS.keys() == LANGUAGES.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_leave_no_trace(language: str) -> None:
    with_comments, without = WITH_AND_WITHOUT_COMMENTS[language]
    assert canonical(with_comments, language) == canonical(without, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_canonical_form_of_a_canonical_text_is_itself(language: str) -> None:
    once = canonical(WITH_AND_WITHOUT_COMMENTS[language][0], language)
    assert canonical(once, language) == once


@given(functions())
def test_python_functions_have_one_canonical_form(lines: list[str]) -> None:
    once = canonical("\n".join(lines), "python")
    assert canonical(once, "python") == once


@given(functions(), st.data())
def test_comments_docstrings_and_blank_lines_change_nothing(lines: list[str], data: st.DataObject) -> None:
    noisy = []
    for line in lines:
        block = line.endswith(":")
        before = "" if block or line.startswith("def") else data.draw(st.sampled_from(("", "'a string'; ")))
        indent = line[: len(line) - len(line.lstrip())]
        noisy.append(indent + before + line.lstrip() + data.draw(st.sampled_from(ENDS[:3] if block else ENDS)))
        # A docstring stands at the depth of the line that follows.
        depth = len(line) - len(line.lstrip()) + 4 * line.endswith(":")
        noisy += [" " * depth + text if text.strip() else text for text in data.draw(st.lists(st.sampled_from(NOISE)))]
    assert canonical("\n".join(noisy), "python") == canonical("\n".join(lines), "python")


@given(st.text(), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_has_a_canonical_form_without_blank_lines(text: str, language: str) -> None:
    found = canonical(text, language)
    assert all(line.strip() for line in found.split("\n")) or not found


@pytest.mark.parametrize("indent", ["  ", "    ", "\t", "        "])
def test_indentation_becomes_a_tab_a_level(indent: str) -> None:
    text = f"def f(x):\n{indent}if x:\n{indent * 2}return 1\n{indent}return 2\n"
    assert canonical(text, "python") == "def f(x):\n\tif x:\n\t\treturn 1\n\treturn 2"


def test_indentation_without_a_meaning_is_dropped() -> None:
    assert canonical("int f() {\n\t\treturn 1;\n    }\n", "c") == "int f() {\nreturn 1;\n}"


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_ends_of_other_systems_make_no_difference(ending: str) -> None:
    text = "def f(x):\n    return x\n"
    assert canonical(text.replace("\n", ending), "python") == canonical(text, "python")


def test_a_method_reads_like_a_function() -> None:
    method = "    def f(self):\n        return 1\n"
    assert canonical(method, "python") == canonical(dedent(method), "python") == "def f(self):\n\treturn 1"


def test_a_docstring_before_a_statement_of_its_line_leaves_no_indentation() -> None:
    noisy = "def f():\n    y = 1\n    'why'; x = 1;\n    return x\n"
    assert canonical(noisy, "python") == "def f():\n\ty = 1\n\tx = 1\n\treturn x"


def test_a_semicolon_is_kept_where_it_means_something() -> None:
    assert canonical("int x = 1;\n", "c") == "int x = 1;"


def test_a_hash_sign_inside_a_string_is_kept() -> None:
    assert canonical("x = '# no comment'\n", "python") == "x = '# no comment'"


def test_a_block_comment_between_words_does_not_join_them() -> None:
    assert canonical("int/**/f(void);", "c") == "int f(void);"


def test_a_language_that_we_do_not_read_is_an_error() -> None:
    with pytest.raises(SourceError, match="unknown language 'cobol'"):
        canonical("x", "cobol")


@pytest.mark.parametrize("tag", ["", "<?php\n", "\n  <?php "])
def test_php_says_the_same_without_its_opening_tag(tag: str) -> None:
    code = "/** @param int $x */\nfunction f($x) {\n  foreach ($x as $i) { g($i); } // twice\n}\n"
    assert canonical(tag + code, "php") == "function f($x) {\nforeach ($x as $i) { g($i); }\n}"


def test_a_page_of_html_keeps_its_tags() -> None:
    page = "<h1>\n<?php echo 1; /* c */ ?>\n</h1>"
    assert canonical(page, "php") == "<h1>\n<?php echo 1; ?>\n</h1>"
    assert canonical("<?php f(); ?>\n<h1></h1>", "php") == "<?php f(); ?>\n<h1></h1>"
