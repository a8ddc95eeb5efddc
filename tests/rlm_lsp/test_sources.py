"""Globs: what stays in a folder and what crosses it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_lsp.sources import matches

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
