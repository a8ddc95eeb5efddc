"""Label files, plain and compressed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.training.datasets.builder import read_labels


@pytest.mark.parametrize("compressed", [False, True])
def test_rows_are_read_a_line_each(tmp_path: Path, compressed: bool) -> None:
    path, content = tmp_path / f"labels.jsonl{'.gz' * compressed}", b'{"a": 1}\n\n{"a": 2, "b": 3}\n'
    path.write_bytes(gzip.compress(content) if compressed else content)
    assert read_labels(path, {"a"}, "test") == [{"a": 1}, {"a": 2, "b": 3}]


def test_a_row_without_a_field_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"a": 1}\n\n{"b": 2}\n')
    with pytest.raises(DataError, match=r"labels\.jsonl:3: 'a' is missing; is this a file of test labels\?"):
        read_labels(tmp_path / "labels.jsonl", {"a"}, "test")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("labels.jsonl", None, "cannot be read"),
        ("labels.jsonl", b'{"a": 1}\n{\n', r"labels\.jsonl:2: not JSON"),
        ("labels.jsonl", b"\xff\n", "cannot be read"),
        ("labels.jsonl.gz", b"not gzip", "cannot be read"),
        ("labels.jsonl.gz", gzip.compress(b"", mtime=0)[:10] + b"\xff" * 50, "cannot be read"),
        ("labels.jsonl.gz", gzip.compress(b"[" * (2**26 + 10), mtime=0), "a line is over 64 MiB"),
        ("labels.jsonl", b'{"a": ' + b"9" * 5000 + b"}", r"labels\.jsonl:1: not JSON"),
        ("labels.jsonl", b"[" * 100_000, r"labels\.jsonl:1: not JSON"),
        ("labels.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 1000, mtime=0)[:30], "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_labels(tmp_path / name, {"a"}, "test")
