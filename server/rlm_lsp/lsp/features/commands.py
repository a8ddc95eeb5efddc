"""Commands: what a client may have done with ``workspace/executeCommand``. None of them runs the user's code.

Those about a document take its URI, or an object with it as ``uri``; those about a unit take a position in it too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from lsprotocol import converters, types
from pygls.exceptions import JsonRpcInvalidParams, JsonRpcRequestCancelled
from rlm_core.inference.explain import Explanation, explain, strongest
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.types import Basis, CodeText, Metric, Prediction, Query

from rlm_lsp.history.measured import command_for
from rlm_lsp.lsp.documents import Analysis, Placed
from rlm_lsp.lsp.scheduler import STEP_UNITS
from rlm_lsp.lsp.text_positions import Lines
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.json_rows import unit_row

from . import diagnostics
from .hover import unit_at
from .progress import Progress, progress

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

COPY_JSON, EXPLAIN, MEASURE = "rlm-lsp.copyJson", "rlm-lsp.explain", "rlm-lsp.measureCommand"
_SHOWN_LINES = 10
# Each text without a line is encoded anew: a hover waits for so many of them.
_STEP_LINES = 4
_METRICS: tuple[Metric, ...] = get_args(Metric)
_CONVERTER = converters.get_converter()
_Result = TypeVar("_Result")


class _CancelledError(Exception):
    """Nobody wants the answer any more."""


def register(ls: Server) -> None:
    """Offer all commands."""
    handlers: dict[str, Callable[..., Awaitable[Any]]] = {
        "rlm-lsp.restartModel": restart_model,
        "rlm-lsp.showLog": show_log,
        "rlm-lsp.clearCache": clear_cache,
        "rlm-lsp.toggleHints": toggle_hints,
        "rlm-lsp.predictFile": predict_file,
        COPY_JSON: copy_json,
        EXPLAIN: explain_unit,
        MEASURE: measure_command,
    }
    for name, handler in handlers.items():
        ls.command(name)(_bound(ls, handler))


def _bound(ls: Server, handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def run(*arguments: Any) -> Any:
        return await handler(ls, arguments)

    return run


async def restart_model(ls: Server, arguments: Sequence[Any]) -> str | None:
    """Load the model anew and forget what the one before told; None when it is there, else why not."""
    with progress(ls, "rlm-lsp: loading the model", counted=False):
        failure = await ls.engine.reload(ls.settings)
    if failure is not None:
        ls.show_failure(failure)
        return failure
    await clear_cache(ls, ())
    return None


async def clear_cache(ls: Server, arguments: Sequence[Any]) -> int:
    """Forget all predictions; of how many units they were."""
    count = ls.engine.clear()
    for uri in ls.documents.uris:
        ls.changes.forget(uri)
    ls.revisions.forget()
    ls.refresh_hints()
    diagnostics.refresh(ls)
    return count


async def show_log(ls: Server, arguments: Sequence[Any]) -> str:
    """The newest lines of the server's log."""
    return ls.log_tail.text()


async def toggle_hints(ls: Server, arguments: Sequence[Any]) -> bool:
    """Hide the hints of a file (``{"file": URI}``) or a language (``{"language": NAME}``), or show them again.

    Whether they are hidden now.
    """
    asked = arguments[0] if arguments else None
    if isinstance(asked, Mapping) and isinstance(asked.get("language"), str):
        is_hidden = ls.hints_hidden.toggle_language(asked["language"])
    elif isinstance(asked, Mapping) and isinstance(asked.get("file"), str):
        is_hidden = ls.hints_hidden.toggle_file(asked["file"])
    else:
        raise _invalid('name a file or a language, like {"file": "file:///a.py"}')
    ls.refresh_hints()
    return is_hidden


async def predict_file(ls: Server, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """All predictions of a document, each as ``rlm-lsp predict --format json`` has it."""
    analysis = await _analysis(ls, arguments)
    codes = [placed.analysed.code for placed in analysis.units]
    with progress(ls, "rlm-lsp: predicting", cancellable=True) as shown:
        cancelled = _cancellation(ls, shown)
        for start in range(0, len(codes), STEP_UNITS):
            if cancelled():
                raise JsonRpcRequestCancelled("predicting was cancelled")
            await ls.engine.predict(codes[start : start + STEP_UNITS], cancelled)
            shown.report(min(start + STEP_UNITS, len(codes)), len(codes))
    return [row for placed in analysis.units for row in _rows(ls, analysis, placed)]


async def copy_json(ls: Server, arguments: Sequence[Any]) -> str:
    """The predictions of the unit at a position, as JSON text for the clipboard."""
    analysis = await _analysis(ls, arguments)
    placed = _unit(analysis, _position(arguments))
    await ls.engine.predict([placed.analysed.code])
    return json.dumps(_rows(ls, analysis, placed), indent=2, ensure_ascii=False)


async def measure_command(ls: Server, arguments: Sequence[Any]) -> str:
    """Show, and return for the clipboard, the command line that measures a document's package. Nothing is run."""
    analysis = await _analysis(ls, arguments)
    command = await asyncio.to_thread(command_for, analysis.document.path)
    if command is None:
        raise _invalid(f"{analysis.document.uri}: is in no Python package, so its tests are not known")
    ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"To measure, run: {command}"))
    return command


async def explain_unit(ls: Server, arguments: Sequence[Any]) -> dict[str, Any]:
    """Which lines the prediction of the unit at a position rests on; a third argument names the metric.

    ``lines`` has each line's number in the document (0-based), its text, and the prediction with it over that without
    it; ``markdown`` tells the strongest to people.
    """
    analysis = await _analysis(ls, arguments)
    placed = _unit(analysis, _position(arguments))
    code, metric = placed.analysed.code, arguments[2] if len(arguments) > 2 else None
    if metric is not None and metric not in _METRICS:
        raise _invalid(f"{metric!r} is no metric; name one of {', '.join(_METRICS)}")
    asked = QuerySelection(None if metric is None else (metric,), ls.settings_for(analysis.document.uri).devices)
    queries = await ls.engine.run(lambda predictor: queries_for(predictor, code, asked))
    if not queries:
        raise _invalid("there is no model, or it has no such metric for this unit")
    with progress(ls, f"rlm-lsp: explaining {placed.analysed.unit.qualname}", cancellable=True) as shown:
        cancelled, stopped = _cancellation(ls, shown), Event()
        stepwise = _Stepwise(ls, shown, lambda: stopped.is_set() or cancelled())
        try:
            found = await asyncio.to_thread(explain, stepwise, code, queries[0])
        except _CancelledError:
            raise JsonRpcRequestCancelled("explaining was cancelled") from None
        finally:
            stopped.set()
    return _explained(analysis, placed, queries[0], found, ls)


class _Stepwise:
    """The engine's model for another thread: asked in small steps, so that others have their turns between them."""

    def __init__(self, ls: Server, shown: Progress, cancelled: Callable[[], bool]) -> None:
        self._engine, self._shown, self._cancelled = ls.engine, shown, cancelled
        self._loop = asyncio.get_running_loop()

    @property
    def model_id(self) -> str:
        return self._on_worker(lambda predictor: predictor.model_id)

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return self._on_worker(lambda predictor: predictor.default_queries(basis, language))

    def devices(self, basis: Basis) -> tuple[str, ...]:
        return self._on_worker(lambda predictor: predictor.devices(basis))

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        answers: list[list[Prediction]] = []
        for start in range(0, len(texts), _STEP_LINES):
            end = start + _STEP_LINES
            answers += self._on_worker(partial(_predict, texts[start:end], queries[start:end]))
            self._loop.call_soon_threadsafe(self._shown.report, min(end, len(texts)), len(texts))
        return answers

    def _on_worker(self, work: Callable[[Predictor], _Result]) -> _Result:
        answer = None
        if not self._cancelled():
            answer = asyncio.run_coroutine_threadsafe(self._engine.run(work, self._cancelled), self._loop).result()
        if answer is None:
            raise _CancelledError
        return answer


def _predict(
    texts: Sequence[CodeText], queries: Sequence[Sequence[Query]], predictor: Predictor
) -> list[list[Prediction]]:
    return predictor.predict(texts, queries)


def _explained(analysis: Analysis, placed: Placed, query: Query, found: Explanation, ls: Server) -> dict[str, Any]:
    source, unit = analysis.document.source, placed.analysed.unit
    texts = placed.analysed.code.text.splitlines(keepends=True)
    # The text begins with the indentation of its first line, if nothing else stands before it.
    start = unit.span.start_byte
    line_start = start - len(texts[0]) + len(texts[0].lstrip(" \t")) if texts else start
    start = line_start if source[line_start:start].strip() == b"" else start
    offsets = [start]
    for text in texts:
        offsets.append(offsets[-1] + len(text.encode()))
    lines = Lines(source, ls.workspace.position_codec)
    numbers = {effect.line: lines.line_of(offsets[effect.line]) for effect in found.effects}
    return {
        "qualname": unit.qualname,
        "metric": query.metric,
        "device": query.device,
        "workload": dict(query.workload),
        "abstained": reason(found.abstained) if found.abstained is not None else None,
        "skipped": found.skipped,
        "lines": [
            {"line": numbers[effect.line], "text": effect.text, "ratio": effect.ratio} for effect in found.effects
        ],
        "markdown": markdown(unit.qualname, query, found, numbers),
    }


def markdown(qualname: str, query: Query, found: Explanation, numbers: Mapping[int, int]) -> str:
    """The strongest lines of an explanation for people; ``numbers`` gives each line's 0-based place in its document."""
    name = "this file" if qualname == "<file>" else f"`{qualname}`"
    if found.abstained is not None:
        return f"The {query.metric} of {name} cannot be explained because {reason(found.abstained)}."
    head = f"Lines on which the {query.metric} of {name} rests: the prediction with the line over that without it"
    rows = [
        f"| {numbers[effect.line] + 1} | {effect.ratio:.2f}× | {_cell(effect.text)} |"
        for effect in strongest(found, _SHOWN_LINES)
    ]
    tail = f"\n\n{found.skipped} more lines were not tried." if found.skipped else ""
    note = "This is the model's view of a line, not a measurement of it."
    return f"{head}.\n\n| line | ratio | text |\n|---|---|---|\n" + "\n".join(rows) + f"{tail}\n\n{note}"


def _cell(text: str) -> str:
    shown = text.strip().replace("|", "\\|")
    fence = "``" if "`" in shown else "`"
    return f"{fence} {shown} {fence}" if fence == "``" else f"{fence}{shown}{fence}"


def _rows(ls: Server, analysis: Analysis, placed: Placed) -> list[dict[str, Any]]:
    document = analysis.document
    file = str(document.path) if document.path is not None else document.uri
    predictions = ls.cached(document.uri, placed.analysed.code) or ()
    return [unit_row(file, placed.analysed, prediction) for prediction in predictions]


def _cancellation(ls: Server, shown: Progress) -> Callable[[], bool]:
    """Whether the request has been cancelled, by its id or by its progress; may be asked from any thread."""
    number = ls.protocol.msg_id
    request = ls.protocol._request_futures.get(number) if number is not None else None
    return lambda: shown.cancelled or (request is not None and request.cancelled())


async def _analysis(ls: Server, arguments: Sequence[Any]) -> Analysis:
    asked = arguments[0] if arguments else None
    uri = asked.get("uri") if isinstance(asked, Mapping) else asked
    if not isinstance(uri, str):
        raise _invalid("name a document by its URI")
    await ls.engine.wait_loaded()
    analysis = await ls.analysis(uri)
    if analysis is None:
        raise _invalid(f"{uri}: is not open, or in no language that gets predictions")
    if not ls.engine.ready:
        raise _invalid("there is no model; the log says why")
    return analysis


def _position(arguments: Sequence[Any]) -> types.Position:
    first = arguments[0] if arguments else None
    asked = arguments[1] if len(arguments) > 1 else first.get("position") if isinstance(first, Mapping) else None
    if isinstance(asked, types.Position):
        return asked
    try:
        return _CONVERTER.structure(asked, types.Position)
    except Exception:
        raise _invalid('name a position, like {"line": 3, "character": 0}') from None


def _unit(analysis: Analysis, position: types.Position) -> Placed:
    """The unit whose header is at a position, else the innermost around it."""
    placed = unit_at(analysis, position.line)
    if placed is not None:
        return placed
    around = [
        unit
        for unit in analysis.units
        if unit.analysed.unit.span.start_line <= position.line <= unit.analysed.unit.span.end_line
    ]
    if not around:
        raise _invalid(f"no unit is at line {position.line + 1}")
    return min(around, key=lambda unit: unit.analysed.unit.span.end_byte - unit.analysed.unit.span.start_byte)


def _invalid(text: str) -> JsonRpcInvalidParams:
    return JsonRpcInvalidParams(text)
