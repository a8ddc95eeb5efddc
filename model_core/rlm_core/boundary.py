"""The boundary around a unit: whatever goes wrong inside costs that unit its answer, and is logged once.

Analysis, prediction and rendering of units run inside :func:`guarded` or :func:`each`, or end in :func:`absorb`.
Errors that the user can fix (``RlmError``) and work that is given up (``StoppedError``) pass. A unit that is too
complex has no answer, which is not a failure and is not logged. The log names exceptions and locations in installed
code; it has no message of an exception, which may quote the user's code. With ``RLM_LSP_STRICT=1`` in the environment,
as in our tests, failures are raised.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import TypeVar

from .errors import RlmError, StoppedError, TooComplexError

STRICT = "RLM_LSP_STRICT"
LOGGER = __name__
_log = logging.getLogger(LOGGER)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_PASSED = (RlmError, StoppedError)
_FIRST_FRAMES, _LAST_FRAMES = 6, 14  # of a traceback; a recursion has a thousand
_MOST_CAUSES = 3
_FEW_CALLS = 10  # of one function within each other, outside a recursion
_OURS = ("rlm_core", "rlm_lsp")
_MOST_FAILURES = 1_000  # that one process logs


def is_strict() -> bool:
    """Return whether failures are raised instead of being caught at the boundary."""
    return os.environ.get(STRICT, "").strip().lower() not in ("", "0", "false", "no", "off")


def absorb(what: str, error: Exception) -> None:
    """Log that ``what`` failed; called in an ``except`` block, which this leaves with ``error`` if it must pass."""
    if isinstance(error, TooComplexError):
        return
    if isinstance(error, _PASSED) or is_strict():
        raise error
    report(what, error)


def guarded(what: str, work: Callable[[], _Result], otherwise: Callable[[Exception], _Result]) -> _Result:
    """The result of ``work``; where it raises, the failure of ``what`` is logged and ``otherwise`` answers."""
    try:
        return work()
    except Exception as error:
        absorb(what, error)
        return otherwise(error)


def each(
    what: str,
    items: Sequence[_Item],
    work: Callable[[Sequence[_Item]], Sequence[_Result]],
    otherwise: Callable[[_Item, Exception], _Result],
) -> list[_Result]:
    """The results of ``work`` for a batch, one per item.

    Where it raises, the batch is halved until the items that fail are alone; ``otherwise`` answers for those.
    """
    try:
        return list(work(items))
    except Exception as error:
        is_passed = (isinstance(error, _PASSED) or is_strict()) and not isinstance(error, TooComplexError)
        if len(items) < 2 or is_passed:
            absorb(what, error)
            return [otherwise(item, error) for item in items]
    middle = len(items) // 2
    return [result for part in (items[:middle], items[middle:]) for result in each(what, part, work, otherwise)]


class _Reported:
    """The failures that were logged: ``what`` once per location, the traceback of a location once."""

    def __init__(self) -> None:
        self._failures: set[tuple[str, str]] = set()
        self._locations: set[str] = set()
        self._lock = Lock()

    def add(self, what: str, location: str) -> tuple[bool, bool]:
        """Record a failure; return whether it is new, and whether its location is."""
        with self._lock:
            if (what, location) in self._failures or len(self._failures) >= _MOST_FAILURES:
                return False, False
            is_new = location not in self._locations
            self._failures.add((what, location))
            self._locations.add(location)
            return True, is_new


_reported = _Reported()


def report(what: str, error: BaseException) -> None:
    """Log that ``what`` failed, once per location of the failure; with a traceback the first time at a location."""
    location = location_of(error)
    is_new, is_new_location = _reported.add(what, location)
    if is_new:
        lines = [f"{_printable(what)} failed: {location}", *(_traceback(error) if is_new_location else ())]
        _log.error("%s", "\n".join(lines))


def location_of(error: BaseException) -> str:
    """An exception in one line: its class, and where in our code it was raised."""
    frames = _frames(error)
    name = type(error).__name__
    if not frames:
        return name
    ours = [frame for frame in frames if frame[0].startswith(_OURS) and frame[0] != _shown(__file__)] or frames
    file, line, function = ours[-1]
    if isinstance(error, RecursionError):
        # Which frame is one too many depends on the text: the function that calls itself is the location.
        [((itself, calls_itself), times)] = Counter((at, of) for at, _, of in ours).most_common(1)
        if times > _FEW_CALLS:
            return f"{name} in {itself} ({calls_itself})"
    return f"{name} in {file}:{line} ({function})"


def _traceback(error: BaseException) -> list[str]:
    """The frames of an exception and of those that caused it, outermost first, without lines of code."""
    lines: list[str] = []
    cause: BaseException | None = error
    for number in range(_MOST_CAUSES):
        if cause is None:
            break
        if number:
            lines.append(f"  after {location_of(cause)}:")
        shown = [
            f"  {file}:{line} in {function}{f' ({times} times)' if (times := len(list(equal))) > 1 else ''}"
            for (file, line, function), equal in groupby(_frames(cause))
        ]
        if len(shown) > _FIRST_FRAMES + _LAST_FRAMES:
            left = len(shown) - _FIRST_FRAMES - _LAST_FRAMES
            shown = [*shown[:_FIRST_FRAMES], f"  ... {left} more ...", *shown[-_LAST_FRAMES:]]
        lines += shown
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return lines


def _frames(error: BaseException) -> list[tuple[str, int, str]]:
    """File, line and function of each frame, outermost first."""
    walked = traceback.walk_tb(error.__traceback__)
    return [(_shown(frame.f_code.co_filename), line, frame.f_code.co_name) for frame, line in walked]


@lru_cache(256)
def _shown(file: str) -> str:
    """A file of installed code below the folder that it is imported from; others by their name alone."""
    path = Path(file)
    for folder in sorted(sys.path, key=len, reverse=True):
        if folder and path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
