"""``python -m tools.label_run``: measures functions of PyPI packages at several sizes, one package at a time.

    python -m tools.label_run --work DIR --results DIR --unopened DIR [--only NAME...] [--python PATH]

``packages.toml`` next to this file, or ``--list``, names packages and versions. Each is installed into a separate
environment, part of its test suite runs under ``measure tests --scale``, and its functions are called again with larger
inputs. Each package gets one file, a failed one too, and is not measured again unless the format has changed or
``--redo`` is given. A fixed fifth of the packages, by a hash of their names, is for examination: its results go to
``--unopened``, and nothing but the count of its files is printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import sys
import time
import tomllib
from pathlib import Path

from .environment import Package, make_base
from .measuring import FORMAT, Budget, measure

LIST = Path(__file__).with_name("packages.toml")


def main() -> None:
    """Measure the packages without a result, in the order of the list."""
    parser = argparse.ArgumentParser(prog="python -m tools.label_run", description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for environments; emptied after each package")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--unopened", type=Path, required=True, help="folder for the results of the unopened packages")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--redo", action="store_true", help="measure again what has a result")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--suite", type=float, default=30, help="processor seconds of a package's tests")
    parser.add_argument("--scale", type=float, default=75, help="processor seconds of calls with larger inputs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is begun in the background else ignores it
    for folder in (arguments.work, arguments.results, arguments.unopened):
        folder.mkdir(parents=True, exist_ok=True)
    packages = [Package.read(name, entry) for name, entry in tomllib.loads(arguments.list.read_text()).items()]
    if unknown := set(arguments.only) - {package.name for package in packages}:
        parser.error(f"not in {arguments.list}: {', '.join(sorted(unknown))}")
    base = make_base(arguments.work, arguments.python)
    budget = Budget(arguments.suite, arguments.scale)
    for package in packages:
        if arguments.only and package.name not in arguments.only:
            continue
        unopened = package.is_unopened
        path = (arguments.unopened if unopened else arguments.results) / f"{package.name}.jsonl.gz"
        if not arguments.redo and is_done(path):
            continue
        began = time.monotonic()
        rows = measure(package, arguments.work / package.name, base, budget)
        partial = path.with_suffix(".partial")
        with gzip.open(partial, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        partial.replace(path)
        shown = "unopened" if unopened else _summary(rows)
        print(f"{time.strftime('%H:%M')} {package.name}: {shown}, {time.monotonic() - began:.0f} s", flush=True)


def is_done(path: Path) -> bool:
    """Return whether there is a result of this format."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return bool(json.loads(file.readline())["format"] == FORMAT)
    except (OSError, ValueError, KeyError, EOFError):
        return False


def _summary(rows: list[dict[str, object]]) -> str:
    head, *functions = rows
    if why := head.get("failed"):
        return f"failed: {why}"
    return f"{sum(bool(row['points']) for row in functions)} curves of {len(functions)} functions"


if __name__ == "__main__":
    main()
