"""Find what can be measured in a file, and read how to call a kernel or module that has no benchmark.

Nothing of a file is imported or run: its Triton kernels and their calls, or a module with inputs, are found in the
text.

``softmax.bench.toml`` next to ``softmax.py``, or a specification that names its ``file``. Sizes are crossed with one
another and with the dtypes; shapes and grids are sums and products of sizes, worked out without running anything.
"""

from __future__ import annotations

import ast
import itertools
import operator
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tree_sitter import Node

from rlm_core.errors import DataError
from rlm_core.files import read_regular
from rlm_core.source.parsed import ParsedSource, name_text
from rlm_core.source.torch_modules import find_modules
from rlm_core.source.triton_kernels import find_kernels

from .bench_rows import digest

SUFFIX = ".bench.toml"
DTYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "bool": "bool",
    "fp8e4": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
}
FILLS = ("random", "zeros", "ones", "arange")
_MOST_CASES = 10_000
_MOST_BYTES = 64 * 1024
_MOST_NUMBER = 2**62
_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "cdiv": lambda a, b: -(-a // b),
    "next_power_of_2": lambda n: 1 << max(n - 1, 0).bit_length(),
    "min": min,
    "max": max,
}
Way = Literal["bench", "report", "sheet", "inductor"]
_MOST_SOURCE_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call: a tensor of a shape (``dtype`` None: the case's), or a value."""

    shape: tuple[str, ...] | None = None
    dtype: str | None = None
    fill: str = "random"
    output: bool = False
    value: Any = None


@dataclass(frozen=True, slots=True)
class SpecCase:
    """One call's sizes and dtype."""

    sizes: Mapping[str, int]
    dtype: str | None


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """One ``[[bench]]`` of a sheet: a function to call, or a kernel to launch on a grid."""

    target: str
    launch: bool
    sizes: Mapping[str, tuple[int, ...]]
    dtypes: tuple[str, ...]
    arguments: tuple[Argument, ...]
    grid: tuple[str, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    reference: str | None = None
    rtol: float | None = None
    atol: float | None = None

    def cases(self) -> Iterator[SpecCase]:
        """All sizes crossed with all dtypes."""
        names = list(self.sizes)
        for numbers in itertools.product(*self.sizes.values()):
            for dtype in self.dtypes or (None,):
                yield SpecCase(dict(zip(names, numbers, strict=True)), dtype)


def read_bench_spec(path: Path) -> tuple[Path, list[BenchSpec]]:
    """The Python file that a sheet is about, and its benches.

    Raises:
        DataError: the sheet cannot be read, or something in it is not understood.
    """
    try:
        spec = tomllib.loads(read_regular(path, _MOST_BYTES).decode("utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # also of a number of too many digits
        raise DataError(f"{path}: is not TOML ({error})") from None
    _only(spec, {"file", "bench"}, f"{path}")
    name = spec.get("file", path.name.removesuffix(SUFFIX) + ".py")
    if not isinstance(name, str):
        raise DataError(f'{path}: file is not a text; write file = "kernels.py"')
    benches = spec.get("bench")
    if not isinstance(benches, list) or not benches or not all(isinstance(one, dict) for one in benches):
        raise DataError(f"{path}: has no [[bench]]; see docs/benchmarking.md")
    return path.parent / name, [_bench(one, f"{path}: bench {number}") for number, one in enumerate(benches, 1)]


def evaluate(expression: str | int, sizes: Mapping[str, Any]) -> int:
    """The number that an expression of sizes stands for: + - * // %, cdiv, next_power_of_2, min, max.

    Raises:
        DataError: it holds something else, or a name that is not a size.
    """
    if isinstance(expression, int):
        return expression
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body, sizes)
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError, MemoryError) as error:
        reason = error if type(error) is ValueError else type(error).__name__
        raise DataError(f"{expression!r} cannot be worked out ({reason}); write it like cdiv(M, 128)") from None


def _value(node: ast.expr, sizes: Mapping[str, Any]) -> int:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError("True and False are not sizes")
        case ast.Constant(value=int(number)):
            result = number
        case ast.Name(id=name):
            if not isinstance(sizes.get(name), int):
                raise ValueError(f"{name} is not a size")
            result = int(sizes[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            result = -_value(operand, sizes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            result = _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            result = _FUNCTIONS[name](*(_value(one, sizes) for one in args))
        case _:
            raise ValueError("not a sum or product of sizes")
    if abs(result) > _MOST_NUMBER:
        raise ValueError("too large")
    return result


def _bench(entry: Mapping[str, Any], where: str) -> BenchSpec:
    known = {"call", "kernel", "grid", "constants", "sizes", "dtypes", "arguments", "reference", "rtol", "atol"}
    _only(entry, known, where)
    if ("call" in entry) == ("kernel" in entry):
        raise DataError(f"{where}: names neither or both of call (a function) and kernel (with a grid); name one")
    launch = "kernel" in entry
    target = entry["kernel" if launch else "call"]
    grid = entry.get("grid", [])
    grid = grid if isinstance(grid, list) else [grid]
    if launch != bool(grid) or len(grid) > 3 or not all(_is_expression(one) for one in grid):
        raise DataError(f'{where}: a kernel needs a grid of one to three numbers, like grid = ["cdiv(N, BLOCK)"]')
    sizes = entry.get("sizes", {})
    if not isinstance(target, str) or not isinstance(sizes, dict):
        raise DataError(f"{where}: call and kernel are names, sizes a table like {{ M = [1024, 4096] }}")
    listed = {name: _numbers(numbers, f"{where}: size {name}") for name, numbers in sizes.items()}
    dtypes = tuple(_dtype(name, where) for name in _list(entry.get("dtypes", []), f"{where}: dtypes"))
    count = len(dtypes) or 1
    for numbers in listed.values():
        count *= len(numbers)
    if count > _MOST_CASES:
        raise DataError(f"{where}: has {count:,} cases; at most {_MOST_CASES:,}")
    constants, reference = entry.get("constants", {}), entry.get("reference")
    if not isinstance(constants, dict) or not isinstance(reference, str | None):
        raise DataError(f"{where}: constants are a table, reference is the name of a function")
    arguments = tuple(_argument(one, where) for one in _list(entry.get("arguments", []), f"{where}: arguments"))
    tolerances = {name: _tolerance(entry.get(name), f"{where}: {name}") for name in ("rtol", "atol")}
    return BenchSpec(
        target, launch, listed, dtypes, arguments, tuple(map(str, grid)), constants, reference, **tolerances
    )


def _argument(entry: object, where: str) -> Argument:
    if isinstance(entry, str):
        return Argument(_shape(entry))
    if isinstance(entry, bool | int | float):
        return Argument(value=entry)
    if not isinstance(entry, dict) or ("tensor" in entry) == ("value" in entry):
        raise DataError(f'{where}: an argument is "M x N", a number, {{ tensor = "M x N" }} or {{ value = "M" }}')
    _only(entry, {"tensor", "value", "dtype", "fill", "output"}, f"{where}: argument")
    if "value" in entry:
        return Argument(value=entry["value"])
    fill = entry.get("fill", "random")
    if fill not in FILLS:
        raise DataError(f"{where}: fill {fill!r} is not known; take one of {', '.join(FILLS)}")
    dtype = _dtype(entry["dtype"], where) if "dtype" in entry else None
    return Argument(_shape(str(entry["tensor"])), dtype, fill, entry.get("output") is True)


def _shape(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(" x "))


def _dtype(name: object, where: str) -> str:
    found = {long: short for short, long in DTYPES.items()}.get(str(name), str(name))
    if found not in DTYPES:
        raise DataError(f"{where}: dtype {name!r} is not known; take one of {', '.join(DTYPES)}")
    return found


def _numbers(value: object, where: str) -> tuple[int, ...]:
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(type(number) is int and 0 < number < 2**40 for number in numbers):
        raise DataError(f"{where}: is not a list of whole numbers above 0")
    return tuple(numbers)


def _tolerance(value: object, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise DataError(f"{where}: is not a number from 0")
    return float(value)


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{where}: is not a list")
    return value


def _is_expression(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, str)


def _only(table: Mapping[str, Any], known: set[str], where: str) -> None:
    if strange := sorted(table.keys() - known):
        raise DataError(f"{where}: {strange[0]} is not known; known are {', '.join(sorted(known))}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A way to call kernels: ``name`` is a function of the file, or a number and a function of its sheet."""

    way: Way
    name: str


@dataclass(frozen=True, slots=True)
class TritonFile:
    """A Python file with kernels. ``digest`` is of its text, and of its sheet's."""

    path: Path
    digest: str
    kernels: tuple[str, ...]
    entries: tuple[Entry, ...]
    sheet: Path | None = None


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A Python file with a module and ``get_inputs``."""

    path: Path
    digest: str
    module: str


def triton_file(path: Path) -> TritonFile | None:
    """Read the kernels of a Python file or a sheet (``.bench.toml``); None if there are none.

    Raises:
        DataError: the file or its sheet cannot be read.
    """
    sheet = path if path.name.endswith(".toml") else path.with_name(path.stem + SUFFIX)
    benches: list[BenchSpec] = []
    if sheet == path or sheet.is_file():
        path, benches = read_bench_spec(sheet)
    source = _read(path)
    parsed = ParsedSource(source, "python")
    root = parsed.root
    kernels = tuple(dict.fromkeys(unit.qualname for unit in find_kernels(parsed)))
    if not kernels and not benches:
        return None
    entries = [Entry("sheet", f"{number}:{bench.target}") for number, bench in enumerate(benches)]
    functions = {name: node for node in root.named_children if (name := _function(node)) is not None}
    for name, node in functions.items():
        if any("perf_report" in name_text(child) for child in node.children if child.type == "decorator"):
            entries.append(Entry("report", name))
        elif name == "bench" or name.startswith("bench_"):
            entries.append(Entry("bench", name))
    if {"get_args", "call"} <= functions.keys() and b"triton_heuristics" in source:
        entries.append(Entry("inductor", "call"))
    text = source + (_read(sheet) if benches else b"")
    return TritonFile(path, digest(text), kernels, tuple(entries), sheet if benches else None)


def module_file(path: Path) -> ModuleFile | None:
    """The module of a file that has ``get_inputs``: ``Model``, or else the last; None where there is none.

    Raises:
        DataError: the file cannot be read.
    """
    source = _read(path)
    parsed = ParsedSource(source, "python")
    names = [unit.qualname for unit in find_modules(parsed)]
    if not names or "get_inputs" not in {_function(node) for node in parsed.root.named_children}:
        return None
    return ModuleFile(path, digest(source), "Model" if "Model" in names else names[-1])


def _function(node: Node) -> str | None:
    if node.type == "decorated_definition":
        inner = node.child_by_field_name("definition")
        return _function(inner) if inner is not None else None
    return name_text(node.child_by_field_name("name")) if node.type == "function_definition" else None


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, _MOST_SOURCE_BYTES)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name the file of the kernel itself") from None
