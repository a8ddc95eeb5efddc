"""Files of measurements: what is read, what is told by line, what is worth measuring."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core import DataError, Query
from rlm_core.inference.adaptation.build import suggest
from rlm_core.inference.adaptation.measurements import read_measurements

from .adapting import FakePredictor, measured


def _rows(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


def test_measurements_are_read_from_texts_and_files_in_si_units(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("def f(n):\n    return n\n\n\ndef g(n):\n    return f(n)\n")
    path = _rows(
        tmp_path / "m.jsonl",
        {"path": "code.py", "qualname": "g", "latency_us": 5},
        "",
        {
            "text": "int x;",
            "language": "c",
            "basis": "program",
            "metric": "memory",
            "value": 2048,
            "workload": {"n": 3},
        },
    )
    [first, second], problems = read_measurements(path)
    assert problems == []
    assert first.value == pytest.approx(5e-6)
    assert (first.line, first.code.basis) == (1, "call")
    assert [callee.depth for callee in first.code.callees] == [1]
    assert (second.line, second.value, second.query) == (3, 2048.0, Query("memory", None, {"n": "3"}))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "not JSON"),
        ([1], "must be a JSON object"),
        ({"text": "x", "language": "c", "basis": "program"}, "give one of `value`"),
        ({"text": "x", "language": "c", "basis": "program", "value": 1, "latency_ms": 1}, "give one of `value`"),
        ({"text": "x", "language": "c", "basis": "program", "value": 0}, "must be a number above 0"),
        ({"text": "x", "language": "c", "basis": "program", "value": True}, "must be a number above 0"),
        ({"text": "x", "language": "c", "basis": "program", "metric": "accuracy", "value": 1}, "`metric` must be"),
        ({"text": "x", "language": "c", "basis": "program", "metric": "memory", "latency_ms": 1}, "is not a memory"),
        ({"text": "x", "language": "c", "basis": "nothing", "value": 1}, "`basis` must be"),
        ({"text": "x", "language": "klingon", "basis": "program", "value": 1}, "klingon"),
        ({"text": "x", "language": "c", "basis": "program", "value": 1, "workload": {"n": [1]}}, "`workload` must"),
        ({"value": 1}, "give `path` or `text`"),
        ({"path": "code.py", "qualname": "h", "value": 1}, "0 units are called 'h'; code.py has f, g"),
        ({"path": "code.py", "value": 1}, "`qualname` is missing; code.py has f, g"),
        ({"path": "missing.py", "value": 1}, "missing.py"),
    ],
)
def test_a_bad_row_is_reported_by_line_and_the_others_are_used(tmp_path: Path, row: object, reason: str) -> None:
    (tmp_path / "code.py").write_text("def f(n):\n    return n\n\n\ndef g(n):\n    return f(n)\n")
    good = {"text": "int x;", "language": "c", "basis": "program", "latency_ms": 2}
    path = _rows(tmp_path / "m.jsonl", row, good)
    found, [problem] = read_measurements(path)
    assert [entry.value for entry in found] == [pytest.approx(2e-3)]
    assert problem.startswith(f"{path}:1: ")
    assert reason in problem
    assert "\n" not in problem


def test_a_missing_file_of_measurements_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_measurements(tmp_path / "none.jsonl")


def test_candidates_need_no_value_and_the_suggested_ones_are_named_by_line() -> None:
    candidates = [replace(row, value=None) for row in measured([10, 11, 12, 500, 13, 14])]
    lines = suggest(FakePredictor(), candidates, 2)
    assert len(lines) == 2
    assert 4 in lines
