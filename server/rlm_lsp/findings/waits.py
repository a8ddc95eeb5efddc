"""Waits that the text of a unit shows, without a model and an earlier revision: facts -> findings.

A wait in a loop over an input takes longer than all computing around it, and a coroutine that sleeps without ``await``
stops all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import LoopWait, WaitKind, WorkFacts

from rlm_lsp.budgets.rules import Rules
from rlm_lsp.history.comparison import UnitDiff
from rlm_lsp.rendering.loop_wait_words import blocking_sleep_message, groups, loop_wait_message

from .finding import OF_COMPARISONS, Finding

_COROUTINE = re.compile(r"^(?:\s*(?:@|#).*\n)*\s*async\s+def\b")
_SLEEPS = frozenset({"time.sleep", "sleep"})


def wait_findings(units: Sequence[AnalysedUnit], rules: Sequence[Rules], diffs: Sequence[UnitDiff]) -> list[Finding]:
    """The findings about the waits of units that are new or edited, without those that their earlier texts have."""
    return [
        replace(finding, work=analysed.code.work, first_line=analysed.unit.span.start_line)
        for analysed, of_unit, diff in zip(units, rules, diffs, strict=True)
        if diff.is_edit and "latency" not in of_unit.ignored and analysed.code.work is not None
        for finding in _of_unit(analysed, analysed.code.work, diff.before.work if diff.before is not None else None)
    ]


def _of_unit(analysed: AnalysedUnit, work: WorkFacts, before: WorkFacts | None) -> list[Finding]:
    unit, known = analysed.unit, {_key(wait) for wait in before.loop_waits} if before is not None else set()
    findings = [
        Finding(
            "wait-in-loop",
            OF_COMPARISONS,
            loop_wait_message(unit, group),
            unit.name,
            unit.qualname,
            "latency",
            f"{first.kind.value} {first.over}",
        )
        for first, group in groups(work)
        if any(_key(wait) not in known for wait in group)
    ]
    lines = blocking_sleeps(analysed.code.text, work)
    if lines and not (before is not None and any(wait.call in _SLEEPS for wait in before.waits)):
        message = blocking_sleep_message(unit, lines)
        findings.append(Finding("blocking-sleep", OF_COMPARISONS, message, unit.name, unit.qualname, "latency"))
    return findings


def blocking_sleeps(text: str, work: WorkFacts) -> list[int]:
    """The 0-based lines of a coroutine in which it sleeps without ``await``."""
    if not _COROUTINE.match(text):
        return []
    lines = text.splitlines()
    return sorted(
        {
            wait.line
            for wait in work.waits
            if wait.kind is WaitKind.TIME and wait.call in _SLEEPS and not _is_awaited(lines, wait.line)
        }
    )


def _is_awaited(lines: Sequence[str], line: int) -> bool:
    return line < len(lines) and re.search(r"\bawait\b", lines[line]) is not None


def _key(wait: LoopWait) -> tuple[WaitKind, str]:
    return wait.kind, wait.call.rpartition(".")[2]
