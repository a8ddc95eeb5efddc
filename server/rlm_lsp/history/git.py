"""The texts of files at a git revision, read with git's plumbing commands.

Nothing in the repository is run: no hooks, filters, textconv or file-system monitor, and nothing is fetched. One
process reads many files of a repository. Calls block; the server makes them on a separate thread.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path

from rlm_core.errors import DataError
from rlm_core.files import read_regular
from rlm_core.source.units import MAX_FILE_BYTES

TIMEOUT = 30.0
_PROGRAM = "git.exe" if os.name == "nt" else "git"
# Blobs are requested in batches, so that neither process waits for the other with a full pipe.
_BATCH = 256
_SHA1 = 20
# Removed from the environment: in a git hook they name another repository.
_LOCATIONS = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    }
)
_SWITCHES = (
    "--no-pager",
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)


class GitError(DataError):
    """git is missing, did not finish in time, or failed."""


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
    status, out = _git(repository, arguments, accept=(0, 1))
    return out.decode("ascii", errors="replace").strip() if status == 0 else None


def texts_at(repository: Path, commit: str, paths: Sequence[Path]) -> dict[Path, bytes | None]:
    """The bytes of each path at a commit; None for one that did not exist, was not a file or was over 2 MiB.

    Raises:
        GitError: git is missing, did not finish in time, or failed.
    """
    texts: dict[Path, bytes | None] = dict.fromkeys(paths)
    requests = [(path, name) for path in paths if (name := _name_in(repository, path)) is not None]
    for start in range(0, len(requests), _BATCH):
        part = requests[start : start + _BATCH]
        request = os.fsencode("".join(f"{commit}:{name}\n" for _, name in part))
        _, out = _git(repository, ["cat-file", "--batch-check=%(objecttype) %(objectsize)"], request)
        is_read = [_is_small_blob(line) for line in out.splitlines()]
        part = list(compress(part, is_read))
        request = os.fsencode("".join(f"{commit}:{name}\n" for _, name in part))
        _, out = _git(repository, ["cat-file", "--batch"], request) if part else (0, b"")
        texts.update(zip((path for path, _ in part), _blobs(out, len(part)), strict=True))
    return texts


def _is_small_blob(line: bytes) -> bool:
    words = line.split()
    return len(words) == 2 and words[0] == b"blob" and words[1].isdigit() and int(words[1]) <= MAX_FILE_BYTES


class Tree:
    """The files of a commit, and which of them are unchanged on disk.

    Contents are compared by blob id, here and not by git, which would run the filters that the repository configures;
    what a filter changes on the way to disk counts as changed.

    Raises:
        GitError: git is missing, did not finish in time, or failed.
    """

    def __init__(self, repository: Path, commit: str) -> None:
        self.repository, self.commit = repository, commit
        _, out = _git(repository, ["ls-tree", "-r", "-z", "--full-tree", commit])
        self._blobs: dict[str, bytes] = {}
        for entry in out.split(b"\0"):
            about, _, name = entry.partition(b"\t")
            if about.startswith(b"100"):  # a regular file, not a link or a submodule
                self._blobs[os.fsdecode(name)] = bytes.fromhex(about.rsplit(b" ", 1)[1].decode("ascii"))

    def __contains__(self, path: Path) -> bool:
        return _name_in(self.repository, path) in self._blobs

    def same(self, path: Path) -> bool:
        """Whether a file has the same bytes on disk as at the commit."""
        blob = self._blobs.get(_name_in(self.repository, path) or "")
        if blob is None:
            return False
        try:
            content = read_regular(path, MAX_FILE_BYTES)
        except OSError:
            return False
        algorithm = hashlib.sha1 if len(blob) == _SHA1 else hashlib.sha256
        return algorithm(b"blob %d\0" % len(content) + content, usedforsecurity=False).digest() == blob

    def texts(self, paths: Sequence[Path]) -> dict[Path, bytes | None]:
        """The bytes of paths at the commit; None for a path that did not exist.

        Raises:
            GitError: git is missing, did not finish in time, or failed.
        """
        texts: dict[Path, bytes | None] = dict.fromkeys(paths)
        return texts | texts_at(self.repository, self.commit, [path for path in paths if path in self])


def ignored(repository: Path, paths: Sequence[Path]) -> set[Path]:
    """The paths that git ignores.

    Raises:
        GitError: git is missing, did not finish in time, or failed.
    """
    names = {name: path for path in paths if (name := _name_in(repository, path)) is not None}
    if not names:
        return set()
    request = b"".join(os.fsencode(name) + b"\0" for name in names)
    # Status 1: no path is ignored.
    _, out = _git(repository, ["check-ignore", "--stdin", "-z"], request, accept=(0, 1))
    return {names[name] for name in os.fsdecode(out).split("\0") if name in names}


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


def _blobs(out: bytes, count: int) -> list[bytes | None]:
    """The contents in the output of ``cat-file --batch``: for each a header line with its size, then its bytes."""
    blobs: list[bytes | None] = []
    offset = 0
    while len(blobs) < count and offset < len(out):
        end = out.index(b"\n", offset)
        words = out[offset:end].rsplit(b" ", 2)
        offset = end + 1
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            blobs.append(out[offset : offset + size] if words[1] == b"blob" else None)
            offset += size + 1
        else:
            blobs.append(None)
    return blobs + [None] * (count - len(blobs))


def _program() -> str:
    # By folder: on Windows, `which` without a path would look into the working folder first.
    for folder in os.get_exec_path():
        if Path(folder).is_absolute() and (program := shutil.which(Path(folder, _PROGRAM))) is not None:
            return str(program)
    raise GitError("git was not found; install it and add it to the PATH")


def _environment() -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _LOCATIONS}
    return kept | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        # Not known to git before 2.44. No transport is allowed either, whatever the repository's configuration says.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }


def _git(
    repository: Path,
    arguments: Sequence[str],
    stdin: bytes = b"",
    accept: Sequence[int] = (0,),
) -> tuple[int, bytes]:
    """Run git in a repository; its status and what it printed."""
    try:
        done = subprocess.run(
            [_program(), *_SWITCHES, "-C", str(repository), *arguments],
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            env=_environment(),
        )
    except subprocess.TimeoutExpired:
        raise GitError(f"{repository}: git {arguments[0]} did not finish within {TIMEOUT:.0f} s; try again") from None
    except OSError as error:
        raise GitError(f"{repository}: git cannot be run ({error.strerror}); check its installation") from None
    if done.returncode not in accept:
        reason = (done.stderr.decode("utf-8", errors="replace").strip().splitlines() or ["no reason given"])[0]
        raise GitError(f"{repository}: git {arguments[0]} failed ({reason})")
    return done.returncode, done.stdout
