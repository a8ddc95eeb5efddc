"""Calls of functions whose text is known: their bodies are read with the arguments."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence

from rlm_core.boundary import absorb

from ..bounds.argument_transitions import SYMBOL
from ..bounds.recursion_search import refilled, takes_back
from ..bounds.recursion_syntax import filled_around
from ..bounds.structure_walks import structure_walk
from ..domain.context import Context, TooComplex
from ..domain.dispatch import evaluate, execute, peek
from ..domain.folding import MISSING
from ..domain.frames import Frame, Recursive
from ..domain.lattice import is_one_function, joined
from ..domain.meter import ALWAYS, Meter, scaled
from ..domain.names import defaults_of
from ..domain.quantities import ONE, ZERO, Quantity, Range, constant
from ..domain.records import replace
from ..domain.syntax import Function, called_name, nodes_of
from ..domain.values import NONE, NUMBERS, UNKNOWN, Value
from ..library.unit_costs import primitive, seconds
from ..scope import Definition, Scope
from .concurrency import ended
from .iterators import without_end
from .parameters import bind_arguments, is_abstract, is_method
from .recursive_functions import all_calls, symbolic_arguments
from .shown_types import of_hint, typed

MOST_INLINED = 6  # depth
_CALLEE_SHARE = 3  # of the budget that is left
_SIZED = frozenset({"list", "tuple", "str", "set", "dict", "unknown"})
_FILLED = frozenset({"list", "set", "dict", "deque"})


def call_user(
    context: Context, target: Value, args: list[Value], keywords: dict[str, Value], name: str, receiver: Value | None
) -> Value:
    """Read the body of a function of the program; ``name`` is what the call is written as."""
    definition = definition_of(context, target)
    called = f"{name or target.name}()"
    if definition is None:
        context.meter.miss(called)
        return UNKNOWN
    node, scope, qualname, parent = definition
    context.meter.spend(primitive("call.function") + len(keywords) * primitive("call.keyword"))
    if node.args.vararg is not None:
        context.meter.spend(seconds("build.tuple", constant(max(len(args) - len(node.args.args), 0))))
    if is_abstract(node):
        # A subclass defines what runs.
        context.meter.miss(called)
        return _hinted(context, definition, UNKNOWN)
    caller = context.frame
    active = next((frame for frame in reversed(context.open) if _is_frame_of(frame, definition)), None)
    if is_method(node) and (receiver is not None or parent is None):
        args = [receiver if receiver is not None else Value("unknown", name="self"), *args]
    names = bind_arguments(node, args, keywords)
    if active is not None:
        if not _calls_itself(active, name or target.name, args, is_direct=active is caller):
            context.meter.miss(called)
            return UNKNOWN
        share = _share_in(context, active)
        # How many values a `*args` has left is not known; and a method, or a function inside a function, may be
        # another one in this call: of an object of a subclass, or of what was bound to its name meanwhile.
        is_certain = node.args.vararg is None and _is_of_functions(context, active)
        share = share if is_certain else (0.0, share[1], share[2])
        times = ONE
        for loop in active.loops:
            times = times * loop.trips
        active.recursive.append(Recursive(names, share, times, active is caller, active.given, takes_back(active.node)))
        return _hinted(context, definition, _result_of_recursion(active, names))
    if len(context.open) > MOST_INLINED:
        context.meter.miss(called)
        return _hinted(context, definition, UNKNOWN)
    frame = Frame(scope, qualname, node, names, parent, receiver, caller.line, caller.depth + 1)
    frame.is_own = parent is not None and parent.is_own
    with context.inside(frame):
        typed(context, node, names)
    frame.entered = _share_here(context)
    # A callee that takes more than its share is not understood; what follows it still is.
    footprint = context.footprint
    before, loop_depth, spare = context.left, context.loop_depth, footprint.spare
    given = before // _CALLEE_SHARE
    kept, context.left, footprint.spare = before - given, given, sys.maxsize
    try:
        bind_defaults(context, frame)
        result, body = read_function(context, frame)
    except Exception as error:
        if not isinstance(error, TooComplex):
            if not context.open:
                raise
            # A fault of the analysis costs the caller what this call costs, not all its facts.
            absorb("the analysis of a called function", error)
        context.left, context.frame, context.loop_depth, footprint.spare = kept, caller, loop_depth, -1
        context.meter.miss(called)
        return _hinted(context, definition, UNKNOWN)
    footprint.spare = min(spare, before - _CALLEE_SHARE * (given - min(footprint.spare, context.left)))
    context.left += kept
    if body.endless is not None:
        body.endless = (caller.line, body.endless[1])
    context.meter.add(body, held=caller.held)
    context.meter.hold(caller.held)
    if receiver is not None and node.args.args:
        context.left_in_receiver = frame.filled.get(node.args.args[0].arg, ZERO)
    return _hinted(context, definition, result)


def _result_of_recursion(active: Frame, names: dict[str, Value]) -> Value:
    """Return what is known of a recursive call's result: a number where what the text returns before is one."""
    before = joined(active.results) if active.results else UNKNOWN
    if before.is_number:
        return Value(before.kind if before.kind in NUMBERS else before.type)
    # A function that takes a container usually returns one of about the same size.
    sized = next((value for value in names.values() if value.size is not None and value.kind in _SIZED), None)
    return Value(size=sized.size) if sized is not None else UNKNOWN


def _hinted(context: Context, definition: tuple[Function, Scope, str, Frame | None], result: Value) -> Value:
    """Return a result, or where nothing is known of it, a value of the type that the function's hint states."""
    node, scope, qualname, _ = definition
    if result.kind != "unknown" or result.type or result.size is not None or isinstance(node, ast.Lambda):
        return result
    with context.inside(Frame(scope, qualname, node)):
        return of_hint(context, node.returns, result.name) or result


def definition_of(context: Context, target: Value) -> tuple[Function, Scope, str, Frame | None] | None:
    """The syntax tree of a function of the program, its scope, its qualified name, and the frame around it."""
    payload = target.payload
    if isinstance(payload, tuple):
        node, parent = payload
        name = "lambda" if isinstance(node, ast.Lambda) else node.name
        return node, parent.scope, f"{parent.qualname}.<locals>.{name}", parent
    if not isinstance(payload, Definition):
        return None
    context.dependencies.append(payload)
    tree = context.function(payload.text)
    if tree is None:
        return None
    context.step(len(payload.text) // 40)
    return tree, payload.scope, payload.qualname, None


def is_open(context: Context, definition: Definition) -> bool:
    """Return whether a function is being read: a call of its name on another object delegates, and is not recursion."""
    node = context.function(definition.text)
    return any(frame.node is node for frame in context.open)


def _share_here(context: Context) -> Range:
    """The share of the runs of the current function that get to this point; a bound in loops and handled calls."""
    low, likely, high = scaled(context.path, context.meter.reach)
    return (low, likely, high) if not context.frame.loops and not context.frame.handlers else (0.0, likely, high)


def _share_in(context: Context, active: Frame) -> Range:
    """The share of the runs of an open function that get to this point."""
    share = _share_here(context)
    for frame in reversed(context.open):
        if frame is active:
            break
        share = scaled(share, frame.entered)
    return share


def _is_of_functions(context: Context, active: Frame) -> bool:
    """Return whether an open function and all that it has called are functions of modules."""
    for frame in reversed(context.open):
        if "." in frame.qualname:
            return False
        if frame is active:
            break
    return True


def bind_defaults(context: Context, frame: Frame) -> None:
    """Bind the parameters that a call leaves out to their defaults."""
    for name, default in defaults_of(frame.node.args) if frame.node is not None else ():
        if name not in frame.names:
            with context.inside(frame):
                frame.names[name] = peek(context, default)


def read_function(context: Context, frame: Frame) -> tuple[Value, Meter]:
    """Read a function's body in its frame; its result and its cost, recursion included."""
    node = frame.node
    assert node is not None
    start = symbolic_arguments(context, frame)
    _bind_around(frame)
    caller, context.frame = context.frame, frame
    deep, context.expression_depth = context.expression_depth, min(context.expression_depth, MOST_INLINED)
    context.open.append(frame)
    try:
        # What one coroutine waits for adds up, also where several run at the same time.
        with context.region(Meter(place=context.place)) as body:
            context.path = ALWAYS
            if isinstance(node, ast.Lambda):
                frame.results.append((1.0, evaluate(context, node.body)))
            else:
                execute(context, node.body)
                frame.note_put(context.meter.reach[1])
    finally:
        context.open.pop()
        context.frame, context.expression_depth = caller, deep
    if any(wait.call.endswith(".acquire") for wait in body.waits):
        body.waits = [wait for wait in body.waits if not _is_released(wait.call, node)]
    body.waits = ended(body.waits)
    body.reach = ALWAYS
    calls = ONE
    if frame.recursive:
        body, calls = all_calls(context, frame, body, start)
    _grow_around(frame, calls, start)
    if any(symbol.startswith(SYMBOL) for symbol in start):
        body = body.substituted(start)
    if frame.yields.terms:
        parts = [value for _, value in frame.results] or [UNKNOWN]
        item = joined([(1 / len(parts), value) for value in parts])
        if frame.depth:
            # Calling a generator function runs nothing of it: the rest is paid by what consumes what it yields.
            generator = Value("iterator", size=frame.yields, item=item, payload=body, name="generator")
            if frame.yields_endlessly:
                generator = replace(without_end(item, body), name="generator")
            call = Meter()
            call.spend(primitive("yield"))
            return generator, call
    if not frame.results:
        return NONE, body
    result = joined(frame.results)
    return (result if not frame.recursive else replace(result, constant=MISSING, number=None)), body


def _is_frame_of(frame: Frame, definition: tuple[Function, Scope, str, Frame | None]) -> bool:
    """Return whether a function that is being read is this one, and not another with the same text."""
    node, scope, qualname, parent = definition
    if frame.node is not node:
        return False
    return parent is frame or (frame.qualname == qualname and frame.scope.home() is scope.home())


def _calls_itself(active: Frame, written: str, args: Sequence[Value], *, is_direct: bool) -> bool:
    """Return whether a call of a function that is being read is recursion.

    Under another name a module keeps what the function's name meant before. A method of another object is that of its
    class, which is not known. A function inside a function is not called as a method.
    """
    node = active.node
    assert node is not None
    if isinstance(node, ast.Lambda):
        return True
    receiver, _, name = written.rpartition(".")
    is_nested = active.qualname.rpartition(".")[0].endswith("<locals>")
    if name != node.name or (receiver and is_nested):
        return False
    for parameter, given in zip((*node.args.posonlyargs, *node.args.args) if not is_direct else (), args, strict=False):
        passed = active.names.get(parameter.arg, UNKNOWN)
        if "user-function" in (passed.kind, given.kind) and not is_one_function([passed, given]):
            return False  # with another function to call it does something else
    own = active.names.get(node.args.args[0].arg) if is_method(node) and node.args.args else None
    if own is None:
        return True
    given = args[0] if args else UNKNOWN
    walk = structure_walk(node) if given.kind == own.kind == "unknown" and given.name != own.name else None
    if walk is not None and walk.parameter in ("self", "cls"):
        return is_direct  # of a node of the structure that its own object is a node of
    same = given.payload is own.payload if own.payload is not None else given.payload is None
    return same and (given.kind, given.name) == (own.kind, own.name)


def _is_released(call: str, node: Function) -> bool:
    """Return whether a function releases the lock that it acquires: a critical section is not reported as a wait."""
    lock, _, method = call.rpartition(".")
    return method == "acquire" and any(
        isinstance(part, ast.Call) and called_name(part) == f"{lock}.release" for part in nodes_of(node)
    )


def _bind_around(frame: Frame) -> None:
    """Bind in a nested function's frame the containers around that it fills, without their bytes."""
    if frame.parent is None or frame.node is None:
        return
    for name in filled_around(frame.node):
        value = frame.parent.lookup(name) if name not in frame.names else None
        if value is not None and value.kind in _FILLED and value.size is not None:
            frame.around[name] = frame.names[name] = replace(value, constant=MISSING, payload=None, bytes=ZERO)


def _grow_around(frame: Frame, calls: Quantity, start: Mapping[str, Quantity]) -> None:
    """Add what all calls of a nested function put into the containers of the functions around it."""
    kept = refilled(frame.node) if frame.recursive and frame.node is not None else ()
    for name, (items, bytes_) in frame.put.items():
        home = frame.parent if name not in kept else None
        while home is not None and name not in home.names:
            home = home.parent
        outer = home.names[name] if home is not None else None
        if home is None or outer is None or outer.size is None:
            continue
        home.bind(
            name,
            replace(
                outer,
                constant=MISSING,
                payload=None,
                size=outer.size + (items * calls).substituted(start),
                bytes=outer.bytes + (bytes_ * calls).substituted(start),
                item=outer.item if outer.item is not None and outer.item.kind != "unknown" else frame.names[name].item,
            ),
        )
