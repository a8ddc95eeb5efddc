"""Which files of a project call a function of a name, tests left out: an index that is made once and kept current.

Files are scanned, not parsed. A project is the folder above a file that has its configuration or repository; without
one it is the file's package, or the folder of a file that is in none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cachetools import LRUCache

from rlm_core.files import read_regular
from rlm_core.folders import is_file, is_left_out, is_test, walk
from rlm_core.source.function_names import CALL, FunctionNames
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES

from .package_files import Overlay, package_of

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "rlm-lsp.toml")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_MOST_FILES = 2_000  # of a project
_MOST_BYTES = 24 * 2**20
MOST_CALLERS = 8  # files with calls of one name: more are those of a common name
_PROJECTS = 4
_FILES = 1_024


@dataclass(slots=True)
class _Scan:
    """The names that the files of a folder call, and of each file its version on disk.

    ``version`` changes with the files. A folder of too many files has no names.
    """

    names: FunctionNames[Path] = field(default_factory=lambda: FunctionNames(CALL, MOST_CALLERS))
    scanned: dict[Path, tuple[int, int]] = field(default_factory=dict)
    version: int = 0
    is_current: bool = False
    is_too_large: bool = False


@dataclass(frozen=True, slots=True)
class Project:
    """The project of a file, whose real path is ``own``: the names that its files call; none where it is too large."""

    own: Path
    names: FunctionNames[Path]
    version: int
    is_too_large: bool


class ProjectCallers:
    """Finds the files of a project that call functions by name. Not thread-safe."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._scans: LRUCache[Path, _Scan] = LRUCache(_PROJECTS)
        self._folders: LRUCache[Path, tuple[Path, Path, bool]] = LRUCache(_FILES)

    def refresh(self) -> None:
        """Look at the files on disk again: some may be new, changed or gone."""
        self._folders.clear()
        for scan in self._scans.values():
            scan.is_current = False

    def of(self, path: Path) -> Project:
        """The project of a file."""
        if path not in self._folders:
            self._folders[path] = path.resolve(), *_project_folder(path)
        own, folder, is_nested = self._folders[path]
        scan = self._scans.setdefault(folder, _Scan())
        if not scan.is_current:
            self._update(scan, folder, is_nested=is_nested)
        return Project(own, scan.names, scan.version, scan.is_too_large)

    def known_version(self, path: Path) -> int | None:
        """The version of the project of a file; None where its files are to be looked at."""
        folders = self._folders.get(path)
        scan = self._scans.get(folders[1]) if folders is not None else None
        return scan.version if scan is not None and scan.is_current else None

    def _update(self, scan: _Scan, folder: Path, *, is_nested: bool) -> None:
        scan.is_current, scan.is_too_large = True, False
        seen: set[Path] = set()
        left = _MOST_BYTES
        for path in _sources(folder, is_nested=is_nested):
            with suppress(OSError):
                status = path.stat()
                if status.st_size > MAX_FILE_BYTES:
                    continue
                left -= status.st_size
                if left < 0 or len(seen) >= _MOST_FILES:
                    scan.is_too_large = True
                    return
                seen.add(path)
                version = status.st_mtime_ns, status.st_size
                if scan.scanned.get(path) != version:
                    overlay = self._overlay(path)
                    text = overlay.source if isinstance(overlay, ParsedSource) else overlay
                    scan.names.put(path, text if text is not None else read_regular(path, MAX_FILE_BYTES, folder))
                    scan.scanned[path] = version
                    scan.version += 1
        for path in scan.scanned.keys() - seen:
            del scan.scanned[path]
            scan.names.remove(path)
            scan.version += 1


def _sources(folder: Path, *, is_nested: bool) -> Iterator[Path]:
    """The Python files of a project that are not tests."""
    for parent, folders, files in walk(folder):
        folders[:] = [name for name in folders if is_nested and not is_left_out(parent / name)]
        below = parent.relative_to(folder)
        yield from (parent / name for name in files if name.endswith(".py") and not is_test(below / name))


def _project_folder(path: Path) -> tuple[Path, bool]:
    """The folder of a file's project, and whether the folders in it belong to it."""
    root, dotted = package_of(path)
    for folder in (root, *root.parents):
        if folder.name in _INSTALLED:
            break
        if any(is_file(folder / name) for name in _MARKS) or (folder / ".git").exists():
            return folder, True
    return (root / dotted.partition(".")[0], True) if "." in dotted or path.name == "__init__.py" else (root, False)
