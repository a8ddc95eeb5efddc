"""Crossings: the size from which on one of two texts costs less."""

from __future__ import annotations

import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.crossing import crossing
from rlm_core.types import CodeText

LOOP = "def f(items: list[int]) -> int:\n    t = 0\n    for item in items:\n        t += item\n    return t\n"
SETUP = LOOP.replace("    t = 0\n", "    t = sum(range(20000))\n").replace("        t += item\n", "        pass\n")
SQUARE = LOOP.replace("        t += item\n", "        for other in items:\n            t += other\n")
TABLE = LOOP.replace("    t = 0\n", "    t = sum(range(3000))\n")
UNKNOWN = LOOP.replace("t += item", "t += fetch(item)")
OTHER = LOOP.replace("items", "others")


def code(text: str) -> CodeText:
    return CodeText(text, "python", "call", work=work_facts(text))


def test_a_text_with_a_fixed_cost_is_cheaper_from_some_size_on() -> None:
    found = crossing(code(SQUARE), code(TABLE), "latency")
    assert found is not None
    assert (found.size, found.is_second) == ("items", True)
    assert 5 < found.value < 500


def test_the_other_way_round_the_first_is_cheaper() -> None:
    there, back = crossing(code(SQUARE), code(TABLE), "latency"), crossing(code(TABLE), code(SQUARE), "latency")
    assert there is not None
    assert back is not None
    assert back.value == pytest.approx(there.value, rel=1e-3)
    assert not back.is_second


@pytest.mark.parametrize("after", [LOOP, UNKNOWN, OTHER, SQUARE])
def test_there_is_none_where_one_is_always_cheaper_or_the_texts_do_not_fix_the_rest(after: str) -> None:
    assert crossing(code(LOOP), code(after), "latency") is None


def test_texts_without_facts_have_none() -> None:
    assert crossing(CodeText(LOOP, "python", "call"), code(LOOP), "latency") is None
    assert crossing(code("def f() -> int:\n    return 1\n"), code("def f() -> int:\n    return 2\n"), "latency") is None


def test_the_setup_of_a_text_decides() -> None:
    found = crossing(code(LOOP), code(SETUP), "latency")
    assert found is not None
    assert found.is_second
    assert found.value > 1000
