"""Generators of the program in a trial run: their bodies run when an item is asked for, statement by statement."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from typing import Any

from .expressions import Expressions
from .names import Names
from .values import Refused, items_of

_BREAK, _RETURN = "break", "return"
Steps = Generator[Any, None, Any]


class Generators(Expressions):
    """Runs the statements of generators: those without ``yield`` are left to a subclass."""

    @abstractmethod
    def run(self, body: Sequence[ast.stmt], names: Names) -> str | None:
        """Run statements; how they are left before their end."""

    @abstractmethod
    def handler_of(self, node: ast.Try, error: Exception, names: Names) -> ast.ExceptHandler | None:
        """The handler that catches an exception, whose name is bound then."""

    def produced(self, node: ast.FunctionDef, names: Names) -> Steps:
        """What a generator yields."""
        yield from self._steps(node.body, names)
        return names.result

    def _steps(self, body: Sequence[ast.stmt], names: Names) -> Any:
        for statement in body:
            if not yields(statement):
                signal = self.run([statement], names)
            else:
                self.budget.spend()
                stepper = _STEPPERS.get(type(statement))
                if stepper is None:
                    raise Refused
                signal = yield from stepper(self, statement, names)
            if signal is not None:
                return signal
        return None

    def _of_expression(self, node: ast.Expr, names: Names) -> Any:
        inner = node.value
        if isinstance(inner, ast.Yield):
            yield None if inner.value is None else self.value(inner.value, names)
        elif isinstance(inner, ast.YieldFrom):
            for item in items_of(self.value(inner.value, names), self.budget):
                self.budget.spend()
                yield item
        else:
            raise Refused

    def _of_if(self, node: ast.If, names: Names) -> Any:
        return (yield from self._steps(node.body if self._holds(node.test, names) else node.orelse, names))

    def _of_while(self, node: ast.While, names: Names) -> Any:
        trips = 0
        while self.truth(self.value(node.test, names)):
            trips += 1
            self.seen.loop(node).trips = trips
            signal = yield from self._steps(node.body, names)
            if signal is _BREAK or signal is _RETURN:
                self.seen.ran(node, trips)
                return signal if signal is _RETURN else None
        self.seen.ran(node, trips)
        return (yield from self._steps(node.orelse, names))

    def _of_for(self, node: ast.For, names: Names) -> Any:
        trips, value = 0, self.value(node.iter, names)
        for item in items_of(value, self.budget):
            self.budget.spend()
            trips += 1
            self.store(node.target, item, names)
            signal = yield from self._steps(node.body, names)
            if signal is _BREAK or signal is _RETURN:
                self.seen.ran(node, trips, is_sample=self.is_sample(value, None))
                return signal if signal is _RETURN else None
        self.seen.ran(node, trips, is_sample=self.is_sample(value, None))
        return (yield from self._steps(node.orelse, names))

    def _of_try(self, node: ast.Try, names: Names) -> Any:
        try:
            signal = yield from self._steps(node.body, names)
        except Exception as error:
            handler = self.handler_of(node, error, names)
            if handler is None:
                yield from self._steps(node.finalbody, names)
                raise
            signal = yield from self._steps(handler.body, names)
        else:
            if signal is None:
                signal = yield from self._steps(node.orelse, names)
        last = yield from self._steps(node.finalbody, names)
        return last or signal


@lru_cache(maxsize=512)
def yields(node: ast.AST) -> bool:
    """Whether a function, or a statement of one, yields; what waits ends the trial."""
    stack: list[ast.AST] = list(node.body) if isinstance(node, (ast.FunctionDef, ast.Lambda)) else [node]  # type: ignore[arg-type]
    found = False
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.Await):
            raise Refused
        found |= isinstance(inner, (ast.Yield, ast.YieldFrom))
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack += ast.iter_child_nodes(inner)
    return found


_STEPPERS: dict[type[ast.stmt], Callable[[Generators, Any, Names], Any]] = {
    ast.Expr: Generators._of_expression,
    ast.If: Generators._of_if,
    ast.While: Generators._of_while,
    ast.For: Generators._of_for,
    ast.Try: Generators._of_try,
}
