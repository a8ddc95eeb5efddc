"""Edits that keep the same data otherwise: lists for sets, dicts, deques and heaps, copies, concatenation, streams.

An edit takes a function and a source of choices, changes the function in place and says whether it found a place. What
the function returns stays the same; the measurement compares it and drops the edit where it does not.
"""

from __future__ import annotations

import ast
from random import Random

from . import syntax
from .syntax import assigned, free_name, is_call, is_method, places, source, statements


def list_for_set(function: ast.FunctionDef, rng: Random) -> bool:
    """Membership is tested in a list."""
    done = False
    for block, at in places(function, ast.Assign):
        statement = block[at]
        name = assigned(statement)
        assert isinstance(statement, ast.Assign)
        value = statement.value
        if name is None or not (is_call(value, "set") or isinstance(value, (ast.SetComp, ast.Set))):
            continue
        if isinstance(value, ast.Call):
            statement.value = ast.Call(ast.Name("list", ast.Load()), value.args, []) if value.args else ast.List([])
        elif isinstance(value, ast.SetComp):
            statement.value = ast.ListComp(value.elt, value.generators)
        elif isinstance(value, ast.Set):
            statement.value = ast.List(value.elts, ast.Load())
        for node in ast.walk(function):
            if is_method(node, name, "add"):
                assert isinstance(node, ast.Call)
                assert isinstance(node.func, ast.Attribute)
                node.func.attr = "append"
        done = True
    return done


def scan_for_lookup(function: ast.FunctionDef, rng: Random) -> bool:
    """A dict built for lookups goes; every lookup scans."""
    for block, at in places(function, ast.Assign):
        statement = block[at]
        name = assigned(statement)
        assert isinstance(statement, ast.Assign)
        value = statement.value
        if name is None or not isinstance(value, ast.DictComp) or len(value.generators) != 1 or value.generators[0].ifs:
            continue
        variable, rows = source(value.generators[0].target), source(value.generators[0].iter)
        key, found = source(value.key), source(value.value)

        def scan(
            node: ast.AST,
            name: str = name,
            text: str = f"next(({found} for {variable} in {rows} if {key} == WANTED), None)",
        ) -> ast.AST | None:
            if not is_method(node, name, "get"):
                return None
            assert isinstance(node, ast.Call)
            return syntax.expression(text.replace("WANTED", source(node.args[0]))) if len(node.args) == 1 else None

        if syntax.replace(function, scan):
            if name not in syntax.loaded(function):
                block.remove(statement)
            return True
    return False


def _as_queue(function: ast.FunctionDef, rng: Random, take: str) -> bool:
    found = places(function, ast.For)
    if not found:
        return False
    block, at = rng.choice(found)
    loop = block[at]
    assert isinstance(loop, ast.For)
    name = free_name(function, rng, "rest", "remaining", "queue_", "left_over")
    start = statements(f"{name} = list({source(loop.iter)})")
    body = statements(take.replace("Q", name).replace("T", source(loop.target)))
    block[at : at + 1] = [*start, ast.While(ast.Name(name, ast.Load()), [*body, *loop.body], [])]
    return True


def pop_front(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop takes its elements from the front of a list."""
    return _as_queue(function, rng, "T = Q.pop(0)")


def slice_rest(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop copies the rest of its list at every turn."""
    return _as_queue(function, rng, rng.choice(("T = Q[0]\nQ = Q[1:]", "T, *Q = Q")))


def concatenate(function: ast.FunctionDef, rng: Random) -> bool:
    """Text is put together by ``+`` in a loop, not joined at its end."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join"):
            continue
        if not (isinstance(node.func.value, ast.Constant) and isinstance(node.args[0], ast.Name)):
            continue
        separator, name = node.func.value.value, node.args[0].id
        starts = [place for place in places(function, ast.Assign) if assigned(place[0][place[1]]) == name]
        if separator != "" or len(starts) != 1:
            continue
        block, at = starts[0]
        block[at] = statements(f"{name} = ''")[0]
        form = rng.choice(("V += E", "V = V + E", "V = f'{V}{E}'", "V = ''.join([V, E])"))
        for inner, index in places(function, ast.Expr):
            call = inner[index].value  # type: ignore[attr-defined]
            if is_method(call, name, "append"):
                text = source(call.args[0])
                if "'" in text and form.startswith("V = f"):
                    form = "V = V + E"
                inner[index] = statements(
                    form.replace("V", name).replace("E", f"({text})" if "f'" not in form else text)
                )[0]
        _replace_node(function, node, ast.Name(name, ast.Load()))
        return True
    return False


def _replace_node(function: ast.FunctionDef, old: ast.AST, new: ast.AST) -> None:
    syntax.replace(function, lambda found: new if found is old else None)


def rebuild(function: ast.FunctionDef, rng: Random) -> bool:
    """A list or dict is rebuilt for every element that is added."""
    found = []
    for block, at in places(function, ast.Expr):
        call = block[at].value  # type: ignore[attr-defined]
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append"):
            continue
        if isinstance(call.func.value, ast.Name):
            name, text = call.func.value.id, source(call.args[0])
            found.append((block, at, rng.choice((f"{name} = {name} + [{text}]", f"{name} = [*{name}, {text}]"))))
    for block, at in places(function, ast.Assign):
        target = block[at].targets[0]  # type: ignore[attr-defined]
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            name, key, value = target.value.id, source(target.slice), source(block[at].value)  # type: ignore[attr-defined]
            found.append((block, at, f"{name} = {{**{name}, {key}: {value}}}"))
    if not found:
        return False
    block, at, text = rng.choice(found)
    block[at] = statements(text)[0]
    return True


def sort_for_heap(function: ast.FunctionDef, rng: Random) -> bool:
    """A heap becomes a list that is sorted after every push."""
    done = 0
    for block, at in places(function, ast.Expr):
        call = block[at].value  # type: ignore[attr-defined]
        if is_call(call, "heapq.heappush"):
            heap, value = source(call.args[0]), source(call.args[1])
            block[at : at + 1] = statements(f"{heap}.append({value})\n{heap}.sort()")
            done += 1
    if done:
        syntax.replace(
            function,
            lambda node: (
                syntax.expression(f"{source(node.args[0])}.pop(0)")  # type: ignore[attr-defined]
                if is_call(node, "heapq.heappop")
                else None
            ),
        )
    return done > 0


def list_for_deque(function: ast.FunctionDef, rng: Random) -> bool:
    """A list takes the place of a deque."""

    def change(node: ast.AST) -> ast.AST | None:
        if is_call(node, "collections.deque"):
            return ast.Call(ast.Name("list", ast.Load()), node.args, [])  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "popleft":
            return syntax.expression(f"{source(node.func.value)}.pop(0)")
        return None

    return syntax.replace(function, change) > 1


def read_all(function: ast.FunctionDef, rng: Random) -> bool:
    """All lines are read before the first is looked at, or one by one through a stream."""
    for block, at in places(function, ast.For):
        loop = block[at]
        assert isinstance(loop, ast.For)
        if is_call(loop.iter, "io.StringIO"):
            loop.iter = syntax.expression(
                f"{source(loop.iter)}.{rng.choice(('readlines()', 'read().splitlines(True)'))}"
            )
            return True
        if not (isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute)):
            continue
        if loop.iter.func.attr == "splitlines" and isinstance(loop.target, ast.Name):
            loop.iter = syntax.expression(f"io.StringIO({source(loop.iter.func.value)})")
            name = loop.target.id
            loop.body.insert(0, statements(f"{name} = {name}.rstrip('\\n')")[0])
            return True
    return False
