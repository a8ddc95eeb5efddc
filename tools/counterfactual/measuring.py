"""Generated groups -> measured labels: latency and peak memory of every function, one JSON object per group.

Latency is the least of four medians over repeated calls (seconds, an empty call subtracted; the rounds of a function
and its edits take turns), memory the peak of tracemalloc above the level at entry (bytes). The functions run in a child
process under the interpreter that the labels refer to, at lower priority and with limits; one that hangs or dies is
replaced and its group left out.
"""

from __future__ import annotations

import gzip
import json
import os
import select
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError

from .edits import CALLEE, EDITS
from .generator import Group
from .programs import Program
from .values import make

Progress = Callable[[int], None]
PYTHON = "3.12"
MACHINE = "two-core x86-64"
_GROUP_LIMIT = 90.0  # seconds; the calls' own limits end far sooner
_WORKER = Path(__file__).with_name("worker.py")
_NICE = 5
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Summary:
    """The rows that a measurement kept: groups, functions (bases and edits), and what was left out by reason."""

    groups: int
    functions: int
    left_out: dict[str, int]


def interpreter() -> str:
    """The interpreter that is measured: ``python3.12`` on the path or from pyenv.

    Raises:
        DataError: there is none.
    """
    found = shutil.which(f"python{PYTHON}")
    if found is not None and version(found).startswith(PYTHON + "."):
        return found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in sorted(versions.glob(f"{PYTHON}.*/bin/python")):
        return str(path)
    raise DataError(f"python{PYTHON}: not found on PATH or in pyenv; install it, the labels are of that runtime")


def version(python: str) -> str:
    """The version of an interpreter, empty if it does not run."""
    command = [python, "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


class Child:
    """The measuring process; started when first needed and again after it had to be stopped.

    ``worker`` is the script that it runs, ``environment`` what its environment holds besides the search path.
    """

    def __init__(self, python: str, worker: Path = _WORKER, environment: Mapping[str, str] | None = None) -> None:
        self._python, self._worker, self._environment = python, worker, environment or {}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: dict[str, Any]) -> list[dict[str, Any]] | None:
        """The results of one group, None if the child hung or died."""
        if self._process is None:
            self._process = subprocess.Popen(
                [self._python, "-s", str(self._worker)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={"PATH": os.environ.get("PATH", ""), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
                | dict(self._environment),
                process_group=0,
            )
            if os.name == "posix":
                os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICE)
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            ready = select.select([stdout], [], [], _GROUP_LIMIT)[0]
            line = stdout.readline() if ready else ""
        except OSError:
            line = ""
        if line:
            results: list[dict[str, Any]] = json.loads(line)
            return results
        self.close()
        return None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def measure_groups(groups: Iterable[Group], python: str | None = None) -> Iterator[tuple[Group, list[dict[str, Any]]]]:
    """The results of each group, the base first; a failure is a result with ``error``.

    Raises:
        DataError: the interpreter was not found.
    """
    child = Child(python or interpreter())
    try:
        for group in groups:
            programs = [group.base, *(program for _, program in group.edits)]
            results = child.ask(
                {
                    "variants": [
                        {"module": program.module, "owner": program.owner, "name": program.name} for program in programs
                    ],
                    "fields": len(group.base.fields) if group.base.owner else 0,
                    "arguments": repr([make(argument) for argument in group.base.arguments]),
                }
            )
            yield group, results or [{"error": "the measuring process ended"}] * len(programs)
    finally:
        child.close()


def measure(
    groups: Iterable[Group], out: Path, progress: Progress = lambda done: None, *, date: str, python: str | None = None
) -> Summary:
    """Measure ``groups`` and write the label file ``out`` (gzipped JSON lines); ``progress`` hears groups done.

    Edits that fail, or that return something else where their kind promises the same, are left out.

    Raises:
        DataError: the interpreter was not found.
    """
    python = python or interpreter()
    facts = {"python": version(python), "date": date, "machine": MACHINE}
    left_out: Counter[str] = Counter()
    kept = functions = 0
    partial = out.with_name(out.name + ".partial")
    with gzip.GzipFile(partial, "wb", compresslevel=9, mtime=0) as file:
        for done, (group, results) in enumerate(measure_groups(groups, python), 1):
            line = _label(group, results, left_out)
            if line is not None:
                file.write((json.dumps(line | facts, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
                kept += 1
                functions += len(line["functions"])
            progress(done)
    partial.replace(out)
    return Summary(kept, functions, dict(left_out))


def _label(group: Group, results: list[dict[str, Any]], left_out: Counter[str]) -> dict[str, Any] | None:
    base = results[0]
    if "error" in base:
        left_out[f"base: {base['error']}"] += 1
        return None
    functions = [_function("base", group.base, base)]
    for (kind, program), result in zip(group.edits, results[1:], strict=True):
        if "error" in result:
            left_out[f"edit: {result['error']}"] += 1
        elif EDITS[kind.removeprefix(CALLEE)].same_result and result["result"] != base["result"]:
            left_out["edit: returns something else"] += 1
        else:
            functions.append(_function(kind, program, result))
    return {
        "group": group.name,
        "family": group.family,
        "owner": group.base.owner,
        "fields": group.base.fields,
        "arguments": [asdict(argument) for argument in group.base.arguments],
        "functions": functions,
    }


def _function(kind: str, program: Program, result: dict[str, Any]) -> dict[str, Any]:
    spread = {name: float(f"{result[name]:.3g}") for name in ("p10", "p90")}
    return {
        "kind": kind,
        "name": program.name,
        "text": program.text,
        "helpers": program.helpers,
        "latency": float(f"{result['latency']:.{_DIGITS}g}"),
        "spread": spread,
        "memory": result["memory"],
    }
