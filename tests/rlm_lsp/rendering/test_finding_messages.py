"""Messages of findings; their full text is in the tests of the judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rlm_core import Prediction
from rlm_core.inference.anchoring import anchored_prediction, measured_prediction
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_lsp.budgets.syntax import Budget
from rlm_lsp.rendering.finding_messages import invalid_settings, over_budget_message, percent
from rlm_lsp.settings.resolve import SettingsProblem

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


def test_one_problem_is_described_with_its_place() -> None:
    problem = SettingsProblem(str(Path("/shop/rlm-lsp.toml")), "setting `threads` must be an integer", "threads")
    text = 'rlm-lsp ignores a setting that is not valid, in rlm-lsp.toml: setting "threads" must be an integer.'
    assert invalid_settings([problem]) == text


def test_several_problems_are_counted_and_the_first_is_described() -> None:
    client, variable = (
        SettingsProblem(place, f"setting `{place[0]}` is wrong") for place in ("workspace/configuration", "environment")
    )
    text = 'rlm-lsp ignores 2 settings that are not valid. The first, in the {}: setting "{}" is wrong.'
    assert invalid_settings([client, variable]) == text.format("editor's settings", "w")
    assert invalid_settings([variable, client]) == text.format("environment", "e")


def test_a_question_is_not_followed_by_a_full_stop() -> None:
    problem = SettingsProblem("environment", "unknown setting `hintz`; did you mean `hints`?")
    text = 'rlm-lsp ignores a setting that is not valid, in the environment: unknown setting "hintz"; '
    text += 'did you mean "hints"?'
    assert invalid_settings([problem]) == text


def test_a_workspace_cannot_offer_a_command_as_a_link() -> None:
    problem = SettingsProblem("rlm-lsp.toml", "unknown setting `[Fix](command:workbench.action.quit)`", "x")
    assert "](" not in invalid_settings([problem])
