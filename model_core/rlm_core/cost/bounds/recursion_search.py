"""Recursive searches: a function changes something, calls itself, and takes the change back to try another.

That is how boards are filled and paths are found: what was tried does not count for the next try, so that the number of
calls grows exponentially. A walk over the parts of an object that keeps a stack of where it is does the same, but each
call gets another part; it is not a search.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ..domain.syntax import Function, nodes_of, walk
from .recursion_paths import most_calls
from .recursion_syntax import calls_itself

_PUTS = frozenset({"append", "add", "push", "insert", "appendleft"})
_TAKES = frozenset({"pop", "remove", "discard", "popleft", "popitem"})
_Plain = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=128)
def takes_back(node: Function) -> bool:
    """Return whether a function tries one of several ways after another, and takes each back."""
    if isinstance(node, ast.Lambda):
        return False
    loops = [inner for inner in nodes_of(node) if isinstance(inner, (ast.For, ast.AsyncFor))]
    if any(_tries(loop, node) or _tries_on_copies(loop, node) or _resumes(loop, node) for loop in loops):
        return True
    kept, extended = _taken_back(node), _extended(node)
    if kept and 2 <= most_calls(node) < math.inf and not kept.isdisjoint(_asked(node)):
        return True  # one way after another, without a loop
    return any(_finds_paths(loop, node, kept, extended) for loop in loops)


def _tries(loop: ast.For | ast.AsyncFor, node: _Plain) -> bool:
    """Return whether a loop changes something before a recursive call and takes it back behind it."""
    targets = _names(loop.target)
    for block in _blocks(loop.body):
        for index, statement in enumerate(block):
            calls = [part for part in walk(statement) if isinstance(part, ast.Call) and calls_itself(part, node)]
            passed = {name for call in calls for argument in _arguments(call) for name in _names(argument)}
            if not calls or (passed & targets and not _is_counted(loop.iter)):
                continue
            if _changed(block[:index]) & _changed(block[index + 1 :], taken=True):
                return True
    return False


def _resumes(loop: ast.For | ast.AsyncFor, node: _Plain) -> bool:
    """Return whether a loop goes on with the same arguments between two calls that change the same object."""
    parameters = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args)}
    parts = [part for statement in loop.body for part in walk(statement)]
    lines = [
        part.lineno
        for part in parts
        if isinstance(part, ast.Call)
        and calls_itself(part, node)
        and all(isinstance(argument, ast.Name) and argument.id in parameters for argument in _arguments(part))
    ]
    changes = [
        (part.lineno, part.value.func.value.id)
        for part in parts
        if isinstance(part, ast.Expr)
        and isinstance(part.value, ast.Call)
        and isinstance(part.value.func, ast.Attribute)
        and isinstance(part.value.func.value, ast.Name)
        and (_names(part.value) & _names(loop.target) or part.lineno > max(lines, default=0))
    ]
    return any(
        first == last and before < line < behind
        for line in lines
        for before, first in changes
        for behind, last in changes
    )


def _tries_on_copies(loop: ast.For | ast.AsyncFor, node: _Plain) -> bool:
    """Return whether iterations go on with a changed copy of a parameter, and with no part of what a loop runs over."""
    parameters = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args)}
    targets = _names(loop.target)
    copies = {
        target.id
        for statement in loop.body
        for inner in walk(statement)
        if isinstance(inner, ast.Assign) and _copied(inner.value) & parameters
        for target in inner.targets
        if isinstance(target, ast.Name)
    }
    bound = _results(loop, node)
    for call in (part for statement in loop.body for part in walk(statement) if isinstance(part, ast.Call)):
        if calls_itself(call, node) and not any(_names(part) & bound for part in _arguments(call)):
            changed = [part for part in _arguments(call) if _names(part) & copies or _copied(part) & parameters]
            rest = [part for part in _arguments(call) if part not in changed]
            if changed and not any(_names(part) & targets for part in rest):
                return True
    return False


def _results(loop: ast.For | ast.AsyncFor, node: _Plain) -> set[str]:
    """The names that results of recursive calls are bound to: a call that gets one takes a step, and no other try."""
    return {
        name
        for statement in loop.body
        for part in walk(statement)
        if isinstance(part, ast.Assign)
        and any(isinstance(inner, ast.Call) and calls_itself(inner, node) for inner in walk(part.value))
        for target in part.targets
        for name in _names(target)
    }


def _copied(part: ast.expr) -> set[str]:
    """The names of which an expression has a whole copy: ``items.copy()``, ``deepcopy(items)``, ``items[:]``."""
    found = set()
    for inner in walk(part):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="copy"), args=[]):
                found.add(name)
            case ast.Call(func=ast.Name(id="copy" | "deepcopy") | ast.Attribute(attr="copy" | "deepcopy")) if (
                inner.args
            ):
                found |= {argument.id for argument in inner.args if isinstance(argument, ast.Name)}
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice(lower=None, upper=None)):
                found.add(name)
    return found


@lru_cache(maxsize=128)
def refilled(node: Function) -> frozenset[str]:
    """The names of containers that hold behind a call what they held before, since it takes back what it puts in."""
    if isinstance(node, ast.Lambda):
        return frozenset()
    kept = _taken_back(node)
    names = {part.id for part in nodes_of(node) if isinstance(part, ast.Name)}
    return frozenset(name for name in names if ast.dump(ast.Name(name, ast.Load())) in kept)


def _taken_back(node: _Plain) -> set[str]:
    """The containers that a function fills and empties, or in which it marks entries and takes the marks away."""
    marked = [(ast.dump(target), is_empty) for target, is_empty in _entries(node)]
    kept = {place for place, is_empty in marked if is_empty and (place, False) in marked}
    return kept | _restored(node) | (_changed(node.body) & _changed(node.body, taken=True))


def _restored(node: _Plain) -> set[str]:
    """The names of tables in which an entry gets back behind the recursive calls what it was before: ``old = a[i]``."""
    lines = [part.lineno for part in nodes_of(node) if isinstance(part, ast.Call) and calls_itself(part, node)]
    assigned = [part for part in nodes_of(node) if isinstance(part, ast.Assign)]
    read = {
        (target.id, ast.dump(ast.Subscript(part.value.value, part.value.slice, ast.Store())))
        for part in assigned
        if isinstance(part.value, ast.Subscript)
        for target in part.targets
        if isinstance(target, ast.Name)
    }
    restored = set()
    for part in assigned:
        match part:
            case ast.Assign(targets=[ast.Subscript() as entry], value=ast.Name(id=name)) if (
                name,
                ast.dump(entry),
            ) in read and part.lineno > max(lines, default=part.lineno):
                restored.add(_table(entry))
    return restored - {""}


def _table(entry: ast.expr) -> str:
    """The name of the table that an entry such as ``board[i][j]`` is in; empty for others."""
    while isinstance(entry, ast.Subscript):
        entry = entry.value
    return entry.id if isinstance(entry, ast.Name) else ""


def _finds_paths(loop: ast.For | ast.AsyncFor, node: _Plain, kept: set[str], extended: set[str]) -> bool:
    """Return whether a loop goes on to what is not on the way here, and the way is taken back or extended in a copy."""
    bound = _results(loop, node)
    for test, body in _guarded(loop):
        calls = [
            part
            for statement in body
            for part in walk(statement)
            if isinstance(part, ast.Call) and calls_itself(part, node)
        ]
        if not calls or any(_names(argument) & bound for call in calls for argument in _arguments(call)):
            continue
        asked = set(_asked(test))
        copies = {place for call in calls for argument in _arguments(call) for place in _extends(argument, extended)}
        if asked & (kept | copies):
            return True
    return False


def _guarded(loop: ast.For | ast.AsyncFor) -> Iterator[tuple[ast.expr, Sequence[ast.stmt]]]:
    """Yield what runs in a loop under a condition."""
    for part in (inner for statement in loop.body for inner in walk(statement) if isinstance(inner, ast.BoolOp)):
        # `item in path or search(item)`
        yield from ((before, [ast.Expr(part.values[-1])]) for before in part.values[:-1])
    for place, statement in enumerate(loop.body):
        if not isinstance(statement, ast.If):
            continue
        yield statement.test, statement.body
        if isinstance(statement.body[-1], ast.Continue):
            yield statement.test, loop.body[place + 1 :]


def _asked(test: ast.AST) -> Iterator[str]:
    """The containers that a condition, or a function, looks something up in."""
    for part in walk(test):
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.In, ast.NotIn)):
            yield ast.dump(part.comparators[0])
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
            yield ast.dump(part.value)
            yield _table(part)


def _extended(node: _Plain) -> set[str]:
    """The names that are bound to a sum or a union, such as ``path + [item]``."""
    return {
        target.id
        for inner in nodes_of(node)
        if isinstance(inner, ast.Assign) and _is_sum(inner.value)
        for target in inner.targets
        if isinstance(target, ast.Name)
    }


def _extends(argument: ast.expr, extended: set[str]) -> Iterator[str]:
    """The container to which an argument adds: ``path + [item]``, or a name that is bound to that."""
    if isinstance(argument, ast.BinOp) and _is_sum(argument):
        yield ast.dump(argument.left)
    elif isinstance(argument, ast.Name) and argument.id in extended:
        yield ast.dump(argument)


def _is_sum(part: ast.expr) -> bool:
    return isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.BitOr))


def _changed(statements: Sequence[ast.stmt], *, taken: bool = False) -> set[str]:
    """The places that statements change: entries that are set, containers that something is put into or taken from."""
    methods = _TAKES if taken else _PUTS
    found: set[str] = set()
    for statement in statements:
        for part in walk(statement):
            match part:
                case ast.Call(func=ast.Attribute(value=container, attr=name)) if name in methods:
                    found.add(ast.dump(container))
                case ast.Subscript(ctx=ast.Store()):
                    found.add(ast.dump(part))
                case ast.Delete(targets=[ast.Subscript(value=value, slice=place)]) if taken:
                    found.add(ast.dump(ast.Subscript(value, place, ast.Store())))
    return found


def _entries(node: _Plain) -> Iterator[tuple[ast.expr, bool]]:
    """The containers whose entries are set, and whether to nothing: entries are marked, and unmarked."""
    for part in nodes_of(node):
        match part:
            case ast.Assign(targets=[ast.Subscript(value=container)], value=value):
                yield container, isinstance(value, ast.Constant) and not value.value


def _blocks(body: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    """A block and those inside it, without those of loops and functions."""
    yield body
    for statement in body:
        if isinstance(statement, (ast.If, ast.With, ast.Try)):
            yield from _blocks(statement.body)
        if isinstance(statement, (ast.If, ast.Try)) and statement.orelse:
            yield from _blocks(statement.orelse)


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _names(part: ast.expr) -> set[str]:
    return {inner.id for inner in walk(part) if isinstance(inner, ast.Name)}


def _is_counted(iterable: ast.expr) -> bool:
    """Return whether a loop runs over numbers."""
    match iterable:
        case ast.Call(func=ast.Name(id="range")):
            return True
    return False
