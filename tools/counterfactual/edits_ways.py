"""Edits that compute the same another way: caching, recursion, laziness, calls moved into loops, other loops.

An edit takes a function and a source of choices, changes the function in place and says whether it found a place. What
the function returns stays the same; the measurement compares it and drops the edit where it does not.
"""

from __future__ import annotations

import ast
import copy
from random import Random

from . import syntax
from .syntax import assigned, free_name, is_call, places, source, statements


def recurse(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop over elements becomes a recursive inner function."""
    found = [place for place in places(function, ast.For) if not syntax.leaves_loop(place[0][place[1]].body)]  # type: ignore[attr-defined]
    if not found:
        return False
    block, at = rng.choice(found)
    loop = block[at]
    assert isinstance(loop, ast.For)
    inside = set().union(*(syntax.stored(statement) for statement in loop.body))
    rest = copy.deepcopy(function)
    outside = _stored_elsewhere(function, loop) | {argument.arg for argument in rest.args.args}
    name = free_name(function, rng, "step", "visit", "walk")
    items = free_name(function, rng, "todo", "sequence", "elements")
    shared = sorted(inside & outside)
    lines = [f"def {name}(at):", *([f"    nonlocal {', '.join(shared)}"] if shared else [])]
    lines += [f"    if at == len({items}):", "        return", f"    {source(loop.target)} = {items}[at]"]
    inner = statements("\n".join(lines))[0]
    assert isinstance(inner, ast.FunctionDef)
    inner.body += [*loop.body, *statements(f"{name}(at + 1)")]
    block[at : at + 1] = [*statements(f"{items} = list({source(loop.iter)})"), inner, *statements(f"{name}(0)")]
    return True


def _stored_elsewhere(function: ast.FunctionDef, loop: ast.For) -> set[str]:
    within = {id(node) for node in ast.walk(loop)}
    return {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in within
    }


def loop_for_comprehension(function: ast.FunctionDef, rng: Random) -> bool:
    """A list comprehension becomes a loop that appends."""
    for block, at in places(function, ast.Assign):
        statement = block[at]
        name = assigned(statement)
        assert isinstance(statement, ast.Assign)
        value = statement.value
        if name is None or not isinstance(value, ast.ListComp) or len(value.generators) != 1:
            continue
        part = value.generators[0]
        if name in syntax.loaded(value):
            fresh = free_name(function, rng, "kept", "built", "chosen")
            tail = statements(f"{name} = {fresh}")
        else:
            fresh, tail = name, []
        body = statements(f"{fresh}.append({source(value.elt)})")
        for condition in part.ifs:
            body = [ast.If(condition, body, [])]
        block[at : at + 1] = [*statements(f"{fresh} = []"), ast.For(part.target, part.iter, body, []), *tail]
        return True
    return False


def list_for_generator(function: ast.FunctionDef, rng: Random) -> bool:
    """Build a list first of items that were consumed lazily."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and len(node.args) >= 1 and isinstance(node.args[0], ast.GeneratorExp)
    ]
    if not found:
        return False
    call = rng.choice(found)
    part = call.args[0]
    assert isinstance(part, ast.GeneratorExp)
    call.args[0] = ast.ListComp(part.elt, part.generators)
    return True


def inline_in_loop(function: ast.FunctionDef, rng: Random) -> bool:
    """A value computed before a loop is computed at every use in it."""
    candidates = []
    for block in syntax.blocks(function):
        for at, statement in enumerate(block):
            name = assigned(statement)
            if name is None or not isinstance(statement, ast.Assign):
                continue
            if not any(
                isinstance(node, (ast.Call, ast.ListComp, ast.SetComp, ast.BinOp)) for node in ast.walk(statement)
            ):
                continue
            used = [
                later for later in block[at + 1 :] if isinstance(later, (ast.For, ast.While)) and _reads(later, name)
            ]
            if used and sum(name in syntax.stored(other) for other in function.body) == 1:
                candidates.append((block, statement, name, used))
    if not candidates:
        return False
    block, statement, name, used = rng.choice(candidates)
    value = statement.value
    for loop in used:
        for body in loop.body:
            syntax.replace(
                body,
                lambda node: (
                    copy.deepcopy(value)
                    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
                    else None
                ),
            )
    if name not in syntax.loaded(function):
        block.remove(statement)
    return True


def _reads(loop: ast.For | ast.While, name: str) -> bool:
    return any(name in syntax.loaded(statement) for statement in loop.body)


def drop_cache(function: ast.FunctionDef, rng: Random) -> bool:
    """Compute again what was computed before."""
    for block, at in places(function, ast.If):
        statement = block[at]
        assert isinstance(statement, ast.If)
        test, first = statement.test, statement.body[0]
        if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In)):
            continue
        if isinstance(first, ast.Return) and isinstance(first.value, ast.Subscript):
            del block[at]
            return True
    return False


def add_cache(function: ast.FunctionDef, rng: Random) -> bool:
    """A call in a loop is looked up in a dict before it is made."""
    found = []
    for block, at in places(function, ast.For):
        loop = block[at]
        assert isinstance(loop, ast.For)
        for index, statement in enumerate(loop.body):
            if isinstance(statement, (ast.For, ast.While, ast.If)):
                continue
            for node in ast.walk(statement):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and "_" in node.func.id):
                    continue
                if len(node.args) == 1 and not node.keywords:
                    found.append((block, at, loop, index, node))
    if not found:
        return False
    block, at, loop, index, call = rng.choice(found)
    name = free_name(function, rng, "cached", "answers", "remembered")
    key = source(call.args[0])
    guard = statements(f"if {key} not in {name}:\n    {name}[{key}] = {source(call)}")
    syntax.replace(loop.body[index], lambda node: syntax.expression(f"{name}[{key}]") if node is call else None)
    loop.body[index:index] = guard
    block[at:at] = statements(f"{name} = {{}}")
    return True


def loop_for_sum(function: ast.FunctionDef, rng: Random) -> bool:
    """A call of ``sum`` becomes a loop."""
    for block, at in places(function, ast.Assign):
        name = assigned(block[at])
        value = block[at].value  # type: ignore[attr-defined]
        if name is None or not is_call(value, "sum") or len(value.args) != 1:
            continue
        element = free_name(function, rng, "element", "addend", "each")
        loop = statements(f"{name} = 0\nfor {element} in {source(value.args[0])}:\n    {name} += {element}")
        block[at : at + 1] = loop
        return True
    return False


def index_loop(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop over elements becomes a loop over positions."""
    for block, at in places(function, ast.For):
        loop = block[at]
        assert isinstance(loop, ast.For)
        if isinstance(loop.iter, ast.Name):
            name = free_name(function, rng, "at", "position_", "n_th")
            loop.body.insert(0, statements(f"{source(loop.target)} = {loop.iter.id}[{name}]")[0])
            loop.iter = syntax.expression(f"range(len({loop.iter.id}))")
            loop.target = ast.Name(name, ast.Store())
            return True
    return False


def repeat_call(function: ast.FunctionDef, rng: Random) -> bool:
    """A call in a loop is made twice."""
    found = []
    for block, at in places(function, ast.Assign):
        value = block[at].value  # type: ignore[attr-defined]
        if isinstance(value, ast.Call) and not syntax.stored(value):
            found.append((block, at))
    if not found:
        return False
    block, at = rng.choice(found)
    block.insert(at, copy.deepcopy(block[at]))
    return True
