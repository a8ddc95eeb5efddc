"""Code actions over a real connection: what they write is read back by the server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from .recording import Recording, recording

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

TEXT = "class A:\n    def ä(self, n):\n        return sorted(range(n))\n"
OVER = """\
# rlm: latency < 1 ms
def total(values):
    result = 0
    for index in range(1_000_000):
        result += index * 3
    return result
"""


def client(
    *, literals: bool = True, versions: bool = False, shows: bool = False, creates: bool = False
) -> types.ClientCapabilities:
    kinds = types.ClientCodeActionKindOptions([types.CodeActionKind.QuickFix])
    support = types.ClientCodeActionLiteralOptions(kinds) if literals else None
    return types.ClientCapabilities(
        window=types.WindowClientCapabilities(show_document=types.ShowDocumentClientCapabilities(shows)),
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(
                document_changes=versions,
                resource_operations=[types.ResourceOperationKind.Create] if creates else None,
            )
        ),
        text_document=types.TextDocumentClientCapabilities(
            diagnostic=types.DiagnosticClientCapabilities(),
            code_action=types.CodeActionClientCapabilities(code_action_literal_support=support),
        ),
    )


async def actions(session: Recording, uri: str, line: int, character: int = 8, **context: Any) -> list[Any]:
    place = types.Range(types.Position(line, character), types.Position(line, character))
    code_action_context = types.CodeActionContext(**{"diagnostics": [], **context})
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), place, code_action_context)
    return list(await session.client.text_document_code_action_async(params) or [])


async def test_a_budget_from_the_prediction_is_written_and_holds(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", TEXT)
        await session.pull(uri)
        latency, memory, copy, explain = await actions(session, uri, 1)
        assert latency.kind == memory.kind == types.CodeActionKind.RefactorRewrite
        assert copy.arguments == explain.arguments == (uri, {"line": 1, "character": 0})
        [edit] = latency.edit.changes[uri]
        assert edit.range == types.Range(types.Position(1, 0), types.Position(1, 0))
        assert edit.new_text == f"    # rlm: {latency.title.removeprefix('Set budget: ')}\n"
        high = {row["metric"]: row["high"] for row in json.loads(await session.command(copy.command, *copy.arguments))}
        assert set(high) == {"latency", "memory"}
        session.change(uri, types.TextDocumentContentChangePartial(edit.range, edit.new_text))
        assert (await session.pull(uri)).items == ()
        # A metric that has a budget is not offered another.
        assert next(action.title for action in await actions(session, uri, 2)) == memory.title
        assert await actions(session, uri, 0) == []


async def test_a_growth_that_is_said_leads_to_its_line(tmp_path: Path) -> None:
    text = "def f(xs, ys):\n    return [x for x in xs if x in list(ys)]\n\ndef g(x):\n    return x\n"
    for shows in (True, False):
        async with recording(client(shows=shows), tmp_path) as session:
            uri = session.open(tmp_path / "a.py", text)
            await session.pull(uri)
            titles = {action.title: action for action in await actions(session, uri, 0, 4)}
            ways = [title for title in titles if "makes the cost grow" in title]
            assert ways == (["Go to line 2: x in list(ys) makes the cost grow"] if shows else [])
            assert not shows or titles[ways[0]].arguments == (uri, {"line": 1, "character": 0})
            assert not any("grow" in action.title for action in await actions(session, uri, 3, 4))


async def test_rows_that_take_much_of_the_time_are_a_place_to_go_to(tmp_path: Path) -> None:
    text = "def f(df):\n    total = 0\n    for _, row in df.iterrows():\n        total += row.price\n    return total\n"
    async with recording(client(shows=True), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", text)
        await session.pull(uri)
        titles = {action.title: action for action in await actions(session, uri, 0, 4)}
        way = titles["Go to line 3: for _, row in df.iterrows() takes much of the time"]
        assert way.arguments == (uri, {"line": 2, "character": 0})


async def test_a_finding_leads_to_what_costs_and_raising_its_budget_comes_last(tmp_path: Path) -> None:
    async with recording(client(versions=True, shows=True), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", OVER)
        found = list((await session.pull(uri)).items)
        assert len(found) == 1
        first, *_, ignore, raised = await actions(session, uri, 1, 4, diagnostics=found, only=["quickfix"])
        assert first.kind == ignore.kind == raised.kind == types.CodeActionKind.QuickFix
        assert first.diagnostics == ignore.diagnostics == raised.diagnostics == tuple(found)
        assert first.title == "Go to line 4: runs 1,000,000 times"
        assert await session.command(first.command.command, *first.command.arguments)
        assert session.shown == [(uri, types.Position(3, 0))]
        [change] = raised.edit.document_changes
        assert (change.text_document.uri, change.text_document.version) == (uri, 1)
        [edit] = change.edits
        assert edit.range == types.Range(types.Position(0, 7), types.Position(0, len("# rlm: latency < 1 ms")))
        assert re.fullmatch(r"latency < [125]0* (ms|s)", edit.new_text)
        assert raised.title == f"Raise the budget: {edit.new_text}"
        session.change(uri, types.TextDocumentContentChangePartial(edit.range, edit.new_text))
        assert (await session.pull(uri)).items == ()
        assert await actions(session, uri, 1, 4, diagnostics=found, only=["refactor"]) == []


async def test_an_editor_that_shows_no_documents_gets_edits_alone(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", OVER)
        found = list((await session.pull(uri)).items)
        titles = [action.title for action in await actions(session, uri, 1, 4, diagnostics=found, only=["quickfix"])]
        assert titles[0] == "Ignore findings of this unit"
        assert len(titles) == 2


async def test_a_client_of_commands_gets_commands(tmp_path: Path) -> None:
    async with recording(client(literals=False), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", TEXT)
        await session.pull(uri)
        assert [action.command for action in await actions(session, uri, 1)] == ["rlm-lsp.copyJson", "rlm-lsp.explain"]


async def test_actions_are_offered_on_the_name_only(tmp_path: Path) -> None:
    async with recording(client(), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", TEXT)
        await session.pull(uri)
        offered = [bool(await actions(session, uri, 1, character)) for character in range(20)]
        # `    def ä(self, n):` has its name in columns 8 and 9, with the position after it.
        assert [character for character, there in enumerate(offered) if there] == [8, 9]
        assert await actions(session, uri, 2) == []


async def test_a_benchmark_is_written_into_a_new_file_where_the_client_can_create_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    text = "# rlm: sizes items=40\ndef total(items: list[int]) -> int:\n    return sum(items)\n"
    for creates in (False, True):
        async with recording(client(versions=True, creates=creates), tmp_path) as session:
            uri = session.open(tmp_path / "shapes.py", text)
            await session.pull(uri)
            found = [one for one in await actions(session, uri, 1, 4) if one.title.startswith("Benchmark")]
            assert len(found) == creates
    [action] = found
    assert action.title == "Benchmark this function: write tests/test_total_speed.py"
    created, written = action.edit.document_changes
    target = (tmp_path / "tests" / "test_total_speed.py").as_uri()
    assert (created.kind, created.uri, written.text_document.uri) == ("create", target, target)
    [edit] = written.edits
    assert "    items = list(range(40))\n    benchmark(total, items)\n" in edit.new_text
