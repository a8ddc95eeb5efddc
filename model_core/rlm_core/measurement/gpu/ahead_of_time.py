"""Compiles code for a GPU that this machine lacks: a pretended device for tensors and for Triton.

Tensors requested on ``cuda`` are on another device and report ``cuda:0``; kernels are compiled for a target and
not launched. Only the child process, which ends afterwards, is changed by any of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
import triton
from torch._inductor.runtime import triton_helpers
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget

from .targets import Target

DEVICE = torch.device("cuda", 0)
# These are created at each access, so they are compared by value.
_IS_CUDA, _GET_DEVICE = (getattr(torch.Tensor, name).__get__ for name in ("is_cuda", "device"))


class Driver:
    """A driver of Triton that describes a target. Loading a kernel and launching it do nothing."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.utils = SimpleNamespace(
            load_binary=lambda name, kernel, shared, device: (object(), 0, 0, 0, 1024),
            get_device_properties=self._properties,
        )

    def _properties(self, device: int) -> dict[str, int]:
        target = self._target
        return {
            "max_shared_mem": target.shared,
            "multiprocessor_count": target.multiprocessors,
            "max_num_regs": 65536,
            "warpSize": target.warp,
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 1_500_000,
            "mem_bus_width": 4096,
        }

    def launcher_cls(self, source: object, metadata: object) -> Callable[..., None]:
        """A launcher that launches nothing."""
        return lambda *arguments: None

    def get_current_target(self) -> Any:
        """As Triton calls the target."""
        return GPUTarget(self._target.backend, self._target.arch, self._target.warp)

    def get_current_device(self) -> int:
        """There is one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is no other."""

    def get_current_stream(self, device: int) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Major and minor number of a CUDA architecture; of another one, that of a card that has everything."""
        return divmod(self._target.arch, 10) if isinstance(self._target.arch, int) else (9, 4)

    def get_active_torch_device(self) -> torch.device:
        """Return the device that tensors report."""
        return DEVICE

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        """Calls a kernel once; every configuration is as fast as the next."""

        def benchmark(call: Callable[[], object], quantiles: Sequence[float] = (0.5,), **_: object) -> list[float]:
            call()
            return [1.0] * len(quantiles)

        return benchmark

    def get_empty_cache_for_benchmark(self) -> None:
        """There is no cache to clear."""

    def clear_cache(self, cache: object) -> None:
        """There is no cache to clear."""


class PretendedDevice(TorchFunctionMode):
    """Puts at ``place`` what asks for a GPU, and lets tensors say that they are on one."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = torch.device(place)

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """One call of torch."""
        kwargs = dict(kwargs or {})
        if func == _IS_CUDA:
            return True
        if func == _GET_DEVICE:
            return DEVICE
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory) or (func is torch.Tensor.cpu and args[0].is_meta):
            return torch.Tensor.to(args[0], self._place)
        if func is torch.Tensor.to:
            args = tuple(self._moved(one) for one in args)
        if "device" in kwargs:
            kwargs["device"] = self._moved(kwargs["device"])
        kwargs.pop("pin_memory", None)
        return func(*args, **kwargs)

    def _moved(self, device: object) -> object:
        asked = device.type if isinstance(device, torch.device) else device
        return self._place if isinstance(asked, str) and asked.partition(":")[0] == "cuda" else device


@contextmanager
def pretend_device(target: Target, place: str = "cpu") -> Iterator[None]:
    """Within the block a target is there as far as Triton and user code can tell.

    Its tensors are on ``place``: on the ``cpu``, or on ``meta``, where they have a form and no contents.
    """
    driver = Driver(target)
    triton.runtime.driver.set_active(driver)
    properties = device_properties(target)
    plain: dict[str, Any] = {
        "synchronize": lambda device=None: None,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "get_device_name": lambda device=None: target.device,
        "get_device_capability": lambda device=None: driver.get_device_capability(),
        "get_device_properties": lambda device=None: properties,
        "empty_cache": lambda: None,
        "manual_seed": torch.manual_seed,
    }
    before = {name: getattr(torch.cuda, name) for name in plain}
    if not hasattr(torch._C, "_cuda_getCurrentRawStream"):
        # Kernels that inductor wrote import it.
        torch._C._cuda_getCurrentRawStream = lambda device: 0
    triton_helpers.set_driver_to_gpu = lambda: None
    try:
        for name, function in plain.items():
            setattr(torch.cuda, name, function)
        with PretendedDevice(place):
            yield
    finally:
        for name, function in before.items():
            setattr(torch.cuda, name, function)


def device_properties(target: Target) -> SimpleNamespace:
    """Return what ``torch.cuda.get_device_properties`` would return for the target's usual card."""
    major, minor = divmod(target.arch, 10) if isinstance(target.arch, int) else (9, 4)
    return SimpleNamespace(
        name=target.device,
        major=major,
        minor=minor,
        multi_processor_count=target.multiprocessors,
        warp_size=target.warp,
        max_threads_per_multi_processor=target.threads,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=target.shared,
        shared_memory_per_multiprocessor=target.shared + 1024,
        L2_cache_size=target.l2,
        total_memory=target.memory,
        gcnArchName=target.arch if target.backend == "hip" else "",
    )
