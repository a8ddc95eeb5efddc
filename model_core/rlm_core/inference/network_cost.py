"""The latency of a network as a sum over the kernels that a device runs, for networks of any family.

Input: the text of a graph, a device and a workload (batch, types, compiled or not). Output: seconds with quantiles, the
share of each kernel, or the reason why there is no number. A kernel of each kind costs so much per multiply-accumulate
and per moved element; starting a kernel and reading weights cost once per batch. The factors of a setting (a device
with all of its workload but the batch) were fitted to measured networks (:mod:`rlm_core.training.network_cost_fit`).

A number is stated only for batches like those of the measurements, and where most of the time is spent in kinds of
kernels that enough measured families have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from rlm_core.errors import ModelError, RlmError
from rlm_core.files import read_regular
from rlm_core.source.onnx_graph.graph import Graph, Shape
from rlm_core.source.onnx_graph.kernels import KINDS, Kernel, kernels
from rlm_core.source.onnx_graph.node_codec import shape_text
from rlm_core.source.onnx_graph.open_sizes import USUAL
from rlm_core.source.onnx_graph.operator_words import kernel_words
from rlm_core.source.onnx_graph.parse import parse
from rlm_core.types import (
    LEVELS,
    MEDIAN,
    Abstention,
    AbstentionCode,
    Basis,
    CalibrationSource,
    CodeText,
    Prediction,
    Query,
)

from .calibration import bands
from .network_parts import network_parts
from .predictor import QueryScope

Array = npt.NDArray[np.float64]
NETWORK_COSTS = "network_costs.json"
FORMAT = "rlm-network-costs-1"
_MAX_BYTES = 4 * 2**20
BASIS: Basis = "network"
BATCH = "batch"
_ARITHMETIC = ("conv", "pointwise", "grouped", "depthwise", "product", "attention", "batched", "recurrent", "pool")
MACS, MOVED = tuple(f"{kind}.macs" for kind in _ARITHMETIC), tuple(f"{kind}.moved" for kind in KINDS)
ONCE = ("kernels", "weights")
"""What costs once per batch: starting a kernel, and reading a million weights."""
COLUMNS = (*MACS, *MOVED, *ONCE)
"""Per image: 1e9 multiply-accumulates (of a pool, elements in windows) and 1e6 moved elements by kind; :data:`ONCE`."""
_PLACE = {name: number for number, name in enumerate(COLUMNS)}
_MOST_UNKNOWN = 0.3
"""Of the time: the largest share of kinds of kernels that few measured families have."""
# The parts of a workload that say how a network was trained, which its latency does not depend on.
_OF_ACCURACY = frozenset(("dataset", "epochs", "subset"))
_MOST_OPEN = 0.1
"""Of the kernels: the largest share whose sizes do not follow from the inputs."""
_NAMED = 3  # unknown operators
# Seconds per kernel, above which a GPU computes longer than a framework takes to start the next kernel.
_LAUNCH = 2e-5
_BATCH_MARGIN = 2.0  # beyond the smallest and the largest measured batch


class SettingCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fitted costs of a setting.

    ``seconds``: per unit of each of :data:`COLUMNS`. ``errors``: quantiles of log(measured / predicted) at ``LEVELS``,
    for families that the fit did not see. ``batches``: the 5 % and 95 % quantiles of the measured ones, and the median.
    ``known``: the kinds of kernels that enough families have.
    """

    device: str
    workload: dict[str, str]
    seconds: tuple[float, ...]
    errors: tuple[float, ...]
    batches: tuple[int, int, int]
    known: tuple[str, ...]
    groups: int
    rows: int

    def at(self, batch: int) -> dict[str, str]:
        """The whole workload of a query with a batch."""
        return {BATCH: str(batch), **self.workload}


class _CostFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    columns: tuple[str, ...]
    settings: tuple[SettingCost, ...]


@dataclass(frozen=True, slots=True)
class KernelCost:
    """A kernel of a network and its predicted share of the latency."""

    kernel: Kernel
    seconds: float


@dataclass(frozen=True, slots=True)
class NetworkCost:
    """The latency of a network in seconds: quantiles at ``LEVELS``, by kernel in the graph's order, and its setting.

    ``arithmetic`` is the share of the time that grows with multiply-accumulates, ``once`` that of :data:`ONCE`; the
    rest moves data.
    """

    setting: SettingCost
    workload: Mapping[str, str]
    quantiles: tuple[float, ...]
    parts: tuple[KernelCost, ...]
    arithmetic: float
    once: float


@dataclass(frozen=True, slots=True)
class NetworkWork:
    """The kernels of a graph with the ``operators`` that lead them, and the batch of the graph.

    ``amounts``: of :data:`COLUMNS` per graph, ``(kernels, columns)``. ``open_share``: of the kernels, those with sizes
    that do not follow from the inputs; they count as 1. ``assumed``: shapes of inputs that the model leaves open, by
    their names in a workload (``arg0``). ``sizes``: of these inputs, by name (``image``).
    ``labels``: the kernels' names for people.
    """

    kernels: tuple[Kernel, ...]
    operators: tuple[str, ...]
    amounts: Array
    batch: int
    open_share: float
    assumed: Mapping[str, str]
    sizes: Mapping[str, int]
    labels: tuple[str, ...]

    def at(self, batch: int) -> Array:
        """The amounts for a batch, ``(kernels, columns)``."""
        amounts = self.amounts * (batch / self.batch)
        amounts[:, -len(ONCE) :] = self.amounts[:, -len(ONCE) :]
        return amounts


@lru_cache(256)
def work_of(text: str) -> NetworkWork:
    """The work of a graph, from its text.

    Raises:
        DataError: the text is not that of a graph.
    """
    graph = parse(text)
    found = kernels(graph, fused=False)
    amounts = np.zeros((len(found), len(COLUMNS)))
    for row, kernel in zip(amounts, found, strict=True):
        if kernel.kind in _ARITHMETIC:
            row[_PLACE[f"{kernel.kind}.macs"]] = (kernel.macs or kernel.operations) / 1e9
        row[_PLACE[f"{kernel.kind}.moved"]] = (kernel.read + kernel.written) / 1e6
        row[_PLACE["kernels"]] = 1.0
        row[_PLACE["weights"]] = kernel.weights / 1e6
    operators = tuple(graph.nodes[kernel.nodes[0]].operator for kernel in found)
    is_open = [not all(map(_is_closed, graph.nodes[kernel.nodes[-1]].shapes)) for kernel in found]
    assumed = {f"arg{number}": shape_text(graph.inputs[number].shape) for number in graph.assumed}
    labels = tuple(kernel_words(graph, kernel) for kernel in found)
    open_share = sum(is_open) / max(len(is_open), 1)
    return NetworkWork(found, operators, amounts, _batch_of(graph), open_share, assumed, dict(graph.sizes), labels)


def _is_closed(shape: Shape) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape)


def _batch_of(graph: Graph) -> int:
    """The first size that all inputs and outputs share; 1 where they do not."""
    shapes = [value.shape for value in graph.inputs] + [graph.shape(operand) for operand in graph.outputs]
    first = {shape[0] if shape else None for shape in shapes}
    size = first.pop() if len(first) == 1 else 1
    return size if isinstance(size, int) and size > 0 else 1


class NetworkCosts:
    """The costs of all settings, in a model's directory. Reads the file on first use; safe to use from threads."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @cached_property
    def _settings(self) -> Mapping[str, tuple[SettingCost, ...]]:
        found: dict[str, tuple[SettingCost, ...]] = {}
        for setting in load(self._path) if self._path is not None else ():
            found[setting.device] = (*found.get(setting.device, ()), setting)
        return found

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices with measured networks."""
        return tuple(self._settings)

    def setting_of(self, device: str | None, workload: Mapping[str, str]) -> SettingCost | None:
        """The first setting of a device that agrees with all that the workload names."""
        named = {name: value for name, value in workload.items() if name != BATCH}
        for setting in self._settings.get(device or "", ()):
            if all(setting.workload.get(name) == value for name, value in named.items()):
                return setting
        return None

    def scope(self, scope: QueryScope) -> QueryScope:
        """A model's scope with these devices; what a query leaves open is for :meth:`setting_of` to choose."""
        known = tuple(scope.devices.get(BASIS, ()))
        devices = (*known, *(device for device in self.devices if device not in known))
        defaults = {f"{BASIS}@{device}": {"device": device, "workload": {}} for device in self.devices}
        return replace(scope, devices={**scope.devices, BASIS: devices}, defaults={**scope.defaults, **defaults})

    def answer(self, code: CodeText, query: Query, model: str) -> Prediction | None:
        """The answer to a query about a network; None for a query that is not about these devices."""
        if (
            code.basis != BASIS
            or query.metric != "latency"
            or query.device is None
            or query.device not in self._settings
        ):
            return None
        try:
            found = self.cost(code.text, query.device, query.workload)
        except RlmError as error:
            found = Abstention(AbstentionCode.ANALYSIS_FAILED, {"error": type(error).__name__})
        if isinstance(found, Abstention):
            return Prediction.missing(code, query, model, found)
        source = CalibrationSource(f"{BASIS}/onnx/latency@{query.device}")
        banded = bands(found.quantiles, found.setting.groups, found.setting.rows, source)
        median = found.quantiles[MEDIAN]
        seconds = [part.seconds for part in found.parts]
        parts = network_parts(seconds, work_of(code.text).labels, found.arithmetic, found.once)
        answer = Prediction(
            BASIS, "latency", query.device, found.workload, model, median, banded, 0.0, False, None, found.quantiles
        )
        return replace(answer, parts=parts)

    def cost(self, text: str, device: str, workload: Mapping[str, str]) -> NetworkCost | Abstention:
        """The latency of a network.

        Raises:
            ModelError: the text is not that of a graph, or the file of the costs cannot be read.
        """
        work = work_of(text)
        asked = {name: value for name, value in workload.items() if name in USUAL}
        fixed = [f"{name} {value}" for name, value in asked.items() if str(work.sizes.get(name)) != value]
        if fixed:
            return Abstention(AbstentionCode.SIZES_FIXED, {"sizes": ", ".join(sorted(fixed))})
        of_accuracy = (item for item in workload.items() if item[0] in _OF_ACCURACY)
        ignored = {*work.assumed.items(), *asked.items(), *of_accuracy}
        workload = {name: value for name, value in workload.items() if (name, value) not in ignored}
        setting = self.setting_of(device, workload)
        if setting is None:
            named = ", ".join(f"{name} {value}" for name, value in sorted(workload.items()))
            details = {"metric": "latency", "workload": named, "device": device}
            return Abstention(AbstentionCode.SETTING_NOT_TRAINED, details)
        batch = _number(workload.get(BATCH, str(setting.batches[2])))
        if work.open_share > _MOST_OPEN:
            return Abstention(AbstentionCode.OPEN_SIZES, {"share": f"{work.open_share:.0%}"})
        found = cost_of(work, setting, batch) if batch is not None else None
        if found is None or (isinstance(found, NetworkCost) and not _is_saturated(found, batch or 0)):
            least, most, _ = setting.batches
            details = {"batch": workload.get(BATCH, ""), "device": device, "least": str(least), "most": str(most)}
            return Abstention(AbstentionCode.BATCH_NOT_MEASURED, details)
        return replace(found, workload={**found.workload, **work.assumed}) if isinstance(found, NetworkCost) else found


def _is_saturated(cost: NetworkCost, batch: int) -> bool:
    """Return whether a batch is like those of the measurements: nearly as large, or enough work for each kernel."""
    least, most, _ = cost.setting.batches
    is_enough = batch >= least / _BATCH_MARGIN or cost.quantiles[MEDIAN] >= _LAUNCH * len(cost.parts)
    return is_enough and batch <= most * _BATCH_MARGIN


def cost_of(work: NetworkWork, setting: SettingCost, batch: int) -> NetworkCost | Abstention:
    """The latency of a network in a setting, or the operator that is unknown."""
    amounts = work.at(batch)
    factors = np.array(setting.seconds)
    seconds = amounts @ factors
    total = float(seconds.sum())
    unknown = unknown_shares(work, setting, seconds)
    if not total > 0 or sum(unknown.values()) > _MOST_UNKNOWN:
        names = ", ".join(sorted(unknown, key=lambda name: -unknown[name])[:_NAMED])
        return Abstention(AbstentionCode.OPERATOR_NOT_MEASURED, {"operators": names, "device": setting.device})
    widening = 1 + sum(unknown.values()) / _MOST_UNKNOWN
    quantiles = tuple(total * math.exp(error * widening) for error in setting.errors)
    by_column = amounts.sum(axis=0) * factors / total
    arithmetic, once = float(by_column[: len(MACS)].sum()), float(by_column[-len(ONCE) :].sum())
    parts = tuple(KernelCost(kernel, float(part)) for kernel, part in zip(work.kernels, seconds, strict=True))
    return NetworkCost(setting, setting.at(batch), quantiles, parts, arithmetic, once)


def unknown_shares(work: NetworkWork, setting: SettingCost, seconds: Array) -> dict[str, float]:
    """The shares of operators whose kinds of kernels few measured families have.

    Each is that of the predicted time, of the multiply-accumulates or of the moved elements, whichever is largest.
    """
    macs = np.array([kernel.macs for kernel in work.kernels], float)
    moved = np.array([kernel.moved for kernel in work.kernels], float)
    shares = np.max([values / max(float(values.sum()), 1e-300) for values in (seconds, macs, moved)], axis=0)
    found: dict[str, float] = {}
    for kernel, operator, share in zip(work.kernels, work.operators, shares, strict=True):
        if kernel.kind not in setting.known:
            found[operator] = found.get(operator, 0.0) + float(share)
    return found


def _number(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if value > 0 else None


def save(settings: Sequence[SettingCost], path: Path) -> None:
    """Write the costs of settings; the first of a device is its default."""
    content = msgspec.json.format(msgspec.json.encode(_CostFile(FORMAT, COLUMNS, tuple(settings))), indent=0)
    path.write_bytes(content + b"\n")


def load(path: Path) -> tuple[SettingCost, ...]:
    """Read what :func:`save` wrote.

    Raises:
        ModelError: the file is missing or corrupt, or has other columns.
    """
    try:
        file = msgspec.json.decode(read_regular(path, _MAX_BYTES), type=_CostFile)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(f"{path}: missing or corrupt ({error}); reinstall the model") from None
    if file.format != FORMAT or file.columns != COLUMNS or not all(map(_is_sound, file.settings)):
        raise ModelError(f"{path}: corrupt, or of another version; reinstall the model")
    return file.settings


def _is_sound(setting: SettingCost) -> bool:
    """Return whether all numbers are finite, costs are not negative, and errors rise."""
    return (
        len(setting.seconds) == len(COLUMNS)
        and len(setting.errors) == len(LEVELS)
        and all(0 <= value < math.inf for value in setting.seconds)
        and all(math.isfinite(value) for value in setting.errors)
        and list(setting.errors) == sorted(setting.errors)
        and 0 < setting.batches[0] <= setting.batches[2] <= setting.batches[1]
    )
