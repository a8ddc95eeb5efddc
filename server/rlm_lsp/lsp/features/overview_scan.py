"""The files of the workspace -> rows of predicted costs, kept by file, so that after an edit few files are read again.

Files are read, analysed and predicted one by one; files that are open count as they are in the editor. A first scan
reads all files. A later one reads those whose text has changed, and once they are saved also the other Python files of
their packages, whose functions may call what has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from rlm_core import RlmError, SourceError
from rlm_core.boundary import absorb
from rlm_core.folders import is_test
from rlm_core.inference.guarded import without_answer
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.file_units import file_units
from rlm_core.queries.package_files import package_of
from rlm_core.source import languages
from rlm_core.source.notebooks import is_notebook, read_cells
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import cell_source, read_source
from rlm_core.types import Basis, MeasuredPrediction, Prediction, WorkFacts, small_answer

from rlm_lsp.history import git
from rlm_lsp.lsp.document import Document
from rlm_lsp.lsp.scheduler import STEP_UNITS
from rlm_lsp.lsp.session import Session
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.hover import measured_note
from rlm_lsp.rendering.json_rows import labelled_fields, work_fields
from rlm_lsp.rendering.size_words import size_notes
from rlm_lsp.sources import find_sources, path_of_uri

from .progress import WorkProgress

_Result = TypeVar("_Result")
# Costs of one group can be compared with each other: a call takes microseconds, a judge's run a tenth of a second.
GROUPS: Mapping[Basis, str] = {
    "call": "calls",
    "program": "judge",
    "kernel": "gpu",
    "module": "gpu",
    "network": "networks",
}


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """One prediction for a unit of the workspace; ``file`` is the path below its workspace folder.

    ``work`` are the facts of the unit, whose text begins in ``first_line``; lines are 0-based. In a notebook lines are
    those of a cell: of the one with the number ``cell`` or, where the notebook is open, of the document ``cell_uri``.
    ``others`` are the answers for a network on other devices, where a list has one row for all of them.
    """

    uri: str
    file: str
    line: int
    character: int
    qualname: str
    prediction: Prediction
    work: WorkFacts | None = None
    first_line: int = 0
    cell: int | None = None
    cell_uri: str | None = None
    others: tuple[Prediction, ...] = ()

    @property
    def group(self) -> str:
        """The group whose costs its own can be compared with."""
        return GROUPS[self.prediction.basis]

    def fields(self) -> dict[str, Any]:
        """The row as JSON, in SI units, with the texts that people read."""
        try:
            return self._fields(self.prediction, self.work)
        except Exception as error:
            absorb(f"what is shown of {self.qualname}", error)
            return self._fields(without_answer(self.prediction, error), None)

    def _fields(self, answer: Prediction, work: WorkFacts | None) -> dict[str, Any]:
        small = small_answer(answer)
        return {
            "uri": self.uri,
            "file": self.file,
            "cell": self.cell,
            "cellUri": self.cell_uri,
            "line": self.line,
            "character": self.character,
            "qualname": self.qualname,
            "group": self.group,
            **labelled_fields(answer),
            **work_fields(work, answer.metric, answer, self.first_line),
            "others": [labelled_fields(other) for other in self.others],
            "waitText": render.wait_label(answer, work),
            "sourceText": "; ".join(
                [*([measured_note(small)] if isinstance(small, MeasuredPrediction) else []), *size_notes(answer)]
            ),
        }


@dataclass(frozen=True, slots=True)
class _OpenFile:
    """A file that the editor has open: one document, or the cells of a notebook with their URIs."""

    uri: str
    documents: tuple[Document, ...]
    is_notebook: bool = False

    @property
    def texts(self) -> list[bytes]:
        """Its text, or those of its cells as they are analysed."""
        if self.is_notebook:
            return [cell_source(document.source).source for document in self.documents]
        return [document.source for document in self.documents]

    @property
    def text(self) -> int:
        """The identity of its text."""
        return _identity(self.texts)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text of a file with its units and the positions of their names; a notebook has one text per cell."""

    source: bytes
    units: Sequence[tuple[AnalysedUnit, types.Position]]
    cell: int | None = None
    cell_uri: str | None = None


@dataclass(frozen=True, slots=True)
class FileRows:
    """The result of reading a file: its rows, or why it could not be read.

    ``text`` identifies its text, and ``stamp`` also the version on disk. ``callers_text`` identifies the text that the
    other files of its package were read with.
    """

    text: int
    stamp: tuple[object, ...]
    callers_text: int
    rows: tuple[OverviewRow, ...] = ()
    units: int = 0
    abstained: int = 0
    failure: str = ""


@dataclass(slots=True)
class Scan:
    """The rows of the workspace by file; not ``complete`` if the user cancelled.

    ``unsaved`` is whether a file has changed without being saved: rows of its callers in other files are those from
    before.
    """

    tests: bool
    files: dict[Path, FileRows] = field(default_factory=dict)
    units: int = 0
    complete: bool = False
    unsaved: bool = False

    def put(self, path: Path, file: FileRows | None) -> None:
        """Replace what is known of a file, or forget a file that is gone."""
        known = self.files.pop(path, None)
        self.units -= known.units if known is not None else 0
        if file is not None:
            self.files[path] = file
            self.units += file.units

    def rows(self) -> Iterator[OverviewRow]:
        """The rows of all files."""
        for file in self.files.values():
            yield from file.rows


class Scanner:
    """Reads the workspace on a separate thread; used on the event loop, by one scan at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-overview")
        self._opened: dict[Path, _OpenFile] = {}
        self._parsed: dict[Path, ParsedSource] = {}
        self._analyser = self._new_analyser()

    def close(self) -> None:
        """Drop what waits for the thread."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def read(self, scan: Scan, shown: WorkProgress, on_file: Callable[[int, int], None]) -> None:
        """Read all files into an empty ``scan``; ``on_file`` gets how many are read, of how many."""
        self._analyser = self._new_analyser()
        roots = await self._start(scan)
        for done, (path, root) in enumerate(roots.items()):
            if shown.cancelled:
                return
            shown.report(done, len(roots))
            await self._add(scan, path, root, shown)
            on_file(done + 1, len(roots))
        scan.complete = not shown.cancelled

    async def update(self, scan: Scan, shown: WorkProgress) -> None:
        """Read the files of ``scan`` that have changed and, once these are saved, the Python files of their packages.

        Raises:
            asyncio.CancelledError: the request was cancelled; the next update goes on.
        """
        roots = await self._start(scan)
        await self._on_worker(self._analyser.refresh)
        removed = [path for path in scan.files if path not in roots]
        for path in removed:
            scan.put(path, None)
        changed = await self._on_worker(partial(self._changed, roots, scan))
        for path in changed:
            before = scan.files.get(path)
            await self._add(scan, path, roots[path], shown, before.callers_text if before is not None else 0)
        displaced = {path for path, file in scan.files.items() if file.text != file.callers_text}
        others = await self._on_worker(partial(self._callers, roots, displaced, removed))
        for done, path in enumerate(others):
            if shown.cancelled:
                return
            shown.report(done, len(others))
            await self._add(scan, path, roots[path], shown)
        scan.unsaved = any(file.text != file.callers_text for file in scan.files.values())

    def text_of(self, uri: str) -> tuple[Path, int] | None:
        """The file of an open document, which may be a cell, and what identifies its current text."""
        documents = self._session.documents
        document, notebook = documents.document(uri), documents.notebooks.of(uri)
        path = _path_of(notebook) if notebook is not None else document.path if document is not None else None
        opened = _opened(self._session).get(path) if path is not None else None
        return (path, opened.text) if path is not None and opened is not None else None

    async def text_on_disk(self, path: Path) -> int | None:
        """Return the identity of the text of a file on disk; None if it cannot be read."""
        return await self._on_worker(partial(_text_on_disk, path))

    async def _start(self, scan: Scan) -> dict[Path, Path | None]:
        """Take over what is open now; the files to read, each with the workspace folder that it is in."""
        store = self._session.settings_store
        folders = [folder for folder in store.by_folder if folder is not None]
        self._opened = _opened(self._session)
        self._parsed.clear()
        self._parsed.update(
            {path: file.documents[0].parsed for path, file in self._opened.items() if not file.is_notebook}
        )
        return {
            path: root
            for path, root in (await self._on_worker(lambda: _files(folders))).items()
            if not store.excludes(path) and (scan.tests or not is_test(store.relative(path)))
        }

    async def _add(
        self, scan: Scan, path: Path, root: Path | None, shown: WorkProgress, callers_text: int | None = None
    ) -> None:
        """Read and predict a file."""
        session, store = self._session, self._session.settings_store
        opened = self._opened.get(path)
        stamp = self._stamp(path)
        try:
            texts = await self._on_worker(partial(self._texts, path, root))
        except RlmError as error:
            scan.put(path, FileRows(0, stamp, 0, failure=str(error)))
            return
        text = _identity(piece.source for piece in texts)
        wanted = store.settings_of(path).languages
        uri, file = opened.uri if opened is not None else path.as_uri(), store.relative(path).as_posix()
        rows: list[OverviewRow] = []
        units = abstained = 0
        for piece in texts:
            kept = [unit for unit in piece.units if unit[0].unit.language in wanted]
            session.predictions.hold(scan.units + units + len(kept))
            units += len(kept)
            for start in range(0, len(kept), STEP_UNITS):
                step = kept[start : start + STEP_UNITS]
                await session.predictions.predict([analysed.code for analysed, _ in step], lambda: shown.cancelled)
                for analysed, at in step:
                    answers = session.known(uri, analysed.code) or ()
                    found = [
                        _row(piece, analysed, at, answer, uri, file) for answer in answers if answer.median is not None
                    ]
                    abstained += not found
                    rows += found
        # Only functions of Python files are called from other files.
        known = callers_text if callers_text is not None and _is_python(path) else text
        scan.put(path, FileRows(text, stamp, known, tuple(rows), units, abstained))

    def _texts(self, path: Path, root: Path | None) -> list[_Text]:
        """The texts of a file, as they are in the editor where it is open."""
        opened = self._opened.get(path)
        if opened is not None and opened.is_notebook:
            found = self._analyser.analyse_cells([document.source for document in opened.documents], path)
            return [
                self._text(source, units, cell_uri=document.uri)
                for source, document, units in zip(opened.texts, opened.documents, found, strict=True)
            ]
        if opened is not None:
            parsed = opened.documents[0].parsed
            return [self._text(parsed.source, self._analyser.analyse(parsed, path))]
        try:
            if path.stat().st_size == 0:
                return []
        except OSError as error:
            raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
        return [
            self._text(text.parsed.source, text.units, text.cell) for text in file_units(self._analyser, path, root)
        ]

    def _text(
        self, source: bytes, units: Sequence[AnalysedUnit], cell: int | None = None, cell_uri: str | None = None
    ) -> _Text:
        lines = Lines(source, self._session.client.workspace.position_codec)
        at = [(analysed, lines.position(analysed.unit.name.start_byte)) for analysed in units]
        return _Text(source, at, cell, cell_uri)

    def _changed(self, roots: Mapping[Path, Path | None], scan: Scan) -> list[Path]:
        return [path for path in roots if path not in scan.files or scan.files[path].stamp != self._stamp(path)]

    def _callers(self, roots: Mapping[Path, Path | None], displaced: Set[Path], removed: Sequence[Path]) -> list[Path]:
        """The files whose functions may call what has changed or is gone, where that is saved.

        The changed files come last: where reading is stopped, they still count as changed.
        """
        saved = [path for path in displaced if self._is_saved(path)]
        packages = {package_of(path)[0] for path in (*saved, *removed) if _is_python(path)}
        found = [path for path in roots if packages and _is_python(path) and package_of(path)[0] in packages]
        return sorted(found, key=lambda path: path in displaced)

    def _stamp(self, path: Path) -> tuple[object, ...]:
        opened = self._opened.get(path)
        disk: tuple[int, int] | None = None
        with suppress(OSError):
            status = path.stat()
            disk = status.st_mtime_ns, status.st_size
        return (opened.text if opened is not None else None), disk

    def _is_saved(self, path: Path) -> bool:
        """Return whether the text of a file in the editor is that on disk."""
        opened = self._opened.get(path)
        return opened is None or opened.text == _text_on_disk(path)

    def _new_analyser(self) -> Analyser:
        session = self._session
        store, measured = session.settings_store, session.measurements
        default_sizes = lambda path: store.settings_of(path).default_sizes  # noqa: E731
        return Analyser(self._parsed.get, default_sizes, measured, session.size_rules, call_sizes=True)

    async def _on_worker(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)


def _text_on_disk(path: Path) -> int | None:
    with suppress(SourceError):
        if is_notebook(path):
            return _identity(cell_source(cell.source).source for cell in read_cells(path))
        return _identity([read_source(path).source])
    return None


def _identity(texts: Iterable[bytes]) -> int:
    return hash(tuple(texts))


def _row(
    text: _Text, analysed: AnalysedUnit, at: types.Position, answer: Prediction, uri: str, file: str
) -> OverviewRow:
    unit, work = analysed.unit, analysed.code.work
    place = uri, file, at.line, at.character, unit.qualname
    return OverviewRow(*place, answer, work, unit.span.start_line, text.cell, text.cell_uri)


def _opened(session: Session) -> dict[Path, _OpenFile]:
    """The files that the editor has open."""
    documents = [session.documents.document(uri) for uri in session.documents.uris]
    files = {
        document.path: _OpenFile(document.uri, (document,))
        for document in documents
        if document is not None and document.path is not None and document.language is not None
    }
    for notebook, uris in session.documents.notebooks.cells.items():
        path = _path_of(notebook)
        cells = [document for uri in uris if (document := session.documents.document(uri)) is not None]
        if path is not None:
            files[path] = _OpenFile(notebook, tuple(cells), is_notebook=True)
    return files


def _path_of(notebook: str) -> Path | None:
    path = path_of_uri(notebook)
    return path.resolve() if path is not None else None


def _is_python(path: Path) -> bool:
    language = languages.by_path(path)
    return language is not None and language.name == "python"


def _files(folders: Sequence[Path]) -> dict[Path, Path | None]:
    """The files below workspace folders with the folders they are in, without what git ignores."""
    roots: dict[Path, Path | None] = {}
    for source in find_sources(folders, lambda error: None, notebooks=True):
        roots.setdefault(source.path, source.root)
    ignored: set[Path] = set()
    for repository, group in git.by_repository(roots).items():
        try:
            ignored |= git.ignored(repository, group) if repository is not None else set()
        except git.GitError:
            continue  # without git nothing is ignored
    return {path: root for path, root in roots.items() if path not in ignored}
