"""The source cache: wheels and bare git repositories, in a folder outside the project.

Nothing is installed and nothing from the cache is run; files are read out of archives and object stores.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from platformdirs import user_cache_path

from rlm_core import git
from rlm_core.errors import DataError
from rlm_core.files import atomic_write, partial_path, remove_abandoned
from rlm_core.folders import ScratchFolder, remove_tree

_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
# Names of PEP 508 and versions of PEP 440: anything else could be an address or an option of pip.
_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(
    r"v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?[0-9]*)?"
    r"(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?(?:[-_.]?dev[-_.]?[0-9]*)?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?",
    re.IGNORECASE,
)
_LONGEST_NAME = 200
_DOWNLOAD_SECONDS = 3600.0
_BLOB = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?|[0-9a-f]{7,64}:[^\n]+")  # an id, or a commit and a path
# Images and models are often absent from partial copies of a repository.
_READ_BY_PYTHON = (".py", ".pyi", ".toml", ".cfg", ".ini", ".txt", ".csv", ".json")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MAX_BLOB_BYTES = 8 * 1024 * 1024
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+\Z")


def default_cache() -> Path:
    """The user's cache folder for source text."""
    return user_cache_path("rlm-lsp") / "sources"


def find_wheel(cache: Path, package: str, version: str, *, download: bool) -> Path | None:
    """The wheel of a pinned package in the cache, downloaded with pip when it is absent and ``download`` is set.

    Raises:
        DataError: the name or the version is not one (pip would read an address and build what is there).
    """
    for text, form, what in ((package, _PACKAGE, "name of a package"), (version, _VERSION, "version")):
        if not isinstance(text, str) or len(text) > _LONGEST_NAME or not form.fullmatch(text):
            raise DataError(f"{str(text)[:_LONGEST_NAME]!r} is not a {what}; correct the label file")
    wheel = _cached_wheel(cache, package, version)
    if wheel is not None or not download:
        return wheel
    folder = cache / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", "3.12", *(f"--platform={platform}" for platform in _PLATFORMS)]
    with ScratchFolder(folder) as scratch:
        command += ["--dest", str(scratch), "--", f"{package}=={version}"]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, check=False, capture_output=True, timeout=_DOWNLOAD_SECONDS)
        for wheel in scratch.glob("*.whl"):
            wheel.replace(folder / wheel.name)
    return _cached_wheel(cache, package, version)


def _cached_wheel(cache: Path, package: str, version: str) -> Path | None:
    wanted = _normal(package), version
    for folder in (cache, cache / "wheels"):
        for path in folder.glob("*.whl"):
            name, _, rest = path.name.partition("-")
            if (_normal(name), rest.partition("-")[0]) == wanted:
                return path
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def find_repository(cache: Path, repository: str, *, download: bool) -> Path | None:
    """The git directory of ``OWNER/NAME``: ``OWNER+NAME/repo`` or ``OWNER/NAME.git`` in the cache, else a bare clone.

    Raises:
        DataError: the name is not of the form OWNER/NAME (it would become a path and an address).
    """
    if not _REPOSITORY.match(repository):
        raise DataError(f"{repository!r} is not a repository name of the form OWNER/NAME; correct the label file")
    owner, name = repository.split("/")
    for folder in (cache, cache / "repositories"):
        for path in (folder / f"{owner}+{name}" / "repo", folder / owner / f"{name}.git"):
            if (path / "HEAD").exists():
                return path
    if not download:
        return None
    target = cache / "repositories" / owner / f"{name}.git"
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target)
    partial = partial_path(target)
    try:
        git.clone(f"https://github.com/{repository}", partial)
        partial.rename(target)
    except (git.GitError, OSError):  # no such repository, or another process was first
        remove_tree(partial)
    return target if (target / "HEAD").exists() else None


def find_archive(cache: Path, repository: str, commit: str, *, download: bool) -> Path | None:
    """What Python code reads of a repository at a commit, as a ZIP archive in the cache; None without the repository.

    Raises:
        DataError: the name is not of the form OWNER/NAME, or the commit is not a full one.
        GitError: git is missing, did not finish in time, or the repository lacks the commit.
    """
    if not _COMMIT.fullmatch(commit):
        raise DataError(f"{commit!r} is not a full commit id; correct the label file")
    source = find_repository(cache, repository, download=download)
    if source is None:
        return None
    target = cache / "archives" / f"{repository.replace('/', '+')}@{commit}.zip"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        _, listed = git.run(source, ["ls-tree", "-r", "-z", "--name-only", commit])
        names = [name for name in os.fsdecode(listed).split("\0") if name.endswith(_READ_BY_PYTHON)]
        with atomic_write(target) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in read_blobs(source, (f"{commit}:{name}" for name in names)):
                if content is not None:
                    archive.writestr(name.partition(":")[2], content)
    return target


def read_blobs(repository: Path, blobs: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
    """The contents of blobs by id or ``COMMIT:PATH``.

    None for those that the repository lacks, that are over 8 MiB, or whose name is neither.

    Raises:
        GitError: git is missing, did not finish in time, or failed.
    """
    names = list(blobs)
    contents = git.read_blobs(repository, [name for name in names if _BLOB.fullmatch(name)], _MAX_BLOB_BYTES)
    yield from (next(contents) if _BLOB.fullmatch(name) else (name, None) for name in names)


@contextmanager
def open_wheel(path: Path) -> Iterator[zipfile.ZipFile]:
    """A wheel of the cache.

    Raises:
        DataError: it is not an archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except zipfile.BadZipFile:
        raise DataError(f"{path}: not a wheel; delete it and build the functions data set again") from None


def read_member(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """A file of a wheel; None if it is over 8 MiB, whatever size the archive states, or cannot be decompressed."""
    try:
        with archive.open(name) as file:
            content = file.read(_MAX_BLOB_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError):
        return None
    return content if len(content) <= _MAX_BLOB_BYTES else None
