"""Measure what functions cost in two releases of their package, with the same inputs.

    python -m tools.experiments.paired_costs OLD NEW DRIVERS [--sizes 1 100] [--only NAME...] [--python PATH]

In: two folders that hold the releases, as `pip install --target` unpacks them, and a Python file of drivers. A driver
is a function whose name begins with ``drive_``: it takes a factor by which its inputs are larger than typical ones, and
returns a callable that makes fresh inputs and calls the function under test once: either a function without parameters,
or a pair of a function that makes inputs and one that takes them, whose second part alone is measured. Out: JSON lines,
one per driver and factor, with the seconds and peak bytes of both releases and their ratios.

Each release is measured in turn in new processes, and the least time of all runs counts, since other load only adds
time. A driver that raises is reported with its error in place of figures.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SIDES = ("old", "new")
ROUNDS = 3
# Calls are repeated until a sample is long enough for the clock, and samples until they have taken this long.
SAMPLE_SECONDS, SECONDS = 0.002, 0.3
_FEWEST_SAMPLES = 3
_RESULT = "costs: "
# Smaller costs count as equal: the clock's resolution, and the smallest allocations.
LEAST = {"seconds": 1e-7, "bytes": 512.0}


def make_inputs(driver: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """The parts of a driver's result: what makes inputs, and what is measured on them."""
    if isinstance(driver, tuple):
        make, call = driver
        return make, call
    return (lambda: None), (lambda _: driver())


def seconds_of(make: Callable[[], Any], call: Callable[[Any], Any]) -> float:
    """The least seconds of one call: inputs are made outside the measured time."""
    samples: list[float] = []
    started = time.perf_counter()
    count = 1
    while len(samples) < _FEWEST_SAMPLES or time.perf_counter() - started < SECONDS:
        inputs = [make() for _ in range(count)]
        begin = time.process_time_ns()
        clock = time.perf_counter_ns()
        for value in inputs:
            call(value)
        taken = min(time.perf_counter_ns() - clock, max(time.process_time_ns() - begin, 1)) / 1e9
        if taken < SAMPLE_SECONDS and count < 10_000:
            count *= 4
            continue
        samples.append(taken / count)
        if time.perf_counter() - started > 20 * SECONDS:
            break
    return min(samples)


def bytes_of(make: Callable[[], Any], call: Callable[[Any], Any]) -> int:
    """The peak bytes that one call allocates, after a first call that fills caches."""
    call(make())
    value = make()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = call(value)
        peak = tracemalloc.get_traced_memory()[1] - before
        del result
        return peak
    finally:
        tracemalloc.stop()


def measure_here(drivers: Path, name: str, factor: float) -> dict[str, float]:
    """Measure one driver in this process."""
    spec = importlib.util.spec_from_file_location("drivers", drivers)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    make, call = make_inputs(getattr(module, name)(factor))
    return {"seconds": seconds_of(make, call), "bytes": float(bytes_of(make, call))}


def measure(python: str, folder: Path, drivers: Path, name: str, factor: float, limit: float) -> dict[str, Any]:
    """Measure one driver on one release in a new process; a failure gives ``error``."""
    command = [python, str(Path(__file__).resolve()), "--measure", name, str(factor), str(drivers)]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {limit:g} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    # A package may print, also when its process ends.
    lines = [line for line in done.stdout.splitlines() if line.startswith(_RESULT)]
    return dict(json.loads(lines[-1].removeprefix(_RESULT)))


def compared(runs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """The least costs of each side over several runs, and their ratios."""
    errors = {run["error"] for pair in runs for run in pair if "error" in run}
    if errors:
        return {"error": "; ".join(sorted(errors))}
    row: dict[str, Any] = {}
    for cost, least in LEAST.items():
        old, new = (min(pair[side][cost] for pair in runs) for side in range(len(SIDES)))
        row[cost] = [old, new]
        row[f"{cost}_ratio"] = round(max(new, least) / max(old, least), 3)
    return row


def driver_names(drivers: Path) -> list[str]:
    """The names of a file's drivers in their order."""
    lines = drivers.read_text(encoding="utf-8").splitlines()
    return [line[4 : line.index("(")] for line in lines if line.startswith("def drive_")]


def main() -> None:
    """Measure all drivers, or one in this process with ``--measure``."""
    if sys.argv[1:2] == ["--measure"]:
        name, factor, drivers = sys.argv[2:5]
        print(f"\n{_RESULT}{json.dumps(measure_here(Path(drivers), name, float(factor)))}", flush=True)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("drivers", type=Path)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1.0, 100.0], help="factors of the inputs")
    parser.add_argument("--only", nargs="+", help="names of drivers")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with what the releases need")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one driver on one release")
    options = parser.parse_args()
    folders = options.old.resolve(), options.new.resolve()
    for name in driver_names(options.drivers):
        for factor in options.sizes if not options.only or name in options.only else ():
            runs = []
            for _ in range(ROUNDS):
                first, second = (
                    measure(options.python, folder, options.drivers.resolve(), name, factor, options.limit)
                    for folder in folders
                )
                runs.append((first, second))
                if "error" in first or "error" in second:
                    break
            print(json.dumps({"driver": name, "factor": factor} | compared(runs)), flush=True)


if __name__ == "__main__":
    main()
