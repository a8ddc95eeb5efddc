"""The names that Python binds: in a block and those around it, by a call, and by an import.

Values are of any type: the cost analysis and the traces of PyTorch modules both follow these rules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from .folding import MISSING

T = TypeVar("T")


class Block(Protocol):
    """A block of a program: the names that it binds, and the block around it."""

    @property
    def names(self) -> Mapping[str, Any]:
        """The values of names by name."""

    @property
    def parent(self) -> Block | None:
        """The block around this one."""


def lookup(block: Block | None, name: str) -> Any:
    """Return the value of a name bound in a block or in one around it; ``MISSING`` where none binds it."""
    while block is not None:
        value = block.names.get(name, MISSING)
        if value is not MISSING:
            return value
        block = block.parent
    return MISSING


@dataclass(frozen=True, slots=True)
class Binding(Generic[T]):
    """The values of parameters by name, the arguments of ``*rest``, and those of ``**extra``."""

    names: dict[str, T]
    rest: Sequence[T]
    extra: dict[str, T]


def bound(parameters: ast.arguments, args: Sequence[T], keywords: Mapping[str, T]) -> Binding[T]:
    """Return what a call binds; parameters that it leaves out are missing."""
    positional = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    allowed = {*positional, *(parameter.arg for parameter in parameters.kwonlyargs)}
    names = dict(zip(positional, args, strict=False))
    names.update({name: value for name, value in keywords.items() if name in allowed})
    extra = {name: value for name, value in keywords.items() if name not in allowed}
    return Binding(names, args[len(positional) :], extra)


def defaults_of(parameters: ast.arguments) -> list[tuple[str, ast.expr]]:
    """Return the parameters with defaults."""
    positional = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    pairs = list(zip(positional[len(positional) - len(parameters.defaults) :], parameters.defaults, strict=True))
    keyword_only = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    return pairs + [(parameter.arg, value) for parameter, value in keyword_only if value is not None]


def imported_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, each with the dotted name of what it is bound to."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif alias.asname is not None:
            yield alias.asname, alias.name
        else:
            root = alias.name.partition(".")[0]
            yield root, root
