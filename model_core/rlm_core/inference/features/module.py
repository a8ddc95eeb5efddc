"""PyTorch modules and a query -> numbers for boosted trees: what a forward pass computes, moves and launches, on what.

The shapes come out of the source text (see ``shapes``): ``describe`` traces it once, ``features`` traces it again only
when the workload changes sizes. Sizes, counts and seconds are log10 (of 1 + the number for counts); unknown is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rlm_core.queries.devices import DEVICES, Device, canonical_device
from rlm_core.source.torch_trace.recorder import KINDS, Operation, Trace
from rlm_core.source.torch_trace.tracing import trace

from .roofline import Costs, convolution_peak, costs, launches, seconds

_NOT_SIZES = frozenset({"mode", "backend", "autotuned"})
_PRODUCTS = ("gemm", "conv", "attention", "rnn", "other")
_TRAITS = ("transpose", "1d", "2d", "3d", "grouped")  # of convolutions and pools, by name
_MODES = ("cudagraphs", "reduce-overhead", "max-autotune", "no-cudagraphs")
_BYTES = {"fp64": 8.0, "fp32": 4.0, "tf32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0}
_LARGEST = 3
_DIMENSIONS = 4

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
    """What depends on the text alone."""
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
    known = DEVICES.get((canonical_device(device) if device else None) or "")
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
