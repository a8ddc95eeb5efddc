"""Says what library functions cost and return: builtins, containers, the standard library, numpy and services.

The tables in the folder ``tables`` have an entry for each function by its canonical dotted name (``builtins.sorted``,
``math.sqrt``), for methods by kind of the receiver (or its type's name), and for operators and attributes alike;
:mod:`.statements` describes their syntax. What an entry cannot say is a function of one of the other modules.
"""

from __future__ import annotations

import builtins

from ..domain.quantities import ONE
from ..domain.values import Call, Value
from . import result_kinds
from .array_values import new_pages, refaulted
from .conventional_names import (
    ALIASES,
    CONVENTIONAL,
    TELLING,
    TELLING_ATTRIBUTES,
    is_manager,
    may_take,
    usual_owners,
    usual_type,
)
from .entries import Entries
from .result_kinds import function_result, method_result
from .rules import ENDLESS, SHORT, Rule, collection_cost, is_endless, passed
from .statements import read_tables
from .unit_costs import primitive

__all__ = [
    "ALIASES",
    "CONVENTIONAL",
    "ENDLESS",
    "ENTRIES",
    "SHORT",
    "TELLING",
    "TELLING_ATTRIBUTES",
    "Rule",
    "attribute",
    "collection_cost",
    "function_result",
    "has_rows",
    "is_endless",
    "is_manager",
    "is_type",
    "may_take",
    "method_result",
    "method_rule",
    "new_pages",
    "operator_rule",
    "passed",
    "property_rule",
    "refaulted",
    "rule_for",
    "special_rule",
    "usual_owners",
    "usual_type",
]

ENTRIES = Entries(read_tables()["entry"])
_OWN_KINDS = frozenset({"str", "list", "dict", "set", "bytes", "int", "float"})
_OF_CLASSES = frozenset(
    [owned for owner, _, owned in (name.rpartition(".") for name in ENTRIES.functions) if owner in ENTRIES.functions]
    + [method for kind, method in ENTRIES.methods if kind in _OWN_KINDS]
)
_TYPES = frozenset(owner for owner, _ in ENTRIES.methods if "." in owner)


def _of_class(method: str) -> Rule:
    """Return the rule of a call through a class, such as ``dict.fromkeys``: the function of that dotted name."""

    def rule(call: Call) -> Value:
        owner = call.receiver.name if call.receiver is not None else ""
        dotted = ENTRIES.function(f"{owner}.{method}") or ENTRIES.method(owner.removeprefix("builtins."), method)
        if dotted is None:
            call.spend(primitive("call.builtin"))
            call.unknown(ONE)
            return function_result(f"{owner.removeprefix('builtins.')}.{method}")
        return dotted(call)

    return rule


def rule_for(name: str) -> Rule | None:
    """Return the rule of the function or class with this canonical dotted name."""
    rule = ENTRIES.function(name)
    if rule is None and name.startswith("builtins."):
        named = getattr(builtins, name.removeprefix("builtins."), None)
        if isinstance(named, type) and issubclass(named, BaseException):
            return ENTRIES.function("builtins.Exception")
    return rule or (ENTRIES.function("builtins.Exception") if _is_error(name) else None)


def _is_error(name: str) -> bool:
    """Return whether the dotted name of something in a package is that of an exception: their names say so."""
    owner, _, last = name.rpartition(".")
    is_named = last.endswith(("Error", "Exception", "Warning"))
    return bool(owner) and last[:1].isupper() and (is_named or owner.rpartition(".")[2] == "exceptions")


def is_type(name: str) -> bool:
    """Return whether something is known of objects of this type: what their methods cost, or the kinds of results."""
    return name in _TYPES or result_kinds.is_class(name)


def has_rows(name: str) -> bool:
    """Return whether objects of this type have a length, which is named after them."""
    return (name, "__len__") in ENTRIES.methods


def method_rule(kind: str, name: str) -> Rule | None:
    """Return the rule of a method of values of this kind, or of objects of this type (``threading.Thread``).

    A table may have ``*`` for the other methods of a type, and the kind ``""`` for names that mean one thing whatever
    their receiver is.
    """
    if kind == "function" and name in _OF_CLASSES:
        return _of_class(name)
    return ENTRIES.method(kind, name) or ENTRIES.method(kind, "*")


def special_rule(value: Value, name: str) -> Rule | None:
    """Return the rule of a special method (``__add__``) of an object of the library."""
    return ENTRIES.method(value.name, name) if value.kind == "object" and value.payload is None else None


def property_rule(value: Value, name: str) -> Rule | None:
    """Return the rule of an attribute of an object of the library that takes time; ``.*`` is any other attribute."""
    if value.kind != "object" or value.payload is not None:
        return None
    if (value.name, name) in ENTRIES.attributes:
        return None
    return ENTRIES.method(value.name, f".{name}") or ENTRIES.method(value.name, ".*")


def operator_rule(kind: str, operator: str) -> Rule | None:
    """Return the rule of an operator (``+``, ``@``, ``[]``) whose left or right operand is of this kind."""
    return ENTRIES.operator(kind, operator)


def attribute(value: Value, name: str) -> Value | None:
    """Return the attribute of a module, an object or another value, None if nothing is known of it."""
    for owner in (value.name, value.kind):
        made = ENTRIES.attribute(owner, name)
        if made is not None:
            return made(value)
    return result_kinds.attribute(value, name)
