"""What library functions cost and return: rules for Python's builtins, containers, standard library and numpy.

Each module of the package has up to four tables: ``FUNCTIONS`` by canonical dotted name (``builtins.sorted``,
``math.sqrt``), ``METHODS`` by kind of the receiver (or its type's name) and method, ``OPERATORS`` by kind and operator,
and ``ATTRIBUTES`` by kind (or the dotted name of a module or type) and attribute.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..domain.values import UNKNOWN, Call, Value
from . import (
    array_creation,
    array_elementwise,
    array_indexing,
    array_linalg,
    array_reductions,
    array_shapes,
    builtin_collections,
    builtin_functions,
    builtin_iterators,
    containers,
    documents,
    encoding,
    iteration,
    networking,
    numeric,
    processes,
    synchronisation,
    system,
    texts,
    threads,
    user_input,
)
from .array_values import new_pages, refaulted, temporary
from .conventional_names import CONVENTIONAL
from .rules import COUNTING, ENDLESS, Attribute, Rule, collection_cost, is_endless, passed
from .unit_costs import primitive

__all__ = [
    "CONVENTIONAL",
    "COUNTING",
    "ENDLESS",
    "Rule",
    "attribute",
    "collection_cost",
    "is_endless",
    "method_rule",
    "new_pages",
    "operator_rule",
    "passed",
    "refaulted",
    "rule_for",
    "temporary",
]

_MODULES: tuple[ModuleType, ...] = (
    array_creation,
    array_elementwise,
    array_indexing,
    array_linalg,
    array_reductions,
    array_shapes,
    builtin_collections,
    builtin_functions,
    builtin_iterators,
    synchronisation,
    containers,
    documents,
    encoding,
    iteration,
    networking,
    numeric,
    processes,
    system,
    texts,
    threads,
    user_input,
)


def _merged(table: str) -> dict[Any, Any]:
    merged: dict[Any, Any] = {}
    for module in _MODULES:
        rules = getattr(module, table, {})
        twice = merged.keys() & rules.keys()
        assert not twice, f"{module.__name__}: {sorted(twice)} have a rule already"
        merged |= rules
    return merged


_FUNCTIONS: dict[str, Rule] = _merged("FUNCTIONS")
_METHODS: dict[tuple[str, str], Rule] = _merged("METHODS")
_OPERATORS: dict[tuple[str, str], Rule] = _merged("OPERATORS")
_ATTRIBUTES: dict[tuple[str, str], Attribute] = _merged("ATTRIBUTES")


def _of_class(method: str) -> Rule:
    """A call through a class, such as ``dict.fromkeys``: the function of that dotted name."""

    def rule(call: Call) -> Value:
        owner = call.receiver.name if call.receiver is not None else ""
        dotted = _FUNCTIONS.get(f"{owner}.{method}")
        if dotted is None:
            dotted = _METHODS.get((owner.removeprefix("builtins."), method))
        if dotted is None:
            call.spend(primitive("call.builtin"))
            return UNKNOWN
        return dotted(call)

    return rule


_METHODS |= {
    ("function", method): _of_class(method)
    for method in {name.rpartition(".")[2] for name in _FUNCTIONS if name.rpartition(".")[0] in _FUNCTIONS}
    | {method for kind, method in _METHODS if kind in ("str", "list", "dict", "set", "bytes", "int", "float")}
    if ("function", method) not in _METHODS
}


def rule_for(name: str) -> Rule | None:
    """The rule of the function or class with this canonical dotted name."""
    return _FUNCTIONS.get(name)


def method_rule(kind: str, name: str) -> Rule | None:
    """The rule of a method of values of this kind, or of objects of this type (``threading.Thread``).

    A table may have ``*`` for the other methods of a type, and the kind ``""`` for names that mean one thing whatever
    their receiver is.
    """
    return _METHODS.get((kind, name)) or _METHODS.get((kind, "*"))


def operator_rule(kind: str, operator: str) -> Rule | None:
    """The rule of an operator (``+``, ``@``, ``[]``) whose left or right operand is of this kind."""
    return _OPERATORS.get((kind, operator))


def attribute(value: Value, name: str) -> Value | None:
    """The attribute of a module, an object or another value, None if there is no rule."""
    for owner in (value.name, value.kind):
        rule = _ATTRIBUTES.get((owner, name))
        if rule is not None:
            return rule(value)
    return None
