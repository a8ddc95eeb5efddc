"""A kernel that nothing in the text launches, and sizes by the names of its arguments -> the facts of a likely launch.

A launch covers what the masks of the kernel's stores let through, once: along an axis of the grid, the first program
that stores nothing is the end. Where the masks do not limit an axis, its programs are rows, whose number the sizes
must name. Block sizes that the text leaves open are those of a tile, unless a larger one stores more: then a block
covers a dimension. Tensors are contiguous. A kernel for which one of these fails has no facts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from ..concrete.frame import LimitReached
from ..concrete.values import SourceFunction, Value
from .host import BLOCK, HostProgram, chosen_configs
from .launch import LaunchFacts, ProgramProbe, evaluate_launch
from .pointers import pointer_parameters
from .values import Kernel, Pointer

_STRIDE = re.compile(r"stride|ld[abc]\Z", re.IGNORECASE)
_INDEX = re.compile(r"(?:.*_)?(?:ind|idx|index|indices|ids|labels?|targets?)(?:_ptrs?)?\Z", re.IGNORECASE)
_FLAG = re.compile(r"(?:is|has|use|with|enable|do|return|apply|inplace)(?:_|\Z)|causal|reverse", re.IGNORECASE)
_REAL = re.compile(r"eps|scale|alpha|beta|momentum|\Ap\Z|_p\Z|rate|lr\Z|decay|slope|value\Z", re.IGNORECASE)
_LETTERS = {
    "m": ("m",), "n": ("n",), "k": ("k",), "z": ("z", "b", "batch"), "b": ("b", "z", "batch"),
    "h": ("h", "num_heads", "n_heads"), "d": ("d", "head_dim"), "t": ("t", "seq_len", "n_ctx"),
}  # fmt: skip
_ROW_NAMES = ("m", "bt", "num_tokens", "n_rows", "rows", "num_rows", "nrows", "total_tokens")
_OUTER = re.compile(r"b\Z|z\Z|bsz|bs\Z|batch|h\Z|hq|.*heads?(?:_|\Z)", re.IGNORECASE)
_TILE, _ENOUGH = 32, 2048  # least size of a block where the text names none, elements that a program mostly stores
_BYTES = 2  # of an element, at the least
_MORE = 1.05  # times as much is more
_MOST_PROGRAMS, _LARGEST_BLOCK = 2**24, 2**17
_STEPS = 30_000  # of evaluation until the grid is found


def assumed_launch(program: HostProgram, workload: Mapping[str, str]) -> tuple[LaunchFacts, Mapping[str, Value]] | None:
    """The facts of a likely launch of a text's only kernel, and its arguments; None where they are not fixed.

    Args:
        program: the text.
        workload: sizes, by the names of the kernel's arguments, and its ``dtype``.
    """
    kernel = only_kernel(program)
    if kernel is None:
        return None
    axes = _axes(kernel.function)
    if axes is None:
        return None
    sizes = {name.lower(): int(value) for name, value in workload.items() if value.isdigit()}
    if not sizes:
        return None
    names = _arguments(kernel, sizes, workload.get("dtype", "fp32"))
    try:
        return _launch(ProgramProbe(kernel.function, names, _STEPS), axes, names, sizes)
    except (LimitReached, RecursionError, MemoryError):
        return None


def _is_fixed(facts: LaunchFacts) -> bool:
    """Return whether what a launch moves depends on nothing that is not known."""
    return facts.known and all(facts.counts[name].least == facts.counts[name].most for name in ("loaded", "stored"))


def only_kernel(program: HostProgram) -> Kernel | None:
    """The kernel of a text that no other one calls; None where there are several."""
    used = {
        node.id
        for kernel in program.kernels.values()
        for node in ast.walk(kernel.function.node)
        if isinstance(node, ast.Name)
    }
    roots = [kernel for name, kernel in program.kernels.items() if name not in used]
    return roots[0] if len(roots) == 1 else None


def _arguments(kernel: Kernel, sizes: Mapping[str, int], dtype: str) -> dict[str, Value]:
    """The arguments of a launch in one of its configurations; blocks that nothing sets are left out."""
    spec = kernel.function.node.args
    names = [item.arg for item in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    pointers = pointer_parameters(kernel.function)
    first = dtype.partition("+")[0]
    given: dict[str, Value] = dict(kernel.function.defaults)
    for name in names:
        if name in pointers:
            given[name] = Pointer(name, "int64" if _INDEX.match(name) else first)
        elif name.lower() in sizes:
            given[name] = sizes[name.lower()]
        elif name not in given and _FLAG.search(name):
            given[name] = False
        elif name not in given and _REAL.search(name):
            given[name] = 1.0
    given |= _strides([name for name in names if _STRIDE.search(name)], sizes)
    configs = chosen_configs(kernel.configs)
    config = configs[len(configs) // 2]
    return {**given, **{name: value for name, value in config.names.items() if name in names}}


def _strides(names: Sequence[str], sizes: Mapping[str, int]) -> dict[str, int]:
    """The strides of contiguous tensors, whose dimensions the last words or letters of the names tell."""
    width = next((value for name, value in reversed(list(sizes.items())) if name not in _ROW_NAMES), 1)
    tensors: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        stem = re.sub(_STRIDE, "", name.lower()).strip("_").replace("__", "_")
        if "_" in stem:
            tensor, _, dimension = stem.rpartition("_")
        else:
            tensor, dimension = (stem[:-1], stem[-1]) if len(stem) > 1 and stem[-1] in _LETTERS else (stem, "")
        tensors.setdefault(tensor, []).append((name, dimension))
    found: dict[str, int] = {}
    for own in tensors.values():
        # The only stride is mostly that of the rows.
        step = 1 if len(own) > 1 else width
        for name, dimension in reversed(own):
            found[name] = step
            step *= _size_of(dimension, sizes) or width
    return found


def _size_of(dimension: str, sizes: Mapping[str, int]) -> int | None:
    known = _LETTERS.get(dimension, (dimension,))
    return next((value for name, value in sizes.items() if name in known or name.startswith(f"{dimension}_")), None)


def _launch(
    probe: ProgramProbe, axes: Sequence[int], names: Mapping[str, Value], sizes: Mapping[str, int]
) -> tuple[LaunchFacts, Mapping[str, Value]] | None:
    """The facts of a launch, and its arguments with the blocks that nothing sets."""
    spec = probe.function.node.args
    constants = [
        item.arg
        for item in (*spec.args, *spec.kwonlyargs)
        if item.arg not in names and item.annotation is not None and "constexpr" in ast.unparse(item.annotation)
    ]
    if not all(map(BLOCK.search, constants)):
        return None  # a variant of the kernel
    rows = _rows(probe.function, sizes)
    best: tuple[LaunchFacts, Mapping[str, Value]] | None = None
    block = _TILE
    while block <= _LARGEST_BLOCK:
        probe.arguments = {**names, **dict.fromkeys(constants, block)}
        grid = _grid(probe, axes, rows)
        facts = evaluate_launch(probe.function, grid, probe.arguments) if grid is not None else None
        if facts is None or not _is_fixed(facts):
            return None
        if not constants:
            return facts, probe.arguments
        # A larger tile stores the same, a larger block of a dimension stores more until it covers it.
        if best is not None and _likely(facts, "stored") < _MORE * _likely(best[0], "stored"):
            # What a tile saves by reuse depends on its size.
            if max(_likely(facts, "loaded"), 1) * _MORE < _likely(best[0], "loaded"):
                return None
            if _is_enough(best[0], block // 2):
                return best
        best, block = (facts, probe.arguments), 2 * block
    return None


def _is_enough(facts: LaunchFacts, block: int) -> bool:
    """Return whether a program does as much as those of most kernels."""
    return block >= _ENOUGH or _likely(facts, "stored") >= _ENOUGH * _BYTES * facts.programs


def _likely(facts: LaunchFacts, name: str) -> float:
    return facts.counts[name].likely


def _grid(probe: ProgramProbe, axes: Sequence[int], rows: int) -> tuple[int, ...] | None:
    """The grid that covers once what is stored; None where an axis has no end."""
    grid = [1, 1, 1]
    last = {axis: probe.moves(_place(axis, _MOST_PROGRAMS)) for axis in axes}
    free = [axis for axis, (_, stored) in last.items() if stored]
    if free and (len(free) > 1 or not rows):
        return None
    for axis, (loaded, _) in last.items():
        grid[axis] = rows if axis in free else _end(probe, axis, loads_end=not loaded)
    return tuple(grid) if all(grid) else None


def _place(axis: int, number: int) -> tuple[int, ...]:
    return tuple(number if axis == own else 0 for own in range(3))


def _rows(function: SourceFunction, sizes: Mapping[str, int]) -> int:
    """How many rows there are: the only size that the kernel does not read, if it is a number of rows; 0 otherwise."""
    body = function.node.body if isinstance(function.node.body, list) else [function.node.body]
    read = {node.id.lower() for part in body for node in ast.walk(part) if isinstance(node, ast.Name)}
    unread = [name for name in sizes if name not in read]
    # Of batches and heads, a program may have any part.
    if len(unread) != 1 or unread[0] not in _ROW_NAMES or any(map(_OUTER.match, sizes)):
        return 0
    return sizes[unread[0]]


def _axes(function: SourceFunction) -> list[int] | None:
    """The axes of the grid that a kernel asks for; None where it asks for the grid itself."""
    found: set[int] = set()
    for node in ast.walk(function.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "num_programs":
                return None
            if node.func.attr == "program_id":
                given = [*node.args, *(item.value for item in node.keywords)]
                axis = given[0].value if given and isinstance(given[0], ast.Constant) else None
                if not isinstance(axis, int) or not 0 <= axis < 3:
                    return None
                found.add(axis)
    return sorted(found)


def _end(probe: ProgramProbe, axis: int, *, loads_end: bool) -> int:
    """The first place on an axis that stores nothing, and loads nothing if there is such a place."""

    def works(number: int) -> bool:
        loaded, stored = probe.moves(_place(axis, number))
        return stored > 0 or (loads_end and loaded > 0)

    low, high = -1, 0
    while works(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return high
