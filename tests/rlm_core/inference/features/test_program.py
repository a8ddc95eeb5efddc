"""What the text of a program says about its cost, as numbers."""

from __future__ import annotations

import math
import re
import time

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.features import describe, features, program
from rlm_core.inference.features.program import FACTS, NAMES, Program
from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES

WRITTEN = sorted(name for name, entry in LANGUAGES.items() if entry.suffixes and entry.grammar is not None)


def described(text: str, language: str) -> Program:
    found: Program = describe(canonical(text, language), "program", language)
    return found


def facts(text: str, language: str) -> npt.NDArray[np.float32]:
    return described(text, language).facts


def fact(text: str, language: str, name: str) -> float:
    return float(facts(text, language)[FACTS.index(name)])


@pytest.mark.parametrize(
    ("declaration", "elements"),
    [
        ("int a[1000][50];", 50_000),
        ("const int MAX = 100005;\nint a[MAX];", 100_005),
        ("#define N 2000\nint a[N][N];", 4_000_000),
        ("int a[1 << 3];", 0),
    ],
)
def test_the_sizes_of_arrays_follow_from_literals_and_constants(declaration: str, elements: int) -> None:
    text = f"{declaration}\nint main() {{ return 0; }}\n"
    assert fact(text, "cpp", "array_largest") == pytest.approx(math.log10(1 + elements), abs=1e-6)


def test_a_modulus_and_an_infinity_are_no_sizes() -> None:
    text = "MOD = 10**9 + 7\nINF = 1000000000\nprint(5)\n"
    assert fact(text, "python", "modulus") == 1
    assert fact(text, "python", "infinite") == 1
    assert fact(text, "python", "largest") == pytest.approx(math.log10(11), abs=1e-6)


def test_the_way_of_reading_shows() -> None:
    slow, fast = "n = int(input())\n", "import sys\nn = int(sys.stdin.readline())\n"
    assert fact(slow, "python", "input") > fact(fast, "python", "input") == 0
    assert fact(fast, "python", "readline") > fact(slow, "python", "readline") == 0


def test_comments_count_for_nothing() -> None:
    text = "n = int(input())\nprint(n)\n"
    np.testing.assert_array_equal(facts(text, "python"), facts(f"# a[100000]\n{text}", "python"))


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.sampled_from(WRITTEN))
def test_any_text_has_finite_facts(text: str, language: str) -> None:
    found = facts(text, language)
    assert found.shape == (len(FACTS),)
    assert np.isfinite(found).all()


def test_a_query_adds_date_runtime_and_what_the_ridge_says() -> None:
    known = described("print(1)\n", "python")
    row = features(known, "program", {"date": "2024-07-02", "runtime": "pypy"}, "atcoder", -1.5)
    named = dict(zip(NAMES, row.tolist(), strict=True))
    assert named["date"] == pytest.approx(2024.5, abs=0.01)
    assert (named["cpython"], named["pypy"], named["ridge"]) == (0, 1, -1.5)
    assert math.isnan(dict(zip(NAMES, features(known, "program", {}, "boj", 0.0).tolist(), strict=True))["date"])


@pytest.mark.parametrize(
    "text", ["x = 2**99999999", "int a[9**999];", "10 ** 99", "1 << 99", "9" * 5000, "1e99 + 1e99"]
)
def test_huge_numbers_are_read_in_time(text: str) -> None:
    assert np.isfinite(facts(text, "cpp")).all()


@pytest.mark.parametrize(
    "text",
    [
        "for " * 6000,
        "for" + " " * 25_000 + "x",
        "int " * 7000,
        "int a:" * 5000,
        "[a] " * 7000,
        "map(" * 7000,
        "a = 1 * " * 4000,
    ],
)
def test_repeated_text_is_read_in_time(text: str) -> None:
    started = time.process_time()
    assert len(describe(text, "program", "cpp").facts) == len(FACTS)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (program._SIGNS["sort"], "Sort" * 25_000),
        (program._SIGNS["tests"], "while" + "\n" * 100_000),
        (program._SIGNS["pairs"], "for" + "\n" * 100_000),
        (program._REPEATED, "] *" + "\n" * 100_000),
    ],
)
def test_a_pattern_is_searched_for_in_linear_time(pattern: re.Pattern[str], text: str) -> None:
    started = time.process_time()
    assert not pattern.findall(text)
    # Trying all parts of the text takes 10 s.
    assert time.process_time() - started < 2
