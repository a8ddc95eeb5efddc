"""Messages of findings; their full text is in the tests of the judge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rlm_lsp.rendering.finding_messages import percent


@given(st.floats(0, 1))
def test_no_probability_is_shown_as_certain(probability: float) -> None:
    assert "100" not in percent(probability)
