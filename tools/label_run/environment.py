"""The environment of a package: its installation, what tests need, and the unpacked source distribution."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rlm_core.training.datasets.cache import find_archive

from .split import is_unopened

# What the tests of many packages import; a package's own environment comes first.
HELPERS = (
    "pytest", "hypothesis", "pytest-mock", "pytest-asyncio", "pytest-subtests", "parameterized", "six", "freezegun",
    "pytz", "python-dateutil", "PyYAML", "attrs", "numpy", "testfixtures", "ddt", "responses", "setuptools<81",
)  # fmt: skip
# What most packages are built with: pip asks it for the name in a source distribution.
_BUILDERS = ("wheel", "setuptools-scm", "hatchling", "hatch-vcs", "flit-core", "poetry-core", "pdm-backend")
_SECONDS = 600
_TEST_FOLDERS = ("tests", "test", "testing", "t")
_NOT_OURS = frozenset({"build", "dist", "docs", "doc", "examples", "benchmarks"})


class PackageError(Exception):
    """The package cannot be measured, for the reason given."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package: ``modules`` are import names, ``select`` arguments of pytest, ``needs`` requirements of its tests.

    Without ``modules`` they are read from the installation, without ``select`` tests are looked for. With a
    ``repository``, of which ``version`` is a commit, nothing is installed but the requirements. ``times`` multiplies
    the budget, and ``unopened`` replaces the hash of the name that decides whether results are for examination.
    """

    name: str
    version: str
    repository: str = ""
    times: float = 1.0
    unopened: bool | None = None
    modules: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @classmethod
    def read(cls, name: str, entry: str | dict[str, Any]) -> Package:
        """A package from its entry in the list: a version, or a table."""
        if isinstance(entry, str):
            return cls(name, entry)
        modules, select, needs = (tuple(entry.get(key, ())) for key in ("modules", "select", "needs"))
        others = {key: entry[key] for key in ("repository", "times", "unopened") if key in entry}
        return cls(name, entry["version"], modules=modules, select=select, needs=needs, **others)

    @property
    def is_unopened(self) -> bool:
        """True if the results are for examination."""
        return is_unopened(self.name) if self.unopened is None else self.unopened


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a package is installed, and where its tests are run."""

    python: Path
    modules: tuple[str, ...]
    folder: Path
    select: tuple[str, ...]


def make_base(work: Path, python: str) -> Path:
    """An environment with pip and what many tests import; made once."""
    base = work / "base"
    own = base / "bin" / "python"
    wanted = "\n".join((*HELPERS, *_BUILDERS))
    if not (base / "done").exists() or (base / "done").read_text() != wanted:
        shutil.rmtree(base, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(base)], check=True)
        subprocess.run([str(own), "-m", "pip", "install", "-q", *HELPERS, *_BUILDERS], check=True)
        (base / "done").write_text(wanted)
    return base.absolute()


def prepare(package: Package, folder: Path, base: Path, log: IO[str]) -> Environment:
    """Install a package and unpack its tests below ``folder``.

    Raises:
        PackageError: that failed.
    """
    own = (folder / "environment").absolute()
    _do([str(base / "bin" / "python"), "-m", "venv", "--without-pip", str(own)], "no environment", log)
    [site] = (own / "lib").glob("python3.*/site-packages")
    [shared] = (base / "lib").glob("python3.*/site-packages")
    pinned = f"{package.name}=={package.version}"
    pip = [str(base / "bin" / "python"), "-m", "pip", "--python", str(own / "bin" / "python"), "install", "-q"]
    if wanted := [*([] if package.repository else [pinned]), *package.needs]:
        _do([*pip, "--prefer-binary", *wanted], "cannot be installed", log)
    (site / "zz_helpers.pth").write_text(f"{shared}\n")
    if package.repository:
        root = _checked_out(package, folder / "source", folder.parent / "sources")
        return Environment(own / "bin" / "python", package.modules, root, package.select)
    modules = package.modules or installed_modules(site, package.name)
    root = _unpacked(pinned, package.name, folder / "source", base, log)
    select = package.select or find_tests(root, site, modules)
    for module in modules:
        for path in (root / module / "__init__.py", root / f"{module}.py"):
            path.unlink(missing_ok=True)
    return Environment(own / "bin" / "python", modules, root, select)


def _checked_out(package: Package, place: Path, cache: Path) -> Path:
    """The folder of a repository's files."""
    archive = find_archive(cache, package.repository, package.version, download=True)
    if archive is None:
        raise PackageError("repository not found")
    shutil.unpack_archive(archive, place)
    return place.absolute()


def _do(command: Sequence[str], failure: str, log: IO[str]) -> None:
    log.write(f"$ {' '.join(command)}\n")
    log.flush()
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    try:
        subprocess.run(command, check=True, stdout=log, stderr=log, timeout=_SECONDS, env=environment)
    except (subprocess.SubprocessError, OSError) as error:
        raise PackageError(f"{failure} ({type(error).__name__})") from None


def installed_modules(site: Path, name: str) -> tuple[str, ...]:
    """The import names that the record of the installed distribution shows."""
    wanted = name.lower().replace("-", "_").replace(".", "_")
    for info in site.glob("*.dist-info"):
        if info.name.partition("-")[0].lower().replace(".", "_") != wanted:
            continue
        found: dict[str, None] = {}
        for line in (info / "RECORD").read_text(encoding="utf-8").splitlines():
            parts = line.split(",")[0].split("/")
            if not parts[-1].endswith(".py") or parts[0] == "..":
                continue
            first = parts[0] if len(parts) > 1 else parts[0].removesuffix(".py")
            if first.isidentifier() and first not in (*_TEST_FOLDERS, "setup", "conftest"):
                found[first] = None
        return tuple(found)
    raise PackageError("no record of what is installed")


def _unpacked(pinned: str, name: str, place: Path, base: Path, log: IO[str]) -> Path:
    """The folder of the unpacked source distribution."""
    pip = [str(base / "bin" / "python"), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name]
    try:
        # Without a separate environment to build in, which takes longer than all else.
        _do([*pip, "--no-build-isolation", "-d", str(place), pinned], "", log)
    except PackageError:
        _do([*pip, "-d", str(place), pinned], "no source distribution", log)
    archives = [path for path in place.iterdir() if path.name.endswith((".tar.gz", ".tgz", ".tar.bz2", ".zip"))]
    if not archives:
        raise PackageError("no source distribution")
    if archives[0].suffix == ".zip":
        shutil.unpack_archive(archives[0], place)
    else:
        with tarfile.open(archives[0]) as file:
            file.extractall(place, filter="data")
    roots = [path for path in place.iterdir() if path.is_dir()]
    if len(roots) != 1:
        raise PackageError("a source distribution of another form")
    return roots[0].absolute()


def find_tests(root: Path, site: Path, modules: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of pytest: folders or files of tests in the source distribution, or the packages."""
    folders = [name for name in _TEST_FOLDERS if _has_tests(root / name)]
    if folders:
        return tuple(folders)
    files = [path.name for path in root.glob("*.py") if path.stem.startswith("test") or path.stem.endswith("_test")]
    if files:
        return tuple(sorted(files))
    others = [
        path.name for path in sorted(root.iterdir()) if path.name not in (*modules, *_NOT_OURS) and _has_tests(path)
    ]
    inside = [module for module in modules if _has_tests(site / module)]
    if inside:
        return ("--pyargs", *inside)
    if others:
        return tuple(others)
    raise PackageError("no tests in the source distribution")


def _has_tests(folder: Path) -> bool:
    return folder.is_dir() and any(True for pattern in ("test*.py", "*_test.py") for _ in folder.rglob(pattern))
