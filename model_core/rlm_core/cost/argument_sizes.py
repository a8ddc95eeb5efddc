"""The sizes of the arguments of calls, where the text fixes them: ``total(range(1000))``, ``grid(np.zeros((50, 80)))``.

Input: the text of a function, or of the statements of a module, and the scope of its names. Output: its calls, and the
sizes of an argument by what follows the name of the parameter: nothing for a number itself, a length, or the elements
of an array; ``[]`` for the mean length inside, ``.0`` for an axis.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from . import evaluate  # noqa: F401 - fills the tables of the dispatcher
from .domain.context import Context, TooComplex
from .domain.dispatch import peek
from .domain.frames import Frame
from .domain.quantities import Quantity
from .domain.syntax import GROWING, SHRINKING, dotted_name, nodes_of, parse, parsed_function, walk
from .domain.values import SIZED, UNKNOWN, Value
from .scope import Scope

Sizes = Mapping[str, float]
_NODES = 300  # of the syntax of an argument and of what it is made of
_MOST_SIZE = 1e15  # a larger number is a hash, an identity or a time
_MOST_BINDINGS = 6  # of names that are bound to each other
_AXES = 4
_RESIZING = GROWING | SHRINKING | {"clear", "discard", "extend", "extendleft", "remove", "resize", "setdefault",
                                   "update"}  # fmt: skip
_KINDS = SIZED | {"range"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it is written: the called name, the text of the object that it is looked up on, and the arguments.

    ``positional`` ends where the text does not show which parameter an argument is for; ``open`` says whether there are
    more, by position or by name.
    """

    name: str
    target: str | None
    positional: tuple[ast.expr, ...]
    named: Mapping[str, ast.expr]
    open: bool


@dataclass(frozen=True, slots=True, eq=False)
class CallerText:
    """The calls of a text, and the names that it binds: to an expression, or to None where that is not known."""

    calls: Mapping[str, tuple[WrittenCall, ...]]
    bindings: Mapping[str, ast.expr | None]


@lru_cache(maxsize=512)
def caller_text(text: str, *, is_function: bool) -> CallerText:
    """Read the text of a function, or of the statements of a module; equal texts share the result."""
    tree = parsed_function(text) if is_function else parse(text)
    if tree is None:
        return CallerText({}, {})
    nodes = nodes_of(tree) if isinstance(tree, _FUNCTIONS) else tuple(walk(tree))
    calls: dict[str, list[WrittenCall]] = {}
    for node in nodes:
        if isinstance(node, ast.Call) and (call := _written(node)) is not None:
            calls.setdefault(call.name, []).append(call)
    return CallerText({name: tuple(listed) for name, listed in calls.items()}, _bindings(nodes))


def sizes_of(argument: ast.expr, scope: Scope, bindings: Mapping[str, ast.expr | None]) -> Sizes | None:
    """The sizes of an argument, by what follows the name of the parameter; None where the text does not fix them.

    Empty for a value that has no size, such as None.
    """
    context = Context(Frame(scope), _NODES)
    try:
        _bind(context, argument, bindings, _MOST_BINDINGS)
        value = _value(context, argument)
    except (TooComplex, RecursionError):
        return None
    return _sizes(value)


def _value(context: Context, node: ast.expr) -> Value:
    """The value of an expression; unknown where it is a part of something of unknown length, which may have less."""
    parts = (inner for inner in walk(node) if isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Slice))
    is_open = any(not _sizes(peek(context, part.value)) for part in parts)
    return UNKNOWN if is_open else peek(context, node)


def _bind(context: Context, node: ast.expr, bindings: Mapping[str, ast.expr | None], left: int) -> None:
    """Bind the names of an expression to their values, as far as the text gives them."""
    for inner in walk(node):
        if not isinstance(inner, ast.Name) or inner.id not in bindings or inner.id in context.frame.names:
            continue
        bound = bindings[inner.id]
        context.frame.names[inner.id] = Value("unknown", name=inner.id)  # which ends a name that is bound to itself
        if bound is not None and left:
            _bind(context, bound, bindings, left - 1)
            context.frame.names[inner.id] = _value(context, bound)


def _sizes(value: Value) -> Sizes | None:
    if value.kind == "none":
        return {}
    if value.optional or value.kind == "bool":
        return None
    if value.kind in ("int", "float"):
        number = _exact(value.number)
        return {"": number} if number is not None else None
    if value.kind == "array":
        axes = [_exact(axis) for axis in value.shape or ()][:_AXES]
        elements = _exact(value.size)
        if elements is None or None in axes:
            return None
        several = {f".{axis}": size for axis, size in enumerate(axes) if size is not None} if len(axes) > 1 else {}
        return {"": elements, **several}
    length = _exact(value.size) if value.kind in _KINDS else None
    if length is None:
        return None
    # Recorded sizes of a dict are those of its values, see `injected/rlm_probe/input_sizes.py`.
    inside = value.entry if value.kind == "dict" else value.item if value.kind not in ("str", "bytes") else None
    mean = _exact(inside.size) if inside is not None and inside.kind in (*_KINDS, "array") else None
    return {"": length, "[]": mean} if mean is not None and length else {"": length}


def _exact(quantity: Quantity | None) -> float | None:
    exact = quantity.exact if quantity is not None else None
    return exact if exact is not None and 0 <= exact <= _MOST_SIZE else None


def _written(node: ast.Call) -> WrittenCall | None:
    function = node.func
    if isinstance(function, ast.Name):
        name, target = function.id, None
    elif isinstance(function, ast.Attribute):
        name, target = function.attr, dotted_name(function.value) or ast.unparse(function.value)
    else:
        return None
    stars = [place for place, argument in enumerate(node.args) if isinstance(argument, ast.Starred)]
    positional = tuple(node.args[: stars[0]] if stars else node.args)
    named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    return WrittenCall(name, target, positional, named, bool(stars) or len(named) < len(node.keywords))


def _bindings(nodes: Iterable[ast.AST]) -> dict[str, ast.expr | None]:
    """The names that nodes bind; those that are bound twice, or whose value grows or shrinks, are bound to None."""
    values: dict[str, ast.expr | None] = {}
    stored: dict[str, int] = {}
    changed: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                stored[node.id] = stored.get(node.id, 0) + 1
            case ast.arg():
                stored[node.arg] = stored.get(node.arg, 0) + 1
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                values[name] = node.value
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _RESIZING:
                changed.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                changed.add(name)  # of a dict it is one more item
            case ast.Global() | ast.Nonlocal():
                changed.update(node.names)
            case _:
                pass
    return {
        name: values.get(name) if stored.get(name) == 1 and name not in changed else None
        for name in (*stored, *(changed - stored.keys()))
    }
