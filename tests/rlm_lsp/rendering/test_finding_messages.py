"""Messages of findings; their full text is in the tests of the judge."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.inference.anchoring import anchored_prediction, measured_prediction
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_lsp.budgets.syntax import Budget
from rlm_lsp.rendering.finding_messages import over_budget_message, percent

from tests.rlm_core.inference.test_anchoring import AFTER, cost, ratio_of

MakePrediction = Callable[..., Prediction]
[UNIT] = find_units(ParsedSource(b"def f(n):\n    return n\n", "python"))


@given(st.floats(0, 1))
def test_no_probability_is_shown_as_certain(probability: float) -> None:
    assert "100" not in percent(probability)


def test_a_budget_that_a_measurement_exceeds_says_so(make_prediction: MakePrediction) -> None:
    budget = Budget("latency", 1e-6)
    measured = over_budget_message(UNIT, budget, measured_prediction(make_prediction(), cost()), 0.97)
    assert measured == (
        "latency of f exceeds its budget of 1 µs (97 % probability if measured again):"
        " measured 2 µs (1–8 µs) on a processor, 2026-11-01"
    )
    anchored = anchored_prediction(AFTER, make_prediction(), cost(), ratio_of(2.0))
    message = over_budget_message(UNIT, budget, anchored, 0.97)
    assert "latency of f is predicted to exceed its budget of 1 µs (97 % probability): " in message
    assert message.endswith("median 4 µs), from 2 µs measured on 2026-11-01 times 2×")
