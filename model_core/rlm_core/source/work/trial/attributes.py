"""Attributes in a trial run: of objects and classes of the program, and of Python's own values."""

from __future__ import annotations

import ast
from abc import abstractmethod
from functools import partial
from typing import Any

from ..syntax import Function, label_of
from .library import FIELDS, FUNCTIONS, METHODS, LibraryFunction, Module
from .names import MISSING, Closure, Method, Names
from .object_functions import OF_OBJECTS
from .objects import Class, Failure, Instance, Parent
from .values import Budget, Refused


class Attributes:
    """Reads and sets attributes; evaluating expressions is left to a subclass."""

    budget: Budget

    @abstractmethod
    def value(self, node: ast.expr, names: Names) -> Any:
        """The value of an expression."""

    @abstractmethod
    def library(self, dotted: str) -> Any:
        """What a dotted name of the library stands for."""

    def set_attribute(self, holder: Any, name: str, value: Any) -> None:
        """Set an attribute of a function, class or object of the program."""
        if type(holder) is Closure:
            holder.attributes[name] = value
        elif type(holder) is Class:
            holder.set(name, value)
        elif type(holder) is not Instance or holder.kind.is_tuple:
            raise Refused
        else:
            found = holder.kind.find(name) if name not in holder.values else MISSING
            if type(found) is Closure and decorator_of(found.node):
                # The setter is another function of the same name, which is not kept.
                raise Refused
            holder.values[name] = value

    def attribute(self, node: ast.Attribute, names: Names) -> Any:
        """The value of ``holder.name``."""
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "super":
            return self._parent(names).find(node.attr)
        holder = self.value(node.value, names)
        kind = type(holder)
        if kind is Instance:
            return self.of_object(holder, node.attr)
        if kind is Module:
            return self.library(f"{holder.dotted}.{node.attr}")
        if kind is LibraryFunction:
            if node.attr == "__name__":
                return holder.dotted.rpartition(".")[2]
            if f"{holder.dotted}.{node.attr}" not in FUNCTIONS:
                raise Refused
            return self.library(f"{holder.dotted}.{node.attr}")
        if kind is Class:
            return self._of_class(holder, node.attr)
        if kind is Closure and node.attr in holder.attributes:
            return holder.attributes[node.attr]
        if kind is Failure and node.attr == "args":
            return holder.error.args
        if node.attr in FIELDS.get(kind, ()):
            return getattr(holder, node.attr)
        if node.attr not in METHODS.get(kind, ()):
            raise Refused
        return Method(holder, node.attr, self.budget)

    def of_object(self, holder: Instance, name: str) -> Any:
        """An attribute of an object of the program."""
        if name in holder.values:
            return holder.values[name]
        found = holder.kind.find(name)
        if found is MISSING and holder.kind.is_tuple and name in ("_replace", "_asdict"):
            return partial(
                OF_OBJECTS["dataclasses.replace" if name == "_replace" else "dataclasses.asdict"], self, holder
            )
        if found is MISSING:
            raise _missing(name)
        if type(found) is not Closure or isinstance(found.node, ast.Lambda):
            return found
        label = decorator_of(found.node)
        if label == "staticmethod":
            return found
        if label == "classmethod":
            return found.bound(holder.kind)
        if is_property(found.node):
            value = found.bound(holder)()
            if label == "cached_property":
                holder.values[name] = value
            return value
        if label:
            raise Refused
        return found.bound(holder)

    def _of_class(self, holder: Class, name: str) -> Any:
        """An attribute of a class of the program."""
        if name in holder.members:
            return holder.members[name]
        if name == "__name__":
            return holder.name
        found = holder.find(name)
        if found is MISSING:
            raise _missing(name)
        is_bound = type(found) is Closure and decorator_of(found.node) == "classmethod"
        return found.bound(holder) if is_bound else found

    def _parent(self, names: Names) -> Parent:
        """What ``super()`` is in a method."""
        inner: Names | None = names
        while inner is not None and inner.owner is None:
            inner = inner.outer
        if inner is None or inner.owner is None:
            raise Refused
        return Parent(inner.owner, inner.receiver)


def _missing(name: str) -> BaseException:
    """What an attribute that is not there raises; those of Python's own objects are not looked at."""
    return Refused() if name.startswith("__") else AttributeError(name)


def decorator_of(node: Function) -> str:
    """The name of the only decorator of a function; empty without one."""
    if isinstance(node, ast.Lambda) or not node.decorator_list:
        return ""
    if len(node.decorator_list) > 1:
        raise Refused
    return label_of(node.decorator_list[0])


def is_property(node: Function) -> bool:
    """Whether reading an attribute calls a function."""
    return decorator_of(node) in ("property", "cached_property")
