"""Units of two versions of a file -> which is which, and a model that can tell what a change costs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import CodeText, Query

if TYPE_CHECKING:
    # It takes numpy, which the server's start must not.
    from rlm_core.inference.cost_ratio import Change


class Comparing(Protocol):
    """Predicts by how much a cost changes between two texts."""

    def changes(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[Change]]:
        """How ``queries[i]`` change from the first to the second text of ``pairs[i]``."""
        ...


def comparing(predictor: object) -> Comparing | None:
    """The part of a predictor that compares, below what was measured on this machine; None when it has none.

    A ratio is the same on all processors, so it needs no scaling to this one.
    """
    while predictor is not None and not callable(getattr(predictor, "changes", None)):
        predictor = getattr(predictor, "base", None)
    found: Comparing | None = predictor  # type: ignore[assignment] # it has the method
    return found


def earlier(before: Sequence[AnalysedUnit], after: Sequence[AnalysedUnit]) -> list[AnalysedUnit | None]:
    """What each unit of ``after`` was in ``before``: the one of its kind and qualified name; None for a new one.

    Of several with one name the unchanged ones are paired first, the others in their order. A file's only program is
    itself by any name.
    """
    left: dict[Hashable, list[AnalysedUnit]] = {}
    for entry in before:
        left.setdefault(_key(entry, before), []).append(entry)
    found: list[AnalysedUnit | None] = [None] * len(after)
    for only_same in (True, False):
        for number, entry in enumerate(after):
            candidates = left.get(_key(entry, after), []) if found[number] is None else []
            match = next((other for other in candidates if not only_same or same(other.code, entry.code)), None)
            if match is not None:
                found[number] = match
                candidates.remove(match)
    return found


def same(before: CodeText, after: CodeText) -> bool:
    """Whether two texts and what they call are the same, but for line ends."""
    return _plain(before) == _plain(after)


def _key(entry: AnalysedUnit, units: Sequence[AnalysedUnit]) -> Hashable:
    unit = entry.unit
    only = unit.kind == "program" and sum(other.unit.kind == "program" for other in units) == 1
    return unit.kind, unit.language, "" if only else unit.qualname


def _plain(code: CodeText) -> tuple[object, ...]:
    callees = tuple((callee.text.replace("\r\n", "\n"), callee.level) for callee in code.callees)
    return code.language, code.basis, code.text.replace("\r\n", "\n"), callees
