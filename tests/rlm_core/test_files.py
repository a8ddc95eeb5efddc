"""Files are read within limits and replaced whole, and JSON Lines name the line of a mistake."""

from __future__ import annotations

import gzip
import os
import re
import socket
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.files import FileRefusedError, atomic_write, parse_json_lines, read_json_lines, read_regular

from tests.paths import REPOSITORY


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


def test_permissions_and_links_stay_as_they_are(tmp_path: Path) -> None:
    path, link = tmp_path / "a.json", tmp_path / "link.json"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    with atomic_write(link) as partial:
        partial.write_text("new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
    assert link.is_symlink()


def test_a_device_is_written_to_as_it_is() -> None:
    with atomic_write(Path(os.devnull)) as target:
        target.write_text("text")
    assert not Path(os.devnull).is_file()


def test_what_killed_writers_left_is_removed_after_a_day(tmp_path: Path) -> None:
    path = tmp_path / "a[1].json"
    old, young, other = (tmp_path / f".{name}.7-ab.partial" for name in ("a[1].json", "a[1].json.x", "a1.json"))
    folder = tmp_path / ".a[1].json.9-cd.partial"
    folder.mkdir()
    for left in (old, young, other, folder / "weights"):
        left.write_text("half")
        if left is not young:
            os.utime(left, (0, 0))
    os.utime(folder, (0, 0))
    with atomic_write(path) as partial:
        partial.write_text("new")
    assert sorted(tmp_path.iterdir()) == sorted([path, young, other])


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


# Files that are read without limits, and who wrote them: this program, its package, the system, or the user who names
# them on the command line for an action of its own.
DIRECT_READS = {
    "model_core/rlm_core/inference/adaptation/cpu_score.py",  # the system, and our cache
    "model_core/rlm_core/measurement/committed.py",  # the file that is about to be replaced
    "model_core/rlm_core/measurement/functions/collect.py",  # what a child of ours wrote
    "model_core/rlm_core/measurement/functions/recordings.py",
    "model_core/rlm_core/measurement/functions/scaling.py",  # the same, and the user's bench file, which it runs
    "model_core/rlm_core/measurement/gpu/bench_rows.py",
    "model_core/rlm_core/measurement/gpu/generate_runner.py",
    "model_core/rlm_core/measurement/gpu/measurements.py",
    "model_core/rlm_core/measurement/gpu/meter.py",  # the system
    "model_core/rlm_core/measurement/programs/sandbox.py",  # the system
    "model_core/rlm_core/serving/access.py",  # the user's token
    "model_core/rlm_core/cost/library/conventional_names.py",  # the package
    "model_core/rlm_core/cost/library/result_kinds.py",
    "model_core/rlm_core/cost/library/statements.py",  # the package
    "model_core/rlm_core/cost/library/usual_waits.py",  # the package
    "model_core/rlm_core/queries/architectures.py",
    "model_core/rlm_core/queries/devices.py",  # the package
    "model_core/rlm_core/queries/entry_store.py",  # the package
    "server/rlm_lsp/cli/adapt.py",  # what the user named, read before within limits
    "server/rlm_lsp/cli/bench.py",  # what the user named
    "server/rlm_lsp/cli/doctor.py",  # the system
    "server/rlm_lsp/lsp/stdio.py",  # the system
    "server/rlm_lsp/mcp/skill.py",  # the package
    "server/rlm_lsp/rendering/report_page.py",  # the package
    "server/rlm_lsp/settings/__main__.py",  # the repository, when its pages are written
}


def test_files_from_outside_are_read_within_limits() -> None:
    """A new file that reads directly uses ``read_regular``, or says above who wrote what it reads."""
    rooms = [
        *(REPOSITORY / "server/rlm_lsp").rglob("*.py"),
        *(
            path
            for path in (REPOSITORY / "model_core/rlm_core").rglob("*.py")
            if not {"training", "injected"}.intersection(path.parts)
        ),
    ]
    direct = {
        path.relative_to(REPOSITORY).as_posix()
        for path in rooms
        if re.search(r"\.read_(bytes|text)\(", path.read_text(encoding="utf-8"))
    }
    assert direct == DIRECT_READS


def test_a_missing_file_takes_one_system_call_however_deep_it_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "resolve", lambda path: pytest.fail(f"{path}: resolved"))
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "missing", 10, tmp_path)
