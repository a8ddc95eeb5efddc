"""The file of measurements: nothing is lost, whatever ends a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import DataError
from rlm_core.measurement.gpu.bench_rows import RowFile, read_rows, row_key

from tests.paths import REPOSITORY


def test_rows_are_there_as_soon_as_they_are_added(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    with RowFile(path) as rows:
        rows.add({"key": "a", "status": "ok", "latency": 1e-6})
        assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a"]
        rows.add({"key": "b", "status": "timeout"})
    with RowFile(path) as again:
        assert again.rows == 2
        assert again.done() == {"a", "b"}
        assert again.done(retry=True) == {"a"}


def test_of_rows_with_one_key_the_last_counts(tmp_path: Path) -> None:
    with RowFile(tmp_path / "rows.jsonl") as rows:
        rows.add({"key": "a", "status": "timeout"})
        rows.add({"key": "a", "status": "ok"})
        assert rows.done(retry=True) == {"a"}
    assert [row["status"] for row in read_rows(tmp_path / "rows.jsonl")] == ["ok"]


@pytest.mark.parametrize("torn", [b'{"key": "b", "sta', b"\xff\xfe\x00", b"[" * 5000, b'{"no": "key"}'])
def test_a_line_that_is_no_row_is_reported_and_left_alone(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"key": "a"}\n' + torn)
    with RowFile(path) as rows:
        assert [problem.split(":")[1] for problem in rows.problems] == ["2"]
        rows.add({"key": "c"})
    assert path.read_bytes().splitlines()[1] == torn
    assert [row["key"] for row in read_rows(path)] == ["a", "c"]


def test_a_full_disk_is_one_line_that_says_what_is_kept() -> None:
    with RowFile(Path("/dev/full")) as rows, pytest.raises(DataError, match="No space left on device"):
        rows.add({"key": "a"})


FILLS_THE_DISK = """
import resource, signal, sys
from pathlib import Path
from rlm_core import DataError
from rlm_core.measurement.gpu.bench_rows import RowFile

resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))
with RowFile(Path(sys.argv[1])) as rows:
    try:
        for number in range(100):
            rows.add({"key": f"row {number}", "text": "x" * 50})
    except DataError as error:
        print(rows.rows, error)
"""


def test_a_disk_that_fills_in_the_middle_of_a_row_keeps_whole_rows_only(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "model_core")}
    command = [sys.executable, "-c", FILLS_THE_DISK, str(path)]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    kept = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert kept == [f"row {number}" for number in range(len(kept))]
    assert output.startswith(f"{len(kept)} {path}: a row could not be written (File too large)")
    with RowFile(path) as rows:
        rows.add({"key": "later"})
    assert [row["key"] for row in read_rows(path)] == [*kept, "later"]


def test_two_runs_do_not_write_to_one_file(tmp_path: Path) -> None:
    with RowFile(tmp_path / "rows.jsonl"), pytest.raises(DataError, match="another run writes to it"):
        RowFile(tmp_path / "rows.jsonl")


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="name another file with --out"):
        RowFile(tmp_path / "file" / "rows.jsonl")
    with pytest.raises(DataError, match="cannot be read"):
        list(read_rows(tmp_path / "nothing.jsonl"))


parts = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4)


@given(parts, parts)
def test_a_key_names_its_parts_in_any_order(one: dict[str, object], other: dict[str, object]) -> None:
    assert row_key(case=one) == row_key(case=dict(reversed(one.items())))
    assert (row_key(case=one) == row_key(case=other)) == (one == other)
