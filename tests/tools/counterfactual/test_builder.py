"""Counterfactual labels -> rows and pairs: groups whole, families held out, values at their floors or above."""

from __future__ import annotations

import ast
import gzip
import json
import math
import re
import sys
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from rlm_core.errors import DataError
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.training.datasets.functions import LATENCY_FLOOR_SECONDS
from rlm_core.training.datasets.schema import (
    EDITS_SCHEMA,
    HAND_WRITTEN,
    Edit,
    read_calls,
    read_edits,
    read_facts,
    read_rows,
    write_rows,
)
from rlm_core.training.datasets.splits import split_of

from tools.counterfactual.__main__ import main
from tools.counterfactual.builder import (
    HAND_WRITTEN_LABELS,
    LABELS,
    LITERAL_LABELS,
    MEMORY_FLOOR_BYTES,
    CounterfactualBuilder,
)

pytestmark = pytest.mark.extras

METRICS = ("latency", "memory")


def function(kind: str, latency: float, memory: int) -> dict[str, Any]:
    spread = {"p10": latency, "p90": latency * 2}
    module = f"def helper():\n    pass\n\n\ndef work():\n    helper()\n    return {latency}\n"
    return {"kind": kind, "name": "work", "module": module, "latency": latency, "spread": spread, "memory": memory}


def ratio(rows: dict[str, dict[str, Any]], name: str) -> float:
    """log10 of a row's value over that of the row that it is an edit of."""
    return math.log10(rows[name]["value"] / rows[rows[name]["edit_of"]]["value"])


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    label = {
        "group": "counterfactual/sum/0", "family": "edits/sum", "python": "3.12.1", "date": "2026-01-01",
        "machine": "a box",
        "functions": [function("base", 1e-6, 0), function("wrap-loop", 1e-4, 640), function("neutral-rename", 0.0, 0)],
    }  # fmt: skip
    path = tmp_path / "labels.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps(label) + "\n")
    return path


@pytest.fixture(scope="module")
def shipped() -> list[dict[str, Any]]:
    return list(CounterfactualBuilder(facts=False).rows())


def test_a_function_gives_a_row_a_metric_and_the_rows_fit_the_schema(labels: Path, tmp_path: Path) -> None:
    builder = CounterfactualBuilder([labels])
    heard: list[tuple[int, int]] = []
    rows = list(builder.rows(lambda done, total: heard.append((done, total))))
    assert heard == [(1, 1)]
    assert len(rows) == builder.report().rows == 6
    assert builder.report().units == 3
    assert len({row["id"] for row in rows}) == 6
    assert {row["split"] for row in rows} == {split_of("edits/sum")}
    assert all(set(row) == set(EDITS_SCHEMA.names) for row in rows)
    assert write_rows(rows, tmp_path / "rows.parquet", EDITS_SCHEMA) == 6
    assert list(read_rows([tmp_path / "rows.parquet"])) == rows
    assert {row["split"] for row in CounterfactualBuilder([labels], "test").rows()} == {"test"}


def test_values_are_clipped_at_the_floors(labels: Path) -> None:
    values = {row["id"].split("/", 3)[3]: row["value"] for row in CounterfactualBuilder([labels]).rows()}
    assert values["base/memory"] == MEMORY_FLOOR_BYTES
    assert values["neutral-rename/latency"] == LATENCY_FLOOR_SECONDS
    assert values["wrap-loop/memory"] == 640


def test_an_edit_names_the_row_before_it_and_the_noise_of_their_ratio(labels: Path, tmp_path: Path) -> None:
    rows = {row["id"]: row for row in CounterfactualBuilder([labels]).rows()}
    base, slower, renamed = (f"counterfactual/sum/0/{kind}" for kind in ("base", "wrap-loop", "neutral-rename"))
    assert ratio(rows, f"{slower}/latency") == pytest.approx(2)
    assert ratio(rows, f"{slower}/memory") == pytest.approx(1)
    assert rows[f"{slower}/latency"]["noise"] == pytest.approx(math.log10(2))
    assert rows[f"{slower}/memory"]["noise"] == 0
    assert rows[f"{renamed}/memory"]["noise"] == math.inf  # must change nothing
    assert rows[f"{base}/latency"]["edit_of"] is rows[f"{base}/latency"]["noise"] is None
    write_rows(rows.values(), tmp_path / "rows.parquet", EDITS_SCHEMA)
    edits = [Edit(f"{base}/{metric}", f"{name}/{metric}") for name in (slower, renamed) for metric in METRICS]
    assert list(read_edits([tmp_path / "rows.parquet"])) == edits
    assert list(read_edits([tmp_path / "rows.parquet"], ["no such split"])) == []


def test_a_file_of_other_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"package": "x"}\n')
    with pytest.raises(DataError, match="'date' is missing; is this a file of counterfactual labels"):
        CounterfactualBuilder([path])


def test_a_label_with_a_module_gives_the_unit_and_its_callees_as_the_product_reads_them(tmp_path: Path) -> None:
    module = (
        "LIMIT = 10\n\n\ndef inner(x):\n    return x\n\n\ndef outer(x):\n    return inner(x)\n\n\n"
        "class Store:\n    def work(self):\n        return outer(LIMIT)\n"
    )
    measured = {"latency": 1e-6, "spread": {"p10": 1e-6, "p90": 1.1e-6}, "memory": 100}
    base = {"kind": "base", "name": "work", "module": module, **measured}
    slow = {**base, "kind": "grow-size", "module": module.replace("10", "10**9"), "latency": 50.0, "extrapolated": True}
    same = {**base, "kind": "neutral-rename", "module": module.replace("(x)", "(y)").replace("return x", "return y")}
    label = {
        "group": "literal/x/0", "family": "literal/x", "python": "3.12.1", "date": "2026-01-01", "machine": "a box",
        "functions": [base, slow, same],
    }  # fmt: skip
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(label) + "\n")
    rows = {row["id"]: row for row in CounterfactualBuilder([path]).rows()}
    row = rows["literal/x/0/base/latency"]
    assert row["module"] == module
    assert row["text"] == "    def work(self):\n        return outer(LIMIT)"
    assert row["callees"] == [
        {"text": "def outer(x):\n    return inner(x)", "level": 1}, {"text": "def inner(x):\n    return x", "level": 2},
    ]  # fmt: skip
    [unit] = [
        entry for entry in Analyser().analyse(ParsedSource(module.encode(), "python")) if "work" in entry.unit.qualname
    ]
    assert read_calls(row["calls"]) == unit.code.calls
    assert read_facts(row["work"]) == unit.code.work
    assert "measured 2026-01-01" in row["source"]
    assert "extrapolated from smaller sizes" in rows["literal/x/0/grow-size/latency"]["source"]
    assert rows["literal/x/0/neutral-rename/latency"]["noise"] == math.inf
    assert rows["literal/x/0/grow-size/latency"]["noise"] == pytest.approx(math.log10(1.1))
    path.write_text(json.dumps(label).replace("def work", "def play") + "\n")
    with pytest.raises(DataError, match="literal/x/0: the module does not define 'work'"):
        list(CounterfactualBuilder([path]).rows())


def test_every_row_has_the_module_that_defines_its_text_and_the_facts_of_its_work() -> None:
    rows = CounterfactualBuilder([LABELS]).rows(), CounterfactualBuilder([LITERAL_LABELS]).rows()
    read = [row for some in rows for row in islice(some, 200)]
    assert sum(row["work"] is not None for row in read) > 0.5 * len(read)
    for row in read:
        assert row["text"] in row["module"]
        ast.parse(row["module"])


def test_the_shipped_labels_hold_enough_unseen_functions_and_no_family_in_two_splits(
    shipped: list[dict[str, Any]],
) -> None:
    assert LABELS.stat().st_size < 1_500_000
    assert LITERAL_LABELS.stat().st_size < 6_000_000
    splits = defaultdict(set)
    groups = defaultdict(set)
    for row in shipped:
        splits[row["family"]].add(row["split"])
        groups[row["split"]].add(row["group"])
        assert row["value"] > 0
    assert all(len(found) == 1 for found in splits.values())
    tested = {row["edit_of"] for row in shipped if row["split"] == "test" and row["noise"] not in (None, math.inf)}
    tested = {name for name in tested if name.startswith("counterfactual/") and name.endswith("/latency")}
    assert len(tested) >= 200
    assert len(groups["train"]) > 900


def test_the_shipped_labels_of_literal_work_span_decades_of_time_and_memory(shipped: list[dict[str, Any]]) -> None:
    rows = [row for row in shipped if row["family"].startswith("literal/")]
    for metric, low, high in (("latency", 1e-7, 1.0), ("memory", 64.0, 1e8)):
        values = sorted(row["value"] for row in rows if row["metric"] == metric)
        assert values[0] <= low
        assert values[-len(values) // 50] >= high / 10
        assert values[-1] >= high * 10
    assert sum(row["edit_of"] is None for row in rows) > 4000
    assert sum(row["edit_of"] is not None for row in rows) > 4000
    assert len({row["family"] for row in rows if row["split"] == "test"}) >= 15
    assert sum("extrapolated" in row["source"] for row in rows) < 0.1 * len(rows)


def test_shipped_neutral_edits_cost_nothing_and_wrapped_loops_do(shipped: list[dict[str, Any]]) -> None:
    ratios = defaultdict(list)
    kinds: Counter[str] = Counter()
    rows = {row["id"]: row for row in shipped if row["metric"] == "latency"}
    for name, row in rows.items():
        kind = re.sub(r"-\d+\Z", "", name.split("/")[-2])
        if row["edit_of"] is not None:
            kinds[kind] += 1
            ratios["neutral" if row["noise"] == math.inf else kind].append(ratio(rows, name))
    middle = {kind: sorted(found)[len(found) // 2] for kind, found in ratios.items()}
    assert abs(middle["neutral"]) < math.log10(1.03)
    assert middle["wrap-loop"] > math.log10(3)
    assert middle["shrink-size"] < 0
    assert kinds["wrap-loop"] > 100


def test_functions_written_by_hand_calibrate_and_are_not_read_as_real_ones() -> None:
    rows = list(CounterfactualBuilder([HAND_WRITTEN_LABELS], facts=False).rows())
    assert {row["split"] for row in rows} == {"train"}
    assert {row["held_out"] for row in rows} == {"edit"}
    assert all(row["family"].startswith(HAND_WRITTEN) for row in rows)
    assert len(rows) > 2 * 170


def test_the_command_builds_the_data_set(
    labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.parquet"
    monkeypatch.setattr(sys, "argv", ["counterfactual", "--labels", str(labels), "--out", str(out), "--split", "val"])
    main()
    assert capsys.readouterr().out == f"{out}: 6 rows of 3 units\n"
    assert {row["split"] for row in read_rows([out])} == {"val"}
    assert len(list(read_edits([out]))) == 4


def test_the_command_says_what_is_wrong_with_a_label_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["counterfactual", "--labels", str(tmp_path / "none"), "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"error: .*none: cannot be read"):
        main()
