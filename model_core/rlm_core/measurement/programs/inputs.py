"""The inputs of programs: files and folders and globs -> what is fed to each program on its stdin."""

from __future__ import annotations

import glob
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlm_core.errors import DataError


@dataclass(frozen=True, slots=True)
class Input:
    """A file that programs read on stdin; ``digest`` begins its SHA-1."""

    path: Path
    name: str
    digest: str


def inputs_for(patterns: Sequence[str], program: Path) -> list[Input]:
    """The inputs of a program, sorted by pattern and path.

    A pattern is a file, a folder (all files right in it) or a glob; ``{name}`` in it is the program's file name without
    its suffix.

    Raises:
        DataError: an input cannot be read.
    """
    found: dict[Path, Input] = {}
    for pattern in patterns:
        for path in _paths(pattern.replace("{name}", program.stem)):
            if path.resolve() not in found:
                found[path.resolve()] = Input(path, _short(path, pattern), digest_of(path))
    times = Counter(one.name for one in found.values())
    return [one if times[one.name] == 1 else replace(one, name=one.path.as_posix()) for one in found.values()]


def _paths(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
    if path.is_file():
        return [path]
    found = map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207 (a pattern may be absolute)
    return sorted(path for path in found if path.is_file())


def _short(path: Path, pattern: str) -> str:
    """A name that tells inputs of one pattern apart."""
    return f"{path.parent.name}/{path.name}" if "*" in str(Path(pattern).parent) else path.name


def digest_of(path: Path) -> str:
    """How the SHA-1 of a file begins.

    Raises:
        DataError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.sha1(usedforsecurity=False)).hexdigest()[:12]
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the inputs") from None
