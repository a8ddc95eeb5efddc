"""Rows of tables that an edit reads, computes or stores one at a time: facts -> findings.

Such a line costs ten to hundreds of times what an expression of whole columns takes. It is a finding where it is much
of the latency of a unit that is new or edited, and the earlier text has none of its kind.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlm_core.inference.cost_origins import curable_places
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.types import CodeText, CostOrigin, Cure

from rlm_lsp.budgets.rules import Rules
from rlm_lsp.history.comparison import UnitDiff
from rlm_lsp.rendering.finding_messages import row_by_row_message

from .finding import OF_COMPARISONS, Finding

OF_TABLES = frozenset({Cure.TUPLES, Cure.COLUMNS, Cure.VALUES, Cure.COLUMN, Cure.CONCAT})


def rewrite_findings(units: Sequence[AnalysedUnit], rules: Sequence[Rules], diffs: Sequence[UnitDiff]) -> list[Finding]:
    """The findings about tables of units that are new or edited, without those that their earlier texts have."""
    return [
        Finding(
            "row-by-row",
            OF_COMPARISONS,
            row_by_row_message(analysed.unit, place),
            analysed.unit.name,
            analysed.unit.qualname,
            "latency",
            cure.value,
            work=analysed.code.work,
            first_line=analysed.unit.span.start_line,
        )
        for analysed, of_unit, diff in zip(units, rules, diffs, strict=True)
        if diff.is_edit and "latency" not in of_unit.ignored
        for cure, place in _places(analysed.code).items()
        if diff.before is None or cure not in _places(diff.before)
    ]


def _places(code: CodeText) -> dict[Cure, CostOrigin]:
    """The most expensive place of a unit for each cure of tables."""
    found: dict[Cure, CostOrigin] = {}
    for place in curable_places(code):
        if place.cure in OF_TABLES:
            found.setdefault(place.cure, place)
    return found
