"""The open documents, including cells of notebooks, and the units of their current versions.

Input: texts, kept equal to the client's by edits of ranges. Output: an :class:`Analysis` per document version: each
unit, what the model reads of it, and where the client shows things about it. Analysis reads the text of every open
document, so that a callee counts as it is in the editor; an analysis of Python holds until any document changes. Short
Python files have a thread, and all others have another one, so that a long one does not delay what is typed in a short
one; a short one that took long joins the others. Each thread has its analyser, which is not thread-safe.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pygls.workspace import PositionCodec, TextDocument
from rlm_core.errors import AnalysisError, TooComplexError
from rlm_core.queries.analysis import AnalysedUnit, Analyser, OutdatedError, UrgentLines
from rlm_core.queries.file_sizes import DefaultSizes, SizeRulesOf
from rlm_core.queries.measured_lookup import MeasuredUnits
from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES

from rlm_lsp.sources import path_of_uri

from .document import Analysis, Document, located
from .notebooks import Notebooks
from .urgent_lines import LinesOnScreen

_LANGUAGE_IDS = {name: name for name in languages.LANGUAGES} | {
    "javascriptreact": "javascript",
    "typescriptreact": "typescript",
}

_QUICK_BYTES = 16_000  # larger Python files use the slow thread; functions that call each other take long
_QUICK_SECONDS = 0.5  # of processor time
_MOST_ROUNDS = 2  # analyses of a document while others are edited; then the last one is the answer

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Analyses:
    """The analyses of a document while all documents stay as they are; ``generation`` numbers those times.

    ``lines`` are those that the provisional one answers first.
    """

    generation: int
    lines: range | None = None
    provisional: asyncio.Future[Analysis | None] | None = None
    settled: asyncio.Future[Analysis | None] | None = None
    urgent: LinesOnScreen = field(default_factory=LinesOnScreen)

    @property
    def shown(self) -> Analysis | None:
        """The first result, which hints were made from; None while there is none."""
        for future in (self.provisional, self.settled):
            if future is None or not future.done() or future.cancelled() or future.exception() is not None:
                continue
            if (analysis := future.result()) is not None:
                return analysis
        return None


class _Lane:
    """An analyser, and the one thread that uses it."""

    def __init__(self, name: str, analyser: Analyser) -> None:
        self.analyser = analyser
        self.worker = ThreadPoolExecutor(1, thread_name_prefix=f"rlm-analysis-{name}")


class Documents:
    """The documents that the client has open; lives on the event loop."""

    def __init__(
        self,
        default_sizes: DefaultSizes | None = None,
        measured: MeasuredUnits | None = None,
        size_rules: SizeRulesOf | None = None,
    ) -> None:
        self._open: dict[str, Document] = {}
        self._parsed: dict[Path, ParsedSource] = {}
        self._generation = self._invalidated = 0
        self._put_at: dict[str, int] = {}
        self._took_long: set[str] = set()
        self._analysed: set[str] = set()  # of which a version was
        self.notebooks = Notebooks()
        self._quick = _Lane("quick", Analyser(self._parsed.get, default_sizes, measured, size_rules, call_sizes=True))
        self._slow = _Lane("slow", Analyser(self._parsed.get, default_sizes, measured, size_rules, call_sizes=True))
        self._analyses: dict[str, _Analyses] = {}

    def put(self, text_document: TextDocument) -> Document:
        """Take over the current version of a document."""
        # A cell is not a file, whatever its URI looks like.
        path = path_of_uri(text_document.uri) if self.notebooks.of(text_document.uri) is None else None
        path = path.resolve() if path is not None else None
        document = Document(
            text_document.uri,
            path,
            _language(text_document.language_id, path),
            text_document.version or 0,
            text_document.source.encode("utf-8", errors="replace"),
        )
        self._open[document.uri] = document
        self.resume(document.uri)
        if path is not None:
            self._parsed[path] = document.parsed
        self._generation += 1
        self._put_at[document.uri] = self._generation
        return document

    def remove(self, uri: str) -> None:
        """The client has closed a document: its file counts again."""
        document = self._open.pop(uri, None)
        if document is not None and document.path is not None:
            self._parsed.pop(document.path, None)
        self.resume(uri)
        self._analyses.pop(uri, None)
        self._put_at.pop(uri, None)
        self._took_long.discard(uri)
        self._analysed.discard(uri)
        self._generation += 1
        for lane in (self._quick, self._slow):
            lane.worker.submit(self._forget, uri, lane.analyser)

    def _forget(self, uri: str, analyser: Analyser) -> None:
        """Keep nothing of a closed document, unless it is open again by now; runs on the analyser's thread."""
        if uri not in self._open:
            analyser.forget(uri)

    def invalidate(self) -> None:
        """Files on disk or settings have changed: no analysis holds any more."""
        self._generation += 1
        self._invalidated = self._generation
        for lane in (self._quick, self._slow):
            # On its thread: an analysis may be running.
            lane.worker.submit(lane.analyser.refresh)

    def resume(self, uri: str) -> None:
        """Analyse the rest of a document: what was on the screen is predicted, or nothing waits for it any more."""
        if (known := self._analyses.get(uri)) is not None:
            known.urgent.resume()

    async def provisional(self, uri: str) -> None:
        """Wait for the provisional analysis of a document that was asked for, if it has not ended."""
        known = self._analyses.get(uri)
        if known is not None and known.provisional is not None:
            await asyncio.wait({known.provisional})

    def document(self, uri: str) -> Document | None:
        """The current version of a document; None when it is closed."""
        return self._open.get(uri)

    @property
    def uris(self) -> tuple[str, ...]:
        """The open documents, in the order in which they were opened."""
        return tuple(self._open)

    def unit_count(self) -> int:
        """The units of all open documents that were analysed."""
        return sum(len(known.shown.units) for known in self._analyses.values() if known.shown is not None)

    def version_of(self, uri: str) -> int | None:
        """The version of an open document."""
        document = self._open.get(uri)
        return document.version if document is not None else None

    async def analysis(
        self, uri: str, codec: PositionCodec, *, provisional: bool = False, lines: range | None = None
    ) -> Analysis | None:
        """The units of a document as it is when this returns; None when it is closed, too large or not supported.

        A ``provisional`` answer may come sooner and not be settled; :meth:`settle` says whether it was right. Of a long
        document that was just opened it may have the units of some ``lines`` alone. While other documents are edited
        all the time, an answer may read them as they were a moment ago; the same applies.
        """
        rounds = 0
        while True:
            document = self._open.get(uri)
            if document is None or document.language is None or len(document.source) > MAX_FILE_BYTES:
                return None
            generation = self._generation_of(document)
            known = self._analyses.get(uri)
            if known is None or known.generation != generation:
                self.resume(uri)
                known = self._analyses[uri] = _Analyses(generation)
            # Several requests share one analysis: a cancelled request must not cancel it for the others.
            started = self._started(known, document, codec, provisional=provisional, lines=lines)
            analysis = await asyncio.shield(started)
            if analysis is None and self._analyses.get(uri) is known:
                del self._analyses[uri]  # given up: the next one is of a newer version, or on the other thread
            rounds += 1
            is_current = self._open.get(uri) is document and (
                self._generation_of(document) == generation or rounds >= _MOST_ROUNDS
            )
            if analysis is not None and is_current and (provisional or analysis.settled):
                return analysis

    def _generation_of(self, document: Document) -> int:
        """The number of the last change that an analysis of a document may depend on: any change, for Python."""
        if document.language == "python":
            return self._generation
        return max(self._invalidated, self._put_at[document.uri])

    def _started(
        self, known: _Analyses, document: Document, codec: PositionCodec, *, provisional: bool, lines: range | None
    ) -> asyncio.Future[Analysis | None]:
        """The analysis that answers soonest."""
        first = known.provisional
        is_first_settled = first is None or (first.done() and known.shown is not None and known.shown.settled)
        is_running = known.settled is None or not known.settled.done()
        if provisional and lines is not None and is_running and self._is_new(document):
            if first is not None and known.lines == lines:
                return first
            return self._started_with(lines, known, document, codec)
        if known.settled is not None and (known.settled.done() or first is None or not provisional):
            return known.settled
        if first is not None and (provisional or is_first_settled or not first.done()):
            return first
        return self._submitted(known, document, codec, provisional=provisional)

    def _is_new(self, document: Document) -> bool:
        """Return whether a document is a long Python file of which no version has been analysed."""
        return (
            document.language == "python"
            and len(document.source) > _QUICK_BYTES
            and document.uri not in self._analysed
            and self.notebooks.of(document.uri) is None
        )

    def _started_with(
        self, lines: range, known: _Analyses, document: Document, codec: PositionCodec
    ) -> asyncio.Future[Analysis | None]:
        """The units of some lines of a new document, or all units if those are known sooner."""
        loop = asyncio.get_running_loop()
        first: asyncio.Future[Analysis | None] = loop.create_future()
        known.provisional, known.lines = first, lines

        def answer(analysis: Analysis | None) -> None:
            if not first.done():
                first.set_result(analysis)

        def answer_from_thread(units: list[AnalysedUnit]) -> None:
            loop.call_soon_threadsafe(answer, located(document, units, codec, settled=False))

        def end(settled: asyncio.Future[Analysis | None]) -> None:
            if first.done():
                return
            if settled.cancelled():
                first.cancel()
            elif (error := settled.exception()) is not None:
                first.set_exception(error)
                first.exception()  # who waits for it gets it; it is not lost if the request was cancelled
            else:
                first.set_result(settled.result())

        known.urgent.ask(lines, answer_from_thread)
        if known.settled is None:
            known.settled = self._submitted(known, document, codec, provisional=False)
        known.settled.add_done_callback(end)
        return first

    def _submitted(
        self, known: _Analyses, document: Document, codec: PositionCodec, *, provisional: bool
    ) -> asyncio.Future[Analysis | None]:
        """An analysis that waits for its thread or runs."""
        cells = self._cells(document.uri)
        size = sum(map(len, cells.values())) if cells else len(document.source)
        is_quick = document.language == "python" and size <= _QUICK_BYTES and document.uri not in self._took_long
        lane = self._quick if is_quick else self._slow
        future = asyncio.get_running_loop().run_in_executor(
            lane.worker, self._analyse, lane, document, cells, codec, provisional, known.urgent
        )
        if provisional:
            known.provisional = future
        else:
            known.settled = future
        return future

    async def settle(self, codec: PositionCodec) -> set[str]:
        """Analyse documents again whose analyses no longer hold; returns those that the model now reads differently.

        Documents that no analysis was asked of since their last edit are left out: they are asked for anyway.
        """
        changed = set()
        for uri, known in list(self._analyses.items()):
            before, document = known.shown, self._open.get(uri)
            # Only Python units read more than their own text.
            if before is None or before.document is not document or before.document.language != "python":
                continue
            if known.generation == self._generation_of(document) and before.settled:
                continue
            after = await self.analysis(uri, codec)
            if after is not None and after.codes() != before.codes():
                changed.add(uri)
        return changed

    def _cells(self, uri: str) -> dict[str, bytes]:
        """The cells of a cell's notebook; empty for other documents."""
        if self.notebooks.of(uri) is None:
            return {}
        return {cell: self._open[cell].source for cell in self.notebooks.around(uri) if cell in self._open}

    def _analyse(
        self,
        lane: _Lane,
        document: Document,
        cells: dict[str, bytes],
        codec: PositionCodec,
        provisional: bool,
        urgent: UrgentLines,
    ) -> Analysis | None:
        """The units of a version of a document.

        None when there is a newer version, for which what was found is kept, and when it is not as quick as its thread
        demands.
        """
        assert document.language is not None, "only documents in a supported language are analysed"

        analyser, start = lane.analyser, time.thread_time()

        def is_outdated() -> bool:
            is_slow = lane is self._quick and time.thread_time() - start > _QUICK_SECONDS
            return is_slow or self._open.get(document.uri) is not document

        if self._open.get(document.uri) is not document:
            return None
        settled = True
        try:
            if document.uri in cells and document.language == "python":
                path = path_of_uri(self.notebooks.of(document.uri) or document.uri)
                notebook = path.resolve() if path is not None else None
                units = analyser.analyse_cells(list(cells.values()), notebook)[list(cells).index(document.uri)]
            else:
                units = analyser.analyse(
                    document.parsed, document.path, document.uri, is_outdated, provisional=provisional, urgent=urgent
                )
                settled = analyser.is_settled(document.uri)
            if document.uri in self._open:
                self._analysed.add(document.uri)
        except OutdatedError:
            return None
        except AnalysisError as error:
            if isinstance(error, TooComplexError):  # the boundary has logged the others
                _log.warning("%s: %s", document.uri, error)
            units = []
        finally:
            if time.thread_time() - start > _QUICK_SECONDS:
                self._took_long.add(document.uri)
        return located(document, units, codec, settled=settled)

    def close(self) -> None:
        """Drop what waits for analysis."""
        for uri in self._analyses:
            self.resume(uri)
        for lane in (self._quick, self._slow):
            lane.worker.shutdown(wait=False, cancel_futures=True)


def _language(language_id: str | None, path: Path | None) -> str | None:
    known = _LANGUAGE_IDS.get(language_id or "")
    if known is None and path is not None:
        by_suffix = languages.by_path(path)
        known = by_suffix.name if by_suffix is not None else None
    return known
