"""Files are read within limits and replaced whole, and JSON Lines name the line of a mistake."""

from __future__ import annotations

import gzip
import os
import socket
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.files import FileRefusedError, atomic_write, parse_json_lines, read_json_lines, read_regular


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


def test_a_regular_file_within_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    assert read_regular(path, 5) == read_regular(tmp_path / "link", 5, tmp_path) == b"12345"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "own input", "socket"])
def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "own input":
        reader, writer = os.pipe()
        path.symlink_to(f"/proc/self/fd/{reader}")
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    with pytest.raises(OSError, match=r"not a regular file|No such device"):
        read_regular(path, 100)
    if kind == "own input":
        os.close(reader)
        os.close(writer)


def test_a_file_over_the_limit_is_refused_whatever_size_it_states(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(FileRefusedError) as error:
        read_regular(sparse, 2**20)
    assert error.value.strerror == "1024 GiB is over the limit of 1 MiB"
    with pytest.raises(FileRefusedError, match=r"is over the limit of 16 bytes"):
        read_regular(Path("/proc/self/status"), 16)  # its stated size is 0


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a").symlink_to(tmp_path / "secret")
    for path in (inside / "a", inside / ".." / "secret"):
        with pytest.raises(FileRefusedError, match="outside"):
            read_regular(path, 100, inside)
