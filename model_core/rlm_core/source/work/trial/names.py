"""The names of a trial run, and the functions of the program as values."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..recursion_syntax import is_cached
from ..scope import Scope
from ..syntax import Function
from .library import call_method
from .values import Budget, weigh

MISSING = object()
"""What a name stands for that is not bound."""


class Caller(Protocol):
    """What runs the functions of a program."""

    budget: Budget

    def enter(self, closure: Closure, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Call a function."""

    def library(self, dotted: str) -> Any:
        """What a dotted name of the library stands for."""

    def method(self, kind: Any, name: str) -> Any:
        """A method of a class of the module, else ``MISSING``."""


class Names:
    """The names of a function that runs; ``outer`` are those of the function around it, None at the module.

    ``owner`` is the class whose method runs, ``receiver`` the object that it was called on; ``is_class`` marks the body
    of a class.
    """

    __slots__ = ("caller", "is_class", "not_local", "outer", "owner", "receiver", "result", "scope", "values")

    def __init__(self, scope: Scope, outer: Names | None, caller: str) -> None:
        self.scope, self.outer, self.caller = scope, outer, caller
        self.values: dict[str, Any] = {}
        self.not_local: set[str] = set()
        self.result: Any = None
        self.owner: Any = None
        self.receiver: Any = MISSING
        self.is_class = False

    def find(self, name: str) -> Any:
        """The value of a name here or around; ``MISSING`` where it is none of them."""
        names: Names | None = self
        while names is not None:
            value = names.values.get(name, MISSING)
            if value is not MISSING:
                return value
            names = names.outer
        return MISSING

    def bind(self, name: str, value: Any) -> None:
        """Bind a name, in the function around where the program says so."""
        names = self
        if name in self.not_local:
            while names.outer is not None:
                names = names.outer
                if name in names.values:
                    break
        names.values[name] = value


class Closure:
    """A function of the program as a value; ``owner`` is the class that it is a method of."""

    __slots__ = ("attributes", "defaults", "kept", "machine", "names", "node", "owner", "receiver")

    def __init__(self, machine: Caller, node: Function, names: Names, defaults: dict[str, Any]) -> None:
        self.machine, self.node, self.names, self.defaults = machine, node, names, defaults
        self.kept: dict[Any, Any] | None = {} if is_decorated(node) else None
        self.owner: Any = None
        self.receiver: Any = MISSING
        self.attributes: dict[str, Any] = {}

    def bound(self, receiver: Any) -> Closure:
        """The method of an object."""
        method = Closure(self.machine, self.node, self.names, self.defaults)
        method.receiver, method.kept, method.owner = receiver, None, self.owner
        return method

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it."""
        if self.receiver is not MISSING:
            args = (self.receiver, *args)
        if self.kept is None:
            return self.machine.enter(self, args, keywords)
        for arg in args:
            weigh(arg, self.machine.budget)
        key = (args, tuple(keywords.items()))
        if key not in self.kept:
            self.kept[key] = self.machine.enter(self, args, keywords)
        return self.kept[key]


class Method:
    """A method of one of Python's own values."""

    __slots__ = ("budget", "name", "receiver")

    def __init__(self, receiver: Any, name: str, budget: Budget) -> None:
        self.receiver, self.name, self.budget = receiver, name, budget

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it."""
        self.budget.spend()
        return call_method(self.receiver, self.name, list(args), keywords, self.budget)


def is_decorated(node: Function) -> bool:
    """Whether the only decorator of a function keeps the results of calls."""
    return not isinstance(node, ast.Lambda) and len(node.decorator_list) == 1 and is_cached(node)
