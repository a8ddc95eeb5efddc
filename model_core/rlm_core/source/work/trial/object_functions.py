"""Functions of the library that make or read objects and functions of the program, in a trial run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .library import TYPES
from .names import Caller
from .objects import Class, Instance
from .values import Refused

_MOST_FIELDS, _MOST_DEPTH = 100, 40


def _named_tuple(
    machine: Caller, name: str, fields: Any, *, defaults: Any = (), rename: bool = False, module: Any = None
) -> Class:
    """The class that ``namedtuple`` makes."""
    names = fields.replace(",", " ").split() if type(fields) is str else list(fields)
    if len(names) > _MOST_FIELDS:
        raise Refused
    made = Class(machine, name)
    made.is_tuple = True
    late: list[Any] = [None] * (len(names) - len(defaults)) + [partial(_same, value) for value in defaults]
    made.fields = dict(zip(names, late, strict=True))
    return made


def _same(value: Any) -> Any:
    return value


def _as_dict(machine: Caller, value: Any, depth: int = 0) -> Any:
    """An object of a dataclass, and those that it holds, as dicts."""
    if depth > _MOST_DEPTH:
        raise Refused
    machine.budget.spend()
    kind = type(value)
    if kind is Instance and value.kind.fields:
        parts = zip(value.kind.fields, value.parts(), strict=True)
        return {name: part if value.kind.is_tuple else _as_dict(machine, part, depth + 1) for name, part in parts}
    if kind is list or kind is tuple:
        return kind([_as_dict(machine, part, depth + 1) for part in value])
    if kind is dict:
        return {key: _as_dict(machine, part, depth + 1) for key, part in value.items()}
    return value


def _as_tuple(machine: Caller, value: Instance) -> tuple[Any, ...]:
    return value.parts()


def _replaced(machine: Caller, value: Any, **changes: Any) -> Instance:
    if type(value) is not Instance:
        raise TypeError
    return value.replaced(changes)


def _type_of(machine: Caller, value: Any) -> Any:
    if type(value) is Instance:
        return value.kind
    dotted = f"{type(value).__module__}.{type(value).__name__}"
    if dotted not in TYPES:
        raise Refused
    return machine.library(dotted)


OF_OBJECTS: dict[str, Callable[..., Any]] = {
    "collections.namedtuple": _named_tuple,
    "dataclasses.asdict": _as_dict,
    "dataclasses.astuple": _as_tuple,
    "dataclasses.replace": _replaced,
    "builtins.type": _type_of,
    "functools.wraps": lambda machine, function, **options: partial(_same),
}
"""By dotted name; each takes the machine before its arguments."""
