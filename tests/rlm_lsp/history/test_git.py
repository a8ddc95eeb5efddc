"""The texts of a git revision: right bytes, nothing run, and None where there is nothing."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cachetools import LRUCache
from rlm_core import git as git_process
from rlm_core.git import GitError, run
from rlm_core.source.units import MAX_FILE_BYTES
from rlm_lsp.history import git as head

from tests.rlm_lsp.findings.support import commit, git, write

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.com")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    commit(folder, {"a.py": "first\n", "sub dir/µ.py": "µ\r\n", "raw.bin": b"\xff\n\0", "link": "a.py"})
    return folder


def text_at(path: Path, revision: str = "HEAD") -> bytes | None:
    folder = head.repository_of(path)
    commit_id = head.commit_of(folder, revision) if folder is not None else None
    if folder is None or commit_id is None:
        return None
    return dict(head.texts_at(folder, commit_id, [path]))[path]


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


def test_a_name_with_a_carriage_return_is_one_name(repository: Path) -> None:
    names = ["a.py", "a\rb.py", "sub dir/µ.py"]
    found = head.commit_of(repository) or ""
    texts = dict(head.texts_at(repository, found, [repository / name for name in names]))
    assert list(texts.values()) == [b"first\n", None, "µ\r\n".encode()]


def test_many_files_are_read_at_once(repository: Path) -> None:
    names = [f"many/{number:03}.py" for number in range(600)]
    found = commit(repository, {name: f"{name}\n" * 20 for name in names})
    paths = [*(repository / name for name in names), repository / "missing 12"]
    texts = dict(head.texts_at(repository, found, paths))
    assert texts.keys() == set(paths)
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
    texts = dict(tree.texts(paths))
    assert [texts[path] for path in paths] == [b"s\n", b"e\n", b"g\n", None, None]


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
    assert list(tree.texts([repository / "a.py"])) == [(repository / "a.py", b"first\n")]
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
        run(repository, ["ls-remote", address])
    assert not trap.exists()
    with contextlib.suppress(subprocess.CalledProcessError):
        git(repository, "cat-file", "-p", missing)
    assert trap.exists(), "git itself runs what we do not"


def test_a_blob_over_the_limit_is_passed_over(repository: Path) -> None:
    commit(repository, {"large.py": "x = 1\n" * (MAX_FILE_BYTES // 6 + 1), "small.py": "x = 1\n"})
    commit_id = head.commit_of(repository)
    assert commit_id is not None
    names = [repository / name for name in ("none.py", "large.py", "small.py", "sub dir")]
    texts = dict(head.texts_at(repository, commit_id, names))
    assert [texts[path] for path in names] == [None, None, b"x = 1\n", None]


def test_texts_are_read_in_batches_of_few_bytes(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_process, "_BATCH_BYTES", 1_000)
    printed: list[int] = []

    def counted(*arguments: Any) -> tuple[int, bytes]:
        status, out = git_of(*arguments)
        printed.append(len(out))
        return status, out

    git_of = git_process.run
    names = [f"{number}.py" for number in range(10)]
    found = commit(repository, {name: name * 80 for name in names})
    monkeypatch.setattr(git_process, "run", counted)
    paths = [repository / name for name in (*names, "missing.py")]
    texts = dict(head.texts_at(repository, found, paths))
    assert [texts[path] for path in paths] == [*((name * 80).encode() for name in names), None]
    assert max(printed) < 1_500


def test_remembered_texts_are_limited_by_their_bytes() -> None:
    texts: LRUCache[int, bytes | None] = head.text_cache()
    for number in range(200):
        texts[number] = bytes(MAX_FILE_BYTES)
    assert 10 < len(texts) < 32


def tree_bomb(folder: Path, depth: int) -> str:
    """A commit with ten files, in ten folders, in ten folders: each of them is stored once."""
    git(folder, "init", "--quiet")
    blob = subprocess.run(
        ["git", "-C", str(folder), "hash-object", "-w", "--stdin"], input=b"x", capture_output=True, check=True
    )
    mode, kind, name = "100644", "blob", blob.stdout.decode().strip()
    for _ in range(depth):
        entries = "".join(f"{mode} {kind} {name}\t{number}\n" for number in range(10))
        tree = subprocess.run(
            ["git", "-C", str(folder), "mktree"], input=entries.encode(), capture_output=True, check=True
        )
        mode, kind, name = "040000", "tree", tree.stdout.decode().strip()
    return git(folder, *AUTHOR, "commit-tree", "-m", "bomb", name)


@pytest.mark.timeout(60)
def test_a_commit_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tree_bomb(tmp_path, 9)
    monkeypatch.setattr(head, "_TREE_FILES", 5_000)
    with pytest.raises(GitError, match="has more than 5,000 files; name another revision"):
        head.Tree(tmp_path, bomb)
    monkeypatch.setattr(head, "_TREE_FILES", 5_000_000)
    monkeypatch.setattr(head, "_TREE_BYTES", 2**20)
    with pytest.raises(GitError, match="ls-tree prints more than 1 MiB; name another revision"):
        head.Tree(tmp_path, bomb)


def test_a_file_that_leads_out_of_the_repository_is_not_read(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("first\n")
    (repository / "a.py").unlink()
    (repository / "a.py").symlink_to(tmp_path / "outside.py")
    assert not head.Tree(repository, git(repository, "rev-parse", "HEAD")).same(repository / "a.py")


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


def test_a_broken_repository_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    with pytest.raises(GitError, match="git rev-parse failed"):
        text_at(tmp_path / "a.py")
