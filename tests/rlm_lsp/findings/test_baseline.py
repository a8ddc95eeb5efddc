"""Baselines: known findings stay known when code moves, and come back when there are more of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core import DataError
from rlm_core.types import Span
from rlm_lsp.findings.baseline import Baseline, fingerprint, write
from rlm_lsp.findings.finding import Finding

SPAN = Span(3, 4, 3, 5, 40, 41)
FINDING = Finding("over-budget", "warning", "m", SPAN, "f", "latency", "latency < 1 ms", 0.9)


def test_a_finding_is_known_by_file_unit_code_and_budget_alone() -> None:
    moved = replace(FINDING, span=Span(90, 0, 90, 1, 900, 901), severity="error", message="n", probability=0.99)
    assert fingerprint("a.py", moved) == fingerprint("a.py", FINDING)
    others = [
        fingerprint("b.py", FINDING),
        fingerprint("a.py", replace(FINDING, qualname="g")),
        fingerprint("a.py", replace(FINDING, code="regression")),
        fingerprint("a.py", replace(FINDING, budget="latency < 2 ms")),
    ]
    assert len({fingerprint("a.py", FINDING), *others}) == 5


def test_what_is_written_is_known_as_often_as_it_was_found(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    assert write(path, [("b.py", FINDING), ("a.py", FINDING), ("a.py", FINDING)]) == 3
    entries = json.loads(path.read_text())["findings"]
    assert [entry["file"] for entry in entries] == ["a.py", "a.py", "b.py"]
    assert entries[0] == {
        "fingerprint": fingerprint("a.py", FINDING),
        "file": "a.py",
        "unit": "f",
        "code": "over-budget",
        "budget": "latency < 1 ms",
    }
    known, found = Baseline.read(path), fingerprint("a.py", FINDING)
    assert [known.takes(found) for _ in range(3)] == [True, True, False]
    assert not Baseline().takes(found)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "no such baseline; write it with --update-baseline"),
        ("{", "is not a baseline"),
        ("[]", "is not a baseline"),
        ('{"version": 1}', "is not a baseline"),
        ('{"version": 1, "findings": [{"fingerprint": 7}]}', "is not a baseline"),
        ('{"version": 9, "findings": []}', "a baseline of version 9"),
    ],
)
def test_a_bad_baseline_is_one_line(tmp_path: Path, content: str | None, what: str) -> None:
    path = tmp_path / "baseline.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"baseline\.json: ") as error:
        Baseline.read(path)
    assert what in str(error.value)


def test_a_baseline_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        write(tmp_path / "no" / "baseline.json", [])
