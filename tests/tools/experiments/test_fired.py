"""What of the cost analysis real functions need: counted per line, and reported by block."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from tools.experiments.fired import Counts, count, is_held_out, parts, report

SOURCE = """
def common(x):
    if x:
        return 1
    return 2


def rare(x):
    return x
"""


def _packages() -> tuple[str, str]:
    """The names of a package to decide on and of one that is held out."""
    names = [f"package{number}" for number in range(50)]
    return next(name for name in names if not is_held_out(name)), next(name for name in names if is_held_out(name))


def test_packages_are_added_up_in_two_parts() -> None:
    chosen, held_out = _packages()
    first, second = parts(
        [
            Counts(chosen, 10, Counter({"a.py:1": 3}), Counter()),
            Counts(chosen, 30, Counter({"a.py:1": 1}), Counter()),
            Counts(held_out, 5, Counter({"a.py:1": 5}), Counter()),
        ]
    )
    assert (first.functions, first.share(first.lines["a.py:1"])) == (40, 0.1)
    assert (second.functions, second.share(second.lines["a.py:1"])) == (5, 1.0)


def test_blocks_that_few_functions_of_both_parts_need_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE, encoding="utf-8")
    lines = Counter({"a.py:3": 900, "a.py:4": 1, "a.py:5": 899, "a.py:9": 1})
    counted = [Counts(package, 1000, lines, Counter()) for package in _packages()]
    _, *rare = report(counted, tmp_path, 0.01)
    assert [line.split()[1:3] for line in rare] == [["a.py:9-9", "rare"], ["a.py:4-4", "common"]]
    counted[1].lines["a.py:9"] = 500
    _, *rare = report(counted, tmp_path, 0.01)
    assert [line.split()[1] for line in rare] == ["a.py:4-4"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring")
def test_lines_and_entries_are_counted_once_per_function(tmp_path: Path) -> None:
    text = "def f(items):\n    return sorted(items) + sorted(items)\n\n\ndef g():\n    return 1\n"
    (tmp_path / "module.py").write_text(text, encoding="utf-8")
    counts = count(10, tmp_path)
    assert counts.functions == 2
    assert max(counts.lines.values()) == 2
    [used] = [times for name, times in counts.entries.items() if name.endswith("builtins.sorted")]
    assert used == 1
