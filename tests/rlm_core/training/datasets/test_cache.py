"""The source cache: only names and versions reach pip, and no archive or blob is read beyond a limit."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.training.datasets.cache import find_wheel, open_wheel, read_blobs, read_member

pytestmark = pytest.mark.extras


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("x @ git+https://example.invalid/x#egg=x&v", "1"),
        ("x @ file:///tmp/x#egg=x&v", "1"),
        ("--index-url=https://example.invalid", "1"),
        ("-r", "1"),
        ("x[extra]", "1"),
        ("x", "1 @ file:///tmp/x"),
        ("x", "*"),
        ("x", "1,!=2"),
        ("x", "1; python_version > '3'"),
        ("x", "1\n--index-url=https://example.invalid"),
        ("x\n", "1"),
        ("a" * 300, "1"),
        (3, "1"),
    ],
)
def test_nothing_but_a_name_and_a_version_reaches_pip(tmp_path: Path, package: str, version: str) -> None:
    with pytest.raises(DataError, match=r"is not a (name of a package|version); correct the label file"):
        find_wheel(tmp_path, package, version, download=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "version", ["1", "1.0.post1", "2!1.0rc1", "1.0.dev3", "1.0a1.post2.dev3+local.1", "2024.1.1", "0.1b2"]
)
def test_versions_of_pep_440_are_looked_up(tmp_path: Path, version: str) -> None:
    wheel = tmp_path / f"small_package-{version}-py3-none-any.whl"
    wheel.touch()
    (tmp_path / "odd.whl").touch()
    assert find_wheel(tmp_path, "Small.Package", version, download=False) == wheel


def test_a_member_that_grows_beyond_the_limit_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.py", b"#" * 2**26)
        archive.writestr("good.py", b"x = 1")
        archive.writestr("bad.py", b"y" * 1000)
    data = path.read_bytes()
    at = data.index(b"bad.py") + len("bad.py")
    path.write_bytes(data[:at] + b"\xff" * 4 + data[at + 4 :])
    assert path.stat().st_size < 2**18
    with open_wheel(path) as archive:
        assert [read_member(archive, name) for name in ("bomb.py", "good.py", "bad.py")] == [None, b"x = 1", None]


def test_what_is_not_an_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"a\.whl: not a wheel"), open_wheel(tmp_path / "a.whl"):
        pass


def test_blobs_that_are_too_large_or_not_named_by_an_id_are_passed_over(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path)], check=True)

    def add(content: bytes) -> str:
        command = ["git", "-C", str(tmp_path), "hash-object", "-w", "--stdin"]
        return subprocess.run(command, input=content, capture_output=True, check=True).stdout.decode().strip()

    large, small = add(b"x" * (8 * 2**20 + 1)), add(b"small")
    names = [small, large, f"{small}\n{small}", "HEAD", "0" * 40, small]
    assert [content for _, content in read_blobs(tmp_path, names)] == [b"small", None, None, None, None, b"small"]
