"""Runs a function of a file of Triton kernels in Triton's interpreter and prints the bytes of each launch.

    python -m tools.experiments.launch_interpreter CASE.json

Started by :mod:`.launch_bytes` as a separate process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton  # noqa: F401
from torch.overrides import TorchFunctionMode
from triton.runtime import interpreter

from tools.experiments.launch_bytes import stripped

_DTYPES = {
    "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64, "int64": torch.int64,
    "int32": torch.int32, "int16": torch.int16, "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool,
    "tf32": torch.float32,
}  # fmt: skip
_COUNTS = {"loaded": 0.0, "stored": 0.0}


class _OnCpu(TorchFunctionMode):
    """Makes tensors for a GPU on the CPU."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if "cuda" in str(kwargs.get("device", "")):
            kwargs["device"] = "cpu"
        if getattr(function, "__name__", "") == "cuda":
            return args[0]
        return function(*args, **kwargs)


def _count_accesses() -> None:
    builder = interpreter.InterpreterBuilder
    load, store, rmw, cas = (
        builder.create_masked_load, builder.create_masked_store, builder.create_atomic_rmw, builder.create_atomic_cas
    )  # fmt: skip

    def width(pointers: Any) -> float:
        return max(float(pointers.get_element_ty().primitive_bitwidth) / 8, 1.0)

    def masked_load(self: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
        _COUNTS["loaded"] += float(np.count_nonzero(mask.data)) * width(pointers)
        return load(self, pointers, mask, *rest)

    def masked_store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        _COUNTS["stored"] += float(np.count_nonzero(mask.data)) * width(pointers)
        return store(self, pointers, value, mask, *rest)

    def atomic_rmw(self: Any, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        for name in _COUNTS:
            _COUNTS[name] += float(np.count_nonzero(mask.data)) * width(pointers)
        return rmw(self, operation, pointers, value, mask, *rest)

    def atomic_cas(self: Any, pointers: Any, *rest: Any) -> Any:
        for name in _COUNTS:
            _COUNTS[name] += float(pointers.data.size) * width(pointers)
        return cas(self, pointers, *rest)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas = atomic_rmw, atomic_cas


def _made(value: Any) -> Any:
    if isinstance(value, dict) and "shape" in value:
        dtype = _DTYPES.get(value["dtype"], torch.float32)
        if dtype.is_floating_point:
            return torch.rand(value["shape"]).to(dtype) + 0.5
        if dtype is torch.bool:
            return torch.rand(value["shape"]) > 0.5
        return torch.arange(int(np.prod(value["shape"], dtype=np.int64))).reshape(value["shape"]).to(dtype) % 4
    if isinstance(value, dict) and "name" in value:
        return getattr(torch, value["name"].rpartition(".")[2], None)
    return None if isinstance(value, dict) else value


def main(path: Path) -> None:
    """Run a case and print ``LAUNCHES`` with kernel, bytes loaded and bytes stored of each launch."""
    case = json.loads(path.read_text())
    _count_accesses()
    launches: list[tuple[str, float, float]] = []
    call = interpreter.GridExecutor.__call__

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(_COUNTS)
        result = call(self, *args, **kwargs)
        launches.append((self.fn.__name__, *(_COUNTS[name] - before[name] for name in ("loaded", "stored"))))
        return result

    interpreter.GridExecutor.__call__ = counted
    cuda: Any = torch.cuda
    cuda.device = cuda._DeviceGuard = lambda *_: contextlib.nullcontext()
    cuda.synchronize = lambda *_: None
    cuda.current_device = lambda: 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case_kernels.py"
        file.write_text(stripped(case["text"]))
        spec = importlib.util.spec_from_file_location("case_kernels", file)
        assert spec is not None, "a Python file has a loader"
        assert spec.loader is not None, "a Python file has a loader"
        module = importlib.util.module_from_spec(spec)
        with _OnCpu():
            spec.loader.exec_module(module)
            function = getattr(module, case["function"])
            function(*map(_made, case["args"]), **{name: _made(value) for name, value in case["named"].items()})
    print("LAUNCHES", json.dumps(launches))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
