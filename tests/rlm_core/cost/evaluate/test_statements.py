"""Statements: branches, exceptions, early returns, bindings, and what they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.analysis import work_facts
from rlm_core.types import Amount

from ..counting import count, facts_of

SLEEP = "time.sleep(1)"


def function(*lines: str, arguments: str = "a") -> str:
    """A function with these lines."""
    return f"def f({arguments}):\n" + "".join(f"    {line}\n" for line in lines)


def between(known: Amount) -> tuple[float, float]:
    """Least and most."""
    return known.least, known.most


@pytest.mark.parametrize(
    ("lines", "least", "most"),
    [
        (("if a:", f"    {SLEEP}"), 0, 1),
        (("if a:", f"    {SLEEP}", "else:", f"    {SLEEP}", f"    {SLEEP}"), 0, 3),
        (("if True:", f"    {SLEEP}", "else:", f"    {SLEEP}", f"    {SLEEP}"), 1, 1),
        (("if a:", "    return", SLEEP), 0, 1),
        (("return", SLEEP), 0, 0),
        (("raise ValueError", SLEEP), 0, 0),
        (("if a:", "    return 1", "else:", "    raise ValueError", SLEEP), 0, 0),
        (("if len('abc') == 3:", f"    {SLEEP}"), 1, 1),
        (("with open(a):", f"    {SLEEP}"), 1, 1),
        (("try:", f"    {SLEEP}", "finally:", f"    {SLEEP}"), 2, 2),
        (("try:", "    return 1", "finally:", f"    {SLEEP}"), 1, 1),
        (("try:", "    raise ValueError", "except ValueError:", f"    {SLEEP}"), 0, 1),
        (("try:", "    x = 1", "except ValueError:", f"    {SLEEP}", "else:", f"    {SLEEP}"), 0, 2),
        (("match a:", "    case 1:", f"        {SLEEP}", "    case _:", "        pass"), 0, 1),
        (("assert a", SLEEP), 1, 1),
        (("def g():", f"    {SLEEP}"), 0, 0),
        (("def g():", f"    {SLEEP}", "g()", "g()"), 2, 2),
        ((f"def g(b={SLEEP}, *, c={SLEEP}):", "    pass"), 2, 2),
        ((f"@decorated({SLEEP})", "def g():", "    pass"), 1, 1),
        (("class C:", f"    x = {SLEEP}"), 1, 1),
        (("g = lambda: time.sleep(1)", "g()"), 1, 1),
        (("global x", SLEEP), 1, 1),
    ],
)
def test_statements_run_as_often_as_the_text_says(lines: tuple[str, ...], least: int, most: int) -> None:
    assert between(count(function(*lines))) == (least, most)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_waits_of_statements_add_up(seconds: list[int]) -> None:
    waits = facts_of(function(*(f"time.sleep({second})" for second in seconds))).waits
    assert [(wait.line, wait.seconds) for wait in waits] == [
        (line, Amount(second, second, second)) for line, second in enumerate(seconds, 1)
    ]


@given(st.integers(0, 50), st.integers(0, 50))
def test_a_branch_that_the_text_decides_is_the_only_one(left: int, right: int) -> None:
    lines = (f"if {left} < {right}:", f"    {SLEEP}", "else:", f"    {SLEEP}", f"    {SLEEP}")
    expected = 1 if left < right else 2
    assert between(count(function(*lines))) == (expected, expected)


def test_a_default_makes_its_branch_likely_and_not_sure() -> None:
    for default, likely in (("False", 0), ("True", 1)):
        known = count(function("if flag:", f"    {SLEEP}", arguments=f"flag={default}"))
        assert (known.least, known.likely, known.most) == (0, likely, 1)


def test_docstrings_and_type_hints_change_nothing() -> None:
    plain = facts_of(function("x = a + 1", "return x"))
    described = facts_of(function('"""What it does."""', "x: int", "x = a + 1", "return x"))
    assert (plain.latency.known, plain.memory.known) == (described.latency.known, described.memory.known)


def test_names_that_two_branches_bind_are_either() -> None:
    lines = ("if a:", "    n = 3", "else:", "    n = 7", "for i in range(n):", f"    {SLEEP}")
    known = count(function(*lines))
    assert between(known) == (3, 7)
    same = ("if a:", "    n = 5", "else:", "    n = 5", "for i in range(n):", f"    {SLEEP}")
    assert between(count(function(*same))) == (5, 5)


def test_a_deleted_name_is_not_known() -> None:
    assert facts_of(function("n = 3", "del n", "for i in range(n):", "    pass")).unknown_sizes == 1


def test_unpacked_names_are_known() -> None:
    for target in ("x, n", "[x, n]", "(x, n)"):
        assert between(count(function(f"{target} = 1, 4", "for i in range(n):", f"    {SLEEP}"))) == (4, 4)


@given(st.integers(1, 2000))
def test_memory_is_what_is_held_at_once(size: int) -> None:
    one, dropped, both = (
        facts_of(function(*lines)).memory.known.likely
        for lines in (
            (f"x = [0] * {size}",),
            (f"x = [0] * {size}", "x = None", f"y = [0] * {size}"),
            (f"x = [0] * {size}", f"y = [0] * {size}"),
        )
    )
    # `[0]` exists while the list is made.
    held = 56 + 8 * size
    assert (one, dropped, both) == (64 + held, 64 + held, 64 + 2 * held)


def test_augmented_assignment_extends_lists_and_adds_numbers() -> None:
    assert between(count(function("x = [1]", "x += [2, 3]", "for i in x:", f"    {SLEEP}"))) == (3, 3)
    assert between(count(function("n = 2", "n *= 3", "n -= 1", "for i in range(n):", f"    {SLEEP}"))) == (5, 5)


def test_broken_lines_do_not_hide_the_others() -> None:
    assert between(count(function(SLEEP, "x = = 3", SLEEP))) == (2, 2)


def test_deep_nesting_of_blocks_ends() -> None:
    lines = ["    " * depth + "if a:" for depth in range(90)] + ["    " * 90 + SLEEP]
    assert count(function(*lines)).least == 0


@pytest.mark.parametrize("handler", ["except Exception:", "except (ValueError, KeyError) as error:", "except:"])
def test_a_handler_is_unlikely(handler: str) -> None:
    known = count(function("try:", "    x = g(a)", handler, f"    {SLEEP}"))
    assert known.least == 0
    assert known.likely < 0.2


@pytest.mark.parametrize(("place", "grows"), [("0", True), ("i", True), ("-1", False)])
def test_deleting_an_item_of_a_list_moves_those_behind_it(place: str, *, grows: bool) -> None:
    facts = work_facts(f"def f(x: list, i: int):\n    del x[{place}]\n")
    assert facts is not None
    assert any(term.factors for term in facts.latency.terms) is grows


def test_a_set_is_extended_in_place() -> None:
    facts = work_facts("def f(x: set, y: list):\n    x |= {1, 2}\n    return x\n")
    assert facts is not None
    assert not any(term.factors for term in facts.latency.terms)


@pytest.mark.parametrize(
    ("guard", "is_certain"),
    [
        ("if not len(items): return 0", True),
        ("if not items: return 0", True),
        ("if not key: return 0", False),
        ("if len(items) <= 1: return 0", True),
        ("if len(items) == 0 or key == []: return 0", True),
        ("if key is None: raise ValueError", True),
        ("if len(items) != len(key): return 0", True),
        ("if key: return 0", False),
        ("if len(items) > 3: return 0", False),
        ("if key == 7: return 0", False),
    ],
)
def test_what_follows_a_guard_against_small_and_wrong_inputs_is_certain(guard: str, *, is_certain: bool) -> None:
    facts = work_facts(f"def f(items, key):\n    {guard}\n    for item in items:\n        item + 1\n")
    assert facts is not None
    [term] = [term for term in facts.latency.terms if [factor.size for factor in term.factors] == ["items"]]
    assert (term.least > 0.9 * term.likely) is is_certain


@pytest.mark.parametrize(
    "body",
    [
        "global _kept\n    if _kept is not None:\n        return _kept\n    time.sleep(9)\n    _kept = 1",
        "if self.kept:\n        return self.kept\n    time.sleep(9)\n    self.kept = 1",
    ],
)
def test_a_call_usually_finds_what_an_earlier_one_has_kept(body: str) -> None:
    [wait] = facts_of(f"def f(self, key):\n    {body}\n").waits
    assert wait.share == pytest.approx(0.1)
    for other in (
        f"def f(self, key):\n    {body.replace('return', 'return 1 +')}\n",
        "def f(key):\n    if key in kept:\n        return kept[key]\n    time.sleep(9)\n    kept[key] = 1\n",
    ):
        [wait] = facts_of(other).waits
        assert wait.share == pytest.approx(0.7)
