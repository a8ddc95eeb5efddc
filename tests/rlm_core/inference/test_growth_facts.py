"""Facts -> the class of growth, and when facts decide alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.growth_facts import (
    FACT_FEATURES,
    class_of,
    decided_estimate,
    fact_estimate,
    fact_features,
    input_growth,
)
from rlm_core.types import CodeText, CostFacts, Growth, GrowthEstimate, WorkFacts

N, M = Growth("n"), Growth("m")


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        ((), "1"),
        ((N,), "n"),
        ((Growth("n", 0, 1),), "log n"),
        ((Growth("n", 1, 1),), "n log n"),
        ((Growth("n", 0.5),), "sqrt n"),
        ((Growth("n", 2),), "n^2"),
        ((N, M), "mn"),
        ((Growth("n", 3),), "n^3"),
        ((Growth("n", 2), M), "n^3"),
        ((Growth("n", 0, 0, 1.6),), "2^n"),
        ((Growth("n", 4),), "other"),
        ((Growth("n", 2, 1),), "other"),
        ((Growth("n", 1, 2),), "other"),
    ],
)
def test_the_class_of_a_leading_term(growth: tuple[Growth, ...], expected: str) -> None:
    assert class_of(growth) == expected


def function(text: str, language: str = "python") -> CodeText:
    return CodeText(text, language, "call", work=work_facts(text))


def test_complete_facts_decide_for_a_function_and_name_its_inputs() -> None:
    code = function(
        "def f(values):\n    t = 0\n    for a in values:\n        for b in values:\n            t += 1\n    return t\n"
    )
    estimate = fact_estimate(code, "latency")
    assert estimate is not None
    assert (estimate.growth_class, estimate.sizes) == ("n^2", ("values",))
    assert estimate.probability >= 0.8


@pytest.mark.parametrize(
    ("body", "growth_class", "sizes"),
    [
        ("for row in rows:\n        for cell in row:\n            t += 1", "mn", ("rows", "rows[]")),
        ("for name in NAMES:\n        t += len(name.split())", "mn", None),
    ],
)
def test_a_loop_variable_is_not_an_input(body: str, growth_class: str, sizes: tuple[str, ...] | None) -> None:
    estimate = fact_estimate(function(f"def f(rows):\n    t = 0\n    {body}\n    return t\n"), "latency")
    assert estimate is not None
    assert estimate.growth_class == growth_class
    assert sizes is None or set(estimate.named_sizes) == set(sizes)
    assert {name.partition("[")[0] for name in estimate.named_sizes} <= {"rows", "NAMES"}


def test_more_than_linear_growth_in_a_size_without_a_name_is_not_stated() -> None:
    loops = "for i, row in enumerate(rows):\n        for a in row:\n            for b in row:\n                t += 1"
    assert fact_estimate(function(f"def f(rows):\n    t = 0\n    {loops}\n    return t\n"), "latency") is None


def test_local_sizes_of_one_input_are_one_factor() -> None:
    work = WorkFacts(CostFacts(growth=(Growth("a"), Growth("b"), Growth("c"))), nodes=9)
    text = "def f(xs):\n    for a in xs:\n        for b in xs:\n            g(a, b, c)\n"
    code = CodeText(text, "python", "call", work=work)
    assert input_growth(code, "latency") == (Growth("xs[]", 2.0), Growth("c"))
    assert input_growth(replace(code, text="def f(xs):\n    c = h(xs)\n"), "latency") == (
        Growth("?0"),
        Growth("?1"),
        Growth("?2"),
    )


def test_work_that_the_text_fixes_does_not_grow() -> None:
    code = function("def f():\n    t = 0\n    for i in range(100_000):\n        t += i\n    return t\n")
    assert fact_estimate(code, "latency") == GrowthEstimate("1", 0.8)


def test_a_cost_that_a_default_decides_is_not_constant() -> None:
    loop = "def f(n: int = 10_000) -> None:\n    for i in range({}):\n        print(i)\n"
    assert fact_estimate(function(loop.format("n")), "latency") is None
    assert fact_estimate(function(loop.format("100_000")), "latency") == GrowthEstimate("1", 0.8)


@pytest.mark.parametrize(
    "text",
    [
        "def f(values):\n    for value in values:\n        unknown(value)\n",
        "def f(n):\n    while n > 1:\n        n //= 2\n",
        "def f(n):\n    while True:\n        n += 1\n",
    ],
)
def test_the_head_decides_where_facts_are_not_complete(text: str) -> None:
    assert fact_estimate(function(text), "latency") is None


@pytest.mark.parametrize(
    ("body", "in_worst_case"),
    [
        ("return re.match('(a+)+$', text)", True),
        ("return f(text[1:]) + f(text[1:]) if text else 0", False),
        ("return f(text[1:]) + f(text[1:]) if re.match('(a+)+$', text) else 0", False),
    ],
)
def test_exponential_backtracking_is_growth_in_the_worst_case(body: str, in_worst_case: bool) -> None:
    estimate = decided_estimate(function(f"def f(text):\n    import re\n    {body}\n"), "latency")
    assert estimate is not None
    assert (estimate.growth_class, estimate.named_sizes, estimate.in_worst_case) == ("2^n", ("text",), in_worst_case)


def test_facts_of_outlines_programs_and_missing_facts_do_not_decide() -> None:
    facts = WorkFacts(latency=CostFacts(growth=(N,)), nodes=10)
    assert fact_estimate(CodeText("x", "python", "program", work=facts), "latency") is None
    assert fact_estimate(CodeText("x", "python", "call"), "latency") is None
    outlined = WorkFacts(latency=CostFacts(growth=(N,)))
    assert fact_estimate(CodeText("x", "cpp", "call", work=outlined), "latency") is None
    assert not fact_features(outlined).any()
    assert not fact_features(None).any()


@pytest.mark.parametrize("unknown", [0.0, 1.0, math.inf, math.nan, -1.0, 1e300])
def test_fact_features_are_finite(unknown: float) -> None:
    features = fact_features(
        WorkFacts(latency=CostFacts(growth=(Growth("n", 99, 99, 1e9),)), unknown_calls=unknown, nodes=1)
    )
    assert features.shape == (len(FACT_FEATURES),)
    assert np.isfinite(features).all()
