"""Parts that requests and commands share: their parameters, the unit that they are about, and the need for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from cattrs import Converter
from lsprotocol import converters, types
from pygls.exceptions import JsonRpcInvalidParams

from rlm_lsp.lsp.document import Analysis, LocatedUnit
from rlm_lsp.lsp.session import Session
from rlm_lsp.sources import path_of_uri

_Parameters = TypeVar("_Parameters", bound=msgspec.Struct)


@cache
def protocol_converter() -> Converter:
    """The converter between types of the protocol and JSON values."""
    # Made on first use: it takes tens of milliseconds at the start of the server.
    return converters.get_converter()


def convert(params: Any, kind: type[_Parameters]) -> _Parameters:
    """Parameters as a struct. pygls makes a named tuple of what it has no type for.

    Raises:
        JsonRpcInvalidParams: they are not an object, or a field has another type than in ``kind``.
    """
    fields = _plain(params)
    try:
        return msgspec.convert(fields if fields is not None else {}, kind)
    except msgspec.ValidationError as error:
        text, _, name = str(error).partition(" - at `$.")
        place = f"parameter `{name}: " if name else "parameters: "
        raise JsonRpcInvalidParams(f"{place}{text[0].lower()}{text[1:]}") from None


def _plain(value: Any) -> Any:
    """The objects in place of named tuples."""
    return {name: _plain(field) for name, field in value._asdict().items()} if hasattr(value, "_asdict") else value


def file_path(uri: str) -> Path:
    """The path of a file or folder that a ``uri`` parameter names.

    Raises:
        JsonRpcInvalidParams: it is not in the file system.
    """
    path = path_of_uri(uri)
    if path is None:
        raise JsonRpcInvalidParams("`uri` must be the URI of a file, such as file:///models/a.onnx")
    return path


async def require_model(session: Session) -> None:
    """Wait until the model has loaded.

    Raises:
        JsonRpcInvalidParams: there is no model.
    """
    await session.predictions.wait_loaded()
    if not session.predictions.ready:
        raise JsonRpcInvalidParams("there is no model; see the log for the reason")


async def analysis_of(session: Session, arguments: Sequence[Any]) -> Analysis:
    """The analysis of the open document that the arguments of a command name first.

    Raises:
        JsonRpcInvalidParams: there is no such document, or no model.
    """
    first = arguments[0] if arguments else None
    uri = first.get("uri") if isinstance(first, Mapping) else first
    if not isinstance(uri, str):
        raise JsonRpcInvalidParams("name a document by its URI")
    await require_model(session)
    analysis = await session.analysis(uri)
    if analysis is None:
        raise JsonRpcInvalidParams(f"{uri}: not open, excluded, or in a language that gets no predictions")
    return analysis


def position_of(arguments: Sequence[Any]) -> types.Position:
    """The position that the arguments of a command name.

    Raises:
        JsonRpcInvalidParams: they name none.
    """
    first = arguments[0] if arguments else None
    position = arguments[1] if len(arguments) > 1 else first.get("position") if isinstance(first, Mapping) else None
    if isinstance(position, types.Position):
        return position
    try:
        return protocol_converter().structure(position, types.Position)
    except Exception:
        raise JsonRpcInvalidParams('name a position, like {"line": 3, "character": 0}') from None


def unit_at(analysis: Analysis, position: types.Position) -> LocatedUnit:
    """The unit whose header is at a position, else the innermost one around it.

    Raises:
        JsonRpcInvalidParams: there is none.
    """
    unit = analysis.unit_at(position.line) or analysis.unit_around(position.line)
    if unit is None:
        raise JsonRpcInvalidParams(f"there is no unit at line {position.line + 1}")
    return unit
