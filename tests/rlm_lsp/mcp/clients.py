"""A client of the MCP server, which is a real process over stdio: the SDK's own, driven as an agent does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ListRootsResult, Root

from tests.warm_server import warm_command

SLOW = "def f(values):\n    return [v for i, v in enumerate(values) if v not in values[:i]]\n"
FAST = "def f(values):\n    return list(dict.fromkeys(values))\n"
Mode = Literal["legacy", "auto"]
BOTH_ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


@asynccontextmanager
async def connected(
    folder: Path,
    roots: Sequence[Path] | None = None,
    mode: Mode = "auto",
    options: Sequence[str] = (),
    **variables: str,
) -> AsyncIterator[Client]:
    """A client of a server whose working directory is ``folder``; with ``roots``, the client has these, as they are."""

    async def listed(context: object) -> ListRootsResult:
        assert roots is not None
        return ListRootsResult(roots=[Root.model_validate({"uri": path.as_uri()}) for path in roots])

    program, arguments = warm_command()[0], [*warm_command()[1:], "mcp", "--no-measured", *options]
    server = StdioServerParameters(command=program, args=arguments, cwd=folder, env={**os.environ, **variables})
    async with Client(server, mode=mode, list_roots_callback=listed if roots is not None else None) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The text and the structured answer of a tool that must succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    return text_of(result), cast(dict[str, Any], result.structured_content)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The one line of a tool that must refuse."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    [line] = text_of(result).splitlines()
    return line


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert content.type == "text"
    return content.text


def printed(folder: Path, *command: str) -> str:
    """What ``rlm-lsp`` prints in a folder."""
    return subprocess.run([*warm_command(), *command], cwd=folder, capture_output=True, text=True, check=False).stdout
