"""Texts: sizes of what their methods return, and regular expressions that may take exponential time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.domain.values import Value
from rlm_core.cost.library.patterns import pathological
from rlm_core.cost.library.rules import literal

from .calls import exact, run, run_method, sized


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a*)*b", "([a-z]+)*!", "(?:x+x+)+y", "(a|b+)+c", "^(\\w+\\s?)*$",
     r"\[((\\]|[^\[\]]|\\])*)\]", "(?:ab?|bc?|a)*x", "(a*b*)*c", "(a{1,5})+b", r"(.*,)*x$", r"(?:a?b?)+$"],
)  # fmt: skip
def test_nested_quantifiers_are_recognised(pattern: str) -> None:
    assert pathological(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "a+",
        r"\w+@\w+\.com",
        "(ab)+",
        "(a|b)+",
        r"(\d+,)*\d+",
        r"^\s*(\w+)\s*=\s*(.*)$",
        "(a{1,3}){1,3}",
        "(",
        "",
        r"(?:[^,]+,)+",
        # A sign separates the rounds, alternatives begin alike and go on differently, or nothing behind can fail.
        r"(?:^|\n)!!! ?([\w\-]+(?: +[\w\-]+)*)(?: +\"(.*?)\")? *(?:\n|$)",
        r"Use one of:\s+(?P<output>(\S\s*)*)",
        r"^(?:RESTRICT|CASCADE|SET NULL|NO ACTION|SET DEFAULT)$",
        r"(ab|ac)+$",
        r"(a+)+",
        r"((?:%25|%)(?:[A-Za-z0-9._!\-~]|%[a-fA-F0-9]{2})+)\]$",
        r"(?:^|\n)(?P<level>#{1,6})(?P<header>(?:\\.|[^\\#]|#+(?=[^#\n]))*?)#*(?:\n|$)",
        r"(?:\\.|[^\"\\])*\"",
        r"^(\w+)(\.\w+)*$",
    ],
)
def test_usual_patterns_are_not(pattern: str) -> None:
    assert not pathological(pattern)


@given(st.text("ab()+*?|[]{}0123456789,\\w^$", max_size=60))
def test_any_pattern_is_read_in_bounded_time(pattern: str) -> None:
    start = time.perf_counter()
    pathological(pattern)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("pattern", ["(" * 5000, "(a+" * 400, "(" * 190 + "a+" + ")+" * 190, "a{1,5}" * 2000])
def test_a_hostile_pattern_is_read_in_bounded_time(pattern: str) -> None:
    start = time.perf_counter()
    pathological(pattern)
    assert time.perf_counter() - start < 2


def test_a_pathological_match_is_exponential_in_the_text() -> None:
    pattern, _ = run("re.compile", "(a+)+$")
    costs = [run_method(pattern, "match", "a" * n + "b")[1].seconds for n in (20, 25)]
    assert costs[1] / costs[0] == pytest.approx(32, rel=0.1)
    _, call = run("re.match", "(a+)+$", Value("unknown", name="text"))
    assert any(form not in ("", "log") for term in call.spent.terms for (_, form), _ in term)


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
