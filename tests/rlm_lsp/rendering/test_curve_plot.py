"""Plots of curves: inside their frame, with a point per measurement, and readable without colours."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.cost_curve import curve_of
from rlm_core.inference.size_table import SizeRow, SizeTable
from rlm_core.types import Band, CostAtSizes, SizedCalls, SizedPrediction
from rlm_lsp.rendering.curve_plot import curve_svg, details_plots
from rlm_lsp.rendering.labels import quantity

from tests.rlm_core.inference.test_anchoring import cost, predicted


def placed(line: ElementTree.Element) -> list[tuple[str, str]]:
    places = (place.partition(",") for place in line.attrib["points"].split())
    return [(x, y) for x, _, y in places]


@given(
    st.lists(
        st.tuples(st.floats(1, 1e9), st.floats(1e-7, 1e3)), min_size=2, max_size=12, unique_by=lambda pair: pair[0]
    ),
    st.sampled_from(["items", "rows[]", "<self>&.x"]),
)
def test_everything_is_inside_the_frame(points: list[tuple[float, float]], name: str) -> None:
    curve = curve_of(replace(cost(), sized=tuple(SizedCalls({name: size}, value, 3) for size, value in points)))
    if curve is None:
        return
    plot = ElementTree.fromstring(curve_svg(curve))
    width, height = float(plot.attrib["width"]), float(plot.attrib["height"])
    circles = plot.findall("circle")
    assert len(circles) == len(curve.points)
    lines = plot.findall("polyline")
    assert [line.attrib["class"] for line in lines] == ["curve", "curve beyond"]
    places = [(circle.attrib["cx"], circle.attrib["cy"]) for circle in circles]
    places += [place for line in [*lines, *plot.findall("polygon")] for place in placed(line)]
    assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in places)
    # The line goes on where the measurements end.
    assert placed(lines[0])[-1] == placed(lines[1])[0]
    assert plot.findtext("title", "").startswith("latency ")


def table(*medians: float) -> SizeTable:
    """Latencies that a text fixes at 10, 100, ...; a band is a factor of 2 wide."""
    rows = []
    for power, median in enumerate(medians, 1):
        band = Band(median / 2, median * 2, 0.8)
        at = CostAtSizes("arithmetic", ())
        small = predicted()
        answer = SizedPrediction("call", "latency", None, {}, "m", median, (band,), 0.0, False, at=at, small=small)
        rows.append(SizeRow(10.0**power, (answer,)))
    return SizeTable("items[]", tuple(rows))


def test_costs_that_a_text_fixes_are_a_dashed_line_with_a_band() -> None:
    text = details_plots([], table(1e-6, 1e-5, 1e-3))
    block = ElementTree.fromstring(text)
    [figure] = block.findall("figure")
    assert figure.findtext("figcaption") == "latency"
    [line] = figure.findall("svg/polyline")
    assert line.attrib["class"] == "curve beyond"
    assert len(placed(line)) == 3
    assert (
        figure.findtext("svg/title")
        == f"latency at items[] 10 {quantity('latency', 1e-6)} to 1k {quantity('latency', 1e-3)}"
    )
    # One block of HTML within Markdown ends with an empty line.
    assert "\n" not in text
    assert "<script" not in text


def test_a_single_size_and_an_unknown_cost_have_no_plot() -> None:
    assert details_plots([predicted()], None) == ""
    assert details_plots([predicted()], table(1e-6)) == ""
