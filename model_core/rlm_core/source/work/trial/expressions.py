"""Evaluates the expressions of a trial run, and binds targets."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ..syntax import parse
from .attributes import Attributes
from .library import CONSTANTS, FUNCTIONS, MODULES, LibraryFunction, Module
from .library_texts import checked_text, formatted
from .names import MISSING, Closure, Method, Names
from .object_functions import OF_OBJECTS
from .objects import Class, Instance, Managing, Parent
from .observations import Observations
from .values import (
    CONTAINERS,
    MAPPINGS,
    SCALARS,
    TEXTS,
    Budget,
    Own,
    Refused,
    Spent,
    compare,
    items_of,
    made,
    metered,
    operate,
    weigh,
)

_ADDING = frozenset({"add", "setdefault"})
_DIGIT = 1 << 30
_SAMPLED = 16  # trips of a long loop in a run that takes a sample


class Expressions(Attributes):
    """Evaluates expressions; calls of the program's own functions are left to a subclass.

    One that ``samples`` runs 16 trips, spread over all, of each longer loop over a range. ``inside_samples`` counts the
    loops around that do so, ``has_long_loops`` says that there was one.
    """

    def __init__(self, budget: Budget, seen: Observations, *, samples: bool) -> None:
        self.budget, self.seen, self.samples = budget, seen, samples
        self.has_long_loops = False
        self.inside_samples = 0
        self._globals: dict[tuple[int, str], Any] = {}
        self._library: dict[str, Any] = {}

    @abstractmethod
    def function(self, names: Names, name: str, owner: str | None, caller: str) -> Any:
        """A function of the program that the scope finds, else ``MISSING``."""

    @abstractmethod
    def closure(self, node: ast.Lambda, names: Names) -> Closure:
        """A function as a value."""

    @abstractmethod
    def class_of(self, name: str, names: Names) -> Class:
        """A class that the scope finds."""

    def store(self, target: ast.expr, value: Any, names: Names) -> None:
        """Bind a target."""
        if isinstance(target, ast.Name):
            names.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, names)
        elif isinstance(target, ast.Subscript):
            holder, key = self.value(target.value, names), self.value(target.slice, names)
            self._see_item(target, holder, key)
            self._store_item(holder, key, value)
        elif isinstance(target, ast.Attribute):
            holder = self.value(target.value, names)
            self.set_attribute(holder, target.attr, value)
        else:
            raise Refused

    def _unpack(self, targets: Sequence[ast.expr], value: Any, names: Names) -> None:
        parts = value if type(value) in (tuple, list) else list(metered(value, self.budget))
        starred = next((at for at, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if starred is not None:
            after = len(targets) - starred - 1
            if len(parts) < len(targets) - 1:
                raise ValueError("not enough values to unpack")
            middle = made(list(parts[starred : len(parts) - after]), self.budget)
            parts = [*parts[:starred], middle, *parts[len(parts) - after :]]
        if len(parts) != len(targets):
            raise ValueError("wrong number of values to unpack")
        for target, part in zip(targets, parts, strict=True):
            self.store(target.value if isinstance(target, ast.Starred) else target, part, names)

    def _see_item(self, target: ast.Subscript, holder: Any, key: Any) -> None:
        """Count an assignment to an item, if it may be a new one."""
        if type(holder) in MAPPINGS:
            weigh(key, self.budget)
            self.seen.tally(target, hit=key not in holder)

    def _store_item(self, holder: Any, key: Any, value: Any) -> None:
        if type(holder) not in CONTAINERS and type(holder) is not Instance:
            raise Refused
        weigh(key, self.budget)
        if type(key) is slice:
            value = made(list(metered(value, self.budget)), self.budget)
        holder[key] = value

    def _holds(self, test: ast.expr, names: Names) -> bool:
        holds = self.truth(self.value(test, names))
        self.seen.tally(test, hit=holds)
        return holds

    def truth(self, value: Any) -> bool:
        """Whether a value counts as true."""
        return bool(value)

    def _sample(self, value: Any) -> list[int] | None:
        """A sample of a long range, in a run that takes samples."""
        if type(value) is not range or len(value) <= _SAMPLED:
            return None
        self.has_long_loops = True
        whole = len(value)
        part = whole // _SAMPLED
        points = (at * whole // _SAMPLED + at * 7 % 12 * part // 12 for at in range(_SAMPLED))
        return [value[point] for point in points] if self.samples else None

    def value(self, node: ast.expr, names: Names) -> Any:
        """The value of an expression."""
        budget = self.budget
        budget.left -= 1  # this is where most steps are taken
        if budget.left < 0:
            raise Spent
        evaluate = _EXPRESSIONS.get(type(node))
        if evaluate is None:
            raise Refused
        return evaluate(self, node, names)

    def _constant(self, node: ast.Constant, names: Names) -> Any:
        if type(node.value) not in SCALARS and type(node.value) not in TEXTS:
            raise Refused
        return node.value

    def _name(self, node: ast.Name, names: Names) -> Any:
        value = names.find(node.id)
        return self._outside(node.id, names) if value is MISSING else value

    def _outside(self, name: str, names: Names) -> Any:
        """The value of a name that is bound outside all functions that run: one for all functions of a file."""
        home = names
        while home.outer is not None:
            home = home.outer
        key = (id(names.scope.home()), name)
        value = self._globals.get(key, MISSING)
        if value is MISSING:
            value = self._globals[key] = self._of_module(name, names, home)
        home.values[name] = value
        return value

    def _of_module(self, name: str, names: Names, home: Names) -> Any:
        dotted = names.scope.imported(name)
        if dotted is not None:
            return self.library(dotted)
        if f"builtins.{name}" in FUNCTIONS or f"builtins.{name}" in OF_OBJECTS:
            return self.library(f"builtins.{name}")
        if (text := names.scope.constant(name)) is not None:
            tree = parse(text)
            if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
                raise Refused
            return self.value(tree.body[0].value, home)
        if names.scope.is_class(name):
            return self.class_of(name, home)
        value = self.function(names, name, None, names.caller)
        if value is MISSING and name in MODULES:
            # A unit that comes without its file has no imports.
            value = Module(name)
        if value is MISSING:
            raise Refused
        return value

    def library(self, dotted: str) -> Any:
        """What a dotted name of the library stands for; a function is one object, so that ``is`` compares kinds."""
        if dotted not in self._library:
            self._library[dotted] = self._of_library(dotted)
        return self._library[dotted]

    def _of_library(self, dotted: str) -> Any:
        if dotted in OF_OBJECTS:
            return partial(OF_OBJECTS[dotted], self)
        if dotted in FUNCTIONS:
            return LibraryFunction(dotted, self.budget)
        return CONSTANTS.get(dotted, Module(dotted))

    def _binary(self, node: ast.BinOp, names: Names) -> Any:
        left, right = self.value(node.left, names), self.value(node.right, names)
        result = operate(type(node.op), left, right, self.budget)
        self.see_digits(node, left, result)
        return result

    def see_digits(self, node: ast.AST, left: Any, result: Any) -> None:
        """Count the bits of a large number in an operation."""
        if type(result) is int and type(left) is int and not -_DIGIT < result < _DIGIT:
            self.seen.digits(node, max(left.bit_length(), result.bit_length()))

    def _unary(self, node: ast.UnaryOp, names: Names) -> Any:
        value = self.value(node.operand, names)
        if isinstance(node.op, ast.Not):
            return not self.truth(value)
        if type(value) not in SCALARS and type(value) is not Instance:
            raise Refused
        return -value if isinstance(node.op, ast.USub) else ~value if isinstance(node.op, ast.Invert) else +value

    def _boolean(self, node: ast.BoolOp, names: Names) -> Any:
        is_or = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.value(part, names)
            if part is node.values[-1]:
                break
            holds = self.truth(value)
            self.seen.tally(part, hit=holds)
            if holds is is_or:
                break
        return value

    def _compare(self, node: ast.Compare, names: Names) -> bool:
        left = self.value(node.left, names)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part, names)
            if not compare(type(op), left, right, self.budget):
                return False
            left = right
        return True

    def _conditional(self, node: ast.IfExp, names: Names) -> Any:
        return self.value(node.body if self._holds(node.test, names) else node.orelse, names)

    def _elements(self, nodes: Sequence[ast.expr], names: Names) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found += metered(self.value(node.value, names), self.budget)
            else:
                found.append(self.value(node, names))
        return found

    def _list(self, node: ast.List, names: Names) -> list[Any]:
        return self._elements(node.elts, names)

    def _tuple(self, node: ast.Tuple, names: Names) -> tuple[Any, ...]:
        return tuple(self._elements(node.elts, names))

    def _set(self, node: ast.Set, names: Names) -> set[Any]:
        found = self._elements(node.elts, names)
        weigh(found, self.budget)
        return set(found)

    def _dict(self, node: ast.Dict, names: Names) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                entries.update(metered(self.value(value, names), self.budget))
            else:
                name = self.value(key, names)
                weigh(name, self.budget)
                entries[name] = self.value(value, names)
        return entries

    def _subscript(self, node: ast.Subscript, names: Names) -> Any:
        return self._item(self.value(node.value, names), self.value(node.slice, names))

    def _item(self, holder: Any, key: Any) -> Any:
        if isinstance(holder, Own):
            return holder[key]  # type: ignore[index]
        if type(holder) not in CONTAINERS and type(holder) not in TEXTS and type(holder) is not range:
            raise Refused
        if type(key) is slice:
            return made(holder[key], self.budget)
        weigh(key, self.budget)
        return holder[key]

    def _slice(self, node: ast.Slice, names: Names) -> slice:
        return slice(
            *(None if part is None else self.value(part, names) for part in (node.lower, node.upper, node.step))
        )

    def _call(self, node: ast.Call, names: Names) -> Any:
        function = self.value(node.func, names)
        if type(function) is Instance:
            function = self.of_object(function, "__call__")
        if type(function) not in (Closure, LibraryFunction, Class, Managing, Method, Parent, partial):
            raise Refused
        args = self._elements(node.args, names)
        keywords = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, names)
            if keyword.arg is None:
                if type(value) not in MAPPINGS:
                    raise Refused
                keywords.update(value)
            else:
                keywords[keyword.arg] = value
        if type(function) is Method and function.name in _ADDING:
            held = len(function.receiver)
            result = function(*args, **keywords)
            self.seen.tally(node.func, hit=len(function.receiver) > held)
            return result
        return function(*args, **keywords)

    def _lambda(self, node: ast.Lambda, names: Names) -> Closure:
        return self.closure(node, names)

    def _named(self, node: ast.NamedExpr, names: Names) -> Any:
        value = self.value(node.value, names)
        names.bind(node.target.id, value)
        return value

    def _text(self, node: ast.JoinedStr, names: Names) -> str:
        parts = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            elif isinstance(part, ast.FormattedValue):
                value = self.value(part.value, names)
                spec = self._text(part.format_spec, names) if isinstance(part.format_spec, ast.JoinedStr) else ""
                if part.conversion == ord("r"):
                    value = repr(checked_text(value, self.budget))
                parts.append(formatted(self.budget, value, spec))
        return str(made("".join(parts), self.budget))

    def _generated(self, generators: Sequence[ast.comprehension], names: Names) -> Iterator[None]:
        """One pass for each element of a comprehension, whose names are bound in ``names``."""
        first, rest = generators[0], generators[1:]
        if first.is_async:
            raise Refused
        value = self.value(first.iter, names)
        sample = self._sample(value)
        self.inside_samples += sample is not None
        trips = 0
        for item in sample or items_of(value, self.budget):
            self.budget.spend()
            trips += 1
            self.store(first.target, item, names)
            if all(self._holds(test, names) for test in first.ifs):
                if rest:
                    yield from self._generated(rest, names)
                else:
                    yield None
        self.inside_samples -= sample is not None
        self.seen.ran(first, trips, is_sample=self.is_sample(value, sample))

    def is_sample(self, value: Any, sample: list[int] | None) -> bool:
        """Whether a loop over a value is not whole: in a run that takes samples, containers hold too little."""
        return sample is not None or (self.samples and type(value) is not range)

    def _comprehension(self, node: ast.ListComp, names: Names) -> list[Any]:
        inner = Names(names.scope, names, names.caller)
        return [self.value(node.elt, inner) for _ in self._generated(node.generators, inner)]

    def _set_comprehension(self, node: ast.SetComp, names: Names) -> set[Any]:
        inner = Names(names.scope, names, names.caller)
        items = set()
        for _ in self._generated(node.generators, inner):
            item = self.value(node.elt, inner)
            weigh(item, self.budget)
            self.seen.tally(node, hit=item not in items)
            items.add(item)
        return items

    def _dict_comprehension(self, node: ast.DictComp, names: Names) -> dict[Any, Any]:
        inner = Names(names.scope, names, names.caller)
        entries = {}
        for _ in self._generated(node.generators, inner):
            key = self.value(node.key, inner)
            weigh(key, self.budget)
            self.seen.tally(node, hit=key not in entries)
            entries[key] = self.value(node.value, inner)
        return entries

    def _generator(self, node: ast.GeneratorExp, names: Names) -> Iterator[Any]:
        inner = Names(names.scope, names, names.caller)
        return (self.value(node.elt, inner) for _ in self._generated(node.generators, inner))


_EXPRESSIONS: dict[type[ast.expr], Callable[[Expressions, Any, Names], Any]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._boolean,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._conditional,
    ast.List: Expressions._list,
    ast.Tuple: Expressions._tuple,
    ast.Set: Expressions._set,
    ast.Dict: Expressions._dict,
    ast.Subscript: Expressions._subscript,
    ast.Slice: Expressions._slice,
    ast.Attribute: Expressions.attribute,
    ast.Call: Expressions._call,
    ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._named,
    ast.JoinedStr: Expressions._text,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._set_comprehension,
    ast.DictComp: Expressions._dict_comprehension,
    ast.GeneratorExp: Expressions._generator,
}
