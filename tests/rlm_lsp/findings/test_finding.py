"""Findings: how severe they are, and that each code is documented."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from rlm_lsp.findings.finding import CODES, Confidence, docs_link

from tests.paths import REPOSITORY


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_probable_is_never_milder(first: float, second: float) -> None:
    order = [None, "information", "warning", "error"]
    low, high = sorted((first, second))
    assert order.index(Confidence().severity(low)) <= order.index(Confidence().severity(high))
    assert Confidence().severity(math.nan) is None


def test_a_severity_of_one_is_never_reached() -> None:
    assert Confidence(0.5, 1.0, 1.0, 0.99).severity(0.98) is None
    assert Confidence(error=1.0).severity(1.0) == "warning"
    assert Confidence(0.8, 1.0, 1.0, 1.0).severity(1.0) is None
    assert Confidence(0.5, 0.5, 1.0, 1.0).severity(0.99) == "information"


def test_each_code_has_its_section_in_the_documentation() -> None:
    for code in CODES:
        path, _, anchor = docs_link(code).partition("#")
        text = (REPOSITORY / path).read_text(encoding="utf-8")
        assert f"\n### {anchor}\n" in text
