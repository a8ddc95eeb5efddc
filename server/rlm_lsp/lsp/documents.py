"""The open documents, cells of notebooks among them, and what they consist of: units, what each reads, and where it is.

Analysis runs on one thread of its own (the analyser is not thread-safe) and sees the text of every open document, so
that a callee counts as it stands in the editor. An analysis holds until any document changes.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec, TextDocument
from rlm_core.queries.analysis import AnalysedUnit, Analyser, DefaultSizes
from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES
from rlm_core.types import CodeText

from .notebooks import Notebooks
from .text_positions import Lines

_LANGUAGE_IDS = {name: name for name in languages.LANGUAGES} | {
    "javascriptreact": "javascript",
    "typescriptreact": "typescript",
}


@dataclass(frozen=True, slots=True)
class Document:
    """A version of an open document; ``path`` is None outside the file system, ``language`` if we do not read it."""

    uri: str
    path: Path | None
    language: str | None
    version: int
    source: bytes
    parsed: ParsedSource = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed", ParsedSource(self.source, self.language or ""))


@dataclass(frozen=True, slots=True)
class Placed:
    """A unit and where the client shows things about it."""

    analysed: AnalysedUnit
    hint: types.Position
    header_lines: range


@dataclass(frozen=True, slots=True)
class Analysis:
    """The units of one version of a document, in the order in which they start."""

    document: Document
    units: tuple[Placed, ...]

    def codes(self) -> set[CodeText]:
        """What the model reads about the units."""
        return {unit.analysed.code for unit in self.units}


class Documents:
    """The documents that the client has open; lives on the event loop."""

    def __init__(self, default_sizes: DefaultSizes | None = None) -> None:
        self._open: dict[str, Document] = {}
        self._texts: dict[Path, bytes] = {}
        self._generation = 0
        self._analyser = Analyser(self._texts.get, default_sizes)
        self.notebooks = Notebooks()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-analysis")
        self._analyses: dict[str, tuple[int, asyncio.Future[Analysis]]] = {}

    def put(self, text_document: TextDocument) -> Document:
        """Take over a document as it is now in the editor."""
        # A cell is no file, whatever its URI looks like.
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
            self._texts[path] = document.source
        self._generation += 1
        return document

    def remove(self, uri: str) -> None:
        """The client has closed a document: from now on its file counts."""
        document = self._open.pop(uri, None)
        if document is not None and document.path is not None:
            self._texts.pop(document.path, None)
        self._analyses.pop(uri, None)
        self._generation += 1

    def files_changed(self) -> None:
        """Files have changed on disk."""
        self._generation += 1

    def document(self, uri: str) -> Document | None:
        """A document as it is now in the editor; None when it is closed."""
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
        """The units of a document as it is when this returns; None when it is closed, too large or not ours to read."""
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
            # Several requests share one analysis: one that is cancelled must not take it from the others.
            found = await asyncio.shield(known[1])
            if self._generation == generation:
                return found

    async def dependents_changed(self, uri: str | None, codec: PositionCodec) -> bool:
        """Whether a change, in the document ``uri`` or on disk, has changed what the model reads about another one."""
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
        """The cells of a cell's notebook; nothing for another document."""
        if self.notebooks.of(uri) is None:
            return {}
        return {cell: self._open[cell].source for cell in self.notebooks.around(uri) if cell in self._open}

    def _analyse(self, document: Document, cells: dict[str, bytes], codec: PositionCodec) -> Analysis:
        assert document.language is not None, "only documents in a known language are analysed"
        lines = Lines(document.source, codec)
        if document.uri in cells and document.language == "python":
            found = self._analyser.analyse_cells(list(cells.values()))[list(cells).index(document.uri)]
        else:
            found = self._analyser.analyse(document.parsed, document.path, document.uri)
        return Analysis(document, tuple(place(analysed, lines) for analysed in found))

    def close(self) -> None:
        """Drop what waits for analysis."""
        self._worker.shutdown(wait=False, cancel_futures=True)


def place(analysed: AnalysedUnit, lines: Lines) -> Placed:
    """Where a unit of a text stands: its hint behind the signature, or behind the first line of a program."""
    unit = analysed.unit
    hint = lines.end_of_line(unit.name.start_byte) if unit.kind == "program" else unit.header.end_byte
    first, last = lines.line_of(unit.name.start_byte), lines.line_of(unit.header.end_byte)
    return Placed(analysed, lines.position(hint), range(first, max(first, last) + 1))


def _language(language_id: str | None, path: Path | None) -> str | None:
    known = _LANGUAGE_IDS.get(language_id or "")
    if known is None and path is not None:
        by_suffix = languages.by_path(path)
        known = by_suffix.name if by_suffix is not None else None
    return known
