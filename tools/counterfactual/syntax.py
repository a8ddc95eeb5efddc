"""Helpers over Python syntax trees that the edits share: blocks, loops, names, replacement, free names."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from random import Random

Block = list[ast.stmt]
Place = tuple[Block, int]


def blocks(node: ast.AST) -> Iterator[Block]:
    """Every list of statements in ``node``, outermost first, those of nested functions left out."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
            for statement in block:
                if not isinstance(statement, ast.FunctionDef):
                    yield from blocks(statement)


def places(function: ast.FunctionDef, kind: type[ast.stmt]) -> list[Place]:
    """Where the statements of a kind stand: block and index in it."""
    return [
        (block, at) for block in blocks(function) for at, statement in enumerate(block) if isinstance(statement, kind)
    ]


def find(node: ast.AST, wanted: Callable[[ast.AST], bool]) -> list[ast.AST]:
    """The nodes below ``node`` that are ``wanted``."""
    return [found for found in ast.walk(node) if wanted(found)]


def stored(node: ast.AST) -> set[str]:
    """Names that are assigned in ``node``."""
    return {found.id for found in ast.walk(node) if isinstance(found, ast.Name) and not isinstance(found.ctx, ast.Load)}


def loaded(node: ast.AST) -> set[str]:
    """Names that are read in ``node``."""
    return {found.id for found in ast.walk(node) if isinstance(found, ast.Name) and isinstance(found.ctx, ast.Load)}


def free_name(function: ast.FunctionDef, rng: Random, *choices: str) -> str:
    """One of ``choices`` that the function does not use, else the first with a suffix."""
    used = {found.id for found in ast.walk(function) if isinstance(found, ast.Name)}
    used |= {found.arg for found in ast.walk(function) if isinstance(found, ast.arg)}
    free = [name for name in choices if name not in used]
    return rng.choice(free) if free else f"{choices[0]}_{len(used)}"


def statements(text: str) -> Block:
    """The statements of a source text."""
    return ast.parse(text).body


def expression(text: str) -> ast.expr:
    """The expression of a source text."""
    return ast.parse(text, mode="eval").body


def source(node: ast.AST) -> str:
    """The source text of a node."""
    return ast.unparse(ast.fix_missing_locations(node))


class _Replace(ast.NodeTransformer):
    def __init__(self, change: Callable[[ast.AST], ast.AST | None]) -> None:
        self._change, self.count = change, 0

    def visit(self, node: ast.AST) -> ast.AST:
        changed = self._change(node)
        if changed is not None:
            self.count += 1
            return changed
        return super().generic_visit(node)


def replace(node: ast.AST, change: Callable[[ast.AST], ast.AST | None]) -> int:
    """Replace nodes below ``node`` by what ``change`` makes of them (None leaves a node); how many were replaced."""
    replacer = _Replace(change)
    replacer.generic_visit(node)
    return replacer.count


def rename(node: ast.AST, names: dict[str, str]) -> None:
    """Rename variables and parameters in place."""
    for found in ast.walk(node):
        if isinstance(found, ast.Name):
            found.id = names.get(found.id, found.id)
        elif isinstance(found, ast.arg):
            found.arg = names.get(found.arg, found.arg)
        elif isinstance(found, ast.Nonlocal):
            found.names = [names.get(name, name) for name in found.names]


def is_call(node: ast.AST, *names: str) -> bool:
    """Return whether ``node`` calls one of the named functions, ``sum`` or ``heapq.heappush``."""
    return isinstance(node, ast.Call) and source(copy.copy(node.func)) in names


def is_method(node: ast.AST, owner: str, *methods: str) -> bool:
    """Return whether ``node`` calls a method of the variable ``owner``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == owner
        and (not methods or node.func.attr in methods)
    )


def assigned(statement: ast.stmt) -> str | None:
    """The variable of ``name = value``, None for any other statement."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None


def leaves_loop(body: Block) -> bool:
    """Return whether statements hold a ``break``, ``continue`` or ``return``."""
    return any(
        isinstance(found, (ast.Break, ast.Continue, ast.Return)) for statement in body for found in ast.walk(statement)
    )
