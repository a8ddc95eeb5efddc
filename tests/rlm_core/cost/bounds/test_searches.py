"""How far searches get that may end early."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.bounds.searches import is_rare, loop_test


def _test(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    "text", ["a == b", "item.id == wanted", "a is b", "not a != b", "a == b and b", "text.startswith(part)"]
)
def test_two_changing_values_are_rarely_equal(text: str) -> None:
    assert is_rare(_test(text))


@pytest.mark.parametrize("text", ["a == 'x'", "a != b", "a < b", "a in b", "a == b or c", "text.startswith('#')", "a"])
def test_other_conditions_may_hold_soon(text: str) -> None:
    assert not is_rare(_test(text))


def test_two_changing_values_mostly_differ() -> None:
    assert is_rare(_test("a != b"), holds=False)
    assert not is_rare(_test("a == b"), holds=False)


def test_the_condition_that_leaves_a_loop_is_the_only_one() -> None:
    def loop(lines: str) -> ast.For:
        [node] = ast.parse(f"for a in items:\n{lines}").body
        assert isinstance(node, ast.For)
        return node

    found = loop_test(loop("    if a == b:\n        break\n    count += 1\n"))
    assert found is not None
    assert ast.unparse(found) == "a == b"
    assert loop_test(loop("    if a == b:\n        break\n    if c:\n        break\n")) is None
    assert loop_test(loop("    if c:\n        if a == b:\n            break\n")) is None
