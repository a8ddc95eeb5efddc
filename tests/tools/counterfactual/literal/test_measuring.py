"""Measuring literal work in shards: costs are right, slow programs are extrapolated, runs continue, shards merge."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools.counterfactual.literal import measuring
from tools.counterfactual.literal.generator import Group, Program, program
from tools.counterfactual.literal.measuring import WORKER, label, measure_shards, merge
from tools.counterfactual.literal.rendering import Module, Specification
from tools.counterfactual.literal.templates import TEMPLATES
from tools.counterfactual.measuring import Child

pytestmark = pytest.mark.extras
ATTEMPTS = 5


def specification(template: str, size: int, variant: int = 0) -> Specification:
    return Specification(TEMPLATES[template], variant, size, "measured")


def measured(*specifications: Specification) -> list[dict[str, float]]:
    """The costs of programs of one group, measured again where a busy machine disturbed one so that it was left out."""
    base, *others = (program(one) for one in specifications)
    group = Group("literal/x/0", "literal/x", base, tuple((f"edit-{at}", one) for at, one in enumerate(others)))
    functions: list[dict[str, float]] = []
    for _ in range(ATTEMPTS):
        child = Child(sys.executable, WORKER)
        try:
            line = label(group, child, Counter())
        finally:
            child.close()
        functions = line["functions"] if line is not None else []
        if len(functions) == len(specifications):
            return functions
    raise AssertionError(f"only {len(functions)} of {len(specifications)} programs were measured")


def test_time_and_memory_follow_the_size() -> None:
    small, large, lazy = measured(
        specification("list-of-range", 1000), specification("list-of-range", 100_000),
        specification("list-of-range", 10**9, variant=1),
    )  # fmt: skip
    assert 20 < large["latency"] / small["latency"] < 500
    assert large["memory"] > 3_000_000 > small["memory"] > 30_000
    assert lazy["latency"] < 1e-6
    assert lazy["memory"] < 1000
    assert small["spread"]["p10"] <= small["spread"]["p90"]  # type: ignore[index]


def test_a_slow_program_is_extrapolated_by_its_law_and_marked() -> None:
    base, slow = measured(specification("count-loop", 20_000), specification("count-loop", 200_000_000))
    assert "extrapolated" not in base
    assert slow["extrapolated"] is True
    assert 3000 < slow["latency"] / base["latency"] < 30_000


def test_caches_are_empty_at_each_call() -> None:
    few, many = measured(specification("fibonacci", 20, variant=1), specification("fibonacci", 60, variant=1))
    assert many["latency"] > 1.7 * few["latency"]


def test_what_fails_is_counted_and_the_rest_measured() -> None:
    good = program(specification("sum-range", 100))
    bad = Program(good.specification, Module("def f():\n    return undefined\n", "f", "", "[]"), ())
    child = Child(sys.executable, WORKER)
    left_out: Counter[str] = Counter()
    try:
        line = label(Group("literal/x/0", "literal/x", good, (("edit", bad),)), child, left_out)
        assert line is not None
        assert [function["kind"] for function in line["functions"]] == ["base"]
        assert label(Group("literal/x/1", "literal/x", bad, ()), child, left_out) is None
    finally:
        child.close()
    assert left_out == {"x: NameError": 2}


def test_a_run_continues_after_its_last_shard_and_shards_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "SHARD", 3)
    heard: list[int] = []
    measure_shards(7, 3, tmp_path / "s", date="2026-01-01", python=sys.executable)
    [first] = (tmp_path / "s").iterdir()
    written = first.stat().st_mtime_ns
    measure_shards(
        7, 5, tmp_path / "s", date="2026-01-01", python=sys.executable, progress=lambda done, kept: heard.append(done)
    )
    assert heard == [3, 5]
    assert first.stat().st_mtime_ns == written
    summary = merge(tmp_path / "s", tmp_path / "labels.jsonl.gz")
    with gzip.open(tmp_path / "labels.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert [line["family"] for line in lines] == sorted(line["family"] for line in lines)
    assert len(lines) == summary.groups <= 5
    assert sum(len(line["functions"]) for line in lines) == summary.functions


def test_no_shard_is_started_after_the_end(tmp_path: Path) -> None:
    measure_shards(7, 5, tmp_path / "s", date="2026-01-01", python=sys.executable, until=0.0)
    assert list((tmp_path / "s").iterdir()) == []
