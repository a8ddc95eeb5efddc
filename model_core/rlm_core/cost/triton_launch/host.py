"""Functions that launch kernels, followed at shapes: their launches with grid, arguments and configurations.

The trace of PyTorch modules follows the Python; a kernel of the text is a value that can be subscripted with a grid and
then called.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..concrete.frame import call_function, evaluate, execute
from ..concrete.values import UNKNOWN, LibraryName, Named, SourceFunction, UnknownValue, Value
from ..domain.names import bound
from ..domain.syntax import parse_whole
from ..torch_trace.arithmetic import binary
from ..torch_trace.context import (
    CALLEES,
    FAILURES,
    SUBSCRIPTS,
    TraceContext,
    attempted,
    call,
    new_context,
)
from ..torch_trace.library import RULES
from ..torch_trace.recorder import Operation, Recorder
from ..torch_trace.tracing import MAX_TEXT
from ..torch_trace.values import Instance, SourceClass, Tensor
from .launch import LaunchFacts, evaluate_launch
from .values import Config, Kernel

_STEPS = 60_000
_SETTINGS = tuple(
    f"{module}.calculate_settings"
    for module in ("liger_kernel.ops.utils", "unsloth.kernels.utils", "utils", "ops.utils")
)
_TEST = re.compile(r"_*(?:test|bench|main\Z|demo|run_test|verify)")
_MOST_CONFIGS = 4  # evaluated of those that a kernel is tuned over
_MULTIPROCESSORS, _SHARED = 108, 166_912  # of an A100: what a function reads of the device that it runs on
BLOCK = re.compile(r"block|tile|^B[A-Z]\Z", re.IGNORECASE)
_USUAL_BLOCKS = (32, 128)  # for block sizes that are not known: what tuning tries lies mostly between them
_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "grid", "warmup", "stream"})
# Texts of kernels are shown without their imports: the names that these usually bind.
_NAMES = {
    "triton": LibraryName("triton"), "tl": LibraryName("triton.language"), "torch": LibraryName("torch"),
    "math": LibraryName("math"), "np": LibraryName("numpy"), "F": LibraryName("torch.nn.functional"),
    "nn": LibraryName("torch.nn"), "libdevice": LibraryName("triton.language.extra.libdevice"),
    "tl_math": LibraryName("triton.language.math"), "Tensor": LibraryName("torch.Tensor"),
    "cdiv": LibraryName("triton.cdiv"), "next_power_of_2": LibraryName("triton.next_power_of_2"),
    "calculate_settings": LibraryName("utils.calculate_settings"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class GriddedKernel:
    """A kernel with the grid of a launch."""

    kernel: Kernel
    grid: Value


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A launch with its variants: one for each configuration that is evaluated, as far as its grid is known.

    ``times`` is how often it happens; more than once in a long loop, which is followed in part.
    """

    kernel: Kernel
    variants: tuple[Variant, ...]
    times: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """Grid and arguments of a launch in one configuration."""

    grid: tuple[int, ...]
    arguments: Mapping[str, Value]
    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class HostTrace:
    """The launches of a function in order, and what else it does: operations of PyTorch."""

    launches: tuple[Launch, ...] = ()
    operations: tuple[Operation, ...] = ()
    complete: bool = False


@dataclass(slots=True, eq=False)
class HostProgram:
    """A text whose top level is followed: functions by name, and its kernels."""

    context: TraceContext
    functions: dict[str, SourceFunction]
    kernels: dict[str, Kernel]
    launches: list[Launch] = field(default_factory=list)

    def run(self, function: Value, args: Sequence[Value], named: Named) -> HostTrace:
        """Follow a function at arguments. Never raises for what the text does."""
        recorder = self.context.recorder
        recorder.steps_left = _STEPS
        recorder.repeated = 1.0
        recorder.operations.clear()
        self.launches.clear()
        complete = True
        try:
            call_function(self.context, function, list(args), dict(named))
        except FAILURES:
            complete = False
        return HostTrace(tuple(self.launches), tuple(recorder.operations), complete)


def read_program(text: str, constants: Mapping[str, Value] | None = None) -> HostProgram | None:
    """A Python text with kernels, its top level followed; None when it has none or cannot be parsed."""
    tree = parse_whole(text, MAX_TEXT)
    if not isinstance(tree, ast.Module):
        return None
    context = new_context(constants or {}, dict(_NAMES), Recorder(_STEPS))
    launches: list[Launch] = []
    kernels: dict[str, Kernel] = {}
    functions: dict[str, SourceFunction] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and _TEST.match(statement.name):
            continue
        attempted(_follow_top, context, statement)
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and isinstance(
            kind := context.top.names.get(statement.name), SourceClass
        ):
            methods = {name: value for name, value in kind.members.items() if isinstance(value, SourceFunction)}
            functions |= {f"{statement.name}.{name}": method for name, method in methods.items()}
        if not isinstance(statement, ast.FunctionDef):
            continue
        function = context.top.names.get(statement.name)
        if not isinstance(function, SourceFunction):
            continue
        if any(map(_is_jit, statement.decorator_list)):
            kernels[statement.name] = kernel = _kernel(context, function, statement, launches)
            context.top.names[statement.name] = kernel
        else:
            functions[statement.name] = function
    return HostProgram(context, functions, kernels, launches) if kernels else None


def _follow_top(context: TraceContext, statement: ast.stmt) -> Value:
    try:
        execute(context, [statement])
    except FAILURES:
        return UNKNOWN
    return None


def _is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    return name == "jit"


def _kernel(context: TraceContext, function: SourceFunction, node: ast.FunctionDef, launches: list[Launch]) -> Kernel:
    configs: list[Config] = []
    heuristics: list[tuple[str, Value]] = []
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        name = ast.unparse(decorator.func).rpartition(".")[2]
        named = {item.arg: item.value for item in decorator.keywords if item.arg}
        if "autotune" in name:
            given = evaluate(context, named.get("configs", decorator.args[0] if decorator.args else ast.Constant(None)))
            configs += [value for value in given if isinstance(value, Config)] if isinstance(given, list) else []
        elif name == "heuristics":
            given = evaluate(context, decorator.args[0] if decorator.args else named["values"])
            heuristics += list(given.items()) if isinstance(given, dict) else []
    return Kernel(function, tuple(configs), tuple(heuristics), launches)


def _subscript(context: TraceContext, kernel: Kernel, grid: Value) -> Value:
    return GriddedKernel(kernel, grid)


def _call_kernel(context: TraceContext, target: GriddedKernel, args: list[Value], named: Named) -> Value:
    kernel = target.kernel
    spec = kernel.function.node.args
    given = bound(spec, args, {name: value for name, value in named.items() if name not in _OPTIONS}).names
    known = {item.arg for item in (*spec.args, *spec.kwonlyargs)}
    given |= {name: value for name, value in named.items() if name in _OPTIONS and name in known}
    variants = []
    for config in chosen_configs(kernel.configs):
        names = {**kernel.function.defaults, **given, **config.names}
        options = {
            "num_warps": named.get("num_warps", config.warps),
            "num_stages": named.get("num_stages", config.stages),
        }
        found = _with_heuristics(context, kernel, names, options)
        open_sizes = unknown_blocks(kernel.function, found)
        for size in _USUAL_BLOCKS if open_sizes else (0,):
            if open_sizes:
                found = _with_heuristics(context, kernel, {**names, **dict.fromkeys(open_sizes, size)}, options)
            grid = _grid(context, target.grid, found)
            if grid is not None:
                warps, stages = (found.pop(name) for name in ("num_warps", "num_stages"))
                variants.append(
                    Variant(
                        grid, found, warps if isinstance(warps, int) else 4, stages if isinstance(stages, int) else 3
                    )
                )
    kernel.launches.append(Launch(kernel, tuple(variants), context.recorder.repeated))
    return UNKNOWN


def _with_heuristics(
    context: TraceContext, kernel: Kernel, names: Mapping[str, Value], options: Mapping[str, Value]
) -> dict[str, Value]:
    """The arguments and options of a launch with those that are computed from them."""
    found = {**options, **names}
    for name, rule in kernel.heuristics:
        found[name] = attempted(call, context, rule, [dict(found)], {})
    return found


def unknown_blocks(function: SourceFunction, names: Mapping[str, Value]) -> list[str]:
    """The block sizes of a kernel that are not known: a tuned configuration from elsewhere sets them."""
    spec = function.node.args
    return [
        item.arg
        for item in (*spec.args, *spec.kwonlyargs)
        if isinstance(names.get(item.arg, UNKNOWN), (UnknownValue, Tensor))
        and BLOCK.search(item.arg)
        and item.annotation is not None
        and "constexpr" in ast.unparse(item.annotation)
    ]


def chosen_configs(configs: Sequence[Config]) -> Sequence[Config]:
    """Some of the configurations, evenly spread."""
    if not configs:
        return (Config({}),)
    count = min(len(configs), _MOST_CONFIGS)
    return [configs[(2 * number + 1) * len(configs) // (2 * count)] for number in range(count)]


def _grid(context: TraceContext, grid: Value, names: Mapping[str, Value]) -> tuple[int, ...] | None:
    """The sizes of a grid; None where one is not known."""
    if isinstance(grid, SourceFunction):
        grid = attempted(call_function, context, grid, [dict(names)], {})
    sizes = grid if isinstance(grid, (tuple, list)) else (grid,)
    whole = [int(size) if isinstance(size, (int, float)) and math.isfinite(size) else None for size in sizes]
    return tuple(size for size in whole if size is not None) if None not in whole and 0 < len(whole) <= 3 else None


def launch_facts(launch: Launch, *, quick: bool = False) -> tuple[LaunchFacts, ...]:
    """The facts of a launch in each configuration that can be evaluated; ``quick`` as in ``evaluate_launch``."""
    facts = (
        evaluate_launch(
            launch.kernel.function, variant.grid, variant.arguments, variant.warps, variant.stages, quick=quick
        )
        for variant in launch.variants[: 1 if quick else None]
    )
    return tuple(fact for fact in facts if fact is not None)


def _config(context: TraceContext, args: list[Value], named: Named) -> Value:
    names = args[0] if args and isinstance(args[0], dict) else named.get("kwargs", {})
    warps, stages = (named.get(name) for name in ("num_warps", "num_stages"))
    return Config(dict(names), *(value if isinstance(value, int) else None for value in (warps, stages)))


def _cdiv(context: TraceContext, args: list[Value], named: Named) -> Value:
    values = [*args, *named.values()]
    return binary(ast.FloorDiv, binary(ast.Add, values[0], binary(ast.Sub, values[1], 1)), values[1])


def _next_power(context: TraceContext, args: list[Value], named: Named) -> Value:
    number = [*args, *named.values()][0]
    if not isinstance(number, int) or number.bit_length() > 62:
        raise TypeError("not a size")
    return 1 << max(number - 1, 0).bit_length()


def _apply(context: TraceContext, kernel: Kernel, args: list[Value], named: Named) -> Value:
    """``kernel.run(..., grid=...)`` and a kernel called as a plain function."""
    if "grid" not in named:
        raise TypeError("a kernel without a grid")
    return _call_kernel(context, GriddedKernel(kernel, named["grid"]), args, named)


def _settings(context: TraceContext, args: list[Value], named: Named) -> Value:
    """``calculate_settings`` of Unsloth and Liger: the power of two that holds a row, and warps for it."""
    block = _next_power(context, args, named)
    return block, next((warps for least, warps in ((32768, 32), (8192, 16), (2048, 8)) if block >= least), 4)


def _properties(context: TraceContext, args: list[Value], named: Named) -> Value:
    kind = SourceClass("DeviceProperties", ())
    return Instance(kind, {"multi_processor_count": _MULTIPROCESSORS, "major": 8, "minor": 0, "warp_size": 32})


def _driver_properties(context: TraceContext, args: list[Value], named: Named) -> Value:
    return {"multiprocessor_count": _MULTIPROCESSORS, "max_shared_mem": _SHARED, "max_num_regs": 65_536, "warpSize": 32}


SUBSCRIPTS[Kernel] = _subscript
CALLEES[GriddedKernel] = _call_kernel
CALLEES[Kernel] = _apply
RULES.update(
    {
        "triton.Config": _config, "triton.cdiv": _cdiv, "triton.language.cdiv": _cdiv, "tl.cdiv": _cdiv,
        "triton.next_power_of_2": _next_power, "triton.language.next_power_of_2": _next_power,
        **dict.fromkeys(_SETTINGS, _settings),
        "torch.cuda.get_device_properties": _properties,
        "triton.runtime.driver.active.utils.get_device_properties": _driver_properties,
        "torch.cuda.current_device": lambda context, args, named: 0,
        "torch.cuda.get_device_capability": lambda context, args, named: (8, 0),
        "triton.runtime.driver.active.get_current_device": lambda context, args, named: 0,
        "triton.language.constexpr": lambda context, args, named: args[0],
    }
)  # fmt: skip
