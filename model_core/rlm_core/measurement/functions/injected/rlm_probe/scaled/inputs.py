"""The inputs of a call that can grow: parameters, what attributes of them hold, and numbers that loops count."""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from typing import Any

from ..input_sizes import size_name, sizes_of
from ..plain_data import SCALARS, instance_parts, is_array, is_heap_type, new_instance, set_attributes
from .copies import clone
from .text_growth import Way
from .value_growth import size_of, ways_to_grow

MOST_INPUTS = 8
_MOST_METHODS = 60
_MOST_DEPTH = 3  # attributes in a row, as in ``self.tree.items``
_MOST_VISITED = 200
_NOT_OPERATORS = frozenset({"__init__", "__init_subclass__", "__new__", "__reduce__", "__repr__", "__str__"})
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """A part of the arguments that can grow: a parameter, or what attributes of it hold."""

    path: tuple[str, ...]
    size: int
    ways: tuple[Way, ...]
    name: str
    """The name of its size, as that of a measurement of tests."""


def inputs_of(function: types.FunctionType, arguments: Arguments, most_ways: int) -> list[Input]:
    """The inputs that can grow, the largest first; a text that is sought in another or separates it stays as it is."""
    values = [(path, value) for path, value in _values(function, arguments) if _size(value)]
    texts = [value for _, value in values if type(value) in (str, bytes)]
    found = [
        Input(path, _size(value), ways, size_name(function.__code__, path))
        for path, value in values
        if not _is_sought(value, texts) and (ways := _first(_ways(value), most_ways))
    ]
    counted = loop_counts(function.__code__.co_filename, function.__code__.co_firstlineno)
    for name, value in arguments.items():
        if name in counted and type(value) is int and value > 0:
            found.append(Input((name,), value, (partial(operator.mul, value),), name))
    return sorted(found, key=lambda one: -one.size)[:MOST_INPUTS]


def grown(arguments: Arguments, ways: Mapping[Input, Way], factor: int) -> Arguments:
    """A copy of the arguments in which some inputs are ``factor`` times as large."""
    made: Arguments = clone(arguments)
    if factor == 1:
        return made
    for one, way in ways.items():
        value = way(factor)
        *holders, last = one.path
        if not holders:
            made[last] = value
            continue
        holder = made[holders[0]]
        for name in holders[1:]:
            parts = instance_parts(holder)
            assert parts is not None
            holder = parts.attributes[name]
        set_attributes(holder, {last: value})
    return made


def size_at(arguments: Arguments, one: Input) -> int:
    """The size of an input in some arguments; a number is its own."""
    value: Any = arguments[one.path[0]]
    for name in one.path[1:]:
        parts = instance_parts(value)
        assert parts is not None
        value = parts.attributes[name]
    return value if type(value) is int else _size(value)


def called_with(function: types.FunctionType, arguments: Arguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and named arguments of a call, from values by the names of the parameters."""
    code = function.__code__
    count, names = code.co_argcount, code.co_varnames
    positional = [arguments[name] for name in names[:count]]
    last = count + code.co_kwonlyargcount
    named = {name: arguments[name] for name in names[count:last]}
    if code.co_flags & CO_VARARGS:
        positional.extend(arguments[names[last]])
        last += 1
    if code.co_flags & CO_VARKEYWORDS:
        named.update(arguments[names[last]])
    return tuple(positional), named


def sizes(function: types.FunctionType, arguments: Arguments, ways: Iterable[Input]) -> dict[str, float]:
    """The sizes of a call by name: those that a measurement of tests has, and those of the inputs that grow."""
    return {**{one.name: size_at(arguments, one) for one in ways}, **sizes_of(function.__code__, arguments)}


def _is_sought(value: Any, texts: list[Any]) -> bool:
    """Return whether a short text is a separator, or part of another text of the call."""
    if type(value) not in (str, bytes):
        return False
    text = value if type(value) is str else value.decode("latin-1")
    if len(text) <= 3 and not any(letter.isalnum() for letter in text):
        return len(texts) > 1
    return any(type(one) is type(value) and len(one) > len(value) and value in one for one in texts)


def _values(function: types.FunctionType, arguments: Arguments) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The parameters, and the attributes of instances that the function may use, with their values."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((name,), value) for name, value in arguments.items()]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_VISITED:
        path, value = waiting.pop(0)
        if not _is_instance(value):
            yield path, value
            continue
        parts = instance_parts(value)
        if parts is None or id(value) in seen:
            continue
        seen.add(id(value))
        if parts.content is not None:
            yield path, value
        if len(path) <= _MOST_DEPTH:
            used = attributes_used(function.__code__, type(value))  # type: ignore[arg-type]
            waiting.extend(((*path, name), one) for name, one in parts.attributes.items() if name in used)


def _is_instance(value: Any) -> bool:
    cls = type(value)
    return cls not in SCALARS and not is_array(value) and is_heap_type(cls) and not isinstance(value, type)


def _size(value: Any) -> int:
    content = _content(value)
    return size_of(content)


def _ways(value: Any) -> Iterator[Way]:
    cls = type(value)
    if not _is_instance(value):
        yield from ways_to_grow(value)
        return
    parts = instance_parts(value)
    if parts is not None and parts.base in (list, tuple, dict, set, frozenset, str, bytes):
        if hasattr(cls, "_fields"):
            return  # a named tuple is a record
        for way in ways_to_grow(parts.content):
            yield partial(_grown_instance, value, way)


def _grown_instance(value: Any, way: Way, factor: int) -> Any:
    content = way(factor)
    parts = instance_parts(value)
    assert parts is not None
    made = new_instance(type(value), parts.base, content)
    set_attributes(made, clone(parts.attributes))
    return made


def _content(value: Any) -> Any:
    if not _is_instance(value):
        return value
    parts = instance_parts(value)
    return parts.content if parts is not None else None


def _first(ways: Iterator[Way], most: int) -> tuple[Way, ...]:
    return tuple(way for _, way in zip(range(most), ways, strict=False))


@lru_cache(maxsize=1024)
def attributes_used(code: types.CodeType, cls: type) -> frozenset[str]:
    """The names that a function uses, and those that the methods of a class use which it may call."""
    names: set[str] = set()
    waiting = [code]
    methods = {name: one for base in reversed(cls.__mro__) for name, one in vars(base).items()}
    seen = 0
    while waiting and seen < _MOST_METHODS:
        one = waiting.pop()
        seen += 1
        waiting.extend(inner for inner in one.co_consts if isinstance(inner, types.CodeType))
        for name in one.co_names:
            if name in names:
                continue
            names.add(name)
            found = methods.get(name)
            found = getattr(found, "__func__", None) or getattr(found, "fget", None) or found
            if isinstance(found, types.FunctionType):
                waiting.append(found.__code__)
    # Operators call methods that no name shows.
    for name, found in methods.items():
        if name.startswith("__") and name not in _NOT_OPERATORS and isinstance(found, types.FunctionType):
            names.update(found.__code__.co_names)
    return frozenset(names)


def loop_counts(file: str, line: int) -> frozenset[str]:
    """The parameters of the function at a line that loops count, multiply a sequence, or a recursion counts down."""
    return _counts_by_line(file).get(line, frozenset())


@lru_cache(maxsize=64)
def _counts_by_line(file: str) -> dict[int, frozenset[str]]:
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[line] = _counts(node)
    return found


def _counts(function: ast.FunctionDef) -> frozenset[str]:
    arguments = function.args
    parameters = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("range", function.name):
            names |= _names(node.args)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == function.name:
            names |= {name for one in node.args if isinstance(one, ast.BinOp) for name in _names([one])}
        elif isinstance(node, ast.While):
            names |= _names([node.test])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(side, ast.List | ast.Constant) and not (
                    isinstance(side, ast.Constant) and not isinstance(side.value, str | bytes)
                ):
                    names |= _names([other])
    return frozenset(names & parameters)


def _names(nodes: list[ast.expr]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
