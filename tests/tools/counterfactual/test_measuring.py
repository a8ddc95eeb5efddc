"""Generated groups are measured in a process of their own; what fails or hangs is left out and counted."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.counterfactual import measuring
from tools.counterfactual.generator import Group
from tools.counterfactual.measuring import measure, measure_groups
from tools.counterfactual.programs import Program
from tools.counterfactual.values import Argument

pytestmark = pytest.mark.extras


def version(body: str, *, owner: str = "") -> Program:
    arguments = (Argument("ints", 30, 1, "order"),)
    if owner:
        return Program("work", owner, f"    def work(self):\n        {body}\n", (), ("xs",), arguments)
    return Program("work", "", f"def work(xs):\n    {body}\n", (), (), arguments)


def group(base: Program, *edits: tuple[str, Program]) -> Group:
    return Group("counterfactual/sum/0", "edits/sum", base, edits)


def labels(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_more_work_measures_longer_and_a_longer_list_larger() -> None:
    edits = (
        ("wrap-loop", version("return [sum(xs) for _ in range(60)][0]")),
        ("grow-size", version("return len([0] * 100_000)")),
    )
    [(_, results)] = measure_groups([group(version("return sum(xs)"), *edits)], sys.executable)
    base, more, larger = results
    assert more["latency"] > 10 * base["latency"] > 0
    assert larger["memory"] > 700_000 > base["memory"] >= 0
    assert base["p10"] <= base["p90"]


def test_a_method_is_called_on_an_object_that_holds_its_fields(tmp_path: Path) -> None:
    summary = measure(
        [group(version("return sum(self.xs)", owner="Store"))],
        tmp_path / "l.jsonl.gz",
        date="2026-01-01",
        python=sys.executable,
    )
    assert (summary.groups, summary.functions, summary.left_out) == (1, 1, {})
    [label] = labels(tmp_path / "l.jsonl.gz")
    assert (label["owner"], label["fields"], label["date"]) == ("Store", ["xs"], "2026-01-01")


def test_what_fails_or_returns_something_else_is_left_out_and_counted(tmp_path: Path) -> None:
    edits = (
        ("rename-local", version("return sum(xs) + 1")),
        ("wrap-loop", version("return sum(xs) + 1")),
        ("sort-added", version("return sorted(xs + [{}])")),
    )
    groups = [
        group(version("return sum(xs)"), *edits),
        group(version("return undefined")),
        group(version("xs.pop()\n    return xs")),
    ]
    heard: list[int] = []
    summary = measure(groups, tmp_path / "l.jsonl.gz", heard.append, date="2026-01-01", python=sys.executable)
    assert heard == [1, 2, 3]
    assert summary.left_out == {
        "edit: returns something else": 1, "edit: TypeError": 1, "base: NameError": 1, "base: ValueError": 1,
    }  # fmt: skip
    [label] = labels(tmp_path / "l.jsonl.gz")
    assert [function["kind"] for function in label["functions"]] == ["base", "wrap-loop"]


def test_a_call_that_does_not_end_is_stopped_and_the_next_group_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_GROUP_LIMIT", 20.0)
    endless, dead = version("while True: pass"), version("import os; os._exit(3)")
    groups = [group(endless), group(dead), group(version("return sum(xs)"))]
    errors = [results[0].get("error") for _, results in measure_groups(groups, sys.executable)]
    assert errors == ["TimeoutError", "the measuring process ended", None]
