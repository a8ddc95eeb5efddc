"""Row files by path and URI: what is written is read again, and what cannot be opened gets one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rlm_core import DataError
from rlm_core.tables import is_parquet, is_uri, open_input, open_output, read_rows, row_writer

pytestmark = pytest.mark.extras

COLUMNS: dict[str, Any] = {"id": int, "words": [str], "sizes": dict, "inner": {"share": float, "known": bool}}
ROWS = [
    {"id": 1, "words": ["a", "b"], "sizes": {"M": "4"}, "inner": {"share": 0.5, "known": True}},
    {"id": 2, "words": [], "inner": {"known": False}},
]


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_rows_that_are_written_are_read_again(tmp_path: Path, form: str) -> None:
    name = form.format(tmp_path / "rows.parquet")
    with row_writer(name, COLUMNS) as append:
        append(ROWS[:1])
        append(ROWS[1:])
    assert list(read_rows(name)) == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_scheme_that_only_fsspec_has_is_read_and_written() -> None:
    with row_writer("memory://folder/rows.parquet", COLUMNS) as append:
        append(ROWS)
    assert list(read_rows("memory://folder/rows.parquet")) == ROWS
    with open_output("memory://folder/rows.jsonl") as stream:
        stream.write(b"{}\n")
    with open_input("memory://folder/rows.jsonl") as stream:
        assert list(stream) == [b"{}\n"]


def test_a_map_and_a_struct_with_nulls_are_the_same_row(tmp_path: Path) -> None:
    kinds = (pa.map_(pa.string(), pa.string()), pa.struct([("M", pa.string()), ("N", pa.string())]))
    for kind, value in zip(kinds, ([("M", "4")], {"M": "4", "N": None}), strict=True):
        file = tmp_path / "rows.parquet"
        pq.write_table(pa.table({"sizes": pa.array([value], kind), "none": pa.array([None], pa.int64())}), file)
        assert list(read_rows(str(file))) == [{"sizes": {"M": "4"}}]


def test_after_an_error_the_earlier_file_is_untouched(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"earlier")

    def write_and_fail() -> None:
        with row_writer(str(file), COLUMNS) as append:
            append(ROWS)
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    assert file.read_bytes() == b"earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing://a/b.parquet", "no driver reads nothing://"),
        ("gdrive://a/b.parquet", "no driver for gdrive:// is installed"),
        ("file:///no/such/file.parquet", "cannot be read"),
        ("/no/such/file.parquet", "cannot be read"),
    ],
)
def test_what_cannot_be_opened_gets_one_line(name: str, says: str) -> None:
    with pytest.raises(DataError) as caught:
        list(read_rows(name))
    assert str(caught.value).startswith(f"{name}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    if "driver" in says:
        with pytest.raises(DataError, match=says), row_writer(name, COLUMNS):
            pass


def test_a_file_that_is_not_parquet_gets_one_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    file.write_text("x" * 100)
    with pytest.raises(DataError, match=r"rows\.parquet: is not a readable Parquet file"):
        list(read_rows(str(file)))


def test_paths_and_uris_are_distinguished() -> None:
    assert [is_uri(name) for name in ("s3://a/b", "file:///a", "a/b", "C:\\a", "C://a")] == [True, True] + [False] * 3
    assert [is_parquet(name) for name in ("a.parquet", "s3://a/B.PARQUET", "a.jsonl", "parquet")] == [True, True] + [
        False
    ] * 2
