"""The texts of files at a git revision, read with git's plumbing commands.

One process reads many files of a repository. Calls block; the server makes them on a separate thread. How git is
started, and its limits, are in :mod:`rlm_core.git`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from cachetools import LRUCache
from rlm_core.files import read_regular
from rlm_core.git import GitError, read_blobs, run, running
from rlm_core.source.units import MAX_FILE_BYTES

__all__ = [
    "GitError",
    "Tree",
    "by_repository",
    "commit_of",
    "ignored",
    "real",
    "repository_of",
    "text_cache",
    "texts_at",
]

_TREE_BYTES, _TREE_FILES = 64 * 2**20, 500_000  # of a commit; the largest public repositories have about 400,000
_CACHE_BYTES, _LEAST_BYTES = 64 * 2**20, 1024  # of texts that are remembered; what a path without a text counts
_IGNORE_BATCH = 20_000  # paths for one process, which has a limit on its time
_SHA1 = 20
_Key = TypeVar("_Key")


def text_cache() -> LRUCache[_Key, bytes | None]:
    """A cache of texts at commits that is limited by their bytes."""
    return LRUCache(_CACHE_BYTES, lambda text: len(text or b"") + _LEAST_BYTES)


def repository_of(path: Path) -> Path | None:
    """The folder of the git working tree that contains a path; None outside one."""
    path = path.resolve() if path.is_dir() else real(path)
    return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)


def real(path: Path) -> Path:
    """An absolute path without links in its folders, as this module names files; a link itself stays one."""
    return path.parent.resolve() / path.name if path.name else path.resolve()


def commit_of(repository: Path, revision: str = "HEAD") -> str | None:
    """The commit that a revision names; None when there is no such revision, or no commit yet.

    Raises:
        GitError: git is missing, did not finish in time, or failed.
    """
    arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
    status, out = run(repository, arguments, accept=(0, 1))
    return out.decode("ascii", errors="replace").strip() if status == 0 else None


def texts_at(repository: Path, commit: str, paths: Sequence[Path]) -> Iterator[tuple[Path, bytes | None]]:
    """Paths with their bytes at a commit, in batches; None for what did not exist, was not a file or was over 2 MiB.

    Raises:
        GitError: git is missing, did not finish in time, or failed.
    """
    names = {path: _name_in(repository, path) for path in paths}
    yield from ((path, None) for path, name in names.items() if name is None)
    requests = [path for path, name in names.items() if name is not None]
    blobs = read_blobs(repository, [f"{commit}:{names[path]}" for path in requests], MAX_FILE_BYTES)
    yield from ((path, content) for path, (_, content) in zip(requests, blobs, strict=True))


class Tree:
    """The files of a commit, and which of them are unchanged on disk.

    Contents are compared by blob id, here and not by git, which would run the filters that the repository configures;
    what a filter changes on the way to disk counts as changed.

    Raises:
        GitError: git is missing, did not finish in time, or failed; or the commit has too many files.
    """

    def __init__(self, repository: Path, commit: str) -> None:
        self.repository, self.commit = repository, commit
        self._blobs: dict[str, bytes] = {}
        rest = b""
        with running(repository, ["ls-tree", "-r", "-z", "--full-tree", commit], b"", (0,), _TREE_BYTES) as pieces:
            for piece in pieces:
                *entries, rest = (rest + piece).split(b"\0")
                for entry in entries:
                    about, _, name = entry.partition(b"\t")
                    if about.startswith(b"100"):  # a regular file, not a link or a submodule
                        self._blobs[os.fsdecode(name)] = bytes.fromhex(about.rsplit(b" ", 1)[1].decode("ascii"))
                if len(self._blobs) > _TREE_FILES:
                    raise GitError(f"{repository}: {commit} has more than {_TREE_FILES:,} files; name another revision")

    def __contains__(self, path: Path) -> bool:
        return _name_in(self.repository, path) in self._blobs

    def same(self, path: Path) -> bool:
        """Return whether a file has the same bytes on disk as at the commit."""
        blob = self._blobs.get(_name_in(self.repository, path) or "")
        if blob is None:
            return False
        try:
            content = read_regular(path, MAX_FILE_BYTES, self.repository)
        except OSError:
            return False
        algorithm = hashlib.sha1 if len(blob) == _SHA1 else hashlib.sha256
        return algorithm(b"blob %d\0" % len(content) + content, usedforsecurity=False).digest() == blob

    def texts(self, paths: Sequence[Path]) -> Iterator[tuple[Path, bytes | None]]:
        """Paths with their bytes at the commit, as :func:`texts_at` has them.

        Raises:
            GitError: git is missing, did not finish in time, or failed.
        """
        yield from ((path, None) for path in paths if path not in self)
        yield from texts_at(self.repository, self.commit, [path for path in paths if path in self])


def ignored(repository: Path, paths: Sequence[Path]) -> set[Path]:
    """The paths that git ignores.

    Raises:
        GitError: git is missing, did not finish in time, or failed.
    """
    names = {name: path for path in paths if (name := _name_in(repository, path)) is not None}
    found: set[Path] = set()
    every = list(names)
    for start in range(0, len(every), _IGNORE_BATCH):
        request = b"".join(os.fsencode(name) + b"\0" for name in every[start : start + _IGNORE_BATCH])
        # Status 1: no path is ignored.
        _, out = run(repository, ["check-ignore", "--stdin", "-z"], request, accept=(0, 1))
        found |= {names[name] for name in os.fsdecode(out).split("\0") if name in names}
    return found


def by_repository(paths: Iterable[Path]) -> dict[Path | None, list[Path]]:
    """Paths by the working tree that contains them; None for those outside one."""
    folders: dict[Path, Path | None] = {}
    by_root: dict[Path | None, list[Path]] = {}
    for path in paths:
        # Resolving is most of the work, and files come folder by folder.
        folder = path.parent
        if folder not in folders:
            folders[folder] = repository_of(folder)
        by_root.setdefault(folders[folder], []).append(path)
    return by_root


def _name_in(repository: Path, path: Path) -> str | None:
    try:
        name = real(path).relative_to(repository).as_posix()
    except ValueError:
        return None
    # `cat-file --batch` reads one name per line.
    return None if "\n" in name else name
