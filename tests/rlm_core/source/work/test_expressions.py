"""Expressions: constants are folded as Python does, sizes of displays, comprehensions and slices, and conditions."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rlm_core.source.work.expressions import distinct, literal
from rlm_core.source.work.frames import Frame, Loop, LoopVariable
from rlm_core.source.work.quantities import constant
from rlm_core.source.work.scope import Texts
from rlm_core.source.work.statements import Interpreter
from rlm_core.source.work.values import Value

from .counting import count, facts_of

NUMBERS = st.one_of(st.integers(-50, 50), st.floats(-100, 100).map(lambda number: round(number, 3)), st.booleans())
TEXTS = st.text("abc", max_size=4)


@st.composite
def numeric(draw: st.DrawFn, depth: int = 3) -> str:
    """An expression of numbers."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return f"({draw(NUMBERS)!r})"
    left, right = draw(numeric(depth - 1)), draw(numeric(depth - 1))
    match draw(st.integers(0, 6)):
        case 0:
            return f"({left} if {draw(condition(depth - 1))} else {right})"
        case 1:
            return f"({draw(st.sampled_from(['-', '+']))}{left})"
        case 2:
            return f"({left}, {right})[{draw(st.integers(0, 1))}]"
        case _:
            return f"({left} {draw(st.sampled_from(['+', '-', '*', '/', '//', '%']))} {right})"


@st.composite
def condition(draw: st.DrawFn, depth: int = 2) -> str:
    """A condition over numbers."""
    sign = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
    left, right = draw(numeric(max(depth - 1, 0))), draw(numeric(max(depth - 1, 0)))
    compared = f"{left} {sign} {right}"
    if depth and draw(st.booleans()):
        other = draw(condition(depth - 1))
        return draw(st.sampled_from([f"({compared} and {other})", f"({compared} or {other})", f"(not {compared})"]))
    return f"({compared})"


@st.composite
def textual(draw: st.DrawFn, depth: int = 2) -> str:
    """An expression of text."""
    if depth == 0:
        return repr(draw(TEXTS))
    inner = draw(textual(depth - 1))
    return draw(
        st.sampled_from(
            [
                f"({inner} + {draw(textual(depth - 1))})",
                f"({inner} * {draw(st.integers(-1, 5))})",
                f"{inner}[{draw(st.integers(-3, 3))}:{draw(st.integers(-3, 3))}]",
                f"f'{{{draw(st.integers(0, 99))}}}' + {inner}",
                f"{inner}.upper()",
            ]
        )
    )


def interpreter(**names: Value) -> Interpreter:
    """An interpreter inside a function with these names."""
    strict = Interpreter(Texts(), 10_000)
    strict.strict = True
    strict.frame = Frame(Texts(), names=dict(names))
    return strict


def evaluated(text: str, **names: Value) -> Value:
    """The value of an expression."""
    return interpreter(**names).value(ast.parse(text, mode="eval").body)


def same(left: Any, right: Any) -> bool:
    """Whether two constants are equal, and of one type."""
    return type(left) is type(right) and (left == right or left != left)


@settings(max_examples=200)
@given(st.one_of(numeric(), condition(), textual()))
def test_expressions_of_literals_are_what_python_computes(text: str) -> None:
    try:
        true = eval(text)
    except (ZeroDivisionError, OverflowError, IndexError):
        assume(False)
    value = evaluated(text)
    if value.known:
        assert same(value.constant, true), text
    number = value.number.evaluate(lambda name: 0) if value.number is not None else None
    if number is not None and isinstance(true, (int, float)):
        assert number[0] - 1e-6 * abs(number[0]) <= true <= number[2] + 1e-6 * abs(number[2]), text


@settings(max_examples=100)
@given(numeric(depth=2))
def test_expressions_of_numbers_are_folded(text: str) -> None:
    try:
        true = eval(text)
    except (ZeroDivisionError, OverflowError):
        assume(False)
    value = evaluated(text)
    assert value.known
    assert same(value.constant, true)


@given(st.integers(-20, 20), st.integers(-30, 30), st.sampled_from(["&", "|", "^", "<<", ">>", "**"]))
def test_whole_numbers_are_folded(left: int, right: int, sign: str) -> None:
    text = f"({left}) {sign} ({right})"
    try:
        true = eval(text)
    except (ValueError, ZeroDivisionError):
        true = None
    value = evaluated(text)
    if true is not None:
        assert same(value.constant, true)


@pytest.mark.parametrize(
    "text", ["10 ** 10 ** 10", "2 ** 100_000_000", "1 << 10 ** 12", "'x' * 10 ** 12", "1 / 0", "5 % 0", "(1, 2)[5]",
             "'a' + 1", "10.0 ** 400", "(-8) ** 0.5", "[0] * -10 ** 9"]
)  # fmt: skip
def test_what_is_huge_or_fails_is_not_computed(text: str) -> None:
    assert not evaluated(text).known


@given(st.lists(st.integers(0, 9), max_size=8))
def test_displays_have_their_size(items: list[int]) -> None:
    for text, size in ((f"{items}", len(items)), (f"[*{items}, *{items}]", 2 * len(items))):
        value = evaluated(text)
        assert value.kind == "list"
        assert value.size is not None
        assert value.size.exact == size


@settings(max_examples=100)
@given(
    st.integers(0, 60), st.one_of(st.none(), st.integers(-70, 70)), st.one_of(st.none(), st.integers(-70, 70)),
    st.one_of(st.none(), st.integers(1, 7)),
)  # fmt: skip
def test_slices_have_the_size_that_python_gives_them(
    whole: int, start: int | None, stop: int | None, step: int | None
) -> None:
    bounds = ":".join("" if part is None else str(part) for part in (start, stop, step))
    true = len(list(range(whole))[start:stop:step])
    value = evaluated(f"items[{bounds}]", items=Value("list", size=constant(whole)))
    assert value.size is not None
    assert value.size.exact == true


@settings(max_examples=60)
@given(st.integers(0, 300), st.integers(0, 300), st.integers(2, 9))
def test_comprehensions_have_the_size_that_python_gives_them(outer: int, limit: int, divisor: int) -> None:
    for text in (
        f"[i for i in range({outer})]",
        f"[i for i in range({outer}) if i < {limit}]",
        f"[i for i in range({outer}) if i % {divisor} == 1]",
        f"[(i, j) for i in range({outer}) for j in range({divisor})]",
        f"[i for i in range({outer}) if i > {divisor} if i < {limit}]",
    ):
        size = evaluated(text).size
        assert size is not None
        low, likely, high = size.evaluate(lambda name: 0)
        true = len(eval(text))
        assert low - 1e-6 <= true <= high + 1e-6
        if text.count(" if ") < 2:
            assert likely == pytest.approx(true)


def test_a_dictionary_knows_the_values_of_its_keys() -> None:
    assert evaluated("{'a': 1, 'b': 2}['b']").constant == 2
    assert not evaluated("{'a': 1, 'b': 2}['c']").known
    assert not evaluated("{True: 1, 2: 3}[1.0]").known


def test_what_is_not_known_takes_the_name_that_it_has_in_the_text() -> None:
    a = Value("unknown", name="a")
    assert evaluated("a.b", a=a).name == "a.b"
    assert evaluated("a[0]", a=a).name == "a[]"
    assert evaluated("missing").name == "missing"


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
    strict = interpreter()
    bound = Value("int")
    variable = LoopVariable("i", start, step, trips, bound)
    variable.restart()
    strict.frame.names["i"] = bound
    strict.frame.loops.append(Loop(variable))
    condition_ = strict.judged(ast.parse(text, mode="eval").body)
    true = sum(eval(text, {"i": start + step * k}) for k in range(trips)) / trips
    assert condition_.share == pytest.approx((true, true, true))
    assert condition_.rest == pytest.approx((1 - true, 1 - true, 1 - true))
    assert strict.frame.names["i"] is bound


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


@given(st.integers(1, 100), st.integers(1, 100))
def test_remainders_have_at_most_as_many_values_as_their_divisor(divisor: int, total: int) -> None:
    item = Value("int", number=constant(0, divisor - 1)) if divisor > 1 else literal(0)
    found = distinct(item, constant(total)).exact
    assert found == (min(divisor, total) if divisor > 1 else total)


def test_boolean_operators_stop_early() -> None:
    assert count("def f():\n    x = False and time.sleep(1)\n").most == 0
    assert count("def f():\n    x = True or time.sleep(1)\n").most == 0
    assert count("def f():\n    x = True and time.sleep(1)\n").least == 1
    unsure = count("def f(a):\n    x = a and time.sleep(1)\n")
    assert (unsure.least, unsure.most) == (0, 1)


def test_deep_expressions_end() -> None:
    text = "def f(a):\n    return " + " + ".join(["a"] * 2000) + "\n"
    assert facts_of(text).nodes < 3000
