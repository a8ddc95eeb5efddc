"""The file of a network that a call in a Python text names: ``onnxruntime.InferenceSession("net.onnx")``.

Input: a parsed text and an offset in it. Output: the path as it is written, and the directives next to the call. Calls
that write or load a network are known by the last part of their name; elsewhere a text that ends in ``.onnx`` is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from .directives import Directive, find_directives
from .parsed import ParsedSource

_SUFFIX = ".onnx"
_CALLEE = re.compile(r"(?:^|\.)(?:InferenceSession|onnx\.(?:export|load|load_model))$")
_TEXT = re.compile(r"[bBuUrR]*(?P<quote>'{3}|\"{3}|['\"])(?P<text>[^\n]*)(?P=quote)")


@dataclass(frozen=True, slots=True)
class NetworkCall:
    """The path of a network as a text has it, and the directives at the end of its lines and right above them."""

    path: str
    directives: tuple[Directive, ...]


def network_call(parsed: ParsedSource, offset: int) -> NetworkCall | None:
    """The network that the call or the text at a byte offset names; None where there is none.

    Raises:
        TooComplexError: the text has no syntax tree.
    """
    if parsed.language != "python" or _SUFFIX.encode() not in parsed.source:
        return None
    node = parsed.root.descendant_for_byte_range(offset, offset)
    while node is not None:
        path = _path(node) if node.type == "string" else _argument(node) if node.type == "call" else None
        if path is not None:
            return NetworkCall(path, _directives(parsed, node))
        if node.type in ("block", "module"):
            return None
        node = node.parent
    return None


def _argument(call: Node) -> str | None:
    callee, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    name = callee.text.decode("utf-8", "replace") if callee is not None and callee.text is not None else ""
    if arguments is None or not _CALLEE.search(re.sub(r"\s", "", name)):
        return None
    values = (child.child_by_field_name("value") or child for child in arguments.named_children)
    return next(filter(None, (_path(value) for value in values if value.type == "string")), None)


def _path(string: Node) -> str | None:
    """The text of a literal that names a network; None for another one, and for one with parts to fill in."""
    match = _TEXT.fullmatch((string.text or b"").decode("utf-8", "replace"))
    if match is None or not match["text"].lower().endswith(_SUFFIX) or "\\" in match["text"]:
        return None
    return match["text"]


def _directives(parsed: ParsedSource, node: Node) -> tuple[Directive, ...]:
    statement = node
    while statement.parent is not None and statement.parent.type not in ("block", "module"):
        statement = statement.parent
    found = find_directives(parsed)
    first, last = statement.start_point.row, statement.end_point.row
    above = first - 1
    rows = set(range(first, last + 1))
    while above in found.rows:
        rows.add(above)
        above -= 1
    return tuple(directive for directive in found if directive.row in rows)
