"""Runs one file of Triton kernels in the child process: every case and configuration, one row each.

Three modes: ``measure`` on a GPU, ``compile`` for a target without launching anything, ``interpret`` on the CPU, where
results are checked and nothing is timed.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from triton.runtime.autotuner import Autotuner

from . import bench_spec as sheet
from .ahead_of_time import pretend_device
from .bench_rows import Row, row_key
from .bench_spec import Entry
from .kernel_resources import kernel_resources
from .meter import Effort, GpuStopwatch, Stopwatch, gpu_state, measure
from .runner_process import Channel, WrongResultError, import_file
from .targets import target_named
from .triton_cases import Call, KernelCase, KernelLaunches, Timer, cases_of, config_row, kernel_name, only, recorded


@dataclass(slots=True)
class TritonSession:
    """The state that all cases of a file share."""

    channel: Channel
    mode: str
    device: str
    configs: str
    effort: Effort
    machine: Mapping[str, str]
    stopwatch: Stopwatch | None = None
    timed: list[Row] = field(default_factory=list)
    seen: KernelLaunches = field(default_factory=KernelLaunches)
    file: Mapping[str, str] = field(default_factory=dict)


def run(options: Mapping[str, Any], channel: Channel) -> None:
    """Work through the entries of each of ``options["files"]``."""
    mode, target = options["mode"], target_named(options["target"])
    if mode == "measure":
        device, machine = _gpu()
    else:
        device, machine = (target.name if mode == "compile" else "cpu-interpreter"), {}
    machine = {**machine, "triton": triton.__version__, "torch": torch.__version__, "python": platform.python_version()}
    # Without times there is no best configuration.
    configs = options["configs"] if mode == "measure" else "all"
    session = TritonSession(channel, mode, device, configs, Effort(**options["effort"]), machine)
    if mode == "measure":
        session.stopwatch = GpuStopwatch()
        work(session, options["files"])
        return
    with pretend_device(target, "meta" if mode == "compile" else "cpu"):
        work(session, options["files"])


def work(session: TritonSession, files: Iterable[Mapping[str, Any]]) -> None:
    """Make the rows of files: ``path``, ``shown`` and ``source`` of each, its ``sheet`` and its ``entries``."""
    with _do_bench(session) as timer:
        for file in files:
            session.file = {"path": file["shown"], "source": file["source"]}
            _file(session, file, timer)


def _file(session: TritonSession, file: Mapping[str, Any], timer: Timer) -> None:
    """All entries of one file; importing it is itself something that can fail or hang."""
    about = {**session.file, "mode": session.mode, "device": session.device, "case": {}}
    key = row_key(importing=True, **about)
    if not session.channel.wanted(key):
        return
    session.channel.begin({"key": key, **about})
    try:
        module = import_file(Path(file["path"]))
        benches = sheet.read_bench_spec(Path(file["sheet"]))[1] if file["sheet"] else []
    except Exception as error:
        session.channel.failed(error, machine=dict(session.machine))
        return
    session.channel.nothing()
    for way, name in file["entries"]:
        if way == "inductor" and session.mode == "compile":
            _inductor(session, module)
        else:
            _entry(session, module, Entry(way, name), benches, timer)


def _gpu() -> tuple[str, dict[str, str]]:
    properties = torch.cuda.get_device_properties(0)
    return properties.name, {
        "gpu": properties.name,
        "cuda": str(torch.version.cuda or ""),
        "hip": str(torch.version.hip or ""),
        "driver": gpu_state().get("driver_version", ""),
    }


def _entry(
    session: TritonSession, module: ModuleType, entry: Entry, benches: list[sheet.BenchSpec], timer: Timer
) -> None:
    """All cases of one entry; making a case is itself something that can fail or hang."""
    cases, number = iter(cases_of(module, entry, benches)), 0
    while True:
        parts = {"entry": f"{entry.way}:{entry.name}", "number": number, "mode": session.mode, "device": session.device}
        about = {**session.file, "entry": entry.name, "mode": session.mode, "device": session.device, "case": {}}
        making = row_key(source=session.file["source"], making=True, **parts)
        if making in session.channel.done:
            # The last process did not survive this, so what follows cannot be reached.
            session.channel.wanted(making)
            return
        session.channel.begin({"key": making, **about})
        try:
            case = next(cases, None)
        except Exception as error:
            session.channel.failed(error, machine=dict(session.machine))
            return
        session.channel.nothing()
        if case is None:
            return
        named = {
            **parts,
            "source": session.file["source"],
            "case": dict(case.sizes),
            "configs": session.configs,
        }
        _case(session, case, {**about, "case": dict(case.sizes), "name": case.name}, named, timer)
        number += 1


def _inductor(session: TritonSession, module: ModuleType) -> None:
    """The kernels of a file that inductor wrote: each configuration compiled as inductor would, for the target."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    from triton.compiler import ASTSource

    target = triton.runtime.driver.active.get_current_target()
    for tuner in [thing for thing in vars(module).values() if isinstance(thing, CachingAutotuner)]:
        for config in tuner.configs:
            about: Row = {**session.file, "entry": "call", "mode": session.mode, "device": session.device, "case": {}}
            about |= {"kernel": kernel_name(tuner), "config": config_row(config)}
            key = row_key(**about)
            if not session.channel.wanted(key):
                continue
            session.channel.begin({"key": key, **about})
            try:
                meta = tuner._create_compile_meta(config)
                source = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
                options = tuner._create_compile_options(config, meta)
                compiled = triton.compile(source, target=target, options=options)
            except Exception as error:
                session.channel.failed(error)
                continue
            launch = {"kernel": about["kernel"], "resources": kernel_resources(compiled)}
            session.channel.row({"status": "ok", "launches": [launch], "machine": dict(session.machine)})


def _case(session: TritonSession, case: KernelCase, about: Row, parts: Mapping[str, Any], timer: Timer) -> None:
    """One case: each configuration of each autotuner that it uses, then the case as a whole."""
    channel, key = session.channel, row_key(**parts)
    if not channel.wanted(key):
        return
    channel.begin({"key": key, **about})
    trouble: Exception | None = None
    with recorded(compile_only=session.mode == "compile", first=True) as seen:
        try:
            case.run(_once)
        except Exception as error:
            trouble = error
    tried = [(tuner, config) for tuner in seen.tuners for config in tuner.configs if len(tuner.configs) > 1]
    if session.configs != "all" or not tried:
        if trouble is not None and not seen.tuners:
            channel.failed(trouble, **_compiled(session, seen))
        else:
            _finish(session, case, {}, timer)
        return
    channel.nothing()
    for tuner, config in tried:
        chosen = {"kernel": kernel_name(tuner), "config": config_row(config)}
        sub = row_key(**parts, **chosen)
        if channel.wanted(sub):
            channel.begin({"key": sub, **about})
            with only(tuner, config):
                _finish(session, case, chosen, timer)
    # A later run sees that nothing is left to do here.
    channel.begin({"key": key, **about})
    channel.row({"status": "ok", "summary": True, "configs": len(tried)})


def _once(call: Call, *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """In the place of a timer: calls once."""
    call()
    return [1.0] * len(quantiles) if quantiles else 1.0


def _finish(session: TritonSession, case: KernelCase, more: Row, timer: Timer) -> None:
    """Run a case under the configuration that is set, and send its row."""
    session.timed.clear()
    session.seen = KernelLaunches()
    with (
        nullcontext(session.seen)
        if session.mode == "measure"
        else recorded(compile_only=session.mode == "compile") as session.seen
    ):
        try:
            case.run(_checked(case, timer, session) if case.reference is not None else timer)
        except Exception as error:
            session.channel.failed(error, **more, **_compiled(session, session.seen))
            return
    row: Row = {"status": "ok", **more, **_compiled(session, session.seen)}
    if case.reference is not None and session.mode != "compile":
        row["checked"] = True
    if session.mode == "measure" and len(session.seen.tuners) == 1 and not more:
        row["config"] = config_row(session.seen.tuners[0].best_config)
    if case.details is not None:
        row |= case.details()
    if session.timed:
        row |= session.timed[0]
        if len(session.timed) > 1:
            row["calls"] = list(session.timed)
    session.channel.row(row)


def _checked(case: KernelCase, timer: Timer, session: TritonSession) -> Timer:
    """A timer that first compares the result of a call with the reference."""

    def compared(call: Call, **options: Any) -> Any:
        assert case.reference is not None
        if session.mode != "compile":
            expected = case.reference()
            compare(call(), expected, case)
        return timer(call, **options)

    return compared


def _compiled(session: TritonSession, seen: KernelLaunches) -> Row:
    """Return the launched kernels and the GPU resources that they use."""
    launches = []
    for launch in seen.launches[:64]:
        entry: Row = {"kernel": launch.kernel, "arguments": launch.arguments, "grid": launch.grid}
        if launch.compiled is not None:
            entry["resources"] = kernel_resources(launch.compiled)
            if session.mode == "measure":
                entry["resources"] |= {
                    "registers": int(launch.compiled.n_regs),
                    "spilled": int(launch.compiled.n_spills),
                }
        launches.append(entry)
    unique = {str(launch): launch for launch in launches}
    return {"launches": list(unique.values()), "machine": dict(session.machine)}


@contextmanager
def _do_bench(session: TritonSession) -> Iterator[Timer]:
    """Within the block Triton's ``do_bench`` is ours; calls that an autotuner times to choose stay Triton's."""
    plain, tune = triton.testing.do_bench, Autotuner._bench
    tuning = False

    def timer(call: Call, *_: Any, quantiles: Any = None, return_mode: str = "mean", **options: Any) -> Any:
        if tuning:
            return plain(call, quantiles=quantiles, return_mode=return_mode, **options)
        if session.stopwatch is None:
            call()
            numbers = [1.0, 1.0, 1.0]
        else:
            before = gpu_state()
            # An autotuner chooses now; timed calls are not watched, which would add to their time.
            call()
            with recorded() as seen:
                call()
            session.seen.launches += seen.launches
            session.seen.tuners += seen.tuners
            timing = measure(call, session.stopwatch, session.effort)
            session.timed.append({**timing.row(), "clocks": {"before": before, "after": gpu_state()}})
            numbers = [timing.median * 1e3, timing.p20 * 1e3, timing.p80 * 1e3]
        return numbers[: len(quantiles)] if quantiles else numbers[0]

    def choose(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal tuning
        tuning = True
        try:
            return tune(self, *args, **kwargs)
        finally:
            tuning = False

    cudagraph = triton.testing.do_bench_cudagraph
    try:
        triton.testing.do_bench, triton.testing.do_bench_cudagraph, Autotuner._bench = timer, timer, choose
        yield timer
    finally:
        triton.testing.do_bench, triton.testing.do_bench_cudagraph, Autotuner._bench = plain, cudagraph, tune


# Relative and absolute tolerance by the width of what is compared.
_TOLERANCES = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (2e-2, 2e-2), torch.float32: (1e-3, 1e-3)}


def compare(given: Any, expected: Any, case: KernelCase) -> None:
    """Tensors, or lists, tuples and tables of them.

    Raises:
        WrongResultError: they differ, or there is something that cannot be compared.
    """
    given, expected = _flat(given), _flat(expected)
    if len(given) != len(expected):
        raise WrongResultError(f"gives {len(given)} tensors, its reference {len(expected)}")
    for one, other in zip(given, expected, strict=True):
        rtol, atol = _TOLERANCES.get(one.dtype, (0.0, 0.0))
        with torch._C.DisableTorchFunction():
            try:
                torch.testing.assert_close(
                    one.cpu(),
                    other.cpu(),
                    rtol=rtol if case.rtol is None else case.rtol,
                    atol=atol if case.atol is None else case.atol,
                    check_dtype=False,
                    equal_nan=True,
                )
            except AssertionError as error:
                raise WrongResultError(" ".join(str(error).split())) from None


def _flat(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [tensor for one in result for tensor in _flat(one)]
    raise WrongResultError(f"gives {type(result).__name__}, which cannot be compared; return tensors")
