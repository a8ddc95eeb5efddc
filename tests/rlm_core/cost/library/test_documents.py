"""Documents: rows, characters and lines are paid for; bytes that repeat are compressed faster than others."""

from __future__ import annotations

import pytest
from rlm_core.cost.analysis import work_facts


def seconds(body: str) -> float:
    """The seconds that the text of a function fixes."""
    facts = work_facts(f"def f():\n    {body}\n")
    assert facts is not None
    return facts.latency.known.likely


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (
            "p = configparser.ConfigParser(); p.read_string('[a]\\nb = c\\n' * 2_000)",
            "p = configparser.ConfigParser(); p.read_string('[a]\\nb = c\\n' * 20_000)",
        ),
        ("ET.fromstring('<a/>' * 3_000)", "ET.fromstring('<a/>' * 30_000)"),
    ],
)
def test_ten_times_the_input_takes_about_ten_times_as_long(small: str, large: str) -> None:
    imports = "import configparser, sqlite3, xml.etree.ElementTree as ET; "
    assert 6 < seconds(imports + large) / seconds(imports + small) < 11


def test_a_comparison_takes_the_square_of_its_lines() -> None:
    def compared(lines: int) -> float:
        return seconds(
            f"import difflib; a = [str(i) for i in range({lines})]; return list(difflib.unified_diff(a, a[1:]))"
        )

    assert 50 < compared(5_000) / compared(500) < 110


def test_a_table_in_memory_is_read_line_by_line() -> None:
    text = "import csv, io; table = io.StringIO('1,2,three\\n' * 3_000); return sum(1 for row in csv.reader(table))"
    assert 1e-4 < seconds(text) < 3e-3
