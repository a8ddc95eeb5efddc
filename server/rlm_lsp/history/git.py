"""The texts of files at a git revision, read with git's plumbing commands.

Nothing in the repository is run: no hooks, filters, textconv or file-system monitor, and nothing is fetched. One
process reads many files of a repository. Calls block; the server makes them on a separate thread. What git prints is
read up to a limit: objects of a few hundred KB may expand to gigabytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from cachetools import LRUCache
from rlm_core.errors import DataError
from rlm_core.files import read_regular
from rlm_core.measurement.child_process import end_group
from rlm_core.source.units import MAX_FILE_BYTES

TIMEOUT = 30.0
_PROGRAM = "git.exe" if os.name == "nt" else "git"
# Blobs are requested in batches, so that neither process waits for the other with a full pipe.
_BATCH = 256
_BATCH_BYTES = 16 * 2**20  # of blobs that one process reads
_TREE_BYTES, _TREE_FILES = 64 * 2**20, 500_000  # of a commit; the largest public repositories have about 400,000
_OUT_BYTES = 32 * 2**20  # of any other output
_PIECE_BYTES = 64 * 2**10
_CACHE_BYTES, _LEAST_BYTES = 64 * 2**20, 1024  # of texts that are remembered; what a path without a text counts
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


_Key = TypeVar("_Key")


class GitError(DataError):
    """git is missing, did not finish in time, printed too much, or failed."""


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
    status, out = _git(repository, arguments, accept=(0, 1))
    return out.decode("ascii", errors="replace").strip() if status == 0 else None


def texts_at(repository: Path, commit: str, paths: Sequence[Path]) -> Iterator[tuple[Path, bytes | None]]:
    """Paths with their bytes at a commit, in batches; None for what did not exist, was not a file or was over 2 MiB.

    Raises:
        GitError: git is missing, did not finish in time, or failed.
    """
    names = {path: _name_in(repository, path) for path in paths}
    yield from ((path, None) for path, name in names.items() if name is None)
    requests = [(path, f"{commit}:{name}\n") for path, name in names.items() if name is not None]
    for start in range(0, len(requests), _BATCH):
        part = requests[start : start + _BATCH]
        request = os.fsencode("".join(line for _, line in part))
        out = _git(repository, ["cat-file", "--batch-check=%(objecttype) %(objectsize)"], request)[1]
        batch: list[tuple[Path, str]] = []
        left = _BATCH_BYTES
        for (path, line), about in zip(part, out.splitlines(), strict=True):
            size = _size_of_blob(about)
            if size is None:
                yield path, None
                continue
            if size > left:
                yield from _read_blobs(repository, batch)
                batch, left = [], _BATCH_BYTES
            batch.append((path, line))
            left -= size
        yield from _read_blobs(repository, batch)


def _read_blobs(repository: Path, batch: Sequence[tuple[Path, str]]) -> Iterator[tuple[Path, bytes | None]]:
    if batch:
        _, out = _git(repository, ["cat-file", "--batch"], os.fsencode("".join(line for _, line in batch)))
        yield from zip((path for path, _ in batch), _blobs(out, len(batch)), strict=True)


def _size_of_blob(line: bytes) -> int | None:
    """The size of an object; None for what is not a blob of at most 2 MiB."""
    words = line.split()
    is_blob = len(words) == 2 and words[0] == b"blob" and words[1].isdigit()
    return size if is_blob and (size := int(words[1])) <= MAX_FILE_BYTES else None


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
        with _running(repository, ["ls-tree", "-r", "-z", "--full-tree", commit], b"", (0,), _TREE_BYTES) as pieces:
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
        """Whether a file has the same bytes on disk as at the commit."""
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
    with _running(repository, arguments, stdin, accept, _OUT_BYTES) as output:
        out = b"".join(output)
    return output.status, out


class _Output:
    """What a process prints, in pieces, and its exit status at the end."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream, self._left = stream, limit
        self.status = 0
        self.is_too_long = False

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._stream.read(_PIECE_BYTES):
            self._left -= len(piece)
            if self._left < 0:
                self.is_too_long = True
                return
            yield piece


@contextmanager
def _running(
    repository: Path, arguments: Sequence[str], stdin: bytes, accept: Sequence[int], limit: int
) -> Iterator[_Output]:
    """Run git in a repository and read at most ``limit`` bytes of what it prints; afterwards it has ended."""
    try:
        process = subprocess.Popen(
            [_program(), *_SWITCHES, "-C", str(repository), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise GitError(f"{repository}: git cannot be run ({error.strerror}); check its installation") from None
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[bytes] = []
    is_late = threading.Event()

    def end() -> None:
        if process.poll() is None:
            is_late.set()
            end_group(process)

    threads = (
        threading.Thread(target=_write, args=(process.stdin, stdin), daemon=True),
        threading.Thread(target=_read_first, args=(process.stderr, errors), daemon=True),
    )
    timer = threading.Timer(TIMEOUT, end)
    timer.daemon = True
    for thread in (*threads, timer):
        thread.start()
    output = _Output(process.stdout, limit)
    try:
        yield output
        if not output.is_too_long:
            process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            end_group(process)
        for thread in threads:
            thread.join()
        process.stdout.close()
    output.status = process.returncode
    if is_late.is_set():
        raise GitError(f"{repository}: git {arguments[0]} did not finish within {TIMEOUT:.0f} s; try again")
    if output.is_too_long:
        raise GitError(f"{repository}: git {arguments[0]} prints more than {limit // 2**20} MiB; name another revision")
    if output.status not in accept:
        lines = b"".join(errors).decode("utf-8", errors="replace").strip().splitlines()
        raise GitError(f"{repository}: git {arguments[0]} failed ({(lines or ['no reason given'])[0]})")


def _write(stream: IO[bytes], content: bytes) -> None:
    with suppress(OSError), stream:
        stream.write(content)


def _read_first(stream: IO[bytes], into: list[bytes]) -> None:
    """Read all that a process prints and keep the first piece."""
    with suppress(OSError), stream:
        while piece := stream.read(_PIECE_BYTES):
            if not into:
                into.append(piece)
