"""Dataclasses as JSON: written, read with checks, and described by schemas, all from their type hints.

JSON has neither infinity nor NaN: they are written as the strings ``"Infinity"``, ``"-Infinity"`` and ``"NaN"``. The
codec understands dataclasses, ``str``, ``int``, ``float``, ``bool``, ``Literal``, ``StrEnum``, ``X | None``,
``tuple[X, ...]``, ``tuple[X, Y]`` and ``Mapping[str, X]``.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from rlm_core.errors import DataError

_Reader = Callable[[Any], Any]
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SHOWN = 40
_D = TypeVar("_D")
# Brackets of a document, those in its texts included: so many take 2 s to read, and the largest requests have fewer.
_MOST_CONTAINERS = 1_500_000


class WireError(DataError):
    """JSON that is not what was agreed on; one line with the place in the document, like ``questions[3].basis``."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path.removeprefix('.')}: {problem}" if path else problem)
        self.problem, self.path = problem, path

    def within(self, step: str) -> WireError:
        """The same problem, seen from one level further out."""
        return WireError(self.problem, step + self.path)


def dumps(value: Any) -> bytes:
    """A dataclass as JSON in UTF-8. Lone surrogates, which UTF-8 cannot hold, become ``?``."""
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def loads(kind: type[_D], data: bytes, *, unknown: Literal["refuse", "ignore"]) -> _D:
    """A dataclass from JSON. Fields that ``kind`` has not are an error, or are passed over.

    Raises:
        WireError: it is not JSON, or not a ``kind``.
    """
    if data.count(b"[") + data.count(b"{") > _MOST_CONTAINERS:
        raise WireError("not JSON that can be read (too many arrays and objects)")
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise WireError(f"not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise WireError(f"not JSON ({error.msg}, line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise WireError("not JSON that can be read (nested too deeply)") from None
    except ValueError:
        raise WireError("not JSON that can be read (a number has too many digits)") from None
    return cast(_D, _reader(cast(Any, kind), unknown == "refuse")(value))


def schemas(*kinds: type) -> dict[str, Any]:
    """JSON Schemas (draft 2020-12, as OpenAPI 3.1 has it) of dataclasses and all that they hold, by class name."""
    found: dict[str, Any] = {}
    for kind in kinds:
        _schema(kind, found)
    return found


def _no_constant(name: str) -> None:
    raise WireError(f'not JSON ({name} is not a number; write "{name}" in quotes)')


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {name: _plain(getattr(value, name)) for name in _names(cast(Any, type(value)))}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(kind) if entry.init)


def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the origin and arguments of a type hint; ``X | None`` and ``Optional[X]`` are the same."""
    origin = get_origin(kind)
    return (types.UnionType if origin is Union else origin), get_args(kind)


@cache
def _reader(kind: Any, strict: bool) -> _Reader:
    """The function that turns a JSON value into a ``kind`` or raises WireError; built once a type."""
    origin, inner = _parts(kind)
    if is_dataclass(kind):
        return _object(cast(Any, kind), strict)
    if origin is Literal:
        return _one_of(inner)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        choose = _one_of(tuple(kind))
        return lambda value: kind(choose(value))
    if origin is tuple and inner[-1] is not ...:
        return _fixed([_reader(part, strict) for part in inner])
    if origin is tuple:
        return _list(_reader(inner[0], strict))
    if origin is types.UnionType:
        return _optional(_reader(next(part for part in inner if part is not types.NoneType), strict))
    if origin is not None:
        return _mapping(_reader(inner[1], strict))
    return {str: _string, int: _integer, float: _number, bool: _boolean}[kind]


def _shown(value: Any) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise WireError(f"must be a string, not {_shown(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WireError("holds half of a surrogate pair, which is not a character") from None
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WireError(f"must be an integer, not {_shown(value)}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    try:
        if not isinstance(value, bool | str) and math.isfinite(value):
            return float(value)
    except (TypeError, OverflowError):
        pass  # no number, or an integer beyond all floats: said below
    raise WireError(f"must be a finite number or one of {', '.join(map(repr, _SPECIAL))}, not {_shown(value)}")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WireError(f"must be true or false, not {_shown(value)}")
    return value


def _one_of(choices: tuple[Any, ...]) -> _Reader:
    def read(value: Any) -> Any:
        if value not in choices or isinstance(value, bool | float):
            raise WireError(f"must be {_choices(choices)}, not {_shown(value)}")
        return value

    return read


def _choices(choices: tuple[Any, ...]) -> str:
    names = [json.dumps(choice) for choice in choices]
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _optional(read: _Reader) -> _Reader:
    return lambda value: None if value is None else read(value)


def _list(read: _Reader) -> _Reader:
    def read_list(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise WireError(f"must be a list, not {_shown(value)}")
        try:
            return tuple([read(item) for item in value])
        except WireError:
            pass  # found again below, with its place: counting costs time that good lists need not spend
        for place, item in enumerate(value):
            try:
                read(item)
            except WireError as error:
                raise error.within(f"[{place}]") from None
        raise AssertionError("reading is a function of the value")

    return read_list


def _fixed(readers: Sequence[_Reader]) -> _Reader:
    """The reader of a tuple with one type per place."""

    def read_fixed(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) != len(readers):
            raise WireError(f"must be a list of {len(readers)}, not {_shown(value)}")
        found = []
        for place, (read, item) in enumerate(zip(readers, value, strict=True)):
            try:
                found.append(read(item))
            except WireError as error:
                raise error.within(f"[{place}]") from None
        return tuple(found)

    return read_fixed


def _mapping(read: _Reader) -> _Reader:
    def read_mapping(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise WireError(f"must be an object, not {_shown(value)}")
        found = {}
        for key, item in value.items():
            try:
                found[_string(key)] = read(item)
            except WireError as error:
                raise error.within(f".{_shown(key)}") from None
        return found

    return read_mapping


def _object(kind: type, strict: bool) -> _Reader:
    hints = get_type_hints(kind)
    readers = {entry.name: _reader(hints[entry.name], strict) for entry in fields(kind) if entry.init}
    needed = [
        entry.name
        for entry in fields(kind)
        if entry.init and entry.default is MISSING and entry.default_factory is MISSING
    ]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise WireError(f"must be an object, not {_shown(value)}")
        found = {}
        for name, reader in readers.items():
            if name in value:
                try:
                    found[name] = reader(value[name])
                except WireError as error:
                    raise error.within(f".{name}") from None
        for name in needed:
            if name not in found:
                raise WireError(f"`{name}` is missing")
        if strict:
            for name in value:
                if name not in readers:
                    raise WireError(f"unknown field {_shown(name)}; known: {', '.join(readers)}")
        return kind(**found)

    return read


def _schema(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    origin, inner = _parts(kind)
    if is_dataclass(kind):
        name = cast(type, kind).__name__
        if name not in found:
            found[name] = {}  # a type may hold itself
            found[name] = _object_schema(cast(type, kind), found)
        return {"$ref": f"#/components/schemas/{name}"}
    if origin is Literal:
        return {"enum": list(inner)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [code.value for code in kind]}
    if origin is tuple and inner[-1] is not ...:
        parts = [_schema(part, found) for part in inner]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    if origin is tuple:
        return {"type": "array", "items": _schema(inner[0], found)}
    if origin is types.UnionType:
        [some] = [part for part in inner if part is not types.NoneType]
        return {"anyOf": [_schema(some, found), {"type": "null"}]}
    if origin is not None:
        return {"type": "object", "additionalProperties": _schema(inner[1], found)}
    if kind is float:
        return {"anyOf": [{"type": "number"}, {"enum": list(_SPECIAL)}]}
    return {"type": {str: "string", int: "integer", bool: "boolean"}[kind]}


def _object_schema(kind: type, found: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    properties, needed = {}, []
    for entry in fields(kind):
        if not entry.init:
            continue
        properties[entry.name] = _schema(hints[entry.name], found)
        if entry.default is not MISSING:
            properties[entry.name]["default"] = _plain(entry.default)
        elif entry.default_factory is MISSING:
            needed.append(entry.name)
    about = " ".join((kind.__doc__ or "").split())
    return {"type": "object", "description": about, "properties": properties, "required": needed}
