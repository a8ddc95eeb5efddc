"""One version of a source text and its syntax tree, which everything that reads the text shares.

``ParsedSource`` parses on first use and at most once; after an edit it starts from the tree of a previous version. The
functions below give the spans, names and texts of a tree's nodes.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Any, cast

from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from rlm_core.errors import TooComplexError
from rlm_core.types import Span

from . import languages
from .python_repair import without_unfinished

# Of processor time that a parser may take; 2 MiB of ordinary code take about one second.
_PARSE_SECONDS, _BYTE_SECONDS = 1.0, 1.5e-6
# For one statement of a text that is too complex, and for all of them.
_STATEMENT_SECONDS, _STATEMENTS_SECONDS = 0.25, 0.5
_PIECE_BYTES = 4096  # that a parser reads at once
_NODE_BYTES = 256  # that a node reads first; most are names
_MOST_OPEN = 20_000  # brackets; while it recovers from many more the parser does not ask whether to go on
_MOST_DEPTH = 1_000  # of nodes that queries find: a step of a query takes as long as its node is deep
# A query looks from each sign for a named node after it, and from each node at those around it that a pattern may still
# match: some nanoseconds per step. Long runs of signs are only in code with syntax errors.
_LONG_RUN, _MOST_STEPS = 1_000, 40_000_000
_OPEN_PATTERNS = frozenset(("attribute", "call"))  # those of `module_index`, in Python
_NO_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))
_LONE_CR = re.compile(rb"\r(?!\n)")


class ParsedSource:
    """A UTF-8 source text in a known language with its syntax tree, built on first use.

    ``source`` has LF where the text had CR alone, at the same offset.

    Args:
        source: the text.
        language: its language.
        may_leave_out: whether statements of a Python text may be left out because they are too complex, as in a file of
            several units. The text of one unit is too complex with them.
        seconds: of processor time that parsing may take; by default it depends on the length.
    """

    def __init__(
        self, source: bytes, language: str, *, may_leave_out: bool = False, seconds: float | None = None
    ) -> None:
        # A line may end with CR alone, as in Python and in the language server protocol; grammars do not know that.
        self.source = _LONE_CR.sub(b"\n", source) if b"\r" in source else source
        self.language = language
        self._may_leave_out, self._seconds = may_leave_out, seconds
        self._tree: Tree | None = None
        self._parsed = self.source  # the text of the tree
        self._previous: ParsedSource | None = None
        self._too_complex: str | None = None  # why the text has no tree

    @property
    def root(self) -> Node:
        """The root of the syntax tree; that of a Python text with errors leaves its unfinished statements out.

        Raises:
            SourceError: the language is unknown or is read without a grammar.
            TooComplexError: parsing takes too long, or reading the tree would; a ``SourceError``.
        """
        if self._tree is None:
            if self._too_complex is not None:
                raise TooComplexError(self._too_complex)
            try:
                self._tree = self._read()
            except TooComplexError as error:
                self._too_complex = str(error)
                raise
        return self._tree.root_node

    @property
    def has_error(self) -> bool:
        """True if the grammar finds a syntax error in the text. Raises the errors of ``root``."""
        return self.root.has_error or self._parsed is not self.source

    @property
    def readable(self) -> bytes:
        """The text that the tree is of: with blanks for what was left out. Raises the errors of ``root``."""
        self.root  # noqa: B018
        return self._parsed

    def follow(self, previous: ParsedSource) -> None:
        """Build the tree, if it is needed, from that of a previous version."""
        if self._tree is None:
            self._previous = previous if previous._tree is not None else previous._previous

    def _read(self) -> Tree:
        previous, self._previous = self._previous, None
        # A new parser: parsers are not thread-safe, grammars are.
        grammar = languages.grammar(self.language, self.source)
        is_python = self.language == "python"
        tree, is_too_complex = None, None
        try:
            tree = previous._edited(self.source, grammar) if previous is not None else self._parse(self.source, grammar)
            if tree is not None and not (is_python and tree.root_node.has_error):
                return tree
        except TooComplexError:
            if not is_python:
                raise
            if self._may_leave_out:
                is_too_complex = partial(_is_too_complex, grammar, time.thread_time() + _STATEMENTS_SECONDS)
        finished = without_unfinished(self.source, is_too_complex) if is_python else self.source
        if finished == self.source:
            return tree or self._parse(self.source, grammar)
        self._parsed = finished
        tree = previous._edited(finished, grammar) if previous is not None else None
        return tree or self._parse(finished, grammar)

    def _edited(self, after: bytes, grammar: Language) -> Tree | None:
        """The tree of a later version, made from this one by one edit.

        None for a text with syntax errors: recovery from errors may depend on the tree that it starts from.
        """
        before, tree = self._parsed, self._tree
        if tree is None or grammar is not languages.grammar(self.language, before):
            return None
        start = common_prefix(before, after)
        rest = min(common_prefix(before[::-1], after[::-1]), min(len(before), len(after)) - start)
        old_end, new_end = len(before) - rest, len(after) - rest
        tree = tree.copy()
        tree.edit(start, old_end, new_end, _point(before, start), _point(before, old_end), _point(after, new_end))
        tree = self._parse(after, grammar, tree)
        return tree if not tree.root_node.has_error else None

    def _parse(self, source: bytes, grammar: Language, previous: Tree | None = None) -> Tree:
        return _parse_all(source, grammar, self._seconds or _PARSE_SECONDS + _BYTE_SECONDS * len(source), previous)

    def comments(self) -> list[Node]:
        """The comments and docstrings, in no particular order; none of a text that is too complex to parse."""
        try:
            root = self.root
        except TooComplexError:
            return []
        return query_cursor(languages.comment_query(self.language, self.source)).captures(root).get("skip", [])


def query_cursor(query: Query) -> QueryCursor:
    """A cursor for a query; it leaves out nodes so deep that reading them takes quadratic time, as in long chains."""
    cursor = QueryCursor(query)
    cursor.set_max_start_depth(_MOST_DEPTH)
    return cursor


def _parse_all(source: bytes, grammar: Language, seconds: float, previous: Tree | None = None) -> Tree:
    """The tree of a text, or of one that was edited since ``previous``.

    Raises:
        TooComplexError: parsing takes more than ``seconds``, or reading the tree would take long.
    """
    tree = _parse(source, grammar, seconds, previous)
    if _is_slow_to_query(tree.root_node):
        raise TooComplexError("too complex to analyse: thousands of signs without operands, or of calls in each other")
    return tree


def _is_too_complex(grammar: Language, end: float, text: bytes) -> bool:
    if time.thread_time() > end:
        return True
    try:
        _parse_all(text, grammar, _STATEMENT_SECONDS)
    except TooComplexError:
        return True
    return False


def _parse(source: bytes, grammar: Language, seconds: float, previous: Tree | None) -> Tree:
    """The tree of a text.

    Raises:
        TooComplexError: it takes more than ``seconds``. Some grammars take a time that grows with the square of a
            text's length, for example for thousands of brackets that are not closed.
    """
    before: dict[str, Any] = {"old_tree": previous} if previous is not None else {}
    # Only a text that comes in pieces can be given up. The texts of its nodes take longer to read, and no text that is
    # short takes long to parse.
    if len(source) <= _PIECE_BYTES:
        return Parser(grammar).parse(source, **before)
    if _depth_exceeds(source, _MOST_OPEN):
        raise _too_complex(seconds)
    end = time.thread_time() + seconds
    pieces = _Pieces(source)
    try:
        return Parser(grammar).parse(
            pieces.read,
            **before,
            progress_callback=lambda offset, has_error: time.thread_time() > end,
        )
    except ValueError:
        raise _too_complex(seconds) from None
    finally:
        pieces.is_parsed = True


def _too_complex(seconds: float) -> TooComplexError:
    return TooComplexError(f"too complex to analyse: parsing takes more than {seconds:.2g} s")


class _Buffer(threading.local):
    """A buffer for one piece of a text; each thread has its own."""

    def __init__(self) -> None:
        self.piece = bytearray()


class _Pieces:
    """The pieces of a text for its parser, and for the nodes of the tree once it is parsed.

    py-tree-sitter up to 0.26 leaks a reference to each object that a parser reads, so the parser always reads the same
    buffer. It needs the content of a piece only until it asks for the next one. Nodes must read ``bytes``; they release
    them.
    """

    def __init__(self, source: bytes) -> None:
        self._source = source
        self.is_parsed = False
        self._size, self._end = _NODE_BYTES, -1  # of the last piece that a node read

    def read(self, offset: int, _point: object) -> bytes:
        """Return the bytes that follow an offset; empty at the end of the text."""
        if self.is_parsed:
            # Each piece of a long node copies those before it, so pieces grow.
            self._size = _NODE_BYTES if offset != self._end else 8 * self._size
            self._end = offset + self._size
            return self._source[offset : self._end]
        if not (text := self._source[offset : offset + _PIECE_BYTES]):
            return b""
        # Not a view of the buffer: each view would be leaked, too.
        _buffer.piece[:] = text
        return cast("bytes", _buffer.piece)


_buffer = _Buffer()


def _is_slow_to_query(root: Node) -> bool:
    """Return whether queries of a tree take a time that grows with the square of its size."""
    steps = 0
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        if node.descendant_count <= _LONG_RUN:
            continue
        children = node.children
        if node.child_count - node.named_child_count > _LONG_RUN:
            for named, run in groupby(child.is_named for child in children):
                length = 0 if named else sum(1 for _ in run)
                steps += length**2 if length > _LONG_RUN else 0
        depth += node.type in _OPEN_PATTERNS
        if max(steps, depth * node.descendant_count) > _MOST_STEPS:
            return True
        stack += ((child, depth) for child in children)
    return False


def _depth_exceeds(source: bytes, limit: int) -> bool:
    """Return whether more than ``limit`` brackets are open at once; those in strings and comments count too."""
    brackets = source.translate(None, delete=_NO_BRACKETS)
    if len(brackets) <= limit:
        return False
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in b"([{" else -1
        if depth > limit:
            return True
    return False


def common_prefix(first: bytes, second: bytes) -> int:
    """The length of the common prefix."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _point(source: bytes, offset: int) -> tuple[int, int]:
    """The row and the column of a byte offset."""
    return source.count(b"\n", 0, offset), offset - source.rfind(b"\n", 0, offset) - 1


def span_of(first: Node, last: Node | None = None) -> Span:
    """The span from the start of ``first`` to the end of ``last`` (default: of ``first``)."""
    last = last or first
    start, end = first.start_point, last.end_point
    return Span(start.row, start.column, end.row, end.column, first.start_byte, last.end_byte)


def header_of(definition: Node, name: Node) -> Span:
    """The span of a Python definition up to its colon, or to its name where the colon is missing."""
    return span_of(definition, next((child for child in definition.children if child.type == ":"), name))


def name_text(node: Node | None) -> str:
    """The text of a node, empty where the grammar has no node."""
    return node.text.decode("utf-8", errors="replace") if node is not None and node.text else ""


def unit_text(source: bytes, span: Span) -> str:
    """The text of a unit with the indentation of its first line, so that dedenting it is exact."""
    line_start = source.rfind(b"\n", 0, span.start_byte) + 1
    indent = source[line_start : span.start_byte]
    start = line_start if not indent.strip() else span.start_byte
    return source[start : span.end_byte].decode("utf-8", errors="replace")


def qualname(definition: Node) -> str:
    """The qualified name of a Python definition, as in ``__qualname__``."""
    names = [name_text(definition.child_by_field_name("name"))]
    parent = definition.parent
    while parent is not None:
        if parent.type == "function_definition":
            names += ["<locals>", name_text(parent.child_by_field_name("name"))]
        elif parent.type == "class_definition":
            names.append(name_text(parent.child_by_field_name("name")))
        parent = parent.parent
    return ".".join(reversed(names))


def decorated(definition: Node) -> Node:
    """A Python definition with its decorators."""
    parent = definition.parent
    return parent if parent is not None and parent.type == "decorated_definition" else definition


def undecorated(statement: Node) -> Node:
    """The definition in a Python statement, without its decorators."""
    inner = statement.child_by_field_name("definition") if statement.type == "decorated_definition" else None
    return inner if inner is not None else statement


def descendants(root: Node, node_type: str) -> Iterator[Node]:
    """All nodes of a type in a tree, in source order."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == node_type:
            yield node
        stack += reversed(node.named_children)


def imported_names(root: Node) -> Iterator[tuple[str, str, str]]:
    """The module-level imports of a Python file as (module of ``from``, imported name, name in the file)."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in ("import_statement", "import_from_statement"):
            module = name_text(node.child_by_field_name("module_name"))
            for child in node.children_by_field_name("name"):
                is_alias = child.type == "aliased_import"
                name = name_text(child.child_by_field_name("name") if is_alias else child)
                yield module, name, name_text(child.child_by_field_name("alias")) if is_alias else name
        elif node.type not in ("function_definition", "class_definition", "expression_statement"):
            stack += node.named_children
