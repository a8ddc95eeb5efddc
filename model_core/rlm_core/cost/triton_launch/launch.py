"""A launch at known arguments -> its facts: some programs of its grid are evaluated and stand for the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..concrete.frame import RULE_ERRORS, LimitReached, execute
from ..concrete.values import UNKNOWN, LibraryName, NameScope, SourceFunction, UnknownValue, Value
from ..torch_trace.values import Tensor
from . import expressions  # noqa: F401 - its rules register themselves
from .pointers import pointer_parameters
from .program import Program
from .tally import COUNTS, Counts, Tally
from .values import DTYPES, Data, DType, Pointer

_STEPS, _ELEMENTS = 30_000, 40_000_000  # of all programs of a launch together
_MOST_STEPS_EACH = 40_000
_MOST_EVALUATED = 1_024  # programs
_GOLDEN = (math.sqrt(5) - 1) / 2
_MOST_PROGRAMS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Range:
    """A count: at least, likely, and at most, infinite where nothing limits it."""

    least: float
    likely: float
    most: float


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What a launch of ``programs`` programs does, all of them together.

    Bytes: ``loaded``, ``stored``, ``loaded_once`` (without repeats within a program), ``sectors`` (32-byte pieces that
    accesses touch), ``gathered`` (at addresses that data decide), ``footprint`` (of the tensors' touched parts).
    Operations: ``dot`` and ``dot_wide`` (of matrix units, on types of two bytes and of more), ``scalar``, ``special``.
    ``atomics`` are elements, ``accesses`` and ``barriers`` instructions. ``tile_bytes`` are the operands of a
    program's matrix products, ``widest`` the elements of its largest accumulator. ``largest`` is the share of the most
    expensive program in the mean one. ``exact``: nothing is extrapolated; ``unknown``: what there is no rule for.
    ``others`` are the facts in other configurations: what tuning chooses among is not known. ``overrun`` tensors are
    accessed outside: their shapes and the numbers of the launch contradict each other.
    """

    kernel: str
    grid: tuple[int, ...]
    warps: int
    stages: int
    counts: Mapping[str, Range]
    footprint: float
    tile_bytes: float
    widest: int
    largest: float
    strides: tuple[str, ...]
    evaluated: int
    exact: bool
    unknown: int
    others: tuple[LaunchFacts, ...] = ()
    overrun: int = 0

    @property
    def programs(self) -> int:
        """Programs of the grid."""
        return math.prod(self.grid)

    @property
    def known(self) -> bool:
        """Return whether nothing in bytes and operations is without a limit or without a rule."""
        return self.unknown == 0 and all(math.isfinite(self.counts[name].most) for name in COUNTS)


def evaluate_launch(
    function: SourceFunction,
    grid: tuple[int, ...],
    arguments: Mapping[str, Value],
    warps: int = 4,
    stages: int = 3,
    *,
    quick: bool = False,
) -> LaunchFacts | None:
    """The facts of a launch; None when a program has no end within the budget.

    Args:
        function: the kernel.
        grid: programs in each dimension.
        arguments: values of the kernel's parameters, by name: tensors and numbers.
        warps: of a program.
        stages: of its pipelines.
        quick: the first program stands for all of them.
    """
    facts = _evaluate(function, grid, arguments, warps, stages, quick)
    missing = [name for name, value in arguments.items() if value is None]
    if facts is not None and facts.unknown and missing:
        # What a kernel uses without asking whether it is there must be there.
        pointers = pointer_parameters(function)
        given = {name: UNKNOWN if name in pointers else 1.0 for name in missing}
        again = _evaluate(function, grid, {**arguments, **given}, warps, stages, quick)
        return again if again is not None and again.unknown < facts.unknown else facts
    return facts


def _evaluate(
    function: SourceFunction,
    grid: tuple[int, ...],
    arguments: Mapping[str, Value],
    warps: int,
    stages: int,
    quick: bool,
) -> LaunchFacts | None:
    grid = (*grid, 1, 1)[:3]
    if any(size < 0 for size in grid) or math.prod(grid) > _MOST_PROGRAMS:
        return None
    tally = Tally(_MOST_STEPS_EACH, _ELEMENTS, sizes=_sizes(arguments))
    names = _names(function, arguments)
    total = np.zeros((3, len(COUNTS)))
    costs: list[float] = []
    weights = 0.0
    evaluated = 0
    programs = math.prod(grid)
    spent = 0
    try:
        first = _program_counts(tally, function, names, (0, 0, 0), grid) if programs else total
        spent = _MOST_STEPS_EACH - tally.steps_left
        whole = programs <= _MOST_EVALUATED and programs * max(spent, 1) <= _STEPS
        places = [((0, 0, 0), 1.0)] if quick else _every(grid) if whole else _sample(grid)
        for place, weight in places if programs else ():
            tally.steps_left = _MOST_STEPS_EACH
            counts = first if place == (0, 0, 0) else _program_counts(tally, function, names, place, grid)
            total = total + weight * counts
            weights += weight
            costs.append(float(counts[1, : COUNTS.index("sectors") + 1].sum()))
            evaluated += 1
    except (LimitReached, RecursionError, MemoryError, *RULE_ERRORS):
        return None
    if weights:
        total *= programs / weights
    mean = sum(costs) / len(costs) if costs else 0.0
    ranges = {name: Range(*map(float, total[:, place])) for place, name in enumerate(COUNTS)}
    return LaunchFacts(
        function.name,
        grid, warps, stages, ranges, _footprint(tally, arguments, ranges), max(tally.tiles.values(), default=0.0),
        tally.widest, max(costs) / mean if mean else 1.0, tuple(tally.strides.values()), evaluated,
        tally.exact and evaluated == programs, tally.unknown, overrun=len(tally.overrun),
    )  # fmt: skip


@dataclass(slots=True)
class ProgramProbe:
    """Programs of a launch at any place of a large grid: what they move, as long as ``steps_left`` of evaluation."""

    function: SourceFunction
    arguments: Mapping[str, Value]
    steps_left: int

    def moves(self, place: tuple[int, ...]) -> tuple[float, float]:
        """The bytes that the program at a place loads and stores, at the most; 0 where it does not work.

        Raises:
            LimitReached: the steps are used up.
        """
        if self.steps_left <= 0:
            raise LimitReached
        tally = Tally(self.steps_left, _ELEMENTS)
        grid = (_MOST_PROGRAMS,) * 3
        try:
            counts = _program_counts(tally, self.function, _names(self.function, self.arguments), place, grid)
        except RULE_ERRORS:
            return 0.0, 0.0
        finally:
            self.steps_left = tally.steps_left
        return float(counts[2, COUNTS.index("loaded")]), float(counts[2, COUNTS.index("stored")])


def facts_of_counts(kernel: str, tally: Tally, counts: Counts) -> LaunchFacts:
    """The facts of one program from its counts."""
    ranges = {name: Range(*map(float, counts[:, place])) for place, name in enumerate(COUNTS)}
    return LaunchFacts(
        kernel,
        (1, 1, 1), 4, 3, ranges, _footprint(tally, {}, ranges), max(tally.tiles.values(), default=0.0), tally.widest,
        1.0, tuple(tally.strides.values()), 1, tally.exact, tally.unknown,
    )  # fmt: skip


def _names(function: SourceFunction, arguments: Mapping[str, Value]) -> dict[str, Value]:
    """The values of a kernel's parameters, pointers for tensors and data for what is not known."""
    names = {**function.defaults, **_values(arguments)}
    names = {name: _value(value) for name, value in names.items()}
    for item in (*function.node.args.args, *function.node.args.kwonlyargs):
        names.setdefault(item.arg, Data((), "int32"))
    # A tensor that an unknown function made is one all the same; its type is mostly that of the others.
    dtype = next((value.dtype for value in names.values() if isinstance(value, Pointer)), "fp32")
    for name in pointer_parameters(function):
        if isinstance(names[name], Data):
            names[name] = Pointer(name, dtype)
    return names


def _program_counts(
    tally: Tally, function: SourceFunction, names: Mapping[str, Value], place: tuple[int, ...], grid: tuple[int, ...]
) -> Counts:
    tally.seen.clear()
    tally.certain = True
    program = Program(tally, NameScope(function.scope, dict(names)), place, grid)
    return tally.during(lambda: execute(program, function.node.body))  # type: ignore[arg-type]


def _every(grid: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
    for place in np.ndindex(*grid):
        yield tuple(map(int, place)), 1.0


def _sample(grid: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Places in a grid with how many programs each stands for, along one axis or along several.

    The last of an axis, which masks often cut short, stands for itself. The others are one from each of equal parts of
    the rest, not at the same distance from each other: grids often number tiles row by row.
    """
    long = max(range(3), key=lambda axis: grid[axis])
    others = sum(size > 1 for size in grid) - 1
    axes = [_nodes(size, (12 if others == 0 else 6) if axis == long else 2) for axis, size in enumerate(grid)]
    for x, weight_x in axes[0]:
        for y, weight_y in axes[1]:
            for z, weight_z in axes[2]:
                yield (x, y, z), weight_x * weight_y * weight_z


def _nodes(size: int, parts: int) -> list[tuple[int, float]]:
    if size <= parts + 1:
        return [(number, 1.0) for number in range(size)]
    rest = size - 1
    inner = [(int((part + (0.5 + part * _GOLDEN) % 1) * rest / parts), rest / parts) for part in range(parts)]
    return [*inner, (rest, 1.0)]


def _footprint(tally: Tally, arguments: Mapping[str, Value], counts: Mapping[str, Range]) -> float:
    """Bytes of the parts of tensors between the first and the last address, at most what is moved."""
    total = 0.0
    for base, (low, high) in tally.extents.items():
        width = tally.widths.get(base, 4.0)
        extent = (high - low + 1) * width
        tensor = arguments.get(base)
        if isinstance(tensor, Tensor):
            extent = min(extent, float(tensor.bytes))
        total += extent
    return min(total, counts["loaded"].likely + counts["stored"].likely)


def _sizes(arguments: Mapping[str, Value]) -> dict[str, float]:
    """The bytes of each tensor that is the whole of its memory."""
    return {
        name: float(value.bytes)
        for name, value in arguments.items()
        if isinstance(value, Tensor) and value.contiguous and value.stored is None
    }


def _values(arguments: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments with pointers for tensors; a tensor given twice is one base."""
    bases: dict[int, str] = {}
    values: dict[str, Value] = {}
    for name, value in arguments.items():
        if isinstance(value, Tensor):
            base = bases.setdefault(id(value), name)
            values[name] = Pointer(base, value.dtype)
        else:
            values[name] = value
    return values


def _value(value: Value) -> Value:
    if isinstance(value, UnknownValue):
        return Data((), "int32")
    if isinstance(value, LibraryName) and value.name in DTYPES:
        return DType(DTYPES[value.name])
    return value
