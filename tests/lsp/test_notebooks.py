"""Notebooks over a real connection: hints per cell, callees across cells, edits, cells that come, move and go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from lsprotocol import types

from .conftest import Session, Start
from .recording import Recording, recording

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

HELPER = "def helper(n):\n    return [sorted(range(n), key=lambda x: -x) for _ in range(n)]\n"
CALLER = "%time x = 1\nlimit = 3\ndef caller(n):\n    return helper(n)\n"
CELL = "vscode-notebook-cell"


class Notebook:
    """An open notebook on the client's side."""

    def __init__(self, session: Session | Recording, path: Path, cells: Sequence[str]) -> None:
        self.client, self.uri, self.version = session.client, path.as_uri(), 1
        self.texts = [self._item(number, text) for number, text in enumerate(cells)]
        document = types.NotebookDocument(self.uri, "jupyter-notebook", 1, [self._cell(item) for item in self.texts])
        self.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(document, self.texts))

    def _item(self, number: int, text: str) -> types.TextDocumentItem:
        return types.TextDocumentItem(f"{self.uri.replace('file', CELL, 1)}#W{number}%3D", "python", 1, text)

    @staticmethod
    def _cell(item: types.TextDocumentItem) -> types.NotebookCell:
        return types.NotebookCell(types.NotebookCellKind.Code, item.uri)

    def _changed(self, cells: types.NotebookDocumentCellChanges) -> None:
        self.version += 1
        document = types.VersionedNotebookDocumentIdentifier(self.version, self.uri)
        change = types.NotebookDocumentChangeEvent(cells=cells)
        self.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(document, change))

    def edit(self, number: int, text: str) -> None:
        """Replace the text of a cell."""
        item = self.texts[number]
        item.version += 1
        document = types.VersionedTextDocumentIdentifier(item.version, item.uri)
        content = types.NotebookDocumentCellContentChanges(
            document, [types.TextDocumentContentChangeWholeDocument(text)]
        )
        self._changed(types.NotebookDocumentCellChanges(text_content=[content]))

    def remove(self, number: int) -> None:
        """Take a cell out."""
        item = self.texts[number]
        array = types.NotebookCellArrayChange(number, 1)
        closed = [types.TextDocumentIdentifier(item.uri)]
        structure = types.NotebookDocumentCellChangeStructure(array, did_close=closed)
        self._changed(types.NotebookDocumentCellChanges(structure=structure))

    def add(self, place: int, text: str) -> str:
        """Put in a cell; its URI."""
        item = self._item(len(self.texts), text)
        self.texts.append(item)
        array = types.NotebookCellArrayChange(place, 0, [self._cell(item)])
        structure = types.NotebookDocumentCellChangeStructure(array, did_open=[item])
        self._changed(types.NotebookDocumentCellChanges(structure=structure))
        return item.uri

    def close(self) -> None:
        """Close it."""
        cells = [types.TextDocumentIdentifier(item.uri) for item in self.texts]
        identifier = types.NotebookDocumentIdentifier(self.uri)
        self.client.notebook_document_did_close(types.DidCloseNotebookDocumentParams(identifier, cells))


async def test_a_cell_has_the_hints_of_a_file_with_all_cells(start: Start, tmp_path: Path) -> None:
    session = await start(editor="vscode")
    notebook = Notebook(session, tmp_path / "a.ipynb", [HELPER, CALLER])
    uri = session.open(tmp_path / "b.py", HELPER + CALLER.replace("%", "#", 1))
    whole = await session.labels(uri, 2)
    assert await session.labels(notebook.texts[0].uri, 1) == {0: whole[0]}
    assert await session.labels(notebook.texts[1].uri, 1) == {2: whole[4]}
    hover = await session.hover(notebook.texts[1].uri, 2, 5)
    assert hover is not None
    assert "caller" in hover


async def test_the_lengths_of_waits_and_the_sizes_of_the_settings_hold_in_cells(start: Start, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.rlm-lsp.waits]\nnetwork = "0.5 s"\n[tool.rlm-lsp.sizes."*.ipynb"]\nrows = 5000\n'
    )
    cell = "import requests\ndef load(url):\n    return requests.get(url)\ndef total(rows):\n    return sum(rows)\n"
    session = await start(editor="vscode", folder=tmp_path)
    notebook = Notebook(session, tmp_path / "a.ipynb", [cell])
    labels = await session.labels(notebook.texts[0].uri, 2)
    assert "500 ms" in labels[1]
    assert "rows=5k" in (await session.hover(notebook.texts[0].uri, 3, 5) or "")


async def until(session: Session, uri: str, label: str) -> None:
    """Wait until the only hint of a cell is this one."""
    while list((await session.labels(uri, 1)).values()) != [label]:
        await session.refreshes.get()


async def test_callees_of_a_cell_count_in_their_current_text(start: Start, tmp_path: Path) -> None:
    session = await start(editor="vscode")
    notebook = Notebook(session, tmp_path / "a.ipynb", [HELPER, CALLER])
    caller = notebook.texts[1].uri
    [first] = (await session.labels(caller, 1)).values()
    alone = Notebook(session, tmp_path / "b.ipynb", [CALLER])
    [without] = (await session.labels(alone.texts[0].uri, 1)).values()
    assert without != first
    notebook.edit(0, "x = 1")
    await until(session, caller, without)
    added = notebook.add(0, HELPER)
    await until(session, caller, first)
    assert list(await session.labels(added, 1)) == [0]
    notebook.remove(0)
    await until(session, caller, without)


async def test_a_budget_in_a_cell_is_held_and_a_closed_notebook_has_no_findings(tmp_path: Path) -> None:
    pushed = types.PublishDiagnosticsClientCapabilities(related_information=True)
    synchronization = types.NotebookDocumentSyncClientCapabilities()
    capabilities = types.ClientCapabilities(
        notebook_document=types.NotebookDocumentClientCapabilities(synchronization),
        text_document=types.TextDocumentClientCapabilities(publish_diagnostics=pushed),
    )
    async with recording(capabilities, tmp_path) as session:
        notebook = Notebook(session, tmp_path / "a.ipynb", [f"# rlm: memory < 1 B\n{HELPER}"])
        uri = notebook.texts[0].uri
        assert [found.code for found in await session.published(uri, 1)] == ["over-budget"]
        notebook.close()

        def is_empty(params: types.PublishDiagnosticsParams) -> bool:
            return params.uri == uri and not params.diagnostics

        await asyncio.wait_for(session.wait(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, is_empty), 30)
        params = types.InlayHintParams(
            types.TextDocumentIdentifier(uri), types.Range(types.Position(0, 0), types.Position(9, 0))
        )
        assert not await session.client.text_document_inlay_hint_async(params)
