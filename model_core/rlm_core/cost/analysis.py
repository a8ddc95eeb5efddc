"""The work facts of a Python unit: its text and scope -> what it costs as far as the text says so.

Nothing is run. The time that the analysis takes is bounded by a budget of syntax nodes; a unit beyond it has no facts.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rlm_core.types import (
    Amount,
    Cause,
    CauseKind,
    CostFacts,
    CostTerm,
    Growth,
    LoopWait,
    UnknownCalls,
    Wait,
    WaitKind,
    WorkFacts,
)

from . import library
from .at_sizes import finite, likely_wait, stated
from .bounds.argument_transitions import SYMBOL
from .domain.constructors import FileReadings
from .domain.context import Context, TooComplex
from .domain.dispatch import execute
from .domain.frames import Frame
from .domain.meter import Meter, PendingCause, PendingWait
from .domain.quantities import LINEAR, LOG, Monomial, Quantity, degree, raised
from .domain.syntax import parse, walk
from .domain.values import Value
from .evaluate.function_bodies import bind_defaults, read_function
from .evaluate.loop_waits import is_blocking
from .evaluate.parameters import assumed
from .evaluate.shown_types import typed
from .growth_origins import growth_origins
from .library.unit_costs import primitive
from .scope import Definition, Scope, Texts

BUDGET = 3_000
TYPICAL_SIZE, LARGE_SIZE = 10.0, 1000.0
TYPICAL_CALL_SECONDS = 2e-6
_MOST_CAUSES = 6
_MOST_WAITS = 8
_MOST_UNKNOWN = 48
_MOST_REPEATED = 12
_MOST_NAME = 60


@dataclass(frozen=True, slots=True)
class Analysis:
    """The facts of a unit, and the functions that they depend on."""

    facts: WorkFacts
    dependencies: tuple[Definition, ...] = ()


def work_facts(
    text: str, scope: Scope | None = None, qualname: str = "", types: Mapping[str, str] | None = None
) -> WorkFacts | None:
    """The facts of a function, method or program; None where the text cannot be read. See :func:`analyse`."""
    analysis = analyse(text, scope, qualname, types=types)
    return analysis.facts if analysis is not None else None


def analyse(
    text: str,
    scope: Scope | None = None,
    qualname: str = "",
    *,
    budget: int = BUDGET,
    types: Mapping[str, str] | None = None,
    readings: FileReadings | None = None,
) -> Analysis | None:
    """The facts of a unit and what they depend on.

    Args:
        text: source of a function, or of a whole program.
        scope: what the names outside the unit mean.
        qualname: the unit's qualified name; ``self`` is an instance of the class in it.
        budget: how many syntax nodes the analysis may read.
        types: types of the parameters, as hints, where the text does not show them.
        readings: what the units of a file have in common, whose trace ``scope`` belongs to.
    """
    context = Context(Frame(scope or Texts()), budget, types=dict(types or {}), readings=readings)
    try:
        meter = cost_of(context, text, qualname)
    except (TooComplex, RecursionError):
        return None
    if meter is None:
        return None
    shown = tuple((name, hint) for name, hint in sorted(context.types.items()) if len(hint) <= _MOST_NAME)
    facts = replace(_facts(meter, budget - context.left), types=shown, loop_waits=_loop_waits(context, text, meter))
    return Analysis(facts, tuple({id(entry): entry for entry in context.dependencies}.values()))


def cost_of(context: Context, text: str, qualname: str = "") -> Meter | None:
    """Return the cost of a unit, symbolic in its sizes; None where the text cannot be read.

    Raises:
        TooComplex: more syntax nodes than the budget of the context.
    """
    tree = None if qualname else parse(text)
    node = context.function(text) if qualname or _is_function(tree) else None
    if node is not None and not isinstance(node, ast.Lambda):
        return _function(context, node, qualname)
    tree = tree or parse(text)
    return _program(context, tree) if tree is not None else None


def _is_function(tree: ast.Module | None) -> bool:
    """Return whether a text is one function and nothing else."""
    return (
        tree is not None and len(tree.body) == 1 and isinstance(tree.body[0], (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def _function(context: Context, node: ast.FunctionDef | ast.AsyncFunctionDef, qualname: str) -> Meter:
    frame = Frame(context.frame.scope, qualname or node.name, node)
    arguments = node.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    context.frame = frame
    bind_defaults(context, frame)
    for name, value in list(frame.names.items()):
        frame.names[name] = assumed(name, value)
    for parameter in names:
        frame.names.setdefault(parameter.arg, Value("unknown", name=parameter.arg))
    context.types = typed(context, node, frame.names, context.types)
    for rest, kind in ((arguments.vararg, "tuple"), (arguments.kwarg, "dict")):
        if rest is not None:
            frame.names[rest.arg] = Value(kind, size=Quantity({(((rest.arg, LINEAR), 1.0),): (1.0, 1.0, 1.0)}))
    _, meter = read_function(context, frame)
    meter.reach = (1.0, 1.0, 1.0)
    meter.spend(primitive("call.function"))
    meter.spend(library.refaulted(context.largest_block, meter.peak))
    return meter


def _program(context: Context, tree: ast.Module) -> Meter:
    """The cost of a whole program: its statements, and the methods of a ``Solution`` that nothing else calls."""
    frame = context.frame
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            frame.bind(statement.name, Value("user-function", name=statement.name, payload=(statement, frame)))
    with context.region() as meter:
        execute(context, [node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))])
        meter.reach = (1.0, 1.0, 1.0)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Solution"):
                _solution(context, node)
    return meter


def _solution(context: Context, node: ast.ClassDef) -> None:
    methods = [item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))]
    called = {
        inner.attr
        for method in methods
        for inner in walk(method)
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == "self"
    }
    outer = context.frame
    for method in methods:
        outer.bind(f"self.{method.name}", Value("user-function", name=method.name, payload=(method, outer)))
    for method in methods:
        if method.name in called or method.name.startswith("__"):
            continue
        frame = Frame(outer.scope, f"{node.name}.{method.name}", method, parent=outer, depth=0)
        for parameter in (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs):
            frame.names[parameter.arg] = Value("unknown", name=parameter.arg)
        with context.inside(frame):
            typed(context, method, frame.names)
        _, meter = read_function(context, frame)
        context.meter.add(meter)


def _facts(meter: Meter, nodes: int) -> WorkFacts:
    seconds, memory = meter.total, meter.peak
    sizes = {name for quantity in (seconds, *meter.unknown.values()) for name in quantity.names}
    unknown = {
        name: stated(times.evaluate(lambda name: TYPICAL_SIZE)[1]) for name, times in sorted(meter.unknown.items())
    }
    missing, opaque = (
        stated(sum(times for name, times in unknown.items() if name.endswith("()") is is_call))
        for is_call in (True, False)
    )
    waits = [_wait(wait) for wait in meter.waits if not wait.by_name]
    waits.sort(key=lambda wait: (-wait.share, wait.line))
    return WorkFacts(
        latency=replace(
            _cost(seconds, meter.causes, memory=False, extra=missing * TYPICAL_CALL_SECONDS),
            origins=growth_origins(meter.origins, _terms),
        ),
        memory=_cost(memory, meter.causes, memory=True),
        waits=tuple(waits[:_MOST_WAITS]),
        endless=meter.endless[0] if meter.endless is not None and meter.endless[1] > 0.2 else None,
        unknown_calls=missing,
        unknown_sizes=len(sizes),
        opaque=opaque,
        unknown=tuple(sorted(unknown.items(), key=lambda entry: -entry[1])[:_MOST_UNKNOWN]),
        nodes=nodes,
        repeated=_repeated(meter, unknown),
    )


def _wait(wait: PendingWait) -> Wait:
    """A wait as it is reported. Least and most of a wait that a size repeats are for no item and for one."""
    amount: Amount | None = None
    per: tuple[str, ...] = ()
    share = min(max(wait.share[1], 0.0), 1.0)
    if wait.seconds is not None:
        low, likely, high = (stated(value) for value in wait.seconds.evaluate(lambda name: 1.0))
        per = tuple(dict.fromkeys(name.removeprefix(SYMBOL) for name in wait.seconds.names))
        low = stated(wait.seconds.evaluate(lambda name: 0.0)[0])
        amount = likely_wait((low, likely, high), share, on_error=wait.on_error)
    terms = _terms(wait.seconds) if wait.seconds is not None and per else ()
    limit = wait.limit
    if limit is None and wait.kind is not WaitKind.TIME and wait.seconds is not None and not per:
        limit = stated(wait.seconds.evaluate(lambda name: 1.0)[2])  # a timeout
    return Wait(wait.kind, wait.line, wait.call, amount, share, per, wait.on_error, terms, _sum(wait.times), limit)


def _loop_waits(context: Context, text: str, meter: Meter) -> tuple[LoopWait, ...]:
    """The waits in loops over inputs by line, each line and kind once: those that the tables know come first."""
    found: dict[tuple[int, WaitKind], LoopWait] = {}
    waits = sorted((wait for wait in meter.waits if wait.over), key=lambda wait: wait.by_name)
    is_coroutine = bool(waits) and isinstance(context.function(text), ast.AsyncFunctionDef)
    for wait in waits:
        is_awaited = is_coroutine and not is_blocking(wait.call)
        loop_wait = LoopWait(
            wait.kind, wait.line, wait.call, wait.over, is_awaited, _sum(wait.times), wait.limit, wait.loaded_by
        )
        found.setdefault((wait.line, wait.kind), loop_wait)
    return tuple(sorted(found.values(), key=lambda wait: wait.line)[:_MOST_WAITS])


def _repeated(meter: Meter, unknown: Mapping[str, float]) -> tuple[UnknownCalls, ...]:
    """The unknown calls and operations whose number depends on sizes, the most frequent first."""
    named = [(name, terms) for name, times in meter.unknown.items() if (terms := _terms(times))]
    named.sort(key=lambda entry: (-unknown[entry[0]], entry[0]))
    return tuple(UnknownCalls(name, terms) for name, terms in named[:_MOST_REPEATED])


def _cost(quantity: Quantity, causes: Sequence[PendingCause], *, memory: bool, extra: float = 0.0) -> CostFacts:
    low, likely, high = (stated(value) for value in quantity.evaluate(lambda name: 0.0))
    typical = stated(stated(quantity.evaluate(lambda name: TYPICAL_SIZE)[1]) + extra)
    kept = [cause for cause in causes if (cause.kind is CauseKind.ALLOCATION) is memory]
    listed: dict[tuple[CauseKind, int], tuple[float, float | None, str | ast.AST, Growth | None]] = {}
    for cause in kept:
        amount = stated(cause.amount.evaluate(lambda name: TYPICAL_SIZE)[1])
        count = None if cause.worst_case is not None or cause.count.exact is None else stated(cause.count.exact)
        key = (cause.kind, cause.line)
        if key not in listed or listed[key][0] < amount:
            listed[key] = (amount, count, cause.name, _of_input(cause))
    ranked = sorted(
        (
            Cause(kind, line, _text(name), amount, count, worst_case)
            for (kind, line), (amount, count, name, worst_case) in listed.items()
            if amount > 0
        ),
        key=lambda cause: (-cause.amount, cause.line),
    )[:_MOST_CAUSES]
    large = stated(stated(quantity.evaluate(lambda name: LARGE_SIZE)[1]) + extra)
    return CostFacts(Amount(low, likely, high), typical, large, _growth(quantity), tuple(ranked), _terms(quantity))


def _of_input(cause: PendingCause) -> Growth | None:
    """The growth of a worst case with the size that its amount depends on, if that is one."""
    names = cause.amount.names
    return (
        replace(cause.worst_case, size=next(iter(names))) if cause.worst_case and len(names) == 1 else cause.worst_case
    )


def _text(name: str | ast.AST) -> str:
    return name if isinstance(name, str) else ast.unparse(name)[:_MOST_NAME]


def _terms(quantity: Quantity) -> tuple[CostTerm, ...]:
    """The sum over sizes that a quantity is; empty for one that depends on no size."""
    return _sum(quantity) if quantity.names else ()


def _sum(quantity: Quantity) -> tuple[CostTerm, ...]:
    return tuple(
        CostTerm(finite(least), finite(likely), finite(most), _factors(monomial))
        for monomial, (least, likely, most) in quantity.terms.items()
    )


def _growth(quantity: Quantity) -> tuple[Growth, ...]:
    """The sizes in the term that grows most."""
    terms = [
        monomial for monomial, (_, likely, high) in quantity.terms.items() if monomial and (likely > 0 or high > 0)
    ]
    if not terms:
        return ()
    growth = list(_factors(max(terms, key=degree)))
    growth.sort(key=lambda entry: (-entry.base, -entry.degree, -entry.logs, entry.size))
    return tuple(growth)


@lru_cache(4096)
def _factors(monomial: Monomial) -> tuple[Growth, ...]:
    """Return the factor of each size in a product."""
    by_name: dict[str, list[float]] = {}
    for (name, form), power in _named(monomial):
        entry = by_name.setdefault(name, [0.0, 0.0, 1.0])
        if form == LINEAR:
            entry[0] += power
        elif form == LOG:
            entry[1] += power
        else:
            entry[2] *= raised(float(form), power)
    return tuple(
        Growth(name, *(stated(round(value, digits)) for value, digits in zip(values, (3, 3, 4), strict=True)))
        for name, values in by_name.items()
    )


def _named(monomial: Monomial) -> list[tuple[tuple[str, str], float]]:
    return [((name.removeprefix(SYMBOL), form), power) for (name, form), power in monomial]
