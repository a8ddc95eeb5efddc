"""Which functions get a hint by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rlm_core import Prediction
from rlm_core.inference.sized_predictor import sized
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import (
    LEVELS,
    CodeText,
    CostAtSizes,
    GrowthClass,
    GrowthEstimate,
    MeasuredCost,
    MeasuredPrediction,
    SizeValue,
    Wait,
    WaitKind,
    WorkFacts,
)
from rlm_lsp.budgets.rules import ActiveBudget, Rules
from rlm_lsp.budgets.syntax import Budget
from rlm_lsp.findings.relevance import Relevance, growing_most, relevance
from rlm_lsp.settings.model import Settings

from tests.fakes import NO_NUMBER

MakePrediction = Callable[..., Prediction]
SETTINGS = Settings()


def code_of(text: str, language: str = "python") -> CodeText:
    """What the model reads of the first unit of a text."""
    return Analyser().analyse(ParsedSource(text.encode(), language))[0].code


CODE = code_of("def f(n):\n    return n\n")
WAITING = replace(CODE, work=WorkFacts(waits=(Wait(WaitKind.NETWORK, 1, "requests.get"),)))


@pytest.mark.parametrize(
    ("latency", "memory", "expected"),
    [(49e-6, 1e3, None), (50e-6, 1e3, "cost"), (1e-9, 2.0**20 - 1, None), (1e-9, 2.0**20, "cost")],
)
def test_a_function_matters_from_the_least_median_cost_on(
    make_prediction: MakePrediction, latency: float, memory: float, expected: Relevance | None
) -> None:
    predictions = [
        replace(make_prediction(), median=latency),
        replace(make_prediction(metric="memory"), median=memory),
    ]
    assert relevance(CODE, predictions, SETTINGS) == expected
    assert relevance(CODE, predictions, Settings(hints_min_latency=1e-9)) == "cost"


def test_a_bound_at_given_sizes_counts_as_a_cost(make_prediction: MakePrediction) -> None:
    small = replace(make_prediction(), median=1e-6)
    for least, expected in ((1e-5, None), (1e-3, "cost")):
        at = CostAtSizes("bound", (SizeValue("n", 1e4, "comment"),), least=least)
        assert relevance(CODE, [sized(small, small, at, 1e-6, small.bands, small.quantiles)], SETTINGS) == expected


@pytest.mark.parametrize(
    ("growth_class", "probability", "expected"),
    [("n^2", 0.9, "growth"), ("2^n", 0.8, "growth"), ("n^2", 0.7, None), ("n log n", 0.9, None), ("mn", 0.9, None)],
)
def test_a_function_that_surely_grows_faster_than_n_log_n_matters(
    make_prediction: MakePrediction, growth_class: GrowthClass, probability: float, expected: Relevance | None
) -> None:
    cheap = replace(make_prediction(), median=1e-6, growth=GrowthEstimate(growth_class, probability))
    assert relevance(CODE, [cheap], SETTINGS) == expected


def test_a_function_with_a_budget_in_reach_of_its_band_matters(make_prediction: MakePrediction) -> None:
    cheap = make_prediction(1e-6, 5e-6, quantiles=tuple(1e-7 * (n + 1) for n in range(len(LEVELS))))
    reach = cheap.quantiles[next(place for place, level in enumerate(LEVELS) if level >= 0.8)]
    near = Rules((ActiveBudget(Budget("latency", reach)),))
    far = Rules((ActiveBudget(Budget("latency", 1.0)),))
    other = Rules((ActiveBudget(Budget("memory", 1.0)),))
    assert [relevance(CODE, [cheap], SETTINGS, rules) for rules in (near, far, other)] == ["budget", None, None]


def test_a_function_that_waits_or_was_edited_or_measured_matters(make_prediction: MakePrediction) -> None:
    cheap = replace(make_prediction(), median=1e-6)
    assert relevance(CODE, [cheap], SETTINGS) is None
    assert relevance(CODE, [cheap], SETTINGS, changed=True) == "changed"
    assert relevance(WAITING, [cheap], SETTINGS) == "waits"
    assert relevance(WAITING, [make_prediction(abstained=NO_NUMBER)], SETTINGS) == "waits"
    cost = MeasuredCost("latency", 1e-6, 1e-6, 1e-6, 10, 1, "function", "cpu", "cpython-3.11", "2026-11-23")
    fields = {name: getattr(cheap, name) for name in Prediction.__dataclass_fields__}
    measured = MeasuredPrediction(**fields, cost=cost, predicted=cheap)
    assert relevance(CODE, [measured], SETTINGS) == "measured"


def test_units_other_than_functions_always_matter(make_prediction: MakePrediction) -> None:
    program = code_of("class Solution:\n    def run(self, n):\n        return n\n")
    assert relevance(program, [replace(make_prediction(), median=1e-9)], SETTINGS) == "kind"


def test_a_function_without_a_number_does_not_matter(make_prediction: MakePrediction) -> None:
    assert relevance(CODE, [make_prediction(abstained=NO_NUMBER)], SETTINGS) is None


def test_of_a_file_without_hints_the_most_expensive_function_that_grows_has_one(
    make_prediction: MakePrediction,
) -> None:
    def grown(median: float, growth_class: GrowthClass, probability: float = 0.9) -> list[Prediction]:
        return [replace(make_prediction(growth=GrowthEstimate(growth_class, probability)), median=median)]

    functions = [
        ("a", grown(1e-6, "n")),
        ("b", grown(2e-6, "n log n")),
        ("c", grown(9e-6, "1")),
        ("d", grown(9e-6, "n", 0.7)),
    ]
    assert growing_most(functions, SETTINGS) == "b"
    assert growing_most(functions[2:], SETTINGS) is None
