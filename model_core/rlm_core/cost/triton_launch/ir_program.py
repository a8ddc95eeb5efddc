"""One program of a function in Triton's IR -> what it loads, stores and computes.

The IR is what the compiler makes of a kernel: sizes of blocks and types are in it, calls are inlined. It does not say
how many programs run; what is counted is the first program. Numbers that are passed to it are named or unknown.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..concrete.frame import RULE_ERRORS, LimitReached, Signal
from ..concrete.values import UNKNOWN, Value
from ..domain.records import replace
from .accesses import access
from .arithmetic import binary, compare, counted, plain, truth
from .ir_text import IrFunction, IrType, Operation, Region, read_functions
from .launch import LaunchFacts, facts_of_counts
from .loops import advanced, iterate
from .program import joined
from .tally import Tally
from .values import WIDTH, Array, Data, NotUnderstood, Pointer, dtype_of, is_floating, shape_of

_STEPS, _ELEMENTS, _MOST_DEPTH = 40_000, 40_000_000, 16
_BINARY: dict[str, type[ast.operator]] = {
    "addi": ast.Add, "subi": ast.Sub, "muli": ast.Mult, "divsi": ast.FloorDiv, "divui": ast.FloorDiv,
    "floordivsi": ast.FloorDiv, "remsi": ast.Mod, "remui": ast.Mod, "andi": ast.BitAnd, "ori": ast.BitOr,
    "xori": ast.BitXor, "shli": ast.LShift, "shrsi": ast.RShift, "shrui": ast.RShift,
}  # fmt: skip
_COMPARE: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "slt": ast.Lt, "sle": ast.LtE, "sgt": ast.Gt, "sge": ast.GtE, "ult": ast.Lt,
    "ule": ast.LtE, "ugt": ast.Gt, "uge": ast.GtE,
}  # fmt: skip
_EXTREMES: dict[str, Callable[..., Array]] = {
    "minsi": np.minimum, "minui": np.minimum, "maxsi": np.maximum, "maxui": np.maximum,
}  # fmt: skip
_SAME = frozenset({
    "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui", "arith.bitcast",
    "tt.bitcast", "tt.unsplat",
})  # fmt: skip
_FREE = frozenset({
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "tt.fp_to_fp",
    "tt.ptr_to_int", "tt.join", "tt.cat", "ub.poison", "arith.cmpf", "tt.mulhiui", "tt.gather", "tt.histogram",
})  # fmt: skip
_PLAIN = frozenset({
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.negf", "arith.maxnumf",
    "arith.minnumf", "arith.maximumf", "arith.minimumf", "math.absf", "math.floor", "math.ceil", "tt.clampf",
})  # fmt: skip
_SILENT = frozenset({"tt.return", "scf.yield", "tt.assert", "tt.print", "gpu.barrier", "llvm.intr.assume"})
_DIMENSIONS = {"x": 0, "y": 1, "z": 2}
_NUMBER = re.compile(r"(?:dense<)?(-?(?:0x[0-9A-Fa-f]+|[\d.]+(?:[eE][-+]?\d+)?|true|false))>?(?= : |\Z)")
_ATTRIBUTE = re.compile(r"(\w+) = (?:array<i32: )?(-?\d+(?:, -?\d+)*)")


@dataclass(slots=True)
class _Frame:
    """The values of a function's names."""

    tally: Tally
    functions: Mapping[str, IrFunction]
    names: dict[str, Value] = field(default_factory=dict)
    depth: int = 0

    def value(self, name: str) -> Value:
        if name not in self.names:
            raise NotUnderstood(f"{name} is not defined")
        return self.names[name]

    def run(self, region: Region, given: Sequence[Value] = ()) -> list[Value]:
        """The values that a region yields."""
        self.names.update(zip(region.names, given, strict=False))
        for operation in region.operations:
            self.tally.step()
            if operation.name in _SILENT:
                if operation.name in ("scf.yield", "tt.return"):
                    return [self.value(name) for name in operation.operands]
                continue
            values = _evaluate(self, operation)
            self.names.update(zip(operation.results, values, strict=False))
        return []


def ir_facts(text: str, sizes: Mapping[str, int]) -> LaunchFacts | None:
    """What the first program of a text's first function does; None for a text without a rule or an end.

    Args:
        text: a public function and the private ones that it calls, without source locations.
        sizes: what is known of the numbers that are passed, by name.
    """
    try:
        functions = read_functions(text)
        if not functions:
            return None
        function = next(iter(functions.values()))
        known = {name.lower(): size for name, size in sizes.items()}
        tally = Tally(_STEPS, _ELEMENTS)
        names = {name: _argument(name, kind, known) for name, kind in function.parameters.items()}
        counts = tally.during(lambda: _Frame(tally, functions, names).run(function.body))
    except (LimitReached, RecursionError, MemoryError, *RULE_ERRORS):
        return None
    return facts_of_counts(function.name, tally, counts)


def _argument(name: str, kind: IrType, known: Mapping[str, int]) -> Value:
    if kind.is_pointer:
        return Pointer(name, kind.dtype)
    return known.get(name[1:].lower(), Data((), kind.dtype))


def _evaluate(frame: _Frame, operation: Operation) -> list[Value]:
    dialect, _, short = operation.name.partition(".")
    rule = _RULES.get(operation.name)
    if rule is not None:
        return rule(frame, operation)
    tally, values = frame.tally, [frame.value(name) for name in operation.operands]
    kind = operation.types[0]
    if operation.name in _SAME:
        return [replace(values[0], dtype=kind.dtype) if isinstance(values[0], (Data, Pointer)) else values[0]]
    if dialect == "arith" and short in _BINARY:
        return [_kept(_integer(tally, short, values), kind)]
    if dialect == "arith" and short in _EXTREMES:
        known = not any(isinstance(value, Data) for value in values)
        return [plain(_EXTREMES[short](*values)) if known else Data(kind.shape, kind.dtype)]
    if operation.name in _PLAIN:
        return [counted(tally, kind.shape, kind.dtype)]
    if operation.name == "math.fma":
        return [counted(tally, kind.shape, kind.dtype, times=2.0)]
    if dialect == "math" or operation.name in ("tt.extern_elementwise", "tt.precise_sqrt", "tt.precise_divf"):
        return [counted(tally, kind.shape, kind.dtype, "special")]
    if operation.name not in _FREE:
        tally.unknown += 1
    return [Pointer("data", one.dtype, Data(one.shape, "int64")) if one.is_pointer else Data(one.shape, one.dtype)
            for one in operation.types[: max(len(operation.results), 1)]]  # fmt: skip


def _integer(tally: Tally, name: str, values: list[Value]) -> Value:
    left, right = values
    if name in ("divsi", "remsi") and isinstance(left, int) and isinstance(right, int):
        # Towards zero, unlike Python's.
        whole = int(math.copysign(abs(left) // abs(right), left * right)) if right else 0
        return whole if name == "divsi" else left - whole * right
    return binary(tally, _BINARY[name], left, right)


def _kept(value: Value, kind: IrType) -> Value:
    """A mask stays one: the bits of ``i1`` are truth values."""
    is_mask = kind.dtype == "bool" and isinstance(value, np.ndarray)
    return value.astype(bool) if is_mask else plain(value)


def _constant(frame: _Frame, operation: Operation) -> list[Value]:
    kind = operation.types[0]
    match = _NUMBER.match(operation.text.rpartition(" : ")[0].strip())
    if match is None or is_floating(kind.dtype):
        return [Data(kind.shape, kind.dtype)]
    text = match[1]
    value = text == "true" if text in ("true", "false") else int(text, 0)
    return [np.full(kind.shape, value, bool if kind.dtype == "bool" else np.int64) if kind.shape else value]


def _program_id(frame: _Frame, operation: Operation) -> list[Value]:
    return [0]


def _num_programs(frame: _Frame, operation: Operation) -> list[Value]:
    return [Data((), "int32")]


def _make_range(frame: _Frame, operation: Operation) -> list[Value]:
    given = dict(_ATTRIBUTE.findall(operation.text))
    return [np.arange(int(given["start"]), int(given["end"]), dtype=np.int64)]


def _shaped(frame: _Frame, operation: Operation) -> list[Value]:
    """``splat``, ``broadcast``, ``expand_dims``, ``reshape``: the same elements in another shape."""
    value, shape = frame.value(operation.operands[0]), operation.types[0].shape
    if operation.name == "tt.expand_dims":
        axis = int(dict(_ATTRIBUTE.findall(operation.text))["axis"])
        return [_arranged(value, shape, lambda array: np.expand_dims(array, axis))]
    if operation.name == "tt.reshape":
        return [_arranged(value, shape, lambda array: np.reshape(array, shape))]
    return [_arranged(value, shape, lambda array: np.broadcast_to(array, shape))]


def _trans(frame: _Frame, operation: Operation) -> list[Value]:
    order = tuple(map(int, dict(_ATTRIBUTE.findall(operation.text))["order"].split(",")))
    value = frame.value(operation.operands[0])
    return [_arranged(value, operation.types[0].shape, lambda array: np.transpose(array, order))]


def _arranged(value: Value, shape: tuple[int, ...], rule: Callable[[Array], Array]) -> Value:
    if isinstance(value, Pointer):
        return replace(value, offset=_arranged(value.offset, shape, rule))
    if isinstance(value, Data):
        own = value if value.shape else replace(value, relative=np.zeros((), np.int64))
        parts = {name: None if (part := getattr(own, name)) is None else rule(part) for name in ("relative", "most")}
        return Data(shape, value.dtype, **parts)
    return rule(np.asarray(value))


def _compare(frame: _Frame, operation: Operation) -> list[Value]:
    predicate = operation.text.strip().partition(",")[0]
    left, right = (frame.value(name) for name in operation.operands)
    return [compare(frame.tally, _COMPARE[predicate], left, right)]


def _select(frame: _Frame, operation: Operation) -> list[Value]:
    condition, left, right = (frame.value(name) for name in operation.operands)
    kind = operation.types[0]
    if isinstance(left, Pointer) or isinstance(right, Pointer):
        return [joined(left, right)]
    if isinstance(condition, (bool, int, np.ndarray)):
        if not isinstance(left, Data) and not isinstance(right, Data):
            return [plain(np.where(condition, left, right))]
        if not shape_of(condition):
            return [left if condition else right]
    return [counted(frame.tally, kind.shape, kind.dtype)]


def _addptr(frame: _Frame, operation: Operation) -> list[Value]:
    pointer, offset = (frame.value(name) for name in operation.operands)
    return [binary(frame.tally, ast.Add, pointer, offset)]


def _load(frame: _Frame, operation: Operation) -> list[Value]:
    pointer, *rest = (frame.value(name) for name in operation.operands)
    shape = access(frame.tally, operation.line, "loaded", pointer, rest[0] if rest else True)
    return [Data(shape, pointer.dtype)]


def _store(frame: _Frame, operation: Operation) -> list[Value]:
    pointer, value, *rest = (frame.value(name) for name in operation.operands)
    access(frame.tally, operation.line, "stored", pointer, rest[0] if rest else True, shape_of(value))
    return []


def _atomic(frame: _Frame, operation: Operation) -> list[Value]:
    pointer, value, *rest = (frame.value(name) for name in operation.operands)
    mask = rest[0] if rest and operation.name == "tt.atomic_rmw" else True
    shape = access(frame.tally, operation.line, "atomics", pointer, mask, shape_of(value))
    return [Data(shape, pointer.dtype)]


def _dot(frame: _Frame, operation: Operation) -> list[Value]:
    left, right = (frame.value(name) for name in operation.operands[:2])
    kind, tally = operation.types[0], frame.tally
    widths = [WIDTH.get(dtype_of(part), 4.0) for part in (left, right)]
    tally.add("dot_wide" if max(widths) > 2 else "dot", 2.0 * math.prod(kind.shape) * shape_of(left)[-1])
    # The sum of the product with the accumulator is part of it.
    return [Data(kind.shape, kind.dtype)]


def _reduce(frame: _Frame, operation: Operation) -> list[Value]:
    for name in operation.operands:
        value = frame.value(name)
        if is_floating(dtype_of(value)):
            frame.tally.add("scalar", math.prod(shape_of(value)))
    frame.tally.add("barriers", 1)
    return [Data(kind.shape, kind.dtype) for kind in operation.types]


def _call(frame: _Frame, operation: Operation) -> list[Value]:
    name = operation.text.strip().removeprefix("@").partition("(")[0].strip('"')
    function = frame.functions.get(name)
    if function is None or frame.depth >= _MOST_DEPTH:
        raise NotUnderstood(f"a call of {name}")
    given = dict(zip(function.parameters, (frame.value(one) for one in operation.operands), strict=False))
    return _Frame(frame.tally, frame.functions, given, frame.depth + 1).run(function.body)


def _if(frame: _Frame, operation: Operation) -> list[Value]:
    known = truth(frame.value(operation.operands[0]))
    regions = (*operation.regions, Region((), ()))[:2]
    if known is not None:
        return frame.run(regions[0 if known else 1])
    yielded: list[list[Value]] = []
    counts = [frame.tally.during(lambda one=one: yielded.append(frame.run(one))) for one in regions]  # type: ignore[misc]
    frame.tally.add_either(*counts)
    return [joined(*pair) for pair in zip(*yielded, strict=False)]


def _for(frame: _Frame, operation: Operation) -> list[Value]:
    [body] = operation.regions
    induction, first, last, step, *rest = operation.operands
    names, starts = rest[: len(rest)][0::2], rest[1::2]
    start, stop, width = (frame.value(name) for name in (first, last, step))
    current = [frame.value(name) for name in starts]

    def follow(number: int) -> Signal:
        frame.names.update(zip(names, current, strict=False))
        frame.names[induction] = start + number * width if isinstance(start, int) else Data((), "int32")
        current[:] = frame.run(body)
        return None

    def state() -> dict[str, Value]:
        return dict(zip(names, current, strict=False))

    def jump(before: dict[str, Value], steps: dict[str, Value], times: int) -> None:
        current[:] = [advanced(value, steps.get(name), times) for name, value in before.items()]

    if all(isinstance(value, int) for value in (start, stop, width)) and width > 0:
        iterate(frame.tally, max(-((start - stop) // width), 0), follow, state, jump)
        return current
    before = list(current)
    start = UNKNOWN
    frame.tally.add_unlimited(frame.tally.during(lambda: follow(0)))
    return [joined(*pair) for pair in zip(before, current, strict=False)]


_RULES: dict[str, Callable[[_Frame, Operation], list[Value]]] = {
    "arith.constant": _constant, "tt.get_program_id": _program_id, "tt.make_range": _make_range,
    "tt.get_num_programs": _num_programs,
    "tt.addptr": _addptr, "tt.load": _load, "tt.store": _store, "tt.dot": _dot, "arith.cmpi": _compare,
    "arith.select": _select, "tt.reduce": _reduce, "tt.scan": _reduce, "tt.call": _call, "scf.if": _if, "scf.for": _for,
    "tt.trans": _trans, **dict.fromkeys(("tt.atomic_rmw", "tt.atomic_cas"), _atomic),
    **dict.fromkeys(("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape"), _shaped),
}  # fmt: skip
