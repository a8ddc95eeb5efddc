"""Code actions over a real connection: what they write is read back by the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from .recording import Recording, recording

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

TEXT = "class A:\n    def ä(self, n):\n        return sorted(range(n))\n"
OVER = "# rlm: memory < 1 B\ndef f(n):\n    return [sorted(range(n), key=lambda x: -x) for _ in range(n * n)]\n"


def client(*, literals: bool = True, versions: bool = False) -> types.ClientCapabilities:
    kinds = types.ClientCodeActionKindOptions([types.CodeActionKind.QuickFix])
    support = types.ClientCodeActionLiteralOptions(kinds) if literals else None
    return types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=versions)
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
        budget, ignore, copy, explain = await actions(session, uri, 1)
        assert (budget.kind, ignore.kind) == (
            types.CodeActionKind.RefactorRewrite,
            types.CodeActionKind.RefactorRewrite,
        )
        assert copy.arguments == explain.arguments == (uri, {"line": 1, "character": 0})
        [edit] = budget.edit.changes[uri]
        assert edit.range == types.Range(types.Position(1, 0), types.Position(1, 0))
        assert edit.new_text == f"    # rlm: {budget.title.removeprefix('Set budget: ')}\n"
        high = {row["metric"]: row["high"] for row in json.loads(await session.command(copy.command, *copy.arguments))}
        assert set(high) == {"latency", "memory"}
        session.change(uri, types.TextDocumentContentChangePartial(edit.range, edit.new_text))
        assert (await session.pull(uri)).items == ()
        # What is written already is not offered again.
        assert next(action.title for action in await actions(session, uri, 2)) == ignore.title
        assert await actions(session, uri, 0) == []


async def test_a_finding_is_fixed_by_a_versioned_edit(tmp_path: Path) -> None:
    async with recording(client(versions=True), tmp_path) as session:
        uri = session.open(tmp_path / "a.py", OVER)
        found = list((await session.pull(uri)).items)
        assert len(found) == 1
        budget, ignore = await actions(session, uri, 1, 4, diagnostics=found, only=["quickfix"])
        assert budget.kind == ignore.kind == types.CodeActionKind.QuickFix
        assert budget.diagnostics == ignore.diagnostics == tuple(found)
        [change] = budget.edit.document_changes
        assert (change.text_document.uri, change.text_document.version) == (uri, 1)
        replaced, added = change.edits
        assert replaced.new_text.startswith("memory < ")
        assert added.new_text.startswith("# rlm: latency < ")
        assert await actions(session, uri, 1, 4, diagnostics=found, only=["refactor"]) == []


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
