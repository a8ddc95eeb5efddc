"""Says what a name usually is that no import explains, and which methods tell the type of their object.

The names are in ``conventional_names.toml`` with how they were chosen. A method and the name of its object together say
more than either: a ``session`` sends requests or queries.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..domain.values import Value

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _owner_of_each(names: Mapping[str, str]) -> dict[str, str]:
    """Each of the names in a text -> the owner of the text."""
    return {name: owner for owner, text in names.items() for name in text.split()}


CONVENTIONAL: dict[str, str] = {name: name for name in _TABLE["modules_by_their_name"].split()} | _TABLE["modules"]
"""Local name -> dotted module."""
ALIASES = _owner_of_each(_TABLE["aliases"])
"""Type in a hint -> the type that the tables know it by."""
TELLING = _owner_of_each(_TABLE["telling"])
"""Method -> the type that has it; where several of pandas' types have it, the usual one."""
TELLING_ATTRIBUTES: dict[str, str] = dict.fromkeys(("iloc", "loc", "iat"), "pandas.DataFrame")
MANAGERS = frozenset({"objects", "_default_manager", "_base_manager"})
"""Attributes of the classes of Django's models that make queries."""
USUAL_METHODS = _owner_of_each(_TABLE["usual_methods"])
"""Method -> the type that it is usually called on, where neither the text nor the program has another."""
_USUAL_OWNERS = tuple((re.compile(name), type_) for name, type_ in _TABLE["usual_owners"].items())
_FRAMES = frozenset({"df", "dataframe", "data_frame"})


def usual_type(name: str) -> str | None:
    """Return the type that parameters of a name nearly always have."""
    return "pandas.DataFrame" if name in _FRAMES or name.startswith("df_") or name.endswith("_df") else None


def usual_owners(name: str, method: str) -> list[str]:
    """Return the types that the object of a method may have, by its name and by the method's, the likeliest first."""
    owners = [type_ for pattern, type_ in _USUAL_OWNERS if pattern.search(name)] if name else []
    return [*owners, USUAL_METHODS[method]] if method in USUAL_METHODS else owners


def may_take(owner: str, method: str, args: Sequence[Value]) -> bool:
    """Return whether a method of a type that only a name suggests may be called with some arguments.

    A ``session`` gets a row by its class and key. One of requests gets an address, that of a user the value of a text.
    """
    if (owner, method) != ("sqlalchemy.Session", "get"):
        return True
    return len(args) > 1 and args[0].kind in ("class", "unknown")


def is_manager(owner: str, attribute: str) -> bool:
    """Return whether an attribute makes queries of a model of Django: ``User.objects``."""
    last = owner.rpartition(".")[2]
    return attribute in MANAGERS and (last[:1].isupper() or last in ("cls", "klass") or "model" in last.lower())
