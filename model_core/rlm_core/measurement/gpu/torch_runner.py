"""Runs one PyTorch module in the child process: a forward pass in each dtype and backend, one row each.

The file has a module class, ``get_inputs()`` and, where the class takes arguments, ``get_init_inputs()``.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from rlm_core.inference.adaptation.cpu_score import cpu_name

from .bench_rows import Row, row_key
from .bench_spec import DTYPES
from .meter import CpuStopwatch, Effort, GpuStopwatch, Stopwatch, gpu_state, measure, peak_of
from .runner_process import Channel, import_file


def run(options: Mapping[str, Any], channel: Channel) -> None:
    """Work through the dtypes and backends of each of ``options["files"]``."""
    device = torch.device(options["device"])
    on_gpu = device.type == "cuda"
    if options["threads"]:
        torch.set_num_threads(options["threads"])
    name = torch.cuda.get_device_name(device) if on_gpu else f"cpu ({platform.machine()})"
    machine = {"torch": torch.__version__, "python": platform.python_version()}
    if on_gpu:
        machine |= {"gpu": name, "cuda": str(torch.version.cuda or ""), "hip": str(torch.version.hip or "")}
        machine["driver"] = gpu_state().get("driver_version", "")
    else:
        machine |= {"threads": str(torch.get_num_threads()), "cpu": cpu_name()}
    stopwatch: Stopwatch = GpuStopwatch() if on_gpu else CpuStopwatch()
    for file in options["files"]:
        module: ModuleType | None = None
        for dtype, backend in itertools.product(options["dtypes"], options["backends"]):
            about: Row = {"path": file["shown"], "source": file["source"], "name": file["module"]}
            about |= {"device": name, "mode": "measure", "case": {"dtype": dtype, "backend": backend}}
            key = row_key(**about, threads=machine.get("threads"))
            if not channel.wanted(key):
                continue
            channel.begin({"key": key, **about, "machine": machine})
            try:
                module = module or import_file(Path(file["path"]))
                model = getattr(module, file["module"])
                effort = Effort(**options["effort"])
                row = _measured(module, model, device, (dtype, backend), stopwatch, effort)
            except Exception as error:
                channel.failed(error)
                continue
            channel.row(row)


@torch.no_grad()
def _measured(
    module: Any, kind: Any, device: torch.device, how: tuple[str, str], stopwatch: Stopwatch, effort: Effort
) -> Row:
    dtype, backend = how
    torch.manual_seed(0)
    wanted = getattr(torch, DTYPES[dtype])
    arguments = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
    positional, named = _split(arguments)
    model = kind(*positional, **named).to(device).eval()
    if dtype != "fp32":
        model = model.to(wanted)
    inputs = [_moved(value, device, wanted) for value in module.get_inputs()]
    call: Callable[[], Any] = lambda: model(*inputs)  # noqa: E731 (rebound below)
    if backend == "compile":
        compiled: Any = torch.compile(model)
        call = lambda: compiled(*inputs)  # noqa: E731
    peak, result = _peak(call, device)
    before = gpu_state()
    timing = measure(call, stopwatch, effort)
    row: Row = {
        "status": "ok",
        **timing.row(),
        "memory": peak,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "inputs": [_shape(value) for value in inputs],
        "outputs": [_shape(value) for value in (result if isinstance(result, tuple | list) else [result])],
    }
    if before:
        row["clocks"] = {"before": before, "after": gpu_state()}
    return row


def _peak(call: Callable[[], Any], device: torch.device) -> tuple[int | None, Any]:
    """Peak bytes of one call over what was held before it (on a GPU by PyTorch's allocator), and its result."""
    if device.type != "cuda":
        return peak_of(call)
    call()
    torch.cuda.synchronize(device)
    held = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    result = call()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - held, result


def _split(arguments: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments as a list, a table, or a list and a table."""
    if isinstance(arguments, Mapping):
        return [], dict(arguments)
    if len(arguments) == 2 and isinstance(arguments[0], list | tuple) and isinstance(arguments[1], Mapping):
        return list(arguments[0]), dict(arguments[1])
    return list(arguments), {}


def _moved(value: Any, device: torch.device, dtype: torch.dtype) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device, dtype) if value.is_floating_point() and dtype is not torch.float32 else value.to(device)


def _shape(value: Any) -> str:
    return "x".join(map(str, value.shape)) or "1" if isinstance(value, torch.Tensor) else type(value).__name__
