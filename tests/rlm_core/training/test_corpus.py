"""Data sets as arrays: each canonical text once, rows that refer to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlm_core.errors import DataError
from rlm_core.source.call_graph import MAX_CALLEES
from rlm_core.training.corpus import Corpus, default_queries_of, floor_of, known_devices, load_corpus
from rlm_core.training.datasets.schema import write_rows

from tests.rlm_core.training.conftest import function_rows, kernel_rows, program_rows


def load(folder: Path, rows: list[dict[str, Any]], **options: Any) -> Corpus:
    write_rows(rows, folder / "rows.parquet")
    return load_corpus([folder / "rows.parquet"], **options)


def test_rows_keep_their_order_values_and_groups(tmp_path: Path) -> None:
    rows = function_rows(5) + program_rows(3)
    corpus = load(tmp_path, rows)
    assert corpus.rows.ids.tolist() == [row["id"] for row in rows]
    assert corpus.rows.value.tolist() == [row["value"] for row in rows]
    assert corpus.rows.group.tolist() == [row["group"] for row in rows]
    assert [corpus.tasks[number] for number in corpus.rows.task] == [
        f"{row['basis']}/{row['language']}/{row['metric']}" for row in rows
    ]


def test_texts_that_differ_in_comments_only_are_one(tmp_path: Path) -> None:
    first, second = function_rows(1)
    second["text"] = "# another comment\n" + second["text"]
    corpus = load(tmp_path, [first, second])
    assert corpus.rows.text.tolist() == [0, 0]


def test_the_same_text_in_two_languages_is_two(tmp_path: Path) -> None:
    first, second = program_rows(1)
    first["text"] = second["text"] = "x = 1\n"
    second["language"] = "ruby"
    assert len(load(tmp_path, [first, second]).texts) == 2


def test_callees_are_places_among_the_texts_by_level(tmp_path: Path) -> None:
    [row, _] = function_rows(1)
    row["callees"] = [
        {"text": "def a(): pass\n", "level": 1},
        {"text": "def b(): pass\n", "level": 2},
        {"text": "def c(): pass\n", "level": 1},
        {"text": "def d(): pass\n", "level": 3},
    ]
    corpus = load(tmp_path, [row])
    [[level1, level2]] = corpus.rows.callees
    names = [[corpus.texts[i][0][4] for i in level if i >= 0] for level in (level1, level2)]
    assert names == [["a", "c"], ["b"]]
    assert corpus.rows.callees.shape == (1, 2, MAX_CALLEES)


def test_more_callees_than_the_head_reads_are_cut(tmp_path: Path) -> None:
    [row, _] = function_rows(1)
    row["callees"] = [{"text": f"def f{number}(): pass\n", "level": 1} for number in range(MAX_CALLEES + 3)]
    assert np.all(load(tmp_path, [row]).rows.callees[0, 0] >= 0)


def test_only_wanted_splits_and_slices_are_read(tmp_path: Path) -> None:
    rows = function_rows(24) + program_rows(8)
    corpus = load(tmp_path, rows, splits=("val",), tasks=["program/java/memory", "call/python/latency"])
    assert corpus.tasks == ["program/java/memory", "call/python/latency"]
    wanted = [
        row["id"]
        for row in rows
        if row["split"] == "val" and (row["basis"], row["metric"]) in {("program", "memory"), ("call", "latency")}
    ]
    assert corpus.rows.ids.tolist() == wanted


def described(corpus: Corpus) -> dict[str, Any]:
    """What each row says, without numbers that depend on the order of reading."""
    rows = corpus.rows
    return {
        str(name): (
            corpus.texts[rows.text[i]],
            corpus.tasks[rows.task[i]],
            corpus.queries[rows.query[i]],
            [[corpus.texts[text] for text in level if text >= 0] for level in rows.callees[i]],
            (rows.value[i], rows.date[i], rows.group[i], rows.family[i], rows.split[i]),
        )
        for i, name in enumerate(rows.ids)
    }


def test_the_order_of_files_changes_no_row(tmp_path: Path) -> None:
    parts = {"a": function_rows(9), "b": program_rows(5), "c": kernel_rows(4)}
    paths = [tmp_path / f"{name}.parquet" for name in parts]
    for path, rows in zip(paths, parts.values(), strict=True):
        write_rows(rows, path)
    first, second = load_corpus(paths), load_corpus(paths[::-1])
    assert first.tasks == second.tasks == sorted(first.tasks)
    assert described(first) == described(second)
    assert len(described(first)) == len(first.rows) == 18 + 10 + 16


def test_every_query_is_kept_once(tmp_path: Path) -> None:
    corpus = load(tmp_path, kernel_rows(5))
    assert len(corpus.queries) == 4
    device, workload = corpus.queries[corpus.rows.query[1]]
    assert (device, workload) == ("nvidia-a100-sxm4-80gb", {"arg0": "1048576", "n": "1048576", "dtype": "fp32"})


def test_workloads_that_differ_in_order_only_are_one_query(tmp_path: Path) -> None:
    first, second, *_ = kernel_rows(1)
    second["workload"] = dict(reversed(first["workload"].items()))
    assert len(load(tmp_path, [first, second]).queries) == 1


def test_rows_without_a_device_are_read(tmp_path: Path) -> None:
    [row, *_] = kernel_rows(1)
    row["device"] = None
    assert load(tmp_path, [row]).queries[0][0] is None


def test_rows_of_a_language_and_basis_are_found_and_chosen(mixed_corpus: Corpus) -> None:
    assert mixed_corpus.prefixes() == ["call/python", "kernel/triton", "program/java"]
    chosen = mixed_corpus.rows.chosen(mixed_corpus.rows_of("kernel/triton"))
    assert len(chosen) == 64
    assert {mixed_corpus.tasks[number] for number in chosen.task} == {"kernel/triton/latency"}
    assert all(str(name).startswith("triton/") for name in chosen.ids)


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"rows\.parquet: no rows"):
        load(tmp_path, function_rows(2), splits=("cal",))


def test_only_dated_rows_have_a_date(tmp_path: Path) -> None:
    dates = load(tmp_path, function_rows(1) + program_rows(1)).rows.date
    assert dates[:2].tolist() == [0, 0]
    assert np.all((dates[2:] > 2024) & (dates[2:] < 2024.1))


@pytest.mark.parametrize(
    ("name", "floor"),
    [
        *(("call/python/latency", 5e-8), ("call/python/memory", 64.0), ("kernel/x/y", 0.0)),
        *(("program/go/latency", 0.0), ("program/go/latency@boj", 4e-3), ("program/go/memory@boj", 0.0)),
    ],
)
def test_a_slice_has_the_floor_of_its_measurement(name: str, floor: float) -> None:
    assert floor_of(name) == floor


def test_devices_are_those_of_training_rows_the_most_frequent_first(tmp_path: Path) -> None:
    rows = kernel_rows(8)
    for row in rows:
        if row["split"] == "test":
            row["device"] = "nvidia-h100-sxm5-80gb"
    rows = [row for row in rows if row["device"] != "nvidia-a100-sxm4-80gb" or row["workload"]["n"] == "1024"]
    write_rows(rows, tmp_path / "rows.parquet")
    corpus = load_corpus([tmp_path / "rows.parquet"])
    assert known_devices(corpus) == {"kernel": ["nvidia-l40s", "nvidia-a100-sxm4-80gb"]}
    assert default_queries_of(corpus)["kernel"]["device"] == "nvidia-a100-sxm4-80gb"


def test_a_usual_device_without_training_rows_is_no_default(tmp_path: Path) -> None:
    write_rows([row for row in kernel_rows(8) if row["device"] == "nvidia-l40s"], tmp_path / "rows.parquet")
    assert default_queries_of(load_corpus([tmp_path / "rows.parquet"]))["kernel"]["device"] == "nvidia-l40s"


def test_defaults_name_what_is_measured_and_when(mixed_corpus: Corpus) -> None:
    defaults = default_queries_of(mixed_corpus)
    assert defaults["call"] == {"device": "x86-64", "workload": {"runtime": "cpython-3.12"}}
    assert defaults["program"]["workload"].keys() == {"judge", "date"}
    assert defaults["network/accuracy"]["device"] is None
    assert defaults["kernel"]["workload"] == {}


def test_the_default_runtime_of_a_language_is_the_most_common_that_a_judge_names(tmp_path: Path) -> None:
    rows = program_rows(24)
    for number, row in enumerate(rows):
        row["device"] = "atcoder"
        row["workload"] = {"judge": "atcoder", "date": "2021-02-03"}
        if number % 4 < 2:
            row |= {
                "language": "python",
                "workload": {**row["workload"], "runtime": "pypy" if number % 8 else "cpython"},
            }
    write_rows(rows, tmp_path / "rows.parquet")
    defaults = default_queries_of(load_corpus([tmp_path / "rows.parquet"]))
    assert defaults["program"]["device"] == "atcoder"
    assert "runtime" not in defaults["program"]["workload"]
    assert defaults["program/python@atcoder"]["workload"]["runtime"] == "pypy"
    assert "program/java@atcoder" not in defaults
