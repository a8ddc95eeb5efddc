"""Branches: one of several blocks runs."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..domain.context import Context
from ..domain.dispatch import execute
from ..domain.lattice import joined
from ..domain.meter import ALWAYS, Meter, scaled
from ..domain.quantities import Quantity, Range, mixed
from ..domain.values import UNKNOWN, Value


def read_branches(context: Context, branches: Sequence[tuple[Range, Sequence[ast.stmt]]]) -> None:
    """Read one of several blocks, each with its share of the runs."""
    taken = [(share, body) for share, body in branches if share[2] > 0]
    if len(taken) == 1 and taken[0][0][0] == 1:
        execute(context, taken[0][1])
        return
    frame = context.frame
    names, held = frame.names, frame.held
    meters: list[tuple[Range, Meter]] = []
    ends: list[tuple[Range, Range, dict[str, Value], Quantity]] = []
    for share, body in taken:
        frame.restore(dict(names), held)
        before = len(frame.results)
        with context.region() as meter:
            context.path = scaled(context.path, share)
            execute(context, body)
        for result in range(before, len(frame.results)):
            weight, value = frame.results[result]
            frame.results[result] = (weight * share[1], value)
        meters.append((share, meter))
        ends.append((share, meter.reach, frame.names, frame.held))
        meter.reach = ALWAYS
    outer = context.meter
    outer.branch(meters)
    low = sum(share[0] * reach[0] for share, reach, _, _ in ends)
    likely = sum(share[1] * reach[1] for share, reach, _, _ in ends)
    high = min(sum(share[2] * reach[2] for share, reach, _, _ in ends), 1.0)
    if all(reach[0] == 1 for _, reach, _, _ in ends):
        low = likely = 1.0
    if (low, likely, high) != (1.0, 1.0, 1.0):
        outer.reach = (outer.reach[0] * low, outer.reach[1] * likely, outer.reach[2] * high)
    going = [(share[1] * reach[1] or 1e-6, found, kept) for share, reach, found, kept in ends if reach[2] > 0]
    _merge(context, names, held, going)


def _merge(
    context: Context, names: dict[str, Value], held: Quantity, ends: list[tuple[float, dict[str, Value], Quantity]]
) -> None:
    if not ends:
        context.frame.restore(names, held)
        return
    if len(ends) == 1:
        context.frame.restore(ends[0][1], ends[0][2])
        return
    total = sum(weight for weight, _, _ in ends)
    merged = dict(ends[0][1])
    for name in dict.fromkeys(name for _, bound, _ in ends for name in bound):
        values = [(weight / total, bound.get(name, UNKNOWN)) for weight, bound, _ in ends]
        if any(value is not values[0][1] for _, value in values):
            merged[name] = joined(values)
        else:
            merged[name] = values[0][1]
    context.frame.restore(merged, mixed((weight / total, kept) for weight, _, kept in ends))
