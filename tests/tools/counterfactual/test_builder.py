"""Counterfactual labels -> rows and pairs: groups whole, families held out, values at their floors or above."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from rlm_core.errors import DataError
from rlm_core.training.datasets.functions import LATENCY_FLOOR_SECONDS
from rlm_core.training.datasets.schema import SCHEMA, read_rows, write_rows
from rlm_core.training.datasets.splits import split_of

from tools.counterfactual.builder import LABELS, MEMORY_FLOOR_BYTES, Builder, pairs

pytestmark = pytest.mark.extras


def function(kind: str, latency: float, memory: int) -> dict[str, Any]:
    spread = {"p10": latency, "p90": latency * 2}
    return {
        "kind": kind, "name": "work", "text": f"def work():\n    return {latency}\n", "latency": latency,
        "helpers": ["def helper():\n    pass\n"], "spread": spread, "memory": memory,
    }  # fmt: skip


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    label = {
        "group": "counterfactual/sum/0", "family": "edits/sum", "python": "3.12.1", "date": "2026-01-01",
        "machine": "a box",
        "functions": [function("base", 1e-6, 0), function("wrap-loop", 1e-4, 640), function("rename-local", 0.0, 0)],
    }  # fmt: skip
    path = tmp_path / "labels.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps(label) + "\n")
    return path


def test_a_function_gives_a_row_a_metric_and_the_rows_fit_the_schema(labels: Path, tmp_path: Path) -> None:
    builder = Builder(labels)
    heard: list[tuple[int, int]] = []
    rows = list(builder.rows(lambda done, total: heard.append((done, total))))
    assert heard == [(1, 1)]
    assert len(rows) == builder.report().rows == 6
    assert builder.report().units == 3
    assert len({row["id"] for row in rows}) == 6
    assert {row["split"] for row in rows} == {split_of("edits/sum")}
    assert all(set(row) == set(SCHEMA.names) for row in rows)
    assert write_rows(rows, tmp_path / "rows.parquet") == 6
    assert list(read_rows([tmp_path / "rows.parquet"])) == rows
    assert {row["split"] for row in Builder(labels, "test").rows()} == {"test"}


def test_values_are_clipped_at_the_floors(labels: Path) -> None:
    values = {row["id"].split("/", 3)[3]: row["value"] for row in Builder(labels).rows()}
    assert values["base/memory"] == MEMORY_FLOOR_BYTES
    assert values["rename-local/latency"] == LATENCY_FLOOR_SECONDS
    assert values["wrap-loop/memory"] == 640


def test_pairs_name_rows_and_hold_the_log_ratio_of_after_to_before(labels: Path) -> None:
    ids = {row["id"] for row in Builder(labels).rows()}
    slower, renamed = pairs(labels)
    assert slower.latency == pytest.approx(2)
    assert slower.memory == pytest.approx(1)
    assert slower.noise == pytest.approx(math.log10(2))
    assert (slower.longer, renamed.longer) == (1, -1)
    assert (slower.kind, slower.neutral, renamed.neutral) == ("wrap-loop", False, True)
    for pair in (slower, renamed):
        assert {f"{pair.before_id}/latency", f"{pair.after_id}/memory"} <= ids


def test_a_file_of_other_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"package": "x"}\n')
    with pytest.raises(DataError, match="lacks 'date'; is this a file of counterfactual labels"):
        Builder(path)


def test_the_shipped_labels_hold_enough_unseen_functions_and_no_family_in_two_splits() -> None:
    assert LABELS.stat().st_size < 1_500_000
    splits = defaultdict(set)
    groups = defaultdict(set)
    for row in Builder().rows():
        splits[row["family"]].add(row["split"])
        groups[row["split"]].add(row["group"])
        assert row["value"] > 0
    assert all(len(found) == 1 for found in splits.values())
    tested = {pair.before_id for pair in pairs() if pair.split == "test" and not pair.neutral}
    assert len(tested) >= 200
    assert len(groups["train"]) > 900


def test_shipped_neutral_edits_cost_nothing_and_wrapped_loops_do() -> None:
    ratios = defaultdict(list)
    kinds: Counter[str] = Counter()
    for pair in pairs():
        kinds[pair.kind] += 1
        ratios["neutral" if pair.neutral else pair.kind].append(pair.latency)
    middle = {kind: sorted(found)[len(found) // 2] for kind, found in ratios.items()}
    assert abs(middle["neutral"]) < math.log10(1.03)
    assert middle["wrap-loop"] > math.log10(3)
    assert middle["shrink-size"] < 0
    assert kinds["wrap-loop"] > 100
