"""The polynomials of about 150 of our own functions, against the files next to this one."""

from __future__ import annotations

import difflib

from rlm_core.cost.domain.meter import Meter
from rlm_core.cost.domain.quantities import ONE, ZERO, constant, of_size

from .polynomials import FOLDER, golden_files, lines_of, polynomial


def test_the_costs_of_our_own_functions_are_those_of_the_golden_files() -> None:
    files = golden_files()
    assert sorted(files) == sorted(FOLDER.glob("*.txt"))
    changes = [
        line
        for path, text in files.items()
        for line in difflib.unified_diff(
            path.read_text(encoding="utf-8").splitlines(), text.splitlines(), path.name, "now", n=3, lineterm=""
        )
    ]
    assert not changes, "\n".join(["if intended: python -m tests.rlm_core.cost.golden", *changes])


def test_about_150_functions_are_compared() -> None:
    functions = [line for text in golden_files().values() for line in text.splitlines() if line[:1].strip()]
    assert 120 <= len(functions) <= 180


def test_a_polynomial_is_written_with_its_ranges() -> None:
    size = of_size("n")
    assert polynomial(size * size + size.log().times(2) + constant(1, 4, 3)) == "1 n^2 + 2 log n + 3 (1 to 4)"
    assert polynomial(ZERO) == "0"


def test_a_cost_lists_what_is_unknown_and_where_it_may_not_end() -> None:
    meter = Meter()
    meter.miss("fetch()", of_size("n"))
    meter.hold(ONE)
    meter.run_on(3)
    assert list(lines_of(meter)) == [
        "seconds: 0", "peak bytes: 1", "unknown: fetch(), 1 n times", "may not end: line 4, in 1 of the runs",
    ]  # fmt: skip
