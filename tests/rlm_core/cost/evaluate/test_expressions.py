"""Expressions: what Python computes from literals, and what is not known."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rlm_core.cost.domain.values import Value

from ..counting import facts_of
from ..evaluating import evaluated, same

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


def test_what_is_not_known_takes_the_name_that_it_has_in_the_text() -> None:
    a = Value("unknown", name="a")
    assert evaluated("a.b", a=a).name == "a.b"
    assert evaluated("a[0]", a=a).name == "a[]"
    assert evaluated("missing").name == "missing"


def test_deep_expressions_end() -> None:
    text = "def f(a):\n    return " + " + ".join(["a"] * 2000) + "\n"
    assert facts_of(text).nodes < 3000
