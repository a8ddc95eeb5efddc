"""Abstract values of the shape interpreter: the values that names in a source text can have without running it.

Everything of PyTorch is one of the classes here; :mod:`..concrete.values` has what is not of PyTorch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..concrete.values import LibraryName, Named, Value
from ..domain.records import replace

Shape = tuple[int, ...]

WIDTH = {
    "fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip
DTYPES = {
    "float": "fp32", "float32": "fp32", "double": "fp64", "float64": "fp64", "half": "fp16", "float16": "fp16",
    "bfloat16": "bf16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "long": "int64", "int64": "int64", "int": "int32",
    "int32": "int32", "short": "int16", "int16": "int16", "int8": "int8", "uint8": "uint8", "bool": "bool",
    "cfloat": "complex64", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip
# The name in PyTorch of each type: the longest, so that a type has one.
_DTYPE_NAMES = {dtype: max((name for name in DTYPES if DTYPES[name] == dtype), key=len) for dtype in DTYPES.values()}
_MAX_RANK = 32
_MAX_SIZE = 2**40


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor of known shape.

    ``source`` is the index of the operation that wrote it (-1: an input or a weight), ``stored`` the elements in memory
    when an expanded view shows more than there are, ``value`` the number in a scalar where it is known.
    """

    shape: Shape
    dtype: str = "fp32"
    source: int = -1
    contiguous: bool = True
    parameter: bool = False
    stored: int | None = None
    value: Value = None

    @property
    def elements(self) -> int:
        """Number of elements of the shape."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes that reading it once moves."""
        return (self.elements if self.stored is None else self.stored) * WIDTH.get(self.dtype, 4)

    def view(self, shape: Shape, *, contiguous: bool | None = None) -> Tensor:
        """The same memory under another shape."""
        kept = self.contiguous if contiguous is None else contiguous
        stored = self.stored if self.stored is not None and math.prod(shape) > self.stored else None
        return replace(self, shape=as_shape(shape), contiguous=kept, parameter=False, stored=stored, value=None)


@dataclass(slots=True, eq=False)
class SourceClass:
    """A class of the source; bases are classes of the source or library names."""

    name: str
    bases: tuple[Value, ...]
    members: dict[str, Value] = field(default_factory=dict)
    fields: tuple[str, ...] = ()

    def lineage(self) -> list[Value]:
        """The class and its bases, nearest first (depth first, each once)."""
        classes: list[Value] = []
        waiting: list[Value] = [self]
        while waiting and len(classes) < 32:
            base = waiting.pop(0)
            if any(base is other for other in classes):
                continue
            classes.append(base)
            if isinstance(base, SourceClass):
                waiting = [*base.bases, *waiting]
        return classes

    @property
    def library_base(self) -> LibraryName | None:
        """The first library class it derives from."""
        return next((base for base in self.lineage() if isinstance(base, LibraryName)), None)


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of the source; ``base`` is the layer it extends, if it extends one."""

    kind: SourceClass
    attributes: dict[str, Value] = field(default_factory=dict)
    base: Value = None


@dataclass(slots=True, eq=False)
class TorchLayer:
    """A layer of ``torch.nn`` with its options and weights."""

    name: str
    options: dict[str, Value]
    weights: dict[str, Tensor] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class ModuleContainer:
    """``nn.Sequential``, ``nn.ModuleList`` or ``nn.ModuleDict``."""

    name: str
    items: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class BoundMethod:
    """A function or a method's name together with the object it is called on."""

    target: Value
    method: Value


@dataclass(frozen=True, slots=True, eq=False)
class PartialCall:
    """``functools.partial``: a value to call, with its first arguments."""

    target: Value
    args: list[Value]
    named: Named


@dataclass(frozen=True, slots=True, eq=False)
class SuperProxy:
    """``super()`` in a method: the object, and the class whose bases are meant."""

    target: Instance
    after: SourceClass


def as_shape(sizes: Value) -> Shape:
    """Sizes as a shape of plain numbers; raises ValueError for what no tensor has."""
    shape = tuple(int(size) for size in sizes)
    if len(shape) > _MAX_RANK or any(not 0 <= size <= _MAX_SIZE for size in shape):
        raise ValueError("not a shape")
    return shape


def dtype_name(dtype: str) -> LibraryName:
    """The type of a tensor as a text names it, such as ``torch.float16``, also where the text writes ``torch.half``."""
    return LibraryName(f"torch.{_DTYPE_NAMES[dtype]}" if dtype in _DTYPE_NAMES else dtype)


def dtype_of(value: Value, default: str) -> str:
    """The dtype that a ``dtype=`` argument names."""
    if isinstance(value, LibraryName):
        return DTYPES.get(value.name, default)
    if isinstance(value, str):
        return value if value in WIDTH else DTYPES.get(value, default)
    return default


def tensors_in(value: Value, depth: int = 3) -> list[Tensor]:
    """The tensors in a value and in the lists, tuples and dicts it is made of."""
    if isinstance(value, Tensor):
        return [value]
    if depth and isinstance(value, (list, tuple)):
        return [tensor for item in value[:1000] for tensor in tensors_in(item, depth - 1)]
    if depth and isinstance(value, dict):
        return tensors_in(list(value.values()), depth - 1)
    return []
