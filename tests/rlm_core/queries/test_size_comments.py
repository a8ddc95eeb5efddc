"""Comments about sizes: which functions they are about, and what is wrong with others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.queries.kernel_sizes import sizes_problems
from rlm_core.queries.size_comments import MOST_SIZE, is_size_name, read_quantity, read_size_comments
from rlm_core.source.directives import find_directives
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units

from .test_function_sizes import OTHER, TOTAL, sizes

KERNEL = "@triton.jit\ndef add(x, n):\n    pass\n"


def problems(source: str) -> list[str]:
    parsed = ParsedSource(source.encode(), "python")
    return [problem.text for problem in sizes_problems(parsed, find_units(parsed))]


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("12", 12), ("10_000", 10_000), ("10k", 10_000), ("1.5M", 1.5e6), ("2G", 2e9), ("2**20", 2**20)],
)
def test_a_size_is_written_as_people_write_numbers(text: str, value: float) -> None:
    assert read_quantity(text) == value


@pytest.mark.parametrize("text", ["", "k", "-1", "1e3", "ten", "1k5", "9" * 17, "10**99", "999999**99", "nan", "0x10"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        read_quantity(text)


@given(st.integers(0, int(MOST_SIZE)))
def test_every_number_up_to_the_largest_is_a_size(value: int) -> None:
    assert read_quantity(f"{value:_}") == value


def test_a_size_is_named_as_the_analysis_names_it() -> None:
    assert all(map(is_size_name, ("n", "items", "rows[]", "self.queue", "self.rows[].cells")))
    assert not any(map(is_size_name, ("", "1n", "a b", "rows[", "src/*.py")))


@pytest.mark.parametrize(
    "source",
    [
        f"# rlm: sizes items=10k\n{TOTAL}",
        f"x = 1\n# a comment\n# rlm: sizes items=10k\n# rlm: latency < 1 ms\n{TOTAL}",
        TOTAL.replace("\n    return", "\n    # rlm: sizes items=10k\n    return"),
        f"# rlm: sizes items=10k\n@cached\n{TOTAL}",
    ],
)
def test_a_comment_gives_the_sizes_of_its_function(source: str) -> None:
    value, origin, rule = sizes(f"{source}\n\n{OTHER}")["items"]
    assert (value, origin) == (10_000, "comment")
    assert rule == f"line {1 + source[: source.index('# rlm: sizes')].count(chr(10))}"
    assert not sizes(f"{source}\n\n{OTHER}", "other")
    assert not problems(f"{source}\n\n{OTHER}")


def test_a_comment_at_the_top_is_about_all_functions() -> None:
    source = f'"""A module."""\n\n# rlm: sizes items=10k\n\nimport os\n\n\n{TOTAL}\n\n# rlm: sizes items=3\n{OTHER}'
    assert sizes(source)["items"] == (10_000, "comment", "line 3")
    assert sizes(source, "other")["items"] == (3, "comment", "line 12")
    assert not problems(source)


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("items", "`items` is not NAME=VALUE"),
        ("items=many", "`many` is not a size"),
        ("items=1 items=2", "`items` is given twice"),
        ("", "no size; write it like items=10k"),
    ],
)
def test_a_mistake_in_a_comment_is_reported_and_the_line_not_used(said: str, part: str) -> None:
    source = f"# rlm: sizes {said}\n{TOTAL}"
    [text] = problems(source)
    assert part in text
    assert not sizes(source)


def test_comments_of_kernels_are_not_about_functions() -> None:
    source = f"import triton\n# rlm: sizes n=10\n{KERNEL}\n\n{TOTAL}"
    parsed = ParsedSource(source.encode(), "python")
    comments = read_size_comments(find_directives(parsed), find_units(parsed))
    assert not comments.of_units
    assert not comments.of_file
