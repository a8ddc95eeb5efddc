"""What usually makes a place cost less: a rule per form of syntax and kind of value.

Input: a place whose cost grows with sizes, and the loops around it. Output: a :class:`Cure`, or None where the text
does not show one. Of some cures the cost grows less, of the others (:data:`PER_ITEM`) each item costs less.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from rlm_core.types import Cure

from .domain.origins import ITEMS, PendingOrigin
from .domain.syntax import called_name, dotted_name, place_of, walk

_LISTS = frozenset({"list", "tuple"})
_QUEUES = frozenset({"list", "unknown"})  # only lists have `pop(0)` and `insert(0, item)`
_SEARCHING = frozenset({"index", "count", "remove"})
# Functions whose result depends on their arguments alone.
_PURE = frozenset({
    "sorted", "set", "frozenset", "list", "tuple", "dict", "sum", "max", "min", "any", "all", "len", "Counter",
    "collections.Counter", "reversed", "str", "repr", "re.compile", "re.escape",
})  # fmt: skip
_PURE_METHODS = frozenset({"split", "splitlines", "lower", "upper", "strip", "join", "keys", "values", "items", "copy"})

# What these make can be changed: a new one is made for each iteration on purpose where something may do so.
_FRESH = frozenset({"sorted", "set", "list", "dict", "Counter", "collections.Counter"})
_FRESH_METHODS = frozenset({"split", "splitlines", "copy"})
_OF_NUMBERS = frozenset({"float", "int", "abs", "round", "max", "min", "bool", "pd.isna", "pd.notna", "str"})
_LOCATED = frozenset({"loc", "iloc", "at", "iat"})
_TABLES = frozenset({"pandas.DataFrame", "pandas.concat"})
PER_ITEM = frozenset({Cure.TUPLES, Cure.COLUMNS, Cure.VALUES, Cure.COLUMN, Cure.CONCAT, Cure.HOIST})


def cure_of(origin: PendingOrigin) -> Cure | None:
    """What usually makes the cost of a place grow less."""
    node = origin.node
    loops = origin.loops
    if (cure := _table_cure(origin)) is not None:
        return cure
    match node:
        case ast.Compare(ops=[ast.In() | ast.NotIn()]) if origin.kind in _LISTS and origin.loops:
            return Cure.SET
        case ast.Call(func=ast.Attribute(attr="pop"), args=[ast.Constant(value=0)]) if origin.kind in _QUEUES:
            return Cure.DEQUE
        case ast.Call(func=ast.Attribute(attr="insert"), args=[ast.Constant(value=0), _]) if origin.kind in _QUEUES:
            return Cure.DEQUE
        case ast.Call(func=ast.Attribute(attr=name)) if name in _SEARCHING and origin.kind in _LISTS and origin.loops:
            return Cure.DICT
        case ast.Call(func=ast.Name(id="sum"), args=[_, ast.List(elts=[])]):
            return Cure.CHAIN
        case ast.AugAssign(op=ast.Add()) | ast.Assign(value=ast.BinOp(op=ast.Add())) | ast.BinOp(op=ast.Add()):
            joined = {"str": Cure.JOIN, "bytes": Cure.JOIN, "tuple": Cure.EXTEND, "list": Cure.EXTEND}
            return joined.get(origin.kind) if origin.loops else None
        case ast.Call() if origin.kind == "recursion":
            return _cached(node)
        case ast.Call() if loops and _is_same_in_each(node, loops[-1]) and _is_only_read(node, loops[-1]):
            return Cure.HOIST
        case ast.For(target=ast.Name(id=inner), body=[ast.If(test=test, orelse=[])]) if loops:
            target = loops[-1].target if isinstance(loops[-1], ast.For) else None
            return Cure.LOOKUP if isinstance(target, ast.Name) and _matches(test, inner, target.id) else None
        case _:
            return None


def _table_cure(origin: PendingOrigin) -> Cure | None:
    """What replaces work on a table of pandas that is done for one row at a time."""
    node, kind = origin.node, origin.kind
    match node:
        case ast.For() | ast.AsyncFor() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return Cure.TUPLES if kind == ITEMS and _reads_rows_by_column(node) else None
        case ast.Call(func=ast.Attribute(attr="apply"), keywords=keywords) if kind == "pandas.DataFrame":
            axes = [word.value for word in keywords if word.arg == "axis"] or node.args[1:2]
            by_rows = any(isinstance(axis, ast.Constant) and axis.value in (1, "columns") for axis in axes)
            match node.args[:1]:
                case [ast.Lambda(args=ast.arguments(args=[row]), body=body)] if by_rows:
                    return Cure.COLUMNS if _is_read_by_value(row.arg, [body]) else None
            return None
        case ast.Call(func=ast.Attribute(attr="concat" | "append")) if kind in _TABLES and _is_collected(origin):
            return Cure.CONCAT
        case ast.Subscript() if _is_one_row(node, origin):
            return Cure.VALUES if _is_used_as_values(node, origin.loops[-1]) else None
        case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
            return Cure.COLUMN if _is_one_row(target, origin) else None
        case _:
            return None


def _reads_rows_by_column(loop: ast.AST) -> bool:
    """Return whether a loop over ``iterrows`` reads single values of its rows: nothing else needs them as a whole."""
    is_statement = isinstance(loop, (ast.For, ast.AsyncFor))
    parts: list[ast.AST] = [loop] if is_statement else getattr(loop, "generators", [])
    body: Sequence[ast.AST] = loop.body if isinstance(loop, (ast.For, ast.AsyncFor)) else [loop]
    for part in parts:
        assert isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension))
        names = [name.id for name in walk(part.target) if isinstance(name, ast.Name)]
        if names and any(_is_call_of(inner, "iterrows") for inner in walk(part.iter)):
            return _is_read_by_value(names[-1], body)
    return False


def _is_read_by_value(row: str, body: Sequence[ast.AST]) -> bool:
    """Return whether of a row only single values are read: ``row["name"]``, ``row.name``, ``row.get("name")``."""
    read = [inner for statement in body for inner in walk(statement)]
    called = {id(inner.func) for inner in read if isinstance(inner, ast.Call)}
    values: set[int] = set()
    for inner in read:
        match inner:
            case ast.Subscript(slice=ast.Name() | ast.Constant(), ctx=ast.Load()):
                values.add(id(inner.value))
            case ast.Attribute(attr=name, ctx=ast.Load()) if id(inner) not in called or name == "get":
                values.add(id(inner.value))
    used = [inner for inner in read if isinstance(inner, ast.Name) and inner.id == row]
    return all(id(name) in values for name in used if isinstance(name.ctx, ast.Load))


def _is_call_of(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def _is_collected(origin: PendingOrigin) -> bool:
    """Return whether a loop assigns what a call makes to a name that the call reads: ``table = concat([table, x])``."""
    node = origin.node
    read = {part.id for part in walk(node) if isinstance(part, ast.Name)}
    return any(
        isinstance(statement, ast.Assign)
        and any(part is node for part in walk(statement.value))
        and any(isinstance(target, ast.Name) and target.id in read for target in statement.targets)
        for loop in origin.loops
        for statement in walk(loop)
    )


def _is_used_as_values(node: ast.Subscript, loop: ast.AST) -> bool:
    """Return whether a loop needs single values of a row that it looks up, and not the row as a whole."""
    for part in walk(loop):
        if not any(child is node for child in ast.iter_child_nodes(part)):
            continue
        match part:
            case ast.Assign(targets=[ast.Name(id=name)]) if not isinstance(node.slice, ast.Tuple):
                return _is_read_by_value(name, [loop])
            case ast.Call():
                return isinstance(node.slice, ast.Tuple) or called_name(part) in _OF_NUMBERS
            case _:
                return True
    return False


def _is_one_row(node: ast.Subscript, origin: PendingOrigin) -> bool:
    """Return whether a subscript of ``loc`` and its like chooses one row by what the loop around it binds."""
    loop = origin.loops[-1] if origin.loops else None
    if not (isinstance(node.value, ast.Attribute) and node.value.attr in _LOCATED):
        return False
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    row = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    bound = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    simple = (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.expr_context)
    parts = list(walk(row))
    return all(isinstance(part, simple) for part in parts) and any(
        isinstance(part, ast.Name) and part.id in bound for part in parts
    )


def _matches(test: ast.expr, inner: str, outer: str) -> bool:
    """Return whether a test compares something of one loop variable with something of another one for equality."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in parts:
        match part:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                sides = [{node.id for node in walk(side) if isinstance(node, ast.Name)} for side in (left, right)]
                if sides in ([{inner}, {outer}], [{outer}, {inner}]):
                    return True
    return False


def _cached(call: ast.Call) -> Cure | None:
    """A cache helps a recursion on numbers, whose calls come again; not one on parts of a structure."""
    simple = (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.expr_context)
    arguments = [node for argument in call.args for node in walk(argument)]
    has_steps = any(isinstance(node, ast.BinOp) for node in arguments)
    return Cure.CACHE if has_steps and all(isinstance(node, simple) for node in arguments) else None


def _is_same_in_each(node: ast.Call, loop: ast.AST) -> bool:
    """Return whether a call computes the same in each iteration of a loop, as far as the text shows.

    It calls only functions whose results depend on their arguments, and reads no name that the loop binds, changes,
    calls a method of or passes to a call of something else.
    """
    inside = set(map(id, walk(node)))
    own = {part.id for part in walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    read: set[str] = set()
    for part in walk(node):
        if isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)):
            return False
        if isinstance(part, ast.Call):
            if called_name(part) not in _PURE and not _is_pure_method(part):
                return False
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in own:
            read.add(part.id)
        elif isinstance(part, ast.Attribute):
            read |= {place_of(part), dotted_name(part)} - {""}
    match loop:
        case ast.For() | ast.AsyncFor():
            body: list[ast.AST] = [*loop.body, loop.target]
        case ast.While():
            body = [*loop.body]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if any(part is node for part in walk(loop.generators[0].iter)):
                return False
            body = [*ast.iter_child_nodes(loop)]
        case _:
            return False
    changed = {name for statement in body for part in walk(statement) for name in _changed_by(part, inside)}
    called = {part.func.id for part in walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    roots = {name.partition(".")[0] for name in read}
    return not ((roots | read) - called) & changed


def _is_only_read(node: ast.Call, loop: ast.AST) -> bool:
    """Return whether one object can serve all iterations: what a call makes cannot change, or nothing changes it."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if called_name(node) not in _FRESH and method not in _FRESH_METHODS:
        return True
    inside = {id(part) for part in walk(node)}
    for part in walk(loop):
        if not any(child is node for child in ast.iter_child_nodes(part)):
            continue
        match part:
            case ast.Compare() | ast.For() | ast.AsyncFor() | ast.comprehension() | ast.Subscript():
                return True
            case ast.Call():
                return called_name(part) in _PURE
            case ast.Assign(targets=[ast.Name(id=name) as target]):
                inside.add(id(target))
                return not any(name in _changed_by(other, inside) for other in walk(loop))
            case _:
                return False
    return False


def _changed_by(part: ast.AST, inside: Set[int]) -> Iterator[str]:
    """The names that a piece of syntax binds or may change, unless it is one of those ``inside``."""
    if id(part) in inside:
        return
    match part:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            yield part.id
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            yield from {place_of(part), dotted_name(part), _root(part)} - {""}
        case ast.Call() if called_name(part) not in _PURE and not _is_pure_method(part):
            passed = [part.func, *part.args, *(keyword.value for keyword in part.keywords)]
            names = (name for argument in passed for name in walk(argument) if id(name) not in inside)
            yield from (name.id for name in names if isinstance(name, ast.Name))


def _is_pure_method(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _PURE_METHODS


def _root(node: ast.expr) -> str:
    """The name that an attribute or item is reached from."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
