"""One process's share of a run: what was asked for, and from the first import to the last test what is done for it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
import time
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType
from typing import Literal

from .calibration import Calibrator, Make, calibrate_memory
from .call_examples import ExampleWriter
from .function_registry import FunctionRegistry, Scope
from .input_sizes import leave_out
from .latency import LatencyMeter
from .memory import MemoryMeter
from .recording_writer import RecordingWriter

VARIABLE, PLUGINS, PLUGIN = "RLM_PROBE", "PYTEST_PLUGINS", "rlm_probe.plugin"
CANNOT_WRITE = 74  # exit status where nothing can be written any more; EX_IOERR of sysexits.h


@dataclass(frozen=True, slots=True)
class Request:
    """A request to measure ``packages``, by import name, at most ``calls`` of a function per test, into ``folder``.

    ``timeout`` is the seconds that a test may take (0: any). ``skip`` and ``only`` are files with names of tests: those
    that are left out, and those without which all others are. ``stop_when_full``: tests that cannot be measured any
    more, since nothing can be written, need not run. ``part`` ``(i, n)`` takes every n-th file of tests from the i-th
    on. ``launched`` is when pytest was started (``time.monotonic``); at the end of a file of tests, the session pauses
    if they took ``pause_share`` times as long as pytest did to begin (0: never). With ``examples`` the arguments of
    some calls are kept, in the latency pass. After ``seconds`` of processor time (0: any), no further test begins.
    """

    folder: str
    metric: Literal["latency", "memory"]
    packages: tuple[str, ...]
    calls: int = 5
    timeout: float = 0.0
    skip: str = ""
    only: str = ""
    stop_when_full: bool = False
    part: tuple[int, int] = (0, 1)
    launched: float = 0.0
    pause_share: float = 0.0
    examples: bool = False
    seconds: float = 0.0

    def to_text(self) -> str:
        """The request as an environment variable holds it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Request:
        """The request of an environment variable."""
        fields = json.loads(text)
        return cls(**{**fields, "packages": tuple(fields["packages"]), "part": tuple(fields.get("part", (0, 1)))})


class ProbeSession:
    """Watches the functions of the asked packages until it is finished.

    Raises:
        RuntimeError: this interpreter cannot be watched.
        OSError: the file of what is seen cannot be made.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._started = False
        make = _way_to_watch()
        leave_out(request.packages)
        self._roster = FunctionRegistry(request.calls)
        is_latency = request.metric == "latency"
        self._examples = (
            ExampleWriter(Path(request.folder), request.packages) if request.examples and is_latency else None
        )
        self._meter = LatencyMeter(self._roster, self._examples) if is_latency else _memory_meter(make, self._roster)
        self._watcher = make(Scope(request.packages), self._roster, self._meter)
        self._calibrator = Calibrator(self._watcher) if isinstance(self._meter, LatencyMeter) else None
        self.spool = RecordingWriter(
            Path(request.folder),
            metric=request.metric,
            python=platform.python_version(),
            implementation=platform.python_implementation().lower(),
            machine=platform.machine(),
            worker=os.environ.get("PYTEST_XDIST_WORKER", ""),
            began=time.time(),
            costs=asdict(self._calibrator.costs) if self._calibrator else {},
        )
        if self._calibrator and not self._calibrator.steady:
            self.spool.disturbed("the machine was too restless to calibrate")
        if sys.version_info < (3, 12) or request.metric == "latency":
            self._watcher.find()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._abandon)

    def begin_test(self, name: str) -> None:
        """A test begins."""
        if not self._started:
            self._start()
        self._roster.begin()
        self.spool.test(name)

    def end_test(self) -> None:
        """The test has ended: what was seen in it is written."""
        touched = self._roster.end()
        if self._calibrator:
            self._calibrator.settle(touched)
        self.spool.seen(touched)
        for function in touched:
            function.forget()

    def compiled(self, source: bytes, module: str, path: str) -> CodeType:
        """The code of a file that is not imported but run; watched if its module is measured."""
        return self._watcher.compiled(source, module, path)

    def finish(self, status: int, passed: int, *, paused: bool) -> None:
        """No more tests follow in this process; others do in the next one if it has ``paused``."""
        self._watcher.stop()
        if self._examples is not None:
            self._examples.finish()
        versions = {} if os.environ.get("PYTEST_XDIST_WORKER") else _versions(self._request.packages)
        imported = [name for name in self._request.packages if name in sys.modules]
        self.spool.end(
            status=status, passed=passed, paused=paused, imported=imported, versions=versions, finished=time.time()
        )

    def _start(self) -> None:
        """Before the first test: calls made by imports are a separate period."""
        self._started = True
        self.end_test()
        if isinstance(self._meter, MemoryMeter):
            self._meter.start()
            if sys.version_info >= (3, 12):
                self._watcher.find()
        elif reason := _tracer():
            self.spool.disturbed(reason)

    def _abandon(self) -> None:
        """In a forked child nothing is measured: its parent goes on."""
        self.spool.close()
        if self._examples is not None:
            self._examples.close()
        self._watcher.stop()


def _way_to_watch() -> Make:
    if platform.python_implementation() != "CPython":
        raise RuntimeError(f"functions are measured under CPython, this is {platform.python_implementation()}")
    if sys.version_info >= (3, 12):
        from .monitoring import Monitor

        return Monitor
    from .injection import Injector

    return Injector


def _memory_meter(make: Make, roster: FunctionRegistry) -> MemoryMeter:
    was_tracing = tracemalloc.is_tracing()
    constant = calibrate_memory(make)
    if not was_tracing:
        tracemalloc.stop()
    return MemoryMeter(roster, constant)


def _tracer() -> str:
    """Name what else watches this process and would be part of every time; empty if nothing does."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return "a tracer or profiler is active (coverage?); leave it out, for example with --no-cov"
    if sys.version_info >= (3, 12) and sys.monitoring.get_tool(sys.monitoring.COVERAGE_ID) is not None:
        return "coverage is measured; leave it out, for example with --no-cov"
    return ""


def _versions(packages: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """The distribution and version of each package that was imported; a version may be empty."""
    found = {}
    distributions = importlib.metadata.packages_distributions()
    for package in packages:
        first = package.partition(".")[0]
        if first in sys.modules:
            name = (distributions.get(first) or [first])[0]
            try:
                version = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                version = str(getattr(sys.modules[first], "__version__", ""))
            found[first] = (name, version)
    return found
