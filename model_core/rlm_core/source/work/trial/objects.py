"""Classes of the program in a trial run, their objects, and what is raised and entered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .names import MISSING, Caller, Closure, Names
from .values import Own, Refused, weigh


class Class(Own):
    """A class of the program.

    ``fields`` are what a dataclass or named tuple is made of, with what gives the default of each, ``members`` those of
    an enumeration, and ``constants`` give what the body assigns. ``exception`` is the exception of Python that it is a
    kind of. ``attributes`` are None where the methods are looked up in the module.
    """

    def __init__(
        self, machine: Caller, name: str, names: Names | None = None, attributes: dict[str, Any] | None = None
    ) -> None:
        self.machine, self.name, self.names = machine, name, names
        self.attributes = attributes
        self.bases: list[Class] = []
        self.fields: dict[str, Callable[[], Any] | None] = {}
        self.members: dict[str, Instance] = {}
        self.exception: type[Exception] | None = None
        self.is_data = self.is_tuple = self.is_frozen = self.is_ordered = False
        self.constants: dict[str, Callable[[], Any]] = {}
        self._found: dict[str, Any] = {}

    def set(self, name: str, value: Any) -> None:
        """Set an attribute of the class."""
        self._found[name] = value

    def find(self, name: str) -> Any:
        """A method or attribute of the class; ``MISSING`` where there is none."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._look_up(name)
        return found

    def _look_up(self, name: str) -> Any:
        found = self.attributes.get(name, MISSING) if self.attributes is not None else MISSING
        if found is MISSING and name in self.constants:
            return self.constants[name]()
        if found is MISSING and self.names is not None:
            found = self.machine.method(self, name)
        if type(found) is Closure and found.owner is None:
            found.owner = self
        if found is MISSING:
            found = next((inner for base in self.bases if (inner := base.find(name)) is not MISSING), MISSING)
        return found

    def is_a(self, kind: Any) -> bool:
        """Whether the class is another one or inherits from it."""
        return self is kind or any(base.is_a(kind) for base in self.bases)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Make an object.

        Raises:
            TypeError: the arguments do not fit the fields.
            ValueError: no member of the enumeration has the value.
        """
        self.machine.budget.spend(1 + len(self.fields))
        if self.members:
            for member in self.members.values():
                if member.values["value"] == args[0]:
                    return member
            raise ValueError(f"no {self.name}")
        made = Instance(self)
        begin = self.find("__init__")
        if begin is not MISSING:
            begin.bound(made)(*args, **keywords)
        elif self.is_data or self.is_tuple:
            self._fill(made, args, keywords)
        elif self.exception is not None:
            made.values["args"] = args
        elif args or keywords:
            raise Refused
        return made

    def _fill(self, made: Instance, args: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        given = {**dict(zip(self.fields, args, strict=False)), **keywords}
        if len(args) > len(self.fields) or len(given) > len(self.fields) or not given.keys() <= self.fields.keys():
            raise TypeError(self.name)
        for name, default in self.fields.items():
            if name not in given and default is None:
                raise TypeError(name)
            made.values[name] = given[name] if name in given else default() if default is not None else None
        after = self.find("__post_init__")
        if after is not MISSING:
            after.bound(made)()

    def __iter__(self) -> Iterator[Any]:
        """The members of an enumeration."""
        if not self.members:
            raise TypeError(self.name)
        return iter(list(self.members.values()))

    def __len__(self) -> int:
        """The number of members."""
        if not self.members:
            raise TypeError(self.name)
        return len(self.members)

    def __getitem__(self, name: Any) -> Any:
        """A member by name."""
        return self.members[name]

    def __bool__(self) -> bool:
        """A class is true."""
        return True


class Instance(Own):
    """An object of a class of the program. Operators, and what the library does with it, run the program's methods."""

    __slots__ = ("kind", "values")

    def __init__(self, kind: Class) -> None:
        self.kind = kind
        self.values: dict[str, Any] = {}

    def is_a(self, kind: Any) -> bool:
        """Whether its class is another one or inherits from it."""
        return self.kind.is_a(kind)

    def is_steady(self) -> bool:
        """Whether its hash comes from numbers."""
        is_by_fields = (self.kind.is_tuple or self.kind.is_frozen) and not self.has("__hash__")
        return is_by_fields and all(type(part) in (int, float, bool) for part in self.parts())

    def parts(self) -> tuple[Any, ...]:
        """The values of its fields, paid for."""
        self.kind.machine.budget.spend(1 + len(self.kind.fields))
        return tuple([self.values[name] for name in self.kind.fields])

    def run(self, name: str, *args: Any) -> Any:
        """What a method returns.

        Raises:
            TypeError: there is none.
        """
        found = self.kind.find(name)
        if type(found) is not Closure:
            raise TypeError(name)
        return found.bound(self)(*args)

    def has(self, name: str) -> bool:
        """Whether its class has a method."""
        return self.kind.find(name) is not MISSING

    def __eq__(self, other: object) -> Any:
        """By the program's method, else by fields, else by identity."""
        if self.has("__eq__"):
            return self.run("__eq__", other)
        if self.kind.is_tuple and type(other) is tuple:
            return self.parts() == other
        if type(other) is not Instance or other.kind is not self.kind or not self._has_values:
            return NotImplemented
        return self.parts() == other.parts()

    @property
    def _has_values(self) -> bool:
        return self.kind.is_data or self.kind.is_tuple

    def __hash__(self) -> int:
        """By the program's method, else by fields, else by identity."""
        if self.has("__hash__"):
            return int(self.run("__hash__"))
        if self.kind.is_tuple or self.kind.is_frozen:
            weigh(self.parts(), self.kind.machine.budget)
            return hash(self.parts())
        if self.kind.is_data or self.has("__eq__"):
            raise TypeError(self.kind.name)
        return id(self) // 16

    def compared(self, name: str, other: Any) -> Any:
        """The result of an inequality."""
        if self.has(name):
            return self.run(name, other)
        is_same = type(other) is Instance and other.kind is self.kind
        if not (self.kind.is_tuple or self.kind.is_ordered) or not (is_same or type(other) is tuple):
            return NotImplemented
        return getattr(tuple, name)(self.parts(), other.parts() if is_same else other)

    def __bool__(self) -> bool:
        """By ``__bool__`` or ``__len__``."""
        if self.has("__bool__"):
            return bool(self.run("__bool__"))
        return len(self) > 0 if self.has("__len__") or self.kind.is_tuple else True

    def __len__(self) -> int:
        """The number of its items."""
        return len(self.kind.fields) if self.kind.is_tuple else int(self.run("__len__"))

    def __iter__(self) -> Iterator[Any]:
        """Its items."""
        if self.kind.is_tuple:
            return iter(self.parts())
        found = self.run("__iter__")
        return found._following() if type(found) is Instance else iter(found)

    def _following(self) -> Iterator[Any]:
        while True:
            try:
                item = self.run("__next__")
            except StopIteration:
                return
            yield item

    def __getitem__(self, key: Any) -> Any:
        """An item."""
        return self.parts()[key] if self.kind.is_tuple else self.run("__getitem__", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set an item."""
        self.run("__setitem__", key, value)

    def __delitem__(self, key: Any) -> None:
        """Delete an item."""
        self.run("__delitem__", key)

    def __contains__(self, item: Any) -> bool:
        """Whether an item is among its items."""
        return bool(self.run("__contains__", item)) if self.has("__contains__") else any(item == one for one in self)

    def __str__(self) -> str:
        """As its class says, else by its fields."""
        for name in ("__str__", "__repr__"):
            if self.has(name):
                return str(self.run(name))
        if self.kind.exception is not None:
            return " ".join(map(str, self.values.get("args", ())))
        if self.kind.members:
            return f"{self.kind.name}.{self.values['name']}"
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self.kind.fields, self.parts(), strict=True))
        self.kind.machine.budget.spend(len(fields) // 16)
        return f"{self.kind.name}({fields})"

    def __repr__(self) -> str:
        """As its class says, else as :func:`str`."""
        return str(self.run("__repr__")) if self.has("__repr__") else str(self)

    def replaced(self, changes: Mapping[str, Any]) -> Instance:
        """A copy with other values in some fields."""
        if not changes.keys() <= self.kind.fields.keys():
            raise TypeError(self.kind.name)
        made = Instance(self.kind)
        made.values = {**dict(zip(self.kind.fields, self.parts(), strict=True)), **changes}
        return made


def _operator(name: str) -> Callable[..., Any]:
    def method(self: Instance, *others: Any) -> Any:
        return self.run(name, *others) if self.has(name) else NotImplemented

    return method


def _unary(name: str) -> Callable[[Instance], Any]:
    return lambda self: self.run(name)


def _inequality(name: str) -> Callable[[Instance, Any], Any]:
    return lambda self, other: self.compared(name, other)


_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
for _name in _BINARY.split():
    for _form in ("", "r", "i"):
        setattr(Instance, f"__{_form}{_name}__", _operator(f"__{_form}{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Instance, f"__{_name}__", _unary(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Instance, f"__{_name}__", _inequality(f"__{_name}__"))


class Thrown(Exception):  # noqa: N818 - carries an exception of the program
    """An exception of a class of the program."""

    def __init__(self, instance: Instance) -> None:
        super().__init__()
        self.instance = instance


class Failure(Own):
    """An exception of Python that a program has caught."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __str__(self) -> str:
        """Its message."""
        return str(self.error)

    __repr__ = __str__


class Parent:
    """What ``super()`` gives: the methods of the bases, for an object."""

    __slots__ = ("kind", "receiver")

    def __init__(self, kind: Class, receiver: Any) -> None:
        self.kind, self.receiver = kind, receiver

    def find(self, name: str) -> Any:
        """A method of the bases, bound; what the base of all classes does is nothing."""
        for base in self.kind.bases:
            found = base.find(name)
            if type(found) is Closure:
                return found.bound(self.receiver)
        if name not in ("__init__", "__init_subclass__", "__post_init__"):
            raise Refused
        return self

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Begin an object whose bases have nothing to begin."""
        if type(self.receiver) is Instance and self.kind.exception is not None:
            self.receiver.values["args"] = args


class Managing:
    """A generator of the program as a context: what ``contextmanager`` makes of a function, and a call of it."""

    __slots__ = ("function", "generator")

    def __init__(self, function: Any, generator: Any = None) -> None:
        self.function, self.generator = function, generator

    def __call__(self, *args: Any, **keywords: Any) -> Managing:
        """Begin a context."""
        return Managing(self.function, self.function(*args, **keywords))

    def run(self, name: str, *args: Any) -> Any:
        """Enter the context, or leave it; whether the generator has dealt with what was raised."""
        if name == "__enter__":
            return next(self.generator)
        raised = args[0]
        if raised is None:
            return next(self.generator, None)
        try:
            self.generator.throw(raised.error if isinstance(raised, Failure) else Thrown(raised))
        except StopIteration:
            return True
        return False
