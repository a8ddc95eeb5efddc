"""The supported languages: file suffixes, tree-sitter grammars and the syntax nodes that carry no cost (comments).

Everything that depends on a language looks here. Grammars are imported on first use.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath

from tree_sitter import Language as Grammar
from tree_sitter import Query

from rlm_core.errors import SourceError


@dataclass(frozen=True, slots=True)
class Language:
    """One language: ``grammar`` is ``module:function`` (None: it has none), ``comments`` a query for costless text.

    A dialect has no suffixes: its units are found in files of the language that it is written in. ``bare`` is the
    grammar of a text without the opening tag that files of the language have.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    grammar: str | None
    comments: str = "(comment) @skip"
    class_node: str | None = None
    indented: bool = False
    bare: str | None = None


_TAG = b"<?"
_LINE_BLOCK = "[(line_comment) (block_comment)] @skip"
_PYTHON = Language(
    "python",
    "Python",
    (".py", ".pyw"),
    "tree_sitter_python:language",
    # A string as a statement is a docstring or used as a comment.
    "[(comment) (expression_statement . [(string) (concatenated_string)] .)] @skip",
    "class_definition",
    indented=True,
)
_TABLE = (
    _PYTHON,
    replace(_PYTHON, name="triton", title="Triton", suffixes=()),
    replace(_PYTHON, name="pytorch", title="PyTorch", suffixes=()),
    Language("ttir", "Triton IR", (".ttir",), None),
    Language("onnx", "ONNX", (".onnx",), None),
    Language("c", "C", (".c", ".h"), "tree_sitter_c:language"),
    Language(
        "cpp",
        "C++",
        (".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"),
        "tree_sitter_cpp:language",
        class_node="class_specifier",
    ),
    Language("csharp", "C#", (".cs",), "tree_sitter_c_sharp:language", class_node="class_declaration"),
    Language("go", "Go", (".go",), "tree_sitter_go:language"),
    Language("java", "Java", (".java",), "tree_sitter_java:language", _LINE_BLOCK, "class_declaration"),
    Language(
        "javascript",
        "JavaScript",
        (".js", ".mjs", ".cjs", ".jsx"),
        "tree_sitter_javascript:language",
        class_node="class_declaration",
    ),
    Language("kotlin", "Kotlin", (".kt", ".kts"), "tree_sitter_kotlin:language", _LINE_BLOCK, "class_declaration"),
    Language(
        "php",
        "PHP",
        (".php",),
        "tree_sitter_php:language_php",
        class_node="class_declaration",
        bare="tree_sitter_php:language_php_only",
    ),
    Language("ruby", "Ruby", (".rb",), "tree_sitter_ruby:language", class_node="class"),
    Language("rust", "Rust", (".rs",), "tree_sitter_rust:language", _LINE_BLOCK, "impl_item"),
    Language(
        "scala",
        "Scala",
        (".scala", ".sc"),
        "tree_sitter_scala:language",
        "[(comment) (block_comment)] @skip",
        "object_definition",
    ),
    Language(
        "swift",
        "Swift",
        (".swift",),
        "tree_sitter_swift:language",
        "[(comment) (multiline_comment)] @skip",
        "class_declaration",
    ),
    Language(
        "typescript",
        "TypeScript",
        (".ts", ".mts", ".cts", ".tsx"),
        "tree_sitter_typescript:language_typescript",
        class_node="class_declaration",
    ),
)

LANGUAGES: dict[str, Language] = {language.name: language for language in _TABLE}
# Languages of data sets alone: a model can be trained on their texts and asked about them, but no file is in one of
# them, so neither the server nor a command finds units in it, and no setting names them.
TEXT_ONLY: dict[str, Language] = {
    name: Language(name, title, (), None)
    for name, title in (
        ("d", "D"),
        ("fortran", "Fortran"),
        ("haskell", "Haskell"),
        ("ocaml", "OCaml"),
        ("perl", "Perl"),
    )
}
_BY_SUFFIX = {suffix: language for language in _TABLE for suffix in language.suffixes}


def by_name(name: str) -> Language:
    """The language called ``name``, which may be one of data sets alone.

    Raises:
        SourceError: the language is unknown.
    """
    language = LANGUAGES.get(name) or TEXT_ONLY.get(name)
    if language is None:
        raise SourceError(f"unknown language {name!r}; known: {', '.join(sorted(LANGUAGES))}")
    return language


def by_path(path: PurePath | str) -> Language | None:
    """The language of a file, by its suffix; None for an unknown one."""
    return _BY_SUFFIX.get(PurePath(path).suffix.lower())


def grammar(name: str, source: bytes | None = None) -> Grammar:
    """The tree-sitter grammar of a language, or of a source text in it; imported on first use.

    Raises:
        SourceError: the language is unknown or is read without a grammar.
    """
    return _loaded(_grammar_of(name, source))


def comment_query(name: str, source: bytes) -> Query:
    """The compiled query whose ``skip`` captures are comments and docstrings, for a source of the language."""
    return _query(_grammar_of(name, source), by_name(name).comments)


def _grammar_of(name: str, source: bytes | None) -> str:
    entry = by_name(name)
    if entry.grammar is None:
        raise SourceError(f"{entry.title} is read without a grammar")
    return entry.bare if entry.bare and source is not None and _TAG not in source else entry.grammar


@cache
def _loaded(path: str) -> Grammar:
    module, function = path.split(":")
    return Grammar(getattr(importlib.import_module(module), function)())


@cache
def _query(path: str, query: str) -> Query:
    return Query(_loaded(path), query)
