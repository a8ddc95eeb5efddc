"""The latency or energy of a network as a sum over the kernels that a device runs, for networks of any family.

Input: the text of a graph, a device and a workload (batch, types, compiled or not). Output: seconds or joules with
quantiles, the share of each kernel, or the reason why there is no number. A kernel of each kind costs so much per
multiply-accumulate and per moved element; starting a kernel and reading weights cost once per batch. The factors of a
setting (a device with all of its workload but the batch) were fitted to measured networks
(:mod:`rlm_core.training.network_cost_fit`).

A number is stated only for batches like those of the measurements, and where most of the time is spent in kinds of
kernels that enough measured families have. Energy was measured on cells of one search space only, and is stated for
networks without much more work of any kind than these (:mod:`rlm_core.inference.network_range`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist

from rlm_core.errors import RlmError
from rlm_core.queries.devices import device_table
from rlm_core.source.onnx_graph.kernels import Kernel
from rlm_core.source.onnx_graph.open_sizes import USUAL
from rlm_core.types import (
    LEVELS,
    MEDIAN,
    Abstention,
    AbstentionCode,
    Basis,
    CalibrationSource,
    CodeText,
    Metric,
    Prediction,
    Query,
)

from .calibration import bands
from .network_parts import network_parts
from .network_range import beyond_measured
from .network_settings import BATCH, MACS, ONCE, SettingCost, load
from .network_work import Array, NetworkWork, factors_of, memory_of, work_kind, work_of
from .predictor import QueryScope

BASIS: Basis = "network"
METRICS: tuple[Metric, ...] = ("latency", "memory")
"""What is asked on each device with measured networks."""
_MOST_UNKNOWN = 0.5
"""Of the time: the largest share of kinds of kernels that few measured families have."""
# What such a kind costs is known to be within this standard deviation of a logarithm of the mean of known kinds. With
# each known kind declared unknown in turn, 80 % bands then hold for 81 to 88 % of networks, up to a share of .7.
_UNKNOWN = 1.2
_NORMAL = NormalDist()
# The parts of a workload that say how a network was trained, which its latency does not depend on.
_OF_ACCURACY = frozenset(("dataset", "epochs", "subset"))
_MOST_OPEN = 0.1
"""Of the kernels: the largest share whose sizes do not follow from the inputs."""
_NAMED = 3  # unknown operators
# Bytes of a floating-point number of weights and of activations, by the types of a setting.
_WIDTHS = {
    "fp32": (4.0, 4.0),
    "fp16": (2.0, 2.0),
    "bf16": (2.0, 2.0),
    "amp-fp16": (4.0, 2.0),
    "amp-bf16": (4.0, 2.0),
}
# Seconds per kernel of a GPU: networks with shorter kernels are off by more, of 100 microseconds by 1.3 times as much,
# of 30 by 1.5 times; of less than 20 hardly any was measured.
_LONG, _SHORTER, _SHORTEST = 2e-4, 0.25, 2e-5
_BATCH_MARGIN = 2.0  # beyond the smallest and the largest measured batch


@dataclass(frozen=True, slots=True)
class KernelCost:
    """A kernel of a network and its predicted share of the latency in seconds, or of the energy in joules."""

    kernel: Kernel
    cost: float


@dataclass(frozen=True, slots=True)
class NetworkCost:
    """The latency of a network in seconds, or its energy in joules: quantiles at ``LEVELS``, by kernel, the setting.

    ``arithmetic`` is the share of it that grows with multiply-accumulates, ``once`` that of :data:`ONCE`; the
    rest moves data.
    """

    setting: SettingCost
    workload: Mapping[str, str]
    quantiles: tuple[float, ...]
    parts: tuple[KernelCost, ...]
    arithmetic: float
    once: float


class NetworkCosts:
    """The costs of all settings, in a model's directory. Reads the file on first use; safe to use from threads."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @cached_property
    def _settings(self) -> Mapping[Metric, Mapping[str, tuple[SettingCost, ...]]]:
        found: dict[Metric, dict[str, tuple[SettingCost, ...]]] = {"latency": {}, "energy": {}}
        for setting in load(self._path) if self._path is not None else ():
            by_device = found[setting.metric]
            by_device[setting.device] = (*by_device.get(setting.device, ()), setting)
        return found

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices with measured latencies of networks."""
        return tuple(self._settings["latency"])

    def setting_of(
        self, device: str | None, workload: Mapping[str, str], metric: Metric = "latency"
    ) -> SettingCost | None:
        """The first setting of a metric on a device that agrees with all that the workload names."""
        named = {name: value for name, value in workload.items() if name != BATCH}
        for setting in self._settings[metric].get(device or "", ()):
            if all(setting.workload.get(name) == value for name, value in named.items()):
                return setting
        return None

    def scope(self, scope: QueryScope) -> QueryScope:
        """A model's scope with these devices; what a query leaves open is for :meth:`setting_of` to choose."""
        known = tuple(scope.devices.get(BASIS, ()))
        devices = (*known, *(device for device in self.devices if device not in known))
        defaults = {f"{BASIS}@{device}": {"device": device, "workload": {}} for device in self.devices}
        # Without a measured energy the query is about the model's usual device, and is refused there.
        for device in list(self._settings["energy"])[:1]:
            defaults[f"{BASIS}/energy"] = {"device": device, "workload": {}}
        return replace(scope, devices={**scope.devices, BASIS: devices}, defaults={**scope.defaults, **defaults})

    def queries(self) -> tuple[Query, ...]:
        """What is asked about a network by default: latency and memory on each device with measured latencies."""
        return tuple(Query(metric, device) for device in self.devices for metric in METRICS)

    def answer(self, code: CodeText, query: Query, model: str) -> Prediction | None:
        """The answer to a query about a network.

        None for a query about an accuracy, or about the latency on a device without measured networks.
        """
        is_known = (
            query.metric == "memory"
            or (query.metric == "latency" and query.device in self._settings["latency"])
            or (query.metric == "energy" and bool(self._settings["energy"]))
        )
        if (code.basis, code.language) != (BASIS, "onnx") or not is_known:
            return None
        try:
            asked = self._asked(code.text, query)
            if isinstance(asked, Abstention):
                return Prediction.missing(code, query, model, asked)
            found = self._memory(asked, query, model) if query.metric == "memory" else self._fitted(asked, query, model)
        except RlmError as error:
            found = Abstention(AbstentionCode.ANALYSIS_FAILED, {"error": type(error).__name__})
        return Prediction.missing(code, query, model, found) if isinstance(found, Abstention) else found

    def _fitted(self, asked: _Question, query: Query, model: str) -> Prediction | Abstention:
        """The latency with its parts, or the energy."""
        found = _cost(asked)
        if isinstance(found, Abstention):
            return found
        source = CalibrationSource(f"{BASIS}/onnx/{query.metric}@{query.device}")
        banded = bands(found.quantiles, found.setting.groups, found.setting.rows, source)
        seconds = [part.cost for part in found.parts] if query.metric == "latency" else []
        parts = network_parts(seconds, asked.work.labels, found.arithmetic, found.once) if seconds else None
        return Prediction(
            BASIS,
            query.metric,
            query.device,
            found.workload,
            model,
            found.quantiles[MEDIAN],
            banded,
            0.0,
            False,
            quantiles=found.quantiles,
            parts=parts,
        )

    def _memory(self, asked: _Question, query: Query, model: str) -> Prediction | Abstention:
        """The bytes of weights and activations alive at once; it is not fitted to anything, and so has no band."""
        setting, work = asked.setting, asked.work
        dtype = setting.workload["dtype"] if setting is not None else ""
        if setting is not None and setting.workload.get("mode") == "train":
            return Abstention(AbstentionCode.SETTING_NOT_TRAINED, _details("memory", {"mode": "train"}, query.device))
        known = memory_of(asked.text, _WIDTHS.get(dtype, (0.0, 0.0)))
        batch = asked.batch or work.batch
        value = known.weights + known.activations * batch / work.batch
        workload = setting.at(batch) if setting is not None else {**query.workload, BATCH: str(batch)}
        quantiles = (value,) * len(LEVELS)
        whole = {**workload, **work.assumed}
        return Prediction(BASIS, "memory", query.device, whole, model, value, (), 0.0, False, quantiles=quantiles)

    def cost(self, text: str, device: str, workload: Mapping[str, str]) -> NetworkCost | Abstention:
        """The latency of a network.

        Raises:
            ModelError: the text is not that of a graph, or the file of the costs cannot be read.
        """
        asked = self._asked(text, Query("latency", device, workload))
        return asked if isinstance(asked, Abstention) else _cost(asked)

    def seconds_by_column(self, text: str, query: Query) -> Array:
        """The seconds that each of :data:`COLUMNS` takes, ``(columns,)``, for a query that is answered."""
        asked = self._asked(text, query)
        assert isinstance(asked, _Question)
        assert asked.setting is not None
        seconds: Array = asked.work.at(asked.batch).sum(axis=0) * factors_of(asked.setting)
        return seconds

    def _asked(self, text: str, query: Query) -> _Question | Abstention:
        """The work and the setting that a query is about, or why there is none."""
        work, workload = work_of(text), query.workload
        asked = {name: value for name, value in workload.items() if name in USUAL}
        fixed = [f"{name} {value}" for name, value in asked.items() if str(work.sizes.get(name)) != value]
        if fixed:
            return Abstention(AbstentionCode.SIZES_FIXED, {"sizes": ", ".join(sorted(fixed))})
        of_accuracy = (item for item in workload.items() if item[0] in _OF_ACCURACY)
        ignored = {*work.assumed.items(), *asked.items(), *of_accuracy}
        workload = {name: value for name, value in workload.items() if (name, value) not in ignored}
        kind: Metric = "energy" if query.metric == "energy" else "latency"
        setting = self.setting_of(query.device, workload, kind)
        if setting is None and (query.device in self._settings["latency"] or query.metric != "memory"):
            return Abstention(AbstentionCode.SETTING_NOT_TRAINED, _details(query.metric, workload, query.device))
        if work.open_share > _MOST_OPEN:
            return Abstention(AbstentionCode.OPEN_SIZES, {"share": f"{work.open_share:.0%}"})
        usual = setting.batches[2] if setting is not None else work.batch
        batch = _number(workload.get(BATCH, str(usual)))
        if batch is None:
            return _not_measured(workload, query.device, setting)
        return _Question(text, work, setting, workload, batch)


@dataclass(frozen=True, slots=True)
class _Question:
    """The text of a graph and its work, the setting if there is one, the workload without sizes, and the batch."""

    text: str
    work: NetworkWork
    setting: SettingCost | None
    workload: Mapping[str, str]
    batch: int


def _cost(asked: _Question) -> NetworkCost | Abstention:
    assert asked.setting is not None
    found = cost_of(asked.work, asked.setting, asked.batch)
    if isinstance(found, Abstention):
        return found
    if not _is_saturated(found, asked.batch):
        return _not_measured(asked.workload, asked.setting.device, asked.setting)
    if (beyond := beyond_measured(asked.work, asked.setting, asked.batch)) is not None:
        return beyond
    return replace(found, workload={**found.workload, **asked.work.assumed})


def _details(metric: str, workload: Mapping[str, str], device: str | None) -> dict[str, str]:
    named = ", ".join(f"{name} {value}" for name, value in sorted(workload.items()))
    return {"metric": metric, "workload": named, "device": device or ""}


def _not_measured(workload: Mapping[str, str], device: str | None, setting: SettingCost | None) -> Abstention:
    least, most, _ = setting.batches if setting is not None else (1, 1, 1)
    details = {"batch": workload.get(BATCH, ""), "device": device or "", "least": str(least), "most": str(most)}
    return Abstention(AbstentionCode.BATCH_NOT_MEASURED, details)


def _is_saturated(cost: NetworkCost, batch: int) -> bool:
    """Return whether a batch is like those of the measurements: nearly as large, or enough work for each kernel."""
    least, most, _ = cost.setting.batches
    is_enough = batch >= least / _BATCH_MARGIN or cost.quantiles[MEDIAN] >= _SHORTEST * len(cost.parts)
    return is_enough and batch <= most * _BATCH_MARGIN


def cost_of(work: NetworkWork, setting: SettingCost, batch: int) -> NetworkCost | Abstention:
    """The cost of a network in a setting, or the operators that take most of it and are unknown."""
    amounts, factors = work.at(batch), factors_of(setting)
    seconds = amounts @ factors
    total = float(seconds.sum()) + setting.fixed
    unknown = unknown_shares(work, setting, seconds)
    share = sum(unknown.values())
    if not total > 0 or share > _MOST_UNKNOWN:
        names = ", ".join(sorted(unknown, key=lambda name: -unknown[name])[:_NAMED])
        return Abstention(AbstentionCode.OPERATOR_NOT_MEASURED, {"operators": names, "device": setting.device})
    short = (_LONG / (total / len(work.kernels))) ** _SHORTER if is_gpu(setting.device) else 1.0
    quantiles = tuple(
        total * math.exp(_spread(error * max(short, 1.0), share, level))
        for error, level in zip(setting.errors, LEVELS, strict=True)
    )
    by_column = amounts.sum(axis=0) * factors / total
    arithmetic, once = float(by_column[: len(MACS)].sum()), float(by_column[-len(ONCE) :].sum())
    parts = tuple(KernelCost(kernel, float(part)) for kernel, part in zip(work.kernels, seconds, strict=True))
    return NetworkCost(setting, setting.at(batch), quantiles, parts, arithmetic, once)


def is_gpu(device: str) -> bool:
    """Return whether a device starts kernels from another processor, which takes longer than short kernels."""
    known = device_table().get(device)
    return known is not None and known.kind == "gpu"


def _spread(error: float, share: float, level: float) -> float:
    """The logarithm of a quantile over the median, where a share of the time is in kinds that are not known.

    Their cost is log-normal, and its error independent of the other one.
    """
    unknown = math.log(1 - share + share * math.exp(_UNKNOWN * _NORMAL.inv_cdf(level)))
    return math.copysign(math.hypot(error, unknown), level - LEVELS[MEDIAN]) if level != LEVELS[MEDIAN] else 0.0


def unknown_shares(work: NetworkWork, setting: SettingCost, seconds: Array) -> dict[str, float]:
    """The shares of the time of operators whose kinds of kernels few measured families have."""
    found: dict[str, float] = {}
    for kernel, operator, part in zip(work.kernels, work.operators, seconds / max(seconds.sum(), 1e-300), strict=True):
        if work_kind(kernel) not in setting.known:
            found[operator] = found.get(operator, 0.0) + float(part)
    return found


def _number(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if value > 0 else None
