"""The report of ``rlm-lsp report`` as one HTML file: figures, tables and the library that draws them.

Input: measured values with their predictions. Output: a page whose security policy lets it load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from plotly.offline import get_plotlyjs
from rlm_core.inference.cost_curve import curve_at, curve_of
from rlm_core.training.evaluation.measured_report import (
    Comparison,
    TaskSummary,
    calibration,
    coverage_by_group,
    surprises,
    task_summaries,
)
from rlm_core.types import METRICS_OF_BASIS, Metric

from . import labels, size_words
from . import report_figures as figures
from .curve_plot import curve_svg
from .report_figures import Chart

_MOST_CURVES = 60


@dataclass(frozen=True, slots=True)
class ReportContent:
    """The content of a report: measured values next to the model's predictions, and to those of the model ``before``.

    ``left_out`` counts the measurements that are not in it, by reason. ``about`` are the lines below its title.
    """

    answered: Sequence[Comparison]
    before: Sequence[Comparison]
    left_out: Mapping[str, int]
    about: Sequence[str]


def page(content: ReportContent) -> str:
    """The HTML file."""
    parts = [_numbers(content), *_calibration(content), *_scatters(content)]
    charts = [chart for _, of_part in parts for chart in of_part]
    html = "\n".join(text for text, _ in parts)
    table = _surprises(content) + _curves(content)
    maps_html, maps = _modules(content)
    tuning_html, more = _tuning(content)
    drawn = {chart.name: chart for chart in (*charts, *maps, *more)}
    body = "\n".join((_head(content), html, table, maps_html, tuning_html, _left_out(content.left_out)))
    return _document(body, drawn)


def _document(body: str, charts: Mapping[str, Chart]) -> str:
    here = files(__package__)
    style, script = (here.joinpath(name).read_text(encoding="utf-8") for name in ("report_page.css", "report_page.js"))
    library = get_plotlyjs()
    data = {name: json.loads(chart.figure.to_json()) for name, chart in charts.items()}
    # `</script>` in a name must not end the block.
    text = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; style-src 'unsafe-inline';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rlm-lsp report</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
{body}
<script>{library}</script>
<script type="application/json" id="figures">{text}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _head(content: ReportContent) -> str:
    lines = "<br>".join(map(escape, content.about))
    return f"<header><h1>Measured and predicted</h1><p>{lines}</p></header>"


def _numbers(content: ReportContent) -> tuple[str, list[Chart]]:
    return _section(
        "Summary",
        "Spearman is the rank correlation of predicted medians and measured values. The error is the median factor"
        " between them, in either direction; 1× is exact.",
        _summary_table(task_summaries(content.answered)),
    ), []


def _summary_table(summaries: Sequence[TaskSummary]) -> str:
    rows = [
        [
            task.name,
            f"{task.rows:,}",
            f"{task.groups:,}",
            "" if task.spearman is None else f"{task.spearman:.3f}",
            labels.error(task.error),
            figures.percent(task.coverage),
        ]
        for task in summaries
    ]
    return _table(("basis and metric", "values", "groups", "Spearman", "error", "inside the 80 % band"), rows)


def _calibration(content: ReportContent) -> list[tuple[str, list[Chart]]]:
    curve = figures.calibration(calibration(content.answered))
    bands = figures.coverage(coverage_by_group(content.answered))
    return [
        (
            _section(
                "Calibration",
                "The line of a calibrated model is on the diagonal. Where a line is below it, fewer values than"
                " expected are under the predicted quantiles: the predictions are too low.",
                _place(curve),
            ),
            [curve],
        ),
        (
            _section(
                "Coverage by group",
                "Share of values inside their 80 % bands, for the groups with the most values. Orange: the confidence"
                " interval does not contain 80 %.",
                _place(bands),
            ),
            [bands],
        ),
    ]


def _scatters(content: ReportContent) -> list[tuple[str, list[Chart]]]:
    sections = []
    metrics: dict[Metric, None] = dict.fromkeys(itertools.chain(*METRICS_OF_BASIS.values()))
    for metric in metrics:
        of_metric = [comparison for comparison in content.answered if comparison.row.metric == metric]
        if of_metric:
            chart = figures.scatter(metric, of_metric)
            shown = (
                f"A sample of {figures.MOST_POINTS:,} of {len(of_metric):,} values."
                if len(of_metric) > figures.MOST_POINTS
                else ""
            )
            title = f"Predicted against measured: {labels.METRIC_WORDS[metric]}"
            sections.append((_section(title, shown, _place(chart)), [chart]))
    return sections


def _surprises(content: ReportContent) -> str:
    outliers = surprises(content.answered)
    if not outliers:
        return _section("Biggest surprises", "Every measured value is inside its band.", "")
    rows = []
    for outlier in outliers:
        word, ratio = ("above", outlier.factor) if outlier.factor > 1 else ("below", 1 / outlier.factor)
        rows.append(
            [
                (outlier.row.name, None),
                (outlier.row.location, None),
                (labels.METRIC_WORDS[outlier.row.metric], None),
                (_predicted(outlier), outlier.median),
                (figures.measured(outlier), outlier.measured),
                (f"{labels.times(ratio)} {word}", outlier.factor),
            ]
        )
    head = ("unit", "where", "metric", "predicted band", "measured", "ratio to the median")
    return _section(
        "Biggest surprises",
        "Measured values outside their 80 % band, by ratio to the predicted median; about one value in five is expected"
        " to be outside. Click a column to sort.",
        _sortable(head, rows),
    )


def _predicted(outlier: Comparison) -> str:
    """The band, and what the unit waits for: that is often the surprise."""
    band = labels.band(outlier.row.metric, outlier.band, outlier.prediction.floor)
    waits = labels.wait_text(outlier.prediction, outlier.row.code.work)
    return f"{band}, {waits}" if waits else band


def _curves(content: ReportContent) -> str:
    """The curves of functions that were measured at several sizes, the most expensive first."""
    found = [
        (curve_at(curve, curve.measured_to), curve, comparison.row)
        for comparison in content.answered
        for anchor in comparison.row.code.measured
        if anchor.before is None and anchor.cost.metric == comparison.row.metric
        if (curve := curve_of(anchor.cost, comparison.prediction.growth)) is not None
    ]
    if not found:
        return ""
    found.sort(key=lambda entry: (entry[1].metric, -(entry[0].median if entry[0] is not None else 0.0)))
    plots = "".join(
        f"<figure>{curve_svg(curve)}<figcaption><b>{escape(row.name)}</b><br>{labels.METRIC_WORDS[curve.metric]}"
        f" {escape(size_words.exponent(curve))}</figcaption></figure>"
        for _, curve, row in found[:_MOST_CURVES]
    )
    more = f" The {_MOST_CURVES} most expensive of {len(found):,}." if len(found) > _MOST_CURVES else ""
    return _section(
        "Cost by size",
        "Functions that were measured at several sizes, on logarithmic axes. The dashed line is beyond the largest"
        f" measured size, up to ten times; the area is the 80 % band.{more}",
        f'<div class="curves">{plots}</div>',
    )


def _modules(content: ReportContent) -> tuple[str, list[Chart]]:
    maps = list(figures.treemaps(content.answered))
    if not maps:
        return "", []
    buttons = "".join(
        f'<button type="button" data-place="modules" data-figure="{chart.name}"'
        f' aria-pressed="{str(number == 0).lower()}">{escape(title)}</button>'
        for number, (title, chart) in enumerate(maps)
    )
    html = _section(
        "Cost by module",
        "The area is the cost of one call of each function, or one run of each program. The colour is the ratio of"
        " measured to predicted cost: orange costs more than predicted, blue less. Click a module to open it.",
        f'<div class="choice">{buttons}</div>{_place(maps[0][1], "modules")}',
    )
    return html, [chart for _, chart in maps]


def _tuning(content: ReportContent) -> tuple[str, list[Chart]]:
    if not content.before:
        return "", []
    before, after = task_summaries(content.before), task_summaries(content.answered)
    chart = figures.tuning(before, after)
    html = _section(
        "Before and after tuning",
        "Both models on the same values. Values that a model was tuned on make it look better than it is; the test"
        " split of a data set contains none of them.",
        _place(chart) + "<h3>Before</h3>" + _summary_table(before) + "<h3>After</h3>" + _summary_table(after),
    )
    return html, [chart]


def _left_out(reasons: Mapping[str, int]) -> str:
    if not reasons:
        return ""
    rows = [[reason, f"{count:,}"] for reason, count in Counter(reasons).most_common()]
    return _section("Left out", "Measured values that are not in the report.", _table(("reason", "values"), rows))


def _section(title: str, text: str, inner: str) -> str:
    paragraph = f"<p>{escape(text)}</p>" if text else ""
    return f"<section><h2>{escape(title)}</h2>{paragraph}{inner}</section>"


def _place(chart: Chart, name: str = "") -> str:
    return (
        f'<div class="chart" id="{name or chart.name}" data-figure="{chart.name}" role="img"'
        f' aria-label="{escape(chart.shows)}"></div>'
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        kinds = ("words", *["number"] * (len(cells) - 1))
        texts = (f'<{tag} class="{kind}">{escape(cell)}</{tag}>' for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(texts)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f'<div class="table"><table><thead>{line(head, "th")}</thead><tbody>{body}</tbody></table></div>'


def _sortable(head: Sequence[str], rows: Sequence[Sequence[tuple[str, float | None]]]) -> str:
    """A table that sorts by a column when its head is clicked: by the number behind a cell, else by its text."""
    heads = "".join(f'<th scope="col"><button type="button">{escape(name)}</button></th>' for name in head)
    body = "".join(f"<tr>{''.join(_cell(text, value) for text, value in row)}</tr>" for row in rows)
    return (
        f'<div class="table"><table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(text: str, value: float | None) -> str:
    if value is None:
        return f'<td class="name" title="{escape(text)}">{escape(text)}</td>'
    return f'<td class="number" data-value="{value!r}">{escape(text)}</td>'
