"""Data sets on disk are read as they were written, partial and foreign files are refused; splits go by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import DataError
from rlm_core.training.datasets.schema import (
    EDITS_SCHEMA,
    FORMAT,
    SCHEMA,
    Edit,
    merge_groups,
    read_edits,
    read_rows,
    read_tables,
    split_of,
    write_rows,
)

from tests.rlm_core.training.conftest import function_rows, program_rows

groups = st.text(st.characters(codec="utf-8"), max_size=20)


def test_rows_survive_the_file(tmp_path: Path) -> None:
    rows = function_rows(6) + program_rows(3)
    path = tmp_path / "deep" / "rows.parquet"
    assert write_rows(rows, path) == len(rows)
    assert list(read_rows([path])) == rows


def test_several_files_are_read_one_after_another(tmp_path: Path) -> None:
    write_rows(function_rows(2), tmp_path / "a.parquet")
    write_rows(program_rows(2), tmp_path / "b.parquet")
    assert list(read_rows([tmp_path / "a.parquet", tmp_path / "b.parquet"])) == function_rows(2) + program_rows(2)


def test_tables_hold_the_same_rows_some_thousands_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    rows = function_rows(3000)
    write_rows(rows, path)
    tables = list(read_tables([path], ("val",)))
    assert len(tables) > 1
    found = [row for table in tables for row in table.to_pylist(maps_as_pydicts="strict")]
    assert found == [row for row in rows if row["split"] == "val"]


def test_only_the_wanted_splits_are_read(tmp_path: Path) -> None:
    write_rows(function_rows(24), tmp_path / "rows.parquet")
    found = list(read_rows([tmp_path / "rows.parquet"], ("val", "test")))
    assert found == [row for row in function_rows(24) if row["split"] in ("val", "test")]
    assert found


def test_more_rows_than_a_row_group_holds_are_counted(tmp_path: Path) -> None:
    [row, _] = function_rows(1)
    assert write_rows((row for _ in range(10_000)), tmp_path / "rows.parquet") == 10_000
    assert sum(1 for _ in read_rows([tmp_path / "rows.parquet"])) == 10_000


def test_a_build_that_breaks_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_rows(function_rows(2), path)

    def broken() -> Iterator[dict[str, Any]]:
        yield from program_rows(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(broken(), path)
    assert list(read_rows([path])) == function_rows(2)


def test_edits_name_both_rows_and_a_file_without_pairs_is_refused(tmp_path: Path) -> None:
    before, after, *_ = [{**row, "held_out": "edit", "edit_of": None} for row in function_rows(2)]
    path = tmp_path / "edits.parquet"
    write_rows([before, {**after, "edit_of": before["id"]}], path, EDITS_SCHEMA)
    assert list(read_edits([path])) == [Edit(before["id"], after["id"])]
    write_rows([before, after], path)
    with pytest.raises(DataError, match=r"edits\.parquet: has no column edit_of; build it again"):
        list(read_edits([path]))
    write_rows(function_rows(2), path)
    assert list(read_edits([path])) == []


def test_the_file_names_its_format(tmp_path: Path) -> None:
    write_rows(function_rows(1), tmp_path / "rows.parquet")
    schema = pq.read_schema(tmp_path / "rows.parquet")
    assert schema.metadata[b"format"] == FORMAT.encode()
    assert schema.names == SCHEMA.names


@pytest.mark.parametrize("kind", ["missing", "text", "cut", "directory"])
def test_what_is_no_parquet_file_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.parquet"
    if kind == "text":
        path.write_text("not parquet")
    elif kind == "cut":
        write_rows(function_rows(4), path)
        path.write_bytes(path.read_bytes()[:-100])
    elif kind == "directory":
        path.mkdir()
    with pytest.raises(DataError, match=r"rows\.parquet: not a readable Parquet file"):
        list(read_rows([path]))


def test_another_parquet_file_is_no_data_set(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="build it with `rlm-lsp data build`"):
        list(read_rows([tmp_path / "rows.parquet"]))


@given(groups)
def test_a_group_is_always_in_the_same_split(group: str) -> None:
    assert split_of(group) == split_of(group) in {"train", "val", "cal", "test"}


def test_the_split_of_a_name_is_the_same_on_every_machine() -> None:
    names = {"train": 0, "cal": 8, "val": 13, "test": 15}
    assert {split: split_of(f"leetcode/problem-{number}") for split, number in names.items()} == {
        split: split for split in names
    }


def test_the_shares_are_about_75_5_10_10() -> None:
    counts = Counter(split_of(f"group {number}") for number in range(20_000))
    for split, share in (("train", 0.75), ("val", 0.05), ("cal", 0.10), ("test", 0.10)):
        assert counts[split] / 20_000 == pytest.approx(share, abs=0.01)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcdefgh"))))
def test_groups_that_share_a_key_are_joined_under_the_smallest_name(pairs: list[tuple[int, str]]) -> None:
    joined = merge_groups(pairs)
    assert joined.keys() == {group for _, group in pairs}
    for key, group in pairs:
        assert all(joined[other] == joined[group] for found, other in pairs if found == key)
    for group, name in joined.items():
        assert name == min(other for other in joined if joined[other] == joined[group])


def test_joining_is_transitive_and_keeps_strangers_apart() -> None:
    joined = merge_groups([(1, "b"), (1, "c"), (2, "c"), (2, "a"), (3, "z")])
    assert joined == {"a": "a", "b": "a", "c": "a", "z": "z"}
