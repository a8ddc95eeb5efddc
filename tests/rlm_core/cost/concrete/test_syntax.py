"""What follows Python texts at concrete values gives what Python gives, whatever else the values of a text may be."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from rlm_core.cost.concrete.frame import Frame, LimitReached, call_function, execute
from rlm_core.cost.concrete.values import UNKNOWN, NameScope, SourceFunction
from rlm_core.cost.torch_trace.context import new_context
from rlm_core.cost.torch_trace.recorder import Recorder
from rlm_core.cost.triton_launch import expressions  # noqa: F401 - its rules register themselves
from rlm_core.cost.triton_launch.program import Program
from rlm_core.cost.triton_launch.tally import Tally

STEPS = 10_000


def traced() -> Frame:
    """The frame of a text that makes modules."""
    return new_context({}, recorder=Recorder(STEPS))


def launched() -> Frame:
    """The frame of a program of a kernel."""
    return Program(Tally(STEPS, 10**6), NameScope(), (0, 0, 0), (1, 1, 1))


def run(frame: Frame, text: str, *args: Any, **named: Any) -> Any:
    """The result of the function that a text defines."""
    [node] = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return call_function(frame, SourceFunction(node, NameScope(), {}), args, named)


FUNCTIONS = {
    "arithmetic": "def f(a, b):\n    return (a + b) * 2 - a // b, a % b, a << 2, -a, ~b",
    "comparisons": "def f(a, b):\n    return a < b, b < a, 0 < a <= 7 < 9, a == b or not b, a and b",
    "branches": "def f(a, b):\n    if a > b:\n        c = 1\n    else:\n        c = 2\n    return c if a else b",
    "loops": "def f(a, b):\n    s = 0\n    for i in (1, 2, 3, 4):\n        if i == b:\n            continue\n"
    "        if i > a:\n            break\n        s += i\n    return s",
    "unpacking": "def f(a, b):\n    a, (b, c) = b, (a, 5)\n    return a, b, c",
    "rest": "def f(a, *rest):\n    return a, rest",
}


@pytest.mark.parametrize("frame", [traced, launched])
@pytest.mark.parametrize("text", FUNCTIONS.values(), ids=FUNCTIONS)
def test_known_values_are_those_of_python(frame: Any, text: str) -> None:
    names: dict[str, Any] = {}
    exec(text, names)
    for pair in ((7, 3), (2, 4), (0, 1)):
        assert run(frame(), text, *pair) == names["f"](*pair)


@pytest.mark.parametrize("frame", [traced, launched])
def test_what_has_no_value_is_unknown_and_steps_have_an_end(frame: Any) -> None:
    assert run(frame(), "def f(a):\n    b, c = a\n    return b, missing, a + 1", UNKNOWN) == (UNKNOWN,) * 3
    with pytest.raises(LimitReached):
        execute(frame(), [ast.parse("x = 1").body[0]] * (STEPS + 1))
