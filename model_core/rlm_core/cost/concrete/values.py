"""Values of every text that is followed: what is not known, names of libraries and functions of the text.

Plain Python numbers, strings, tuples, lists and dicts are themselves; a domain adds classes for the others.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

Value = Any  # a plain Python value, or one of the classes here and in a domain
Named = dict[str, Value]  # keyword arguments


class UnknownValue:
    """A value that depends on what runs; the only instance is ``UNKNOWN``."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN = UnknownValue()


@dataclass(frozen=True, slots=True)
class LibraryName:
    """A name in a library, such as ``torch.nn.functional.relu``."""

    path: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


@dataclass(slots=True, eq=False, repr=False)
class NameScope:
    """Names of one block, and the block around it."""

    parent: NameScope | None = None
    names: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class SourceFunction:
    """A function of the text with the scope it was written in; ``owner`` is the class that holds a method."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: NameScope
    defaults: dict[str, Value]
    owner: Any = None
    plain: bool = False  # a static method
    getter: bool = False  # a property

    @property
    def name(self) -> str:
        """The name that the text gives it."""
        return getattr(self.node, "name", "lambda")
