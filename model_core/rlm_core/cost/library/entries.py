"""Entries of the tables -> rules, which are made when they are first asked for.

An entry is ``names(parameters) -> result | clauses``: parameters as Python writes them (``x, /, *, key``), the result
and amounts as :mod:`.expressions` reads them. Without a result, its kind is that of :mod:`.result_kinds`. Clauses:

    cost SECONDS            computing time; left out only where the call waits
    allocate BYTES          memory during the call
    wait KIND [SECONDS]     waits for ``time``, ``network``, ``database``, ``thread``, ``process`` or ``user``;
                            without a cost it takes 0.3 ms of computing time for networks and databases, else 1 µs
    serve KIND              waits, and does not end by itself
    unknown                 something of unknown cost runs
    optional                the result may be None instead
    fold                    where all arguments are known, the function itself computes the result

``names by module.function`` names a function of this package instead: the rule itself or, with arguments in
parentheses, what makes it.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any

from rlm_core.types import WaitKind

from ..domain.folding import (
    BINARY,
    MISSING,
    expanded,
    factorial,
    formatted,
    formatted_value,
    operation,
    replaced,
    rounded,
)
from ..domain.quantities import ONE
from ..domain.records import replace
from ..domain.values import Call, Value
from .expressions import Arguments, AttributeOwner, Compiler, Evaluated
from .result_kinds import function_result
from .rules import Attribute, Rule, arguments, bound, folded, literal
from .statements import Statement

Key = tuple[str, str]

_WAIT_SECONDS = 1e-6
# Processor time of a request without the network: measured with urllib over the loopback interface.
_REQUEST_SECONDS = 3e-4
_BOUNDED: dict[Any, Callable[..., Any]] = {
    str.replace: replaced, str.expandtabs: expanded, str.format: formatted, format: formatted_value, round: rounded,
    math.factorial: factorial,
    **{computes: partial(operation, kind) for kind, computes in BINARY.items()},
}  # fmt: skip
_Parameters = dict[str, tuple[int, tuple[str, ...]]]


class Entries:
    """The entries by name, and the rules of those that were asked for.

    Raises:
        TableError: a statement cannot be read, or a name has two entries.
    """

    def __init__(self, entries: Iterable[Statement]) -> None:
        self.functions: dict[str, Statement] = {}
        self.methods: dict[Key, Statement] = {}
        self.operators: dict[Key, Statement] = {}
        self.attributes: dict[Key, Statement] = {}
        self._rules: dict[tuple[str, object], Any] = {}
        for statement in entries:
            self._add(statement)

    def _add(self, statement: Statement) -> None:
        names, _ = statement.names()
        if not statement.owners:
            for name in names:
                _insert(self.functions, name, statement)
            return
        first = names[0]
        table = self.operators if first.startswith("operator ") else self.methods
        if first[0] == "." and "| cost " not in statement.text:  # one that takes time is called like a method
            table = self.attributes
            names = [name.removeprefix(".") for name in names]
        for owner in statement.owners:
            _, _, dotted = owner.partition(" ")
            for name in names:
                if dotted:
                    _insert(self.functions, f"{dotted}.{name}", statement)
                else:
                    _insert(table, (owner, name.removeprefix("operator ")), statement)

    def function(self, name: str) -> Rule | None:
        """The rule of a function."""
        rule: Rule | None = self._rule("function", name, self.functions)
        return rule

    def method(self, owner: str, name: str) -> Rule | None:
        """The rule of a method."""
        rule: Rule | None = self._rule("method", (owner, name), self.methods)
        return rule

    def operator(self, owner: str, sign: str) -> Rule | None:
        """The rule of an operator."""
        rule: Rule | None = self._rule("operator", (owner, sign), self.operators)
        return rule

    def attribute(self, owner: str, name: str) -> Attribute | None:
        """The attribute of an object, as a function of it."""
        made: Attribute | None = self._rule("attribute", (owner, name), self.attributes)
        return made

    def _rule(self, table: str, key: Any, entries: dict[Any, Statement]) -> Any:
        statement = entries.get(key)
        if statement is None:
            return None
        rule = self._rules.get((table, key))
        if rule is None:
            try:
                rule = _compiled(table, key, statement)
            except (ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
                raise statement.error(str(error)) from error
            self._rules[table, key] = rule
        return rule


def _insert(table: dict[Any, Statement], key: Any, statement: Statement) -> None:
    known = table.get(key)
    if known is not None:
        raise statement.error(f"{key} has an entry at {known.file}:{known.line} already")
    table[key] = statement


def _compiled(table: str, key: Any, statement: Statement) -> Any:
    _, rest = statement.names()
    signature = ""
    if rest.startswith("("):
        signature, _, rest = rest[1:].partition(")")
    if rest.startswith(" by "):
        return _hook(rest.removeprefix(" by "), key[1].removeprefix(".") if isinstance(key, tuple) else key)
    head, *clauses = statement.clauses(rest)
    result = head.removeprefix("->").strip() or ("None" if statement.states_result() else "")
    if table == "attribute":
        return _attribute(key, result, clauses)
    parameters = _parameters(signature)
    is_method = table == "method" or f"class {key.rpartition('.')[0]}" in statement.owners
    compiler = Compiler(parameters, key[0] if isinstance(key, tuple) else key)
    return _rule(compiler, parameters, result, clauses, is_method, statement, key)


def _hook(text: str, name: str) -> Any:
    """A function of this package, or what it returns for constants; ``name`` is that of the entry, others are texts."""
    node = ast.parse(text, mode="eval").body
    target, given = (node.func, node) if isinstance(node, ast.Call) else (node, None)
    module, _, target_name = ast.unparse(target).rpartition(".")
    hook = getattr(import_module(f"{__package__}.{module}"), target_name)
    if given is None:
        return hook
    known = [name if ast.unparse(part) == "name" else _constant(part) for part in given.args]
    return hook(*known, **{part.arg: _constant(part.value) for part in given.keywords if part.arg})


def _constant(node: ast.expr) -> Any:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ast.literal_eval(node)


def _parameters(signature: str) -> _Parameters:
    """Positions and keywords of the parameters; -1 is the position of one that is passed by keyword only."""
    result: _Parameters = {}
    names = [name.strip() for name in signature.split(",") if name.strip()]
    position = 0
    for name in names:
        if name == "/":
            result = {other: (at, ()) for other, (at, _) in result.items()}
        elif name == "*":
            position = -1
        elif name.isidentifier():
            result[name] = (position, (name,))
            position += position >= 0
        else:
            raise ValueError(f"not a parameter: {name!r}")
    return result


def _attribute(key: Key, result: str, clauses: list[str]) -> Attribute:
    if clauses == ["fold"]:
        known = literal(getattr(import_module(key[0]), key[1]))
        return lambda value: known
    if clauses:
        raise ValueError(f"an attribute has no clause {clauses[0]!r}")
    made = Compiler({}, key[0]).value(result)
    return lambda value: made(AttributeOwner(value))


def _rule(
    compiler: Compiler,
    parameters: _Parameters,
    result: str,
    clauses: list[str],
    is_method: bool,
    statement: Statement,
    key: Any,
) -> Rule:
    dotted = key if isinstance(key, str) else ".".join(key)
    made = compiler.value(result) if result else lambda call: function_result(dotted)
    effects: list[Callable[[Arguments], object]] = []
    function: Callable[..., Any] | None = None
    is_paid = False
    for clause in sorted(clauses, key=lambda text: not text.startswith("cost ")):
        word, _, rest = clause.partition(" ")
        if word in ("wait", "serve"):
            kind, _, limit = rest.partition(" ")
            if not is_paid:
                default = _REQUEST_SECONDS if word == "wait" and kind in ("network", "database") else _WAIT_SECONDS
                effects.append(_spending(default))
                is_paid = True
            effects.append(_waiting(WaitKind(kind), compiler.quantity(limit) if limit else None))
            if word == "serve":
                effects.append(lambda call: call.call.endless())
        elif word == "cost":
            effects.append(_spending(compiler.quantity(rest)))
            is_paid = True
        elif word == "allocate":
            effects.append(_allocating(compiler.quantity(rest)))
        elif clause == "unknown":
            effects.append(lambda call: call.call.unknown(ONE))
        elif clause == "optional":
            made = _optional(made)
        elif clause == "fold":
            function = _function(statement, key)
        else:
            raise ValueError(f"unknown clause {clause!r}")
    if not is_paid:
        raise ValueError("the entry has no cost")

    def rule(call: Call) -> Value:
        given = Arguments(call, parameters, None, is_method)
        for effect in effects:
            effect(given)
        if function is not None:
            owner = given.value("self") if is_method or bound(call) is not None else None
            known = folded(call, function, None if owner is None else [owner, *arguments(call)])
            if known is not None:
                return known
        return made(given)

    return rule


def _optional(made: Callable[[Arguments], Value]) -> Callable[[Arguments], Value]:
    return lambda call: replace(made(call), constant=MISSING, optional=True)


def _spending(seconds: Evaluated | float) -> Callable[[Arguments], object]:
    if isinstance(seconds, float):
        return lambda call: call.call.spend(seconds)
    return lambda call: call.call.spend(seconds(call))


def _allocating(amount: Evaluated) -> Callable[[Arguments], object]:
    return lambda call: call.call.allocate(amount(call))


def _waiting(kind: WaitKind, limit: Evaluated | None) -> Callable[[Arguments], object]:
    if limit is None:
        return lambda call: call.call.wait(kind)
    return lambda call: call.call.wait(kind, limit(call))


def _function(statement: Statement, key: Any) -> Callable[..., Any]:
    """The function that an entry is about, one that computes within bounds where Python's does not.

    A method of several kinds is that of the first: of another kind it refuses, and nothing is folded.
    """
    module, _, name = key.rpartition(".") if isinstance(key, str) else ("", "", key[1])
    owner = getattr(builtins, statement.owners[0]) if statement.owners else import_module(module)
    found: Callable[..., Any] = getattr(owner, name)
    return _BOUNDED.get(found, found)
