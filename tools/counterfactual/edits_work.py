"""Edits that add or remove work: loops around loops, sizes, sorts, calls and copies in loops, early exits.

An edit takes a function and a source of choices, changes the function in place and says whether it found a place.
"""

from __future__ import annotations

import ast
import copy
import re
from random import Random

from . import syntax
from .grammar import between
from .syntax import free_name, places, statements

_COPIES = (
    "V.copy()", "copy.deepcopy(V)", "sorted(V, key=str)", "list(V)", "str(V)", "len(set(map(str, V)))",
    "json.loads(json.dumps(list(V)))", "max(map(str, V), default='')", "sum(1 for _ in V)",
)  # fmt: skip


def _loop(function: ast.FunctionDef, rng: Random) -> syntax.Place | None:
    found = places(function, ast.For)
    return rng.choice(found) if found else None


def wrap_loop(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop runs several times over."""
    place = _loop(function, rng)
    if place is None:
        return False
    block, at = place
    name = free_name(function, rng, "_", "attempt", "round_number", "repeat")
    wrapped = ast.For(ast.Name(name, ast.Store()), syntax.expression(f"range({between(rng, 3, 40)})"), [block[at]], [])
    block[at] = wrapped
    return True


def nest_over_same(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop's body runs once for every pair of elements instead of every element."""
    place = _loop(function, rng)
    if place is None:
        return False
    loop = place[0][place[1]]
    assert isinstance(loop, ast.For)
    if syntax.leaves_loop(loop.body):
        return False
    name = free_name(function, rng, "other_item", "partner", "inner", "again")
    loop.body = [ast.For(ast.Name(name, ast.Store()), copy.deepcopy(loop.iter), loop.body, [])]
    return True


def repeat_pass(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop is written twice, one after the other."""
    place = _loop(function, rng)
    if place is None:
        return False
    place[0].insert(place[1], copy.deepcopy(place[0][place[1]]))
    return True


def _size_constants(function: ast.FunctionDef) -> list[ast.Constant]:
    found: list[ast.expr | None] = []
    ranged: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            found += node.args
            ranged |= syntax.loaded(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left = node.left
            if isinstance(left, ast.List) or (isinstance(left, ast.Constant) and isinstance(left.value, str)):
                found.append(node.right)
                ranged |= syntax.loaded(node.right)
        elif isinstance(node, ast.Slice):
            found.append(node.upper)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and syntax.assigned(node) in ranged:
            found.append(node.value)
    names = [argument.arg for argument in function.args.args][len(function.args.args) - len(function.args.defaults) :]
    found += [value for name, value in zip(names, function.args.defaults, strict=True) if name in ranged]
    unique = {id(node): node for node in found if isinstance(node, ast.Constant) and isinstance(node.value, int)}
    return [node for node in unique.values() if isinstance(node.value, int) and node.value >= 3]


def _resize(function: ast.FunctionDef, rng: Random, times: float) -> bool:
    found = _size_constants(function)
    if not found:
        return False
    constant = rng.choice(found)
    assert isinstance(constant.value, int)
    size = max(1, round(constant.value * times))
    if size == constant.value:
        return False
    constant.value = size
    return True


def grow_size(function: ast.FunctionDef, rng: Random) -> bool:
    """A size in the text grows, mostly ten times."""
    return _resize(function, rng, rng.choice((10, 10, 10, 4, 20)))


def shrink_size(function: ast.FunctionDef, rng: Random) -> bool:
    """A size in the text shrinks, mostly to a tenth."""
    return _resize(function, rng, rng.choice((0.1, 0.1, 0.25)))


def sort_added(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop reads its elements in sorted order."""
    place = _loop(function, rng)
    if place is None:
        return False
    loop = place[0][place[1]]
    assert isinstance(loop, ast.For)
    if syntax.is_call(loop.iter, "sorted", "range"):
        return False
    key = rng.choice(("key=str", "key=repr", ""))
    loop.iter = syntax.expression(f"sorted({syntax.source(loop.iter)}{', ' if key else ''}{key})")
    return True


def work_in_loop(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop copies, sorts or counts a collection at every turn."""
    place = _loop(function, rng)
    if place is None:
        return False
    loop = place[0][place[1]]
    assert isinstance(loop, ast.For)
    names = sorted(_collections(function) - syntax.stored(loop.target))
    if not names:
        return False
    value = rng.choice(_COPIES).replace("V", rng.choice(names))
    name = free_name(function, rng, "snapshot", "checked", "current_state", "progress")
    at = 0 if syntax.leaves_loop(loop.body) else rng.choice((0, len(loop.body)))
    loop.body.insert(at, statements(f"{name} = {value}")[0])
    return True


def _collections(function: ast.FunctionDef) -> set[str]:
    """Variables that hold a collection: made by a display, a comprehension or a constructor, or looped over."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and (name := syntax.assigned(node)) is not None:
            made = isinstance(node.value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp))
            if made or syntax.is_call(node.value, "set", "list", "dict", "sorted"):
                names.add(name)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Name):
            names.add(node.iter.id)
    return names


def copy_argument(function: ast.FunctionDef, rng: Random) -> bool:
    """The function copies an argument, deeply, before it reads it."""
    names = [argument.arg for argument in function.args.args if argument.arg != "self"]
    if not names:
        return False
    name = rng.choice(names)
    value = rng.choice(("copy.deepcopy(V)", "json.loads(json.dumps(V))", "copy.deepcopy(V)", "copy.copy(V)"))
    function.body.insert(0, statements(f"{name} = {value.replace('V', name)}")[0])
    return True


def trace_in_loop(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop formats a line for every element and keeps it."""
    place = _loop(function, rng)
    if place is None:
        return False
    block, at = place
    loop = block[at]
    assert isinstance(loop, ast.For)
    name = free_name(function, rng, "trace", "log", "debug_lines")
    target = syntax.source(loop.target)
    line = rng.choice((f"f'at {{{target}!r}}'", f"str({target})", f"repr(({target}, len({name})))"))
    loop.body.insert(0, statements(f"{name}.append({line})")[0])
    block.insert(at, statements(f"{name} = []")[0])
    return True


def drop_break(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop over elements goes on where it stopped early."""
    for block, at in places(function, ast.For):
        loop = block[at]
        if syntax.replace(loop, lambda node: ast.Pass() if isinstance(node, ast.Break) else None):
            return not any(isinstance(found, ast.While) for found in ast.walk(loop))
    return False


def stop_early(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop stops when its list holds enough."""
    candidates = [
        (block[at], name)
        for block, at in places(function, ast.For)
        for name in sorted(_collections(function))
        if any(syntax.is_method(found, name, "append", "add") for found in ast.walk(block[at]))
    ]
    if not candidates:
        return False
    loop, name = rng.choice(candidates)
    assert isinstance(loop, ast.For)
    loop.body.insert(0, statements(f"if len({name}) >= {rng.randint(2, 12)}:\n    break")[0])
    return True


def fewer_elements(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop reads only the first few elements."""
    place = _loop(function, rng)
    if place is None:
        return False
    loop = place[0][place[1]]
    assert isinstance(loop, ast.For)
    count = rng.randint(1, 8)
    text = syntax.source(loop.iter)
    loop.iter = syntax.expression(rng.choice((f"list({text})[:{count}]", f"itertools.islice({text}, {count})")))
    return True


def nest_comprehension(function: ast.FunctionDef, rng: Random) -> bool:
    """A comprehension gets a second ``for``."""
    found = [node for node in ast.walk(function) if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp))]
    if not found:
        return False
    node = rng.choice(found)
    outer = node.generators[0]
    again = rng.random() < 0.4 and not outer.ifs
    over = copy.deepcopy(outer.iter) if again else syntax.expression(f"range({between(rng, 3, 30)})")
    name = free_name(function, rng, "_", "step_number", "inner")
    node.generators.append(ast.comprehension(ast.Name(name, ast.Store()), over, [], 0))
    return True


def all_pairs(function: ast.FunctionDef, rng: Random) -> bool:
    """A loop over the elements after the current one runs over all of them."""
    for block, at in places(function, ast.For):
        loop = block[at]
        assert isinstance(loop, ast.For)
        if isinstance(loop.iter, ast.Subscript) and isinstance(loop.iter.slice, ast.Slice) and loop.iter.slice.lower:
            loop.iter = loop.iter.value
            return True
    return False


def validate_elements(function: ast.FunctionDef, rng: Random) -> bool:
    """The function looks at every element of an argument before its work."""
    names = [argument.arg for argument in function.args.args if argument.arg in _collections(function)]
    if not names:
        return False
    name = rng.choice(names)
    text = rng.choice(
        (
            "for element in V:\n    if element is None:\n        raise ValueError('missing element')",
            "if any(element is None for element in V):\n    raise ValueError('missing element')",
            "if len(set(map(repr, V))) > 10 ** 6:\n    raise ValueError('too many')",
        )
    )
    function.body.insert(0, statements(re.sub(r"\bV\b", name, text))[0])
    return True
