"""What the text of a program says about its cost, as numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source.languages import LANGUAGES

from tools.experiments.program_facts import NAMES, program_facts

WRITTEN = sorted(name for name, entry in LANGUAGES.items() if entry.suffixes and entry.grammar is not None)


def fact(text: str, language: str, name: str) -> float:
    return float(program_facts(text, language)[NAMES.index(name)])


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
    np.testing.assert_array_equal(program_facts(text, "python"), program_facts(f"# a[100000]\n{text}", "python"))


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.sampled_from(WRITTEN))
def test_any_text_has_finite_facts(text: str, language: str) -> None:
    found = program_facts(text, language)
    assert found.shape == (len(NAMES),)
    assert np.isfinite(found).all()
