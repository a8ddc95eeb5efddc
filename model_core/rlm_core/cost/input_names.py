"""Which sizes of a unit are sizes of its inputs: the local name of a size -> the input that it comes from.

The analysis names a size after the value in the text, which may be a loop variable. Input: the text of a Python
function or program. Output: for such a name the parameter, attribute, global, or content of a file or of standard input
behind it, as in ``rows[]`` for the ``row`` of ``for row in rows``; None where there is no single one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from .domain.syntax import Function, parse, parsed_function

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NAME = re.compile(r"([A-Za-z_]\w*)((?:\.\w+|\[\])*)")
# What is bound to their results is an input itself: the content of a file or of standard input.
_READS = frozenset({
    "fetchall", "glob", "input", "iterdir", "listdir", "load", "open", "read", "read_bytes", "read_csv", "read_text",
    "readline", "readlines", "recv", "rglob", "scandir", "urlopen", "walk",
})  # fmt: skip
# Functions and methods whose result is as long as their first argument or receiver, or in proportion to it.
_KEPT_BY = frozenset({
    "DictReader", "abs", "array", "asarray", "bytes", "deque", "dict", "float", "frozenset", "int", "iter", "len",
    "list", "loads", "memoryview", "range", "reader", "reversed", "set", "sorted", "str", "tuple",
})  # fmt: skip
_KEPT_OF = frozenset({
    "casefold", "copy", "decode", "encode", "items", "keys", "lower", "lstrip", "replace", "rsplit", "rstrip", "split",
    "splitlines", "strip", "upper", "values",
})  # fmt: skip
_READ, _CONSTANT = "<read>", "<constant>"
"""The origins of what was read, and of what the text gives."""
_MOST_STEPS = 8

Origin = str | None


class InputNames:
    """The names of a unit's text, and what they were bound to."""

    def __init__(self, text: str, *, is_function: bool) -> None:
        tree: ast.AST | None = parsed_function(text) if is_function else parse(text)
        nodes = list(ast.walk(tree)) if tree is not None else []
        self._parameters = {argument.arg for node in _entries(tree) for argument in _arguments(node)}
        self._read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        self._origins: dict[str, list[Origin]] = {}
        self._axes = _axes(nodes)
        shared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        for node in nodes:
            for target, origin in _bindings(node):
                if target not in shared:
                    self._origins.setdefault(target, []).append(origin)

    def of(self, name: str, _steps: int = _MOST_STEPS) -> str | None:
        """The input behind a name of a size, such as ``rows[]`` for ``row``; None where it is not that of an input."""
        parts = _NAME.fullmatch(name)
        if parts is None or not _steps:
            return None
        root, rest = parts[1], parts[2]
        array, _, inside = name.rpartition(".")
        if inside == "shape[]" and len(axes := self._axes.get(array, ())) == 1:
            return self.of(f"{array}.{next(iter(axes))}", _steps)
        if root in self._parameters:
            return name
        if root not in self._origins:
            # A name of another function, which the analysis read too, is not in the text.
            return name if root in self._read else None
        inputs = {
            root if origin == _READ else self.of(origin, _steps - 1) if origin is not None else None
            for origin in self._origins[root]
            # `node = node.next` is still of what `node` was before.
            if origin != _CONSTANT and (origin is None or _root(origin) != root)
        }
        first = inputs.pop() if len(inputs) == 1 else None
        return f"{first}{rest}" if first is not None else None


def _axes(nodes: list[ast.AST]) -> dict[str, set[int]]:
    """The axes of arrays that a text asks for by number: ``a.shape[0]``."""
    axes: dict[str, set[int]] = {}
    for node in nodes:
        match node:
            case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=ast.Constant(value=int(axis))) if (
                axis >= 0
            ):
                array = _origin(owner)
                if array is not None:
                    axes.setdefault(array, set()).add(axis)
    return axes


@lru_cache(maxsize=256)
def input_names(text: str, *, is_function: bool) -> InputNames:
    """The names of a text; equal texts share them."""
    return InputNames(text, is_function=is_function)


def _entries(tree: ast.AST | None) -> list[Function]:
    """The functions that are called from outside: the unit itself; of a program, its functions and methods."""
    if isinstance(tree, _FUNCTIONS):
        return [tree]
    body = tree.body if isinstance(tree, ast.Module) else []
    inner = [node for entry in body for node in (entry.body if isinstance(entry, ast.ClassDef) else [entry])]
    return [node for node in inner if isinstance(node, _FUNCTIONS)]


def _arguments(node: Function) -> list[ast.arg]:
    arguments = node.args
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _bindings(node: ast.AST) -> Iterator[tuple[str, Origin]]:
    """The names that a node binds, with what they come from."""
    match node:
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield from _bound(node.target, _items(node.iter))
        case ast.Assign():
            for target in node.targets:
                yield from _bound(target, _value(node.value, target))
        case ast.AnnAssign(value=ast.expr() as value) | ast.NamedExpr(value=value):
            yield from _bound(node.target, _origin(value))
        case ast.withitem(optional_vars=ast.expr()):
            yield from _bound(node.optional_vars, _origin(node.context_expr))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            # Of the entries, which are functions too, the parameters take precedence.
            yield from ((argument.arg, None) for argument in _arguments(node))
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name, None
        case _:
            return


def _bound(target: ast.expr | None, origin: Origin | list[Origin]) -> Iterator[tuple[str, Origin]]:
    if isinstance(target, ast.Name):
        yield target.id, origin if not isinstance(origin, list) else None
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = origin if isinstance(origin, list) and len(origin) == len(target.elts) else None
        for index, part in enumerate(target.elts):
            each = parts[index] if parts is not None else None if isinstance(origin, list) else origin
            yield from _bound(part.value if isinstance(part, ast.Starred) else part, each)


def _value(value: ast.expr, target: ast.expr) -> Origin | list[Origin]:
    """The origin of an assigned value, part by part where it is unpacked.

    Parts of what was read are inputs, as in ``n, m = map(int, input().split())``.
    """
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)):
            return [_origin(part) for part in value.elts]
        if isinstance(value, ast.Attribute) and value.attr == "shape" and (array := _origin(value.value)) is not None:
            return [f"{array}.{axis}" for axis in range(len(target.elts))]
        return _item(_origin(value), of_read=_READ)
    return _origin(value)


def _origin(node: ast.expr) -> Origin:
    """Return the origin of a value: a name with attributes and items, or :data:`_READ`; None where it is neither."""
    match node:
        case ast.Name():
            return node.id
        case ast.Constant():
            return _CONSTANT
        case ast.Attribute():
            base = _origin(node.value)
            return f"{base}.{node.attr}" if base is not None and _NAME.fullmatch(base) else None
        case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=ast.Constant(value=int(axis))) if (
            axis >= 0
        ):
            array = _origin(owner)
            return f"{array}.{axis}" if array is not None else None
        case ast.Subscript():
            base = _origin(node.value)
            return base if isinstance(node.slice, ast.Slice) else _item(base)
        case ast.Starred() | ast.Await() | ast.NamedExpr():
            return _origin(node.value)
        case ast.BoolOp():
            return _origin(node.values[0])
        case ast.BinOp():
            left, right = _origin(node.left), _origin(node.right)
            return left if right == _CONSTANT else right if left == _CONSTANT else None
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return _origin(node.generators[0].iter) if len(node.generators) == 1 else None
        case ast.Call():
            return _result(node)
        case _:
            return None


def _result(call: ast.Call) -> Origin:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in _READS:
        return _READ
    if isinstance(call.func, ast.Attribute) and name in _KEPT_OF:
        return _origin(call.func.value)
    if name in ("map", "filter") and len(call.args) == 2:
        return _origin(call.args[1])
    if name == "range" and len(call.args) in (2, 3):
        return _origin(call.args[1])
    return _origin(call.args[0]) if name in _KEPT_BY and call.args else None


def _items(iterable: ast.expr) -> Origin | list[Origin]:
    """Return the origin of the items of an iterable; part by part where they are tuples with a known meaning."""
    if isinstance(iterable, ast.Call):
        name = iterable.func.attr if isinstance(iterable.func, ast.Attribute) else getattr(iterable.func, "id", "")
        if name == "enumerate" and iterable.args:
            items = _items(iterable.args[0])
            return [_origin(iterable.args[0]), None if isinstance(items, list) else items]
        if name == "zip":
            parts = [_items(part) for part in iterable.args]
            return [None if isinstance(part, list) else part for part in parts]
        if name == "range":
            return _origin(iterable)
    return _item(_origin(iterable))


def _item(origin: Origin, of_read: Origin = None) -> Origin:
    """The origin of an item of a value."""
    if origin in (_READ, _CONSTANT):
        return of_read if origin == _READ else _CONSTANT
    return f"{origin}[]" if origin is not None else None


def _root(name: str) -> str:
    return re.split(r"\W", name, maxsplit=1)[0]
