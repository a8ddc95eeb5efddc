"""The lines on the screen, which are analysed before the rest of a long document that was just opened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition

from rlm_core.queries.analysis import AnalysedUnit

_PAUSE_SECONDS = 10.0  # that an analysis waits at most for the predictions of what is on the screen


class LinesOnScreen:
    """The lines of one document that requests wait for while its first analysis runs.

    The event loop asks, and the thread of the analysis answers. After an answer the analysis waits, since it would
    compete with the predictions for what it has answered, until it is asked again or :meth:`resume` is called.
    Implements :class:`rlm_core.queries.analysis.UrgentLines`.
    """

    def __init__(self) -> None:
        self._asked: deque[tuple[range, Callable[[list[AnalysedUnit]], None]]] = deque()
        self._taken: Callable[[list[AnalysedUnit]], None] = lambda units: None
        self._changed = Condition()
        self._is_paused = False

    def ask(self, lines: range, answer: Callable[[list[AnalysedUnit]], None]) -> None:
        """Have ``answer`` called, on the thread of the analysis, once the units of these lines are known."""
        with self._changed:
            self._asked.append((lines, answer))
            self._changed.notify()

    def take(self) -> range | None:
        """The lines of the next request; None where none waits and the rest of the text is to be analysed."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or not self._is_paused, _PAUSE_SECONDS)
            self._is_paused = False
            if not self._asked:
                return None
            lines, self._taken = self._asked.popleft()
        return lines

    def answer(self, units: list[AnalysedUnit]) -> None:
        """Answer the request that was taken last, and pause."""
        with self._changed:
            self._is_paused = True
        self._taken(units)

    def resume(self) -> None:
        """Have the rest of the text analysed."""
        with self._changed:
            self._is_paused = False
            self._changed.notify()
