"""Which parameters of a kernel are pointers, by what its loads and stores start from."""

from __future__ import annotations

import ast
from functools import lru_cache

from ..concrete.values import SourceFunction

_ACCESSES = frozenset({"load", "store", "make_block_ptr", "make_tensor_descriptor"})


@lru_cache(256)
def pointer_parameters(kernel: SourceFunction) -> frozenset[str]:
    """The parameters of a kernel that are pointers: what loads and stores start from, the left of their sums."""
    starts: dict[str, set[str]] = {}
    found: set[str] = set()
    for node in ast.walk(kernel.node):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and (start := _start(node.value)):
                    starts.setdefault(target.id, set()).add(start)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            values = [*node.args[:1], *(item.value for item in node.keywords if item.arg in ("base", "pointer"))]
            if name in _ACCESSES or name.startswith("atomic_"):
                found |= {start for value in values[:1] if (start := _start(value))}
    grown = found
    while grown := {start for name in grown for start in starts.get(name, ())} - found:
        found |= grown
    return frozenset(found & {item.arg for item in kernel.node.args.args})


def _start(node: ast.expr) -> str:
    """The name at the left of a sum, or the block that a call of ``advance`` or a method moves."""
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            node = node.func.value
        elif isinstance(node, ast.Call):
            base = next((item.value for item in node.keywords if item.arg == "base"), None)
            if base is None and not node.args:
                return ""
            node = base or node.args[0]
        elif isinstance(node, ast.IfExp):
            node = node.body
        else:
            return node.id if isinstance(node, ast.Name) else ""
