"""Files are replaced whole, and JSON Lines name the line of a mistake."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.files import atomic_write, parse_json_lines, read_json_lines


def test_a_file_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with atomic_write(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")

    def write_half() -> None:
        with atomic_write(path) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_values_come_with_their_lines(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = '{"a": 1}\n\n[2]\n'
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert list(read_json_lines(path)) == [(f"{path}:1", {"a": 1}), (f"{path}:3", [2])]


@pytest.mark.parametrize("line", ["{", "nope", "1" * 5000, "[" * 100_000])
def test_a_line_that_is_not_json_is_named(line: str) -> None:
    with pytest.raises(DataError, match=r"^rows:2: not JSON"):
        list(parse_json_lines(["1", line], "rows"))


@pytest.mark.parametrize("content", [b"\xff\xfe{}", None])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.jsonl: cannot be read"):
        list(read_json_lines(path))


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 1000)[:40])
    with pytest.raises(DataError, match="cannot be read"):
        list(read_json_lines(path))
