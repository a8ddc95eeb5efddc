"""Globs: what stays in a folder and what crosses it. Folders: what is found in them, and what cannot be read."""

from __future__ import annotations

import os
import time
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import SourceError
from rlm_core.folders import is_test
from rlm_lsp.sources import find_sources, matches, path_of_uri

from tests.nested_folders import nested_folders

_NAMES = st.text("abc.[]+(", min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/in/a.py", True),
        ("/*.py", "deep/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/in/a.py", True),
        ("**/a.py", "a.py", True),
        ("**", "any/thing", True),
        ("src", "src/a.py", True),
        ("src", "lib/src/a.py", True),
        ("src/", "src/a.py", True),
        ("src/", "src", False),
        ("a?.py", "ab.py", True),
        ("a?.py", "a/.py", False),
        ("a.py", "axpy", False),
        ("[id].ts", "[id].ts", True),
    ],
)
def test_a_glob_names_paths(glob: str, path: str, expected: bool) -> None:
    assert matches(glob, path) is expected


@given(st.lists(_NAMES, min_size=1, max_size=4))
def test_a_path_names_itself(parts: list[str]) -> None:
    path = "/".join(parts)
    assert matches(path, path)
    assert matches("**/" + parts[-1], path)


def test_globs_that_repeat_stars_take_no_long_time() -> None:
    began = time.process_time()
    assert not matches("**/" + "*a" * 40, "a" * 200 + "b")
    assert not matches("**/" + "*a**/" * 40 + "b", "/".join(["a" * 20] * 10))
    assert not matches("/".join(["**"] * 200) + "/b", "/".join("a" * 200))
    assert time.process_time() - began < 1


def test_a_folder_whose_files_cannot_be_named_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): pass\n")
    # The path of the innermost folder is as long as the system allows: no file in it can be named.
    here, length = os.open(tmp_path, os.O_RDONLY), 4095 - len(str(tmp_path)) - 8
    while length > 0:
        name = "d" * min(200, length - 1)
        length -= len(name) + 1
        os.mkdir(name, dir_fd=here)
        here, outer = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(outer)
    os.mkdir("e" * 100, dir_fd=here)
    os.close(here)
    errors: list[SourceError] = []
    assert [source.path for source in find_sources([tmp_path], errors.append)] == [tmp_path / "a.py"]
    assert "cannot be read (File name too long)" in str(errors[0])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_that_may_not_be_entered_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): pass\n")
    (tmp_path / "sub").mkdir(mode=0)
    errors: list[SourceError] = []
    assert [source.path for source in find_sources([tmp_path], errors.append)] == [tmp_path / "a.py"]
    assert str(errors[0]) == f"{tmp_path / 'sub'}: cannot be read (Permission denied); check its permissions"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/shop.py", True),
        ("src/test/java/Shop.java", True),
        ("web/__tests__/shop.ts", True),
        ("test_shop.py", True),
        ("shop_test.go", True),
        ("conftest.py", True),
        ("web/shop.test.ts", True),
        ("web/shop.spec.js", True),
        ("ShopTest.java", True),
        ("ShopTests.cs", True),
        ("shop_spec.rb", True),
        ("shop.py", False),
        ("testing.py", False),
        ("contest.py", False),
        ("latest.py", False),
        ("attestation/shop.py", False),
        ("Contest.java", False),
        ("inspect.py", False),
    ],
)
def test_files_of_tests_are_known_by_name_and_folder(path: str, expected: bool) -> None:
    assert is_test(PurePosixPath(path)) is expected


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b.py", Path("/a/b.py")),
        ("untitled:a", None),
        ("file:", None),
        ("file:///%00", None),
        ("file:///a\0b", None),
        ("file://[", None),
        ("file:///\ud800", None),
        (f"file:///{'a' * 5_000}", None),
        ("", None),
    ],
)
def test_only_uris_of_files_have_a_path(uri: str, path: Path | None) -> None:
    assert path_of_uri(uri) == path


def test_a_file_below_more_folders_than_python_recurses_is_found(tmp_path: Path) -> None:
    with nested_folders(tmp_path) as deepest:
        (deepest / "a.py").touch()
        found = find_sources([tmp_path], lambda error: pytest.fail(str(error)))
        assert [source.path for source in found] == [deepest / "a.py"]
