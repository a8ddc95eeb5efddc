"""Data sets on disk are read as they were written, partial and foreign files are refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rlm_core.errors import DataError
from rlm_core.training.datasets.schema import (
    EDITS_SCHEMA,
    FORMAT,
    SCHEMA,
    Edit,
    read_edits,
    read_rows,
    read_tables,
    write_rows,
)

from tests.rlm_core.training.conftest import function_rows, program_rows


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
