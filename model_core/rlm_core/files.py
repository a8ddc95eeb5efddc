"""Files: read within limits, written whole or not at all; JSON Lines, read with the place of each mistake.

Every writer of the project goes through :func:`atomic_write`, every reader of JSON Lines through
:func:`read_json_lines`, and every reader of a file that a workspace, an archive or a model folder supplies through
:func:`read_regular`. Nothing here knows what the files mean.
"""

from __future__ import annotations

import glob
import gzip
import json
import os
import secrets
import shutil
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from .errors import DataError
from .folders import remove_tree, walk

# Opening a pipe must not wait for its other end, and a terminal must not become ours.
_OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"))
_ABANDONED_SECONDS = 24 * 3600
_LONGEST_LINE = 64 * 2**20


class FileRefusedError(OSError):
    """A file that is not read: not a regular file, over a limit, or outside a folder; ``strerror`` says which."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(None, reason, str(path))
        self.strerror: str = reason


def open_regular(path: Path, limit: int, root: Path | None = None) -> BufferedReader:
    """Open a regular file of at most ``limit`` bytes, which with its links resolved is below ``root``, if given.

    Pipes, devices and folders are refused without reading or waiting for them.

    Raises:
        FileRefusedError: it is not such a file; an ``OSError``.
        OSError: the file cannot be opened.
    """
    if root is not None:
        path.stat()  # resolving a path takes a system call per folder: not for the many files that do not exist
        if not (path := path.resolve()).is_relative_to(root.resolve()):
            raise FileRefusedError(path, f"outside {root}")
    file = os.open(path, _OPEN_FLAGS)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise FileRefusedError(path, "not a regular file")
        if status.st_size > limit:
            raise _over(path, status.st_size, limit)
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def read_regular(path: Path, limit: int, root: Path | None = None) -> bytes:
    """The bytes of a regular file; never more than ``limit``, also of a file that grows or has no true size.

    Raises:
        FileRefusedError: see :func:`open_regular`; an ``OSError``.
        OSError: the file cannot be read.
    """
    with open_regular(path, limit, root) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise _over(path, len(content), limit)
    return content


def _over(path: Path, size: int, limit: int) -> FileRefusedError:
    return FileRefusedError(path, f"{_size(size)} is over the limit of {_size(limit)}")


def _size(size: int) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} bytes"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path next to ``path`` to write to; it replaces ``path`` when the block ends without an exception.

    Readers see the old file or the new one, never a part of one, whatever happens to this process or the machine. After
    an exception the old file is untouched and nothing is left behind; what a killed process left is removed by a
    later write of the same file. The new file has the permissions of the old one; of a link, what it leads to is
    replaced. A device or a pipe is written to as it is.

    Raises:
        OSError: the file cannot be written or replaced.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not path.is_file():
        yield path
        return
    remove_abandoned(path)
    partial = partial_path(path)
    try:
        yield partial
        _sync(partial)
        with suppress(FileNotFoundError, PermissionError):
            shutil.copymode(path, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def partial_path(path: Path) -> Path:
    """Return a path to write to before the file is moved to ``path``; no two writers have the same one."""
    # Processes in containers may have the same number, and threads have.
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")


def remove_abandoned(path: Path) -> None:
    """Remove what writers of ``path``, a file or folder, left when they were killed, after a day without a change."""
    oldest = time.time() - _ABANDONED_SECONDS
    with suppress(OSError):
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
            with suppress(OSError):
                is_folder = left.is_dir() and not left.is_symlink()
                below = walk(left) if is_folder else ()
                paths = (left, *(parent / name for parent, folders, files in below for name in (*folders, *files)))
                if max(one.lstat().st_mtime for one in paths) < oldest:
                    remove_tree(left) if is_folder else left.unlink()


def _sync(path: Path) -> None:
    """Have the bytes on the disk before the name: else a power cut may leave the name with no bytes."""
    file = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(file)
    finally:
        os.close(file)


def read_json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """The values of a ``.jsonl`` or ``.jsonl.gz`` file, each with ``path:line`` for messages; blank lines are skipped.

    Raises:
        DataError: the file cannot be read, or a line is too long or not JSON.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            yield from parse_json_lines(_limited(lines, str(path)), str(path))
    except (OSError, UnicodeDecodeError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"{path}: cannot be read ({reason})") from None


def _limited(lines: IO[str], name: str) -> Iterator[str]:
    """The lines of a file, none of which is read whole if it is too long: a small archive may hold a huge one."""
    while line := lines.readline(_LONGEST_LINE + 1):
        if len(line) > _LONGEST_LINE:
            raise DataError(f"{name}: a line is over {_LONGEST_LINE // 2**20} MiB; is this a file of JSON Lines?")
        yield line


def parse_json_lines(lines: Iterable[str], name: str) -> Iterator[tuple[str, Any]]:
    """The values of lines of JSON, each with ``name:line`` for messages; blank lines are skipped.

    Raises:
        DataError: a line is not JSON.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise DataError(f"{where}: not JSON ({reason}); fix or remove the line") from None
        yield where, value
