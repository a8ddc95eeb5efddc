"""The parameters of this server's own requests: read by name, checked by kind, one clear line for what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pygls.exceptions import JsonRpcInvalidParams
from pygls.uris import to_fs_path

_Value = TypeVar("_Value")


def fields(params: Any) -> Mapping[str, Any]:
    """Parameters by name. pygls makes a tuple with names of what it has no type for."""
    if params is None:
        return {}
    if isinstance(params, Mapping):
        return params
    found = getattr(params, "_asdict", None)
    if found is None:
        raise JsonRpcInvalidParams("the parameters must be an object")
    named: dict[str, Any] = found()
    return named


def optional(named: Mapping[str, Any], name: str, kind: type[_Value]) -> _Value | None:
    """The value of a parameter that may be missing or null.

    Raises:
        JsonRpcInvalidParams: it is of another kind.
    """
    value = named.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise JsonRpcInvalidParams(f"parameter `{name}` must be {_WORDS[kind]}")
    return value


def number(named: Mapping[str, Any], name: str, default: int, most: int) -> int:
    """A count from 1 to ``most``.

    Raises:
        JsonRpcInvalidParams: it is another value.
    """
    value = optional(named, name, int)
    if value is not None and not 1 <= value <= most:
        raise JsonRpcInvalidParams(f"parameter `{name}` must be from 1 to {most}")
    return default if value is None else value


def path_of(named: Mapping[str, Any], name: str = "uri") -> Path:
    """The path of a file or folder that is named by its URI.

    Raises:
        JsonRpcInvalidParams: there is no such parameter, or it is not in the file system.
    """
    uri = optional(named, name, str)
    path = to_fs_path(uri) if uri else None
    if not path or not uri or not uri.startswith("file:"):
        raise JsonRpcInvalidParams(f"name a file by its URI in `{name}`, like file:///models/a.onnx")
    return Path(path)


_WORDS: Mapping[type, str] = {str: "text", int: "a whole number", bool: "true or false"}
