"""Folders: walked and removed however deeply they are nested, and scratch folders that do not outlive their process.

A workspace, an archive or a program that was measured may leave thousands of nested folders. The standard library
recurses over them (``os.walk``, ``Path.rglob``, ``shutil.rmtree``) and fails; nothing here does.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from types import TracebackType

try:
    import fcntl
except ImportError:  # Windows, where the folder of a killed process stays
    fcntl = None  # type: ignore[assignment]

_TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs"})
# The names that pytest, unittest, Jest, JUnit, NUnit, RSpec and Go's tools look for.
_TEST_NAME = re.compile(r"test_.*|.*_(test|spec)|conftest|.*\.(test|spec)|\w*[a-z0-9](Test|Tests|Spec)")
_DEPENDENCIES = frozenset({"node_modules", "__pycache__"})
_SCRATCH = "rlm-lsp-scratch-"
_SCRATCH_NAME = re.compile(re.escape(_SCRATCH) + "[a-z0-9_]{8}")  # as `mkdtemp` names them
_OPEN_FOLDER = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW"))


def walk(
    folder: Path, on_error: Callable[[OSError], None] = lambda error: None
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Each folder below ``folder``, itself included, with the sorted names of its folders and of its other entries.

    Names that the caller removes from the list of folders are not entered. Links to folders are in neither list. A
    folder that cannot be read is reported to ``on_error``.
    """
    waiting = [str(folder)]
    while waiting:
        parent = waiting.pop()
        folders: list[str] = []
        files: list[str] = []
        try:
            with os.scandir(parent) as entries:
                for entry in entries:
                    if _is_folder(entry):
                        folders.append(entry.name)
                    elif not _is_link_to_folder(entry):
                        files.append(entry.name)
        except OSError as error:
            on_error(error)
            continue
        folders.sort()
        files.sort()
        yield Path(parent), folders, files
        waiting += [os.path.join(parent, name) for name in reversed(folders)]  # noqa: PTH118 - a Path takes ten times as long


def is_test(path: PurePath) -> bool:
    """Return whether a file contains tests or their helpers, by its path below the folder of the project."""
    return not _TEST_FOLDERS.isdisjoint(path.parts[:-1]) or _TEST_NAME.fullmatch(path.stem) is not None


def is_left_out(folder: Path) -> bool:
    """Return whether a folder has no sources of its project: it is hidden, or holds dependencies or caches."""
    return folder.name.startswith(".") or folder.name in _DEPENDENCIES or is_file(folder / "pyvenv.cfg")


def is_file(path: Path) -> bool:
    """Unlike ``Path.is_file``, False also where the folder may not be searched or the path is too long."""
    try:
        return path.is_file()
    except OSError:
        return False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_link_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def remove_tree(folder: Path) -> None:
    """Remove a folder with all below it. Links are not followed; what cannot be removed stays, without an error."""
    if os.name != "posix":
        shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(OSError):
        _empty(os.open(folder, _OPEN_FOLDER))
        folder.rmdir()


def _empty(current: int) -> None:
    """Remove all in an open folder, and close it. One folder is open at a time, and no path gets long."""
    try:
        trail = [("", _folder_key(current), _remove_files(current))]
        while True:
            name, _, inner_names = trail[-1]
            if inner_names:
                inner_name = inner_names.pop()
                with suppress(OSError):
                    inner = _open_inner(inner_name, current)
                    os.close(current)
                    current = inner
                    trail.append((inner_name, _folder_key(current), _remove_files(current)))
                continue
            trail.pop()
            if not trail:
                return
            outer = os.open("..", _OPEN_FOLDER, dir_fd=current)
            os.close(current)
            current = outer
            if _folder_key(current) != trail[-1][1]:
                return  # it was moved away meanwhile: nothing outside may be removed
            with suppress(OSError):
                os.rmdir(name, dir_fd=current)
    finally:
        os.close(current)


def _folder_key(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def _open_inner(name: str, folder: int) -> int:
    try:
        return os.open(name, _OPEN_FOLDER, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        return os.open(name, _OPEN_FOLDER, dir_fd=folder)


def _remove_files(folder: int) -> list[str]:
    """Remove all but folders from an open folder, and return their names."""
    is_folder: dict[str, bool] = {}
    with suppress(OSError):
        os.fchmod(folder, 0o700)
        with os.scandir(folder) as entries:
            is_folder = {entry.name: _is_folder(entry) for entry in entries}
    for name in [name for name, inner in is_folder.items() if not inner]:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
    return [name for name, inner in is_folder.items() if inner]


class ScratchFolder:
    """A new folder for temporary files in ``parent`` (default: the system's), which is removed at the end.

    The process holds a lock on it. The folders of processes that were killed have none, and are removed when the next
    process makes a folder in the same place.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, parent: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        _remove_left(parent)
        # Another process may take a folder that is not locked yet for one that was left.
        while (made := _locked(Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=parent)))) is None:
            pass
        self.path, self._lock = made

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        remove_tree(self.path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(folder: Path) -> tuple[Path, int | None] | None:
    """A new folder and the lock on it, which a file system may not have; None if another process has removed it."""
    if fcntl is None:
        return folder, None
    try:
        lock = os.open(folder, _OPEN_FOLDER)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:
        return folder, lock  # a file system without locks, where no process takes a folder for one that was left
    if folder.exists():
        return folder, lock
    os.close(lock)
    return None


def _remove_left(parent: Path) -> None:
    """Remove the scratch folders of this user in ``parent`` whose processes have ended."""
    if fcntl is None:
        return
    try:
        with os.scandir(parent) as entries:
            paths = [entry.path for entry in entries if _SCRATCH_NAME.fullmatch(entry.name)]
    except OSError:
        return
    for path in paths:
        with suppress(OSError):
            folder = os.open(path, _OPEN_FOLDER)
            try:
                if os.fstat(folder).st_uid == os.getuid():
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(Path(path))
            finally:
                os.close(folder)
