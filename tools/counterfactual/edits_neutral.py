"""Edits that cost nothing: other names, hints, order, notation.

An edit takes a function and a source of choices, changes the function in place and says whether it found a place.
"""

from __future__ import annotations

import ast
import copy
import itertools
from random import Random

from . import syntax
from .syntax import places, source, statements
from .vocabulary import SYNONYMS

_FLIPPED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}


def rename_local(function: ast.FunctionDef, rng: Random) -> bool:
    """Local variables get other names."""
    parameters = {argument.arg for argument in function.args.args}
    names = sorted(syntax.stored(function) - parameters - {"_"})
    if not names:
        return False
    chosen = rng.sample(names, min(len(names), rng.randint(1, 3)))
    swap = {
        name: syntax.free_name(function, rng, *SYNONYMS.get(name, ()), f"{name}_{rng.choice(('now', 'one', 'new'))}")
        for name in chosen
    }
    if len(set(swap.values())) < len(swap):
        return False
    syntax.rename(function, swap)
    return True


def type_hints(function: ast.FunctionDef, rng: Random) -> bool:
    """Parameters and local variables gain or lose type hints."""
    hinted = [argument for argument in function.args.args if argument.annotation is not None]
    if hinted:
        for argument in hinted:
            argument.annotation = None
        function.returns = None
        return True
    done = False
    for block, at in places(function, ast.Assign):
        statement = block[at]
        assert isinstance(statement, ast.Assign)
        name, kind = syntax.assigned(statement), type(statement.value).__name__.lower().removesuffix("comp")
        if name is not None and kind in ("list", "dict", "set"):
            hint = ast.Name(kind, ast.Load())
            block[at] = ast.AnnAssign(ast.Name(name, ast.Store()), hint, statement.value, 1)
            done = True
    return done


def reorder(function: ast.FunctionDef, rng: Random) -> bool:
    """Two neighbouring statements that do not touch each other's names change places."""
    found = []
    for block in syntax.blocks(function):
        for at, (left, right) in enumerate(itertools.pairwise(block)):
            if not (isinstance(left, ast.Assign) and isinstance(right, (ast.Assign, ast.AugAssign))):
                continue
            if any(isinstance(node, ast.Attribute) for node in (*ast.walk(left), *ast.walk(right))):
                continue
            mine, theirs = syntax.stored(left), syntax.stored(right)
            if not (mine & (theirs | syntax.loaded(right)) or theirs & syntax.loaded(left)):
                found.append((block, at))
    if not found:
        return False
    block, at = rng.choice(found)
    block[at], block[at + 1] = block[at + 1], block[at]
    return True


def flip_comparison(function: ast.FunctionDef, rng: Random) -> bool:
    """``a < b`` becomes ``b > a``."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _FLIPPED
    ]
    if not found:
        return False
    node = rng.choice(found)
    node.left, node.comparators = node.comparators[0], [node.left]
    node.ops = [_FLIPPED[type(node.ops[0])]()]
    return True


def spell_out_addition(function: ast.FunctionDef, rng: Random) -> bool:
    """``count += 1`` becomes ``count = count + 1``."""
    found = [
        (block, at)
        for block, at in places(function, ast.AugAssign)
        if isinstance(block[at].target, ast.Name) and isinstance(block[at].value, ast.Constant)  # type: ignore[attr-defined]
    ]
    for block, at in found:
        statement = block[at]
        assert isinstance(statement, ast.AugAssign)
        name = source(statement.target)
        total = ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value)
        block[at] = statements(f"{name} = {source(total)}")[0]
    return bool(found)


def name_the_result(function: ast.FunctionDef, rng: Random) -> bool:
    """The returned value gets a name first."""
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is None or isinstance(last.value, ast.Name):
        return False
    name = syntax.free_name(function, rng, "answer", "outcome", "to_return")
    function.body[-1:] = [
        ast.Assign([ast.Name(name, ast.Store())], last.value), ast.Return(ast.Name(name, ast.Load())),
    ]  # fmt: skip
    return True


def swap_branches(function: ast.FunctionDef, rng: Random) -> bool:
    """``if a: x else: y`` becomes ``if not a: y else: x``."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.If) and node.orelse and not isinstance(node.orelse[0], ast.If)
    ]
    if not found:
        return False
    node = rng.choice(found)
    node.test = ast.UnaryOp(ast.Not(), node.test)
    node.body, node.orelse = node.orelse, node.body
    return True


def guard_loop(function: ast.FunctionDef, rng: Random) -> bool:
    """The body of a loop is inside a ``try`` that never raises."""
    found = places(function, ast.For)
    if not found:
        return False
    block, at = rng.choice(found)
    loop = block[at]
    assert isinstance(loop, ast.For)
    body = copy.copy(loop.body)
    handler = ast.ExceptHandler(ast.Name("MemoryError", ast.Load()), None, [ast.Raise()])
    loop.body = [ast.Try(body, [handler], [], [])]
    return True
