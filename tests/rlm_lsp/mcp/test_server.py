"""The MCP server as an agent meets it: its tools and prompt, what it refuses, and how questions and it end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
import rlm_core
from mcp import Client
from rlm_core.measurement.known import KnownMeasurements
from rlm_lsp.mcp.answers import Predictions
from rlm_lsp.mcp.roots import Roots
from rlm_lsp.mcp.server import create_server
from rlm_lsp.mcp.tools import AgentTools

from tests.paths import REPOSITORY

from .clients import FAST, call, connected, printed, refused

pytestmark = pytest.mark.asyncio

TOOLS = {"predict", "compare", "rank", "explain", "check", "measure_command"}


def state_of(folder: Path) -> Mapping[str, tuple[int, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


async def test_every_tool_only_reads_and_has_schemas_for_what_it_takes_and_answers(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.description
        for schema in (tool.input_schema, tool.output_schema):
            assert schema is not None
            jsonschema.Draft202012Validator.check_schema(schema)
        # The roots come from the client, never from the agent.
        assert "roots" not in tool.input_schema["properties"]
        assert all("description" in field for field in tool.input_schema["properties"].values())


async def test_the_skill_for_reviews_is_a_prompt(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        [prompt] = (await client.list_prompts()).prompts
        [message] = (await client.get_prompt(prompt.name)).messages
    assert prompt.name == "review_cost"
    assert message.content.type == "text"
    assert message.content.text == printed(tmp_path, "mcp", "--skill")


class _RecordingTools(AgentTools):
    """Notes how answers end."""

    def __init__(self) -> None:
        super().__init__(rlm_core.load, KnownMeasurements(None))
        self.ends: list[str] = []

    def predict(self, *arguments: Any) -> tuple[list[str], Predictions]:
        end = "given up"
        try:
            answer = super().predict(*arguments)
            end = "answered"
        finally:
            self.ends.append(end)
        return answer


async def test_a_question_that_the_client_gives_up_ends(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"a{number}.py").write_text(FAST)
    tools = _RecordingTools()
    async with Client(create_server(tools, Roots.of_folders([tmp_path]))) as client:
        with anyio.CancelScope() as scope:

            async def report(progress: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("predict", {"path": "."}, progress_callback=report)
        await call(client, "predict", path="a0.py")
    assert tools.ends == ["given up", "answered"]


async def test_the_command_that_measures_is_returned_and_nothing_is_run_or_written(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "a.py").write_text(FAST)
    (tmp_path / "b.py").write_text(FAST)
    before = state_of(tmp_path)
    async with connected(tmp_path) as client:
        text, answer = await call(client, "measure_command", path="package/a.py")
        assert (await refused(client, "measure_command", path="b.py")).endswith("can be written in a command")
        assert (await refused(client, "measure_command", path=".")).endswith("; name one in it: package")
        assert (await call(client, "measure_command", path="package"))[1] == answer
        for tool in ("predict", "check"):
            await call(client, tool, path=".")
    assert answer["command"] == f"cd {tmp_path} && rlm-lsp measure tests --package package"
    assert answer["command"] in text
    assert state_of(tmp_path) == before
    async with connected(tmp_path, RLM_LSP_MEASURE="false") as client:
        assert "switches measurements off" in await refused(client, "measure_command", path="package/a.py")


async def test_bad_questions_get_one_line(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert await refused(client, "predict") == "give either path or text"
        assert "predict has no argument 'file'; it takes path, text, " in await refused(client, "predict", file="a.py")
        assert await refused(client, "measure_command") == "measure_command: path: field required"
        assert (await refused(client, "check", limit=0)).startswith("check: limit: input should be greater than")
        assert "give either before and after, or path" in await refused(client, "compare", before=FAST)
        assert "unknown language 'klingon'" in await refused(client, "predict", text=FAST, language="klingon")
        assert "nothing to predict" in await refused(client, "predict", text="x = 1\n")
        assert "is empty" in await refused(client, "predict", text=" ")
        assert "over the limit" in await refused(client, "predict", text="x" * (2**21 + 1))
        two = "def g(n):\n    return n\n\n\ndef h(n):\n    return n\n"
        assert "no unit is on both sides: f before, g, h after" in await refused(
            client, "compare", before=FAST, after=two
        )


async def test_the_server_ends_when_its_client_leaves(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rlm_lsp", "mcp"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


async def test_without_the_extra_one_line_says_what_to_install() -> None:
    program = "import sys; sys.modules['mcp'] = None; sys.argv[1:] = ['mcp']; from rlm_lsp.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode == 2
    assert done.stderr == "rlm-lsp: error: mcp is not installed; run: pip install '.[mcp]'\n"
