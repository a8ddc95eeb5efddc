"""Waits in loops: which waits of a loop's body happen once for each item of an input.

A loop that the text bounds, such as one over a short list, is left out, and so is one that tries again, one over
batches, and what runs at the same time as other iterations. Waits are those of the library's tables and, only here,
of calls that usually wait.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from rlm_core.types import WaitKind

from ..domain.context import Context
from ..domain.meter import Meter, PendingWait
from ..domain.quantities import Quantity
from ..domain.records import replace
from ..domain.syntax import LoopNode, called_name, walk
from ..domain.values import Value
from ..library.usual_waits import DATABASES, READING, Chain, chain_of, is_by_method, is_query, may_wait, usual_wait

_MEDIA = frozenset({WaitKind.DATABASE, WaitKind.NETWORK, WaitKind.PROCESS})
# A wait of fewer iterations is not one of the loop.
_LEAST_SHARE = 0.1
_MOST_HOPS = 3
_MOST_TEXT = 60
_ENDS = (ast.Return, ast.Break, ast.Raise)
_ALIKE = frozenset({"list", "tuple", "set", "sorted", "reversed", "enumerate", "iter", "tqdm", "AsyncIter", "zip"})
_VIEWS = frozenset({"items", "values", "keys", "iterator", "all", "iteritems"})
_BATCHES = ("chunk", "batch")
_ARRIVING = frozenset({"sys.stdin", "sys.stdin.buffer", "stdin"})  # messages that another program sends as it goes
_POOLED = frozenset({"map", "starmap", "imap", "imap_unordered"})
_JOINED = frozenset({"wait", "communicate", "join", "result"})
_TRIES = re.compile(r"retr(y|ies)|attempt|tries")
_BLOCKING = ("requests.", "subprocess.", "urllib.", "os.", "time.")


def note_usual_wait(context: Context, node: ast.Call, target: Value, receiver: Value | None) -> None:
    """Note a call that usually waits, of which the tables and the program say nothing."""
    if not _is_in_loop(context) or not may_wait(node):
        return
    if target.kind in ("user-function", "class") or (receiver is not None and receiver.kind not in _OPEN):
        return
    if any(wait.line == context.frame.line and not wait.by_name for wait in context.meter.waits):
        return
    chain, is_awaited = chain_of(node.func), node in context.awaited
    kind = usual_wait(node, chain, is_awaited=is_awaited)
    if kind is None and (known := written_chain(context, node.func)) != chain:
        kind = usual_wait(node, known, is_awaited=is_awaited)
    if (
        kind is None
        and len(chain) == 1
        and chain[0] in READING
        and node.args
        and is_query(written_chain(context, node.args[0]))
    ):
        kind = WaitKind.DATABASE
    if kind is WaitKind.DATABASE and chain and is_by_method(chain) and not context.frame.scope.imports_any(DATABASES):
        return
    if kind is not None:
        context.meter.wait(kind, context.frame.line, ast.unparse(node.func)[-_MOST_TEXT:], None, by_name=True)


_OPEN = frozenset({"unknown", "object", "class", "module", "function", "user-function", "iterator"})


def note_reading(context: Context, iterable: ast.expr) -> None:
    """Note the wait of a loop over a query, which is sent when the loop begins."""
    if _is_in_loop(context) and is_query(written_chain(context, iterable)):
        line = context.frame.line if context.frame.depth else iterable.lineno - 1
        context.meter.wait(WaitKind.DATABASE, line, ast.unparse(iterable)[:_MOST_TEXT], None, by_name=True)


def _is_in_loop(context: Context) -> bool:
    """Return whether a loop of the analysed function runs what is read now."""
    return bool((context.open[0] if context.open else context.frame).loops)


def written_chain(context: Context, node: ast.expr) -> Chain:
    """The names of an expression, where a local name stands for what it was assigned first."""
    chain = chain_of(node)
    function = context.frame.node
    for _ in range(_MOST_HOPS):
        value = _assigned(function, chain[0].removesuffix("()")) if chain and function is not None else None
        first = chain_of(value) if value is not None else ()
        if not first or first[0] == chain[0]:
            break
        chain = (*first, *chain[1:])
    return chain


def _assigned(function: ast.AST, name: str) -> ast.expr | None:
    for node in walk(function):
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets):
            return node.value
    return None


_RELATIONS = {
    "ForeignKey(": "select_related", "OneToOneField(": "select_related", "relationship(": "joinedload",
}  # fmt: skip
"""A field of a model -> what reads its row with the query of a loop."""


def _note_relations(context: Context, body: Meter, node: ast.For | ast.AsyncFor | ast.comprehension) -> None:
    """Note the queries of attributes that are related rows: of the items of a query whose model the file has."""
    if not (isinstance(node.target, ast.Name) and is_query(written_chain(context, node.iter))):
        return
    query = _written(context, node.iter)
    scope = context.frame.scope
    models = [name.id for name in walk(query) if isinstance(name, ast.Name) and scope.is_class(name.id)]
    loaded = {word for part in walk(query) for word in _words_of(part)}
    statements = node.body if isinstance(node, (ast.For, ast.AsyncFor)) else []
    for inner in (part for statement in statements for part in walk(statement)):
        row = inner.value if isinstance(inner, ast.Attribute) else None
        if not (isinstance(row, ast.Attribute) and isinstance(row.value, ast.Name)):
            continue
        if row.value.id != node.target.id or row.attr in loaded:
            continue
        made = next(filter(None, (scope.constant(f"{model}.{row.attr}") for model in models)), "")
        loaded_by = next((cure for field, cure in _RELATIONS.items() if field in made), "")
        if loaded_by:
            always = (1.0, 1.0, 1.0)
            wait = PendingWait(WaitKind.DATABASE, row.lineno - 1, ast.unparse(row), None, always, by_name=True)
            body.waits.append(replace(wait, loaded_by=loaded_by))
            loaded.add(row.attr)


def _written(context: Context, node: ast.expr) -> ast.expr:
    """The expression that a local name was assigned first, else the expression itself."""
    function = context.frame.node
    value = _assigned(function, node.id) if isinstance(node, ast.Name) and function is not None else None
    return node if value is None else value


def _words_of(part: ast.AST) -> Iterator[str]:
    """The attributes that a part of a query names: ``"customer__address"``, ``Order.customer``."""
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        yield from part.value.split("__")
    elif isinstance(part, ast.Attribute):
        yield part.attr


def mark(context: Context, body: Meter, node: ast.For | ast.AsyncFor | ast.comprehension, trips: Quantity) -> None:
    """Mark the waits of a loop's body, an iteration of it, that each item of an input causes."""
    if not context.frame.depth:
        _note_relations(context, body, node)
    if context.frame.depth or body.parallel or not body.waits or trips.exact is not None or _is_bounded(node):
        return
    function = context.frame.node
    for index, wait in enumerate(body.waits):
        if (
            wait.kind in _MEDIA
            and not (wait.over or wait.background or wait.on_error or _is_side_by_side(node.target, wait.call))
            and wait.share[1] >= _LEAST_SHARE
            and not (isinstance(node, (ast.For, ast.AsyncFor)) and _is_rare(node.body, wait.line))
            and (not isinstance(function, ast.AsyncFunctionDef) or _blocks(function, wait.line, wait.call))
        ):
            body.waits[index] = replace(wait, over=_text(node.iter))


def _is_bounded(node: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Return whether a loop runs a fixed number of times, over batches or arriving lines, or until it succeeds."""
    iterable = node.iter
    called = chain_of(iterable.func)[-1:] if isinstance(iterable, ast.Call) else ()
    names = " ".join((ast.unparse(node.target), *called)).lower()
    if isinstance(iterable, (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Constant)):
        return True
    if ast.unparse(iterable) in _ARRIVING:
        return True
    if isinstance(iterable, ast.Name) and iterable.id[:1].isupper():
        return True  # a constant, or the members of a class
    if any(name in names for name in _BATCHES):
        return True
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id == "range":
        leaves = isinstance(node, ast.For) and any(isinstance(inner, _ENDS) for inner in walk(node))
        return leaves or len(iterable.args) > 2
    return False


def _is_side_by_side(target: ast.expr, call: str) -> bool:
    """Return whether what a call waits for runs at the same time as other work: in a pool, or begun before the loop."""
    owner, _, method = call.rpartition(".")
    names = {name.id for name in walk(target) if isinstance(name, ast.Name)}
    return method in _POOLED or (method in _JOINED and owner in names)


def _is_rare(block: Sequence[ast.stmt], line: int) -> bool:
    """Return whether few iterations of a loop reach a line of its body.

    The loop is over once it has run, since its block ends with ``return`` or ``break``, or it runs once per batch.
    """
    for statement in block:
        if not _has_line(statement, line):
            continue
        if isinstance(block[-1], _ENDS):
            return True
        if isinstance(statement, ast.Try) and statement.orelse and isinstance(statement.orelse[-1], _ENDS):
            return True
        if isinstance(statement, ast.If) and _is_full(statement.test) and not _has_line(statement.test, line):
            return True
        return any(_is_rare(inner, line) for inner in _blocks_of(statement))
    return False


def is_blocking(call: str) -> bool:
    """Return whether a call waits in a coroutine although it is not awaited."""
    return call.startswith(_BLOCKING)


def _has_line(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno - 1 <= line <= (node.end_lineno or node.lineno) - 1


def _is_full(test: ast.expr) -> bool:
    """Return whether a condition holds once per batch: ``len(rows) >= 1000``, ``count % 100 == 0``."""
    return isinstance(test, ast.Compare) and any(
        (isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id == "len")
        or (isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod))
        for side in (test.left, *test.comparators)
    )


def _blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _blocks(function: ast.AsyncFunctionDef, line: int, call: str) -> bool:
    """Return whether a coroutine waits in a line: what is not awaited there runs later, unless it cannot be awaited."""
    if is_blocking(call):
        return True
    return any(
        (isinstance(node, ast.Await) and _has_line(node, line))
        or (isinstance(node, (ast.AsyncWith, ast.AsyncFor)) and node.lineno - 1 == line)
        for node in walk(function)
    )


def _text(iterable: ast.expr) -> str:
    """What a loop runs over, as it is written, without what does not change the items."""
    while isinstance(iterable, ast.Call):
        function = iterable.func
        if isinstance(function, ast.Name) and function.id in _ALIKE and iterable.args:
            iterable = iterable.args[0]
        elif isinstance(function, ast.Attribute) and function.attr in _VIEWS and not iterable.args:
            iterable = function.value
        else:
            break
    text = " ".join(ast.unparse(iterable).split())
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"


def note_tries(node: LoopNode, meter: Meter) -> None:
    """Note of the sleeps in a loop over tries that they follow an error: most calls leave it at the first try."""
    if _sleeps_before_another_try(node):
        meter.waits = [replace(wait, on_error=wait.on_error or wait.kind is WaitKind.TIME) for wait in meter.waits]


def _sleeps_before_another_try(node: LoopNode) -> bool:
    heads = [node.test] if isinstance(node, ast.While) else [node.target, node.iter]
    if not any(_TRIES.search(ast.unparse(head).lower()) for head in heads):
        return False
    handled = {part for handler in walk(node) if isinstance(handler, ast.ExceptHandler) for part in walk(handler)}
    parts = [part for statement in node.body for part in walk(statement) if part not in handled]
    exits = [part.lineno for part in parts if isinstance(part, (ast.Return, ast.Break))]
    sleeps = [part.lineno for part in parts if isinstance(part, ast.Call) and called_name(part).endswith("sleep")]
    return bool(exits and sleeps) and min(exits) < min(sleeps)
