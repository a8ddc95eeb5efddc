"""Writes values of plain data as JSON and rebuilds them: builtin values, arrays, and instances whose state is plain.

``encode`` reads a value without running any of its code: no property, ``__len__`` or ``__iter__`` of a class that is
not built in. ``decode`` imports modules of the given packages and of the standard library, takes classes of others only
where those are imported, and creates instances by ``__new__`` of a builtin type; it calls no constructor. A value is a
heap of nodes, since values share parts and refer to each other: in a node, a scalar is itself and ``[index]`` another
node.
"""

from __future__ import annotations

import array
import base64
import builtins
import collections
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import io
import logging
import re
import sys
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Encoded = dict[str, Any]
"""``nodes``: a list of ``[tag, ...]``; ``root``: a scalar or ``[index]``."""

SCALARS: frozenset[type] = frozenset({type(None), bool, int, float, str})
_MOST_BITS = 10_000  # of an integer; Python refuses to read much longer ones from text
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made by a class statement
_FLAGS, _QUALNAME = vars(type)["__flags__"], vars(type)["__qualname__"]
# The attributes of a class, past those of its metaclass.
_mro: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
_space: Callable[[type], Mapping[str, Any]] = vars(type)["__dict__"].__get__
_SPACES = (types.ModuleType, types.FunctionType)
_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_MAPPINGS: dict[type, str] = {dict: "dict", collections.OrderedDict: "ordered", collections.Counter: "counter"}
_OWNERS = frozenset({
    *SCALARS, *_SEQUENCES, *_MAPPINGS, bytes, bytearray, collections.deque, collections.defaultdict, io.StringIO,
    io.BytesIO, re.Pattern,
})  # fmt: skip
_TEXTS: dict[type, Callable[[Any], str]] = {
    decimal.Decimal: str,
    fractions.Fraction: str,
    datetime.date: datetime.date.isoformat,
    datetime.datetime: datetime.datetime.isoformat,
    datetime.time: datetime.time.isoformat,
}
_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
}
# The types whose subclasses are rebuilt from a value of the type; the first that matches counts.
BASES: tuple[type, ...] = (
    int, float, str, bytes, tuple, list, collections.OrderedDict, collections.defaultdict, dict, set, frozenset,
    collections.deque, object,
)  # fmt: skip
_FILLS: dict[type, Callable[[Any, Any], Any]] = {
    list: list.extend,
    set: set.update,
    dict: dict.update,
    collections.OrderedDict: collections.OrderedDict.update,
    collections.defaultdict: dict.update,
    collections.deque: collections.deque.extend,
}
_ITERATORS: frozenset[type] = frozenset(
    {type(iter([])), type(iter(())), type(iter("")), type(iter("\u0100")), type(iter(b""))}
)
_LOCKS: dict[type, str] = {type(threading.Lock()): "Lock", type(threading.RLock()): "RLock"}
# Functions that read and compute; those that open, evaluate or import are not among them.
_SAFE_BUILTINS = frozenset({
    "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "complex", "dict", "divmod",
    "enumerate", "filter", "float", "format", "frozenset", "hash", "hex", "id", "int", "isinstance", "issubclass",
    "iter", "len", "list", "map", "max", "min", "next", "object", "oct", "ord", "pow", "range", "repr", "reversed",
    "round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "zip",
})  # fmt: skip
_SAFE_MODULES = frozenset({
    "collections", "datetime", "decimal", "fractions", "functools", "itertools", "json", "math", "operator", "re",
    "statistics", "string", "textwrap", "typing", "uuid",
})  # fmt: skip


class NotPlainError(Exception):
    """The value holds something that is not plain data, or more of it than is kept."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that is kept of a value: items of containers, bytes of texts and arrays, and levels of nesting."""

    items: int = 3000
    text: int = 1 << 16
    depth: int = 60


@dataclass(frozen=True, slots=True)
class InstanceParts:
    """The state of an instance: a value of the builtin type that its class derives from, and its attributes."""

    base: type
    content: Any
    attributes: dict[str, Any]


def encode(value: object, packages: Iterable[str], limits: Limits = Limits()) -> Encoded:
    """Return a value as JSON data.

    ``packages`` are the import names of packages whose classes and functions may occur, next to the standard library.

    Raises:
        NotPlainError: the value is not plain data, or exceeds the limits.
    """
    encoder = _Encoder(frozenset(name.partition(".")[0] for name in packages), limits)
    root = encoder.encode(value, 0)
    return {"nodes": encoder.nodes, "root": root}


def decode(encoded: Encoded, packages: Iterable[str]) -> Any:
    """Rebuild a value.

    Raises:
        NotPlainError: the data is not of ``encode``, or names something outside of the packages.
    """
    return Decoder(encoded["nodes"], frozenset(name.partition(".")[0] for name in packages)).decode(encoded["root"])


def is_heap_type(cls: type) -> bool:
    """Return whether a class was made by a class statement."""
    return bool(_FLAGS.__get__(cls) & _HEAP_TYPE)


def instance_parts(value: object) -> InstanceParts | None:
    """Return the state of an instance of a class from Python code; None where it has more than can be read."""
    mro = _mro(type(value))
    base = next((one for one in BASES if one in mro), object)
    attributes: dict[str, Any] = {}
    for one in mro:
        if not is_heap_type(one):
            if one not in BASES:
                return None
            continue
        space = _space(one)
        if "__del__" in space:
            return None
        for name, descriptor in space.items():
            if type(descriptor) is types.MemberDescriptorType:
                try:
                    attributes.setdefault(name, descriptor.__get__(value))
                except AttributeError:
                    continue
    state = instance_dict(value)
    if state is not None:
        attributes.update(state)
    content = None if base is object else _content(base, value)
    return InstanceParts(base, content, attributes)


def instance_dict(value: object) -> dict[str, Any] | None:
    """Return the ``__dict__`` of an instance, past any property of that name; None without one."""
    for one in _mro(type(value)):
        descriptor = _space(one).get("__dict__")
        if type(descriptor) is types.GetSetDescriptorType and one is not type:
            found = descriptor.__get__(value)
            return found if type(found) is dict else None
    return None


def new_instance(cls: type, base: type, content: Any) -> Any:
    """Return an instance without attributes; no constructor is called."""
    if base is object:
        return object.__new__(cls)
    make: Callable[..., Any] = base.__new__
    if base not in _FILLS:
        return make(cls, content)
    made = make(cls)
    if base is collections.deque:
        collections.deque.__init__(made, maxlen=content.maxlen)
    if base is collections.defaultdict:
        made.default_factory = content.default_factory
    _FILLS[base](made, content)
    return made


def set_attributes(instance: object, attributes: dict[str, Any]) -> None:
    """Set attributes of an instance, past any ``__setattr__`` of its class."""
    state = instance_dict(instance)
    slots: dict[str, Any] = {}
    for one in _mro(type(instance)):
        for name, descriptor in _space(one).items():
            if type(descriptor) is types.MemberDescriptorType:
                slots.setdefault(name, descriptor)
    for name, value in attributes.items():
        if name in slots:
            slots[name].__set__(instance, value)
        elif state is not None:
            state[name] = value
        else:
            raise NotPlainError(f"no place for the attribute {name}")


def rest_of(iterator: Any) -> Any:
    """Return what an iterator over a list, tuple or text has left, without moving it on."""
    _, (values, *_), *state = iterator.__reduce__()
    return values[state[0] :] if state else values


def is_iterator(value: object) -> bool:
    """Return whether a value is an iterator over a list, tuple or text."""
    return type(value) in _ITERATORS


def bound_builtin(value: Any) -> tuple[Any, str] | None:
    """Return the instance of a builtin type and the name of its method that a value is, as ``lines.append``."""
    if type(value) is not types.BuiltinMethodType or type(value.__self__) not in _OWNERS:
        return None
    return value.__self__, value.__name__


def is_array(value: object) -> bool:
    """Return whether a value is an array of numpy; numpy is not imported."""
    cls = type(value)
    return cls.__name__ == "ndarray" and cls.__module__ == "numpy"


def is_table(value: object) -> bool:
    """Return whether a value is a table or a column of pandas; pandas is not imported."""
    cls = type(value)
    return cls.__name__ in ("DataFrame", "Series") and cls.__module__.partition(".")[0] == "pandas"


def _content(base: type, value: Any) -> Any:
    """Return the value of a builtin type that an instance of a subclass holds."""
    plain: Any = base
    if base in (int, float):
        return plain.__add__(value, base(0))
    if base in (str, bytes):
        return plain.__getitem__(value, slice(None))
    if base is dict:
        return dict(dict.items(value))
    if base is collections.OrderedDict:
        return collections.OrderedDict(collections.OrderedDict.items(value))
    if base is collections.defaultdict:
        return collections.defaultdict(value.default_factory, dict.items(value))
    if base is collections.deque:
        return collections.deque(collections.deque.__iter__(value), value.maxlen)
    return base(plain.__iter__(value))


class _Encoder:
    """Fills ``nodes``."""

    def __init__(self, packages: frozenset[str], limits: Limits) -> None:
        self.nodes: list[Any] = []
        self._packages, self._limits = packages, limits
        self._known: dict[int, list[int]] = {}
        self._kept: list[object] = []  # what was read must live on, since nodes are known by identity
        self._items = self._text = 0

    def encode(self, value: Any, depth: int) -> Any:
        cls = type(value)
        self._items += 1
        if self._items > self._limits.items:
            raise NotPlainError("too many items")
        if cls in SCALARS:
            if cls is str:
                self._count(len(value))
            elif cls is int and value.bit_length() > _MOST_BITS:
                raise NotPlainError("a long number")
            return value
        known = self._known.get(id(value))
        if known is not None:
            return known
        if depth > self._limits.depth:
            raise NotPlainError("too deep")
        reference = [len(self.nodes)]
        self.nodes.append(None)
        self._known[id(value)] = reference
        self._kept.append(value)
        self.nodes[reference[0]] = self._node(cls, value, depth + 1)
        return reference

    def _count(self, length: int) -> None:
        self._text += length
        if self._text > self._limits.text:
            raise NotPlainError("too much text")

    def _all(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self.encode(value, depth) for value in values]

    def _pairs(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> list[list[Any]]:
        return [[self.encode(key, depth), self.encode(value, depth)] for key, value in pairs]

    def _node(self, cls: type, value: Any, depth: int) -> list[Any]:
        if cls in _SEQUENCES:
            return [_SEQUENCES[cls], self._all(value, depth)]
        if cls in _MAPPINGS:
            return [_MAPPINGS[cls], self._pairs(value.items(), depth)]
        if cls in (bytes, bytearray):
            self._count(len(value))
            return [cls.__name__, _to_base64(value)]
        if cls is range:
            return ["range", value.start, value.stop, value.step]
        if cls in _TEXTS:
            if getattr(value, "tzinfo", None) not in (None, datetime.UTC) or getattr(value, "fold", False):
                raise NotPlainError("a time zone")
            return ["text", cls.__name__, _TEXTS[cls](value)]
        if cls is collections.deque:
            return ["deque", self._all(value, depth), value.maxlen]
        if cls is collections.defaultdict:
            return ["defaultdict", self.encode(value.default_factory, depth), self._pairs(dict.items(value), depth)]
        if cls is datetime.timedelta:
            return ["timedelta", value.days, value.seconds, value.microseconds]
        if cls is complex:
            return ["complex", value.real, value.imag]
        if cls is slice:
            return ["slice", *self._all((value.start, value.stop, value.step), depth)]
        return self._special(cls, value, depth)

    def _special(self, cls: type, value: Any, depth: int) -> list[Any]:
        if cls is re.Pattern:
            return ["pattern", self.encode(value.pattern, depth), value.flags]
        if cls is io.StringIO and not value.closed:
            self._count(len(value.getvalue()))
            return ["StringIO", value.getvalue(), value.tell()]
        if cls is io.BytesIO and not value.closed:
            self._count(len(value.getvalue()))
            return ["BytesIO", _to_base64(value.getvalue()), value.tell()]
        if cls is array.array:
            return ["typed array", value.typecode, self._all(value, depth)]
        if cls in _LOCKS:
            return ["lock", _LOCKS[cls]]
        if cls is logging.Logger:
            return ["logger", value.name]
        if cls is types.ModuleType:
            name = vars(value).get("__name__")
            if not isinstance(name, str) or sys.modules.get(name) is not value:
                raise NotPlainError("a module that is not imported")
            return ["module", name]
        if cls is functools.partial:
            parts = (value.func, value.args, value.keywords)
            return ["partial", *self._all(parts, depth)]
        if cls is types.MethodType:
            return ["method", self.encode(value.__self__, depth), value.__func__.__name__]
        if cls in _ITERATORS:
            return ["iterator", self.encode(rest_of(value), depth)]
        if bound := bound_builtin(value):
            return ["builtin method", self.encode(bound[0], depth), bound[1]]
        if cls in (types.FunctionType, types.BuiltinFunctionType) or type in _mro(cls):
            return ["global", *self._path(value)]
        if is_array(value):
            if value.dtype.kind not in "biufcUSMm":
                raise NotPlainError("an array of objects")
            self._count(value.nbytes)
            return ["array", value.dtype.str, list(value.shape), _to_base64(value.tobytes())]
        return self._instance(cls, value, depth)

    def _instance(self, cls: type, value: Any, depth: int) -> list[Any]:
        if not is_heap_type(cls):
            raise NotPlainError(cls.__name__)
        path = self._path(cls)
        if enum.Enum in _mro(cls):
            return ["enum", *path, vars(value)["_name_"]]
        parts = instance_parts(value)
        if parts is None:
            raise NotPlainError(cls.__name__)
        content: Any = None
        if parts.base is not object:
            content = self.encode(parts.content, depth)
        else:
            try:
                new_instance(cls, object, None)
            except TypeError:  # a class from C code, or an abstract one
                raise NotPlainError(cls.__name__) from None
        attributes = [[name, self.encode(one, depth)] for name, one in parts.attributes.items()]
        return ["instance", *path, parts.base.__name__, content, attributes]

    def _path(self, value: Any) -> tuple[str, str]:
        """Return module and qualified name of a class or function that can be found by them again."""
        is_class = type in _mro(type(value))
        module = _space(value).get("__module__", "builtins") if is_class else value.__module__
        name = _QUALNAME.__get__(value) if is_class else value.__qualname__
        if not isinstance(module, str) or not isinstance(name, str):
            raise NotPlainError("a name of another type")
        try:
            found = find_global(sys.modules[module], module, name, self._packages)
        except KeyError:
            raise NotPlainError(f"{module}.{name}") from None
        if found is not value:
            raise NotPlainError(f"{module}.{name}")
        return module, name


def find_global(module: types.ModuleType, name: str, qualname: str, packages: frozenset[str]) -> Any:
    """Return a class of a module, or a function if the module is of the packages or harmless, by its static attributes.

    Raises:
        NotPlainError: it is not there, or the module is none from which values may come.
    """
    first = name.partition(".")[0]
    if (
        first == "builtins"
        and qualname not in _SAFE_BUILTINS
        and not (isinstance(vars(builtins).get(qualname), type) and qualname[:1].isupper())
    ):
        raise NotPlainError(qualname)
    found: Any = module
    for part in qualname.split("."):
        space = _space(found) if isinstance(found, type) else vars(found) if type(found) in _SPACES else {}
        if part not in space:
            raise NotPlainError(f"{name}.{qualname}")
        found = space[part]
        if isinstance(found, staticmethod | classmethod):
            found = found.__func__
    if first in packages or first == "builtins" or first in _SAFE_MODULES:
        return found
    if isinstance(found, type) and is_heap_type(found) and not hasattr(found, "__del__"):
        return found
    raise NotPlainError(f"{name}.{qualname}")


def _to_base64(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode("ascii")


class Decoder:
    """Rebuilds the values of a heap; a node that is reached twice is one object."""

    def __init__(self, nodes: list[Any], packages: frozenset[str]) -> None:
        self._nodes, self._packages = nodes, packages
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()

    def decode(self, value: Any) -> Any:
        """Rebuild one value of the heap."""
        if type(value) is not list:
            return value
        (index,) = value
        if index in self._made:
            return self._made[index]
        if index in self._open:
            raise NotPlainError("a value that holds itself and cannot be changed")
        self._open.add(index)
        tag, *rest = self._nodes[index]
        try:
            made = self._node(index, tag, rest)
        except NotPlainError:
            raise
        except Exception as error:
            raise NotPlainError(f"{tag}: {error}") from None
        self._made[index] = made
        self._open.discard(index)
        return made

    def _all(self, values: list[Any]) -> list[Any]:
        return [self.decode(value) for value in values]

    def _node(self, index: int, tag: str, rest: list[Any]) -> Any:
        if tag in ("list", "set", "dict", "ordered", "counter", "defaultdict", "deque"):
            return self._container(index, tag, rest)
        if tag == "tuple":
            return tuple(self._all(rest[0]))
        if tag == "frozenset":
            return frozenset(self._all(rest[0]))
        if tag in ("bytes", "bytearray"):
            return (bytes if tag == "bytes" else bytearray)(base64.b64decode(rest[0]))
        if tag == "text":
            return _FROM_TEXT[rest[0]](rest[1])
        if tag in ("range", "complex", "timedelta"):
            make: Any = {"range": range, "complex": complex, "timedelta": datetime.timedelta}[tag]
            return make(*rest)
        if tag == "slice":
            return slice(*self._all(rest))
        if tag == "pattern":
            return re.compile(self.decode(rest[0]), rest[1])
        if tag in ("StringIO", "BytesIO"):
            file = io.StringIO(rest[0], newline="") if tag == "StringIO" else io.BytesIO(base64.b64decode(rest[0]))
            file.seek(rest[1])
            return file
        if tag == "typed array":
            return array.array(rest[0], self._all(rest[1]))
        if tag == "lock":
            return threading.Lock() if rest[0] == "Lock" else threading.RLock()
        if tag == "logger":
            return logging.getLogger(rest[0])
        if tag == "partial":
            function, positional, named = self._all(rest)
            return functools.partial(function, *positional, **named)
        if tag == "method":
            owner = self.decode(rest[0])
            return types.MethodType(_static(type(owner), rest[1]), owner)
        if tag == "iterator":
            return iter(self.decode(rest[0]))
        if tag == "builtin method":
            owner = self.decode(rest[0])
            if type(owner) not in _OWNERS:
                raise NotPlainError(tag)
            return getattr(owner, rest[1])
        if tag == "module":
            return self._module(rest[0])
        if tag == "global":
            return self._global(*rest)
        if tag == "array":
            numpy = importlib.import_module("numpy")
            return numpy.frombuffer(base64.b64decode(rest[2]), dtype=rest[0]).reshape(rest[1]).copy()
        if tag == "enum":
            return self._global(*rest[:2]).__members__[rest[2]]
        if tag == "instance":
            return self._instance(index, *rest)
        raise NotPlainError(tag)

    def _container(self, index: int, tag: str, rest: list[Any]) -> Any:
        made: Any
        if tag == "defaultdict":
            made = collections.defaultdict(self.decode(rest[0]))
        elif tag == "deque":
            made = collections.deque(maxlen=rest[1])
        else:
            kinds: dict[str, Callable[[], Any]] = {
                "list": list, "set": set, "dict": dict, "ordered": collections.OrderedDict,
                "counter": collections.Counter,
            }  # fmt: skip
            made = kinds[tag]()
        self._made[index] = made
        if tag in ("list", "deque"):
            made.extend(self._all(rest[0]))
        elif tag == "set":
            made.update(self._all(rest[0]))
        else:
            for key, value in rest[-1]:
                made[self.decode(key)] = self.decode(value)
        return made

    def _instance(
        self, index: int, module: str, qualname: str, base_name: str, content: Any, attributes: list[Any]
    ) -> Any:
        cls = self._global(module, qualname)
        base = next(one for one in BASES if one.__name__ == base_name)
        if not isinstance(cls, type) or not issubclass(cls, base) or not is_heap_type(cls):
            raise NotPlainError(f"{module}.{qualname}")
        made = new_instance(cls, base, self.decode(content))
        self._made[index] = made
        set_attributes(made, {name: self.decode(value) for name, value in attributes})
        return made

    def _global(self, module: str, qualname: str) -> Any:
        return find_global(self._module(module), module, qualname, self._packages)

    def _module(self, name: str) -> types.ModuleType:
        if name not in sys.modules:
            first = name.partition(".")[0]
            if first not in self._packages and first not in sys.stdlib_module_names:
                raise NotPlainError(name)
            importlib.import_module(name)
        return sys.modules[name]


def _static(cls: type, name: str) -> Any:
    """Return a function of a class or of those that it derives from."""
    for one in _mro(cls):
        found = _space(one).get(name)
        if isinstance(found, types.FunctionType):
            return found
    raise NotPlainError(name)
