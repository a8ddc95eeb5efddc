"""Commands for ``workspace/executeCommand``. None of them runs the user's code.

Commands about a document take its URI, or an object with it as ``uri``; those about a unit also take a position in it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, TypeVar, get_args

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams, JsonRpcRequestCancelled
from pygls.lsp.server import LanguageServer
from rlm_core.errors import StoppedError
from rlm_core.inference.explain import Explanation, explain
from rlm_core.inference.predictor import Predictor, WithoutComparison
from rlm_core.inference.query_selection import queries_for
from rlm_core.queries.unit_variants import start_of_text, variant_reader
from rlm_core.types import Basis, CodeText, Metric, Prediction, Query

from rlm_lsp.history.measurements import command_for
from rlm_lsp.lsp.document import Analysis, LocatedUnit
from rlm_lsp.lsp.scheduler import STEP_UNITS
from rlm_lsp.lsp.session import Session
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.explanations import explanation_text
from rlm_lsp.rendering.json_rows import unit_row, work_fields

from .gpu_comparison import COMPARE_GPUS, compare_gpus
from .progress import WorkProgress, progress
from .requests import analysis_of, position_of, unit_at

COPY_JSON, EXPLAIN, GO_TO, MEASURE = "rlm-lsp.copyJson", "rlm-lsp.explain", "rlm-lsp.goTo", "rlm-lsp.measureCommand"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")
# A text is encoded once for each statement that is left out: a hover waits for at most this many.
_STEP_STATEMENTS = 4
_METRICS: tuple[Metric, ...] = get_args(Metric)
_Result = TypeVar("_Result")


class _CancelledError(StoppedError):
    """The request was cancelled."""


def register(server: LanguageServer, session: Session) -> None:
    """Offer all commands but those of other features."""
    handlers: dict[str, Callable[[Session, Sequence[Any]], Awaitable[Any]]] = {
        "rlm-lsp.restartModel": restart_model,
        "rlm-lsp.showLog": show_log,
        "rlm-lsp.clearCache": clear_cache,
        "rlm-lsp.predictFile": predict_file,
        COPY_JSON: copy_json,
        EXPLAIN: explain_unit,
        GO_TO: go_to,
        COMPARE_GPUS: compare_gpus,
        MEASURE: measure_command,
    }
    for name, handler in handlers.items():
        server.command(name)(_with_arguments(session, handler))


def _with_arguments(
    session: Session, handler: Callable[[Session, Sequence[Any]], Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    # pygls reads the signature of a command, and looks inside a partial: only a function can hide the session.
    async def run(*arguments: Any) -> Any:
        return await handler(session, arguments)

    return run


async def restart_model(session: Session, arguments: Sequence[Any]) -> str | None:
    """Load the model again and clear the caches; returns None when it is ready, else the reason."""
    with progress(session, "rlm-lsp: loading the model", counted=False):
        failure = await session.load_model(session.settings)
    if failure is None:
        session.clear()
    return failure


async def clear_cache(session: Session, arguments: Sequence[Any]) -> int:
    """Clear all caches; returns the number of units that had predictions."""
    return session.clear()


async def show_log(session: Session, arguments: Sequence[Any]) -> str:
    """The newest lines of the server's log."""
    return session.log_tail.text()


async def predict_file(session: Session, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """All predictions of a document, with the fields of ``rlm-lsp predict --format json``."""
    analysis = await analysis_of(session, arguments)
    codes = [unit.analysed.code for unit in analysis.units]
    with progress(session, "rlm-lsp: predicting", cancellable=True) as shown:
        cancelled = _cancellation(session, shown)
        for start in range(0, len(codes), STEP_UNITS):
            if cancelled():
                raise JsonRpcRequestCancelled("the prediction was cancelled")
            await session.predictions.predict(codes[start : start + STEP_UNITS], cancelled)
            shown.report(min(start + STEP_UNITS, len(codes)), len(codes))
    return [row for unit in analysis.units for row in _rows(session, analysis, unit)]


async def copy_json(session: Session, arguments: Sequence[Any]) -> str:
    """The predictions of the unit at a position, as JSON text for the clipboard."""
    analysis = await analysis_of(session, arguments)
    unit = unit_at(analysis, position_of(arguments))
    await session.predictions.predict([unit.analysed.code])
    return json.dumps(_rows(session, analysis, unit), indent=2, ensure_ascii=False)


async def go_to(session: Session, arguments: Sequence[Any]) -> bool:
    """Show a position of a document in the editor, with the cursor there; returns whether the editor did."""
    first = arguments[0] if arguments else None
    uri = first.get("uri") if isinstance(first, Mapping) else first
    if not isinstance(uri, str):
        raise JsonRpcInvalidParams("name a document by its URI")
    position = position_of(arguments)
    shown = types.ShowDocumentParams(uri, take_focus=True, selection=types.Range(position, position))
    return (await session.client.window_show_document_async(shown)).success


async def measure_command(session: Session, arguments: Sequence[Any]) -> str:
    """Show, and return for the clipboard, the command line that measures a document's package. Nothing is run."""
    analysis = await analysis_of(session, arguments)
    uri = analysis.document.uri
    if not session.settings_for(uri).measure:
        raise JsonRpcInvalidParams("the setting `measure` switches measurements off")
    command = await asyncio.to_thread(command_for, analysis.document.path)
    if command is None:
        raise JsonRpcInvalidParams(f"{uri}: not in a Python package whose name and folder can be written in a command")
    session.show(f"To measure, run: {command}")
    return command


async def explain_unit(session: Session, arguments: Sequence[Any]) -> dict[str, Any]:
    """The statements that the prediction for the unit at a position depends on; a third argument names the metric.

    ``lines`` has an entry per statement: the 0-based numbers of its first and last line in the document (``line``,
    ``endLine``), the text of its first line, and the ratio of the prediction with it to the prediction without it.
    ``markdown`` shows what the code says about the cost and the strongest statements. ``waits``, ``endless`` and
    ``causes`` are those of ``rlm-lsp predict --format json``, with 0-based lines.
    """
    analysis = await analysis_of(session, arguments)
    unit = unit_at(analysis, position_of(arguments))
    # What the code says is explained, not what was measured of it.
    code, metric = replace(unit.analysed.code, measured=()), arguments[2] if len(arguments) > 2 else None
    if metric is not None and metric not in _METRICS:
        raise JsonRpcInvalidParams(f"{metric!r} is not a metric; choose one of {', '.join(_METRICS)}")
    selection = session.settings_for(analysis.document.uri).selection
    selection = replace(selection, metrics=None if metric is None else (metric,))
    queries = await session.predictions.run(lambda predictor: queries_for(predictor, code, selection))
    if not queries:
        raise JsonRpcInvalidParams("there is no model, or it does not predict this metric for this unit")
    with progress(session, f"rlm-lsp: explaining {unit.analysed.unit.qualname}", cancellable=True) as shown:
        cancelled, stopped = _cancellation(session, shown), Event()
        stepwise = _StepwisePredictor(session, shown, lambda: stopped.is_set() or cancelled())
        try:
            document = analysis.document
            read = variant_reader(document.parsed, document.path, unit.analysed, stepwise.check)
            explanation = await asyncio.to_thread(explain, stepwise, code, queries[0], read)
        except _CancelledError:
            raise JsonRpcRequestCancelled("the explanation was cancelled") from None
        finally:
            stopped.set()
    lines = Lines(analysis.document.source, session.client.workspace.position_codec)
    return _explained(analysis, unit, queries[0], explanation, lines)


class _StepwisePredictor(WithoutComparison):
    """The model for another thread: it predicts in small steps, so that other requests get their turns in between."""

    def __init__(self, session: Session, shown: WorkProgress, cancelled: Callable[[], bool]) -> None:
        self._service, self._shown, self._cancelled = session.predictions, shown, cancelled
        self._loop = asyncio.get_running_loop()

    @property
    def model_id(self) -> str:
        return self._on_worker(lambda predictor: predictor.model_id)

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return self._on_worker(lambda predictor: predictor.default_queries(basis, language))

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return self._on_worker(lambda predictor: predictor.devices(basis, language))

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        answers: list[list[Prediction]] = []
        for start in range(0, len(texts), _STEP_STATEMENTS):
            end = start + _STEP_STATEMENTS
            answers += self._on_worker(partial(_predict, texts[start:end], queries[start:end]))
            self._loop.call_soon_threadsafe(self._shown.report, min(end, len(texts)), len(texts))
        return answers

    def check(self) -> None:
        """Stop where the request was cancelled."""
        if self._cancelled():
            raise _CancelledError

    def _on_worker(self, work: Callable[[Predictor], _Result]) -> _Result:
        answer = None
        if not self._cancelled():
            answer = asyncio.run_coroutine_threadsafe(self._service.run(work, self._cancelled), self._loop).result()
        if answer is None:
            raise _CancelledError
        return answer


def _predict(
    texts: Sequence[CodeText], queries: Sequence[Sequence[Query]], predictor: Predictor
) -> list[list[Prediction]]:
    return predictor.predict(texts, queries)


def _explained(
    analysis: Analysis, located: LocatedUnit, query: Query, explanation: Explanation, lines: Lines
) -> dict[str, Any]:
    unit = located.analysed.unit
    offsets = [start_of_text(analysis.document.source, located.analysed)]
    for line in _LINE.findall(located.analysed.code.text):
        offsets.append(offsets[-1] + len(line.encode()))
    ends = {line for effect in explanation.effects for line in (effect.line, effect.last_line)}
    numbers = {line: lines.line_of(offsets[line]) for line in ends}
    return {
        "qualname": unit.qualname,
        "metric": query.metric,
        "device": query.device,
        "workload": dict(query.workload),
        "abstained": reason(explanation.abstained) if explanation.abstained is not None else None,
        "skipped": explanation.skipped,
        **work_fields(located.analysed.code.work, query.metric, explanation.prediction, unit.span.start_line),
        "lines": [
            {
                "line": numbers[effect.line],
                "endLine": numbers[effect.last_line],
                "text": effect.text,
                "ratio": effect.ratio,
            }
            for effect in explanation.effects
        ],
        "markdown": explanation_text(located.analysed, query, explanation, numbers),
    }


def _rows(session: Session, analysis: Analysis, unit: LocatedUnit) -> list[dict[str, Any]]:
    document = analysis.document
    file = str(document.path) if document.path is not None else document.uri
    predictions = session.known(document.uri, unit.analysed.code) or ()
    return [unit_row(file, unit.analysed, prediction) for prediction in predictions]


def _cancellation(session: Session, shown: WorkProgress) -> Callable[[], bool]:
    """Return whether the request has been cancelled, by its id or by its progress; any thread may call it."""
    protocol = session.client.protocol
    number = protocol.msg_id
    request = protocol._request_futures.get(number) if number is not None else None
    return lambda: shown.cancelled or (request is not None and request.cancelled())
