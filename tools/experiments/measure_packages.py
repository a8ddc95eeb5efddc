"""Measures functions of PyPI packages under their own tests, one package at a time, for labels to train on.

    python -m tools.experiments.measure_packages --work DIR [--list FILE] [--only NAME...] [--python PATH]
        [--minutes 30] [--jobs N] [--out LABELS]

``packages.toml`` next to this file, or ``--list``, names the packages, their versions, and where their tests are: in
the installed package or in its source distribution. pip installs each package into a separate environment; then
``rlm-lsp measure tests`` runs its tests twice. A package that is done is not measured again; one that exceeds its
time limit keeps the measurements so far. Nothing else should run on the machine meanwhile; ``--jobs`` packages at a
time have a core each. ``--out`` gathers the labels of all packages that are done as gzipped JSON lines; they contain
no source text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("packages.toml")
_MEASURE = [sys.executable, "-m", "rlm_lsp", "measure"]
_STOP_SECONDS = 120
_TEST_SECONDS = "30"  # a test may take, and four times as long for memory
_PYTEST = ["-q", "--tb=line", "-W", "ignore", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
_PYTEST += ["-o", "addopts=", "-o", "required_plugins="]


@dataclass(frozen=True, slots=True)
class Package:
    """A package to measure.

    ``modules`` are its import names. ``select`` are arguments of pytest: with ``source`` paths in the source
    distribution, else names of installed packages. ``needs`` are requirements of the tests, ``env`` is what they
    need in the process's environment. With ``redo`` latency alone is measured, and gathered with "peak_bytes" null and
    "mem_calls" 0: the memory of these packages is known.
    """

    name: str
    version: str
    modules: tuple[str, ...]
    select: tuple[str, ...]
    source: bool = False
    needs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    redo: bool = False

    @classmethod
    def read(cls, name: str, entry: dict[str, Any]) -> Package:
        """A package from its table in the list."""
        modules = tuple(entry.get("modules", [name.replace("-", "_")]))
        select = tuple(entry.get("select", ["tests"] if entry.get("source") else modules))
        given = {key: entry[key] for key in ("source", "env", "redo") if key in entry}
        return cls(name, entry["version"], modules, select, needs=tuple(entry.get("needs", ())), **given)


def main() -> None:
    """Measure what is not measured yet, then gather."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--list", type=Path, default=LIST, help="the packages (.toml)")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--python", default="python3.12")
    parser.add_argument("--minutes", type=float, default=30, help="that a package may take, both passes together")
    parser.add_argument("--jobs", type=int, default=1, help="packages at a time, each on a separate core")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is begun in the background else ignores it
    packages = [Package.read(name, entry) for name, entry in tomllib.loads(arguments.list.read_text()).items()]
    cores: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in sorted(os.sched_getaffinity(0))[-arguments.jobs :]:
        cores.put(core)
    with ThreadPoolExecutor(arguments.jobs, initializer=lambda: os.sched_setaffinity(0, {cores.get()})) as pool:
        wanted = [package for package in packages if not arguments.only or package.name in arguments.only]
        list(pool.map(lambda one: measure(one, arguments.work / one.name, arguments.python, arguments.minutes), wanted))
    if arguments.out:
        gather([arguments.work / package.name / "labels.jsonl" for package in packages], arguments.out)


def measure(package: Package, folder: Path, python: str, minutes: float) -> None:
    """Measure one package; what it says goes to ``log.txt`` of its folder."""
    if (folder / "labels.jsonl").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.monotonic()
    with (folder / "log.txt").open("w", encoding="utf-8") as log:
        try:
            own = _install(package, folder, python, log)
            run = _unpacked(package, folder, own, log) if package.source else folder
            store = str(folder / "store.sqlite3")
            names = [part for module in package.modules for part in ("--package", module)]
            chosen = package.select if package.source else ["--pyargs", *package.select]
            command = [*_MEASURE, "tests", "--python", str(own), *names, "--store", store, "--timeout", _TEST_SECONDS]
            command += ["--no-memory"] if package.redo else []
            command += ["--", *_PYTEST, *chosen]
            _limited(command, run, package.env, log, minutes * 60)
            labels = [*_MEASURE, "export", "--store", store, "--out", str(folder / "labels.jsonl")]
            subprocess.run(labels, check=True, stdout=log, stderr=log)
        except (subprocess.CalledProcessError, OSError, tarfile.TarError) as error:
            log.write(f"{error}\n")
            print(f"{package.name}: failed, see {log.name}", flush=True)
            return
    count, functions = _counted(folder / "labels.jsonl")
    print(f"{package.name} {package.version}: {count} labels of {functions} functions, ", end="")
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    shutil.rmtree(folder / "environment", ignore_errors=True)


def _install(package: Package, folder: Path, python: str, log: Any) -> Path:
    """An environment with the package; the path of its interpreter."""
    subprocess.run([python, "-m", "venv", str(folder / "environment")], check=True, stdout=log, stderr=log)
    own = (folder / "environment" / "bin" / "python").absolute()
    wanted = ["pytest", f"{package.name}=={package.version}", *package.needs]
    subprocess.run([str(own), "-m", "pip", "install", "-q", *wanted], check=True, stdout=log, stderr=log)
    return own


def _unpacked(package: Package, folder: Path, own: Path, log: Any) -> Path:
    """The source distribution without its package files, so that the installed packages are imported."""
    place = folder / "source"
    command = [str(own), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package.name, "-d", str(place)]
    subprocess.run([*command, f"{package.name}=={package.version}"], check=True, stdout=log, stderr=log)
    [archive] = place.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(place, filter="data")
    [root] = (path for path in place.iterdir() if path.is_dir())
    for module in package.modules:
        for path in (root / module / "__init__.py", root / f"{module}.py"):
            path.unlink(missing_ok=True)
    return root


def _limited(command: list[str], folder: Path, env: Mapping[str, str], log: Any, seconds: float) -> None:
    """Run a command that is asked to stop when its time is over, and then keeps what it has."""
    environment = {**os.environ, **env}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    finally:
        process.kill()
        process.wait()


def _counted(path: Path) -> tuple[int, int]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return len(rows), len({(row["module"], row["qualname"]) for row in rows})


def gather(paths: list[Path], out: Path) -> None:
    """The labels of all packages in one file."""
    with gzip.open(out, "wt", encoding="utf-8") as file:
        for path in filter(Path.exists, paths):
            file.write(path.read_text(encoding="utf-8"))
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
