"""Compares what the cost analysis says at two commits, and prints the differences by kind.

    python -m tools.experiments.facts_snapshot BEFORE [AFTER] [--functions 30000] [--examples 3] [--jsonl OUT]

``AFTER`` is the working tree unless it is named. Both analyse the same texts: functions of the standard library and of
the packages installed here, which ``constraints.txt`` pins, chosen by a hash of their place, and every unit of the
suites in ``tests/bench``. What changes in the way that facts are made, and should not change the facts, is proved by a
comparison without differences. Each commit is checked out into a temporary folder and runs in separate processes;
what a commit finds is kept in the user's cache folder. All functions take about ten minutes a commit on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import math
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rlm_core.files import atomic_write

REPOSITORY = Path(__file__).parents[2]
_SUITES = REPOSITORY / "tests" / "bench"
_LEFT_OUT = frozenset({"test", "tests", "idlelib", "lib2to3", "site-packages", "__pycache__", "_vendor"})
_PACKAGES = (
    "click", "cachetools", "pygls", "lsprotocol", "attr", "numpy", "onnx", "hypothesis", "networkx", "sympy", "sklearn",
    "scipy", "joblib", "dask", "ray", "fsspec", "yaml", "jinja2", "huggingface_hub", "torch", "pyarrow", "pip",
    "setuptools", "_pytest", "mcp", "pydantic", "anyio", "httpx",
)  # fmt: skip
_EQUAL = 1e-9  # of numbers that are summed in another order

Facts = dict[str, Any]
Snapshot = dict[str, Facts | None]


def places(limit: int) -> list[Path]:
    """The files whose units are compared: those of the suites, and a fixed choice with about so many functions."""
    library = Path(sysconfig.get_path("stdlib"))
    packages = Path(sysconfig.get_path("purelib"))
    folders = [library, *(packages / name for name in _PACKAGES if (packages / name).is_dir())]
    found = [path for folder in folders for path in folder.rglob("*.py") if not _is_left_out(path, folder)]
    chosen = sorted(found, key=lambda path: hashlib.sha256(path.name.encode() + path.parent.name.encode()).digest())
    functions, listed = 0, sorted(_SUITES.rglob("*.py"))
    for path in chosen:
        if functions >= limit:
            break
        functions += path.read_bytes().count(b"def ")
        listed.append(path)
    return listed


def _is_left_out(path: Path, folder: Path) -> bool:
    return not _LEFT_OUT.isdisjoint(path.relative_to(folder).parts)


def facts_of(path: Path) -> Snapshot:
    """The facts of the units of a file, by place and name; of a unit that could not be analysed, None."""
    # Only what has kept its name and place for long: a worker may be of any commit.
    from rlm_core.errors import RlmError
    from rlm_core.source.parsed import ParsedSource

    try:
        units = _analyser().analyse(ParsedSource(path.read_bytes(), "python"), path)
    except (OSError, RlmError):
        return {}
    return {
        f"{path}:{unit.unit.span.start_line + 1} {unit.unit.qualname}": asdict(unit.code.work)
        if unit.code.work is not None
        else None
        for unit in units
    }


@cache
def _analyser() -> Any:
    """The analyser of this process, which remembers the files of packages."""
    from rlm_core.queries.analysis import Analyser

    return Analyser()


def work(listing: Path) -> None:
    """In a process of a commit: print the facts of the listed files, a line each."""
    paths = [Path(line) for line in listing.read_text(encoding="utf-8").splitlines()]
    with ProcessPoolExecutor(max(os.cpu_count() or 1, 1)) as pool:
        for snapshot in pool.map(facts_of, paths, chunksize=4):
            print(json.dumps(snapshot), flush=True)


@contextlib.contextmanager
def checkout(commit: str | None) -> Iterator[Path]:
    """The folder of a commit's files; without a commit, the working tree."""
    if commit is None:
        yield REPOSITORY
        return
    git = ["git", "-C", str(REPOSITORY), "worktree"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "checkout"
        subprocess.run([*git, "add", "--quiet", "--detach", str(folder), commit], check=True)
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def snapshot(commit: str | None, paths: Sequence[Path]) -> Snapshot:
    """The facts that a commit finds.

    Raises:
        CalledProcessError: its process failed.
    """
    listed = "\n".join(map(str, paths))
    kept = _kept(commit, listed) if commit is not None else None
    if kept is not None and kept.exists():
        return _read(gzip.decompress(kept.read_bytes()))
    with checkout(commit) as folder, tempfile.TemporaryDirectory() as scratch:
        listing = Path(scratch) / "files"
        listing.write_text(listed, encoding="utf-8")
        search = os.pathsep.join(str(folder / name) for name in ("server", "model_core"))
        off = {"PYTHONHASHSEED": "0", "RLM_LSP_FACTS_CACHE": "off"}
        environment = {**os.environ, "PYTHONPATH": search, **off}
        command = [sys.executable, "-P", __file__, "--work", str(listing)]
        printed = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True).stdout
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(kept) as path:
            path.write_bytes(gzip.compress(printed, 1))
    return _read(printed)


def _kept(commit: str, listed: str) -> Path:
    """Where the facts of a commit are kept, for these files as they are now."""
    git = ["git", "-C", str(REPOSITORY), "rev-parse", "--verify", f"{commit}^{{commit}}"]
    name = subprocess.run(git, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    digest = hashlib.sha256(listed.encode())
    for path in listed.splitlines():
        digest.update(Path(path).read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "rlm-lsp-tools" / f"facts-{name}-{digest.hexdigest()[:16]}.jsonl.gz"


def _read(printed: bytes) -> Snapshot:
    units: Snapshot = {}
    for line in printed.splitlines():
        units |= json.loads(line)
    return units


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the facts of a unit: its kind, and both sides."""

    kind: str
    place: str
    before: Any
    after: Any


def differences(place: str, before: Facts | None, after: Facts | None) -> Iterator[Difference]:
    """Return the differences between the facts of a unit."""
    if before is None or after is None:
        if before is not after:
            kind = "facts that were not there" if before is None else "no facts any more"
            yield Difference(kind, place, before, after)
        return
    for name in sorted(before.keys() | after.keys()):
        yield from _compared(name, place, before.get(name), after.get(name))


def _compared(name: str, place: str, before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            yield from _compared(f"{name}.{key}", place, before.get(key), after.get(key))
    elif not _is_equal(before, after):
        yield Difference(f"{name}: {_how(before, after)}", place, before, after)


def _is_equal(before: Any, after: Any) -> bool:
    if isinstance(before, float | int) and isinstance(after, float | int):
        return math.isclose(before, after, rel_tol=_EQUAL, abs_tol=0.0)
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return len(before) == len(after) and all(map(_is_equal, before, after))
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return before.keys() == after.keys() and all(_is_equal(before[key], after[key]) for key in before)
    return bool(before == after)


def _how(before: Any, after: Any) -> str:
    if not isinstance(before, float | int) or not isinstance(after, float | int):
        return "another"
    if not before or not after:
        return "from nothing" if not before else "to nothing"
    ratio = after / before
    size = max(ratio, 1 / ratio)
    by = "by under 1 %" if size < 1.01 else "up to 2 times" if size <= 2 else "over 2 times"
    return f"{'larger' if ratio > 1 else 'smaller'} {by}"


def compare(before: Snapshot, after: Snapshot) -> list[Difference]:
    """All differences, those of a kind together."""
    found = [
        Difference("a unit that was not there" if place in after else "no unit any more", place, None, None)
        for place in before.keys() ^ after.keys()
    ]
    for place in before.keys() & after.keys():
        found += differences(place, before[place], after[place])
    return sorted(found, key=lambda difference: (difference.kind, difference.place))


def report(before: Snapshot, after: Snapshot, found: Sequence[Difference], examples: int) -> Iterator[str]:
    """The lines that say what differs: the kinds with their numbers and first examples, then a summary."""
    kinds: dict[str, list[Difference]] = defaultdict(list)
    for difference in found:
        kinds[difference.kind].append(difference)
    for kind, listed in sorted(kinds.items(), key=lambda entry: -len(entry[1])):
        yield f"{len(listed):6} {kind}"
        for difference in listed[:examples]:
            yield f"         {difference.place}"
            yield f"           {difference.before} -> {difference.after}"[:240]
    units = len({difference.place for difference in found})
    yield f"{len(before.keys() & after.keys())} units, {units} with differences, {len(found)} differences"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison; exits with 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", nargs="?", help="a commit")
    parser.add_argument("after", nargs="?", help="a commit; the working tree if it is left out")
    parser.add_argument("--functions", type=int, default=30_000, help="about how many units")
    parser.add_argument("--examples", type=int, default=3, help="how many of each kind are printed")
    parser.add_argument("--jsonl", type=Path, help="also write all differences to this file")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work is not None:
        work(options.work)
        return
    if options.before is None:
        parser.error("name the commit to compare with")
    paths = places(options.functions)
    before, after = (snapshot(commit, paths) for commit in (options.before, options.after))
    found = compare(before, after)
    if options.jsonl is not None:
        options.jsonl.write_text("".join(json.dumps(asdict(difference)) + "\n" for difference in found), "utf-8")
    print("\n".join(report(before, after, found, options.examples)))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
