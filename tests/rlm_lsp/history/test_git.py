"""The texts of a git revision: right bytes, nothing run, and None where there is nothing."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest
from rlm_core.source.units import MAX_FILE_BYTES
from rlm_lsp.history import git as head
from rlm_lsp.history.git import GitError

from tests.rlm_lsp.findings.support import commit, git, write


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    commit(folder, {"a.py": "first\n", "sub dir/µ.py": "µ\r\n", "raw.bin": b"\xff\n\0", "link": "a.py"})
    return folder


def text_at(path: Path, revision: str = "HEAD") -> bytes | None:
    folder = head.repository_of(path)
    commit_id = head.commit_of(folder, revision) if folder is not None else None
    return head.texts_at(folder, commit_id, [path])[path] if folder is not None and commit_id is not None else None


def test_files_have_the_bytes_of_the_revision(repository: Path) -> None:
    write(repository, {"a.py": "second\n", "new.py": "new\n"})
    assert text_at(repository / "a.py") == b"first\n"
    assert text_at(repository / "sub dir" / "µ.py") == "µ\r\n".encode()
    assert text_at(repository / "raw.bin") == b"\xff\n\0"
    assert text_at(repository / "new.py") is None
    assert text_at(repository / "sub dir") is None
    commit(repository, {})
    assert text_at(repository / "a.py") == b"second\n"
    assert text_at(repository / "a.py", "HEAD~1") == b"first\n"


def test_many_files_are_read_at_once(repository: Path) -> None:
    names = [f"many/{number:03}.py" for number in range(600)]
    found = commit(repository, {name: f"{name}\n" * 20 for name in names})
    paths = [*(repository / name for name in names), repository / "missing 12"]
    texts = head.texts_at(repository, found, paths)
    assert list(texts) == paths
    assert all(texts[repository / name] == f"{name}\n".encode() * 20 for name in names)
    assert texts[repository / "missing 12"] is None


def test_outside_a_repository_and_before_its_first_commit_there_is_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "a\n"})
    assert head.repository_of(tmp_path / "a.py") is None
    assert text_at(tmp_path / "a.py") is None
    git(tmp_path, "init", "--quiet")
    assert head.repository_of(tmp_path / "a.py") == tmp_path.resolve()
    assert head.commit_of(tmp_path) is None
    assert text_at(tmp_path / "a.py") is None


@pytest.mark.parametrize("revision", ["nothing", "--all", "-h", "HEAD:a.py", "a b", ""])
def test_what_is_no_revision_names_no_commit(repository: Path, revision: str) -> None:
    assert head.commit_of(repository, revision) is None


def test_revisions_may_be_branches_tags_and_short_commits(repository: Path) -> None:
    git(repository, "tag", "v1")
    found = git(repository, "rev-parse", "HEAD")
    assert {head.commit_of(repository, name) for name in ("HEAD", "main", "v1", found[:10])} == {found}


@pytest.mark.parametrize("objects", ["sha1", "sha256"])
def test_a_tree_identifies_unchanged_files(tmp_path: Path, objects: str) -> None:
    git(tmp_path, "init", "--quiet", f"--object-format={objects}")
    found = commit(tmp_path, {"same.py": "s\n", "sub/edited.py": "e\n", "gone.py": "g\n"})
    (tmp_path / "link.py").symlink_to("same.py")
    found = commit(tmp_path, {})
    write(tmp_path, {"sub/edited.py": "E\n", "new.py": "n\n"})
    (tmp_path / "gone.py").unlink()
    tree = head.Tree(tmp_path.resolve(), found)
    paths = [tmp_path / name for name in ("same.py", "sub/edited.py", "gone.py", "new.py", "link.py")]
    assert [path in tree for path in paths] == [True, True, True, False, False]
    assert [tree.same(path) for path in paths] == [True, False, False, False, False]
    assert list(tree.texts(paths).values()) == [b"s\n", b"e\n", b"g\n", None, None]


def test_ignored_files_are_reported_and_tracked_ones_are_not(repository: Path) -> None:
    commit(repository, {"kept.log": "kept\n"})
    write(repository, {".gitignore": "*.log\nbuild/\n", "x.log": "x\n", "build/a.py": "a\n", "b.py": "b\n"})
    paths = [repository / name for name in ("kept.log", "x.log", "build/a.py", "b.py")]
    assert head.ignored(repository, paths) == {repository / "x.log", repository / "build" / "a.py"}
    assert head.ignored(repository, [repository / "b.py"]) == set()
    assert head.ignored(repository, []) == set()


def test_paths_through_a_linked_folder_are_the_files_behind_it(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(repository / "sub dir")
    path = tmp_path / "linked" / "µ.py"
    assert head.repository_of(path) == repository
    assert text_at(path) == "µ\r\n".encode()
    assert head.ignored(repository, [path]) == set()
    assert list(head.by_repository([path, tmp_path / "b.py"])) == [repository, None]


def test_nothing_of_the_repository_is_run(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "filter.x.smudge", "filter.x.clean", "diff.x.textconv", "core.pager"):
        git(repository, "config", name, str(script))
    hooks = repository / ".git" / "hooks"
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        (hooks / hook).write_text(script.read_text())
        (hooks / hook).chmod(0o755)
    write(repository, {".gitattributes": "*.py filter=x diff=x\n", "a.py": "other\n"})
    git(repository, "diff-index", "--name-only", "HEAD")
    assert trap.exists(), "git itself runs what we do not"
    trap.unlink()
    assert text_at(repository / "a.py") == b"first\n"
    tree = head.Tree(repository, git(repository, "rev-parse", "HEAD"))
    assert not tree.same(repository / "a.py")
    assert list(tree.texts([repository / "a.py"]).values()) == [b"first\n"]
    head.ignored(repository, [repository / "a.py"])
    assert not trap.exists()


def test_no_transport_is_run_whatever_the_repository_configures(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "fetched"
    address = f"ext::sh -c touch% {trap}"
    missing = git(repository, "rev-parse", "HEAD:a.py")
    (repository / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    for name, value in (
        ("protocol.ext.allow", "always"),
        ("protocol.allow", "always"),
        ("extensions.partialClone", "origin"),
        ("core.repositoryFormatVersion", "1"),
        ("remote.origin.url", address),
        ("remote.origin.promisor", "true"),
    ):
        git(repository, "config", name, value)
    with contextlib.suppress(GitError):
        assert text_at(repository / "a.py") is None
    with pytest.raises(GitError, match="transport 'ext' not allowed"):
        head._git(repository, ["ls-remote", address])
    assert not trap.exists()
    with contextlib.suppress(subprocess.CalledProcessError):
        git(repository, "cat-file", "-p", missing)
    assert trap.exists(), "git itself runs what we do not"


def test_a_blob_over_the_limit_is_passed_over(repository: Path) -> None:
    commit(repository, {"large.py": "x = 1\n" * (MAX_FILE_BYTES // 6 + 1), "small.py": "x = 1\n"})
    commit_id = head.commit_of(repository)
    assert commit_id is not None
    names = [repository / name for name in ("none.py", "large.py", "small.py", "sub dir")]
    assert list(head.texts_at(repository, commit_id, names).values()) == [None, None, b"x = 1\n", None]


def test_a_program_called_git_in_the_working_folder_is_not_run(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    assert text_at(repository / "a.py") == b"first\n"
    assert not (tmp_path / "ran").exists()


def test_a_hooks_environment_does_not_name_another_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    commit(other, {"a.py": "other\n"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert text_at(repository / "a.py") == b"first\n"


def test_a_missing_git_is_one_line(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    with pytest.raises(GitError, match="git was not found; install it"):
        text_at(repository / "a.py")


def test_a_git_that_hangs_is_given_up(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    monkeypatch.setattr(head, "TIMEOUT", 0.2)
    with pytest.raises(GitError, match="rev-parse did not finish within 0 s"):
        text_at(repository / "a.py")


def test_a_broken_repository_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with pytest.raises(GitError, match="git rev-parse failed"):
        text_at(tmp_path / "a.py")
