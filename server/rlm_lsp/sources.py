"""Finds files: the source files below the paths of a command line, and the files that match a glob.

Files are taken as named; directories are walked in sorted order, without hidden folders, dependencies and caches.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

from pygls.uris import to_fs_path
from rlm_core import SourceError
from rlm_core.folders import is_file, is_left_out, is_test, walk
from rlm_core.source import languages
from rlm_core.source.notebooks import is_notebook


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to predict, and the folder in which it was found; None when the user gave its very path."""

    path: Path
    root: Path | None = None

    @property
    def named(self) -> bool:
        """True if the user named this path itself."""
        return self.root is None


def path_of_uri(uri: str) -> Path | None:
    """The path that a ``file:`` URI names; None for other URIs, and for what no file can be called."""
    try:
        name = to_fs_path(uri)
        if name:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                os.lstat(name)  # fails otherwise for a name that is too long or has a NUL or a lone surrogate
    except (ValueError, OSError):
        return None
    return Path(name) if name else None


def find_sources(
    paths: Sequence[Path], on_error: Callable[[SourceError], None], *, notebooks: bool = False
) -> list[SourceFile]:
    """All files below ``paths``; directories without any, and those that cannot be read, are reported to ``on_error``.

    ``notebooks`` says whether directories are searched for notebooks too.
    Links to directories are not followed. Where a link to a file leads is for its reader to check.
    """
    found: list[SourceFile] = []
    for path in paths:
        if not path.is_dir():
            found.append(SourceFile(path))
            continue
        below = [SourceFile(file, path) for file in _walk(path, on_error, notebooks=notebooks)]
        if not below:
            on_error(SourceError(f"{path}: no source file in this directory; name a file or another directory"))
        found += below
    return found


def without_tests(sources: Sequence[SourceFile]) -> list[SourceFile]:
    """The files without tests, except those that the user named, or whose folder; all files if all are tests."""

    def is_meant(source: SourceFile) -> bool:
        if source.root is None:
            return True
        # Of an absolute path the folders above say nothing: a project may be in one that is called `test`.
        named = () if source.root.is_absolute() else source.root.parts
        below = source.path.relative_to(source.root)
        return is_test(PurePath(*named, source.root.resolve().name, "file")) or not is_test(below)

    return [source for source in sources if is_meant(source)] or list(sources)


def _walk(folder: Path, on_error: Callable[[SourceError], None], *, notebooks: bool) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        advice = "shorten its path" if error.errno == errno.ENAMETOOLONG else "check its permissions"
        on_error(SourceError(f"{error.filename}: cannot be read ({error.strerror}); {advice}"))

    for parent, folders, files in walk(folder, unreadable):
        folders[:] = [name for name in folders if not is_left_out(parent / name)]
        for path in map(parent.joinpath, files):
            if (languages.by_path(path) or (notebooks and is_notebook(path))) and is_file(path):
                yield path


def matches(glob: str, path: str) -> bool:
    """Return whether ``path`` (relative, with ``/``) matches ``glob``, or is below a folder that does.

    As in a ``.gitignore``: ``*`` and ``?`` stay within a name, ``**`` crosses folders, and a glob without a slash
    matches at any depth. Brackets and ``!`` have no special meaning: file names contain them. Takes time proportional
    to the product of the names in both.
    """
    pattern, of_folder = _pattern(glob)
    names = path.split("/")
    if not pattern or sum(entry is not None for entry in pattern) > len(names):
        return False
    # The numbers of entries that may be complete before the next name, as in a finite automaton.
    reached = _skipping(pattern, {0})
    for number, name in enumerate(names, 1):
        following = {at for at in reached if at < len(pattern) and pattern[at] is None}
        following |= {at + 1 for at in reached if at < len(pattern) and (entry := pattern[at]) and entry.match(name)}
        found = len(pattern) in following or (pattern[-1] is None and len(pattern) - 1 in reached)
        if found and (number < len(names) or not of_folder):
            return True
        reached = _skipping(pattern, following)
    return False


def _skipping(pattern: Sequence[re.Pattern[str] | None], reached: set[int]) -> set[int]:
    """Return what is reached if ``**`` stands for no folder; the last one stands for at least one name."""
    return reached | {at + 1 for at in reached if at < len(pattern) - 1 and pattern[at] is None}


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> tuple[tuple[re.Pattern[str] | None, ...], bool]:
    """A glob as regular expressions for names, None for ``**``; and whether it matches folders only."""
    names = [name for name in glob.split("/") if name]
    if names and "/" not in glob.rstrip("/"):
        names.insert(0, "**")
    distinct = [name for name, before in zip(names, [None, *names], strict=False) if (name, before) != ("**", "**")]
    return tuple(None if name == "**" else _name_pattern(name) for name in distinct), glob.endswith("/")


def _name_pattern(name: str) -> re.Pattern[str]:
    """A name with ``*`` and ``?``. Each part between stars is taken where it is first found: no name takes long."""
    first, *parts = (re.escape(part).replace(r"\?", ".") for part in re.split(r"\*+", name))
    middle = "".join(f"(?>.*?{part})" for part in parts[:-1])
    return re.compile(first + middle + (f".*{parts[-1]}" if parts else "") + r"\Z", re.DOTALL)
