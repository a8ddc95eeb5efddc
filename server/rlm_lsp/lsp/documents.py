"""The open documents, including cells of notebooks, and the units of their current versions.

Input: texts, kept equal to the client's by edits of ranges. Output: an :class:`Analysis` per document version: each
unit, what the model reads of it, and where the client shows things about it. Analysis runs on one thread (the analyser
is not thread-safe) and reads the text of every open document, so that a callee counts as it is in the editor. An
analysis holds until any document changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec, TextDocument, Workspace
from rlm_core.errors import TooComplexError
from rlm_core.queries.analysis import AnalysedUnit, Analyser, DefaultSizes, MeasuredUnits
from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES
from rlm_core.types import CodeText

from .text_positions import Lines, replace_range

_LANGUAGE_IDS = {name: name for name in languages.LANGUAGES} | {
    "javascriptreact": "javascript",
    "typescriptreact": "typescript",
}

_log = logging.getLogger(__name__)


class SyncedDocument(TextDocument):
    """A text that is edited where the client says; pygls splits lines where the protocol does not."""

    def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        """Replace a range, or the whole text."""
        if isinstance(change, types.TextDocumentContentChangePartial):
            self._source = replace_range(self.source, change.range, change.text, self.position_codec)
        else:
            self._source = change.text


class SyncedWorkspace(Workspace):
    """A workspace of such documents, in place of the one that pygls creates."""

    @classmethod
    def like(cls, workspace: Workspace) -> SyncedWorkspace:
        """A workspace without documents, with the root, the folders and the encoding of another one."""
        folders = list(workspace.folders.values())
        kind = types.TextDocumentSyncKind.Incremental
        return cls(workspace.root_uri, kind, folders, workspace.position_encoding)

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> TextDocument:
        return SyncedDocument(doc_uri, source, version, language_id, position_codec=self.position_codec)


class Notebooks:
    """The open notebooks and the Python cells of each in order; lives on the event loop."""

    def __init__(self) -> None:
        self._cells: dict[str, tuple[str, ...]] = {}
        self._notebooks: dict[str, str] = {}

    def put(self, notebook: str, cells: Sequence[str]) -> list[str]:
        """Set the cells of a notebook; returns the cells that it no longer has."""
        removed = [cell for cell in self._cells.get(notebook, ()) if cell not in cells]
        for cell in removed:
            del self._notebooks[cell]
        self._cells[notebook] = tuple(cells)
        self._notebooks.update(dict.fromkeys(cells, notebook))
        if not cells:
            del self._cells[notebook]
        return removed

    def of(self, cell: str) -> str | None:
        """The notebook of a cell; None for any other document."""
        return self._notebooks.get(cell)

    def around(self, cell: str) -> tuple[str, ...]:
        """All cells of a cell's notebook."""
        return self._cells[self._notebooks[cell]]


@dataclass(frozen=True, slots=True)
class Document:
    """A version of an open document; ``path`` is None outside the file system, ``language`` if it is not supported."""

    uri: str
    path: Path | None
    language: str | None
    version: int
    source: bytes
    parsed: ParsedSource = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed", ParsedSource(self.source, self.language or ""))


@dataclass(frozen=True, slots=True)
class LocatedUnit:
    """A unit, the position of its hint, and the lines of its header."""

    analysed: AnalysedUnit
    hint: types.Position
    header_lines: range


@dataclass(frozen=True, slots=True)
class Analysis:
    """The units of one version of a document, in the order in which they start."""

    document: Document
    units: tuple[LocatedUnit, ...]

    def codes(self) -> set[CodeText]:
        """What the model reads of the units."""
        return {unit.analysed.code for unit in self.units}

    def unit_at(self, line: int) -> LocatedUnit | None:
        """The innermost unit with a 0-based line in its header."""
        return min((unit for unit in self.units if line in unit.header_lines), key=_length, default=None)

    def unit_around(self, line: int) -> LocatedUnit | None:
        """The innermost unit that a 0-based line belongs to."""
        spans = ((unit.analysed.unit.span, unit) for unit in self.units)
        return min(
            (unit for span, unit in spans if span.start_line <= line <= span.end_line), key=_length, default=None
        )


class Documents:
    """The documents that the client has open; lives on the event loop."""

    def __init__(self, default_sizes: DefaultSizes | None = None, measured: MeasuredUnits | None = None) -> None:
        self._open: dict[str, Document] = {}
        self._parsed: dict[Path, ParsedSource] = {}
        self._generation = 0
        self._analyser = Analyser(self._parsed.get, default_sizes, measured)
        self.notebooks = Notebooks()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-analysis")
        self._analyses: dict[str, tuple[int, asyncio.Future[Analysis]]] = {}

    def put(self, text_document: TextDocument) -> Document:
        """Take over the current version of a document."""
        # A cell is not a file, whatever its URI looks like.
        name = to_fs_path(text_document.uri) if self.notebooks.of(text_document.uri) is None else None
        path = Path(name).resolve() if name else None
        document = Document(
            text_document.uri,
            path,
            _language(text_document.language_id, path),
            text_document.version or 0,
            text_document.source.encode("utf-8", errors="replace"),
        )
        self._open[document.uri] = document
        if path is not None:
            self._parsed[path] = document.parsed
        self._generation += 1
        return document

    def remove(self, uri: str) -> None:
        """The client has closed a document: its file counts again."""
        document = self._open.pop(uri, None)
        if document is not None and document.path is not None:
            self._parsed.pop(document.path, None)
        self._analyses.pop(uri, None)
        self._generation += 1

    def invalidate(self) -> None:
        """Files on disk or settings have changed: no analysis holds any more."""
        self._generation += 1
        # On its thread: an analysis may be running.
        self._worker.submit(self._analyser.refresh)

    def document(self, uri: str) -> Document | None:
        """The current version of a document; None when it is closed."""
        return self._open.get(uri)

    @property
    def uris(self) -> tuple[str, ...]:
        """The open documents, in the order in which they were opened."""
        return tuple(self._open)

    def version_of(self, uri: str) -> int | None:
        """The version of an open document."""
        document = self._open.get(uri)
        return document.version if document is not None else None

    async def analysis(self, uri: str, codec: PositionCodec) -> Analysis | None:
        """The units of a document as it is when this returns; None when it is closed, too large or not supported."""
        while True:
            document, generation = self._open.get(uri), self._generation
            if document is None or document.language is None or len(document.source) > MAX_FILE_BYTES:
                return None
            known = self._analyses.get(uri)
            if known is None or known[0] != generation:
                loop = asyncio.get_running_loop()
                cells = self._cells(uri)
                known = generation, loop.run_in_executor(self._worker, self._analyse, document, cells, codec)
                self._analyses[uri] = known
            # Several requests share one analysis: a cancelled request must not cancel it for the others.
            analysis = await asyncio.shield(known[1])
            if self._generation == generation:
                return analysis

    async def dependents_changed(self, uri: str | None, codec: PositionCodec) -> bool:
        """Whether a change, in the document ``uri`` or on disk, has changed what the model reads of another one."""
        for other, (_, future) in list(self._analyses.items()):
            if other == uri or not future.done() or future.cancelled() or future.exception() is not None:
                continue
            before = future.result()
            # Only Python units read more than their own text.
            if before.document.language != "python":
                continue
            after = await self.analysis(other, codec)
            if after is not None and after.codes() != before.codes():
                return True
        return False

    def _cells(self, uri: str) -> dict[str, bytes]:
        """The cells of a cell's notebook; empty for other documents."""
        if self.notebooks.of(uri) is None:
            return {}
        return {cell: self._open[cell].source for cell in self.notebooks.around(uri) if cell in self._open}

    def _analyse(self, document: Document, cells: dict[str, bytes], codec: PositionCodec) -> Analysis:
        assert document.language is not None, "only documents in a supported language are analysed"
        lines = Lines(document.source, codec)
        try:
            if document.uri in cells and document.language == "python":
                units = self._analyser.analyse_cells(list(cells.values()))[list(cells).index(document.uri)]
            else:
                units = self._analyser.analyse(document.parsed, document.path, document.uri)
        except TooComplexError as error:
            _log.warning("%s: %s", document.uri, error)
            units = []
        return Analysis(document, tuple(locate(unit, lines) for unit in units))

    def close(self) -> None:
        """Drop what waits for analysis."""
        self._worker.shutdown(wait=False, cancel_futures=True)


def locate(analysed: AnalysedUnit, lines: Lines) -> LocatedUnit:
    """A unit with its positions: the hint is after the signature, or after the first line of a program."""
    unit = analysed.unit
    hint = lines.end_of_line(unit.name.start_byte) if unit.kind == "program" else unit.header.end_byte
    first, last = lines.line_of(unit.name.start_byte), lines.line_of(unit.header.end_byte)
    return LocatedUnit(analysed, lines.position(hint), range(first, max(first, last) + 1))


def _language(language_id: str | None, path: Path | None) -> str | None:
    known = _LANGUAGE_IDS.get(language_id or "")
    if known is None and path is not None:
        by_suffix = languages.by_path(path)
        known = by_suffix.name if by_suffix is not None else None
    return known


def _length(located: LocatedUnit) -> int:
    span = located.analysed.unit.span
    return span.end_byte - span.start_byte
