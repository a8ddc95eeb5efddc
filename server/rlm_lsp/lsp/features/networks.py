"""``rlm-lsp/network`` and ``rlm-lsp/networks``: predictions for an ``.onnx`` file, or for a folder of them.

A file is read as a graph, off the event loop; its weights are not loaded and nothing in it is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from rlm_core import RlmError
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.devices import canonical_device, device_table
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units, read_source
from rlm_core.types import Anchor, CodeText, Prediction, Query

from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.hover import measured_words
from rlm_lsp.rendering.json_rows import prediction_fields

from .progress import WorkProgress, progress
from .requests import convert, file_path, require_model

NETWORK, NETWORKS = "rlm-lsp/network", "rlm-lsp/networks"
MAX_NETWORKS = 500
_MAX_TEXTS = 1000


class NetworkParams(msgspec.Struct):
    """A file or folder, and optionally a device and a batch size."""

    uri: str
    device: str | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class NetworkPoint:
    """A network of a folder: its predicted accuracy and latency, or the reason why there is none."""

    path: Path
    accuracy: Prediction | None = None
    latency: Prediction | None = None
    reason: str | None = None

    @property
    def at(self) -> tuple[float, float] | None:
        """Median latency in seconds and median accuracy, None if one of them is not predicted."""
        answers = [answer for answer in (self.latency, self.accuracy) if answer is not None]
        medians = [answer.median for answer in answers if answer.median is not None]
        return (medians[0], medians[1]) if len(medians) == 2 else None


def read_network(path: Path, root: Path | None = None) -> CodeText:
    """Return the text that the model reads of an ``.onnx`` file; blocks. Texts are cached by path, time and size.

    ``root``: the folder in which it was found, see :func:`rlm_core.source.units.read_source`.

    Raises:
        SourceError, ModelError: it cannot be read as an ONNX model, or the package for that is missing.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise RlmError(f"{path}: cannot be read ({error.strerror})") from None
    return _text_of(path, root, state.st_mtime_ns, state.st_size)


@lru_cache(_MAX_TEXTS)
def _text_of(path: Path, root: Path | None, modified_ns: int, size: int) -> CodeText:
    parsed = read_source(path, root)
    return CodeText(parsed.source.decode(), parsed.language, "network")


def register(server: LanguageServer, session: Session) -> None:
    """Answer both requests."""
    server.feature(NETWORK)(partial(network, session))
    server.feature(NETWORKS)(partial(networks, session))


async def network(session: Session, params: Any) -> dict[str, Any]:
    """The text of a network (``uri``), its accuracy, and its latency on every device that the model knows.

    ``batch`` replaces the model's default batch size. ``measured`` are lines about what ``rlm-lsp bench`` measured.
    """
    named = convert(params, NetworkParams)
    path = file_path(named.uri)
    if path.suffix.lower() != ".onnx":
        raise JsonRpcInvalidParams(f"{path}: not an .onnx file")
    await require_model(session)
    try:
        code = await asyncio.to_thread(read_network, path)
    except RlmError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    chosen = session.settings_store.settings_of(path).devices

    def predict(predictor: Predictor) -> tuple[str, list[Prediction]]:
        others = predictor.devices("network")
        devices = [*chosen, *(device for device in others if device not in map(canonical_device, chosen))]
        queries = _queries(predictor, code, devices, named.batch)
        return predictor.model_id, list(session.predictions.answer(predictor, [(code, queries)])[0])

    model, predictions = await session.predictions.run(predict) or ("", [])
    unit = find_units(ParsedSource(code.text.encode(), code.language))[0]
    found = await asyncio.to_thread(session.measurements.find, unit, path)
    anchors = [Anchor(cost, code if before is not None else None) for cost, before in found]
    return {
        "name": path.name,
        "text": code.text,
        "model": model,
        "accuracy": [_fields(answer) for answer in predictions if answer.metric == "accuracy"],
        "latency": [_fields(answer) for answer in predictions if answer.metric == "latency"],
        "measured": list(measured_words(anchors)),
    }


async def networks(session: Session, params: Any) -> dict[str, Any]:
    """The networks of a folder (``uri``) by latency on a ``device``, and which of them no other one beats.

    ``points`` are the networks with both an accuracy and a latency; ``front`` marks those for which no other one is at
    least as fast and as accurate, and better in one of the two. ``others`` have a ``reason`` each.
    """
    named = convert(params, NetworkParams)
    folder = file_path(named.uri)
    await require_model(session)
    try:
        paths = await asyncio.to_thread(lambda: sorted(path for path in folder.glob("*.onnx") if path.is_file()))
    except OSError as error:
        raise JsonRpcInvalidParams(f"{folder}: cannot be read ({error.strerror})") from None
    with progress(session, f"rlm-lsp: reading {folder.name}", cancellable=True) as shown:
        points = await _points(session, paths[:MAX_NETWORKS], named, shown)
    known = await session.predictions.run(lambda predictor: predictor.devices("network")) or ()
    placed = sorted((point for point in points if point.at is not None), key=lambda point: (point.at, point.path))
    best = front([point.at for point in placed if point.at is not None])
    return {
        "folder": folder.name,
        "devices": [{"id": name, "name": _device_name(name)} for name in known],
        "device": next((point.latency.device for point in placed if point.latency is not None), named.device),
        "points": [
            {
                "uri": point.path.as_uri(),
                "name": point.path.stem,
                "accuracy": _fields(point.accuracy),
                "latency": _fields(point.latency),
                "front": number in best,
            }
            for number, point in enumerate(placed)
            if point.accuracy is not None and point.latency is not None
        ],
        "others": [
            {"uri": point.path.as_uri(), "name": point.path.stem, "reason": point.reason or _reason(point)}
            for point in points
            if point.at is None
        ],
        "left": max(len(paths) - MAX_NETWORKS, 0),
    }


def front(points: Sequence[tuple[float, float]]) -> set[int]:
    """The indices of the points (latency, accuracy) that no other one beats: as good in both and better in one."""
    indices: set[int] = set()
    best = float("-inf")
    order = sorted(range(len(points)), key=lambda number: (points[number][0], -points[number][1]))
    for number in order:
        latency, accuracy = points[number]
        if accuracy > best or any(points[other] == (latency, accuracy) for other in indices):
            indices.add(number)
            best = max(best, accuracy)
    return indices


async def _points(
    session: Session, paths: Sequence[Path], named: NetworkParams, shown: WorkProgress
) -> list[NetworkPoint]:
    points: list[NetworkPoint] = []
    devices = [named.device] if named.device is not None else []
    for done, path in enumerate(paths):
        if shown.cancelled:
            break
        shown.report(done, len(paths))
        try:
            code = await asyncio.to_thread(read_network, path, path.parent)
        except RlmError as error:
            points.append(NetworkPoint(path, reason=str(error)))
            continue

        def predict(predictor: Predictor, code: CodeText = code) -> dict[str, Prediction]:
            queries = _queries(predictor, code, devices, named.batch)
            answers = session.predictions.answer(predictor, [(code, queries)])[0]
            return {answer.metric: answer for answer in reversed(answers)}

        by_metric = await session.predictions.run(predict) or {}
        points.append(NetworkPoint(path, by_metric.get("accuracy"), by_metric.get("latency")))
    return points


def _queries(predictor: Predictor, code: CodeText, devices: Sequence[str], batch: int | None) -> list[Query]:
    workload = {"batch": str(batch)} if batch is not None else {}
    return [
        Query(query.metric, query.device, {**query.workload, **workload}) if query.metric == "latency" else query
        for query in queries_for(predictor, code, QuerySelection(None, devices))
    ]


def _fields(prediction: Prediction | None) -> dict[str, Any] | None:
    if prediction is None:
        return None
    metric, band = prediction.metric, prediction.band
    return {
        **prediction_fields(prediction),
        "deviceName": _device_name(prediction.device),
        "medianText": render.median(prediction),
        "bandText": render.band(metric, band, prediction.floor) if band is not None else "",
    }


def _device_name(device: str | None) -> str | None:
    known = device_table().get(device or "")
    return known.name if known is not None else device


def _reason(point: NetworkPoint) -> str:
    answers = [answer for answer in (point.accuracy, point.latency) if answer is not None]
    reasons = [answer.abstained for answer in answers if answer.abstained]
    return reason(reasons[0]) if reasons else "reading was cancelled"
