"""The values of a trial run that are the program's own: names, functions, classes and their objects."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..recursion_syntax import is_cached
from ..scope import Scope
from ..syntax import Function
from .library import call_method
from .values import Budget, Refused, weigh

MISSING = object()
"""What a name stands for that is not bound."""


class Caller(Protocol):
    """What runs the functions of a program."""

    budget: Budget

    def enter(self, closure: Closure, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Call a function."""

    def function(self, names: Names, name: str, owner: str | None, caller: str) -> Any:
        """A function that the scope finds, else ``MISSING``."""


class Names:
    """The names of a function that runs; ``outer`` are those of the function around it, None at the module."""

    __slots__ = ("caller", "not_local", "outer", "result", "scope", "values", "yielded")

    def __init__(self, scope: Scope, outer: Names | None, caller: str) -> None:
        self.scope, self.outer, self.caller = scope, outer, caller
        self.values: dict[str, Any] = {}
        self.not_local: set[str] = set()
        self.result: Any = None
        self.yielded: list[Any] | None = None  # of a generator

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
    """A function of the program as a value."""

    __slots__ = ("defaults", "kept", "machine", "names", "node", "receiver")

    def __init__(self, machine: Caller, node: Function, names: Names, defaults: dict[str, Any]) -> None:
        self.machine, self.node, self.names, self.defaults = machine, node, names, defaults
        self.kept: dict[Any, Any] | None = {} if is_decorated(node) else None
        self.receiver: Any = MISSING

    def bound(self, receiver: Any) -> Closure:
        """The method of an object."""
        method = Closure(self.machine, self.node, self.names, self.defaults)
        method.receiver, method.kept = receiver, None
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


class Class:
    """A class of the program: methods and no base."""

    __slots__ = ("attributes", "machine", "name", "names")

    def __init__(self, machine: Caller, name: str, names: Names, attributes: dict[str, Any] | None) -> None:
        self.machine, self.name, self.names, self.attributes = machine, name, names, attributes

    def find(self, name: str) -> Any:
        """A method or attribute of the class."""
        if self.attributes is not None:
            return self.attributes.get(name, MISSING)
        return self.machine.function(self.names, name, "self", f"{self.name}.{name}")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call it."""
        made = Instance(self)
        begin = self.find("__init__")
        if begin is not MISSING:
            begin.bound(made)(*args, **keywords)
        elif args or keywords:
            raise Refused
        return made


class Instance:
    """An object of a class of the program."""

    __slots__ = ("kind", "values")

    def __init__(self, kind: Class) -> None:
        self.kind = kind
        self.values: dict[str, Any] = {}


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
