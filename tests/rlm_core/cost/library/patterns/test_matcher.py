"""The matcher matches what ``re`` matches, and its steps grow as the time of CPython's matcher does."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.library.patterns.matcher import count_steps, match_end
from rlm_core.cost.library.patterns.program import UnreadError, compiled

_ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\s", "^", "$", r"\b", r"\B", r"\Z", r"\A", "a*", "b+?", "[ab]{1,3}",
     r"\n?", "a{2}", ".*?", "b{0,12}", "a*+"]
)  # fmt: skip


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeats = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{2,}", "{1,20}", "{3,20}?", "*+", "?+"]
    forms = ["({})", "(?:{})", "(?={})", "(?!{})", "(?>{})", "(?i:{})", "({})\\1", "(?m:{})"]
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("(?:{})".format),
        st.tuples(inner, st.sampled_from(repeats)).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(inner, st.sampled_from(repeats)).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.tuples(inner, st.sampled_from(forms)).map(lambda pair: pair[1].format(pair[0])),
    )


@given(st.recursive(_ATOMS, _grown, max_leaves=8), st.data())
def test_a_match_ends_where_that_of_re_ends(pattern: str, data: st.DataObject) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            real = re.compile(pattern)
        program = compiled(pattern)
    except (re.error, UnreadError):
        return
    text = data.draw(st.text(program.characters, min_size=1, max_size=7))
    expected = real.match(text)
    indices = [program.characters.index(sign) for sign in text]
    assert match_end(program, indices, limit=100_000) == (None if expected is None else expected.end())


@pytest.mark.parametrize(
    ("pattern", "method", "degree"),
    [("a*b", "match", 1), ("a*b", "search", 2), (r"^a*$", "search", 1), ("a*a*b", "match", 2), ("a*?a*?b", "match", 2),
     ("a*+b", "search", 2), ("(?>a*)a*b", "match", 1), ("a|b", "findall", 1), (r"(?=a*b)", "search", 2)],
)  # fmt: skip
def test_steps_grow_as_the_ways_do(pattern: str, method: str, degree: int) -> None:
    program = compiled(pattern)
    letter = program.characters.index("a")
    steps = [count_steps(program, [letter] * size, method, 10**6) for size in (100, 200)]
    assert steps[1] / steps[0] == pytest.approx(2**degree, rel=0.15)


def test_steps_stop_at_the_limit() -> None:
    program = compiled("(a*)*b")
    assert count_steps(program, [program.characters.index("a")] * 1_000, "match", 5_000) == 5_000
