"""Measurements as Parquet: label rows that go round, and rows that training reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core import DataError
from rlm_core.measurement.labels import from_labels, to_labels
from rlm_core.training.datasets.functions import LATENCY_FLOOR_SECONDS
from rlm_core.training.datasets.measured import read_labels, write_labels, write_training_rows
from rlm_core.training.datasets.schema import read_rows
from rlm_core.training.datasets.splits import split_of

from tests.rlm_core.measurement.test_store import SIZED, measurement

pytestmark = pytest.mark.timeout(60)

TEXT = {"text": "def f(n):\n    return g(n)\n", "callees": [{"text": "def g(n): ...", "level": 1}]}


def test_labels_go_round(tmp_path: Path) -> None:
    rows = [measurement(path=""), measurement(path="", metric="memory", median=8.0, low=0.0, high=64.0)]
    path = tmp_path / "labels.parquet"
    labels = to_labels(rows)
    write_labels([{**one, **TEXT} for one in labels], path)
    assert [row for _, row in read_labels(path)] == labels
    assert list(from_labels(read_labels(path))) == rows


def test_sizes_go_round_and_are_columns(tmp_path: Path) -> None:
    rows = [measurement(path="", **SIZED), measurement(path="", metric="memory", median=8.0, low=0.0, high=64.0)]
    labels = to_labels(rows)
    write_labels(labels, tmp_path / "labels.parquet")
    assert list(from_labels(read_labels(tmp_path / "labels.parquet"))) == rows
    write_training_rows([{**one, **TEXT} for one in labels], tmp_path / "rows.parquet")
    latency, memory = read_rows([tmp_path / "rows.parquet"])
    assert latency["sizes"] == {"items": [1, 2.5, 40], "self.rows[]": [0, 0, 3]}
    assert [(row["sizes"], row["median"], row["scaled"]) for row in latency["sized"]] == [
        ({"items": 1.5}, 1e-6, False),
        ({"items": 30.0}, 1e-5, True),
    ]
    assert (latency["first"], memory["first"]) == (1e-3, None)
    assert (memory["sizes"], memory["sized"]) == ({}, [])


def test_rows_to_train_on_are_what_training_reads(tmp_path: Path) -> None:
    rows = [
        measurement(median=-1e-9, low=-2e-9),
        measurement(metric="memory", median=96.0, low=0.0, high=128.0),
        measurement(qualname="few", calls=4),
        measurement(qualname="disturbed", ok=False),
        measurement(qualname="stream", kind="generator"),
    ]
    labels = [{**one, **TEXT} for one in to_labels(rows)] + to_labels([measurement(qualname="without_text")])
    path = tmp_path / "rows.parquet"
    assert write_training_rows(labels, path) == 2
    latency, memory = read_rows([path])
    assert (latency["metric"], latency["value"]) == ("latency", LATENCY_FLOOR_SECONDS)
    assert (memory["metric"], memory["value"]) == ("memory", 96.0)
    assert latency["text"] == TEXT["text"]
    assert latency["callees"] == TEXT["callees"]
    assert (latency["device"], latency["workload"]) == ("x86-64", {"runtime": "cpython-3.12"})
    assert latency["split"] == split_of("shapes/shapes.area")
    with pytest.raises(DataError, match="not a file of measurements"):
        read_labels(path)


def test_what_a_bench_measured_trains_on_its_device_and_sizes(tmp_path: Path) -> None:
    kernel = measurement(
        kind="kernel",
        language="triton",
        device="nvidia-h100-sxm",
        machine="",
        calls=1,
        workload={"n": "1024", "runtime": "triton-3.7.1"},
        module="ops/softmax",
    )
    rows = [kernel, replace(kernel, metric="memory", median=8.0, low=8.0, high=8.0)]
    path = tmp_path / "rows.parquet"
    assert write_training_rows([{**one, **TEXT} for one in to_labels(rows)], path) == 1
    [row] = read_rows([path])
    assert (row["basis"], row["language"], row["metric"]) == ("kernel", "triton", "latency")
    assert (row["device"], row["workload"]) == ("nvidia-h100-sxm", {"n": "1024"})
    assert (row["value"], row["group"]) == (kernel.median, "shapes/ops/softmax")
