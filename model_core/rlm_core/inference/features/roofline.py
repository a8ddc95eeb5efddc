"""A trace and a device's data sheet -> seconds an operation at least takes (roofline model, Williams et al. 2009).

Each operation takes the longer of its memory traffic over the bandwidth and its arithmetic over the peak, plus a
launch. Eager execution moves every intermediate tensor; a fusing compiler keeps those between pointwise operations in
registers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rlm_core.queries.devices import Device
from rlm_core.source.torch_trace.recorder import KINDS, Trace, fuse

Floats = npt.NDArray[np.float64]
LAUNCH = 4e-6  # seconds a kernel occupies the stream at least
_HALF = frozenset({"fp16", "bf16", "fp8", "int8"})
_MATRIX = np.array([kind in ("gemm", "conv", "attention", "rnn") for kind in KINDS])
_CONV = KINDS.index("conv")


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
