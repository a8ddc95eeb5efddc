"""``rlm-lsp/overview``: the units of the workspace by predicted cost, a page at a time.

Files are read, analysed and predicted in the background of a request that shows its progress; what was found is kept,
so that another filter or the next page costs no prediction. A list that was begun stays as it was until its last page.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.workspace import PositionCodec
from rlm_core import RlmError, SourceError
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.devices import canonical_device
from rlm_core.source.units import read_source
from rlm_core.types import Metric, Prediction

from rlm_lsp.history import git as head
from rlm_lsp.lsp.documents import Document
from rlm_lsp.lsp.scheduler import STEP_UNITS
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.rendering import values as render
from rlm_lsp.rendering.json_rows import prediction_fields
from rlm_lsp.sources import find_sources, matches

from .fields import fields, number, optional
from .progress import Progress, progress

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

OVERVIEW = "rlm-lsp/overview"
PAGE, MOST_PAGE = 100, 1000
_KEPT_LISTS = 4
_TOLD_FAILURES = 20
_METRICS: tuple[Metric, ...] = get_args(Metric)
_Result = TypeVar("_Result")
_Found = tuple[AnalysedUnit, types.Position]


@dataclass(frozen=True, slots=True)
class Row:
    """One prediction for a unit of the workspace; ``file`` is the path below its workspace folder."""

    uri: str
    file: str
    line: int
    character: int
    qualname: str
    prediction: Prediction

    def told(self) -> dict[str, Any]:
        """The row as JSON, in SI units, with the texts that people read."""
        one = self.prediction
        band = one.band
        return {
            "uri": self.uri,
            "file": self.file,
            "line": self.line,
            "character": self.character,
            "qualname": self.qualname,
            **prediction_fields(one),
            "bandText": render.band(one.metric, band, one.floor) if band is not None else "",
            "medianText": render.median(one),
        }


@dataclass(slots=True)
class _Scan:
    """What was found in the workspace; not ``complete`` when somebody has had enough of waiting."""

    rows: list[Row] = field(default_factory=list)
    files: int = 0
    units: int = 0
    abstained: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    complete: bool = False


@dataclass(frozen=True, slots=True)
class _List:
    """The rows that a filter leaves, in the order of their pages."""

    rows: tuple[Row, ...]
    head: dict[str, Any]


class Overview:
    """All that the overview needs to know of a session; lives on the event loop."""

    def __init__(self, ls: Server) -> None:
        self._ls = ls
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="rlm-overview")
        self._turn = asyncio.Lock()
        self._scan: tuple[object, _Scan] | None = None
        self._lists: OrderedDict[str, _List] = OrderedDict()
        self._numbers = count(1)

    async def page(self, params: Any) -> dict[str, Any]:
        """A page of the overview.

        ``cursor`` of the page before asks for the next one. Without it a list is begun: of one ``metric`` (latency if
        none is named), the dearest first, for accuracy the least accurate first; of files that the glob or the part of
        a path ``file`` means; of one ``device``. ``refresh`` reads the workspace anew. ``limit`` rows come at once.
        """
        named = fields(params)
        limit = number(named, "limit", PAGE, MOST_PAGE)
        cursor = optional(named, "cursor", str)
        if cursor is None:
            cursor = f"{self._begin(named, await self._scanned(bool(optional(named, 'refresh', bool))))}:0"
        name, _, offset = cursor.partition(":")
        found = self._lists.get(name)
        if found is None or not offset.isdecimal():
            raise JsonRpcInvalidParams("this cursor is no longer known; ask again without one")
        self._lists.move_to_end(name)
        end = int(offset) + limit
        rows = [row.told() for row in found.rows[int(offset) : end]]
        return {**found.head, "rows": rows, "cursor": f"{name}:{end}" if end < len(found.rows) else None}

    def close(self) -> None:
        """Drop what waits for the thread."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _begin(self, named: Any, scan: _Scan) -> str:
        metric = optional(named, "metric", str) or "latency"
        if metric not in _METRICS:
            raise JsonRpcInvalidParams(f"{metric!r} is no metric; name one of {', '.join(_METRICS)}")
        device = optional(named, "device", str)
        rows = ordered(scan.rows, metric, optional(named, "file", str), device)
        head = {
            "total": len(rows),
            "files": scan.files,
            "units": scan.units,
            "abstained": scan.abstained,
            "failed": len(scan.failed),
            "failures": [{"file": file, "reason": reason} for file, reason in scan.failed[:_TOLD_FAILURES]],
            "complete": scan.complete,
            "metrics": list(dict.fromkeys(row.prediction.metric for row in scan.rows)),
            "devices": sorted({row.prediction.device for row in scan.rows if row.prediction.device is not None}),
        }
        name = str(next(self._numbers))
        self._lists[name] = _List(tuple(rows), head)
        while len(self._lists) > _KEPT_LISTS:
            self._lists.popitem(last=False)
        return name

    async def _scanned(self, refresh: bool) -> _Scan:
        """The workspace as it was found last, or as it is now. One request reads it; others wait for that."""
        ls = self._ls
        await ls.engine.wait_loaded()
        if not ls.engine.ready:
            raise JsonRpcInvalidParams("there is no model; the log says why")
        async with self._turn:
            known = self._scan
            if known is None or refresh or known[0] is not ls.engine.state:
                state, scan = ls.engine.state, _Scan()
                with progress(ls, "rlm-lsp: reading the workspace", cancellable=True) as shown:
                    await self._read(scan, shown)
                known = self._scan = state, scan
            return known[1]

    async def _read(self, scan: _Scan, shown: Progress) -> None:
        ls = self._ls
        store = ls.settings_store
        folders = [folder for folder in store.by_folder if folder is not None]
        paths = [path for path in await self._on_worker(lambda: _files(folders)) if not store.excludes(path)]
        codec = ls.workspace.position_codec
        documents = [document for uri in ls.documents.uris if (document := ls.documents.document(uri)) is not None]
        opened = {document.path: document for document in documents if document.path is not None}
        texts = {path: document.source for path, document in opened.items()}
        analyser = Analyser(texts.get, lambda path: store.settings_of(path).default_sizes)
        for done, path in enumerate(paths):
            if shown.cancelled:
                return
            shown.report(done, len(paths))
            file = store.relative(path).as_posix()
            document = opened.get(path)
            try:
                units = await self._on_worker(partial(_analyse, analyser, path, document, codec))
            except RlmError as error:
                scan.failed.append((file, str(error)))
                continue
            scan.files += 1
            wanted = store.settings_of(path).languages
            uri = document.uri if document is not None else path.as_uri()
            kept = [unit for unit in units if unit[0].unit.language in wanted]
            await self._predict(scan, uri, file, kept, lambda: shown.cancelled)
        scan.complete = not shown.cancelled

    async def _predict(
        self, scan: _Scan, uri: str, file: str, units: Sequence[_Found], cancelled: Callable[[], bool]
    ) -> None:
        for start in range(0, len(units), STEP_UNITS):
            step = units[start : start + STEP_UNITS]
            await self._ls.engine.predict([analysed.code for analysed, _ in step], cancelled)
            for analysed, at in step:
                predictions = self._ls.cached(uri, analysed.code) or ()
                answered = [one for one in predictions if one.median is not None]
                scan.units += 1
                scan.abstained += not answered
                name = analysed.unit.qualname
                scan.rows += [Row(uri, file, at.line, at.character, name, one) for one in answered]

    async def _on_worker(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)


async def overview(ls: Server, params: Any) -> dict[str, Any]:
    """Answer ``rlm-lsp/overview``; see :meth:`Overview.page`."""
    return await ls.overview.page(params)


def ordered(rows: Sequence[Row], metric: str, file: str | None = None, device: str | None = None) -> list[Row]:
    """The rows of a metric, of files that ``file`` means and of a device, the most costly first."""
    wanted = (canonical_device(device) or device) if device else None
    found = [
        row
        for row in rows
        if row.prediction.metric == metric
        and (not file or means(file, row.file))
        and (wanted is None or row.prediction.device == wanted)
    ]
    sign = 1 if metric == "accuracy" else -1
    return sorted(found, key=lambda row: (sign * (row.prediction.median or 0.0), row.file, row.line, row.qualname))


def means(file: str, path: str) -> bool:
    """Whether a filter, a glob or any part of a path in any case, means the file at ``path``."""
    if any(sign in file for sign in "*?"):
        return matches(file, path)
    return file.lower() in path.lower()


def _files(folders: Sequence[Path]) -> list[Path]:
    """The files below workspace folders, each once, without what git ignores."""
    found = find_sources(folders, lambda error: None)
    paths = list(dict.fromkeys(source.path for source in found))
    ignored: set[Path] = set()
    for root, group in head.by_repository(paths).items():
        try:
            ignored |= head.ignored(root, group) if root is not None else set()
        except head.GitError:
            continue  # without git nothing is ignored
    return [path for path in paths if path not in ignored]


def _analyse(analyser: Analyser, path: Path, document: Document | None, codec: PositionCodec) -> list[_Found]:
    """The units of a file, as it stands in the editor where it is open, and where their names are."""
    if document is not None and document.language is not None:
        parsed = document.parsed
    else:
        try:
            if path.stat().st_size == 0:
                return []
        except OSError as error:
            raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
        parsed = read_source(path)
    lines = Lines(parsed.source, codec)
    return [(analysed, lines.position(analysed.unit.name.start_byte)) for analysed in analyser.analyse(parsed, path)]
