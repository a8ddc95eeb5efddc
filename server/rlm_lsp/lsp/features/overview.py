"""``rlm-lsp/overview``: the units of the workspace by predicted cost, one page at a time.

Files are read, analysed and predicted within a request that shows its progress; the results are kept, so that another
filter or the next page needs no prediction. While files are read, a client that gives a token receives the rows that
are known as partial results. A list that a client pages through does not change until its last page.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from cachetools import LRUCache
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec
from rlm_core import RlmError, SourceError
from rlm_core.boundary import absorb
from rlm_core.inference.guarded import without_answer
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.devices import canonical_device
from rlm_core.source.units import read_source
from rlm_core.types import MeasuredPrediction, Metric, Prediction, WorkFacts

from rlm_lsp.history import git
from rlm_lsp.lsp.documents import Document
from rlm_lsp.lsp.scheduler import STEP_UNITS
from rlm_lsp.lsp.session import Session
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.hover import measured_note
from rlm_lsp.rendering.json_rows import prediction_fields, work_fields
from rlm_lsp.sources import find_sources, is_test, matches

from .progress import WorkProgress, progress
from .requests import convert, require_model

OVERVIEW = "rlm-lsp/overview"
PAGE_ROWS, MAX_PAGE_ROWS = 100, 1000
_MAX_LISTS = 4
_MAX_FAILURES = 20
# Partial results follow each other no faster: a client draws a list in about this time.
PARTIAL_SECONDS = 0.1
DEFAULT_METRIC: Metric = "latency"
_METRICS: tuple[Metric, ...] = get_args(Metric)
_Result = TypeVar("_Result")
_UnitAt = tuple[AnalysedUnit, types.Position]


class OverviewParams(msgspec.Struct):
    """Either the ``cursor`` of the previous page, or the filters of a new list; ``limit`` is the size of a page.

    ``tests`` says whether files of tests are read too.
    """

    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE_ROWS)] | None = None
    cursor: str | None = None
    refresh: bool | None = None
    tests: bool = True
    partialResultToken: str | int | None = None  # noqa: N815
    metric: str | None = None
    file: str | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """One prediction for a unit of the workspace; ``file`` is the path below its workspace folder.

    ``work`` are the facts of the unit, whose text begins in ``first_line``; lines are 0-based.
    """

    uri: str
    file: str
    line: int
    character: int
    qualname: str
    prediction: Prediction
    work: WorkFacts | None = None
    first_line: int = 0

    def fields(self) -> dict[str, Any]:
        """The row as JSON, in SI units, with the texts that people read."""
        try:
            return self._fields(self.prediction, self.work)
        except Exception as error:
            absorb(f"what is shown of {self.qualname}", error)
            return self._fields(without_answer(self.prediction, error), None)

    def _fields(self, answer: Prediction, work: WorkFacts | None) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "file": self.file,
            "line": self.line,
            "character": self.character,
            "qualname": self.qualname,
            **prediction_fields(answer),
            **work_fields(work, answer.metric, answer, self.first_line),
            "waitText": render.wait_label(answer, work),
            "bandText": render.band(answer.metric, answer.band, answer.floor) if answer.band is not None else "",
            "medianText": render.marked_median(answer),
            "sourceText": measured_note(answer) if isinstance(answer, MeasuredPrediction) else "",
        }


@dataclass(slots=True)
class _Scan:
    """The units of the workspace; not ``complete`` if the user cancelled."""

    rows: list[OverviewRow] = field(default_factory=list)
    files: int = 0
    units: int = 0
    abstained: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    complete: bool = False


class _PartialResults:
    """Sends the rows of a request while they are found, if the client has given a token for them."""

    def __init__(self, session: Session, params: OverviewParams) -> None:
        self._session, self._params = session, params
        self._sent = 0
        self._at = -math.inf

    def send(self, rows: Sequence[OverviewRow], done: int, total: int) -> None:
        """Send those of ``rows`` that were not sent yet, once the time has come; so many files are read, of so many."""
        params, now = self._params, asyncio.get_running_loop().time()
        if params.partialResultToken is None or now - self._at < PARTIAL_SECONDS or self._sent == len(rows):
            return
        selected = ordered(rows[self._sent :], params.metric or DEFAULT_METRIC, params.file, params.device)
        self._sent, self._at = len(rows), now
        value = {"rows": [row.fields() for row in selected], "done": done, "total": total}
        self._session.client.protocol.notify(types.PROGRESS, types.ProgressParams(params.partialResultToken, value))


@dataclass(frozen=True, slots=True)
class _FilteredList:
    """The rows that a filter selects, in the order of their pages."""

    rows: tuple[OverviewRow, ...]
    head: Mapping[str, Any]


class Overview:
    """The newest scan of the workspace and the lists made from it; lives on the event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-overview")
        self._turn = asyncio.Lock()
        self._scan: tuple[object, bool, _Scan] | None = None
        self._lists: LRUCache[str, _FilteredList] = LRUCache(_MAX_LISTS)
        self._numbers = count(1)

    async def page(self, params: Any) -> dict[str, Any]:
        """A page of the overview.

        ``cursor`` is from the previous page and asks for the next one. Without it a new list starts: of one ``metric``
        (default: latency), the most expensive unit first, for accuracy the least accurate; of files that match
        ``file``, a glob or a part of the path; of one ``device``; with ``tests`` false, without files of tests.
        ``refresh`` reads the workspace again. A page has ``limit`` rows. Rows that are found while the workspace is
        read are sent to ``partialResultToken`` as ``{"rows": [...], "done": files, "total": files}``, in no particular
        order.
        """
        named = convert(params, OverviewParams)
        limit = named.limit or PAGE_ROWS
        cursor = named.cursor
        if cursor is None:
            _check_metric(named.metric)
            cursor = f"{self._start_list(named, await self._scanned(named))}:0"
        name, _, offset = cursor.partition(":")
        filtered = self._lists.get(name)
        if filtered is None or not offset.isdecimal():
            raise JsonRpcInvalidParams("this cursor has expired; ask again without one")
        end = int(offset) + limit
        rows = [row.fields() for row in filtered.rows[int(offset) : end]]
        return {**filtered.head, "rows": rows, "cursor": f"{name}:{end}" if end < len(filtered.rows) else None}

    def close(self) -> None:
        """Drop what waits for the thread."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _start_list(self, named: OverviewParams, scan: _Scan) -> str:
        rows = ordered(scan.rows, named.metric or DEFAULT_METRIC, named.file, named.device)
        head = {
            "total": len(rows),
            "files": scan.files,
            "units": scan.units,
            "abstained": scan.abstained,
            "failed": len(scan.failed),
            "failures": [{"file": file, "reason": reason} for file, reason in scan.failed[:_MAX_FAILURES]],
            "complete": scan.complete,
            "metrics": list(dict.fromkeys(row.prediction.metric for row in scan.rows)),
            "devices": sorted({row.prediction.device for row in scan.rows if row.prediction.device is not None}),
        }
        name = str(next(self._numbers))
        self._lists[name] = _FilteredList(tuple(rows), head)
        return name

    async def _scanned(self, named: OverviewParams) -> _Scan:
        """The newest scan, or a new one. One request reads the workspace; concurrent requests wait for it."""
        session = self._session
        await require_model(session)
        async with self._turn:
            known, generation = self._scan, session.predictions.generation
            if known is None or named.refresh or known[0] is not generation or known[1] != named.tests:
                scan = _Scan()
                with progress(session, "rlm-lsp: reading the workspace", cancellable=True) as shown:
                    await self._read(scan, named.tests, shown, _PartialResults(session, named))
                known = self._scan = generation, named.tests, scan
            return known[2]

    async def _read(self, scan: _Scan, tests: bool, shown: WorkProgress, partial_results: _PartialResults) -> None:
        session, store = self._session, self._session.settings_store
        folders = [folder for folder in store.by_folder if folder is not None]
        roots = {
            path: root
            for path, root in (await self._on_worker(lambda: _files(folders))).items()
            if not store.excludes(path) and (tests or not is_test(store.relative(path)))
        }
        codec = session.client.workspace.position_codec
        documents = [session.documents.document(uri) for uri in session.documents.uris]
        opened = {document.path: document for document in documents if document is not None and document.path}
        parsed = {path: document.parsed for path, document in opened.items()}
        analyser = Analyser(parsed.get, lambda path: store.settings_of(path).default_sizes, session.measurements)
        for done, (path, root) in enumerate(roots.items()):
            if shown.cancelled:
                return
            shown.report(done, len(roots))
            file = store.relative(path).as_posix()
            document = opened.get(path)
            try:
                units = await self._on_worker(partial(_analyse, analyser, path, root, document, codec))
            except RlmError as error:
                scan.failed.append((file, str(error)))
                continue
            scan.files += 1
            languages = store.settings_of(path).languages
            uri = document.uri if document is not None else path.as_uri()
            kept = [unit for unit in units if unit[0].unit.language in languages]
            await self._predict(scan, uri, file, kept, lambda: shown.cancelled)
            partial_results.send(scan.rows, done + 1, len(roots))
        scan.complete = not shown.cancelled

    async def _predict(
        self, scan: _Scan, uri: str, file: str, units: Sequence[_UnitAt], cancelled: Callable[[], bool]
    ) -> None:
        self._session.predictions.hold(scan.units + len(units))
        for start in range(0, len(units), STEP_UNITS):
            step = units[start : start + STEP_UNITS]
            await self._session.predictions.predict([analysed.code for analysed, _ in step], cancelled)
            for analysed, at in step:
                predictions = self._session.known(uri, analysed.code) or ()
                answered = [answer for answer in predictions if answer.median is not None]
                scan.units += 1
                scan.abstained += not answered
                unit, work = analysed.unit, analysed.code.work
                scan.rows += [
                    OverviewRow(uri, file, at.line, at.character, unit.qualname, answer, work, unit.span.start_line)
                    for answer in answered
                ]

    async def _on_worker(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)


def register(server: LanguageServer, session: Session) -> None:
    """Answer ``rlm-lsp/overview``."""
    overview = Overview(session)
    server.feature(OVERVIEW)(partial(Overview.page, overview))
    session.on_end(overview.close)


def _check_metric(metric: str | None) -> None:
    if metric is not None and metric not in _METRICS:
        raise JsonRpcInvalidParams(f"{metric!r} is not a metric; choose one of {', '.join(_METRICS)}")


def ordered(
    rows: Sequence[OverviewRow], metric: str, file: str | None = None, device: str | None = None
) -> list[OverviewRow]:
    """The rows of a metric, of files that match ``file`` and of a device, the most expensive first."""
    wanted = (canonical_device(device) or device) if device else None
    selected = [
        row
        for row in rows
        if row.prediction.metric == metric
        and (not file or file_matches(file, row.file))
        and (wanted is None or row.prediction.device == wanted)
    ]
    sign = 1 if metric == "accuracy" else -1
    return sorted(selected, key=lambda row: (sign * (row.prediction.median or 0.0), row.file, row.line, row.qualname))


def file_matches(pattern: str, path: str) -> bool:
    """Whether a path matches a glob, or contains any other text, ignoring case."""
    if any(sign in pattern for sign in "*?"):
        return matches(pattern, path)
    return pattern.lower() in path.lower()


def _files(folders: Sequence[Path]) -> dict[Path, Path | None]:
    """The files below workspace folders with the folders they are in, without what git ignores."""
    roots: dict[Path, Path | None] = {}
    for source in find_sources(folders, lambda error: None):
        roots.setdefault(source.path, source.root)
    ignored: set[Path] = set()
    for repository, group in git.by_repository(roots).items():
        try:
            ignored |= git.ignored(repository, group) if repository is not None else set()
        except git.GitError:
            continue  # without git nothing is ignored
    return {path: root for path, root in roots.items() if path not in ignored}


def _analyse(
    analyser: Analyser, path: Path, root: Path | None, document: Document | None, codec: PositionCodec
) -> list[_UnitAt]:
    """The units of a file, as it is in the editor where it is open, and the positions of their names."""
    if document is not None and document.language is not None:
        parsed = document.parsed
    else:
        try:
            if path.stat().st_size == 0:
                return []
        except OSError as error:
            raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
        parsed = read_source(path, root)
    lines = Lines(parsed.source, codec)
    units = analyser.analyse(parsed, path)
    return [(analysed, lines.position(analysed.unit.name.start_byte)) for analysed in units]
