"""Sentences about waits in loops: what each item of an input waits for, and what usually makes one wait of many.

Input: a unit and its facts. Output: lines of the hover and messages of findings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rlm_core.types import LoopWait, Unit, WaitKind, WorkFacts

from . import labels
from .escaping import printable
from .work_words import WAITED_FOR, and_words, code, file_line, lines_of, plain

_MOST_CURED = 2
_AWAITED = "`asyncio.gather` waits for all of them at the same time"
_THREADS = "a `ThreadPoolExecutor` does it for several items at the same time"
_ONE_QUERY = "one query before the loop reads all of them"
# The last name of the call that waits -> what does the same for many items at once.
_DJANGO: Mapping[str, str] = {
    **dict.fromkeys(("create", "get_or_create", "acreate"), "`bulk_create` does it for all at once"),
    **dict.fromkeys(("update_or_create", "save", "asave"), "`bulk_create` or `bulk_update` does it for all at once"),
    "delete": "one `delete` of a filtered query does it for all at once",
    "update": "one `update` of a filtered query, or `bulk_update`, does it for all at once",
    **dict.fromkeys(("get", "first", "aget", "afirst"), "`in_bulk`, or one query before the loop, reads all of them"),
    **dict.fromkeys(("count", "exists"), "one `annotate` in the query of the loop counts for all"),
}
_SQLALCHEMY: Mapping[str, str] = {
    **dict.fromkeys(("commit", "flush"), "one `commit` after the loop does it for all at once"),
    **dict.fromkeys(("execute", "scalars", "scalar"), "one statement for all items does it at once"),
}
_MONGO: Mapping[str, str] = {
    "insert_one": "`insert_many` does it for all at once",
    **dict.fromkeys(("update_one", "delete_one", "replace_one"), "`bulk_write` does it for all at once"),
    "find_one": "one `find` before the loop reads all of them",
}
_CURSORS: Mapping[str, str] = {"execute": "`executemany`, or one statement for all items, does it at once"}
_ANY: Mapping[str, str] = {
    **dict.fromkeys(("commit", "flush"), "one `commit` after the loop does it for all at once"),
    **dict.fromkeys(("get", "first", "one", "one_or_none", "scalar", "count", "exists"), _ONE_QUERY),
    **dict.fromkeys(("fetch", "fetchrow", "fetchval"), _ONE_QUERY),
    "all": "`prefetch_related` or `selectinload` reads related rows with the query of the loop",
    **dict.fromkeys(("save", "asave", "get_or_create", "update_or_create"), _DJANGO["save"]),
    "delete": "one statement that deletes all of them does it at once",
}
_OF_DJANGO = re.compile(r"\.objects\b|_default_manager")
_OF_SQLALCHEMY = re.compile(r"session\b|\bquery\(|select\(")
_OF_CURSORS = re.compile(r"(?:^|[._])(?:cursor|cur|curs|conn|connection|con|engine|pool)\.\w+$")


def hover_lines(unit: Unit, work: WorkFacts | None) -> list[str]:
    """Return one line per kind of wait and loop, such as ``waits: database × `users` (line 12)``, with its cure."""
    lines = []
    for first, group in groups(work):
        text = f"waits: {labels.WAIT_WORDS[first.kind]} × {code(first.over)} ({lines_of(_lines(unit, group))})"
        cure = next(filter(None, map(_cure, group)), "")
        lines.append(f"{text}: {cure}" if cure else text)
    return lines


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
    """What usually replaces a wait per item; empty where nothing does in general, or the text does not show what."""
    if wait.kind is not WaitKind.DATABASE:
        return _AWAITED if wait.is_awaited else _THREADS
    if wait.loaded_by:
        return f"`{wait.loaded_by}` reads {code(wait.call)} with the query of the loop"
    method = wait.call.removesuffix("()").rpartition(".")[2]
    if "redis" in wait.call:
        return f"{'`mget` or ' if method == 'get' else ''}a `pipeline` sends all commands at once"
    if method in _MONGO:
        return _MONGO[method]
    for pattern, cures in ((_OF_DJANGO, _DJANGO), (_OF_SQLALCHEMY, _SQLALCHEMY), (_OF_CURSORS, _CURSORS)):
        if pattern.search(wait.call) and method in cures:
            return cures[method]
    return _ANY.get(method, "")
