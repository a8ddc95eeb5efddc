"""Conditions: how often they hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ..counting import count


@given(st.integers(30, 2000), st.integers(0, 4_000_000), st.sampled_from(["i * i < {0}", "i % 7 == {0}", "{0} < i"]))
def test_the_share_of_a_condition_on_a_loop_variable_is_within_its_range(trips: int, limit: int, test: str) -> None:
    text = test.format(limit)
    known = count(f"def f():\n    for i in range({trips}):\n        if {text}:\n            time.sleep(1)\n")
    true = sum(eval(text, {"i": i}) for i in range(trips))
    assert known.least - 1e-6 <= true <= known.most + 1e-6


def test_boolean_operators_stop_early() -> None:
    assert count("def f():\n    x = False and time.sleep(1)\n").most == 0
    assert count("def f():\n    x = True or time.sleep(1)\n").most == 0
    assert count("def f():\n    x = True and time.sleep(1)\n").least == 1
    unsure = count("def f(a):\n    x = a and time.sleep(1)\n")
    assert (unsure.least, unsure.most) == (0, 1)
