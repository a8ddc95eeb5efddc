"""The charts of the report: which points they have, and what happens with very many rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rlm_core.training.evaluation.measured_report import Coverage, TaskSummary
from rlm_core.types import Metric
from rlm_lsp.rendering import report_figures as figures
from rlm_lsp.rendering.report_figures import MOST_UNITS, treemaps

from tests.rlm_core.training.evaluation.test_measured_report import answered

pytestmark = pytest.mark.timeout(60)


def test_before_and_after_are_paired_by_task() -> None:
    first = TaskSummary("call latency", 100, 4, 0.7, 2.5, 0.75)
    other = TaskSummary("call memory", 100, 4, 0.6, 3.0, 0.8)
    chart = figures.tuning([first, other], [replace(first, error=1.8)])
    before, after = (trace for trace in chart.figure.data if trace.mode == "markers")
    assert (before.name, list(before.x), list(before.y)) == ("before", [2.5], ["call latency"])
    assert (after.name, list(after.x), list(after.y)) == ("after", [1.8], ["call latency"])


def test_a_group_that_misses_its_coverage_has_another_colour() -> None:
    chart = figures.coverage([Coverage("a", 50, 0.8, 0.67, 0.89), Coverage("b", 50, 0.4, 0.28, 0.54)])
    first, second = chart.figure.data[0].marker.color
    assert first != second
    assert list(chart.figure.data[0].y) == ["a (50)", "b (50)"]


def test_a_scatter_is_a_sample_of_very_many_rows() -> None:
    rows = [answered(1e-6 * (number + 1)) for number in range(figures.MOST_POINTS + 500)]
    chart = figures.scatter("latency", rows)
    assert len(chart.figure.data[1].x) == figures.MOST_POINTS
    assert chart.figure == figures.scatter("latency", rows).figure
    assert chart.figure.layout.xaxis.type == "log"


@pytest.mark.parametrize(
    ("metric", "values", "ticks"),
    [
        ("latency", (3e-7, 2e-3), "100 ns, 1 µs, 10 µs, 100 µs, 1 ms, 10 ms"),
        ("latency", (0.4, 3.0), "100 ms, 200 ms, 500 ms, 1 s, 2 s, 5 s, 10 s, 20 s, 50 s"),
        ("memory", (100.0, 3e6), "32 B, 1 KiB, 32 KiB, 1 MiB, 32 MiB"),
        ("accuracy", (0.903, 0.941), "90 %, 91 %, 92 %, 93 %, 94 %, 95 %"),
        ("accuracy", (0.1, 0.9), "0 %, 20 %, 40 %, 60 %, 80 %, 100 %"),
    ],
)
def test_axes_write_numbers_as_hints_do(metric: Metric, values: tuple[float, float], ticks: str) -> None:
    rows = [replace(answered(value, value), row=replace(answered(value).row, metric=metric)) for value in values]
    layout = figures.scatter(metric, rows).figure.layout
    for axis in (layout.xaxis, layout.yaxis):
        assert ", ".join(axis.ticktext) == ticks
        assert len(axis.tickvals) == len(axis.ticktext)


def test_a_treemap_joins_what_is_small_and_keeps_the_sum() -> None:
    rows = []
    for number in range(MOST_UNITS + 50):
        one = answered(1e-6 * (number + 1))
        rows.append(replace(one, row=replace(one.row, path=("shop", f"m{number % 7}", f"f{number}"))))
    title, chart = next(treemaps(rows))
    assert title == "functions: measured latency"
    [trace] = chart.figure.data
    value = dict(zip(trace.ids, trace.values, strict=True))
    assert value["all"] == pytest.approx(sum(one.measured for one in rows))
    # The fifty cheapest are one.
    assert value["all/(smaller ones)"] == pytest.approx(sum(1e-6 * (number + 1) for number in range(50)))
    assert len(value) == MOST_UNITS + 10


def test_two_units_of_one_name_are_two_leaves() -> None:
    rows = [answered(1e-3), answered(2e-3)]
    _, chart = next(treemaps(rows))
    [trace] = chart.figure.data
    assert {
        name: value for name, value in zip(trace.ids, trace.values, strict=True) if name.startswith("all/shop/")
    } == {
        "all/shop/f": 2e-3,
        "all/shop/f'": 1e-3,
    }
