"""Python's units: functions and methods (async, nested, decorated), Triton kernels and ``nn.Module`` classes."""

from __future__ import annotations

import re
from functools import cache

from tree_sitter import Node, Query, QueryCursor

from .. import languages
from ..types import Unit, UnitKind
from .spans import name_text, span_of, unit_text

_KERNEL = re.compile(r"@\s*(?:\w+\.)*(?:triton\.(?:runtime\.)?)?jit\b")
_TRITON_IMPORT = re.compile(rb"^\s*(?:import|from)\s+triton\b", re.MULTILINE)
_MODULE_BASE = re.compile(r"(?:\w+\.)*Module\Z")
_TORCH_IMPORT = re.compile(rb"^\s*(?:import|from)\s+torch\b", re.MULTILINE)


@cache
def _definitions() -> Query:
    return Query(languages.grammar("python"), "[(function_definition) (class_definition)] @definition")


def find_python(source: bytes, root: Node) -> list[Unit]:
    """The units of a parsed Python file, in source order; qualified names as in ``__qualname__``."""
    nodes = QueryCursor(_definitions()).captures(root).get("definition", [])
    has_triton = bool(_TRITON_IMPORT.search(source))
    modules = {b"Module"} if _TORCH_IMPORT.search(source) else set()
    units: list[Unit] = []
    enclosing: list[tuple[int, str]] = []
    for node in sorted(nodes, key=lambda node: node.start_byte):
        while enclosing and enclosing[-1][0] <= node.start_byte:
            enclosing.pop()
        prefix = enclosing[-1][1] if enclosing else ""
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None or name_node.is_missing:
            continue
        name = name_text(name_node)
        is_class = node.type == "class_definition"
        enclosing.append((node.end_byte, f"{prefix}{name}." if is_class else f"{prefix}{name}.<locals>."))
        kind: UnitKind = "function"
        if is_class:
            if not _is_module(node, modules):
                continue
            modules.add(name.encode())
            kind = "module"
        elif has_triton and any(_KERNEL.match(text) for text in _decorators(node)):
            kind = "kernel"
        outer = node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node
        span = span_of(outer, node)
        header = span_of(node, _colon(node) or name_node)
        units.append(
            Unit(kind, "python", prefix + name, unit_text(source, span), span, span_of(name_node), header),
        )
    return units


def _colon(node: Node) -> Node | None:
    return next((child for child in node.children if child.type == ":"), None)


def _decorators(node: Node) -> list[str]:
    parent = node.parent
    if parent is None or parent.type != "decorated_definition":
        return []
    return [name_text(child) for child in parent.children if child.type == "decorator"]


def _is_module(node: Node, modules: set[bytes]) -> bool:
    bases = node.child_by_field_name("superclasses")
    if bases is None or not modules:
        return False
    texts = [base.text or b"" for base in bases.named_children if base.type in ("identifier", "attribute")]
    return any(
        text in modules or (b"." in text and _MODULE_BASE.match(text.decode(errors="replace"))) for text in texts
    )
