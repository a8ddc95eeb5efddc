"""Which files are checked, what they are called, and what they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core import RlmError
from rlm_lsp.findings.checked_files import CheckedFiles, find_files

from .support import commit, write

SOURCES = {"a.py": "a\n", "sub/b.go": "b\n", "notes.txt": "n\n", "build/c.py": "c\n", ".gitignore": "build/\n"}


def names(checked: CheckedFiles) -> list[str]:
    return [checked.name_of(source.path) for source in checked.files]


def test_what_git_ignores_is_left_out_unless_it_is_named(tmp_path: Path) -> None:
    commit(tmp_path, dict(SOURCES))
    assert names(find_files([tmp_path])) == ["a.py", "sub/b.go"]
    assert names(find_files([tmp_path / "build" / "c.py"])) == ["build/c.py"]


def test_outside_a_repository_the_walk_decides_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {**SOURCES, "node_modules/d.js": "d\n"})
    monkeypatch.chdir(tmp_path)
    assert names(find_files([Path()])) == ["a.py", "build/c.py", "sub/b.go"]
    (tmp_path / "sub" / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "sub" / "empty")
    assert names(find_files([tmp_path])) == [str(tmp_path / name) for name in ("a.py", "build/c.py", "sub/b.go")]


def test_excluded_globs_start_at_the_project(tmp_path: Path) -> None:
    commit(tmp_path, dict(SOURCES))
    assert names(find_files([tmp_path], ["sub/*"])) == ["a.py"]
    assert names(find_files([tmp_path / "sub", tmp_path / "a.py"], ["*.go", "/x"])) == ["a.py"]


def test_nested_repositories_have_separate_rules(tmp_path: Path) -> None:
    commit(tmp_path, dict(SOURCES))
    commit(tmp_path / "inner", {"x.py": "x\n", "y.py": "y\n", ".gitignore": "y.py\n"})
    assert names(find_files([tmp_path])) == ["a.py", "x.py", "sub/b.go"]


def test_a_difference_keeps_changed_and_new_files(tmp_path: Path) -> None:
    first = commit(tmp_path, dict(SOURCES))
    commit(tmp_path, {"sub/b.go": "committed\n", "touched.py": "t\n"})
    write(tmp_path, {"new.py": "n\n", "a.py": "a\n"})
    assert names(find_files([tmp_path], diff=first)) == ["new.py", "sub/b.go", "touched.py"]
    assert names(find_files([tmp_path], diff="HEAD")) == ["new.py"]
    checked = find_files([tmp_path], diff=first)
    assert [checked.before(source.path) for source in checked.files] == [None, b"b\n", None]
    overlays = {name: checked.overlay(tmp_path / name) for name in ("a.py", "sub/b.go", "new.py", "missing.py")}
    assert overlays == {"a.py": None, "sub/b.go": b"b\n", "new.py": b"", "missing.py": None}


def test_more_changed_files_than_are_read_ahead_have_their_texts(tmp_path: Path) -> None:
    found = [f"{number:03}.py" for number in range(150)]
    first = commit(tmp_path, {name: f"# {name}\n" for name in found})
    write(tmp_path, {name: f"# now {name}\n" for name in found})
    checked = find_files([tmp_path], diff=first)
    assert [checked.before(source.path) for source in checked.files] == [f"# {name}\n".encode() for name in found]


def test_no_more_texts_are_remembered_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_lsp.history.git._CACHE_BYTES", 20_000)
    found = [f"{number}.py" for number in range(10)]
    first = commit(tmp_path, {name: f"# {name}".ljust(5_000) for name in found})
    write(tmp_path, {name: f"# now {name}" for name in found})
    checked = find_files([tmp_path], diff=first)
    for name in found:
        for text in (checked.overlay(tmp_path / name), checked.before(tmp_path / name)):
            assert text is not None
            assert text.decode().rstrip() == f"# {name}"
    assert sum(len(text or b"") for text in checked._overlays.values()) <= 20_000
    assert sum(len(text or b"") for text in checked._texts.values()) <= 20_000


def test_a_difference_needs_a_repository_and_a_revision(tmp_path: Path) -> None:
    write(tmp_path / "plain", {"a.py": "a\n"})
    with pytest.raises(RlmError, match="is not in a git repository; omit --diff"):
        find_files([tmp_path / "plain"], diff="HEAD")
    commit(tmp_path / "project", {"a.py": "a\n"})
    with pytest.raises(RlmError, match="has no revision 'v9'; name a commit, a branch or a tag"):
        find_files([tmp_path / "project"], diff="v9")


def test_a_broken_repository_is_noted_and_all_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {".git/config": "broken", "a.py": "a\n"})
    assert names(find_files([tmp_path])) == ["a.py"]
    assert "git check-ignore failed" in capsys.readouterr().err
