"""The types of values as the text shows them: by type hints, and by methods and operators that only one type has.

A hint is believed. A method says what its receiver is only where nothing else in Python commonly has a method of that
name; what is assigned to a name later is not looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from .. import library
from ..domain.context import Context
from ..domain.quantities import ONE, constant, of_size
from ..domain.records import replace
from ..domain.syntax import Function, nodes_of, parse_expression
from ..domain.values import NUMBERS, UNKNOWN, Value

_TEXTS = frozenset({"str", "bytes", "bytearray"})
_CONTAINERS = {
    "list": "list", "List": "list", "Sequence": "list", "MutableSequence": "list",
    "dict": "dict", "Dict": "dict", "Mapping": "dict", "MutableMapping": "dict", "defaultdict": "dict",
    "OrderedDict": "dict", "Counter": "dict", "set": "set", "Set": "set", "MutableSet": "set", "AbstractSet": "set",
    "frozenset": "frozenset", "FrozenSet": "frozenset", "tuple": "tuple", "Tuple": "tuple", "deque": "deque",
}  # fmt: skip
_WRAPPERS = frozenset({"Final", "Annotated", "ClassVar", "Required", "NotRequired", "ReadOnly"})
_OF_HINTS = ("typing.", "typing_extensions.", "collections.abc.", "collections.", "builtins.")
_MOST_DEPTH = 4
_PATH = "pathlib.Path"
_METHODS = {
    **dict.fromkeys(("append", "extend", "sort", "reverse", "insert"), "list"),
    **dict.fromkeys(("items", "keys", "values", "setdefault"), "dict"),
    **dict.fromkeys(("discard", "union", "intersection", "issubset", "issuperset", "symmetric_difference"), "set"),
    **dict.fromkeys(
        ("lower", "upper", "strip", "lstrip", "rstrip", "splitlines", "startswith", "endswith", "casefold", "title",
         "isdigit", "isalpha", "isalnum", "isspace", "zfill", "ljust", "rjust", "removeprefix", "removesuffix"),
        "str",
    ),
    **dict.fromkeys(
        ("joinpath", "iterdir", "read_text", "write_text", "read_bytes", "write_bytes", "with_suffix", "with_name",
         "relative_to", "is_relative_to", "as_posix", "is_dir", "is_file", "rglob", "expanduser", "with_stem"),
        _PATH,
    ),
    **library.TELLING,
}  # fmt: skip
"""Method -> the type that has it."""


def of_hint(context: Context, hint: ast.expr | None, name: str, depth: int = 0) -> Value | None:
    """Return a value of the type that a hint states, called ``name``; None where the hint says too little."""
    if hint is None or depth > _MOST_DEPTH:
        return None
    if isinstance(hint, ast.Constant) and isinstance(hint.value, str):
        return of_hint(context, parse_expression(hint.value), name, depth + 1)
    if isinstance(hint, ast.BinOp) and isinstance(hint.op, ast.BitOr):
        return _of_union(context, [hint.left, hint.right], name, depth)
    parts: list[ast.expr] = []
    if isinstance(hint, ast.Subscript):
        parts = hint.slice.elts if isinstance(hint.slice, ast.Tuple) else [hint.slice]
        hint = hint.value
    if not isinstance(hint, (ast.Name, ast.Attribute)):
        return None
    dotted = _dotted(context, hint)
    short = next((dotted.removeprefix(prefix) for prefix in _OF_HINTS if dotted.startswith(prefix)), dotted)
    if short in _WRAPPERS:
        return of_hint(context, parts[0], name, depth + 1) if parts else None
    if short in ("Optional", "Union"):
        return _of_union(context, [*parts, *([ast.Constant(None)] if short == "Optional" else [])], name, depth)
    kind = _CONTAINERS.get(short)
    if kind == "tuple" and parts and not _is_open_tuple(parts):
        items = tuple(_item(context, parts, place, depth) or UNKNOWN for place in range(len(parts)))
        return Value("tuple", size=constant(len(items)), item=items[0], payload=items)
    if kind is not None:
        item, entry = (_item(context, parts, place, depth) for place in (0, 1))
        return replace(of_kind(kind, name), item=item, entry=entry if kind == "dict" else None)
    if short in NUMBERS or short in _TEXTS:
        return of_kind(short, name)
    if context.frame.scope.is_class(dotted):
        return Value("unknown", name=name, type=dotted)
    dotted = library.ALIASES.get(dotted, dotted)
    if dotted == "array" or library.is_type(dotted):
        return of_kind(dotted, name)
    alias = context.frame.scope.constant(dotted) if isinstance(hint, ast.Name) else None
    return of_hint(context, parse_expression(alias), name, depth + 1) if alias is not None else None


def _of_union(context: Context, sides: list[ast.expr], name: str, depth: int) -> Value | None:
    """Return a value of the only type of a union but None."""
    types = [side for side in sides if not (isinstance(side, ast.Constant) and side.value is None)]
    value = of_hint(context, types[0], name, depth + 1) if len(types) == 1 else None
    return replace(value, optional=True) if value is not None and len(types) < len(sides) else value


def of_kind(kind: str, name: str) -> Value:
    """Return a value of a kind, or of a type of the library, called ``name``; its size has that name, if any."""
    if kind in NUMBERS:
        # A number that has a name is a parameter, which loops and recursion may count with.
        return Value("unknown", name=name, type=kind) if name else Value(kind)
    size = of_size(name) if name else None
    if kind in _TEXTS:
        return Value(kind, size=size, item=Value("str", size=ONE) if kind == "str" else Value("int"))
    if kind in _CONTAINERS.values() or kind == "array":
        return Value(kind, size=size)
    return Value("object", name=kind, size=size if library.has_rows(kind) else None)


@lru_cache(maxsize=128)
def of_uses(node: Function) -> Mapping[str, str]:
    """Map names in a function to the kind or type that their uses show.

    Of two that differ, the one that has all the methods counts, else none.
    """
    shown: dict[str, set[str]] = {}
    used: dict[str, set[str]] = {}
    for inner in nodes_of(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            receiver, kind = inner.func.value, _METHODS.get(inner.func.attr)
            if kind is not None and isinstance(receiver, ast.Name):
                used.setdefault(receiver.id, set()).add(inner.func.attr)
        elif isinstance(inner, ast.Attribute) and inner.attr in library.TELLING_ATTRIBUTES:
            receiver, kind = inner.value, library.TELLING_ATTRIBUTES[inner.attr]
        elif isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div) and _is_text(inner.right):
            receiver, kind = inner.left, _PATH
            while isinstance(receiver, ast.BinOp) and isinstance(receiver.op, ast.Div):
                receiver = receiver.left
        else:
            continue
        if kind is not None and isinstance(receiver, ast.Name):
            shown.setdefault(receiver.id, set()).add(kind)
    for name, kinds in shown.items():
        if len(kinds) > 1:
            kinds &= {kind for kind in kinds if all(library.method_rule(kind, method) for method in used.get(name, ()))}
    return {name: kinds.pop() for name, kinds in shown.items() if len(kinds) == 1}


def typed(
    context: Context, node: Function, values: dict[str, Value], others: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Give the unknown parameters of a function the types that its text shows, else those of ``others``.

    Returns:
        the types that the text shows, as hints.
    """
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    open_names = {
        parameter.arg
        for parameter in parameters
        if (value := values.get(parameter.arg)) is not None and _is_open(value) and parameter.arg not in ("self", "cls")
    }
    shown: dict[str, str] = {}
    if not open_names:
        return shown
    for parameter in parameters:
        if parameter.arg in open_names and parameter.annotation is not None:
            value = of_hint(context, parameter.annotation, values[parameter.arg].name)
            if value is not None:
                values[parameter.arg] = _given(values[parameter.arg], value)
                open_names.discard(parameter.arg)
                shown[parameter.arg] = ast.unparse(parameter.annotation)
    shown |= {name: kind for name, kind in of_uses(node).items() if name in open_names}
    shown |= {name: kind for name in open_names - shown.keys() if (kind := library.usual_type(name)) is not None}
    known = {**(others or {}), **shown}
    for name in sorted(open_names & known.keys()):
        value = of_hint(context, parse_expression(known[name]), values[name].name)
        values[name] = values[name] if value is None else _given(values[name], value)
    return shown


def _given(before: Value, typed_value: Value) -> Value:
    """Return a parameter's value of a type that is shown; it keeps its default."""
    default = before.payload if isinstance(before.payload, tuple) and before.payload[:1] == ("default",) else None
    if default is None:
        return typed_value
    return replace(typed_value, payload=default, optional=typed_value.optional or default[1] is None)


def _is_open(value: Value) -> bool:
    return value.kind == "unknown" and not value.type and value.size is None and value.number is None


def _item(context: Context, parts: list[ast.expr], place: int, depth: int) -> Value | None:
    """Return an average item of a container; texts in containers are short, other sizes are those of no input."""
    value = of_hint(context, parts[place], "", depth + 1) if place < len(parts) else None
    return replace(value, size=library.SHORT) if value is not None and value.kind == "str" else value


def _is_open_tuple(parts: list[ast.expr]) -> bool:
    """Return whether a tuple has any number of items; ``tuple[int]`` is mostly written for ``tuple[int, ...]``."""
    return len(parts) == 1 or (len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is ...)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _dotted(context: Context, hint: ast.expr) -> str:
    """Return the dotted name of a type, with what imports say of its first part."""
    text = ast.unparse(hint)
    first, dot, rest = text.partition(".")
    return f"{context.frame.scope.imported(first) or library.CONVENTIONAL.get(first, first)}{dot}{rest}"
