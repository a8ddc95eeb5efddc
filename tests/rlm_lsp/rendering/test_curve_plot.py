"""Plots of curves: inside their frame, with a point per measurement, and readable without colours."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.cost_curve import curve_of
from rlm_core.types import SizedCalls
from rlm_lsp.rendering.curve_plot import curve_svg

from tests.rlm_core.inference.test_anchoring import cost


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
    lines = plot.findall("line")
    assert [line.attrib["class"] for line in lines] == ["curve", "curve beyond"]
    places = [(circle.attrib["cx"], circle.attrib["cy"]) for circle in circles]
    places += [(line.attrib[f"x{end}"], line.attrib[f"y{end}"]) for line in lines for end in (1, 2)]
    assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in places)
    assert plot.findtext("title", "").startswith("latency ")
