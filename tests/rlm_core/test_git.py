"""git is started in one way: it is the user's, it has a limit on its time, and what hangs is not asked again."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from rlm_core import git
from rlm_core.git import GitError, run


@pytest.fixture(autouse=True)
def _no_repository_was_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "_late", {})


def repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


def with_a_pipe(folder: Path) -> Path:
    """A repository whose configuration includes a pipe: git waits for ever for somebody to write to it."""
    os.mkfifo(repository(folder) / ".git" / "pipe")
    subprocess.run(["git", "-C", str(folder), "config", "include.path", "pipe"], check=True)
    return folder


def test_a_git_that_hangs_is_given_up_and_then_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "TIMEOUT", 0.3)
    hanging = with_a_pipe(tmp_path / "hanging")
    with pytest.raises(GitError, match="hanging: git rev-parse did not finish within 0 s; try again"):
        run(hanging, ["rev-parse", "--git-dir"])
    monkeypatch.setattr(git, "TIMEOUT", 100.0)
    began = time.monotonic()
    with pytest.raises(GitError, match="hanging: git did not finish in time and is not asked again for now"):
        run(hanging, ["rev-parse", "--git-dir"])
    assert time.monotonic() - began < 10
    assert run(repository(tmp_path / "other"), ["rev-parse", "--git-dir"]) == (0, b".git\n")


def test_many_repositories_that_hang_cost_the_time_of_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "TIMEOUT", 0.1)
    for number in range(git._MOST_LATE):
        with pytest.raises(GitError, match="did not finish within"):
            run(with_a_pipe(tmp_path / str(number)), ["rev-parse", "--git-dir"])
    with pytest.raises(GitError, match="is not asked again for now"):
        run(repository(tmp_path / "other"), ["rev-parse", "--git-dir"])
    monkeypatch.setattr(git, "_LATE_SECONDS", 0.0)
    monkeypatch.setattr(git, "TIMEOUT", 100.0)
    assert run(tmp_path / "other", ["rev-parse", "--git-dir"]) == (0, b".git\n")


def test_a_program_called_git_in_the_working_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = repository(tmp_path / "a")
    (tmp_path / "git").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    assert run(folder, ["rev-parse", "--git-dir"]) == (0, b".git\n")
    with pytest.raises(GitError, match="clone failed"):
        git.clone("https://localhost:1/none", tmp_path / "clone")
    assert not (tmp_path / "ran").exists()


def test_a_clone_uses_no_transport_but_https(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="transport 'file' not allowed"):
        git.clone(f"file://{repository(tmp_path / 'a')}", tmp_path / "b")


def test_blobs_come_in_the_order_of_their_names_and_of_a_bare_repository_too(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path)], check=True)
    command = ["git", "-C", str(tmp_path), "hash-object", "-w", "--stdin"]
    blobs = [
        subprocess.run(command, input=text, capture_output=True, check=True).stdout.decode().strip()
        for text in (b"one", b"three" * 10, b"two")
    ]
    names = ["0" * 40, *blobs, blobs[0]]
    found = list(git.read_blobs(tmp_path, names, 10))
    assert found == list(zip(names, [None, b"one", None, b"two", b"one"], strict=True))
