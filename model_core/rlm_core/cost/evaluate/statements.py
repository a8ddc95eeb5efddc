"""Statements: assignments, branches, early exits and exceptions; loops are in :mod:`loops`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..bounds.structure_walks import structure_walk
from ..domain.context import LEAST_SEEN, Context
from ..domain.dispatch import evaluate, execute
from ..domain.folding import MISSING
from ..domain.meter import ALWAYS, Meter, scaled
from ..domain.names import imported_names
from ..domain.quantities import ZERO, constant
from ..domain.records import replace
from ..domain.syntax import leaving, place_of, walk
from ..domain.values import NONE, NUMBERS, UNKNOWN, Value
from ..library.unit_costs import each, primitive, seconds
from .bindings import bind_target, grow, remove_item, store_item
from .branches import read_branches
from .comprehensions import same_name
from .conditions import Condition, is_for_small_inputs, judge, rest_of
from .containers import is_stored
from .expressions import imported_value
from .objects import special
from .operations import binary_operation
from .places import kept_place
from .shown_types import of_hint

_EXIT_GUESS = 0.3
_KEPT_GUESS = 0.9  # for the return of what an earlier call has made and kept
_RAISE_GUESS = 0.05
_ALL_BUT_CERTAIN = 0.999  # a recursion that a guard ends is not one without end
_HANDLER_SHARE = 0.05
_INTERRUPTS = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError"})
_MOST_ENDING = 0.5  # of the calls of a recursion without branches: two, of which one ends
_IN_PLACE = frozenset({"list", "bytearray", "deque"})
"""What ``+=`` extends, also where another object holds it."""
_RAISED = 0.5  # of what raising and catching an exception takes


def read_expression(context: Context, node: ast.Expr) -> None:
    """Read an expression whose value nothing uses."""
    evaluate(context, node.value)


def read_assignment(context: Context, node: ast.Assign | ast.AnnAssign) -> None:
    """Read an assignment, with or without a type hint."""
    if isinstance(node, ast.Assign) and (extended := _extended_text(context, node)) is not None:
        read_augmented(context, extended)
    elif node.value is not None:
        hint = node.annotation if isinstance(node, ast.AnnAssign) else None
        _assign(context, node.targets if isinstance(node, ast.Assign) else [node.target], node.value, hint)


def _extended_text(context: Context, node: ast.Assign) -> ast.AugAssign | None:
    """Return ``text += more`` for ``text = text + more``, for which CPython also extends a text in place."""
    match node:
        case ast.Assign([ast.Name(id=name) as target], ast.BinOp(ast.Name(id=left), ast.Add(), more)) if name == left:
            value = context.frame.names.get(name)
            if value is not None and value.kind == "str" and not value.known:
                return ast.AugAssign(target, ast.Add(), more)
    return None


def _assign(context: Context, targets: Sequence[ast.expr], source: ast.expr, hint: ast.expr | None = None) -> None:
    value = evaluate(context, source)
    if hint is not None and value.kind == "unknown":
        value = of_hint(context, hint, value.name) or value
    context.meter.spend(primitive("assign"))
    is_new = value.kind == "object" and isinstance(source, ast.Call)
    if (is_new or isinstance(source, (ast.Tuple, ast.List, ast.Dict))) and value.bytes.terms:
        # `node = Node(item, node)` and `node = (item, node)`: the new object keeps the previous one.
        passed = {part.id for part in _held_parts(source) if isinstance(part, ast.Name)}
        for target in targets:
            previous = context.frame.names.get(target.id) if isinstance(target, ast.Name) else None
            if previous is not None and isinstance(target, ast.Name) and target.id in passed:
                value = replace(value, bytes=value.bytes + previous.bytes)
                context.frame.chained.add(target.id)
    # Chosen elements of an array are a copy; views have no bytes.
    is_copy = value.kind == "array" and isinstance(source, ast.Subscript)
    if is_stored(source) and value.bytes.terms and not is_copy:
        value = replace(value, bytes=ZERO)
    for index, target in enumerate(targets):
        # `d[i] = i`: the key is the value.
        is_held = index > 0 or (isinstance(target, ast.Subscript) and same_name(target.slice, source))
        bind_target(context, target, replace(value, bytes=ZERO) if is_held else value)
    context.hold()


def _held_parts(source: ast.expr) -> Sequence[ast.expr]:
    """The values that a new object refers to; what is unpacked into a dict is copied."""
    if isinstance(source, ast.Dict):
        return [value for key, value in zip(source.keys, source.values, strict=True) if key is not None]
    parts: Sequence[ast.expr] = getattr(source, "args" if isinstance(source, ast.Call) else "elts")
    return parts


def read_augmented(context: Context, node: ast.AugAssign) -> None:
    """Read ``target += value`` and its like."""
    right = evaluate(context, node.value)
    target = node.target
    place = kept_place(context, target)
    left = evaluate(context, target) if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) else UNKNOWN
    if isinstance(node.op, ast.Add) and (
        left.kind in _IN_PLACE or (left.kind == "str" and isinstance(target, ast.Name))
    ):
        # A list is extended in place; CPython mostly extends text that a local name alone holds in place, too.
        count = context.consume(right) if left.kind == "list" else context.length(right)
        if left.kind == "list":
            context.meter.spend(primitive("list.append"))
            context.meter.spend(count.times(each("build.list")))
        else:
            context.meter.spend(primitive("append.text"))
            context.meter.spend(count.times(each("concat.text")))
        item = right.item if right.item is not None else UNKNOWN
        if place:
            grow(context, place, left, count, replace(item, bytes=ZERO) if left.kind != "list" else item)
        return
    if isinstance(node.op, ast.BitOr) and place and left.kind in ("set", "dict"):
        count = context.consume(right)
        context.meter.spend(seconds("build.set", count))
        grow(context, place, left, count, right.item or UNKNOWN, right.entry)
        return
    if left.kind == "array" and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        result = binary_operation(context, node.op, left, right)
        if isinstance(target, ast.Name):
            context.frame.bind(target.id, replace(left, constant=MISSING, bytes=left.bytes))
        del result
        return
    result = binary_operation(context, node.op, left, right)
    context.meter.spend(primitive("assign"))
    if isinstance(target, ast.Name):
        context.frame.bind(target.id, result)
    elif isinstance(target, ast.Subscript):
        store_item(context, target, result if result.kind in NUMBERS else replace(result, bytes=ZERO))
    elif isinstance(target, ast.Attribute):
        bind_target(context, target, result)
    context.hold()


def read_import(context: Context, node: ast.Import | ast.ImportFrom) -> None:
    """Bind the names of an import inside a function."""
    context.meter.spend(primitive("import.from" if isinstance(node, ast.ImportFrom) else "import"))
    for name, dotted in imported_names(node):
        if isinstance(node, ast.ImportFrom) and node.level:
            context.frame.bind(name, Value("unknown"))
        else:
            context.frame.bind(name, Value("module", name=name) if name == dotted else imported_value(dotted))


def read_return(context: Context, node: ast.Return) -> None:
    """Read ``return``."""
    value = evaluate(context, node.value)
    context.frame.results.append((max(context.meter.reach[1], 1e-6), value))
    if context.frame.around:
        context.frame.note_put(scaled(context.path, context.meter.reach)[1])
    for loop in context.frame.loops:
        loop.exits = True
    context.stop()


def read_raise(context: Context, node: ast.Raise) -> None:
    """Read ``raise``."""
    evaluate(context, node.exc)
    context.meter.spend(primitive("raise") * _RAISED)
    for loop in context.frame.loops:
        loop.exits = True
    context.stop()


def read_if(context: Context, node: ast.If) -> None:
    """Read ``if``, with the share of runs that takes each branch."""
    context.meter.spend(primitive("branch"))
    condition = judge(context, node.test)
    condition = _in_view_of_exits(context, node, condition)
    kept = _kept(node)
    before = context.frame.names.get(kept, UNKNOWN).size
    read_branches(context, [(condition.share, node.body), (condition.rest, node.orelse)])
    after = context.frame.names.get(kept, UNKNOWN)
    added = (after.size - before).constant if before is not None and after.size is not None else None
    if before is not None and added is not None and added[0] == 0 < added[1]:
        # As searches that a loop repeats look for different things, some of these are new.
        size = before + constant(LEAST_SEEN, added[2], added[1])
        context.frame.names[kept] = replace(after, size=size)


def _in_view_of_exits(context: Context, node: ast.If, condition: Condition) -> Condition:
    """A guess for a branch that leaves: guards are rare; in a recursion by the number of calls.

    One that raises is an assertion, unless what it raises is caught here. The exit by which a loop's iterations are
    counted ends it after them.
    """
    first, other = leaving(node.body), leaving(node.orelse)
    share = condition.share
    if share[0] == 1 or share[0] == share[2]:
        return condition
    leaves = first or other
    loop = context.frame.loops[-1] if context.frame.loops else None
    is_assertion = leaves == "raise" and not context.is_caught
    is_counted = loop is not None and loop.counts_exit and first in ("break", "return")
    never, always = (0.0, 0.0, 1.0), (_ALL_BUT_CERTAIN if loop is None else 1.0, 1.0, 1.0)
    walk = structure_walk(context.frame.node) if context.frame.recurses and context.frame.node is not None else None
    parts = walk.share_of_parts(node.test, 1 - context.frame.base_share) if walk is not None else None
    if parts is not None:
        return Condition((parts, parts, parts), (1 - parts, 1 - parts, 1 - parts))
    if is_for_small_inputs(context, node.test, leaves=bool(first)):
        return Condition(never, always)  # at the sizes that a cost is about
    if first == other:
        return condition
    if (
        leaves == "return"
        and not context.frame.recurses
        and _returns_kept(context, node, node.body if first else node.orelse)
    ):
        # All calls but the first find what that one has made.
        share = (share[0], max(share[1], _KEPT_GUESS), share[2]) if first else (share[0], 1 - _KEPT_GUESS, share[2])
        return replace(condition, share=share, rest=rest_of(share))
    if is_assertion or is_counted:
        return Condition(never, always) if first else Condition(always, never)
    guess = _RAISE_GUESS if leaves == "raise" else _EXIT_GUESS
    if leaves == "return" and context.frame.recurses and share[0] < share[2]:
        # All checks together end that share of the calls.
        guess = 1 - (1 - context.frame.base_share) ** (1 / context.frame.checks)
        if context.frame.checks == 1 and context.frame.base_share < _MOST_ENDING:
            # It is the last of a row of calls that ends here, and the others go on.
            share = (share[0], guess, max(share[0], min(share[2], _MOST_ENDING)))
    elif first and leaves != "raise":
        guess = min(share[1], _EXIT_GUESS)
    share = (share[0], guess, share[2]) if first else (share[0], 1 - guess, share[2])
    return replace(condition, share=share, rest=rest_of(share))


def _returns_kept(context: Context, node: ast.If, branch: Sequence[ast.stmt]) -> bool:
    """Return whether a branch returns what it tests for, and what the function keeps for later calls elsewhere.

    That is a global name, or an attribute of something outside the function. A cache with a key is none: many calls
    have a new key.
    """
    function, last = context.frame.node, branch[-1]
    value = last.value if isinstance(last, ast.Return) else None
    if function is None or not isinstance(value, (ast.Name, ast.Attribute)):
        return False
    if ast.unparse(value) not in {ast.unparse(part) for part in walk(node.test) if isinstance(part, type(value))}:
        return False
    parts = list(walk(function))
    if isinstance(value, ast.Name) and not any(
        isinstance(part, (ast.Global, ast.Nonlocal)) and value.id in part.names for part in parts
    ):
        return False
    targets = [target for part in parts if isinstance(part, ast.Assign) for target in part.targets]
    return ast.unparse(value) in {ast.unparse(target) for target in targets}


def _kept(node: ast.If) -> str:
    """The list that gets what is not yet in it, as ``seen`` of ``if x not in seen: seen.append(x)``; else ``""``."""
    match node.test:
        case ast.Compare(left=item, ops=[ast.NotIn()], comparators=[container]):
            call = f"{ast.unparse(container)}.append({ast.unparse(item)})"
            is_kept = any(isinstance(part, ast.Expr) and ast.unparse(part) == call for part in node.body)
            return place_of(container) if is_kept else ""
    return ""


def read_match(context: Context, node: ast.Match) -> None:
    """Read ``match``; each case is as likely as the others."""
    evaluate(context, node.subject)
    context.meter.spend(primitive("match"))
    read_branches(context, [((0.0, 1 / len(node.cases), 1.0), case.body) for case in node.cases])


def read_with(context: Context, node: ast.With | ast.AsyncWith) -> None:
    """Read ``with``."""
    context.meter.spend(primitive("with"))
    suppresses = False
    left: list[Value] = []
    for item in node.items:
        value = evaluate(context, item.context_expr)
        suppresses |= "suppress" in value.name
        entered = special(context, value, "__enter__")
        if entered is None and not (value.kind == "object" and value.name):
            context.miss("with", value)
        left.append(value)
        if item.optional_vars is not None:
            bind_target(context, item.optional_vars, value if entered is None else entered)
    context.frame.handlers += suppresses
    execute(context, node.body)
    context.frame.handlers -= suppresses
    for value in reversed(left):
        special(context, value, "__exit__", NONE, NONE, NONE)


def read_try(context: Context, node: ast.Try | ast.TryStar) -> None:
    """Read ``try`` with its handlers, which rarely run."""
    context.meter.spend(primitive("try"))
    before = context.meter.reach
    catches = any(_catches_errors(handler) for handler in node.handlers)
    context.frame.handlers += catches
    execute(context, node.body)
    context.frame.handlers -= catches
    if node.orelse:
        # Nothing says that the statements before do not raise.
        context.meter.reach = (0.0, *context.meter.reach[1:]) if node.handlers else context.meter.reach
        execute(context, node.orelse)
    after = context.meter.reach
    if node.handlers:
        share = _HANDLER_SHARE / len(node.handlers)
        certain = any(isinstance(statement, ast.Raise) for statement in node.body)
        frame, names, held = context.frame, context.frame.names, context.frame.held
        context.meter.reach = before
        likely, leaves = 0.0, False
        for handler in node.handlers:
            frame.restore(dict(names), held)
            if handler.name:
                frame.names[handler.name] = Value("object", name="Exception")
            chance = 1.0 / len(node.handlers) if certain else share
            with context.region() as meter:
                meter.spend(primitive("raise") * (1 - _RAISED if certain else 1.0))
                context.path = scaled(context.path, (0.0, chance, 1.0))
                execute(context, handler.body)
            meter.waits = [replace(wait, on_error=True) for wait in meter.waits]
            likely += chance * meter.reach[1]
            leaves = leaves or meter.reach[0] < 1
            meter.reach = ALWAYS
            context.meter.branch([((0.0, chance, 1.0), meter), ((0.0, 1 - chance, 1.0), Meter())])
        frame.restore(names, held)
        # A handler that does not leave goes on behind the statement.
        context.meter.reach = (
            0.0 if leaves else after[0],
            min(max(after[1], before[1] * likely), 1.0),
            max(after[2], before[2] if likely else 0.0),
        )
    if node.finalbody:
        reach = context.meter.reach
        context.meter.reach = before
        execute(context, node.finalbody)
        context.meter.reach = reach if context.meter.reach[2] > 0 else context.meter.reach


def _catches_errors(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches what the code itself may raise, and not only what ends it from outside."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(name).rpartition(".")[2] not in _INTERRUPTS for name in caught)


def read_break(context: Context, node: ast.Break) -> None:
    """Read ``break``."""
    if context.frame.loops:
        context.frame.loops[-1].exits = True
    context.stop()


def read_continue(context: Context, node: ast.Continue) -> None:
    """Read ``continue``."""
    states = context.frame.loops[-1].continued if context.frame.loops else None
    if states is not None:
        states.append((scaled(context.path, context.meter.reach)[1], dict(context.frame.names)))
    context.stop()


def read_function_definition(context: Context, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Bind a function inside a function; its body is read where it is called, its defaults and decorators here."""
    for decorator in node.decorator_list:
        evaluate(context, decorator)
    for default in (*node.args.defaults, *node.args.kw_defaults):
        if default is not None:
            evaluate(context, default)
    context.meter.spend(primitive("def"))
    context.frame.bind(node.name, Value("user-function", name=node.name, payload=(node, context.frame)))


def read_class_definition(context: Context, node: ast.ClassDef) -> None:
    """Read the body of a class inside a function."""
    context.meter.spend(primitive("class"))
    names, held = context.frame.names, context.frame.held
    context.frame.restore(dict(names), held)
    execute(context, node.body)
    context.frame.restore(names, held)
    context.frame.bind(node.name, Value("unknown"))


def read_delete(context: Context, node: ast.Delete) -> None:
    """Forget the values of deleted names, and take deleted items out of their containers."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            context.frame.bind(target.id, UNKNOWN)
        elif isinstance(target, ast.Subscript):
            remove_item(context, target)


def read_assert(context: Context, node: ast.Assert) -> None:
    """Read an assertion, which is expected to hold."""
    evaluate(context, node.test)
    context.meter.spend(primitive("branch"))
