"""Exceptions and contexts in a trial run: what is raised, caught, entered and left."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence

from ..syntax import label_of
from .expressions import Expressions
from .library import EXCEPTIONS, Module
from .names import MISSING, Names
from .objects import Class, Failure, Instance, Managing, Thrown
from .observations import Observations
from .values import Budget, Refused, weigh


class Raising(Expressions):
    """Runs the statements about exceptions and contexts; their bodies are left to a subclass."""

    def __init__(self, budget: Budget, seen: Observations, *, samples: bool) -> None:
        super().__init__(budget, seen, samples=samples)
        self._handled: list[Exception] = []

    @abstractmethod
    def run(self, body: Sequence[ast.stmt], names: Names) -> str | None:
        """Run statements; how they are left before their end."""

    def raise_(self, node: ast.Raise, names: Names) -> None:
        """Raise an exception of Python or of the program."""
        if node.exc is None:
            raise self._handled[-1] if self._handled else RuntimeError
        call = node.exc if isinstance(node.exc, ast.Call) else None
        kind = self._exception(call.func if call is not None else node.exc, names)
        if isinstance(kind, type):
            args = self._elements(call.args, names) if call is not None else []
            for arg in args:
                weigh(arg, self.budget)
            raise kind(*args) if kind.__init__ is Exception.__init__ else kind()
        value = self.value(node.exc, names)
        if type(value) is Class:
            value = value()
        if type(value) is Failure:
            raise value.error
        if type(value) is not Instance or value.kind.exception is None:
            raise Refused
        raise Thrown(value)

    def _exception(self, node: ast.expr, names: Names) -> type[Exception] | Class | None:
        """The exception that a name stands for."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        bound = names.find(node.id) if isinstance(node, ast.Name) else MISSING
        if (bound is MISSING or isinstance(bound, Module)) and label_of(node) in EXCEPTIONS:
            return EXCEPTIONS[label_of(node)]
        value = self.value(node, names)
        return value if type(value) is Class else None

    def try_(self, node: ast.Try, names: Names) -> str | None:
        """Run statements with their handlers."""
        try:
            signal = self.run(node.body, names)
        except Exception as error:
            handler = self.handler_of(node, error, names)
            for one in node.handlers:
                self.seen.tally(one, hit=one is handler)
            if handler is None:
                self.run(node.finalbody, names)
                raise
            self._handled.append(error)
            try:
                signal = self.run(handler.body, names)
            finally:
                self._handled.pop()
        else:
            for one in node.handlers:
                self.seen.tally(one, hit=False)
            if signal is None:
                signal = self.run(node.orelse, names)
        return self.run(node.finalbody, names) or signal

    def handler_of(self, node: ast.Try, error: Exception, names: Names) -> ast.ExceptHandler | None:
        """The handler that catches an exception, whose name is bound then."""
        for handler in node.handlers:
            if handler.type is None or self._is_among(handler.type, error, names):
                if handler.name:
                    names.bind(handler.name, error.instance if isinstance(error, Thrown) else Failure(error))
                return handler
        return None

    def _is_among(self, listed: ast.expr, error: Exception, names: Names) -> bool:
        """Whether an exception is one of those that are listed."""
        for node in listed.elts if isinstance(listed, ast.Tuple) else [listed]:
            kind = self._exception(node, names)
            if kind is None:
                raise Refused
            if isinstance(error, Thrown):
                thrown = error.instance.kind
                found = thrown.is_a(kind) if isinstance(kind, Class) else issubclass(thrown.exception or object, kind)
            else:
                found = not isinstance(kind, Class) and isinstance(error, kind)
            if found:
                return True
        return False

    def with_(self, node: ast.With, names: Names) -> str | None:
        """Run statements in contexts."""
        return self._inside(node.items, node.body, names)

    def _inside(self, items: Sequence[ast.withitem], body: Sequence[ast.stmt], names: Names) -> str | None:
        if not items:
            return self.run(body, names)
        expression, target = items[0].context_expr, items[0].optional_vars
        if isinstance(expression, ast.Call) and label_of(expression) == "suppress":
            try:
                return self._inside(items[1:], body, names)
            except Exception as error:
                if self._is_among(ast.Tuple(expression.args), error, names):
                    return None
                raise
        context = self.value(expression, names)
        if type(context) is not Instance and not isinstance(context, Managing):
            raise Refused
        entered = context.run("__enter__")
        if target is not None:
            self.store(target, entered, names)
        try:
            signal = self._inside(items[1:], body, names)
        except Exception as error:
            thrown = error.instance if isinstance(error, Thrown) else Failure(error)
            if not context.run("__exit__", thrown, thrown, None):
                raise
            return None
        context.run("__exit__", None, None, None)
        return signal
