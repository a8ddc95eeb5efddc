"""Loops: their cost, and how their bodies change names from iteration to iteration."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from rlm_core.types import CauseKind

from ..bounds.amortised import resumed_trips
from ..bounds.conditions import ends_inside, iterations_until_exit
from ..bounds.loop_transitions import (
    moved_by,
    multiplied_numbers,
    multiplied_sizes,
    powers,
    rebound_names,
    renewed_sizes,
    resized,
    shell_growth,
    up_to,
    uses,
)
from ..bounds.searches import loop_test, seen_share
from ..bounds.solver import of_all
from ..bounds.transitions import Counter
from ..bounds.traversals import iterations_inside
from ..domain import object_sizes
from ..domain.context import Context
from ..domain.dispatch import evaluate, execute
from ..domain.folding import MISSING
from ..domain.frames import Loop
from ..domain.lattice import any_entries, any_of
from ..domain.meter import ALWAYS, Meter
from ..domain.quantities import ONE, ZERO, Quantity, Range, constant, is_whole, mixed, part_of
from ..domain.records import replace
from ..domain.syntax import LoopNode
from ..domain.values import Entries, Value, literal, number_of
from ..library.unit_costs import each, primitive, seconds
from .bindings import bind_items, bind_target
from .branches import read_branches
from .comprehensions import distinct
from .loop_changes import TEXTS, Change, changes_of, halfway, is_bound_first, is_copied
from .loop_waits import mark, note_reading, note_tries
from .objects import special
from .places import attributes_as_names

_UNROLLED, _UNROLLED_WITH_CALLS = 24, 12
_UNROLLED_NODES = 400
_TWICE_DEPTH = 4
_USUAL_TERMS, _STEPS_PER_TERM = 4, 2
FEWEST_REPORTED = 100
_DIGITS = constant(0.0, 0.5, 0.1)  # of a product that a loop builds: so many on average for each iteration
_GROWN = frozenset({"list", "set", "dict", "deque"})


def read_for(context: Context, node: ast.For | ast.AsyncFor) -> None:
    """Read a ``for`` loop."""
    with attributes_as_names(context, node):
        _read_for(context, node)


def _read_for(context: Context, node: ast.For | ast.AsyncFor) -> None:
    iterable = evaluate(context, node.iter)
    note_reading(context, node.iter)
    iterable = special(context, iterable, "__iter__") or iterable
    if _read_unrolled(context, node, iterable):
        return
    loop = Loop(node=node)
    with context.region() as source:
        with context.producing_items():
            whole = context.consume(iterable)
        context.meter.spend(primitive("loop.start"))
    without_end = endless = source.endless is not None
    source.endless = None
    if endless and context.block(node).yields:
        endless = False
        if ends_inside(context.block(node)):
            whole = context.trips_of(node)
        else:
            # A generator without end: what it costs depends on how many items are taken.
            context.frame.yields_endlessly, whole = True, ONE
    names = dict(context.frame.names)
    bind_items(context, node.target, iterable)
    context.frame.restore(names, context.frame.held)
    trips = context.trips_of(node) if endless and ends_inside(context.block(node)) else whole
    counter = _counted(node, iterable)
    if counter is not None and whole.exact is not None:
        trips = of_all([whole, iterations_until_exit(context, node, counter) or whole]) or whole
    resumed = resumed_trips(context, node, trips) or iterations_inside(context, node)
    if resumed is not None:
        trips = whole = resumed
        with context.region() as source:
            context.meter.spend(primitive("loop.start"))
            context.meter.spend(iterable.step * resumed)
    count = read_loop(context, node, loop, trips, lambda: bind_items(context, node.target, iterable), endless=endless)
    # A loop that is left early leaves the rest of a lazy iterable alone.
    share = ONE
    limits, ran = whole.constant, count.constant
    if without_end:
        share = count
    elif limits is not None and ran is not None and limits[1] > 0:
        share = constant(part_of(ran[0], limits[0]), part_of(ran[2], limits[2]), part_of(ran[1], limits[1]))
    elif loop.exits:
        share = constant(0.0, 1.0, 0.5)
    context.meter.add(source, share)


def _counted(node: ast.For | ast.AsyncFor, iterable: Value) -> Counter | None:
    """The counter that a loop over a range with a known start and step binds."""
    if iterable.kind != "range" or not isinstance(iterable.payload, tuple) or not isinstance(node.target, ast.Name):
        return None
    start, step, _ = iterable.payload
    return Counter(node.target.id, start, step)


def _read_unrolled(context: Context, node: ast.For | ast.AsyncFor, iterable: Value) -> bool:
    """Read a short loop over known values once for each of them."""
    items: list[Value] | None = None
    if iterable.kind == "range" and isinstance(iterable.payload, tuple) and len(iterable.payload) == 3:
        start, step, count = iterable.payload
        if 0 <= count <= _UNROLLED and is_whole(start) and is_whole(step):
            items = [literal(int(start + step * k)) for k in range(int(count))]
    elif (
        iterable.kind in ("tuple", "list")
        and isinstance(iterable.payload, tuple)
        and len(iterable.payload) <= _UNROLLED
    ):
        items = [value for value in iterable.payload if isinstance(value, Value)]
    elif iterable.known and isinstance(iterable.constant, (tuple, str)) and len(iterable.constant) <= _UNROLLED:
        items = [literal(part) for part in iterable.constant]
    elif iterable.kind in _GROWN and iterable.item is not None and not context.block(node).risks:
        count = iterable.size.exact if iterable.size is not None else None
        items = [iterable.item] * round(count) if count is not None and 0 <= count <= _UNROLLED else None
    if items is None or node.orelse or any(item.kind == "unknown" for item in items):
        return False
    block = context.block(node)
    if len(items) > 1 and len(items) * block.nodes > _UNROLLED_NODES:
        return False
    if len(items) > _UNROLLED_WITH_CALLS and block.risks:
        # Each call of a function of the program takes a share of the budget.
        return False
    outer = context.meter
    names_of_items = [replace(item, bytes=ZERO) for item in items]
    loop = Loop()
    context.frame.loops.append(loop)
    with context.region() as total:
        for item in names_of_items:
            if total.reach[2] <= 0:
                break
            total.spend(primitive("loop.for"))
            bind_target(context, node.target, item)
            before = total.reach
            with context.region() as body:
                execute(context, node.body)
            going = body.reach
            left = _left_by(context, node, going)
            body.reach = ALWAYS
            total.add(body)
            total.reach = (before[0] * left[0], before[1] * left[1], before[2] * left[2]) if left != ALWAYS else before
    context.frame.loops.pop()
    if context.frame.loops and loop.exits and context.block(node).returns:
        context.frame.loops[-1].exits = True
    goes_on = total.reach
    returned = context.block(node).returns
    total.reach = ALWAYS
    note_tries(node, total)
    outer.add(total)
    if returned and goes_on != ALWAYS:
        has_break = context.block(node).breaks
        likely = goes_on[1] if not has_break else max(goes_on[1], 0.5)
        outer.reach = (
            outer.reach[0] * goes_on[0],
            outer.reach[1] * likely,
            outer.reach[2] * (1.0 if has_break else goes_on[2]),
        )
    return True


def _left_by(context: Context, node: LoopNode, going: Range) -> Range:
    """The share of iterations after which the next follows: ``continue`` ends only one of them."""
    block = context.block(node)
    if going == ALWAYS or not block.continues:
        return going
    if not block.breaks and not block.returns:
        return ALWAYS
    return (going[0], max(going[1], 0.7), 1.0)


def read_loop(
    context: Context,
    node: LoopNode,
    loop: Loop,
    trips: Quantity,
    bind: Callable[[], object] | None,
    *,
    endless: bool = False,
) -> Quantity:
    """Read a loop's body and add it as often as it runs; the number of iterations."""
    frame = context.frame
    # What a loop changes is added up term by term.
    context.step(_STEPS_PER_TERM * max(len(frame.held.terms) - _USUAL_TERMS, 0))
    loop.trips = trips
    before, held = dict(frame.names), frame.held
    assigned = context.block(node).assigned
    for name in assigned.keys() & before.keys():
        value = before[name]
        if isinstance(value.payload, Entries) and name not in context.block(node).grown:
            frame.names[name] = value = replace(value, payload=any_entries(value.payload))
        elif value.known or (isinstance(value.payload, (tuple, Entries)) and value.kind != "user-function"):
            frame.names[name] = value = replace(value, constant=MISSING, payload=None)
        if name in context.block(node).grown and value.item is not None:
            frame.names[name] = replace(value, item=any_of(value.item))
    first = dict(frame.names)
    results, inner_bytes, yields = len(frame.results), dict(frame.filled), frame.yields
    recursive = [len(one.recursive) for one in context.open]
    frame.yields = ZERO
    multiplied: dict[str, tuple[Quantity, Quantity]] = {}
    body, exit_range = _read_iteration(context, node, loop, bind)

    def forget() -> None:
        """Take back what reading an iteration leaves, before it is read again."""
        del frame.results[results:]
        for one, known in zip(context.open, recursive, strict=True):
            del one.recursive[known:]

    bound = {
        name: replace(frame.names[name], constant=MISSING, size=ZERO, bytes=ZERO, payload=None)
        for name in assigned
        if is_bound_first(first.get(name), frame.names.get(name))
    }
    if bound:
        # Only the first iteration finds None, as in `table = part if table is None else concat([table, part])`: it is
        # like an empty table.
        forget()
        first |= bound
        frame.restore(dict(first), held)
        body, exit_range = _read_iteration(context, node, loop, bind)
    count = _until_early_exit(context, trips, loop, exit_range, node)
    # Functions that the body calls may fill containers around them.
    filled = {name: None for name, value in frame.names.items() if first.get(name, value) is not value}
    changes = changes_of(context, first, frame.names, assigned | filled, context.block(node))
    rebound = rebound_names(first, frame.names, assigned.keys() - changes.keys(), count)
    moving = {*changes, *rebound}
    after = dict(frame.names)
    copied = {name for name in context.block(node).remade if name in first and is_copied(name, first[name])}
    if moving and context.loop_depth < _TWICE_DEPTH and (uses(node, moving) or not copied.isdisjoint(moving)):
        forget()
        begun = first | rebound
        body = _read_again(context, node, loop, bind, begun, changes, count, held)
        renewed = renewed_sizes(context.block(node).remade.intersection(changes), after, frame.names)
        if renewed:
            forget()
            changes = {name: change for name, change in changes.items() if name not in renewed}
            begun |= rebound_names(first, after, renewed, count)
            body = _read_again(context, node, loop, bind, begun, changes, count, held)
        factors = multiplied_sizes(first, after, halfway(begun, changes, count), frame.names)
        if isinstance(node, ast.For) and factors:
            multiplied = {name: powers(first[name].size or ONE, by, count) for name, by in factors.items()}
            forget()
            middle = {name: replace(first[name], size=average) for name, (average, _) in multiplied.items()}
            others = {name: change for name, change in changes.items() if name not in multiplied}
            body = _read_again(context, node, loop, bind, begun | middle, others, count, held)
    frame.yields = yields + frame.yields * count
    # State after the loop.
    frame.restore(dict(before), held)
    for name, value in after.items():
        old = first.get(name)
        if old is value:
            continue
        change = changes.get(name)
        if change is not None and old is not None:
            size, number, bytes_ = change
            times = count
            if value.kind in ("set", "dict") and value.item is not None and size is not None and size.terms:
                # Keys that come again take nothing more.
                times = distinct(value.item, count)
            if value.kind in _GROWN and loop.items is not None and size is not None:
                times = up_to(loop.items, size, times)
            if value.most is not None and old.size is not None and size is not None:
                times = up_to(constant(value.most) - old.size, size, times)
            inner = frame.filled.get(name, ZERO) - inner_bytes.get(name, ZERO)
            shell = ZERO
            if value.kind in _GROWN and size is not None and old.size is not None:
                # A container grows in steps: what the first item takes says nothing of the others.
                first_step, steps = shell_growth(value.kind, old.size, size), size * times
                shell = shell_growth(value.kind, old.size, steps) - first_step * times
            total = old.bytes + (bytes_ - inner) * times + inner * count + shell
            if inner.terms:
                frame.filled[name] = inner_bytes.get(name, ZERO) + inner * count
            moved = moved_by(old.size, size, times)
            if value.kind in TEXTS and moved is not None:
                total = object_sizes.container(value.kind, moved)
            new = replace(
                resized(value, multiplied[name][1] if name in multiplied else moved),
                constant=MISSING,
                number=moved_by(number_of(old), number, count) if number is not None else old.number,
                bytes=total if total.terms else ZERO,
            )
        elif name in multiplied:
            last = multiplied[name][1]
            held_by = object_sizes.container(value.kind, last)
            new = replace(value, constant=MISSING, payload=None, size=last, bytes=held_by)
        else:
            new = (
                replace(value, constant=MISSING, payload=None if not isinstance(value.payload, dict) else value.payload)
                if name in assigned and old is not None
                else value
            )
        frame.bind(name, new)
        if new.kind in ("int", "unknown") and isinstance(node, ast.For) and name in multiplied_numbers(node):
            # It gets more digits with each trip, and costs more. The condition of a while loop mostly bounds it.
            body.spend(count.times(each("bigint.small")) * _DIGITS)
    if isinstance(node, ast.For) and "[]" in multiplied_numbers(node):
        body.spend(seconds("bigint.multiply", count * _DIGITS))
    low = min(count.evaluate(lambda name: 0.0)[0], 1.0)
    for index in range(results, len(frame.results)):
        weight, value = frame.results[index]
        frame.results[index] = (weight * 0.5, value)
    kind = "loop.for" if not isinstance(node, ast.While) else "loop.while"
    body.spend(primitive(kind))
    note_tries(node, body)
    grown = frame.held
    body.peak, peak = ZERO, body.peak
    if not isinstance(node, ast.While):
        mark(context, body, node, count)
    context.meter.add(body, count)
    context.meter.hold(peak)
    context.meter.hold(grown)
    total = body.total * count
    if count.evaluate(lambda name: 10.0)[1] >= FEWEST_REPORTED:
        header = node.iter if not isinstance(node, ast.While) else node.test
        context.meter.cause(CauseKind.LOOP, node.lineno - 1 if not frame.depth else frame.line, header, total, count)
    block = context.block(node)
    if endless and not loop.exits and not context.is_caught:
        context.meter.run_on(node.lineno - 1 if not frame.depth else frame.line)
        context.stop()
    elif loop.exits and block.returns:
        reach = context.meter.reach
        if exit_range[2] <= 0 and not block.breaks and low >= 1:
            context.stop()
        else:
            context.meter.reach = (0.0, reach[1] * (0.75 if block.breaks else 0.5), reach[2])
    if node.orelse:
        if loop.exits and block.breaks:
            read_branches(context, [((0.0, 0.5, 1.0), node.orelse), ((0.0, 0.5, 1.0), [])])
        else:
            execute(context, node.orelse)
    return count


def _until_early_exit(context: Context, trips: Quantity, loop: Loop, going: Range, node: LoopNode) -> Quantity:
    """The number of iterations, in view of exits inside the body."""
    if going == ALWAYS or not loop.exits:
        return trips
    if going[2] <= 0:
        return mixed([(1.0, ONE)]) if trips.constant is None or trips.constant[1] >= 1 else trips
    leaves = max(1 - going[1], 1e-3)
    whole = trips.constant
    only_errors = not (context.block(node).breaks or context.block(node).returns)
    if only_errors:
        return mixed([(0.0, ONE), (1.0, trips)])
    if whole is not None:
        low, likely, high = whole
        if leaves < 0.2:
            expected = min((1 - (1 - leaves) ** min(likely, 1e6)) / leaves, likely) if leaves < 0.06 else likely / 2
        else:
            expected = likely / 2
        return constant(min(1.0, low), high, max(expected, min(likely, 1.0)))
    return trips * seen_share(context, loop_test(node) if isinstance(node, ast.For) else None)


def _read_again(
    context: Context,
    node: LoopNode,
    loop: Loop,
    bind: Callable[[], object] | None,
    names: Mapping[str, Value],
    changes: Mapping[str, Change],
    count: Quantity,
    held: Quantity,
) -> Meter:
    """The cost of an iteration in the middle of a loop, when the names that it changes have changed half-way."""
    frame = context.frame
    frame.yields = ZERO
    frame.restore(halfway(names, changes, count), held)
    return _read_iteration(context, node, loop, bind)[0]


def _read_iteration(
    context: Context, node: LoopNode, loop: Loop, bind: Callable[[], object] | None
) -> tuple[Meter, Range]:
    """The cost of one iteration, and the share of iterations that the next one follows."""
    frame = context.frame
    frame.loops.append(loop)
    context.loop_depth += 1
    with context.region() as meter:
        if bind is not None:
            bind()
        if isinstance(node, ast.While):
            evaluate(context, node.test)
            context.meter.spend(primitive("branch"))
        execute(context, node.body)
        going = meter.reach
        meter.reach = ALWAYS
    context.loop_depth -= 1
    frame.loops.pop()
    return meter, _left_by(context, node, going)
