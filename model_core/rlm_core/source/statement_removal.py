"""A unit's text -> its statements, and the text without one of them, which still parses.

A compound statement is a statement, and so are those inside it. Comments, docstrings and the definition of the unit
itself are not. A text in a language without a grammar has lines in place of statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from . import languages
from .canonical import dedent
from .parsed import ParsedSource

# Nodes whose children are statements, in the grammars of our languages.
_BLOCK = re.compile(
    r"module|program|source_file|translation_unit|compilation_unit|block|compound_statement|statement_block"
    r"|statement_list|statements|body_statement|indented_block|do_block|then|else|control_structure_body"
)
_ROOTS = frozenset(("module", "program", "source_file", "translation_unit", "compilation_unit"))
# In a file or class these are the frame of what is done; within a function they are statements.
_FRAME = re.compile(
    r"(\w*_)?(class|function|method|struct|interface|trait|impl|enum|object|namespace|package|import|use|using|preproc)"
    r"\w*|decorated_definition|type_definition|template_declaration|global_statement|php_tag|text|future_import\w*"
)
_COMMENT = re.compile(r"\w*comment")
_NO_CODE = frozenset(("empty_statement", "pass_statement", "block_parameters"))
# The bodies of these may be a single statement without braces.
_SINGLE_BODY = re.compile(r"(if|for|while|do|else|enhanced_for|for_in|foreach|for_range)(_statement|_clause|_loop)?")
_BODY_FIELDS = ("body", "consequence", "alternative")
_BRACED = frozenset(("c", "cpp", "csharp", "java", "javascript", "typescript", "php"))


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a unit's text: its first and last line (0-based) and how deep it is nested in others.

    ``start`` and ``end`` are the span, in bytes of the unindented text, that ``filler`` takes the place of.
    """

    line: int
    last_line: int
    depth: int
    start: int
    end: int
    filler: bytes


class RemovableStatements:
    """The statements of a unit's text that can be left out, in their order."""

    def __init__(self, text: str, language: str) -> None:
        self._source = dedent(text).encode("utf-8", errors="replace")
        # Leading blank lines are lost where the text is unindented.
        unix = text.replace("\r\n", "\n").replace("\r", "\n")
        self._first_line = len(unix) - len(unix.lstrip("\n"))
        self._language = language
        entry = languages.by_name(language)
        self._has_grammar = entry.grammar is not None
        self._is_indented = entry.indented
        if not self._has_grammar:
            self.statements = list(self._lines())
            return
        parsed = ParsedSource(self._source, language)
        self._broken = parsed.has_error
        self._readable = parsed.readable
        skipped = {node.id for node in parsed.comments()}
        self.statements = sorted(self._within(parsed.root, skipped), key=lambda entry: (entry.start, -entry.end))

    def without(self, statement: Statement) -> str | None:
        """The text without a statement; None if it would not parse any more."""
        source = self._source
        rest = source[: statement.start] + statement.filler + source[statement.end :]
        if self._has_grammar and not self._broken and ParsedSource(rest, self._language).has_error:
            return None
        return rest.decode("utf-8", errors="replace")

    def text_of(self, statement: Statement) -> str:
        """The first line of a statement, without its indentation."""
        text = self._source[statement.start : statement.end].decode("utf-8", errors="replace")
        return next((line.strip() for line in text.splitlines() if line.strip()), "")

    def _lines(self) -> Iterator[Statement]:
        start = 0
        for number, line in enumerate(self._source.splitlines(keepends=True)):
            if number and line.strip():
                place = self._first_line + number
                yield Statement(place, place, 0, start, start + len(line), b"")
            start += len(line)

    def _within(self, root: Node, skipped: set[int]) -> Iterator[Statement]:
        """The statements in a tree; without recursion, since code may be nested deeply."""
        stack = [(root, 0)]
        while stack:
            node, depth = stack.pop()
            children = node.named_children
            if _BLOCK.fullmatch(node.type):
                statements = [child for child in children if self._is_code(child, skipped)]
                is_frame = node.type in _ROOTS or (node.parent is not None and node.parent.type == "class_definition")
                for child in statements:
                    if _BLOCK.fullmatch(child.type) or (is_frame and _FRAME.fullmatch(child.type)):
                        stack.append((child, depth))
                        continue
                    start, end = child.start_byte, child.end_byte
                    if not child.has_error and self._readable[start:end] == self._source[start:end]:
                        yield self._statement(child, depth, is_only=len(statements) == 1)
                    stack.append((child, depth + 1))
                continue
            if self._language in _BRACED and _SINGLE_BODY.fullmatch(node.type):
                for name in _BODY_FIELDS:
                    body = node.child_by_field_name(name)
                    if body is not None and self._is_single(body):
                        yield self._span(body, depth, b"{}")
            stack += [(child, depth) for child in children]

    def _is_code(self, node: Node, skipped: set[int]) -> bool:
        if node.id in skipped or _COMMENT.fullmatch(node.type) or node.type in _NO_CODE:
            return False
        # A docstring is an expression statement whose only child is skipped.
        inner = node.named_children if node.type == "expression_statement" else []
        return not inner or any(child.id not in skipped for child in inner)

    def _is_single(self, body: Node) -> bool:
        """Return whether the body of a compound statement is a statement without braces."""
        if _BLOCK.fullmatch(body.type) or body.type == "else_clause" or body.has_error:
            return False
        return body.type.endswith(("_statement", "declaration")) and body.type != "if_statement"

    def _statement(self, node: Node, depth: int, *, is_only: bool) -> Statement:
        if not self._is_indented:
            return self._span(node, depth, b"")
        source = self._source
        start = source.rfind(b"\n", 0, node.start_byte) + 1
        end = source.find(b"\n", node.end_byte)
        end = len(source) if end < 0 else end + 1
        # A comment may follow; anything else in the lines is another statement.
        rest = source[node.end_byte : end].split(b"#")[0].strip()
        if is_only or source[start : node.start_byte].strip() or rest:
            return self._span(node, depth, b"pass")
        return self._span(node, depth, b"", start, end)

    def _span(
        self, node: Node, depth: int, filler: bytes, start: int | None = None, end: int | None = None
    ) -> Statement:
        return Statement(
            self._first_line + node.start_point.row,
            self._first_line + node.end_point.row,
            depth,
            node.start_byte if start is None else start,
            node.end_byte if end is None else end,
            filler,
        )
