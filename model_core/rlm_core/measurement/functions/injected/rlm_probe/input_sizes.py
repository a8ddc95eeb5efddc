"""Takes the sizes of a call's inputs before it runs: a code object and the values of its parameters -> sizes by name.

Names are those of the cost analysis: ``items`` is a number itself, or the length of a container or text, or the
elements of an array; ``rows[]`` the mean length inside, of a few items; ``self.queue`` is held by an attribute that the
text reads; ``a.0`` is an axis of an array, ``df.rows`` and ``df.columns`` are those of a frame.

No code of the program runs, no iterator moves and nothing is kept: lengths are taken of builtin containers and of known
classes of libraries alone, and attributes are read past properties and ``__getattr__``.
"""

from __future__ import annotations

import math
import opcode
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import CO_OPTIMIZED, CO_VARARGS, CO_VARKEYWORDS
from itertools import islice
from types import CodeType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple

MOST_SIZES = 16
"""So many sizes of a call are taken: those of parameters first, then those of attributes in the order of the text."""
MOST_NUMBER = 1e15
"""A larger number is a hash, an identity or a time, not a size."""
_MOST_DEPTH = 3  # attributes in a row
_SAMPLED = 4  # items of which a mean length is taken
_AXES = 4

# Metaclasses may have their own; these are the interpreter's.
_mro: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
_namespace: Callable[[type], Mapping[str, object]] = vars(type)["__dict__"].__get__
_module: Callable[[type], object] = vars(type)["__module__"].__get__
_name: Callable[[type], str] = vars(type)["__name__"].__get__
_attribute = object.__getattribute__

_SEQUENCES = (list, tuple, deque)
_EMPTY: dict[str, str] = {}
_OTHERS = (set, frozenset, dict, type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
_TEXTS = (str, bytes, bytearray, range, array, memoryview)
# By identity: a class may define how it is hashed and compared.
_INDEXED = frozenset(map(id, _SEQUENCES))
_NESTED = frozenset(map(id, (*_SEQUENCES, *_OTHERS)))
_TEXT_KINDS = frozenset(map(id, _TEXTS))
_SIZED = _NESTED | _TEXT_KINDS
_NUMBERS = frozenset(map(id, (int, float)))
_PLAIN = _SIZED | _NUMBERS | frozenset(map(id, (bool, type(None), complex, type)))
# Class attributes of these kinds run nothing when they are read from an instance.
_READABLE = _PLAIN | {id(MemberDescriptorType)}
# Classes of libraries by module: numpy's numbers and arrays, and others with a shape.
_NUMBER_CLASSES = frozenset({"integer", "floating"})
_NUMPY = _NUMBER_CLASSES | {"ndarray"}
_PANDAS, _POLARS = frozenset({"DataFrame", "Series", "Index", "RangeIndex"}), frozenset({"DataFrame", "Series"})
_LIBRARIES: dict[object, frozenset[str]] = {
    "numpy": _NUMPY,
    **dict.fromkeys(("pandas", "pandas.core.frame", "pandas.core.series", "pandas.core.indexes.base"), _PANDAS),
    **dict.fromkeys(("polars.dataframe.frame", "polars.series.series"), _POLARS),
    "torch": frozenset({"Tensor"}),
    "torch.nn.parameter": frozenset({"Parameter"}),
}
_Reader = Callable[[str], object]


class _Attribute(NamedTuple):
    """An attribute of the ``holder``-th of the parameters and attributes, and the names of its sizes."""

    holder: int
    attribute: str
    name: str
    inside: str


class InputSizes:
    """The inputs of a code object: its parameters and the attributes of them that its text reads."""

    __slots__ = ("_attributes", "_parameters")

    def __init__(self, code: CodeType) -> None:
        names = _parameters(code)
        self._parameters = [(name, f"{name}[]") for name in names]
        self._attributes: list[_Attribute] = []
        places: dict[tuple[str, ...], int] = {(name,): place for place, name in enumerate(names)}
        shown = list(names)
        private = _private_prefix(code)
        for path in _read_paths(code, frozenset(names)):
            if len(path) > _MOST_DEPTH + 1 or path[:-1] not in places or path in places:
                continue
            if len(self._attributes) == 2 * MOST_SIZES:
                break
            holder, attribute = places[path[:-1]], path[-1]
            places[path] = len(shown)
            shown.append(f"{shown[holder]}.{_public(attribute, private)}")
            self._attributes.append(_Attribute(holder, attribute, shown[-1], f"{shown[-1]}[]"))

    def __bool__(self) -> bool:
        return bool(self._parameters)

    def of(self, arguments: Mapping[str, object]) -> dict[str, float]:
        """The sizes of a call by name, from the values of its parameters; those that cannot be taken are left out."""
        found: dict[str, float] = {}
        try:
            for name, inside in self._parameters:
                _add(found, name, inside, arguments[name])
            if self._attributes:
                self._add_attributes(found, [arguments[name] for name, _ in self._parameters])
        except Exception:  # noqa: S110 - measuring raises nothing into the program
            pass
        return found

    def _add_attributes(self, found: dict[str, float], values: list[object]) -> None:
        """Add the sizes of attributes; ``values`` are those of the parameters, and of the attributes so far."""
        readers: dict[int, _Reader | None] = {}
        for holder, attribute, name, inside in self._attributes:
            if len(found) >= MOST_SIZES:
                return
            if holder not in readers:
                readers[holder] = _reader(values[holder])
            read = readers[holder]
            value = read(attribute) if read is not None else None
            values.append(value)
            if value is not None:
                _add(found, name, inside, value)


def size_name(code: CodeType, path: tuple[str, ...]) -> str:
    """The name of the size of an attribute of a parameter of a function."""
    private = _private_prefix(code)
    return ".".join([path[0], *(_public(attribute, private) for attribute in path[1:])])


def sizes_of(code: CodeType | InputSizes, arguments: Mapping[str, object]) -> dict[str, float]:
    """The sizes of a call of a function by name, from the values of its parameters by name."""
    return (code if isinstance(code, InputSizes) else InputSizes(code)).of(arguments)


def leave_out(packages: Iterable[str]) -> None:
    """Take no sizes from classes of these packages that are written in Python: those are code that is measured."""
    for top in {name.partition(".")[0] for name in packages}:
        if top in ("pandas", "polars"):
            for module in [module for module in _LIBRARIES if str(module).partition(".")[0] == top]:
                del _LIBRARIES[module]


def _add(found: dict[str, float], name: str, inside: str, value: Any) -> None:
    kind = id(type(value))
    if kind in _SIZED:
        found[name] = length = len(value)
        if length and kind in _NESTED:
            mean = _mean_length(value, length)
            if mean is not None:
                found[inside] = mean
    elif kind in _NUMBERS:
        if 0 <= value <= MOST_NUMBER:
            found[name] = value
    elif kind not in _PLAIN:
        _add_other(found, name, inside, value)


def _add_other(found: dict[str, float], name: str, inside: str, value: Any) -> None:
    """Add the sizes of an instance of a class that is not builtin."""
    base = _known_base(type(value))
    if base is None:
        return
    if id(base) in _SIZED:
        found[name] = length = len(value)
        mean = _mean_length(value, length)
        if mean is not None:
            found[inside] = mean
        return
    shape = _shape(value, base)
    if shape is None:
        if 0 <= value <= MOST_NUMBER:
            found[name] = float(value)
    elif _name(base) == "DataFrame":
        found[f"{name}.rows"], found[f"{name}.columns"] = shape
    else:
        found[name] = math.prod(shape)
        if len(shape) > 1:
            for axis, size in enumerate(shape[:_AXES]):
                found[f"{name}.{axis}"] = size


def _known_base(kind: type) -> type | None:
    """The class that says how large an instance is: a builtin one whose length is not overridden, or a library's."""
    for base in _mro(kind):
        if id(base) in _SIZED:
            return base
        if _module(base) in _LIBRARIES:
            names = _LIBRARIES[_module(base)]
            if _name(base) in names and _exported(_module(base), _name(base)) is base:
                # Subclasses of others than numpy's may say something else about their shape.
                return base if base is kind or names is _NUMPY else None
        if "__len__" in _namespace(base):
            return None
    return None


def _shape(value: Any, base: type) -> tuple[int, ...] | None:
    """The shape of an array, tensor, series or frame, by its class in a library; None of a number."""
    if _name(base) in _NUMBER_CLASSES:
        return None
    if _name(base) == "ndarray":
        shape: tuple[int, ...] = _namespace(base)["shape"].__get__(value)  # type: ignore[attr-defined]
        return shape
    return tuple(value.shape)


def _length(value: Any) -> int | None:
    """The length of a container or text, or the number of elements of an array; None of anything else."""
    kind = type(value)
    if id(kind) in _SIZED:
        return len(value)
    if id(kind) in _PLAIN:
        return None
    base = _known_base(kind)
    if base is None:
        return None
    if id(base) in _SIZED:
        return len(value)
    shape = _shape(value, base)
    return math.prod(shape) if shape is not None else None


def _mean_length(value: Any, length: int) -> float | None:
    """The mean length of a few items, of a mapping its values; None where the first has no length."""
    total, count = 0, 0
    for item in _samples(value, length):
        inside = _length(item)
        if inside is not None:
            total += inside
            count += 1
        elif not count:
            return None
    return total / count if count else None


def _samples(value: Any, length: int) -> Iterable[object]:
    """A few items of an exact builtin container."""
    kind = id(type(value))
    if kind in _INDEXED:
        if length <= _SAMPLED:
            return tuple(value)
        return [value[place * (length - 1) // (_SAMPLED - 1)] for place in range(_SAMPLED)]
    if kind in _NESTED:
        return islice(iter(value.values() if kind == id(dict) else value), _SAMPLED)
    for base in _mro(type(value)):
        if base is dict:
            return islice(dict.values(value), _SAMPLED)
        if base is list or base is tuple:
            return islice(base.__iter__(value), _SAMPLED)
    return ()


def _exported(module: Any, name: str) -> object:
    """Return the value that an imported module holds under a name, past a ``__getattr__`` that it may have."""
    found = sys.modules.get(module)
    return vars(found).get(name) if type(found) is ModuleType else None


def _reader(value: object) -> _Reader | None:
    """Reads attributes of an instance where that runs no code of the program; None where nothing can be read."""
    kind = type(value)
    if id(kind) in _PLAIN:
        return None
    bases = _mro(kind)
    if any(base is type for base in bases):
        return None
    namespaces = [_namespace(base) for base in bases]

    def read(name: str) -> object:
        for namespace in namespaces:
            if name in namespace:
                if id(type(namespace[name])) not in _READABLE:
                    return None
                break
        try:
            return _attribute(value, name)
        except AttributeError:
            return None

    return read


def _parameters(code: CodeType) -> tuple[str, ...]:
    """The names of the parameters; ``*args`` and ``**options`` without their stars."""
    variadic = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + variadic]


def _private_prefix(code: CodeType) -> str:
    """Return the prefix of the names of private attributes in a method, as ``_Queue__`` in ``Queue.pop``."""
    owner = code.co_qualname.rpartition(".")[0].rpartition(".")[2].lstrip("_")
    return f"_{owner}__" if owner.isidentifier() else "\0"


def _public(attribute: str, private: str) -> str:
    """The name of an attribute as the text of the class has it."""
    return f"__{attribute.removeprefix(private)}" if attribute.startswith(private) else attribute


_LOADS = {
    number
    for name, number in opcode.opmap.items()
    if name == "LOAD_DEREF" or ("LOAD_FAST" in name and "CLEAR" not in name)
}
# Two loads, or a store and a load, in one: the variable that is loaded last is in the lower half.
_PAIRS = {opcode.opmap[name] for name in opcode.opmap if name.count("_FAST") == 2}
_LOAD_ATTRIBUTE, _LONGER, _CACHE = opcode.opmap["LOAD_ATTR"], opcode.opmap["EXTENDED_ARG"], 0
_HAS_METHOD_BIT = sys.version_info >= (3, 12)


def _read_paths(code: CodeType, roots: frozenset[str]) -> list[tuple[str, ...]]:
    """The same in a list; none of byte code that is not understood."""
    try:
        return list(_attribute_paths(code, roots)) if code.co_flags & CO_OPTIMIZED else []
    except (IndexError, ValueError):
        return []


def _attribute_paths(code: CodeType, roots: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """The attributes that a code object and those in it read of some variables, as ``("self", "heap", "items")``.

    They come in the order of the text, and each after those that hold it. Methods that are called are left out.
    """
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    variables = [*code.co_varnames, *cells, *code.co_freevars]
    path: tuple[str, ...] = ()
    longer = 0
    raw = code.co_code
    for operation, low in zip(raw[::2], raw[1::2], strict=True):
        if operation == _CACHE:
            continue
        number = longer << 8 | low
        longer = number if operation == _LONGER else 0
        if operation in _LOADS:
            variable = variables[number & 15 if operation in _PAIRS else number]
            path = (variable,) if variable in roots else ()
        elif operation == _LOAD_ATTRIBUTE and path and not (_HAS_METHOD_BIT and number & 1):
            path = (*path, code.co_names[number >> 1 if _HAS_METHOD_BIT else number])
            yield path
        elif operation != _LONGER:
            path = ()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = roots.intersection(constant.co_freevars)
            if inner:
                yield from _attribute_paths(constant, inner)
