"""How often a program runs a statement: ``time.sleep(1)`` is counted, by the analysis and by running the program."""

from __future__ import annotations

import sys
from types import FrameType, SimpleNamespace
from typing import Any

from rlm_core.cost.analysis import work_facts
from rlm_core.cost.scope import Texts
from rlm_core.types import Amount, WaitKind, WorkFacts

_MOST_LINES = 100_000


class TooLongError(Exception):
    """A program runs more lines than a test has time for."""


def facts_of(text: str, **functions: str) -> WorkFacts:
    """The facts of a text, next to functions that it may call by name."""
    facts = work_facts(text, Texts(functions))
    assert facts is not None
    return facts


def counted(facts: WorkFacts) -> Amount:
    """How often the analysis thinks that ``time.sleep(1)`` runs."""
    waits = [wait.seconds for wait in facts.waits if wait.kind is WaitKind.TIME and wait.seconds is not None]
    return Amount(
        sum(wait.least for wait in waits), sum(wait.likely for wait in waits), sum(wait.most for wait in waits)
    )


def count(text: str, **functions: str) -> Amount:
    """How often the analysis thinks that ``time.sleep(1)`` runs in a text."""
    return counted(facts_of(text, **functions))


def ran(text: str) -> int:
    """How often ``time.sleep`` runs when the function ``f()`` of a text is called.

    Raises:
        TooLongError: it runs too many lines.
    """
    calls = 0
    left = _MOST_LINES

    def sleep(seconds: float) -> None:
        nonlocal calls
        calls += 1

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooLongError
        return trace

    names: dict[str, Any] = {"time": SimpleNamespace(sleep=sleep)}
    exec(compile(text, "<program>", "exec"), names)
    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        names["f"]()
    finally:
        sys.settrace(outer)
    return calls
