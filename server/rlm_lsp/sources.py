"""Which files are meant: the source files below the paths of a command line, and the files that match a glob.

Files are taken as named; directories are walked in sorted order, without hidden folders, dependencies and caches.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core import SourceError
from rlm_core.source import languages

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to predict; ``named`` when the user gave its very path rather than a folder above it."""

    path: Path
    named: bool


def find_sources(paths: Sequence[Path], on_error: Callable[[SourceError], None]) -> list[SourceFile]:
    """All files below ``paths``; a directory without any is reported to ``on_error``."""
    found: list[SourceFile] = []
    for path in paths:
        if not path.is_dir():
            found.append(SourceFile(path, named=True))
            continue
        below = [SourceFile(file, named=False) for file in _walk(path)]
        if not below:
            on_error(SourceError(f"{path}: no source file in this directory; name a file or another directory"))
        found += below
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(Path(parent, name)))
        yield from (
            path
            for path in (Path(parent, name) for name in sorted(files))
            if languages.by_path(path) and path.is_file()
        )


def _is_skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _SKIPPED_FOLDERS or (folder / "pyvenv.cfg").is_file()


def matches(glob: str, path: str) -> bool:
    """Whether ``path`` (relative, with ``/``) matches ``glob``, or is below a folder that does.

    As in a ``.gitignore``: ``*`` and ``?`` stay within a name, ``**`` crosses folders, and a glob without a slash
    matches at any depth. Brackets and ``!`` have no special meaning: file names contain them.
    """
    return _pattern(glob).match_file(path) is not None


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> GitIgnoreSpecPattern:
    # Imported for the first glob: most sessions have none, and the server should start fast.
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    return GitIgnoreSpecPattern(re.sub(r"([\\\[\]!#]| +\Z)", r"\\\1", glob))
