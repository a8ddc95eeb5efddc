"""Sentences about waits in loops: what each item of an input waits for, and what usually makes one wait of many.

Input: a unit and its facts. Output: lines of the hover and messages of findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlm_core.types import LoopWait, Unit, WaitKind, WorkFacts

from . import labels
from .escaping import printable
from .work_words import WAITED_FOR, and_words, code, file_line, lines_of, plain

_MOST_CURED = 2
_AWAITED = "`asyncio.gather` waits for all of them at the same time"
_THREADS = "a `ThreadPoolExecutor` does it for several items at the same time"
_ONE_QUERY = "one query before the loop reads all of them (in Django also `in_bulk`)"
# The last name of the call that waits -> what does the same for many items at once.
_CURES: Mapping[str, str] = {
    **dict.fromkeys(("save", "create", "get_or_create", "update_or_create", "add"), "`bulk_create` or `bulk_update`"),
    **dict.fromkeys(("commit", "flush"), "one `commit` after the loop"),
    **dict.fromkeys(("execute",), "`executemany`, or one statement for all items,"),
    "insert_one": "`insert_many`",
    **dict.fromkeys(("update_one", "delete_one", "replace_one"), "`bulk_write`"),
    "delete": "one `delete` of a filtered query",
    "update": "one `update` of a filtered query, or `bulk_update`,",
}
_READS = frozenset(
    {"get", "first", "one", "one_or_none", "scalar", "count", "exists", "find_one", "fetchrow", "fetchval"}
)
_RELATED = "`prefetch_related` or `joinedload` reads related rows with the query of the loop"


def hover_lines(unit: Unit, work: WorkFacts | None) -> list[str]:
    """Return one line per kind of wait and loop, such as ``waits: database × `users` (line 12)``."""
    return [
        f"waits: {labels.WAIT_WORDS[first.kind]} × {code(first.over)} ({lines_of(_lines(unit, group))})"
        for first, group in groups(work)
    ]


def loop_wait_message(unit: Unit, group: Sequence[LoopWait]) -> str:
    """``f waits for a database for each item of users (line 12, user.save): bulk_create does it for all at once``."""
    first = group[0]
    name = "this file" if unit.qualname == "<file>" else unit.qualname
    waited, over = WAITED_FOR[first.kind], printable(first.over)
    calls = and_words(list(dict.fromkeys(printable(wait.call) for wait in group))[:_MOST_CURED])
    text = f"{name} waits for {waited} for each item of {over} ({lines_of(_lines(unit, group))}, {calls})"
    cure = next(filter(None, map(_cure, group)), "")
    return plain(f"{text}: {cure}" if cure else text)


def groups(work: WorkFacts | None) -> list[tuple[LoopWait, list[LoopWait]]]:
    """The waits in loops by kind and loop, each with the first of them."""
    found: dict[tuple[WaitKind, str], list[LoopWait]] = {}
    for wait in work.loop_waits if work is not None else ():
        found.setdefault((wait.kind, wait.over), []).append(wait)
    return [(group[0], group) for group in found.values()]


def blocking_sleep_message(unit: Unit, lines: Sequence[int]) -> str:
    """``f calls time.sleep in a coroutine (line 3), which stops all other tasks: await asyncio.sleep instead``."""
    where = lines_of([file_line(unit, line) for line in lines])
    return (
        f"{unit.qualname} calls time.sleep in a coroutine ({where}), which stops all other tasks: await asyncio.sleep"
    )


def _lines(unit: Unit, group: Sequence[LoopWait]) -> list[int]:
    return sorted({file_line(unit, wait.line) for wait in group})


def _cure(wait: LoopWait) -> str:
    """What usually replaces a wait per item; empty where nothing does in general."""
    method = wait.call.removesuffix("()").rpartition(".")[2]
    if wait.kind is WaitKind.DATABASE:
        if "redis" in wait.call:
            return "a pipeline sends all commands at once"
        if method == "all":
            return _RELATED
        if method in _READS:
            return _ONE_QUERY
        return f"{_CURES[method]} does it for all at once" if method in _CURES else ""
    return _AWAITED if wait.is_awaited else _THREADS
