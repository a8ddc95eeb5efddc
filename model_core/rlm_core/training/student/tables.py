"""TOML tables -> dataclasses of settings, each key checked against the type of its default."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from rlm_core.errors import DataError

T = TypeVar("T")
_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a text", tuple: "a list", dict: "a table"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file.

    Raises:
        DataError: the file is missing or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not TOML ({error})") from None


def typed(kind: type[T], values: Mapping[str, Any], where: str) -> T:
    """A dataclass of settings from a table: unknown keys and values of another type are refused.

    Raises:
        DataError: with the name of the key.
    """
    default = kind()
    known = [entry.name for entry in fields(default)]  # type: ignore[arg-type]
    found = {}
    for key, value in values.items():
        if key not in known:
            raise DataError(f"{where}: unknown key {key!r}; known: {', '.join(known)}")
        found[key] = checked(value, type(getattr(default, key)), f"{where}: {key}")
    return kind(**found)


def checked(value: Any, wanted: type, where: str) -> Any:
    """The value as the wanted type; an integer will do for a number, tables and lists hold numbers.

    Raises:
        DataError: it is of another type.
    """
    if wanted is tuple and isinstance(value, list):
        return tuple(float(checked(item, float, where)) for item in value)
    if type(value) is not wanted and not (wanted is float and type(value) is int):
        raise DataError(f"{where} must be {_NAMES[wanted]}, not {value!r}")
    if isinstance(value, dict):
        return {key: checked(item, int, f"{where}.{key}") for key, item in value.items()}
    return value
