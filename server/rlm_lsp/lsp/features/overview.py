"""``rlm-lsp/overview``: the units of the workspace by predicted cost, one page at a time.

The workspace is read within a request that shows its progress (:mod:`.overview_scan`); the results are kept, so that
another filter or the next page needs no prediction. While files are read, a client that gives a token receives the rows
that are known as partial results. A list that a client pages through does not change until its last page. A client that
watches the list is notified once it no longer holds.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Annotated, Any, get_args

import msgspec
from cachetools import LRUCache
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from rlm_core.queries.devices import canonical_device
from rlm_core.types import Metric

from rlm_lsp.lsp.session import Session
from rlm_lsp.sources import matches, path_of_uri

from .overview_scan import GROUPS, OverviewRow, Scan, Scanner
from .progress import progress
from .requests import convert, require_model

OVERVIEW, OVERVIEW_CHANGED = "rlm-lsp/overview", "rlm-lsp/overviewChanged"
PAGE_ROWS, MAX_PAGE_ROWS = 100, 1000
_MAX_LISTS = 4
_MAX_FAILURES = 20
# Partial results follow each other no faster: a client draws a list in about this time.
PARTIAL_SECONDS = 0.1
DEFAULT_METRIC: Metric = "latency"
_METRICS: tuple[Metric, ...] = get_args(Metric)
_GROUP_ORDER = list(dict.fromkeys(GROUPS.values()))


class OverviewParams(msgspec.Struct):
    """Either the ``cursor`` of the previous page, or the filters of a new list; ``limit`` is the size of a page.

    ``tests`` says whether files of tests are read too. ``refresh`` reads all files again, ``update`` those that have
    changed. ``watch`` asks for ``rlm-lsp/overviewChanged`` from now on.
    """

    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_PAGE_ROWS)] | None = None
    cursor: str | None = None
    refresh: bool | None = None
    update: bool | None = None
    watch: bool | None = None
    tests: bool = True
    partialResultToken: str | int | None = None  # noqa: N815
    metric: str | None = None
    file: str | None = None
    device: str | None = None


class _PartialResults:
    """Sends the rows of a request while they are found, if the client has given a token for them."""

    def __init__(self, session: Session, params: OverviewParams) -> None:
        self._session, self._params = session, params
        self._sent = 0
        self._at = -math.inf

    def send(self, scan: Scan, done: int, total: int) -> None:
        """Send the rows that were not sent yet, once the time has come; so many files are read, of so many."""
        params, now = self._params, asyncio.get_running_loop().time()
        if params.partialResultToken is None or now - self._at < PARTIAL_SECONDS:
            return
        files = list(scan.files.values())[self._sent :]
        rows = [row for file in files for row in file.rows]
        if not rows:
            return
        selected = ordered(rows, params.metric or DEFAULT_METRIC, params.file, params.device)
        self._sent, self._at = self._sent + len(files), now
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
        self._session, self._scanner = session, Scanner(session)
        self._turn = asyncio.Lock()
        self._scan: tuple[object, Scan] | None = None
        self._is_watched = False
        self._lists: LRUCache[str, _FilteredList] = LRUCache(_MAX_LISTS)
        self._numbers = count(1)

    async def page(self, params: Any) -> dict[str, Any]:
        """A page of the overview.

        ``cursor`` is from the previous page and asks for the next one. Without it a new list starts: of one ``metric``
        (default: latency), the most expensive unit first, for accuracy the least accurate; of files that match
        ``file``, a glob or a part of the path; of one ``device``; with ``tests`` false, without files of tests. A
        network has one row, with its costs on other devices in ``others``. Costs of different groups are not compared:
        the first units of all groups come first, then their second ones. A page has ``limit`` rows. Rows that are found
        while the workspace is read are sent to ``partialResultToken`` as
        ``{"rows": [...], "done": files, "total": files}``, in no particular order.
        """
        named = convert(params, OverviewParams)
        self._is_watched = self._is_watched or bool(named.watch)
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

    def edited(self, uri: str) -> None:
        """A document was opened or edited: the list no longer holds if its text is not the one that was read."""
        known = self._scanner.text_of(uri) if self._scan is not None and self._is_watched else None
        if known is not None and self._scan is not None:
            path, text = known
            file = self._scan[1].files.get(path)
            if file is None or file.text != text:
                self.changed()

    def closed(self, uri: str) -> None:
        """A document was closed: the list no longer holds if its file has another text than the one that was read."""
        if self._scan is not None and self._is_watched:
            self._session.spawn(f"overview {uri}", self._check_closed(uri, self._scan[1]))

    async def _check_closed(self, uri: str, scan: Scan) -> None:
        path = path_of_uri(uri)
        file = scan.files.get(path) if path is not None else None
        if path is not None and file is not None and file.text != await self._scanner.text_on_disk(path):
            self.changed()

    def changed(self) -> None:
        """The list may no longer hold."""
        if self._scan is not None and self._is_watched:
            self._session.client.protocol.notify(OVERVIEW_CHANGED, {})

    def close(self) -> None:
        """Drop what waits for the thread."""
        self._scanner.close()

    def _start_list(self, named: OverviewParams, scan: Scan) -> str:
        rows = ordered(scan.rows(), named.metric or DEFAULT_METRIC, named.file, named.device)
        files = scan.files.values()
        store = self._session.settings_store
        failed = [(store.relative(path).as_posix(), file.failure) for path, file in scan.files.items() if file.failure]
        head = {
            "total": len(rows),
            "files": sum(not file.failure for file in files),
            "units": scan.units,
            "abstained": sum(file.abstained for file in files),
            "failed": len(failed),
            "failures": [{"file": file, "reason": reason} for file, reason in failed[:_MAX_FAILURES]],
            "complete": scan.complete,
            "unsaved": scan.unsaved,
            "metrics": list(dict.fromkeys(row.prediction.metric for row in scan.rows())),
            "devices": sorted({row.prediction.device for row in scan.rows() if row.prediction.device is not None}),
        }
        name = str(next(self._numbers))
        self._lists[name] = _FilteredList(tuple(rows), head)
        return name

    async def _scanned(self, named: OverviewParams) -> Scan:
        """The newest scan, or a new one. One request reads the workspace; concurrent requests wait for it."""
        session = self._session
        await require_model(session)
        async with self._turn:
            known, generation = self._scan, session.predictions.generation
            if known is None or named.refresh or known[0] is not generation or known[1].tests != named.tests:
                scan = Scan(named.tests)
                partial_results = _PartialResults(session, named)
                with progress(session, "rlm-lsp: reading the workspace", cancellable=True) as shown:
                    await self._scanner.read(scan, shown, lambda done, total: partial_results.send(scan, done, total))
                known = self._scan = generation, scan
            elif named.update:
                with progress(session, "rlm-lsp: reading the workspace", cancellable=True) as shown:
                    await self._scanner.update(known[1], shown)
            return known[1]


def register(server: LanguageServer, session: Session) -> None:
    """Answer ``rlm-lsp/overview``, and notify a client that watches the list."""
    overview = Overview(session)
    server.feature(OVERVIEW)(partial(Overview.page, overview))
    session.on_edit(overview.edited)
    session.on_close(overview.closed)
    session.on_refresh(overview.changed)
    session.on_files(overview.changed)
    session.on_end(overview.close)


def _check_metric(metric: str | None) -> None:
    if metric is not None and metric not in _METRICS:
        raise JsonRpcInvalidParams(f"{metric!r} is not a metric; choose one of {', '.join(_METRICS)}")


def ordered(
    rows: Iterable[OverviewRow], metric: str, file: str | None = None, device: str | None = None
) -> list[OverviewRow]:
    """The rows of a metric, of files that match ``file`` and of a device, the most expensive first.

    A network has one row, for the device that most networks have. Each row has a rank in its group, and the ranks
    decide: a page has the most expensive rows of every group.
    """
    wanted = (canonical_device(device) or device) if device else None
    selected = [
        row
        for row in rows
        if row.prediction.metric == metric
        and (not file or file_matches(file, row.file))
        and (wanted is None or row.prediction.device == wanted)
    ]
    selected = _one_per_network(selected)
    sign = 1 if metric == "accuracy" else -1
    selected.sort(key=lambda row: (sign * (row.prediction.median or 0.0), row.file, row.line, row.qualname))
    ranks: Counter[str] = Counter()
    ranked = []
    for row in selected:
        ranks[row.group] += 1
        ranked.append((ranks[row.group], _GROUP_ORDER.index(row.group), row))
    return [row for *_, row in sorted(ranked, key=lambda entry: entry[:2])]


def _one_per_network(rows: Sequence[OverviewRow]) -> list[OverviewRow]:
    """The rows with one for each network, so that networks are compared on one device where they have one in common.

    Of several common devices it is the first in the order of the answers, which begins with those that the user chose.
    """
    of_network: dict[tuple[str, str], list[OverviewRow]] = {}
    for row in rows:
        if row.prediction.basis == "network":
            of_network.setdefault((row.uri, row.qualname), []).append(row)
    networks = Counter(row.prediction.device for of_one in of_network.values() for row in of_one)
    found = [row for row in rows if row.prediction.basis != "network"]
    for of_one in of_network.values():
        first = max(of_one, key=lambda row: networks[row.prediction.device])
        found.append(replace(first, others=tuple(row.prediction for row in of_one if row is not first)))
    return found


def file_matches(pattern: str, path: str) -> bool:
    """Return whether a path matches a glob, or contains any other text, ignoring case."""
    if any(sign in pattern for sign in "*?"):
        return matches(pattern, path)
    return pattern.lower() in path.lower()
