"""Parameters of the server's own requests: converted, or one clear line about the wrong one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from pygls.exceptions import JsonRpcInvalidParams
from rlm_lsp.lsp.features.overview import OverviewParams
from rlm_lsp.lsp.features.requests import convert, file_path
from rlm_lsp.lsp.features.status import StatusParams

pytestmark = pytest.mark.timeout(30)


class PyglsObject(NamedTuple):
    """pygls makes a named tuple of an object without a type."""

    uri: str
    line: int


@pytest.mark.parametrize(
    "params",
    [
        {"uri": "file:///a.py", "line": 3, "other": 1},
        PyglsObject("file:///a.py", 3),
    ],
)
def test_parameters_are_read_by_name(params: Any) -> None:
    assert convert(params, StatusParams) == StatusParams("file:///a.py", 3)


def test_missing_parameters_have_their_defaults() -> None:
    assert convert(None, StatusParams) == convert({}, StatusParams) == convert({"uri": None}, StatusParams)


@pytest.mark.parametrize(
    ("params", "kind", "message"),
    [
        ({"limit": 0}, OverviewParams, "parameter `limit`: expected `int` >= 1"),
        ({"limit": 1001}, OverviewParams, "parameter `limit`: expected `int` <= 1000"),
        ({"file": 1}, OverviewParams, "parameter `file`: expected `str | null`, got `int`"),
        ([1], StatusParams, "parameters: expected `object`, got `array`"),
    ],
)
def test_a_wrong_parameter_is_one_clear_line(params: Any, kind: type[msgspec.Struct], message: str) -> None:
    with pytest.raises(JsonRpcInvalidParams) as raised:
        convert(params, kind)
    assert str(raised.value) == message


def test_a_file_is_named_by_its_uri() -> None:
    assert file_path(Path("/models/a.onnx").as_uri()) == Path("/models/a.onnx")
    for uri in ("untitled:a", "", "/models/a.onnx"):
        with pytest.raises(JsonRpcInvalidParams, match="must be the URI of a file"):
            file_path(uri)
