"""Entries -> unit costs: measures each at its sizes in a child process and fits the law."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rlm_core.cost.domain.quantities import constant
from rlm_core.cost.library.unit_costs import growth, law
from rlm_core.errors import DataError

from .entries import Entry

Cost = dict[str, float | str]
PYTHON = "3.12"
MACHINE = "two-core x86-64"
_DIGITS = 4
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}


def interpreter() -> str:
    """The interpreter that is measured: ``python3.12`` on the path or from pyenv.

    Raises:
        DataError: there is none.
    """
    found = shutil.which(f"python{PYTHON}")
    if found is not None and version_of(found).startswith(PYTHON + "."):
        return found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in sorted(versions.glob(f"{PYTHON}.*/bin/python")):
        return str(path)
    raise DataError(f"python{PYTHON}: not found on PATH or in pyenv; install it, the costs are of that runtime")


def version_of(python: str) -> str:
    """The version of an interpreter, empty if it does not run."""
    command = [python, "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def fit(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """``(fixed, each)``, both at least 0, with the least squared relative error over (law value, seconds) points."""
    clean = [(x, max(y, 1e-10)) for x, y in points]
    if len(clean) == 1:
        return clean[0][1], 0.0
    # Minimise the sum of ((fixed + each * x) / y - 1)^2: two normal equations.
    a = sum(1 / y**2 for _, y in clean)
    b = sum(x / y**2 for x, y in clean)
    c = sum((x / y) ** 2 for x, y in clean)
    p = sum(1 / y for _, y in clean)
    q = sum(x / y for x, y in clean)
    determinant = a * c - b * b
    if determinant <= 1e-12 * a * c:
        return 0.0, q / c
    fixed, each = (p * c - q * b) / determinant, (a * q - b * p) / determinant
    if fixed < 0:
        return 0.0, q / c
    if each < 0:
        return p / a, 0.0
    return fixed, each


def measure(entries: Iterable[Entry], python: str) -> Iterator[tuple[Entry, Cost]]:
    """The cost of each entry.

    Raises:
        DataError: a snippet failed, or the child process ended.
    """
    process = subprocess.Popen(
        [python, "-s", str(Path(__file__).with_name("worker.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**_ONE_THREAD, "PATH": os.environ.get("PATH", ""), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
    )
    try:
        for entry in entries:
            points = [(_law(entry.law, n), _seconds(process, entry, n)) for n in entry.sizes]
            fixed, each = fit(points)
            cost: Cost = {
                "fixed": rounded(fixed),
                "each": rounded(each),
                "law": "n" if entry.law == "1" else entry.law,
            }
            yield entry, cost
    finally:
        process.kill()
        process.communicate()


def _law(name: str, n: int) -> float:
    return 0.0 if name == "1" else law(constant(n), *growth(name)).exact or 0.0


def rounded(value: float) -> float:
    """A figure with as many digits as the table has."""
    return float(f"{value:.{_DIGITS}g}")


def _seconds(process: subprocess.Popen[str], entry: Entry, n: int) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    snippet, baseline = entry.texts(n)
    request = {"setup": entry.setup, "snippet": snippet, "baseline": baseline, "n": n}
    process.stdin.write(json.dumps({**request, "unroll": entry.unroll, "per": entry.per}) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    answer = json.loads(line) if line else {"error": "the measuring process ended"}
    if "error" in answer:
        raise DataError(f"{entry.name} at {n}: {answer['error']}")
    return float(answer["seconds"])
