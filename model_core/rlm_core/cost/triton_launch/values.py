"""Values of a program of a kernel: known numbers are Python's and numpy's own, what is loaded is ``Data``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..concrete.frame import LimitReached
from ..concrete.values import SourceFunction, Value

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

WIDTH = {
    "fp64": 8.0, "fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int64": 8.0, "int32": 4.0,
    "int16": 2.0, "int8": 1.0, "uint8": 1.0, "bool": 1.0,
}  # fmt: skip
DTYPES = {
    "float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "int64": "int64", "int32": "int32",
    "int16": "int16", "int8": "int8", "uint8": "uint8", "uint16": "int16", "uint32": "int32", "uint64": "int64",
    "int1": "bool", "float8e4nv": "fp8", "float8e5": "fp8", "float8e4b15": "fp8", "float8e4b8": "fp8",
    "float8e5b16": "fp8",
}  # fmt: skip
_RANK = {name: rank for rank, name in enumerate((
    "bool", "uint8", "int8", "int16", "int32", "int64", "fp8", "fp16", "bf16", "tf32", "fp32", "fp64",
))}  # fmt: skip
LARGEST_BLOCK = 2**20  # elements; Triton refuses larger ones


class NotUnderstood(ValueError):  # noqa: N818 - a signal, not an error
    """The text does what the evaluation has no rule for."""


@dataclass(frozen=True, slots=True)
class DType:
    """An element type."""

    name: str


@dataclass(frozen=True, slots=True)
class PointerType:
    """The type of pointers to elements of a type."""

    element: DType


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Numbers that depend on what a tensor holds.

    ``relative`` are their known distances from one unknown number; ``most`` is a known mask that holds wherever a
    mask of data does.
    """

    shape: Shape = ()
    dtype: str = "fp32"
    relative: Array | None = None
    most: Array | None = None

    @property
    def elements(self) -> int:
        """Number of elements of the shape."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Pointer:
    """Pointers into a tensor: ``offset`` in elements is an integer, an array or ``Data``.

    ``unknown`` is the number of unknown numbers that were added to all of them alike.
    """

    base: str
    dtype: str
    offset: Value = 0
    unknown: int = 0

    @property
    def shape(self) -> Shape:
        """The shape of the block of pointers."""
        return shape_of(self.offset)


@dataclass(frozen=True, slots=True, eq=False)
class BlockPointer:
    """A block of a tensor: sizes and strides of the tensor, where the block starts, and its shape."""

    pointer: Pointer
    sizes: tuple[Value, ...]
    strides: tuple[Value, ...]
    offsets: tuple[Value, ...]
    block: Shape
    checked: bool = False  # a tensor descriptor, all of whose accesses are checked


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A method of a value."""

    owner: Value
    name: str


@dataclass(frozen=True, slots=True)
class Config:
    """One of the configurations that a kernel is tuned over."""

    names: Mapping[str, Value]
    warps: int | None = None
    stages: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel of the text; ``launches`` collects those of the functions that are followed."""

    function: SourceFunction
    configs: tuple[Config, ...]
    heuristics: tuple[tuple[str, Value], ...]
    launches: list[Any]

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.function.name


def shape_of(value: Value) -> Shape:
    """The shape of a value; a plain number is a block without dimensions."""
    if isinstance(value, (np.ndarray, Data, Pointer)):
        return tuple(value.shape)
    return value.block if isinstance(value, BlockPointer) else ()


def broadcast(*shapes: Shape) -> Shape:
    """The shape of an operation on blocks.

    Raises:
        NotUnderstood: they do not fit.
        LimitReached: it is larger than any block can be.
    """
    try:
        result = np.broadcast_shapes(*shapes)
    except ValueError:
        raise NotUnderstood(f"shapes {shapes}") from None
    return bounded(result)


def bounded(shape: Shape) -> Shape:
    """The shape itself.

    Raises:
        LimitReached: it is larger than any block can be.
    """
    if math.prod(shape) > LARGEST_BLOCK:
        raise LimitReached
    return shape


def dtype_of(value: Value) -> str:
    """The element type of a value."""
    if isinstance(value, (Data, Pointer)):
        return value.dtype
    kind = value.dtype.kind if isinstance(value, np.ndarray) else type(value).__name__[0]
    return {"b": "bool", "f": "fp32"}.get(kind, "int32")


def promoted(*values: Value) -> str:
    """The element type of an operation: the wider one; plain numbers take the type of the blocks."""
    typed = [value for value in values if isinstance(value, (Data, Pointer))] or list(values)
    return max(map(dtype_of, typed), key=lambda name: _RANK.get(name, 0), default="fp32")


def is_floating(dtype: str) -> bool:
    """Return whether a type is of floating-point numbers."""
    return dtype.startswith(("fp", "bf", "tf"))
