"""Runs one ONNX model in the child process with onnxruntime: load, latency and peak memory, one row per provider."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from rlm_core.errors import DataError
from rlm_core.inference.adaptation.cpu_score import cpu_name

from .bench_rows import Row, row_key
from .meter import CpuStopwatch, Effort, measure, peak_of
from .runner_process import Channel

ort.disable_telemetry_events()  # as in `rlm_core.inference.encoder`

_TYPES: dict[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
_MOST_BYTES = 2**34
_CPU = "CPUExecutionProvider"


def run(options: Mapping[str, Any], channel: Channel) -> None:
    """Work through the providers of ``options["path"]``: all that this machine has, or those asked for."""
    # Azure's runs nothing here: it sends a model's inputs elsewhere.
    present = [name for name in ort.get_available_providers() if name != "AzureExecutionProvider"]
    for provider in options["providers"] or present:
        about: Row = {"device": provider, "mode": "measure", "case": dict(options["sizes"])}
        about["machine"] = {"onnxruntime": ort.__version__, "processor": platform.machine()}
        about |= {"path": options["shown"], "source": options["source"]}
        key = row_key(options=dict(options), **about)
        if not channel.wanted(key):
            continue
        if provider == _CPU:
            about["machine"] |= {"cpu": cpu_name()}
        channel.begin({"key": key, **about})
        try:
            if provider not in present:
                raise DataError(f"{provider} is not on this machine; it has {', '.join(present)}")
            row = _measured(options, provider)
        except Exception as error:
            channel.failed(error)
            continue
        channel.row(row)


def _measured(options: Mapping[str, Any], provider: str) -> Row:
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options["threads"]
    settings.log_severity_level = 3

    def load_and_run() -> tuple[Any, dict[str, Any]]:
        session = ort.InferenceSession(options["path"], settings, providers=[provider])
        feed = {one.name: _input(one, options["sizes"]) for one in session.get_inputs()}
        session.run(None, feed)
        return session, feed

    # Flushing touches other memory, so it comes before the high-water mark is reset.
    stopwatch = CpuStopwatch()
    peak, (session, feed) = peak_of(load_and_run)
    used = session.get_providers()
    if used[0] != provider:
        raise DataError(f"{provider} did not take the model; onnxruntime fell back to {used[0]}")
    timing = measure(lambda: session.run(None, feed), stopwatch, Effort(**options["effort"]))
    inputs = {name: f"{'x'.join(map(str, value.shape)) or '1'} {value.dtype}" for name, value in feed.items()}
    return {"status": "ok", **timing.row(), "memory": peak, "inputs": inputs, "threads": options["threads"]}


def _input(declared: Any, sizes: Mapping[str, int]) -> npt.NDArray[Any]:
    """An input of the shape that the model names: symbols are taken from ``sizes``, 1 where they are not given."""
    if declared.type not in _TYPES:
        raise DataError(f"input {declared.name} is of type {declared.type}, which cannot be made up")
    shape = [side if isinstance(side, int) else int(sizes.get(str(side), 1)) for side in declared.shape]
    kind = np.dtype(_TYPES[declared.type])
    if np.prod([float(side) for side in shape]) * kind.itemsize > _MOST_BYTES:
        raise DataError(f"input {declared.name} of {shape} is over {_MOST_BYTES // 2**30} GiB; ask for smaller sizes")
    random = np.random.default_rng(0)
    if kind.kind == "f":
        return random.standard_normal(shape, dtype=np.float32).astype(kind)
    # An index that is in range whatever it indexes.
    return np.zeros(shape, kind) if kind.kind in "iu" else np.ones(shape, kind)
