"""Recursive functions: they are read once, with a symbol for each argument that recursive calls change."""

from __future__ import annotations

import ast

from rlm_core.types import CauseKind

from ..bounds.argument_transitions import SYMBOL
from ..bounds.conditions import gap_of
from ..bounds.recurrence import Recurrence
from ..bounds.recursion import recurrence
from ..bounds.recursion_paths import always_calls_itself, most_calls
from ..bounds.recursion_syntax import (
    base_share,
    changing_parameters,
    checks,
    conditions_to_go_on,
    depends_on_arguments,
    ends_on_data,
    is_cached,
    own_call,
    resumed,
)
from ..bounds.solver import Gap
from ..bounds.structure_walks import structure_walk
from ..bounds.worklists import searched_graph
from ..domain.context import Context
from ..domain.dispatch import peek
from ..domain.folding import MISSING
from ..domain.frames import Frame
from ..domain.meter import Meter, PendingCause
from ..domain.origins import PendingOrigin, Place, noted
from ..domain.quantities import ONE, Quantity, constant, of_size
from ..domain.records import replace

_KEPT_RESULT_BYTES = 150.0  # of a result that a cache keeps, with its arguments


def symbolic_arguments(context: Context, frame: Frame) -> dict[str, Quantity]:
    """Give the arguments that recursive calls change a symbol; what the symbols stand for."""
    assert frame.node is not None
    changing = changing_parameters(frame.node)
    if changing is None:
        return {}
    frame.recurses = True
    frame.base_share, frame.checks = base_share(frame.node), checks(frame.node)
    frame.cached = is_cached(frame.node)
    start: dict[str, Quantity] = {}
    given = {name: value.name for name, value in frame.names.items() if value.kind == "unknown" and value.name}
    for name in changing:
        value = frame.names.get(name)
        if value is None:
            continue
        if value.kind == "unknown" and value.name and not value.name.startswith("?"):
            start[value.name] = of_size(value.name)
            continue
        amount = value.size if value.size is not None and value.kind not in ("int", "float") else value.number
        if amount is None:
            continue
        symbol = f"{SYMBOL}{name}{len(context.open)}"
        start[symbol] = amount
        given[name] = symbol
        is_sized = value.kind not in ("int", "float", "bool")
        frame.names[name] = replace(
            value,
            constant=MISSING,
            number=None if is_sized else of_size(symbol),
            size=of_size(symbol) if is_sized else None,
            payload=None,
        )
    frame.given, frame.begun = given, dict(frame.names)
    return start


def all_calls(context: Context, frame: Frame, body: Meter, start: dict[str, Quantity]) -> tuple[Meter, Quantity]:
    """The cost of all calls of a recursive function, and their number."""
    assert frame.node is not None
    named = (
        value.name
        for value in frame.names.values()
        if value.kind == "unknown" and value.name and value.name not in ("self", "cls")
    )
    fallback = next(named, "") or context.line_name(frame)
    if any(step.share[0] >= 1 and (always_calls_itself(frame.node) or not step.direct) for step in frame.recursive):
        body.endless = (frame.line if frame.depth else frame.node.lineno - 1, 1.0)
    shape = recurrence(
        frame.recursive,
        start,
        _gaps(context, frame),
        cached=frame.cached,
        base_share=frame.base_share,
        fallback=fallback,
        checks=frame.checks,
        most=most_calls(frame.node) if all(step.direct for step in frame.recursive) else 1.0,
        resumed=resumed(frame.node),
        walk=structure_walk(frame.node),
        nodes=_nodes_met(context, frame),
    )
    if ends_on_data(frame.node):
        shape = replace(shape, calls=shape.calls * constant(0.0, 1.0, 1.0))
    result = Meter(body.parallel, place=body.place)
    if shape.guessed:
        body.miss(f"{_name_of(frame)}()")
    result.add(body, shape.calls)
    result.own, result.seconds = 0.0, shape.total(body.total)
    result.origins = _origins(frame, body, shape)
    result.unknown = {called: shape.total(times) for called, times in body.unknown.items()}
    result.peak = shape.open_at_once(body.peak)
    line = frame.line if frame.depth else frame.node.lineno - 1
    name = _name_of(frame)
    result.causes.append(PendingCause(CauseKind.RECURSION, line, name, result.seconds, shape.calls))
    if frame.cached:
        result.hold(shape.calls.times(_KEPT_RESULT_BYTES))
    return result, shape.calls


def _origins(frame: Frame, body: Meter, shape: Recurrence) -> list[PendingOrigin]:
    """Where the cost of all calls comes from: what each spends that grows, and the recursive call for the rest."""
    place = body.place
    if place is None or frame.node is None:
        return []
    node = own_call(frame.node) if frame.is_own else place.node
    found = [replace(origin, amount=shape.total(origin.amount)) for origin in body.origins]
    fixed = body.total.terms.get(())
    if node is not None and fixed is not None:
        kind = "recursion" if depends_on_arguments(frame.node) else ""
        noted(found, Place(node, node, kind), shape.total(Quantity({(): fixed})))
    return found


def _nodes_met(context: Context, frame: Frame) -> Quantity | None:
    """The nodes that a search of a graph meets; one on average where a loop repeats it, since it knows what was met."""
    graph = searched_graph(frame.node) if frame.node is not None else None
    if graph is None:
        return None
    if any(caller.loops for caller in context.open):
        return ONE
    with context.inside(frame):
        value = peek(context, graph)
    return context.length(value) if value.size is not None or value.name else None


def _name_of(frame: Frame) -> str:
    return frame.node.name if isinstance(frame.node, (ast.FunctionDef, ast.AsyncFunctionDef)) else "lambda"


def _gaps(context: Context, frame: Frame) -> list[Gap]:
    """How far the conditions are from failing on which a function calls itself, in the symbols of its arguments."""
    assert frame.node is not None
    names, frame.names = frame.names, {**frame.names, **frame.begun}
    with context.inside(frame):
        gaps = [gap_of(context, test) for test in conditions_to_go_on(frame.node)]
    frame.names = names
    # A power of a counter, such as the length of a table, says nothing of how deep calls get.
    return [gap for gap in gaps if gap is not None and all(p == 1 for key in gap.distance.terms for _, p in key)]
