"""Explanations for people: what the code says comes first, then the statements with the largest effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rlm_core import Prediction
from rlm_core.inference.explain import Explanation, StatementEffect
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Query
from rlm_lsp.rendering.explanations import explanation_text

from tests.fakes import NO_NUMBER

MakePrediction = Callable[..., Prediction]
SLEEPING = "import time\n\ndef f(n):\n    time.sleep(2)\n    return n\n"
QUERY = Query("latency")


def unit(text: str) -> AnalysedUnit:
    [analysed] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    return analysed


def test_what_the_code_says_comes_first(make_prediction: MakePrediction) -> None:
    effects = (StatementEffect(1, 1, "time.sleep(2)", 3.0), StatementEffect(2, 2, "return n", 1.0))
    text = explanation_text(unit(SLEEPING), QUERY, Explanation(make_prediction(2.0), effects), {1: 3, 2: 4})
    assert text.startswith("What the code of `f` says about its latency:\n\n- Line 4 sleeps 2 s.\n\nStatements that")
    assert "| 4    | 3×    | `time.sleep(2)` |\n| 5    | 1×    | `return n`      |" in text


def test_a_statement_of_several_lines_names_both_ends(make_prediction: MakePrediction) -> None:
    effects = (StatementEffect(1, 4, "for i in `x | y`:", 12.345),)
    text = explanation_text(
        unit("def f(n):\n    return n\n"), QUERY, Explanation(make_prediction(), effects, 3), {1: 8, 4: 11}
    )
    assert text.startswith("Statements that the latency of `f` depends on")
    assert "| 9–12 | 12×   | `` for i in `x \\| y`: `` |" in text
    assert "3 more statements were not tried." in text


def test_only_the_strongest_statements_are_shown(make_prediction: MakePrediction) -> None:
    effects = tuple(StatementEffect(i, i, f"g({i})", 1.0 + i) for i in range(30))
    text = explanation_text(unit(SLEEPING), QUERY, Explanation(make_prediction(), effects), {i: i for i in range(30)})
    assert "`g(29)`" in text
    assert "`g(5)`" not in text


def test_without_a_prediction_the_reason_is_given(make_prediction: MakePrediction) -> None:
    missing = replace(make_prediction(), median=None, abstained=NO_NUMBER)
    text = explanation_text(unit("def f(n):\n    return n\n"), QUERY, Explanation(missing, ()), {})
    assert text.startswith("The latency of `f` cannot be explained because ")


def test_a_unit_without_statements_says_so(make_prediction: MakePrediction) -> None:
    text = explanation_text(unit("def f(n):\n    return n\n"), QUERY, Explanation(make_prediction(), ()), {})
    assert text == "`f` has no statement that can be left out."


def test_a_statement_cannot_leave_its_cell(make_prediction: MakePrediction) -> None:
    statement = "f('`` ![p](https://evil.invalid/p.png) `|` \x1b[2J')"
    effects = (StatementEffect(1, 1, statement, 2.0),)
    text = explanation_text(unit("def f(n):\n    return n\n"), QUERY, Explanation(make_prediction(), effects), {1: 1})
    assert r"| ``` f('`` ![p](https://evil.invalid/p.png) `\|` \x1b[2J') ``` |" in text
