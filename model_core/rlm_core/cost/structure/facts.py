"""Work facts from an outline, for languages without an interpreter here: literal loops, growth, endless loops.

In: a text in any language with a grammar. Out: rough facts. They state a least time only where an uncommon amount of
work is certain to run, and never that a cost is fully known: ``nodes`` is 0 and every call counts as unknown.
"""

from __future__ import annotations

import re

from rlm_core.source import languages
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Amount, Cause, CauseKind, CostFacts, Growth, WorkFacts

from .growth import Order, loop_order, orders
from .outline import MAX_BYTES, outline
from .parts import Loop, Outline, Routine
from .roots import Roots

# Seconds per round of a loop with a small body, on a server CPU of 3 GHz: (least, likely). Compilers remove loops whose
# result they can compute, so compiled languages have no least time.
_SECONDS = {
    "c": (0.0, 1e-9),
    "cpp": (0.0, 1e-9),
    "rust": (0.0, 1e-9),
    "swift": (0.0, 1e-9),
    "go": (2e-10, 1e-9),
    "java": (0.0, 1e-9),
    "csharp": (0.0, 1e-9),
    "kotlin": (0.0, 1e-9),
    "scala": (0.0, 1e-9),
    "javascript": (2e-10, 2e-9),
    "typescript": (2e-10, 2e-9),
    "php": (3e-9, 2e-8),
    "ruby": (1e-8, 5e-8),
    "python": (1e-8, 4e-8),
}
_FEWEST_ROUNDS = 1_000.0
_MOST_ROUNDS = 1e15
_MOST_CAUSES = 6
_MOST_NAME = 60
_LEAVES = re.compile(rb"\b(?:break|return|throw|raise|panic|exit|yield|goto)\b|\?;")
_CATCHES = re.compile(r"\b(?:except|catch|rescue|recover)\b")
_DECIDES = re.compile(rb"\b(?:if|unless|switch|match|case|return|throw|raise)\b")


def outline_facts(text: str, language: str) -> WorkFacts | None:
    """The facts of a unit; None for a language without a grammar.

    Raises:
        SourceError: the language is unknown.
    """
    if languages.by_name(language).grammar is None:
        return None
    # No more of it is read, and parsing the rest would take as long as it did to find the unit.
    structure = outline(ParsedSource(text.encode("utf-8", "replace")[:MAX_BYTES], language))
    seconds = _SECONDS.get(language, (0.0, 1e-9))
    known, causes = _literal_work(structure, seconds)
    endless = next((loop.line for loop in structure.loops() if loop.kind == "endless"), None)
    if _CATCHES.search(text):
        endless = None  # an error may end the loop
    calls = float(sum(1 for _ in structure.calls()))
    latency = CostFacts(known, known.likely, known.likely, _growth(structure), causes)
    return WorkFacts(latency=latency, endless=endless, unknown_calls=max(calls, 1.0))


def _literal_work(structure: Outline, seconds: tuple[float, float]) -> tuple[Amount, tuple[Cause, ...]]:
    """The time of loops over literal ranges, and the largest of them."""
    least = likely = 0.0
    causes = []
    for routine in structure.routines:
        inner = {id(loop.parent) for loop in routine.loops if loop.count is not None and loop.parent is not None}
        for loop in routine.loops:
            rounds, is_literal = _rounds(loop)
            if rounds < _FEWEST_ROUNDS or id(loop) in inner:
                continue
            if is_literal and _is_certain(loop, routine, structure):
                least += rounds * seconds[0]
            likely += rounds * seconds[1]
            name = " ".join(loop.header.split())[:_MOST_NAME]
            causes.append(Cause(CauseKind.LOOP, loop.line, name, rounds * seconds[1], rounds))
    causes.sort(key=lambda cause: -cause.amount)
    return Amount(least, likely, likely), tuple(causes[:_MOST_CAUSES])


def _rounds(loop: Loop) -> tuple[float, bool]:
    """How often the body of a loop runs if loops of unknown length run once, and whether there are none of these."""
    rounds, is_literal = 1.0, True
    entry: Loop | None = loop
    while entry is not None:
        is_literal = is_literal and entry.count is not None
        rounds = min(rounds * (entry.count if entry.count is not None else 1.0), _MOST_ROUNDS)
        entry = entry.parent
    return (rounds if loop.count is not None else 0.0), is_literal


def _is_certain(loop: Loop, routine: Routine, structure: Outline) -> bool:
    """Return whether a loop runs in full each time that the text runs: nothing before or in it decides otherwise."""
    if routine.name not in ("", "main", "Main") and len(structure.routines) > 2:
        return False
    outermost = loop
    while outermost.parent is not None:
        outermost = outermost.parent
    before = structure.source[routine.start : outermost.start]
    return _DECIDES.search(before) is None and _LEAVES.search(structure.source[outermost.start : outermost.end]) is None


def _growth(structure: Outline) -> tuple[Growth, ...]:
    """The growth of the routine that grows fastest, by the inputs that bound its deepest loops where they are known."""
    top = max(orders(structure), default=Order())
    if top.base > 1:
        return (Growth("", 0.0, 0.0, top.base),)
    if top == Order():
        return ()
    roots = Roots(structure)
    names = list(roots.parameters)
    for loop in structure.loops():
        if loop_order(loop) != top:
            continue
        factors: dict[str, float] = {}
        entry: Loop | None = loop
        while entry is not None:
            step = loop_order(entry).degree - loop_order(entry.parent).degree
            root = roots.of(entry.bound).removesuffix("[]")
            name = names[int(root)] if root.isdigit() else ""
            if step:
                factors[name] = factors.get(name, 0.0) + step
            entry = entry.parent
        if factors:
            first, *rest = sorted(factors.items(), key=lambda item: -item[1])
            return (Growth(first[0], first[1], top.logs), *(Growth(name, power) for name, power in rest))
    return (Growth("", top.degree, top.logs),)
