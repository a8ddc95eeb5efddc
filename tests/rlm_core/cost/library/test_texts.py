"""Texts: sizes of what their methods return, and regular expressions that may take exponential time."""

from __future__ import annotations

import re

import pytest
from rlm_core.cost.domain.quantities import constant, of_size
from rlm_core.cost.domain.values import Value
from rlm_core.cost.library.rules import literal
from rlm_core.types import Growth

from .calls import exact, run, run_method, sized


def test_the_worst_case_of_a_pattern_is_noted_and_not_spent() -> None:
    pattern, _ = run("re.compile", r"a*a*a*b")
    result = run_method(pattern, "match", Value("str", name="text"))[1]
    assert result.worst_cases == {"a*a*a*b": Growth("", 3.0)}
    assert result.spent == run_method(run("re.compile", "a*b*c*d")[0], "match", Value("str", name="text"))[1].spent


def test_flags_and_methods_count_for_the_worst_case() -> None:
    text = Value("str", name="text")
    assert run("re.match", "(a|AB?)+$", text)[1].worst_cases == {}
    assert set(run("re.match", "(a|AB?)+$", text, int(re.IGNORECASE))[1].worst_cases) == {"(a|AB?)+$"}
    # An argument that is not known may be any flag.
    assert run("re.match", "(a+)+$", text, Value("int"))[1].worst_cases == {}
    assert run("re.match", r"\s+$", text)[1].worst_cases == {}
    assert run("re.sub", r"\s+$", "", text)[1].worst_cases == {r"\s+$": Growth("", 2.0)}


def test_a_pattern_that_is_an_argument_is_compiled_once_and_one_put_together_each_time() -> None:
    argument = run("re.compile", Value("str", size=of_size("word")))[1].seconds
    together = run("re.compile", Value("str", size=of_size("word") + constant(2.0)))[1].seconds
    assert argument == run("re.compile", "a+b")[1].seconds
    assert together > 10 * argument


def test_a_known_text_has_no_worst_case() -> None:
    assert run("re.match", "(a+)+$", "aaaa")[1].worst_cases == {}


def test_a_pathological_match_is_exponential_in_a_known_text() -> None:
    pattern, _ = run("re.compile", "(a+)+$")
    costs = [run_method(pattern, "match", "a" * n + "b")[1].seconds for n in (20, 25)]
    assert costs[1] / costs[0] == pytest.approx(32, rel=0.1)
    _, call = run("re.match", "(a+)+$", Value("unknown", name="text"))
    assert call.worst_cases == {"(a+)+$": Growth("", base=2.0, degree=0.0)}
    assert all(form in ("", "log") for term in call.spent.terms for (_, form), _ in term)


@pytest.mark.parametrize(
    ("method", "arguments", "result"),
    [("upper", [], "AB C"), ("replace", ["b", "xy"], "axy c"), ("find", ["c"], 3), ("startswith", ["ab"], True),
     ("isalpha", [], False), ("strip", [], "ab c")],
)  # fmt: skip
def test_methods_of_known_text_are_computed(method: str, arguments: list[object], result: object) -> None:
    assert run_method("ab c", method, *arguments)[0].constant == result


def test_splitting_a_known_text_gives_its_parts() -> None:
    parts, _ = run_method("a,b,c", "split", ",")
    assert exact(parts.size) == 3


def test_joining_costs_by_items_and_characters() -> None:
    text, _ = run_method(",", "join", sized("list", 1000, literal("abcd")))
    assert exact(text.size) == 5000
    long, slow = run_method(",", "join", sized("list", 10**6, literal("abcd")))
    assert exact(long.size) == 5 * 10**6
    assert slow.seconds > 1e-3


def test_encoding_keeps_the_size() -> None:
    value, _ = run_method(sized("str", 1000), "encode")
    assert (value.kind, exact(value.size)) == ("bytes", 1000)
