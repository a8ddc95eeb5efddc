"""The ways to call a file's kernels -> cases, each with a call and the reference for its result.

A ``bench`` function returns or yields calls; ``perf_report`` runs its function at each of its points; a sheet builds
the arguments. Runs in the child process, where the user's file is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction, MockTensor

from rlm_core.errors import DataError

from . import bench_spec as sheet
from .bench_spec import Entry

Call = Callable[[], Any]
Timer = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One call at one size.

    ``run`` takes what times a call and hands it the calls to time; ``reference`` gives what they should give, None
    when nothing is known. ``sizes`` are written as in a query's workload. ``details`` gives more once it has run.
    """

    name: str
    sizes: Mapping[str, str]
    run: Callable[[Timer], None]
    reference: Call | None = None
    rtol: float | None = None
    atol: float | None = None
    details: Callable[[], Mapping[str, Any]] | None = None


def cases_of(module: ModuleType, entry: Entry, benches: list[sheet.BenchSpec]) -> Iterator[KernelCase]:
    """The cases of one entry, made one after another so that only one holds its tensors.

    Raises:
        DataError: the entry returns something that is not a call; and whatever the user's code raises.
    """
    match entry.way:
        case "bench":
            yield from _bench_cases(getattr(module, entry.name), entry.name)
        case "report":
            yield from _report_cases(getattr(module, entry.name), entry.name)
        case "inductor":
            arguments = module.get_args()
            yield KernelCase(
                entry.name, {}, lambda timer: timer(lambda: module.call(arguments)), details=lambda: _launched(module)
            )
        case "sheet":
            bench = benches[int(entry.name.partition(":")[0])]
            for case in bench.cases():
                yield _sheet_case(module, bench, case)


def _bench_cases(function: Callable[[], Any], name: str) -> Iterator[KernelCase]:
    made = function()
    if callable(made) or isinstance(made, Mapping):
        made = [made]
    if not isinstance(made, Iterable):
        raise DataError(f"{name}() gives {type(made).__name__}; return or yield functions without arguments, or dicts")
    for number, one in enumerate(made):
        entry = one if isinstance(one, Mapping) else {"call": one}
        if strange := sorted(map(str, entry.keys() - {"call", "reference", "sizes", "dtype", "rtol", "atol", "name"})):
            raise DataError(f"{name}(): {strange[0]} is not known; known are call, reference, sizes, dtype, rtol, atol")
        call, reference = entry.get("call"), entry.get("reference")
        if not callable(call) or not (reference is None or callable(reference)):
            raise DataError(f"{name}(): call and reference are functions without arguments")
        sizes = workload({**entry.get("sizes", {}), **({"dtype": entry["dtype"]} if "dtype" in entry else {})})
        yield KernelCase(
            str(entry.get("name", number)),
            sizes,
            _timed(call),
            reference,
            entry.get("rtol"),
            entry.get("atol"),
        )


def _launched(module: ModuleType) -> dict[str, Any]:
    """The kernel that a file of inductor launched, and the configuration that inductor's own autotuner chose."""
    for tuner in vars(module).values():
        launchers = getattr(tuner, "launchers", None)
        if not launchers:
            continue
        chosen, name = launchers[0], str(getattr(tuner.fn, "__name__", ""))
        figures = {"registers": "n_regs", "spilled": "n_spills", "shared": "shared"}
        resources = {ours: getattr(chosen, theirs, None) for ours, theirs in figures.items()}
        known = {ours: int(number) for ours, number in resources.items() if number is not None}
        config = workload(chosen.config.all_kwargs())
        return {"kernel": name, "config": config, "launches": [{"kernel": name, "resources": known}]}
    return {}


def _timed(call: Call) -> Callable[[Timer], None]:
    return lambda timer: timer(call)


def _report_cases(mark: Any, name: str) -> Iterator[KernelCase]:
    benchmarks = getattr(mark, "benchmarks", None)
    if benchmarks is None or not callable(getattr(mark, "fn", None)):
        raise DataError(f"{name} is not made by triton.testing.perf_report")
    for benchmark in benchmarks if isinstance(benchmarks, list | tuple) else [benchmarks]:
        for point in benchmark.x_vals:
            values = point if isinstance(point, list | tuple) else [point] * len(benchmark.x_names)
            at = dict(zip(benchmark.x_names, values, strict=True))
            for line in benchmark.line_vals:
                arguments = {**benchmark.args, **at, benchmark.line_arg: line}
                yield KernelCase(benchmark.plot_name or name, workload(arguments), _driven(mark.fn, arguments))


def _driven(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Callable[[Timer], None]:
    def run(timer: Timer) -> None:
        # It times by do_bench, in whose place the timer stands.
        function(**arguments)

    return run


def _sheet_case(module: ModuleType, bench: sheet.BenchSpec, case: sheet.SpecCase) -> KernelCase:
    target = _named(module, bench.target)
    built = [_build(one, case) for one in bench.arguments]
    outputs = [value for value, one in zip(built, bench.arguments, strict=True) if one.output]

    def call() -> Any:
        if not bench.launch:
            result = target(*built, **bench.constants)
            return outputs if outputs else result
        target[lambda meta: tuple(sheet.evaluate(one, {**case.sizes, **meta}) for one in bench.grid)](
            *built, **bench.constants
        )
        return outputs

    reference = None
    if bench.reference is not None:
        expected = _named(module, bench.reference)
        # A kernel's scalars are about its memory; its reference knows tensors.
        inputs = [
            value
            for value, one in zip(built, bench.arguments, strict=True)
            if not one.output and not (bench.launch and one.shape is None)
        ]
        reference = lambda: expected(*inputs)  # noqa: E731 (called once or never)
    sizes = {**case.sizes, **({"dtype": case.dtype} if case.dtype else {})}
    return KernelCase(bench.target, workload(sizes), _timed(call), reference, bench.rtol, bench.atol)


def _named(module: ModuleType, name: str) -> Any:
    """A thing of the module, or of torch where the name begins with it."""
    first, *rest = name.split(".")
    thing = torch if first == "torch" else getattr(module, first, None)
    for part in rest:
        thing = getattr(thing, part, None)
    if thing is None:
        raise DataError(f"{name} is not in {module.__name__}; correct the sheet")
    return thing


def _build(argument: sheet.Argument, case: sheet.SpecCase) -> Any:
    if argument.shape is None:
        value = argument.value
        return sheet.evaluate(value, case.sizes) if isinstance(value, str) else value
    shape = [sheet.evaluate(part, case.sizes) for part in argument.shape]
    dtype = getattr(torch, sheet.DTYPES[argument.dtype or case.dtype or "fp32"])
    if argument.fill in ("zeros", "ones"):
        return getattr(torch, argument.fill)(shape, dtype=dtype, device="cuda")
    if argument.fill == "arange":
        return torch.arange(torch.Size(shape).numel(), device="cuda").reshape(shape).to(dtype)
    if not dtype.is_floating_point:
        high = 2 if dtype is torch.bool else 100
        return torch.randint(0, high, shape, device="cuda").to(dtype)
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)


_SHORT = {long: short for short, long in sheet.DTYPES.items()}


def workload(values: Mapping[str, Any]) -> dict[str, str]:
    """Sizes, dtypes and settings as a query names them: texts, dtypes in short."""
    return {str(name): _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    if isinstance(value, torch.dtype):
        value = str(value).removeprefix("torch.")
    if isinstance(value, list | tuple) and value and all(type(one) is int for one in value):
        return "x".join(map(str, value))
    text = str(value)
    return _SHORT.get(text, text)


@dataclass(slots=True)
class KernelLaunch:
    """One launch of a kernel that was seen: what it was given, and what was compiled for it (None: interpreted)."""

    kernel: str
    arguments: dict[str, str]
    grid: tuple[int, ...] | None = None
    compiled: Any = None


@dataclass(slots=True)
class KernelLaunches:
    """The kernels that a call launched and the autotuners that chose for it, in order."""

    launches: list[KernelLaunch] = field(default_factory=list)
    tuners: list[Any] = field(default_factory=list)


@contextmanager
def recorded(*, compile_only: bool = False, first: bool = False) -> Iterator[KernelLaunches]:
    """Within the block launches and tuners are noted.

    With ``compile_only`` kernels see of a tensor its dtype alone; with ``first`` a tuner takes its first configuration.
    """
    seen = KernelLaunches()
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
    """A ``triton.Config`` as the fields of a row: its names, and warps, stages and clusters."""
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


def _launch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> KernelLaunch:
    given = dict(zip(function.arg_names, args, strict=False)) | kwargs
    arguments = {name: _described(value) for name, value in given.items()}
    shape: tuple[int, ...] | None = None
    try:
        worked_out = grid(given) if callable(grid) else grid
        shape = tuple(int(one) for one in (worked_out if isinstance(worked_out, list | tuple) else (worked_out,)))
    except Exception:
        # The launch itself will say what is wrong with its grid.
        shape = None
    return KernelLaunch(kernel_name(function), arguments, shape)


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        dtype = workload({"dtype": value.dtype})["dtype"]
        return f"{'x'.join(map(str, value.shape)) or '1'} {dtype}"
    return workload({"value": value})["value"][:80]


def _mock(value: Any) -> Any:
    return MockTensor(value.dtype, list(value.shape)) if isinstance(value, torch.Tensor) else value
