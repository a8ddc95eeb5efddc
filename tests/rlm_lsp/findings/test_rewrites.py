"""Findings about tables that an edit reads, computes or stores one row at a time."""

from __future__ import annotations

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.budgets.rules import Rules
from rlm_lsp.findings.finding import Finding
from rlm_lsp.findings.rewrites import rewrite_findings
from rlm_lsp.history.comparison import unit_diffs

COLUMNS = (
    "def total(orders):\n    return sum(price * count for price, count in zip(orders['price'], orders['count']))\n"
)
ROWS = "def total(orders):\n    return sum(row['price'] * row['count'] for _, row in orders.iterrows())\n"
STORED = ROWS.replace(
    "    return", "    for i in range(len(orders)):\n        orders.loc[i, 'seen'] = True\n    return"
)


def findings(before: str, after: str, rules: Rules | None = None) -> list[Finding]:
    old, new = (Analyser().analyse(ParsedSource(text.encode(), "python")) for text in (before, after))
    return rewrite_findings(new, [rules or Rules()] * len(new), unit_diffs(old, new))


@pytest.mark.parametrize("before", [COLUMNS, ""])
def test_rows_that_an_edit_reads_one_at_a_time_are_found_with_what_costs_less(before: str) -> None:
    [finding] = findings(before, ROWS)
    assert (finding.code, finding.severity, finding.qualname) == ("row-by-row", "information", "total")
    assert finding.message == (
        "much of the latency of total is from line 2, for _, row in orders.iterrows(): itertuples, or a zip of the"
        " columns, makes no Series for each row"
    )


def test_only_what_the_earlier_text_did_not_do_is_found() -> None:
    assert findings(ROWS, ROWS.replace("count'] f", "count'] + 1 f")) == []
    assert findings(ROWS, COLUMNS) == []
    assert [finding.budget for finding in findings(ROWS, STORED)] == ["column"]


def test_ignored_latency_has_no_finding() -> None:
    assert findings(COLUMNS, ROWS, Rules(ignored=frozenset({"latency"}))) == []
