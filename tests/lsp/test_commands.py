"""Commands over a real connection."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.warm_server import warm_command

from .recording import recording

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

PLAIN = types.ClientCapabilities()
SHOWING = types.ClientCapabilities(window=types.WindowClientCapabilities(work_done_progress=True))
REFRESHING = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True)
    )
)


def function(lines: int) -> str:
    body = "".join(f"    n = n * {number} + sum(range(n))\n" for number in range(lines))
    return f"def f(n):\n{body}    return n\n"


async def test_the_predictions_of_a_document_are_those_of_the_command_line(examples: Path) -> None:
    path = examples / "functions.py"
    command = [*warm_command(), "predict", str(path), "--format", "json"]
    expected = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    async with recording(PLAIN) as session:
        uri = session.open(path)
        assert await session.command("rlm-lsp.predictFile", {"uri": uri}) == expected
        line = expected[0]["line"] - 1
        copied = await session.command("rlm-lsp.copyJson", {"uri": uri, "position": {"line": line, "character": 0}})
        assert json.loads(copied) == [row for row in expected if row["line"] == line + 1]


async def test_an_explanation_gives_the_effect_of_each_statement(tmp_path: Path) -> None:
    text = "x = '\x0c'\nclass A:\n    def f(self, n):\n        ä = n\n\n        return sorted(range(n * n))\n"
    async with recording(PLAIN) as session:
        uri = session.open(tmp_path / "a.py", text)
        explanation = await session.command("rlm-lsp.explain", uri, {"line": 3, "character": 0})
        assert (explanation["qualname"], explanation["metric"], explanation["skipped"]) == ("A.f", "latency", 0)
        assert [(line["line"], line["endLine"], line["text"]) for line in explanation["lines"]] == [
            (3, 3, "ä = n"),
            (5, 5, "return sorted(range(n * n))"),
        ]
        rows = [row for row in await session.command("rlm-lsp.predictFile", uri) if row["metric"] == "latency"]
        session.change(uri, text.replace("        return sorted(range(n * n))\n", ""))
        [without] = [r for r in await session.command("rlm-lsp.predictFile", uri) if r["metric"] == "latency"]
        assert explanation["lines"][1]["ratio"] == pytest.approx(rows[0]["median"] / without["median"], rel=1e-6)
        assert re.search(r"^\| 6 +\| ", explanation["markdown"], re.MULTILINE)
        memory = await session.command("rlm-lsp.explain", uri, {"line": 2, "character": 0}, "memory")
        assert memory["metric"] == "memory"


async def test_an_explanation_names_waits_and_reads_variants_in_their_file(tmp_path: Path) -> None:
    wait = "    if n:\n        time.sleep(LIMIT)\n"
    text = f'import time\n\nLIMIT = 10\n\ndef f(n):\n    """Doc."""\n    # a comment\n{wait}    return n\n'
    async with recording(PLAIN) as session:
        uri = session.open(tmp_path / "a.py", text)
        explanation = await session.command("rlm-lsp.explain", uri, {"line": 4, "character": 0})
        assert {(wait["kind"], wait["line"]) for wait in explanation["waits"]} == {("time", 8)}
        assert explanation["markdown"].startswith("What the code of `f` says about its latency:\n\n- Line 9 ")
        assert [(line["line"], line["endLine"]) for line in explanation["lines"]] == [(7, 8), (8, 8), (9, 9)]
        rows = [row for row in await session.command("rlm-lsp.predictFile", uri) if row["metric"] == "latency"]
        session.change(uri, text.replace(wait, ""))
        [without] = [r for r in await session.command("rlm-lsp.predictFile", uri) if r["metric"] == "latency"]
        assert explanation["lines"][0]["ratio"] == pytest.approx(rows[0]["median"] / without["median"], rel=1e-6)


async def test_an_explanation_shows_its_progress_and_lets_others_in_between(tmp_path: Path) -> None:
    async with recording(SHOWING) as session:
        uri = session.open(tmp_path / "a.py", f"def g(n):\n    return n\n{function(30)}")
        params = types.ExecuteCommandParams("rlm-lsp.explain", [uri, {"line": 2, "character": 0}])
        explaining = session.client.protocol.send_request_async(types.WORKSPACE_EXECUTE_COMMAND, params)
        task = asyncio.ensure_future(explaining)
        await session.wait(types.PROGRESS, lambda params: "explaining f" in params.value.get("title", ""))
        hover = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(0, 0))
        assert await session.client.text_document_hover_async(hover)
        assert not task.done()
        assert len((await task)["lines"]) == 31
        kinds = [params.value["kind"] for params in session.sent(types.PROGRESS)]
        assert kinds.count("begin") == kinds.count("end") == 2
        assert "report" in kinds


@pytest.mark.parametrize("way", ["request", "progress"])
async def test_an_explanation_can_be_cancelled(tmp_path: Path, way: str) -> None:
    async with recording(SHOWING) as session:
        uri = session.open(tmp_path / "a.py", function(390))
        params = types.ExecuteCommandParams("rlm-lsp.explain", [uri, {"line": 0, "character": 0}])
        future = session.client.protocol.send_request(types.WORKSPACE_EXECUTE_COMMAND, params, msg_id="explaining")
        begin = await session.wait(types.PROGRESS, lambda params: "explaining f" in params.value.get("title", ""))
        if way == "request":
            session.client.cancel_request(types.CancelParams("explaining"))
        else:
            session.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(begin.token))
        # The end is reported as soon as the running step is done.
        await session.wait(types.PROGRESS, lambda params: params.token == begin.token and params.value["kind"] == "end")
        with pytest.raises(JsonRpcException, match=r"cancel"):
            await asyncio.wrap_future(future)
        done = [p.value["message"] for p in session.sent(types.PROGRESS) if p.value["kind"] == "report"]
        assert "392 of 392" not in done


async def test_the_cache_is_cleared_and_the_model_restarted(tmp_path: Path) -> None:
    async with recording(REFRESHING) as session:
        uri = session.open(tmp_path / "a.py", "def f(n): return n\ndef g(n): return n * n\n")
        before = await session.command("rlm-lsp.predictFile", uri)
        assert await session.command("rlm-lsp.clearCache") == 2
        assert await session.command("rlm-lsp.clearCache") == 0
        refreshes = len(session.sent(types.WORKSPACE_INLAY_HINT_REFRESH))
        assert await session.command("rlm-lsp.restartModel") is None
        assert len(session.sent(types.WORKSPACE_INLAY_HINT_REFRESH)) > refreshes
        assert await session.command("rlm-lsp.predictFile", uri) == before


async def test_a_model_that_is_gone_is_explanation(tmp_path: Path) -> None:
    async with recording(PLAIN, options={"model": str(tmp_path / "none")}) as session:
        assert str(tmp_path / "none") in await session.command("rlm-lsp.restartModel")
        with pytest.raises(JsonRpcException, match="no model"):
            await session.command("rlm-lsp.predictFile", session.open(tmp_path / "a.py", "def f(): pass\n"))


async def test_hints_are_hidden_by_file_and_by_language(tmp_path: Path) -> None:
    async with recording(PLAIN) as session:
        uri = session.open(tmp_path / "a.py", "def f(n): return n\n")
        everywhere = types.Range(types.Position(0, 0), types.Position(9, 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), everywhere)
        for place in ({"file": uri}, {"language": "python"}):
            assert await session.client.text_document_inlay_hint_async(params)
            assert await session.command("rlm-lsp.toggleHints", place) is True
            assert not await session.client.text_document_inlay_hint_async(params)
            assert await session.command("rlm-lsp.toggleHints", place) is False


async def test_the_log_is_shown_whatever_the_client_is_sent(tmp_path: Path) -> None:
    async with recording(PLAIN, options={"colour": "red", "logLevel": "error"}) as session:
        # Settings are read after the handshake.
        while "unknown setting `colour`" not in await session.command("rlm-lsp.showLog"):
            await session.handled()
        assert session.sent(types.WINDOW_LOG_MESSAGE) == []


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("rlm-lsp.predictFile", [], "name a document by its URI"),
        ("rlm-lsp.predictFile", ["file:///none.py"], "not open"),
        ("rlm-lsp.explain", ["URI"], "name a position"),
        ("rlm-lsp.explain", ["URI", {"line": 0, "character": 0}, "speed"], "'speed' is not a metric"),
        ("rlm-lsp.copyJson", ["URI", {"line": 9, "character": 0}], "there is no unit at line 10"),
        ("rlm-lsp.toggleHints", [1], "name a file or a language"),
    ],
)
async def test_bad_arguments_are_one_clear_line(
    tmp_path: Path, command: str, arguments: list[object], message: str
) -> None:
    async with recording(PLAIN) as session:
        uri = session.open(tmp_path / "a.py", "def f(n): return n\n")
        with pytest.raises(JsonRpcException, match=message):
            await session.command(command, *[uri if argument == "URI" else argument for argument in arguments])
        assert session.sent(types.WINDOW_SHOW_MESSAGE) == []
