"""Parts that requests share: parameters of the server's own requests (``rlm-lsp/...``), and the need for a model."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from cattrs import Converter
from lsprotocol import converters
from pygls.exceptions import JsonRpcInvalidParams

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
