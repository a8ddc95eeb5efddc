"""Sees which kernels a call launches, with what arguments and configuration, while a block runs.

Triton's own classes are changed for that while, in a child process that does nothing else; timed calls run without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, MockTensor

from .triton_cases import Launch, Launches, workload


@contextmanager
def recorded(*, compile_only: bool = False, first: bool = False) -> Iterator[Launches]:
    """Within the block launches and tuners are noted.

    With ``compile_only`` kernels see of a tensor its dtype alone; with ``first`` a tuner takes its first configuration.
    """
    seen = Launches()
    run, interpret, tune = JITFunction.run, InterpretedFunction.run, Autotuner.run

    def compiled_run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        launch = _launch(self, args, kwargs, grid)
        seen.launches.append(launch)
        if compile_only:
            args, kwargs = tuple(map(_mock, args)), {name: _mock(value) for name, value in kwargs.items()}
        with torch._C.DisableTorchFunction():
            launch.compiled = run(self, *args, grid=grid, warmup=warmup, **kwargs)
        return launch.compiled

    def interpreted_run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        seen.launches.append(_launch(self, args, kwargs, grid))
        with torch._C.DisableTorchFunction():
            return interpret(self, *args, grid=grid, warmup=warmup, **kwargs)

    def tuned_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not any(self is tuner for tuner in seen.tuners):
            seen.tuners.append(self)
        with only(self, self.configs[0]) if first else nullcontext():
            return tune(self, *args, **kwargs)

    try:
        JITFunction.run, InterpretedFunction.run, Autotuner.run = compiled_run, interpreted_run, tuned_run
        yield seen
    finally:
        JITFunction.run, InterpretedFunction.run, Autotuner.run = run, interpret, tune


def config_row(config: Any) -> dict[str, str]:
    """A ``triton.Config`` as it stands in a row: its own names, and warps, stages and clusters."""
    return workload(config.all_kwargs())


@contextmanager
def only(tuner: Any, config: Any) -> Iterator[None]:
    """Within the block an autotuner has one configuration, so that it tries none."""
    before = tuner.configs
    tuner.configs = [config]
    try:
        yield
    finally:
        tuner.configs = before


def kernel_name(function: Any) -> str:
    """The name of a kernel below its decorators."""
    while hasattr(function, "fn"):
        function = function.fn
    return str(getattr(function, "__name__", function))


def _launch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> Launch:
    given = dict(zip(function.arg_names, args, strict=False)) | kwargs
    told = {name: _told(value) for name, value in given.items()}
    shape: tuple[int, ...] | None = None
    try:
        worked_out = grid(given) if callable(grid) else grid
        shape = tuple(int(one) for one in (worked_out if isinstance(worked_out, list | tuple) else (worked_out,)))
    except Exception:
        # The launch itself will say what is wrong with its grid.
        shape = None
    return Launch(kernel_name(function), told, shape)


def _told(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        dtype = workload({"dtype": value.dtype})["dtype"]
        return f"{'x'.join(map(str, value.shape)) or '1'} {dtype}"
    return workload({"value": value})["value"][:80]


def _mock(value: Any) -> Any:
    return MockTensor(value.dtype, list(value.shape)) if isinstance(value, torch.Tensor) else value
