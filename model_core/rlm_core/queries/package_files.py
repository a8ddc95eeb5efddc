"""The files of the packages that analysed files belong to, on disk and in open editors.

A package's files are scanned for the names of methods once, and a file is parsed when a call may run one of its
functions. ``overlay`` gives the texts that take precedence over the disk, already parsed where they are analysed too.
What an analysis reads of other files is limited in bytes; the rest counts as unknown.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cachetools import LRUCache

from rlm_core.boundary import absorb
from rlm_core.errors import TooComplexError
from rlm_core.files import read_regular
from rlm_core.folders import walk
from rlm_core.source.function_names import FunctionNames
from rlm_core.source.module_index import ModuleIndex, index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES

Overlay = Callable[[Path], ParsedSource | bytes | None]
# Of the modules that an analysis may load, remembered or not: what it finds depends on no clock. The files of torch
# that import most load 5 MB in two seconds.
_LOADED_BYTES = 10 * 2**20
_CALLER_BYTES = 512 * 2**10  # of a file with calls of another file's functions
_INDEXED_BYTES = 16 * 2**20  # of the modules that are remembered
_LEAST_BYTES = 32 * 2**10  # that a module counts: an index is more than its text
_COMPLEX_BYTES = 4 * 2**20  # that a module counts that takes too long to parse
_PARSE_SECONDS = 1.5  # for a module; 2 MiB of ordinary code take half of that
_SCANNED_FILES = 20_000  # of a package, for names of functions
_SCANNED_BYTES = 128 * 2**20  # of a package; torch has 44 MiB
_PACKAGES = 16


@dataclass(slots=True)
class _Package:
    """The names of methods in a package by module, and of each file that was scanned its version on disk and length."""

    names: FunctionNames[str] = field(default_factory=FunctionNames)
    scanned: dict[Path, tuple[tuple[int, int], int]] = field(default_factory=dict)
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class _Indexed:
    """A version of a module and its index; None for a module that was too complex."""

    version: object
    index: ModuleIndex | None
    size: int


@dataclass(slots=True)
class _Budget:
    """The bytes of modules that an analysis may still load."""

    left: int


class PackageFiles:
    """Names of methods and indices of modules of packages. Not thread-safe.

    ``on_load`` gets each module that a call led to, once per analysis.
    """

    def __init__(self, overlay: Overlay, on_load: Callable[[ModuleIndex], None] = lambda index: None) -> None:
        self._overlay, self._on_load = overlay, on_load
        # By the module's name too: a package in a folder that is none, inside another package, has two names.
        self._indices: LRUCache[tuple[Path, str], _Indexed] = LRUCache(_INDEXED_BYTES, lambda indexed: indexed.size)
        self._packages: LRUCache[Path, _Package] = LRUCache(_PACKAGES)
        # Modules of the current analysis: a file is looked at once, however many calls lead to it.
        self.loaded: dict[tuple[Path | None, str], ModuleIndex | None] = {}
        self._contexts: dict[tuple[Path, str], int] = {}
        self._changes: Counter[Path | None] = Counter()
        self.start()

    def refresh(self) -> None:
        """Look at the files on disk again: some may be new, changed or gone."""
        for package in self._packages.values():
            package.is_current = False

    def start(self, before_reading: Callable[[], None] = lambda: None) -> None:
        """A new analysis starts, with a new budget; ``before_reading`` is called before each file that is read."""
        self.loaded.clear()
        self._before_reading = before_reading
        self._left = _Budget(_LOADED_BYTES)

    def structure(self, path: Path | None) -> int:
        """A number that changes when names, imports or classes of another file than ``path`` do."""
        return self._changes.total() - self._changes[path]

    def load(self, root: Path | None, dotted: str, module: str) -> ModuleIndex | None:
        """The index of a module that one of the module ``dotted`` calls.

        None outside its package, without a file, and where the budget of the analysis is used up.
        """
        # Only the file's package: what other packages cost is not looked up.
        if root is None or module.partition(".")[0] != dotted.partition(".")[0]:
            return None
        key = root, module
        if key not in self.loaded:
            stem = root.joinpath(*module.split("."))
            paths = stem.with_suffix(".py"), stem / "__init__.py"
            indices = (self._index(path, module, root, self._left) for path in paths)
            loaded = self.loaded[key] = next((index for index in indices if index is not None), None)
            if loaded is not None:
                self._on_load(loaded)
        return self.loaded[key]

    def caller(self, path: Path) -> ModuleIndex | None:
        """The index of a file that calls functions of others, whatever else an analysis loads; None if it is large."""
        root, dotted = package_of(path)
        return self._index(path, dotted, root, _Budget(_CALLER_BYTES))

    def names(self, root: Path | None, dotted: str) -> FunctionNames[str]:
        """The names of methods in the package of a module; files are scanned when they are new or have changed."""
        folder = root / dotted.partition(".")[0] if root is not None else None
        if root is None or folder is None or not (folder / "__init__.py").is_file():
            return FunctionNames()
        package = self._packages.setdefault(folder, _Package())
        if package.is_current:
            return package.names
        seen: set[Path] = set()
        left = _SCANNED_BYTES
        for path, version in _python_files(folder):
            known = package.scanned.get(path)
            if known is None or known[0] != version:
                self._before_reading()
                known = package.scanned[path] = version, self._scan(path, root, package.names)
            seen.add(path)
            left -= known[1]
            if left <= 0:
                break
        for path in package.scanned.keys() - seen:
            del package.scanned[path]
            package.names.remove(_module_of(root, path))
            self._changes[path] += 1
        package.is_current = True
        return package.names

    def _scan(self, path: Path, root: Path, names: FunctionNames[str]) -> int:
        """Scan a file for names of methods; the length of its text."""
        try:
            overlay = self._overlay(path)
            source = overlay.source if isinstance(overlay, ParsedSource) else overlay
            if source is None:
                source = read_regular(path, MAX_FILE_BYTES, root)
        except OSError:
            return 0
        if names.put(_module_of(root, path), source):
            self._changes[path] += 1
        return len(source)

    def note(self, path: Path, dotted: str, source: bytes, index: ModuleIndex, names: FunctionNames[str]) -> None:
        """Notice what of a file other files depend on: the names that it defines, imports and classes."""
        context = context_of(index)
        before = self._contexts.get((path, dotted), context)
        if (names.put(dotted, source) if len(names) else False) or before != context:
            self._changes[path] += 1
        self._contexts[path, dotted] = context

    def _index(self, path: Path, dotted: str, root: Path, budget: _Budget) -> ModuleIndex | None:
        overlay = self._overlay(path)
        parsed = _other_file(overlay) if isinstance(overlay, bytes) else overlay
        try:
            if parsed is None:
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):
                    return None
                version: object = (status.st_mtime_ns, status.st_size)
                length = status.st_size
            else:
                version, length = parsed.source, len(parsed.source)
            size = max(length, _LEAST_BYTES)
            if length > MAX_FILE_BYTES or size > budget.left:
                return None
            known = self._indices.get((path, dotted))
            if known is None or known.version != version:
                self._before_reading()
                if parsed is None or parsed.language != "python":
                    content = read_regular(path, MAX_FILE_BYTES, root) if parsed is None else parsed.source
                    parsed = _other_file(content)
                known = _Indexed(version, self._read(path, parsed, dotted), size)
                self._indices[path, dotted] = known
        except (OSError, ValueError):
            return None
        budget.left -= size if known.index is not None else max(size, _COMPLEX_BYTES)
        return known.index

    def _read(self, path: Path, parsed: ParsedSource, dotted: str) -> ModuleIndex | None:
        """The index of a module; None for one that is too complex."""
        try:
            index = index_module(parsed, dotted, is_package=path.name == "__init__.py")
        except TooComplexError:
            return None
        except Exception as error:
            absorb(f"the analysis of {path}", error)
            return None
        context = context_of(index)
        if self._contexts.setdefault((path, dotted), context) != context:
            self._changes[path] += 1
            self._contexts[path, dotted] = context
        return index


def _other_file(content: bytes) -> ParsedSource:
    return ParsedSource(content, "python", may_leave_out=True, seconds=_PARSE_SECONDS)


def context_of(index: ModuleIndex) -> int:
    """A hash of everything but function bodies that the facts of a file's units depend on."""
    return hash(
        (
            frozenset(index.imports.items()),
            frozenset(index.constants.items()),
            frozenset((name, tuple(bases)) for name, bases in index.bases.items()),
            frozenset(index.classes.items()),
            frozenset((name, frozenset(types.items())) for name, types in index.attributes.items()),
            frozenset(index.units),
        )
    )


def _python_files(folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    """The Python files of a package with their versions on disk, at most ``_SCANNED_FILES``."""
    count = 0
    for parent, folders, files in walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in files:
            if not name.endswith(".py"):
                continue
            path = parent / name
            with suppress(OSError):
                status = path.stat()
                if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES:
                    count += 1
                    yield path, (status.st_mtime_ns, status.st_size)
            if count >= _SCANNED_FILES:
                return


def _module_of(root: Path, path: Path) -> str:
    """The dotted name of a file's module."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def path_of(root: Path | None, module: str) -> Path | None:
    """The file of a module."""
    if root is None:
        return None
    stem = root.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def package_of(path: Path) -> tuple[Path, str]:
    """The folder that holds a file's top-level package, and the file's dotted module name in it."""
    path = path.resolve()
    folder, parts = path.parent, [] if path.name == "__init__.py" else [path.stem]
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)
