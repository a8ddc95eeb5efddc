"""Measures the truth of the suite and writes ``truth.json``.

    python -m tests.bench.common_sense.measure --python VENV/bin/python [--missing] [--only NAME ...]

The interpreter needs numpy, which uses one thread; the labels of functions were measured on CPython 3.12. Each call
runs in a process with a limit of 20 seconds; a case beyond it has a cheaper variant whose cost follows a known law, and
is marked. Waits and endless loops are not run: their truth is a statement of the suite.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from rlm_core.files import atomic_write

from .suite import FOLDER, NEUTRAL, Case, edits, functions

TRUTH = FOLDER / "truth.json"
_LIMIT = 60.0  # a call and its repeats; the call itself may take 20 s
_MOST_SECONDS = 20.0
# Threads of a linear algebra library wait for each other on a busy machine, which measures the load.
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
_VERSIONS = "import json, platform, numpy; print(json.dumps([platform.python_version(), numpy.__version__]))"


def main() -> None:
    """Measure all cases, or those whose names contain one of the given texts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="interpreter with numpy")
    parser.add_argument("--only", nargs="*", help="parts of names; the other values are kept")
    parser.add_argument("--missing", action="store_true", help="measure only cases without a value")
    arguments = parser.parse_args()
    known: dict[str, Any] = json.loads(TRUTH.read_text(encoding="utf-8")) if TRUTH.exists() else {}
    values: dict[str, dict[str, Any]] = {}
    failures: list[str] = []
    versions = json.loads(subprocess.check_output([arguments.python, "-c", _VERSIONS]))
    record = {
        "date": date.today().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": versions[0],
        "numpy": versions[1],
        "values": values,
    }
    for case, needs_memory in cases():
        kept = known.get("values", {}).get(case.name)
        skipped = arguments.missing or (arguments.only and not any(part in case.name for part in arguments.only))
        if kept is not None and skipped:
            values[case.name] = kept
            continue
        try:
            values[case.name] = smaller(truth_of(case, needs_memory, arguments.python), kept)
        except RuntimeError as error:
            failures.append(str(error))
        print(case.name, values.get(case.name), flush=True)
    write(record)
    if failures:
        raise SystemExit("\n".join(failures))


def write(record: Mapping[str, Any]) -> None:
    """Write ``truth.json``, one case a line."""
    head = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in record.items() if name != "values")
    values = ",\n".join(f"{json.dumps(name)}: {json.dumps(truth)}" for name, truth in record["values"].items())
    with atomic_write(TRUTH) as path:
        path.write_text(f'{{\n{head}"values": {{\n{values}\n}}\n}}\n', encoding="utf-8")


def smaller(truth: dict[str, Any], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """A new truth with the smaller latency of an earlier run of the same text: other processes only lengthen it."""
    if earlier is None or truth.get("stated") or earlier.get("text") != truth["text"] or "latency" not in earlier:
        return truth
    return truth | {"latency": min(truth["latency"], earlier["latency"])}


def digest(case: Case) -> str:
    """Identifies what is measured: a truth belongs to this text, call and setup."""
    parts = (case.source, case.setup, case.call, repr(case.scale))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def cases() -> list[tuple[Case, bool]]:
    """Every case and both sides of every edit that changes the cost, each with whether its memory is judged."""
    listed = [(case, "memory" in case.judged) for case in functions()]
    for edit in (edit for edit in edits() if edit.kind != NEUTRAL):
        listed += [(edit.before, edit.metric == "memory"), (edit.after, edit.metric == "memory")]
    return listed


def truth_of(case: Case, needs_memory: bool, python: Path) -> dict[str, Any]:
    """The values of a case in SI units; ``stated`` and ``scaled`` say where they do not come from running the text.

    Raises:
        RuntimeError: the case fails, or takes longer than the limit.
    """
    if case.by_statement:
        return {"stated": True} | ({"latency": case.seconds} if case.seconds is not None else {})
    source, factor = case.source, 1.0
    if case.scale is not None:
        if case.scale.old not in source:
            raise RuntimeError(f"{case.name}: its text does not contain {case.scale.old!r}")
        source, factor = source.replace(case.scale.old, case.scale.new), case.scale.factor
    request = {"source": source, "setup": case.setup, "call": case.call, "memory": needs_memory}
    worker = [str(python), "-I", str(FOLDER / "worker.py")]
    try:
        done = subprocess.run(
            worker,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=_LIMIT,
            env={**os.environ, **_ONE_THREAD},
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{case.name}: takes longer than {_LIMIT:g} s; give it a scale") from None
    if done.returncode:
        raise RuntimeError(f"{case.name}: {done.stderr.decode(errors='replace')[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if answer["latency"] > _MOST_SECONDS:
        raise RuntimeError(f"{case.name}: takes {answer['latency']:.0f} s; give it a scale")
    answer["latency"] *= factor
    answer["text"] = digest(case)
    return answer | ({"scaled": True} if case.scale is not None else {})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
