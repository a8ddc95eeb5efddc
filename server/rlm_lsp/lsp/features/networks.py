"""``rlm-lsp/network`` and ``rlm-lsp/networks``: predictions for an ``.onnx`` file, or for a folder of them.

A file is read as a graph, off the event loop; its weights are not loaded and nothing in it is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
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
from rlm_core.queries.devices import canonical_device
from rlm_core.queries.network_sizes import network_sizes, sized_network, valid_sizes
from rlm_core.source.onnx_graph.parse import open_sizes
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units, read_source
from rlm_core.types import Anchor, CodeText, Prediction, Query

from rlm_lsp.lsp.session import Session
from rlm_lsp.rendering.abstentions import reason
from rlm_lsp.rendering.hover import measured_words
from rlm_lsp.rendering.json_rows import device_name, labelled_fields, ratio_fields

from .progress import WorkProgress, progress
from .requests import convert, file_path, require_model

NETWORK, NETWORKS = "rlm-lsp/network", "rlm-lsp/networks"
MAX_NETWORKS = 500
_MAX_TEXTS = 1000


class NetworkParams(msgspec.Struct):
    """A file or folder, and optionally a device and sizes of the inputs by name, such as ``batch`` or ``image``.

    These take precedence over the sizes in the settings. ``other`` is a file that the file is compared with.
    """

    uri: str
    other: str | None = None
    device: str | None = None
    sizes: dict[str, int] = {}


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


def read_network(path: Path, root: Path | None = None, sizes: Mapping[str, int] | None = None) -> CodeText:
    """Return the text that the model reads of an ``.onnx`` file; blocks. Texts are cached by path, time and size.

    ``root``: the folder in which it was found, see :func:`rlm_core.source.units.read_source`. ``sizes``: those at which
    it is asked about.

    Raises:
        SourceError, ModelError: it cannot be read as an ONNX model, or the package for that is missing.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise RlmError(f"{path}: cannot be read ({error.strerror})") from None
    text = _text_of(path, root, tuple(sorted((sizes or {}).items())), state.st_mtime_ns, state.st_size)
    return sized_network(text, sizes or {})


@lru_cache(_MAX_TEXTS)
def _text_of(
    path: Path, root: Path | None, sizes: tuple[tuple[str, int], ...], modified_ns: int, size: int
) -> CodeText:
    parsed = read_source(path, root, dict(sizes))
    return CodeText(parsed.source.decode(), parsed.language, "network")


def register(server: LanguageServer, session: Session) -> None:
    """Answer both requests."""
    server.feature(NETWORK)(partial(network, session))
    server.feature(NETWORKS)(partial(networks, session))


@dataclass(frozen=True, slots=True)
class NetworkAnswers:
    """The text of a network, the model that read it, and its answers."""

    code: CodeText
    model: str
    predictions: tuple[Prediction, ...]


async def answers_about(
    session: Session, path: Path, sizes: Mapping[str, int], *, all_devices: bool = True
) -> NetworkAnswers:
    """Predict the network in a file for the devices in the settings, or for the model's usual ones.

    ``sizes`` take precedence over those in the settings. With ``all_devices`` the answers are for all other devices
    that the model knows too.

    Raises:
        RlmError: the file cannot be read as a network.
    """
    code = await asyncio.to_thread(read_network, path, None, _sizes(session, path, sizes))
    chosen = session.settings_store.settings_of(path).devices

    def predict(predictor: Predictor) -> NetworkAnswers:
        others = predictor.devices("network") if all_devices else ()
        devices = [*chosen, *(device for device in others if device not in map(canonical_device, chosen))]
        queries = queries_for(predictor, code, QuerySelection(None, devices))
        if all_devices:
            energies = queries_for(predictor, code, QuerySelection(("energy",)))
            queries += tuple(query for query in energies if query not in queries)
        answers = session.predictions.answer(predictor, [(code, queries)])[0]
        return NetworkAnswers(code, predictor.model_id, tuple(answers))

    return await session.predictions.run(predict) or NetworkAnswers(code, "", ())


async def network(session: Session, params: Any) -> dict[str, Any]:
    """The text of a network (``uri``), its accuracy, and its costs on every device that the model knows.

    ``sizes`` are those that were asked about, of the request or else of the settings; ``open`` those that the file
    leaves open, with the values that were used. ``measured`` are lines about what ``rlm-lsp bench`` measured.
    ``ratios`` are its costs over those of the ``other`` file.
    """
    named = convert(params, NetworkParams)
    path = file_path(named.uri)
    if path.suffix.lower() != ".onnx":
        raise JsonRpcInvalidParams(f"{path}: not an .onnx file")
    await require_model(session)
    try:
        found = await answers_about(session, path, named.sizes)
        sizes = _sizes(session, path, named.sizes)
        other = await asyncio.to_thread(read_network, file_path(named.other), None, sizes) if named.other else None
    except RlmError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    code = found.code
    ratios = await _ratios(session, other, found) if other is not None else []
    unit = find_units(ParsedSource(code.text.encode(), code.language))[0]
    measured = await asyncio.to_thread(session.measurements.find, unit, path)
    anchors = [Anchor(cost, code if before is not None else None) for cost, before in measured]
    by_metric: dict[str, list[dict[str, Any]]] = {"accuracy": [], "latency": [], "memory": [], "energy": []}
    for answer in found.predictions:
        by_metric[answer.metric].append(labelled_fields(answer))
    return {
        "name": path.name,
        "text": code.text,
        "sizes": {name: int(value) for workload in code.workloads for name, value in workload},
        "open": open_sizes(code.text),
        "model": found.model,
        **by_metric,
        "measured": list(measured_words(anchors)),
        "ratios": ratios,
    }


async def _ratios(session: Session, other: CodeText, found: NetworkAnswers) -> list[dict[str, Any]]:
    """The costs of a network over those of another one, where both are predicted."""
    queries = [
        Query(answer.metric, answer.device, _setting_of(answer.workload))
        for answer in found.predictions
        if answer.metric != "accuracy" and answer.median is not None
    ]
    compared = await session.predictions.run(
        lambda predictor: session.predictions.compare(predictor, [(other, found.code, queries)])
    )
    return [ratio_fields(ratio) for line in compared or () for ratio in line if ratio.ratio is not None]


def _setting_of(workload: Mapping[str, str]) -> dict[str, str]:
    """A workload without the shapes of inputs, which differ between networks."""
    return {name: value for name, value in workload.items() if not name.startswith("arg")}


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
        "devices": [{"id": name, "name": device_name(name)} for name in known],
        "device": next((point.latency.device for point in placed if point.latency is not None), named.device),
        "points": [
            {
                "uri": point.path.as_uri(),
                "name": point.path.stem,
                "accuracy": labelled_fields(point.accuracy),
                "latency": labelled_fields(point.latency),
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
            code = await asyncio.to_thread(read_network, path, path.parent, _sizes(session, path, named.sizes))
        except RlmError as error:
            points.append(NetworkPoint(path, reason=str(error)))
            continue

        def predict(predictor: Predictor, code: CodeText = code) -> dict[str, Prediction]:
            queries = queries_for(predictor, code, QuerySelection(None, devices))

            answers = session.predictions.answer(predictor, [(code, queries)])[0]
            return {answer.metric: answer for answer in reversed(answers)}

        by_metric = await session.predictions.run(predict) or {}
        points.append(NetworkPoint(path, by_metric.get("accuracy"), by_metric.get("latency")))
    return points


def _sizes(session: Session, path: Path, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes at which a file is asked about."""
    return {**network_sizes(session.size_rules(path)), **valid_sizes(given)}


def _reason(point: NetworkPoint) -> str:
    answers = [answer for answer in (point.accuracy, point.latency) if answer is not None]
    reasons = [answer.abstained for answer in answers if answer.abstained]
    return reason(reasons[0]) if reasons else "reading was cancelled"
