"""``rlm-lsp/network`` and ``rlm-lsp/networks``: an ``.onnx`` file, or a folder of them, and what the model says of it.

A file is read as a graph, off the event loop; its weights are not loaded and nothing of it is run.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams
from rlm_core import RlmError
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.queries.devices import DEVICES, canonical_device
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units, read_source
from rlm_core.types import CodeText, Prediction, Query

from rlm_lsp.history.measured import measured_here
from rlm_lsp.rendering import values as render
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.json_rows import prediction_fields
from rlm_lsp.rendering.measured import measured_words

from .fields import fields, optional, path_of
from .progress import Progress, progress

if TYPE_CHECKING:
    from rlm_lsp.lsp.server import Server

NETWORK, NETWORKS = "rlm-lsp/network", "rlm-lsp/networks"
MOST_NETWORKS = 500
_KEPT_TEXTS = 1000
_BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Point:
    """A network of a folder: its predicted accuracy and latency, or why there is none."""

    path: Path
    accuracy: Prediction | None = None
    latency: Prediction | None = None
    reason: str | None = None

    @property
    def at(self) -> tuple[float, float] | None:
        """Median latency in seconds and median accuracy, None if one of them is not predicted."""
        medians = [one.median for one in (self.latency, self.accuracy) if one is not None and one.median is not None]
        return (medians[0], medians[1]) if len(medians) == 2 else None


class Texts:
    """The compact texts of ``.onnx`` files that were read, by path, time and size."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Path, int, int], CodeText] = OrderedDict()

    def read(self, path: Path) -> CodeText:
        """What the model reads of a file; blocks.

        Raises:
            SourceError, ModelError: it cannot be read as an ONNX model, or the package for that is missing.
        """
        try:
            state = path.stat()
        except OSError as error:
            raise RlmError(f"{path}: cannot be read ({error.strerror})") from None
        key = path, state.st_mtime_ns, state.st_size
        found = self._known.get(key)
        if found is None:
            parsed = read_source(path)
            found = self._known[key] = CodeText(parsed.source.decode(), parsed.language, "network")
            while len(self._known) > _KEPT_TEXTS:
                self._known.popitem(last=False)
        return found


async def network(ls: Server, params: Any) -> dict[str, Any]:
    """The text of a network (``uri``), its accuracy, and its latency on every device that the model knows.

    ``batch`` asks for another batch than the model's usual one. ``measured`` are lines about what ``rlm-lsp bench``
    measured of it.
    """
    named = fields(params)
    path, batch = _onnx(path_of(named)), optional(named, _BATCH, int)
    await _ready(ls)
    try:
        code = await asyncio.to_thread(ls.network_texts.read, path)
    except RlmError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    own = ls.settings_store.settings_of(path).devices

    def ask(predictor: Predictor) -> tuple[str, list[Prediction]]:
        devices = [*own, *(known for known in predictor.devices("network") if known not in map(canonical_device, own))]
        queries = _queries(predictor, code, devices, batch)
        return predictor.model_id, list(ls.engine.answers(predictor, [(code, queries)])[0])

    model, predictions = await ls.engine.run(ask) or ("", [])
    measured = await asyncio.to_thread(
        measured_here, find_units(ParsedSource(code.text.encode(), code.language))[0], path
    )
    return {
        "name": path.name,
        "text": code.text,
        "model": model,
        "accuracy": [_told(one) for one in predictions if one.metric == "accuracy"],
        "latency": [_told(one) for one in predictions if one.metric == "latency"],
        "measured": list(measured_words(measured)),
    }


async def networks(ls: Server, params: Any) -> dict[str, Any]:
    """The networks of a folder (``uri``) by latency on a ``device``, and which of them none of the others beats.

    ``points`` are the networks with both an accuracy and a latency, ``front`` among them those for which no other is at
    least as quick and as accurate, and better in one; ``others`` have a ``reason`` each.
    """
    named = fields(params)
    folder, device, batch = path_of(named), optional(named, "device", str), optional(named, _BATCH, int)
    await _ready(ls)
    try:
        paths = await asyncio.to_thread(lambda: sorted(path for path in folder.glob("*.onnx") if path.is_file()))
    except OSError as error:
        raise JsonRpcInvalidParams(f"{folder}: cannot be read ({error.strerror})") from None
    with progress(ls, f"rlm-lsp: reading {folder.name}", cancellable=True) as shown:
        points = await _points(ls, paths[:MOST_NETWORKS], device, batch, shown)
    known = await ls.engine.run(lambda predictor: predictor.devices("network")) or ()
    placed = sorted((point for point in points if point.at is not None), key=lambda point: (point.at, point.path))
    best = front([point.at for point in placed if point.at is not None])
    return {
        "folder": folder.name,
        "devices": [{"id": name, "name": _device_name(name)} for name in known],
        "device": next((point.latency.device for point in placed if point.latency is not None), device),
        "points": [
            {
                "uri": point.path.as_uri(),
                "name": point.path.stem,
                "accuracy": _told(point.accuracy),
                "latency": _told(point.latency),
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
        "left": max(len(paths) - MOST_NETWORKS, 0),
    }


def front(points: Sequence[tuple[float, float]]) -> set[int]:
    """Which points, each of latency and accuracy, no other one beats: at least as good in both and better in one."""
    found: set[int] = set()
    best = float("-inf")
    order = sorted(range(len(points)), key=lambda number: (points[number][0], -points[number][1]))
    for number in order:
        latency, accuracy = points[number]
        if accuracy > best or any(points[other] == (latency, accuracy) for other in found):
            found.add(number)
            best = max(best, accuracy)
    return found


async def _points(
    ls: Server, paths: Sequence[Path], device: str | None, batch: int | None, shown: Progress
) -> list[Point]:
    found: list[Point] = []
    for done, path in enumerate(paths):
        if shown.cancelled:
            break
        shown.report(done, len(paths))
        try:
            code = await asyncio.to_thread(ls.network_texts.read, path)
        except RlmError as error:
            found.append(Point(path, reason=str(error)))
            continue

        def ask(predictor: Predictor, code: CodeText = code) -> dict[str, Prediction]:
            queries = _queries(predictor, code, [device] if device is not None else [], batch)
            return {one.metric: one for one in reversed(ls.engine.answers(predictor, [(code, queries)])[0])}

        told = await ls.engine.run(ask) or {}
        found.append(Point(path, told.get("accuracy"), told.get("latency")))
    return found


async def _ready(ls: Server) -> None:
    await ls.engine.wait_loaded()
    if not ls.engine.ready:
        raise JsonRpcInvalidParams("there is no model; the log says why")


def _onnx(path: Path) -> Path:
    if path.suffix.lower() != ".onnx":
        raise JsonRpcInvalidParams(f"{path}: is no .onnx file")
    return path


def _queries(predictor: Predictor, code: CodeText, devices: Sequence[str], batch: int | None) -> list[Query]:
    workload = {_BATCH: str(batch)} if batch is not None else {}
    found = queries_for(predictor, code, QuerySelection(None, devices))
    return [
        Query(one.metric, one.device, {**one.workload, **workload}) if one.metric == "latency" else one for one in found
    ]


def _told(prediction: Prediction | None) -> dict[str, Any] | None:
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
    known = DEVICES.get(device or "")
    return known.name if known is not None else device


def _reason(point: Point) -> str:
    reasons = [one.abstained for one in (point.accuracy, point.latency) if one is not None and one.abstained]
    return reason(reasons[0]) if reasons else "reading was cancelled"
