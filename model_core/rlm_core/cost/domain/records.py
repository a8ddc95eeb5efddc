"""Records: dataclasses with slots that the type checker keeps immutable, and copies of them with other fields.

An analysis makes hundreds of thousands of them. A frozen dataclass checks each assignment when the program runs too,
its own included, which takes several times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[_T]) -> type[_T]:
    """Make a class an immutable dataclass with slots."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


if TYPE_CHECKING:
    from dataclasses import replace as replace  # checks the names and types of the fields
else:

    def replace(original: _T, /, **changes: Any) -> _T:
        """Return a copy of a dataclass with some fields changed; it has two or more, and its constructor takes all."""
        places, values_of = _layout(type(original))
        values = list(values_of(original))
        for name, value in changes.items():
            values[places[name]] = value
        return type(original)(*values)


@cache
def _layout(cls: type[Any]) -> tuple[dict[str, int], Callable[[Any], tuple[Any, ...]]]:
    """Return the places of a dataclass's fields in its constructor, and what reads all of them."""
    names = [field.name for field in fields(cls)]
    return {name: place for place, name in enumerate(names)}, attrgetter(*names)
