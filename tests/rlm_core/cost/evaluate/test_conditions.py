"""Conditions: how often they hold."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.domain.frames import Loop, LoopVariable
from rlm_core.cost.domain.values import Value
from rlm_core.cost.evaluate.conditions import judge

from ..counting import count
from ..evaluating import context_with


@settings(max_examples=100)
@given(
    st.integers(-50, 50), st.integers(1, 9), st.integers(1, 2000), st.integers(-60, 3000),
    st.sampled_from(["i < {0}", "i <= {0}", "i > {0}", "i >= {0}", "i == {0}", "i != {0}", "{0} < i", "not i < {0}",
                     "i % 7 == {0}", "i % 12 < {0}"]),
)  # fmt: skip
def test_the_share_of_a_condition_on_a_loop_variable_is_exact(
    start: int, step: int, trips: int, limit: int, test: str
) -> None:
    text = test.format(limit)
    context = context_with()
    bound = Value("int")
    variable = LoopVariable("i", start, step, trips, bound)
    variable.restart()
    context.frame.names["i"] = bound
    context.frame.loops.append(Loop(variable))
    condition_ = judge(context, ast.parse(text, mode="eval").body)
    true = sum(eval(text, {"i": start + step * k}) for k in range(trips)) / trips
    assert condition_.share == pytest.approx((true, true, true))
    assert condition_.rest == pytest.approx((1 - true, 1 - true, 1 - true))
    assert context.frame.names["i"] is bound


@given(st.integers(30, 2000), st.integers(0, 4_000_000))
def test_the_share_of_other_monotone_conditions_is_within_its_range(trips: int, limit: int) -> None:
    known = count(f"def f():\n    for i in range({trips}):\n        if i * i < {limit}:\n            time.sleep(1)\n")
    assert known.least - 1e-6 <= sum(i * i < limit for i in range(trips)) <= known.most + 1e-6


def test_a_variable_that_is_bound_again_has_no_share() -> None:
    known = count("def f():\n    for i in range(8):\n        i = g()\n        if i < 4:\n            time.sleep(1)\n")
    assert (known.least, known.most) == (0, 8)


def test_conditions_inside_conditions_are_not_independent() -> None:
    text = (
        "def f():\n    for i in range(10):\n        if i < 5:\n            if i > 3:\n                time.sleep(1)\n"
    )
    assert count(text).likely == pytest.approx(1)
    ternary = "def f():\n    for i in range(10):\n        x = 0 if i < 5 else time.sleep(1) if i < 6 else 0\n"
    assert count(ternary).likely == pytest.approx(1)


def test_boolean_operators_stop_early() -> None:
    assert count("def f():\n    x = False and time.sleep(1)\n").most == 0
    assert count("def f():\n    x = True or time.sleep(1)\n").most == 0
    assert count("def f():\n    x = True and time.sleep(1)\n").least == 1
    unsure = count("def f(a):\n    x = a and time.sleep(1)\n")
    assert (unsure.least, unsure.most) == (0, 1)
