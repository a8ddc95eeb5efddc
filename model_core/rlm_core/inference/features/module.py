"""PyTorch modules and a query -> numbers for boosted trees: what a forward pass computes, moves and launches, on what.

The shapes come from the source text (see ``rlm_core.cost.torch_trace``): ``describe`` traces it once, ``features``
traces it again only when the workload changes sizes. Sizes, counts and seconds are log10 (counts: of 1 + the number);
unknown is NaN. Seconds are estimated by a roofline model (Williams et al. 2009): each operation takes the longer of its
memory traffic over the bandwidth and its arithmetic over the peak, plus a launch. Eager execution moves every
intermediate tensor; a fusing compiler keeps those between pointwise operations in registers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rlm_core.cost.torch_trace.recorder import KINDS, Operation, Trace, fuse
from rlm_core.cost.torch_trace.tracing import trace
from rlm_core.queries.devices import Device, canonical_device, device_table

_NOT_SIZES = frozenset({"mode", "backend", "autotuned"})
_PRODUCTS = ("gemm", "conv", "attention", "rnn", "other")
_TRAITS = ("transpose", "1d", "2d", "3d", "grouped")  # of convolutions and pools, by name
_MODES = ("cudagraphs", "reduce-overhead", "max-autotune", "no-cudagraphs")
_BYTES = {"fp64": 8.0, "fp32": 4.0, "tf32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0}
_LARGEST = 3
_DIMENSIONS = 4
Floats = npt.NDArray[np.float64]
LAUNCH = 4e-6  # seconds a kernel occupies the stream at least
_HALF = frozenset({"fp16", "bf16", "fp8", "int8"})
_MATRIX = np.array([kind in ("gemm", "conv", "attention", "rnn") for kind in KINDS])
_CONV = KINDS.index("conv")

NAMES: tuple[str, ...] = (
    "log_estimate", "log_estimate_eager", "log_estimate_compiled", "log_longest", "log_second", "log_third",
    "log_without_launches", "log_launches",
    *(f"share_{kind}" for kind in KINDS), *(f"log_seconds_{kind}" for kind in KINDS),
    *(f"share_{trait}" for trait in _TRAITS),
    "compiled", *(f"mode_{mode}" for mode in _MODES),
    "log_macs", "log_flops", "log_bytes", "log_bytes_fused", "log_kernels", "log_kernels_fused", "log_operations",
    "log_views",
    "log_parameters", "log_input_elements", "log_output_elements", "log_largest_bytes", "log_largest_macs",
    "log_intensity",
    *(f"log_macs_{kind}" for kind in _PRODUCTS), *(f"log_bytes_{kind}" for kind in KINDS),
    *(f"log_kernels_{kind}" for kind in KINDS),
    *(f"top{place}_{name}" for place in range(_LARGEST) for name in ("kind", "elements", "last", "reads",
    "intensity", "share")),
    *(f"input_dimension{place}" for place in range(_DIMENSIONS)), "input_rank", "inputs",
    "unknown_share", "complete", "element_bytes",
    "log_bandwidth", "log_fp32", "log_fp16", "log_convolution_peak", "log_memory", "log_multiprocessors", "year", "amd",
)  # fmt: skip
ESTIMATE = "log_estimate"
_INDEX = {name: place for place, name in enumerate(NAMES)}


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """A trace with its costs as arrays."""

    trace: Trace
    costs: Costs


@dataclass(frozen=True, slots=True)
class Described:
    """A module's text; its trace is made when a query first asks for it."""

    text: str


@lru_cache(maxsize=512)
def describe(text: str) -> Described:
    """Return the part of the features that depends on the text alone."""
    return Described(text)


@lru_cache(maxsize=1024)
def summary(text: str, sizes: tuple[tuple[str, str], ...] = ()) -> Summary:
    """The trace of a text with the sizes of a workload, as sorted pairs, and its costs."""
    traced = trace(text, dict(sizes))
    return Summary(traced, costs(traced))


def features(described: Described, workload: Mapping[str, str], device: str | None) -> npt.NDArray[np.float32]:
    """The features of a module under a query.

    Args:
        described: the result of ``describe``.
        workload: ``backend`` (eager, compile, compile-MODE), ``dtype``, and sizes that replace those of the text.
        device: the name of a device, None or unknown for NaN in all that depends on it.

    Returns:
        Shape ``(len(NAMES),)``.
    """
    sizes = tuple(sorted((name, value) for name, value in workload.items() if name not in _NOT_SIZES))
    found = summary(described.text, sizes)
    backend = workload.get("backend", "eager")
    compiled = backend != "eager"
    values: dict[str, float] = {"compiled": float(compiled)}
    values.update((f"mode_{mode}", float(mode in backend)) for mode in _MODES)
    values["element_bytes"] = _BYTES.get(workload.get("dtype", "fp32").split("+")[0], 4.0)
    values.update(_totals(found))
    known = device_table().get((canonical_device(device) if device else None) or "")
    if known is not None:
        values.update(_sheet(known))
        values.update(_times(found, known, compiled=compiled))
    row = np.full(len(NAMES), np.nan)
    for name, value in values.items():
        row[_INDEX[name]] = value
    return row.astype(np.float32)


def _totals(found: Summary) -> dict[str, float]:
    traced, cost = found.trace, found.costs
    values = {
        "log_macs": cost.macs.sum(), "log_flops": cost.flops.sum(), "log_bytes": cost.moved.sum(),
        "log_bytes_fused": cost.fused.sum(), "log_kernels": cost.kernels.sum(),
        "log_kernels_fused": cost.fused_kernels.sum(),
        "log_operations": len(cost.kind), "log_views": traced.views, "log_parameters": traced.parameters,
        "log_input_elements": traced.input_elements,
        "log_output_elements": sum(math.prod(shape) for shape in traced.outputs),
        "log_largest_bytes": cost.moved.max(initial=0.0), "log_largest_macs": cost.macs.max(initial=0.0),
        "log_intensity": (2.0 * cost.macs.sum() + cost.flops.sum()) / (cost.moved.sum() + 1.0),
    }  # fmt: skip
    for kind in KINDS:
        chosen = cost.kind == KINDS.index(kind)
        values[f"log_bytes_{kind}"] = cost.moved[chosen].sum()
        values[f"log_kernels_{kind}"] = cost.kernels[chosen].sum()
        if kind in _PRODUCTS:
            values[f"log_macs_{kind}"] = cost.macs[chosen].sum()
    result = {name: math.log10(1.0 + float(value)) for name, value in values.items()}
    first = traced.inputs[0] if traced.inputs else ()
    result.update((f"input_dimension{place}", float(size)) for place, size in enumerate(first[:_DIMENSIONS]))
    result.update(input_rank=float(len(first)), inputs=float(len(traced.inputs)), complete=float(traced.complete))
    result["unknown_share"] = (
        traced.unknown / (traced.unknown + len(cost.kind)) if traced.unknown or len(cost.kind) else 1.0
    )
    return result


def _sheet(device: Device) -> dict[str, float]:
    figures = {
        "log_bandwidth": device.memory_bandwidth, "log_fp32": device.fp32_flops, "log_fp16": device.fp16_flops,
        "log_convolution_peak": convolution_peak(device), "log_memory": device.memory,
        "log_multiprocessors": device.multiprocessors,
    }  # fmt: skip
    values = {name: math.log10(figure) for name, figure in figures.items() if figure}
    return values | {"year": float(device.year or np.nan), "amd": float(device.id.startswith("amd"))}


def _times(found: Summary, device: Device, *, compiled: bool) -> dict[str, float]:
    """Estimated seconds on the device: in total, by kind, of the longest operations."""
    cost, operations = found.costs, found.trace.operations
    if not operations:
        return {}
    values: dict[str, float] = {}
    for name, fused in (("eager", False), ("compiled", True)):
        values[f"log_estimate_{name}"] = _log(
            (seconds(cost, device, compiled=fused) + launches(cost, compiled=fused)).sum()
        )
    work, start = seconds(cost, device, compiled=compiled), launches(cost, compiled=compiled)
    times = work + start
    total = float(times.sum())
    values.update(log_estimate=_log(total), log_without_launches=_log(work.sum()), log_launches=_log(start.sum()))
    for kind in KINDS:
        part = float(times[cost.kind == KINDS.index(kind)].sum())
        values[f"share_{kind}"] = part / total
        values[f"log_seconds_{kind}"] = _log(part)
    for trait in _TRAITS:
        values[f"share_{trait}"] = (
            float(sum(time for time, item in zip(times, operations, strict=True) if trait in item.name)) / total
        )
    order = np.argsort(-np.nan_to_num(times), kind="stable")[:_LARGEST]
    for place, (index, name) in enumerate(zip(order, ("log_longest", "log_second", "log_third"), strict=False)):
        values[name] = _log(times[index])
        described = _operation(operations[index]) | {"share": float(times[index]) / total}
        values.update((f"top{place}_{key}", value) for key, value in described.items())
    return values


def _operation(item: Operation) -> dict[str, float]:
    return {
        "kind": float(KINDS.index(item.kind)),
        "elements": math.log10(1.0 + math.prod(item.shape)),
        "last": math.log10(1.0 + item.shape[-1]) if item.shape else 0.0,
        "reads": math.log10(1.0 + item.read),
        "intensity": math.log10(1.0 + (2.0 * item.macs + item.flops) / (item.read + item.written + 1.0)),
    }


def _log(value: float) -> float:
    return math.log10(max(float(value), 1e-9)) if math.isfinite(value) else math.nan


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """The operations of a trace as arrays of shape ``(operations,)``: bytes and launches both eager and fused."""

    kind: npt.NDArray[np.int64]
    macs: Floats
    flops: Floats
    moved: Floats
    fused: Floats
    kernels: Floats
    fused_kernels: Floats
    half: npt.NDArray[np.bool_]
    double: npt.NDArray[np.bool_]


def costs(trace: Trace) -> Costs:
    """The arrays of a trace."""
    operations = trace.operations
    fused = fuse(operations)

    def column(values: list[float]) -> Floats:
        return np.array(values, dtype=np.float64)

    return Costs(
        np.array([KINDS.index(item.kind) for item in operations], dtype=np.int64),
        column([item.macs for item in operations]),
        column([item.flops for item in operations]),
        column([item.read + item.written for item in operations]),
        column([item.read + item.written for item in fused]),
        column([item.kernels for item in operations]),
        column([item.kernels for item in fused]),
        np.array([item.dtype in _HALF for item in operations], dtype=bool),
        np.array([item.dtype == "fp64" for item in operations], dtype=bool),
    )


def convolution_peak(device: Device) -> float | None:
    """Operations a second of FP32 convolutions: on NVIDIA cards since 2020 cuDNN takes TF32, half the FP16 rate."""
    if device.fp16_flops is not None and device.id.startswith("nvidia") and (device.year or 0) >= 2020:
        return max(device.fp32_flops or 0.0, device.fp16_flops / 2)
    return device.fp32_flops


def seconds(costs: Costs, device: Device, *, compiled: bool) -> Floats:
    """Seconds of each operation without its launches, shape ``(operations,)``; NaN where the data sheet is silent."""
    plain = device.fp32_flops or np.nan
    half = device.fp16_flops or plain
    single = np.where(costs.kind == _CONV, convolution_peak(device) or np.nan, plain)
    peak = np.where(costs.half, half, np.where(costs.double, plain / 2, single))
    arithmetic = np.where(_MATRIX[costs.kind], 2.0 * costs.macs / peak, (2.0 * costs.macs + costs.flops) / plain)
    moved = costs.fused if compiled else costs.moved
    return np.maximum(arithmetic, moved / (device.memory_bandwidth or np.nan))


def launches(costs: Costs, *, compiled: bool) -> Floats:
    """Seconds of each operation's launches, shape ``(operations,)``."""
    return LAUNCH * (costs.fused_kernels if compiled else costs.kernels)
