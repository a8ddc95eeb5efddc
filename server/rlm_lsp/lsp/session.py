"""One client's session: its open documents, its settings, and the service that predicts.

Features receive the session. It knows none of them: where they must act (a document changed, new predictions arrived),
they register callbacks with its hooks. Everything here runs on the event loop; analysis, git and the model run on
threads of their services, so the loop is never blocked.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, ParamSpec

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument
from rlm_core.boundary import location_of, report
from rlm_core.inference.query_selection import QuerySelection
from rlm_core.measurement import Store
from rlm_core.measurement.known import KnownMeasurements
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.function_sizes import NO_RULES, SizeRules
from rlm_core.types import CodeText, Prediction

from rlm_lsp.history.comparison import HeadUnits
from rlm_lsp.history.git import GitError
from rlm_lsp.rendering.escaping import message
from rlm_lsp.settings.files import SettingsStore
from rlm_lsp.settings.model import Settings
from rlm_lsp.settings.sizes import size_rules, without_sizes

from .document import Analysis, Document, LocatedUnit
from .documents import Documents
from .prediction_service import PredictionService
from .scheduler import Scheduler

MAX_LOG_LINES = 500
_SETTINGS_SECONDS = 2.0  # that the first answer waits for a client's settings
# Measurements that were made or merged meanwhile are shown after this time; a look at the state of a few files.
MEASUREMENT_SECONDS = 2.0
_LOG_LEVELS = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
    "debug": types.MessageType.Debug,
}
_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_REST = "rest"  # of a document: the tasks that have it analysed
_DEPENDENTS = "dependents"  # the task that looks for units that the model now reads differently


class Hook(Generic[_P]):
    """Callbacks that features register by calling the hook, and that the session fires in that order."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[_P, None]] = []

    def __call__(self, callback: Callable[_P, None]) -> None:
        """Register a callback."""
        self._callbacks.append(callback)

    def fire(self, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Call all callbacks."""
        for callback in self._callbacks:
            callback(*args, **kwargs)


class LogTail(logging.Handler):
    """Keeps the newest log lines of the server and of Python's logging, each with its time."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record of Python's logging, with its traceback."""
        self.add(record.levelname.lower(), self.format(record))

    def add(self, level: str, text: str) -> None:
        """Keep a line."""
        self._lines.append(f"{time.strftime('%H:%M:%S')} {level}: {text}")

    def text(self) -> str:
        """All kept lines, the oldest first."""
        return "\n".join(self._lines)


class FailureLog(logging.Handler):
    """Passes what fails at the boundary around units, on any thread, to the log of a client on its event loop."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.loop: asyncio.AbstractEventLoop | None = None  # known once the client has begun the session

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record with its traceback, and send its first line."""
        text = record.getMessage()
        self._session.log_tail.add("error", text)
        first = text.splitlines()[0]
        if self.loop is None:
            self._session.send_log(first, types.MessageType.Error)
            return
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self._session.send_log, first, types.MessageType.Error)


class Session:
    """The state that all features share; ``client`` sends messages to the editor and knows its capabilities."""

    predictions: PredictionService
    scheduler: Scheduler
    settings_store: SettingsStore

    def __init__(self, client: LanguageServer) -> None:
        self.client = client
        self.measurements = KnownMeasurements(Store(note=_log.warning), (), _log.warning)
        self.documents = Documents(self._default_sizes, self.measurements, self.size_rules)
        self.head_units = HeadUnits(self._default_sizes, lambda path: without_sizes(self.size_rules(path)))
        self.settings_read = asyncio.Event()  # the client's settings are known, or it sends none
        self.log_tail, self.failure_log = LogTail(), FailureLog(self)
        # A document was opened or edited.
        self.on_edit = Hook[[str]]()
        # A document was closed.
        self.on_close = Hook[[str]]()
        # Source files have changed on disk, or a notebook was closed.
        self.on_files = Hook[[]]()
        # Hints and lenses may show something new.
        self.on_results = Hook[[]]()
        # Everything that depends on the model or the settings is out of date.
        self.on_refresh = Hook[[]]()
        # The caches were cleared.
        self.on_clear = Hook[[]]()
        # So many units of a document are predicted, of so many.
        self.on_progress = Hook[[str, int, int]]()
        # The client has gone.
        self.on_end = Hook[[]]()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._logged: set[str] = set()
        self._has_popped_up = False
        self.configure(SettingsStore())

    def configure(self, store: SettingsStore) -> None:
        """Start with these settings; the model is not loaded yet."""
        self.settings_store = store
        self.measurements.use_roots(self._folders)
        self.predictions = PredictionService(store.session)
        self.predictions.select(selection_of(store))
        self.scheduler = Scheduler(
            self.predictions.predict,
            self.documents.version_of,
            lambda uri: self.on_results.fire(),
            self.log_error,
            store.session.debounce_ms / 1000,
            self.on_progress.fire,
        )

    @property
    def settings(self) -> Settings:
        """The settings of the whole session; those that may differ by folder are in :meth:`settings_for`."""
        return self.settings_store.session

    def settings_for(self, uri: str) -> Settings:
        """The settings of a document; a cell has those of its notebook."""
        return self.settings_store.settings_for(self.documents.notebooks.of(uri) or uri)

    def _default_sizes(self, path: Path | None) -> Mapping[str, str]:
        return self.settings_store.settings_of(path).default_sizes

    def size_rules(self, path: Path | None) -> SizeRules:
        """The sizes that the settings give the functions of a file."""
        if path is None:
            return NO_RULES
        return size_rules(self.settings_store.settings_of(path), self.settings_store.relative(path))

    def capability(self, name: str) -> Any:
        """A capability of the client by its path, such as ``workspace.configuration``; None where it has none."""
        return get_capability(self.client.client_capabilities, name)

    async def watch_measurements(self) -> None:
        """Refresh whenever there are other measurements than before, until the session ends."""
        while True:
            await asyncio.sleep(MEASUREMENT_SECONDS)
            if await asyncio.to_thread(self._measurements_changed, self._folders):
                self.documents.invalidate()
                self.predictions.outdate()
                self.refresh()

    def _measurements_changed(self, folders: Sequence[Path]) -> bool:
        return self.measurements.use_roots(folders) or self.measurements.changed()

    @property
    def _folders(self) -> list[Path]:
        return [folder for folder in self.settings_store.by_folder if folder is not None]

    async def analysis(self, uri: str, *, provisional: bool = False, lines: range | None = None) -> Analysis | None:
        """The units of an open document; None when it is excluded or in a language that the settings leave out.

        A ``provisional`` answer may come sooner, and have the units of some ``lines`` alone: ``on_results`` follows if
        it was not right.
        """
        await self._settings_known()
        codec = self.client.workspace.position_codec
        analysis = await self.documents.analysis(uri, codec, provisional=provisional, lines=lines)
        if analysis is not None and not analysis.settled:
            self.spawn(f"{_REST} {uri}", self._analyse_rest(uri))
            if _DEPENDENTS not in self._tasks:
                self.check_dependents(uri)
        if analysis is None or analysis.document.language not in self.settings_for(uri).languages:
            return None
        return None if self.settings_store.excludes(analysis.document.path) else analysis

    async def _analyse_rest(self, uri: str) -> None:
        """Have the rest of a document analysed once what is on the screen is predicted."""
        if not self.predictions.ready:
            await self.predictions.wait_loaded()
            # The client, which was asked to, asks again meanwhile.
            await asyncio.sleep(self.settings.debounce_ms / 1000)
        await self.idle(uri)
        self.documents.resume(uri)

    async def _settings_known(self) -> None:
        """Wait for the client's settings before the first answer, but not long for a client that sends none."""
        if not self.settings_read.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.settings_read.wait(), _SETTINGS_SECONDS)
            self.settings_read.set()

    async def units_at_head(self, document: Document) -> tuple[AnalysedUnit, ...] | None:
        """The units of a document at git's ``HEAD``; None for a new file and where git cannot compare."""
        if document.path is None or document.language in (None, "onnx"):
            return None
        try:
            return await self.head_units.units(document.path, document.language or "")
        except GitError as error:
            self.log_once(f"no comparison with HEAD: {error}")
            return None

    def known(self, uri: str, code: CodeText) -> tuple[Prediction, ...] | None:
        """The cached predictions for a unit of a document, for the metrics and devices of its folder's settings."""
        if len(self.settings_store.by_folder) == 1:
            return self.predictions.known(code)
        settings = self.settings_for(uri)
        return self.predictions.known(code, settings.selection)

    async def predict(self, uri: str, code: CodeText) -> tuple[Prediction, ...]:
        """The predictions for one unit of a document; waits for the model if they are not cached."""
        if self.known(uri, code) is None:
            await self.predictions.predict([code])
        return self.known(uri, code) or ()

    async def available(
        self, analysis: Analysis, units: Sequence[LocatedUnit], *, refreshes: bool
    ) -> list[tuple[LocatedUnit, tuple[Prediction, ...]]]:
        """The units with cached predictions; the others are predicted in the background, and ``on_results`` follows.

        ``refreshes`` says that the client will ask again then. For a client that does not, this waits.
        """
        if not refreshes:
            await self.predictions.wait_loaded()
        if not self.predictions.ready:
            return []
        uri = analysis.document.uri
        answers = [self.known(uri, unit.analysed.code) for unit in units]
        missing = [unit.analysed.code for unit, known in zip(units, answers, strict=True) if known is None]
        if missing:
            self.predictions.hold(self.documents.unit_count())
            task = self.scheduler.schedule(uri, analysis.document.version, missing)
            if not refreshes:
                # The job may serve other requests too: cancelling this one must not end it, and it logs its errors.
                await asyncio.wait({task})
                answers = [self.known(uri, unit.analysed.code) for unit in units]
        return [(unit, known) for unit, known in zip(units, answers, strict=True) if known is not None]

    def opened(self, document: TextDocument) -> None:
        """The client has opened a document."""
        self.on_edit.fire(self.documents.put(document).uri)

    def edited(self, document: TextDocument) -> None:
        """The client has edited a document: its units are predicted after a pause in typing."""
        uri = self.documents.put(document).uri
        self.scheduler.edited(uri)
        self.check_dependents(uri)
        self.on_edit.fire(uri)

    def closed(self, uri: str) -> None:
        """A document is closed or gone: nothing is kept or shown for it."""
        self.documents.remove(uri)
        self.scheduler.closed(uri)
        self.on_close.fire(uri)

    def files_changed(self) -> None:
        """Files have changed on disk, or cells of notebooks have moved."""
        self.documents.invalidate()
        self.check_dependents()

    def check_dependents(self, uri: str | None = None) -> None:
        """After a pause, refresh if a change, in ``uri`` or on disk, affects the predictions of other units."""
        self.spawn(_DEPENDENTS, self._refresh_dependents(uri))

    async def _refresh_dependents(self, uri: str | None) -> None:
        await asyncio.sleep(self.settings.debounce_ms / 1000)
        if uri is not None:
            await self.idle(uri)
        changed = await self.documents.settle(self.client.workspace.position_codec)
        if changed - {uri}:
            self.refresh()
        elif changed:
            self.on_results.fire()

    async def idle(self, uri: str) -> None:
        """Wait until the pause after a document's last edit is over and the hints that it has now are shown.

        What waits for this takes the processor from them.
        """
        await self.scheduler.quiet(uri)
        await self.documents.provisional(uri)
        await self.scheduler.idle(uri)

    def refresh(self) -> None:
        """Ask the client for everything again: the model, the settings or the texts of callees have changed."""
        self.on_results.fire()
        self.on_refresh.fire()

    async def load_model(self, settings: Settings) -> str | None:
        """Load the model that ``settings`` name; returns None when it is ready, else the reason, also shown."""
        failure = await self.predictions.reload(settings)
        if failure is not None:
            effect = "the model is unchanged" if self.predictions.ready else "no predictions"
            self.log(f"{effect}: {failure}", types.MessageType.Error)
            self.show(f"rlm-lsp: {effect}: {failure}", types.MessageType.Error)
        return failure

    def clear(self) -> int:
        """Clear all caches; returns the number of units that had predictions."""
        count = self.predictions.clear()
        self.head_units.forget()
        self.on_clear.fire()
        self.refresh()
        return count

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background, in place of what runs under this name."""
        self.cancel(name)
        task = self._tasks[name] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._log_failure)
        task.add_done_callback(lambda task: self._tasks.pop(name) if self._tasks.get(name) is task else None)

    def cancel(self, name: str) -> None:
        """Cancel what runs in the background under this name."""
        if (task := self._tasks.pop(name, None)) is not None:
            task.cancel()

    def _log_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log_error(error)

    def log_error(self, error: BaseException, what: str = "background work") -> None:
        """Log an internal error, see :func:`rlm_core.boundary.report`; the first one pops up too."""
        report(what, error)
        self._pop_up(error)

    def log(self, text: str, kind: types.MessageType) -> None:
        """Write a line to the client's log of this server, unless the settings leave out lines of its kind."""
        self.log_tail.add(kind.name.lower(), text)
        self.send_log(text, kind)

    def send_log(self, text: str, kind: types.MessageType) -> None:
        """Send a line to the client's log, unless the settings leave out lines of its kind."""
        if kind.value <= _LOG_LEVELS[self.settings.log_level].value:
            self.client.window_log_message(types.LogMessageParams(kind, text))

    def log_once(self, text: str, kind: types.MessageType = types.MessageType.Warning) -> None:
        """Write a line to the client's log, the first time only."""
        if text not in self._logged:
            self._logged.add(text)
            self.log(text, kind)

    def show(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message to the user."""
        self.client.window_show_message(types.ShowMessageParams(kind, message(text)))

    def _pop_up(self, error: BaseException) -> None:
        """Show the first internal error of the session, without its text, which may quote code."""
        if not self._has_popped_up:
            self._has_popped_up = True
            where = location_of(error)
            text = f"rlm-lsp: internal error: {where}. See the log for details; further errors are only logged."
            self.show(text, types.MessageType.Error)

    def end(self) -> None:
        """Drop all work that waits: the client has gone."""
        self.predictions.close()
        self.documents.close()
        self.head_units.close()
        self.on_end.fire()


def selection_of(store: SettingsStore) -> QuerySelection:
    """The metrics and devices to ask for, so that the settings of every folder can be shown."""
    folders = list(store.by_folder.values())
    metrics = dict.fromkeys(metric for settings in folders for metric in settings.metrics)
    # None is the model's own device, which a folder without devices shows.
    devices = dict.fromkeys(device for settings in folders for device in settings.devices or (None,))
    chosen = () if tuple(devices) == (None,) else tuple(devices)
    return QuerySelection(tuple(metrics), chosen, judge=store.session.selection.judge)
