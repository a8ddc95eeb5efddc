"""The machine of a trial run: runs statements and calls functions, and counts loops and calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any

from ..recursion_syntax import CACHES
from ..scope import Definition
from ..syntax import Function, label_of, parsed_class, parsed_function
from .classes import shape
from .generators import Generators, yields
from .library import Module
from .matching import Matching
from .names import MISSING, Closure, Names, is_decorated
from .objects import Class, Managing
from .observations import Observations
from .raising import Raising
from .values import CONTAINERS, Budget, Refused, Spent, items_of, operate, weigh

_MOST_CALLS_OPEN = 60
_CALL_STEPS = 6
_PROBE_STEPS = 50
_FARTHEST = 1e300
_CONTINUE, _BREAK, _RETURN = "continue", "break", "return"


class Machine(Raising, Generators, Matching):
    """Runs a function or program, as far as the budget goes."""

    def __init__(self, budget: Budget, seen: Observations, *, samples: bool) -> None:
        super().__init__(budget, seen, samples=samples)
        self.open = 0
        # How far the loops around had got when the budget was spent, and in which function the outermost of them is.
        self._progress = 0.5
        self._progressed: Names | None = None

    # Calls

    def closure(self, node: Function, names: Names) -> Closure:
        """A function as a value."""
        return Closure(self, node, names, self.defaults(node.args, names))

    def class_of(self, name: str, names: Names) -> Class:
        """A class of the module."""
        made = Class(self, name, names)
        text = names.scope.class_text(name)
        if text is not None:
            node = parsed_class(text)
            if node is None:
                raise Refused
            shape(self, made, node, names)
            made.constants = {
                target.id: partial(self.value, statement.value, names)
                for statement in node.body
                if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None
                for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
                if isinstance(target, ast.Name) and target.id not in made.fields
            }
        return made

    def function(self, names: Names, name: str, owner: str | None, caller: str) -> Any:
        """A function of the program that the scope finds; ``MISSING`` where there is none."""
        found = self._defined(names.scope.function(name, owner, caller))
        return found if type(found) is not Closure else self._decorated(found, found.node, found.names)

    def method(self, kind: Class, name: str) -> Any:
        """A method that a class of the module defines itself, else ``MISSING``."""
        if kind.names is None:
            return MISSING
        qualname = f"{kind.name}.{name}"
        definition = kind.names.scope.function(name, "self", qualname)
        return self._defined(definition if definition is not None and definition.qualname == qualname else None)

    def _defined(self, definition: Definition | None) -> Any:
        if definition is None:
            return MISSING
        node = parsed_function(definition.text)
        if node is None:
            raise Refused
        return self.closure(node, Names(definition.scope, None, definition.qualname))

    def _decorated(self, closure: Closure, node: Function, names: Names) -> Any:
        """A function with its decorators, where they are not one that keeps results."""
        if isinstance(node, ast.Lambda) or is_decorated(node):
            return closure
        made: Any = closure
        for decorator in reversed(node.decorator_list):
            if label_of(decorator) == "contextmanager":
                made = Managing(made)
            elif label_of(decorator) in CACHES and type(made) is Closure:
                made.kept = {}
            else:
                made = self.value(decorator, names)(made)
        return made

    def defaults(self, arguments: ast.arguments | None, names: Names) -> dict[str, Any]:
        """The defaults of parameters by name."""
        if arguments is None:
            return {}
        positional = [*arguments.posonlyargs, *arguments.args]
        late = positional[len(positional) - len(arguments.defaults) :]
        found = {part.arg: self.value(value, names) for part, value in zip(late, arguments.defaults, strict=True)}
        for part, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if value is not None:
                found[part.arg] = self.value(value, names)
        return found

    def enter(self, closure: Closure, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Call a function of the program."""
        node = closure.node
        if self.open >= _MOST_CALLS_OPEN or isinstance(node, ast.AsyncFunctionDef):
            raise Refused
        names = Names(closure.names.scope, closure.names, closure.names.caller)
        values = names.values
        values.update(closure.defaults)
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        for part, value in zip(positional, args, strict=False):
            values[part.arg] = value
        if arguments.vararg is not None:
            values[arguments.vararg.arg] = tuple(args[len(positional) :])
        elif len(args) > len(positional):
            raise Refused
        if arguments.kwarg is not None:
            known = {part.arg for part in (*arguments.args, *arguments.kwonlyargs)}
            values[arguments.kwarg.arg] = {name: value for name, value in keywords.items() if name not in known}
            keywords = {name: value for name, value in keywords.items() if name in known}
        values.update(keywords)
        names.owner, names.receiver = closure.owner, closure.receiver
        if any(part.arg not in values for part in (*positional, *arguments.kwonlyargs)):
            raise Refused
        self.budget.spend(_CALL_STEPS)
        seen = self.seen.function(node)
        if not seen.active:
            seen.calls = 0
        seen.calls += 1
        seen.active += 1
        self.open += 1
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, names)
            if yields(node):
                names.result = self.produced(node, names)
            else:
                self.run(node.body, names)
        except Spent:
            if seen.active == 1 and self._progressed is names:
                seen.progress = self._progress
            raise
        finally:
            self.open -= 1
            seen.active -= 1
        if not seen.active:
            seen.ended += 1
            seen.ended_calls += seen.calls
            seen.most = max(seen.most, seen.calls)
        return names.result

    # Statements

    def run(self, body: Sequence[ast.stmt], names: Names) -> str | None:
        """Run statements; how they are left before their end."""
        for statement in body:
            self.budget.spend()
            runner = _STATEMENTS.get(type(statement))
            if runner is None:
                raise Refused
            signal = runner(self, statement, names)
            if signal is not None:
                return signal
        return None

    def _expression(self, node: ast.Expr, names: Names) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value, names)

    def _assign(self, node: ast.Assign, names: Names) -> None:
        value = self.value(node.value, names)
        for target in node.targets:
            self.store(target, value, names)

    def _annotated(self, node: ast.AnnAssign, names: Names) -> None:
        if node.value is not None:
            self.store(node.target, self.value(node.value, names), names)

    def _augmented(self, node: ast.AugAssign, names: Names) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            holder, key = self.value(target.value, names), self.value(target.slice, names)
            self._see_item(target, holder, key)  # first, since a defaultdict makes what it is asked for
            self._store_item(holder, key, self._changed(node, self._item(holder, key), names))
        else:
            self.store(target, self._changed(node, self.value(target, names), names), names)

    def _changed(self, node: ast.AugAssign, value: Any, names: Names) -> Any:
        right = self.value(node.value, names)
        number = value if type(value) is int else 0
        result = operate(type(node.op), value, right, self.budget, in_place=True)
        self.see_digits(node, number, result)
        return result

    def _return(self, node: ast.Return, names: Names) -> str:
        names.result = None if node.value is None else self.value(node.value, names)
        return _RETURN

    def _break(self, node: ast.Break, names: Names) -> str:
        return _BREAK

    def _continue(self, node: ast.Continue, names: Names) -> str:
        return _CONTINUE

    def _pass(self, node: ast.stmt, names: Names) -> None:
        return None

    def _if(self, node: ast.If, names: Names) -> str | None:
        return self.run(node.body if self._holds(node.test, names) else node.orelse, names)

    def _while(self, node: ast.While, names: Names) -> str | None:
        seen = self.seen.loop(node)
        # What a loop in front of it would have built is not there.
        seen.is_sample |= self.samples and not self.inside_samples
        seen.trips = 0
        seen.begun = self._distance(node.test, names)
        try:
            while self.truth(self.value(node.test, names)):
                self.budget.spend()
                seen.trips += 1
                signal = self.run(node.body, names)
                if signal is _BREAK or signal is _RETURN:
                    self.seen.ran(node, seen.trips)
                    return signal if signal is _RETURN else None
        except Spent:
            self.budget.left = _PROBE_STEPS
            seen.left = self._distance(node.test, names)
            self.budget.left = -1
            raise
        self.seen.ran(node, seen.trips)
        return self.run(node.orelse, names)

    def _distance(self, test: ast.expr, names: Names) -> float:
        """How far two sides of a comparison are apart, in numbers or seconds; 0 where that cannot be said."""
        sides = _sides(test)
        if sides is None:
            return 0.0
        try:
            distance = self.value(sides[0], names) - self.value(sides[1], names)
        except (Refused, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return 0.0
        if isinstance(distance, timedelta):
            return distance.total_seconds()
        return float(distance) if type(distance) in (int, float) and abs(distance) < _FARTHEST else 0.0

    def _for(self, node: ast.For, names: Names) -> str | None:
        value = self.value(node.iter, names)
        sample = self._sample(value)
        self.inside_samples += sample is not None
        trips, signal = 0, None
        try:
            for item in sample or items_of(value, self.budget):
                self.budget.spend()
                trips += 1
                self.store(node.target, item, names)
                signal = self.run(node.body, names)
                if signal is _BREAK or signal is _RETURN:
                    break
        except Spent:
            if trips and hasattr(value, "__len__"):
                self._progress, self._progressed = (trips - 1 + self._progress) / max(len(value), trips), names
            raise
        self.inside_samples -= sample is not None
        self.seen.ran(node, trips, is_sample=self.is_sample(value, sample))
        if signal is _BREAK or signal is _RETURN:
            return signal if signal is _RETURN else None
        return self.run(node.orelse, names)

    def _define(self, node: ast.FunctionDef, names: Names) -> None:
        closure = self.closure(node, names)
        # The decorators of methods are looked at when they are called.
        names.bind(node.name, closure if names.is_class else self._decorated(closure, node, names))

    def _class(self, node: ast.ClassDef, names: Names) -> None:
        inner = Names(names.scope, names, names.caller)
        inner.is_class = True
        made = Class(self, node.name, None, inner.values)
        shape(self, made, node, names)
        is_enumeration = bool(made.members)
        self.run(
            [part for part in node.body if not _is_bare(part) and not (is_enumeration and _is_assigned(part))], inner
        )
        names.bind(node.name, made)

    def _global(self, node: ast.Global | ast.Nonlocal, names: Names) -> None:
        if isinstance(node, ast.Global) and self.open:
            raise Refused
        names.not_local.update(node.names)

    def _import(self, node: ast.Import, names: Names) -> None:
        for alias in node.names:
            names.bind(alias.asname or alias.name.partition(".")[0], Module(alias.name))

    def _import_from(self, node: ast.ImportFrom, names: Names) -> None:
        for alias in node.names:
            names.bind(alias.asname or alias.name, self.library(f"{node.module}.{alias.name}"))

    def _assert(self, node: ast.Assert, names: Names) -> None:
        if not self.truth(self.value(node.test, names)):
            raise AssertionError

    def _match(self, node: ast.Match, names: Names) -> str | None:
        subject = self.value(node.subject, names)
        for case in node.cases:
            fits = self.fits(case.pattern, subject, names) and (case.guard is None or self._holds(case.guard, names))
            self.seen.tally(case, hit=fits)
            if fits:
                return self.run(case.body, names)
        return None

    def _delete(self, node: ast.Delete, names: Names) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                names.values.pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                holder, key = self.value(target.value, names), self.value(target.slice, names)
                if type(holder) not in CONTAINERS:
                    raise Refused
                weigh(key, self.budget)
                del holder[key]
            else:
                raise Refused


@lru_cache(maxsize=128)
def _sides(test: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The sides of an inequality that can be evaluated once more: they call nothing but ``len``."""
    tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for part in tests:
        match part:
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]):
                if all(map(_is_plain, (left, right))):
                    return left, right
    return None


def _is_plain(node: ast.expr) -> bool:
    return all(
        not isinstance(inner, (ast.Call, ast.NamedExpr, ast.Yield, ast.YieldFrom))
        or (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "len")
        for inner in ast.walk(node)
    )


def _is_assigned(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Assign, ast.AnnAssign))


def _is_bare(statement: ast.stmt) -> bool:
    """Whether a statement of a class body says only what a field is."""
    is_field = isinstance(statement, ast.AnnAssign) and (
        statement.value is None or (isinstance(statement.value, ast.Call) and label_of(statement.value) == "field")
    )
    return is_field or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


_STATEMENTS: dict[type[ast.stmt], Callable[[Machine, Any, Names], str | None]] = {
    ast.Expr: Machine._expression,
    ast.Assign: Machine._assign,
    ast.AnnAssign: Machine._annotated,
    ast.AugAssign: Machine._augmented,
    ast.Return: Machine._return,
    ast.Break: Machine._break,
    ast.Continue: Machine._continue,
    ast.Pass: Machine._pass,
    ast.If: Machine._if,
    ast.While: Machine._while,
    ast.For: Machine._for,
    ast.FunctionDef: Machine._define,
    ast.ClassDef: Machine._class,
    ast.Global: Machine._global,
    ast.Nonlocal: Machine._global,
    ast.Import: Machine._import,
    ast.ImportFrom: Machine._import_from,
    ast.Raise: Machine.raise_,
    ast.Assert: Machine._assert,
    ast.Try: Machine.try_,
    ast.Delete: Machine._delete,
    ast.With: Machine.with_,
    ast.Match: Machine._match,
}
