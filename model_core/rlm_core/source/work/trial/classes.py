"""What the statement of a class says in a trial run: bases, fields, members."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ..syntax import data_fields, label_of
from .library import EXCEPTIONS, Module
from .names import MISSING, Names
from .objects import Class, Instance
from .values import Refused

_PLAIN_BASES = frozenset({"object", "ABC", "Protocol", "Generic"})
_ENUMERATIONS = frozenset({"Enum", "StrEnum", "IntEnum"})
_NOTHING_MORE = frozenset({"total_ordering", "unique", "final", "runtime_checkable"})


class Evaluator(Protocol):
    """What evaluates the expressions of a program."""

    def value(self, node: ast.expr, names: Names) -> Any:
        """The value of an expression."""


def shape(machine: Evaluator, made: Class, node: ast.ClassDef, names: Names) -> None:
    """Give a class what its statement says, but for its methods.

    Raises:
        Refused: a base or decorator that is not known.
    """
    for decorator in node.decorator_list:
        label = label_of(decorator)
        if label == "dataclass":
            made.is_data = True
            options = decorator.keywords if isinstance(decorator, ast.Call) else []
            chosen = {option.arg for option in options if isinstance(option.value, ast.Constant) and option.value.value}
            made.is_ordered, made.is_frozen = "order" in chosen, "frozen" in chosen
        elif label not in _NOTHING_MORE:
            raise Refused
    if any(keyword.arg != "metaclass" for keyword in node.keywords):
        raise Refused
    is_enumeration = False
    for base in node.bases:
        label = label_of(base)
        bound = names.find(label)
        if isinstance(bound, Module):
            bound = MISSING
        if bound is MISSING and label in _ENUMERATIONS:
            is_enumeration = True
        elif bound is MISSING and label == "NamedTuple":
            made.is_tuple = True
        elif bound is MISSING and label in EXCEPTIONS:
            made.exception = EXCEPTIONS[label]
        elif bound is not MISSING or label not in _PLAIN_BASES:
            _inherit(made, machine.value(base, names))
    own = data_fields(node)
    if own is not None:
        made.fields |= {name: _default(machine, value, names) for name, value in own.items()}
    if is_enumeration:
        for name, value in _members(machine, node, names):
            member = made.members[name] = Instance(made)
            member.values = {"name": name, "value": value}


def _inherit(made: Class, base: Any) -> None:
    if not isinstance(base, Class) or base.members:
        raise Refused
    made.bases.append(base)
    made.fields |= base.fields
    made.exception = made.exception or base.exception
    made.is_data |= base.is_data
    made.is_tuple |= base.is_tuple
    made.is_ordered |= base.is_ordered
    made.is_frozen |= base.is_frozen


def _default(machine: Evaluator, value: ast.expr | None, names: Names) -> Callable[[], Any] | None:
    return None if value is None else lambda: machine.value(value, names)


def _members(machine: Evaluator, node: ast.ClassDef, names: Names) -> Iterator[tuple[str, Any]]:
    count = 0
    for statement in node.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        count += 1
        is_auto = isinstance(statement.value, ast.Call) and label_of(statement.value) == "auto"
        yield statement.targets[0].id, count if is_auto else machine.value(statement.value, names)
