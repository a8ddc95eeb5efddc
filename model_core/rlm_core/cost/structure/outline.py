"""The outline of a text in any language with a grammar: its functions, loops and calls, and how they nest.

Grammars differ in names only, so nodes are selected by the categories of ``syntax_counts``, and the headers of loops
are read as text. One query finds the nodes, which takes time linear in the text; a long text is outlined by its start.
"""

from __future__ import annotations

import re
from functools import cache

from tree_sitter import Node, Query

from rlm_core.source import languages
from rlm_core.source.node_categories import node_category
from rlm_core.source.parsed import ParsedSource, query_cursor

from .loops import HEADER, read_loop
from .parts import MAX_DEPTH, CallSite, Loop, Outline, Routine

MAX_BYTES = 200_000
_MAX_NODES = 3_000


@cache
def _query(language: str) -> Query:
    grammar = languages.grammar(language)
    kinds: dict[str, set[str]] = {"loops": set(), "calls": set(), "functions": set()}
    for number in range(grammar.node_kind_count):
        kind = grammar.node_kind_for_id(number)
        if kind is None or not grammar.node_kind_is_named(number) or not grammar.node_kind_is_visible(number):
            continue
        category = "functions" if kind == "arrow_function" else node_category(kind)
        if category in kinds and kind not in ("function_declarator", "preproc_call", "function_signature_item"):
            kinds[category].add(kind)
    patterns = [
        f"[{' '.join(f'({kind})' for kind in sorted(names))}] @{name}" for name, names in kinds.items() if names
    ]
    return Query(grammar, "\n".join(patterns))


def outline(parsed: ParsedSource) -> Outline:
    """The outline of a text.

    Raises:
        SourceError: the language is unknown or is read without a grammar.
    """
    source = parsed.source[:MAX_BYTES]
    cursor = query_cursor(_query(parsed.language))
    cursor.set_byte_range(0, MAX_BYTES)
    captures = cursor.captures(parsed.root)
    nodes: list[tuple[int, int, str, Node]] = []
    for category in ("functions", "loops", "calls"):
        # Captures come in no particular order.
        for node in sorted(captures.get(category, []), key=lambda node: node.start_byte)[:_MAX_NODES]:
            scope = node
            if node.type == "for_in_clause" and node.parent is not None:
                scope = node.parent  # a comprehension's element is before its clauses
            nodes.append((scope.start_byte, -scope.end_byte, category, node))
    nodes.sort(key=lambda entry: entry[:2])
    top = Routine("", 0, len(source))
    routines = [top]
    around: list[Routine | Loop] = []
    for start, negative_end, category, node in nodes[:_MAX_NODES]:
        end = -negative_end
        while around and around[-1].end <= start:
            around.pop()
        function: Routine = top
        loop: Loop | None = None
        for outer in reversed(around):
            if isinstance(outer, Routine):
                function = outer
                break
            loop = loop or outer
        if category == "calls":
            function.calls.append(_call(node, source, loop, function))
        elif len(around) >= MAX_DEPTH:
            continue
        elif category == "functions":
            routine = _routine(node, source, start, end)
            if routine is None:
                continue
            routine.parent = function
            routines.append(routine)
            around.append(routine)
        else:
            entry = read_loop(node, source, start, end, loop)
            function.loops.append(entry)
            around.append(entry)
    return Outline(tuple(routines), source, parsed.language)


_ASSIGNED_TO = re.compile(rb"(\w+)\s*(?::[^=;{}\n]{0,80})?:?=\s*(?:async\s*|move\s*)?\Z")
_DECLARED = re.compile(rb"([\w~]+)\s*\(")
_MEMO = re.compile(rb"@(?:functools\.)?(?:lru_)?cache")


def _routine(node: Node, source: bytes, start: int, end: int) -> Routine | None:
    """A function; None for a lambda without a name, whose body runs where it is written."""
    body = node.child_by_field_name("body")
    header = source[start : min(body.start_byte if body is not None else end, start + HEADER)]
    name_node = node.child_by_field_name("name")
    if name_node is not None:
        name = name_node.text or b""
    elif node.child_by_field_name("declarator") is not None and "lambda" not in node.type:
        declared = _DECLARED.search(header)
        name = declared[1] if declared else b"?"
    else:
        assigned = _ASSIGNED_TO.search(source[max(start - 160, 0) : start])
        if assigned is None:
            return None
        name = assigned[1]
    opened = header.find(b"(", header.find(name) + 1 if name_node is not None else 0)
    inside = header[opened + 1 : header.rfind(b")")] if opened >= 0 else b""
    before = source[max(start - 80, 0) : start]
    memoised = bool(_MEMO.search(before.rpartition(b"\n\n")[2]))
    return Routine(
        name.decode(errors="replace"),
        start,
        end,
        inside.count(b",") + 1 if inside.strip() else 0,
        memoised,
        inside.decode(errors="replace"),
        node.start_point.row,
    )


_LAST_NAME = re.compile(rb"(\w+)\W*\Z")


def _call(node: Node, source: bytes, loop: Loop | None, function: Routine) -> CallSite:
    called = (
        node.child_by_field_name("function")
        or node.child_by_field_name("name")
        or node.child_by_field_name("type")
        or node.child_by_field_name("macro")
        or next(iter(node.named_children), None)
    )
    if called is None:
        return CallSite("", node.start_point.row, node.start_byte, loop, function, "")
    head = source[max(called.end_byte - 60, called.start_byte) : called.end_byte]
    if head.endswith(b">"):
        head = head.partition(b"<")[0]
    match = _LAST_NAME.search(head)
    name = match[1] if match else b""
    arguments = source[called.end_byte : min(node.end_byte, called.end_byte + 120)]
    receiver = source[node.start_byte : min(called.start_byte + 40, called.end_byte)]
    return CallSite(
        name.decode(errors="replace"),
        node.start_point.row,
        node.start_byte,
        loop,
        function,
        arguments.decode(errors="replace"),
        receiver.decode(errors="replace"),
    )
