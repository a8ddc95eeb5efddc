"""Runs a kernel of a file in Triton's interpreter and prints what the launch does.

    python -m tools.experiments.launch_interpreter < CASES.jsonl > COUNTS.jsonl

Started by :mod:`.launch_statements` as a separate process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

from tools.experiments.launch_statements import stripped

_DTYPES = {
    "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64, "int64": torch.int64,
    "int32": torch.int32, "int16": torch.int16, "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool,
    "tf32": torch.float32,
}  # fmt: skip
_TYPES = {"fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "int32": tl.int32, "int64": tl.int64}
_ELEMENTS = 2**24  # of a tensor of unknown shape
_COUNTS = {"loaded": 0.0, "stored": 0.0, "flops": 0.0, "programs": 0.0}
_ONE_OPERATION = (
    "fadd", "fmul", "fdiv", "frem", "fsub", "precise_divf", "minimumf", "minnumf", "maximumf", "maxnumf", "clampf",
    "select", "fabs", "cos", "exp", "exp2", "floor", "ceil", "log", "log2", "precise_sqrt", "sqrt", "sin", "erf",
    "rsqrt",
)  # fmt: skip
_SECONDS = 60.0  # of a case
_MOST_KEPT = 4_000_000  # addresses between two removals of repeated ones


class _Touched:
    """The bytes at different addresses that a launch has touched."""

    def __init__(self) -> None:
        self._parts: dict[float, list[Any]] = {}
        self._kept = 0

    def add(self, addresses: Any, mask: Any, width: float) -> None:
        """Note the addresses of an access."""
        part = np.asarray(addresses)[np.broadcast_to(np.asarray(mask, bool), np.shape(addresses))]
        self._parts.setdefault(width, []).append(part.astype(np.uint64).reshape(-1))
        self._kept += part.size
        if self._kept > _MOST_KEPT:
            self._parts = {key: [np.unique(np.concatenate(own))] for key, own in self._parts.items()}
            self._kept = 0

    def taken(self) -> float:
        """The bytes so far, which are then forgotten."""
        total = sum(width * np.unique(np.concatenate(own)).size for width, own in self._parts.items())
        self._parts, self._kept = {}, 0
        return float(total)


_TOUCHED = _Touched()


def _count_accesses() -> None:
    builder = interpreter.InterpreterBuilder
    load, store, rmw, cas = (
        builder.create_masked_load, builder.create_masked_store, builder.create_atomic_rmw, builder.create_atomic_cas
    )  # fmt: skip

    def width(pointers: Any) -> float:
        return max(float(pointers.get_element_ty().primitive_bitwidth) / 8, 1.0)

    def note(pointers: Any, mask: Any, *names: str) -> None:
        for name in names:
            _COUNTS[name] += float(np.count_nonzero(mask)) * width(pointers)
        _TOUCHED.add(pointers.data, mask, width(pointers))

    def masked_load(self: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
        note(pointers, mask.data, "loaded")
        return load(self, pointers, mask, *rest)

    def masked_store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        note(pointers, mask.data, "stored")
        return store(self, pointers, value, mask, *rest)

    def atomic_rmw(self: Any, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        note(pointers, mask.data, "loaded", "stored")
        return rmw(self, operation, pointers, value, mask, *rest)

    def atomic_cas(self: Any, pointers: Any, *rest: Any) -> Any:
        note(pointers, np.ones(np.shape(pointers.data), bool), "loaded", "stored")
        return cas(self, pointers, *rest)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas = atomic_rmw, atomic_cas


def _count_operations() -> None:
    builder: Any = interpreter.InterpreterBuilder

    def counting(action: Any, operations: Any) -> Any:
        def counted(self: Any, *args: Any) -> Any:
            result = action(self, *args)
            _COUNTS["flops"] += operations(result, args)
            return result

        return counted

    def elements(result: Any, args: Any) -> float:
        return float(result.data.size) if result.dtype.is_floating() else 0.0

    for name in _ONE_OPERATION:
        setattr(builder, f"create_{name}", counting(getattr(builder, f"create_{name}"), elements))
    builder.create_fma = counting(builder.create_fma, lambda result, args: 2 * elements(result, args))
    builder.create_dot = counting(
        builder.create_dot, lambda result, args: 2.0 * result.data.size * args[0].data.shape[-1]
    )
    for kind in (interpreter.ReduceOps, interpreter.ScanOps):
        kind.apply_impl = _counted_combination(kind.apply_impl)
    place = builder.set_grid_idx

    def next_program(self: Any, *args: Any) -> None:
        _COUNTS["programs"] += 1
        place(self, *args)

    builder.set_grid_idx = next_program


def _counted_combination(action: Any) -> Any:
    """A reduction or a scan that counts an operation for each number, however it is carried out."""

    def counted(self: Any, given: Any) -> Any:
        before = _COUNTS["flops"]
        result = action(self, given)
        _COUNTS["flops"] = before + sum(part.handle.data.size for part in given if part.dtype.is_floating())
        return result

    return counted


def _made(value: Any) -> Any:
    if isinstance(value, dict) and "dtype" in value:
        dtype = _DTYPES.get(value["dtype"], torch.float32)
        if "shape" not in value:
            return torch.zeros(_ELEMENTS, dtype=dtype)
        if dtype.is_floating_point:
            return torch.rand(value["shape"]).to(dtype) + 0.5
        if dtype is torch.bool:
            return torch.rand(value["shape"]) > 0.5
        return torch.arange(int(np.prod(value["shape"], dtype=np.int64))).reshape(value["shape"]).to(dtype) % 4
    if isinstance(value, dict) and "name" in value:
        name = value["name"].rpartition(".")[2]
        return getattr(tl, name, None) or _TYPES.get(name)
    return None if isinstance(value, dict) else value


def main() -> None:
    """Answer each case on stdin with the counts of its launch, or the message of its failure, on stdout."""
    _count_accesses()
    _count_operations()
    cuda: Any = torch.cuda
    cuda.device = cuda._DeviceGuard = lambda *_: contextlib.nullcontext()
    cuda.current_device = lambda: 0
    torch.set_num_threads(1)
    for line in sys.stdin:
        # Each in its own process: a kernel may end it, or take too long.
        receiver, sender = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=_answer, args=(json.loads(line), sender))
        child.start()
        sender.close()
        try:
            answer = receiver.recv() if receiver.poll(_SECONDS) else "timeout"
        except EOFError:
            answer = "the process ended"
        child.kill()
        child.join()
        print(json.dumps(answer), flush=True)


def _answer(case: dict[str, Any], sender: Any) -> None:
    sys.stdout = sys.stderr  # not among the answers
    try:
        sender.send(_counts(case))
    except Exception as error:
        sender.send(repr(error)[-300:])


def _counts(case: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "case_kernels.py"
        file.write_text(stripped(case["text"]))
        spec = importlib.util.spec_from_file_location("case_kernels", file)
        assert spec is not None, "a Python file has a loader"
        assert spec.loader is not None, "a Python file has a loader"
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = getattr(module, case["kernel"])
        known = set(inspect.signature(kernel.fn).parameters)
        kernel[tuple(case["grid"])](**{name: _made(value) for name, value in case["named"].items() if name in known})
    return _COUNTS | {"distinct": _TOUCHED.taken()}


if __name__ == "__main__":
    main()
