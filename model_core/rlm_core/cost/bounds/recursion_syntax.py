"""The syntax of recursive functions: the parameters that they change, and what ends the recursion."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache

from ..domain.syntax import BlockSyntax, Function, nodes_of, walk
from .conditions import negation, parts
from .links import is_link

_OF_ARGUMENTS = frozenset({
    "abs", "all", "any", "bool", "divmod", "enumerate", "float", "int", "len", "list", "max", "min", "pow", "range",
    "round", "sorted", "str", "sum", "tuple", "zip",
})  # fmt: skip
"""Functions whose results depend on their arguments alone, which a recursion may call and still be cached."""
CACHES = frozenset({"cache", "lru_cache", "cached", "memoize", "memoized", "memo"})
_EVEN_BASE = 0.5


@lru_cache(maxsize=128)
def changing_parameters(node: Function) -> tuple[str, ...] | None:
    """The parameters that a function's calls of itself change; None for a function that does not call itself."""
    if isinstance(node, ast.Lambda):
        return None
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    given = names[1:] if names and names[0] in ("self", "cls") else names
    changing: dict[str, None] = {}
    calls = [inner for inner in nodes_of(node) if isinstance(inner, ast.Call) and calls_itself(inner, node)]
    for call in calls:
        keywords = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg in given]
        for name, argument in [*zip(given, call.args, strict=False), *keywords]:
            if name is not None and not (isinstance(argument, ast.Name) and argument.id == name):
                changing[name] = None
    return tuple(changing) if calls else None


@lru_cache(maxsize=128)
def conditions_to_go_on(node: Function) -> tuple[ast.expr, ...]:
    """The conditions about sizes on which a function calls itself, or on which what it passes on is not what it got."""
    return tuple(part for test in deciding_conditions(node) for part in _parts(test) if _is_of_sizes(part))


@lru_cache(maxsize=128)
def deciding_conditions(node: Function) -> tuple[ast.expr, ...]:
    """The conditions that decide whether a function calls itself, and for what.

    An error at a largest depth is none: something else makes a recursion end that is meant to.
    """
    if isinstance(node, ast.Lambda):
        return ()
    calls = [inner for inner in nodes_of(node) if isinstance(inner, ast.Call) and calls_itself(inner, node)]
    passed = {part.id for call in calls for part in walk(call) if isinstance(part, ast.Name)}

    def recurs(parts: Sequence[ast.AST]) -> bool:
        return any(inner in calls for part in parts for inner in walk(part))

    def leaves(parts: Sequence[ast.AST]) -> bool:
        ends = (ast.Return, ast.Continue, ast.Break, ast.Yield)
        return any(isinstance(inner, ends) for part in parts for inner in walk(part))

    def changes(parts: Sequence[ast.AST]) -> bool:
        stores = (inner for part in parts for inner in walk(part) if isinstance(inner, ast.Name))
        return any(isinstance(inner.ctx, ast.Store) and inner.id in passed for inner in stores)

    found: list[ast.expr] = []
    for inner in nodes_of(node):
        match inner:
            case ast.If(test=test, body=body, orelse=orelse) if recurs(body) == recurs(orelse):
                if (leaves(body) and not recurs(body)) or (changes(orelse) and not changes(body)):
                    found.append(negation(test))
                elif leaves(orelse) or changes(body):
                    found.append(test)
            case ast.If(test=test, body=body):
                found.append(test if recurs(body) else negation(test))
            case ast.IfExp(test=test, body=body, orelse=orelse) if recurs([body]) != recurs([orelse]):
                found.append(test if recurs([body]) else negation(test))
            case ast.While(test=test):
                found.append(test)
            case ast.BoolOp(op=op, values=[*values, last]) if recurs([last]):
                found += values if isinstance(op, ast.And) else [negation(value) for value in values]
            case ast.comprehension(ifs=ifs):
                found += ifs
    return tuple(found)


@lru_cache(maxsize=128)
def ends_on_data(node: Function) -> bool:
    """Return whether what an input holds may end a recursion early: ``if items[place] == wanted: return place``."""
    return not isinstance(node, ast.Lambda) and any(
        isinstance(inner, ast.If)
        and isinstance(inner.body[-1], ast.Return)
        and not any(_recurs_in(statement, node) for statement in inner.body)
        and any(isinstance(part, ast.Subscript) for part in walk(inner.test))
        for inner in nodes_of(node)
    )


@lru_cache(maxsize=128)
def resumed(node: Function) -> frozenset[str]:
    """The places at which a loop goes on where a recursive call has ended: all calls together see each place once."""
    if isinstance(node, ast.Lambda):
        return frozenset()
    return frozenset(
        name
        for loop in nodes_of(node)
        if isinstance(loop, (ast.While, ast.For))
        for part in walk(loop)
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Call) and calls_itself(part.value, node)
        for target in part.targets
        for name in names_in(target)
    )


def names_in(part: ast.AST) -> set[str]:
    """The names in a part of a text."""
    return {inner.id for inner in walk(part) if isinstance(inner, ast.Name)}


def _is_of_sizes(test: ast.expr) -> bool:
    """Return whether a condition asks for a number or a size, and calls nothing else."""
    plain = (ast.Name, ast.Compare, ast.Call, ast.Attribute)
    calls = [part for part in walk(test) if isinstance(part, ast.Call)]
    return isinstance(test, plain) and all(isinstance(call.func, ast.Name) and call.func.id == "len" for call in calls)


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    """The conditions that one of several consists of."""
    for value in test.values if isinstance(test, ast.BoolOp) else ():
        yield from _parts(value)
    if not isinstance(test, ast.BoolOp):
        yield from parts(test)


def calls_itself(call: ast.Call, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function's text calls the function by its own name here, also on a part of its object."""
    function = call.func
    if not node.args.args or node.args.args[0].arg not in ("self", "cls"):
        return isinstance(function, ast.Name) and function.id == node.name
    return (
        isinstance(function, ast.Attribute)
        and function.attr == node.name
        and (
            (isinstance(function.value, ast.Name) and function.value.id in ("self", "cls"))
            or is_own_part(function.value, node)
        )
    )


def is_own_part(value: ast.expr, node: Function) -> bool:
    """Return whether an expression is another node of the structure that the object of a method is a node of."""
    match value:
        case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
            return is_link(attribute)
        case ast.Subscript(value=holder):
            return is_own_part(holder, node)
        case ast.Name(id=name):
            return name in _own_parts(node)
    return False


@lru_cache(maxsize=128)
def _own_parts(node: Function) -> frozenset[str]:
    """The names that loops bind to nodes which an attribute of ``self`` holds."""
    return frozenset(
        inner.target.id
        for inner in nodes_of(node)
        if isinstance(inner, (ast.For, ast.comprehension)) and isinstance(inner.target, ast.Name)
        for source in walk(inner.iter)
        if isinstance(source, ast.Attribute) and is_own_part(source, node)
    )


@lru_cache(maxsize=128)
def own_call(node: Function) -> ast.Call | None:
    """The first call of a function by its own name in its text."""
    if isinstance(node, ast.Lambda):
        return None
    calls = (inner for inner in nodes_of(node) if isinstance(inner, ast.Call) and calls_itself(inner, node))
    return min(calls, key=lambda call: (call.lineno, call.col_offset), default=None)


@lru_cache(maxsize=128)
def depends_on_arguments(node: Function) -> bool:
    """Return whether a recursive function returns what its arguments alone decide on, as far as its calls show.

    The others are not to be cached: they draw random numbers, read, write, or change something around them.
    """
    if isinstance(node, ast.Lambda):
        return False
    for inner in nodes_of(node):
        match inner:
            case ast.Call(func=ast.Name(id=name)) if name in _OF_ARGUMENTS:
                pass
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
                pass
            case ast.Call() if not calls_itself(inner, node):
                return False
            case ast.Global() | ast.Nonlocal() | ast.Yield() | ast.YieldFrom() | ast.Await():
                return False
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                return False
    return True


@lru_cache(maxsize=128)
def base_share(node: Function) -> float:
    """The share of calls of a recursive function that end at once: half of them if each calls itself twice or more."""
    if isinstance(node, ast.Lambda):
        return _EVEN_BASE
    sites = sum(isinstance(inner, ast.Call) and calls_itself(inner, node) for inner in nodes_of(node))
    return 0.05 if sites < 2 else _EVEN_BASE


@lru_cache(maxsize=128)
def checks(node: Function) -> int:
    """The number of statements that end a call of a recursive function at once, at least 1."""
    found = 0
    if not isinstance(node, ast.Lambda):
        for inner in nodes_of(node):
            if isinstance(inner, ast.If) and isinstance(inner.body[-1], ast.Return):
                found += not any(_recurs_in(statement, node) for statement in inner.body)
    return max(found, 1)


@lru_cache(maxsize=128)
def filled_around(node: Function) -> tuple[str, ...]:
    """The names of containers that a function puts items into without binding them."""
    if isinstance(node, ast.Lambda):
        return ()
    block = BlockSyntax(node.body)
    return tuple(name for name in block.assigned if name in block.filled and name not in block.stores)


@lru_cache(maxsize=128)
def is_cached(node: Function) -> bool:
    """Return whether a function runs once for equal arguments: it keeps results, or marks what it has seen for good."""
    if isinstance(node, ast.Lambda):
        return False
    for decorator in node.decorator_list:
        part = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
        if name in CACHES:
            return True
    # A container that results are stored to, and looked up in or returned from.
    stored = [
        target
        for inner in nodes_of(node)
        if isinstance(inner, ast.Assign)
        for target in inner.targets
        if isinstance(target, ast.Subscript) and _root(target) not in _made_anew(node)
    ]
    results = {ast.dump(target.value) for target in stored}
    entries = {ast.dump(ast.Subscript(target.value, target.slice, ast.Load())) for target in stored}
    for inner in nodes_of(node) if stored else ():
        match inner:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[container]) if ast.dump(container) in results:
                return True
            case ast.Call(func=ast.Attribute(value=container, attr="get")) if ast.dump(container) in results:
                return True
            case ast.Return(value=ast.Subscript() as entry) if ast.dump(entry) in entries and _is_early(node, inner):
                return True
    return _fills_in(node) or _marks(node, stored)


@lru_cache(maxsize=128)
def _made_anew(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """The names of the containers that each call of a function makes for itself, which keep nothing for others."""
    kinds = (ast.Call, ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set)
    return frozenset(
        target.id
        for statement in node.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, kinds)
        for target in statement.targets
        if isinstance(target, ast.Name)
    )


def _root(part: ast.AST) -> str:
    """The name that an attribute or entry is taken from."""
    return next((inner.id for inner in walk(part) if isinstance(inner, ast.Name)), "")


def _fills_in(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether calls recur only where an entry is not there yet, and store what comes out of it.

    ``if table[i] < 0: table[i] = f(i - 1) + 1`` keeps results, unless each call makes a table for itself.
    """
    assigned = [inner for inner in nodes_of(node) if isinstance(inner, ast.Assign)]
    computed = {
        target.id
        for assign in assigned
        if _recurs_in(assign.value, node)
        for target in assign.targets
        if isinstance(target, ast.Name)
    }
    parameters = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    shared = {name for inner in nodes_of(node) if isinstance(inner, (ast.Global, ast.Nonlocal)) for name in inner.names}
    own = {target.id for assign in assigned for target in assign.targets if isinstance(target, ast.Name)}
    for branch in (inner for inner in nodes_of(node) if isinstance(inner, ast.If)):
        entries = {
            ast.dump(part.value) + ast.dump(part.slice) for part in walk(branch.test) if isinstance(part, ast.Subscript)
        }
        for assign in (part for statement in branch.body if entries for part in walk(statement)):
            if not isinstance(assign, ast.Assign) or not isinstance(assign.targets[0], ast.Subscript):
                continue
            entry = assign.targets[0]
            root = _root(entry.value)
            is_kept = root not in own or root in parameters or root in shared
            if is_kept and ast.dump(entry.value) + ast.dump(entry.slice) in entries:
                names = {part.id for part in walk(assign.value) if isinstance(part, ast.Name)}
                if names & computed or _recurs_in(assign.value, node):
                    return True
    return False


def _recurs_in(part: ast.AST, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(inner, ast.Call) and calls_itself(inner, node) for inner in walk(part))


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef, stored: Sequence[ast.Subscript]) -> bool:
    """Return whether no call does anything where an earlier one has been, which left an entry in a container."""
    added: set[str] = set()
    removed: set[str] = set()
    for inner in nodes_of(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            place = ast.dump(inner.func.value)
            is_kept = _root(inner.func.value) not in _made_anew(node)
            added |= {place} if inner.func.attr in ("add", "append") and is_kept else set()
            removed |= {place} if inner.func.attr in ("remove", "discard", "pop") else set()
    entries = [ast.dump(ast.Subscript(target.value, target.slice, ast.Load())) for target in stored]
    tables = [ast.dump(target.value) for target in stored]
    for branch in (inner for inner in nodes_of(node) if isinstance(inner, ast.If)):
        guards = any(_recurs_in(statement, node) for statement in branch.body)
        for part in walk(branch.test) if guards or _leaves(branch) else ():
            if isinstance(part, ast.Subscript):
                if entries.count(ast.dump(part)) == 1 or (guards and tables.count(ast.dump(part.value)) == 1):
                    return True
            elif isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.In, ast.NotIn)):
                place = ast.dump(part.comparators[0])
                if place in added and place not in removed:
                    return True
    return any(_looks_up(loop, added - removed) for loop in nodes_of(node) if isinstance(loop, ast.For))


def _looks_up(loop: ast.For, marked: Set[str]) -> bool:
    """Return whether a loop over what has been met so far leaves the function where it finds something."""
    ends = [statement.test for statement in loop.body if isinstance(statement, ast.If) and _leaves(statement)]
    return bool(ends) and ast.dump(loop.iter) in marked


def _leaves(branch: ast.If) -> bool:
    return isinstance(branch.body[-1], (ast.Return, ast.Continue))


def _is_early(node: ast.FunctionDef | ast.AsyncFunctionDef, part: ast.Return) -> bool:
    """Return whether a function goes on behind a ``return``: that of a known result is not the last statement."""
    return part is not node.body[-1]
