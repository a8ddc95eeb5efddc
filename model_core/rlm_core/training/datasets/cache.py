"""The source cache: wheels and bare git repositories, in a folder outside the project.

Nothing is installed and nothing from the cache is run; files are read out of archives and object stores.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from platformdirs import user_cache_path

from rlm_core.errors import DataError

_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+\Z")


def default_cache() -> Path:
    """The user's cache folder for source text."""
    return user_cache_path("rlm-lsp") / "sources"


def find_wheel(cache: Path, package: str, version: str, *, download: bool) -> Path | None:
    """The wheel of a pinned package in the cache, downloaded with pip when it is absent and ``download`` is set."""
    wheel = _cached_wheel(cache, package, version)
    if wheel is not None or not download:
        return wheel
    folder = cache / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", "3.12", *(f"--platform={platform}" for platform in _PLATFORMS)]
    subprocess.run([*command, "--dest", str(folder), f"{package}=={version}"], check=False, capture_output=True)
    return _cached_wheel(cache, package, version)


def _cached_wheel(cache: Path, package: str, version: str) -> Path | None:
    wanted = _normal(package), version
    for folder in (cache, cache / "wheels"):
        for path in folder.glob("*.whl"):
            name, found, *_ = path.name.split("-")
            if (_normal(name), found) == wanted:
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
    partial = target.with_suffix(".partial")
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["git", "clone", "--quiet", "--bare", f"https://github.com/{repository}", str(partial)]
    done = subprocess.run(command, check=False, capture_output=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
    if done.returncode:
        return None
    partial.rename(target)
    return target


def read_blobs(repository: Path, blobs: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
    """The contents of blobs by id, None for those that the repository lacks; one ``git cat-file`` for all."""
    command = ["git", "-c", "safe.directory=*", f"--git-dir={repository}", "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for blob in blobs:
            process.stdin.write(blob.encode() + b"\n")
            process.stdin.flush()
            header = process.stdout.readline().split()
            if len(header) != 3:
                yield blob, None
                continue
            content = process.stdout.read(int(header[2]))
            process.stdout.read(1)
            yield blob, content if header[1] == b"blob" else None
        process.stdin.close()
