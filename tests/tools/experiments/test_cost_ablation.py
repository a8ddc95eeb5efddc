"""The ablation of the cost analysis: all variants answer the same rows, and the model without it has no gain."""

from __future__ import annotations

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource

from tools.experiments.cost_ablation import Function, report

pytestmark = pytest.mark.extras

SOURCE = b"""
def total(values):
    found = 0
    for value in values:
        found += value
    return found


def fixed():
    return [number * number for number in range(1000)]


def twice(values):
    return total(values) + total(values)


def ordered(values):
    return sorted(values, key=str)
"""


@pytest.fixture(scope="module")
def lines() -> list[dict[str, str]]:
    """The lines of the table by column, of two packages with the same four functions."""
    units = Analyser().analyse(ParsedSource(SOURCE, "python"))
    functions = [
        Function(package, unit.code, {"latency": 1e-6 * place * scale, "memory": 100.0 * place})
        for package, scale in (("one", 1.0), ("other", 1.5))
        for place, unit in enumerate((unit for unit in units if unit.unit.kind == "function"), 1)
    ]
    head, *rows = report(functions)[0]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_all_variants_answer_the_same_rows(lines: list[dict[str, str]]) -> None:
    for metric in ("latency", "memory"):
        rows = {line["functions"]: int(line["rows"]) for line in lines if line["metric"] == metric}
        assert rows["all"] == 8 == rows["fixed"] + rows["others"]
        for group in rows:
            own = [line for line in lines if (line["metric"], line["functions"]) == (metric, group)]
            assert len({line["variant"] for line in own}) == len(own) == 4
            assert {int(line["rows"]) for line in own} == {rows[group]}


def test_only_the_analysis_alone_has_no_band_and_the_row_to_compare_with_no_gain(lines: list[dict[str, str]]) -> None:
    for line in lines:
        assert (line["80 % covers"] == "") == (line["variant"] == "the cost analysis alone")
        if line["variant"] == "without the cost analysis":
            assert line["gain"] == ""


def test_the_analysis_knows_what_the_text_fixes(lines: list[dict[str, str]]) -> None:
    assert {line["rows"] for line in lines if line["functions"] == "fixed" and line["metric"] == "latency"} == {"2"}
