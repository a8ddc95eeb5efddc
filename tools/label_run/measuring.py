"""One package -> rows: every measured function with its latency in the tests, and its cost curve or why it has none."""

from __future__ import annotations

import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import RlmError
from rlm_core.inference.adaptation.cpu_score import cpu_name
from rlm_core.measurement.functions.collect import RunLeader, collect
from rlm_core.measurement.functions.run import SuitePlan, run
from rlm_core.measurement.functions.scaling import ScaledFunction, ScaleLimits, scale, to_row
from rlm_core.measurement.types import Measurement

from .environment import Package, PackageError, prepare

FORMAT = 2
"""Raised when the results of an earlier version cannot be used next to those of this one."""

_TEST_SECONDS = 60.0
_PYTEST = (
    "-q", "--tb=line", "-W", "ignore", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "required_plugins=",
    "-o", "python_files=test*.py *_test.py tests.py", "-o", "asyncio_mode=auto", "-o", "filterwarnings=",
)  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds of the processor for a package: of its tests, and of calls with larger inputs."""

    suite: float
    scale: float


def measure(package: Package, folder: Path, base: Path, budget: Budget) -> list[Row]:
    """Measure one package in ``folder``, of which ``log.txt`` stays.

    The first row describes the run, and says why the package could not be measured if so.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    head: Row = {
        "format": FORMAT,
        "package": package.name,
        "version": package.version,
        "processor": cpu_name(),
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "budget": [budget.suite * package.times, budget.scale * package.times],
    } | ({"repository": package.repository} if package.repository else {})
    with (folder / "log.txt").open("w", encoding="utf-8") as log:
        try:
            return _measured(package, folder, base, budget, head, lambda text: print(text, file=log, flush=True))
        except (PackageError, RlmError, OSError) as error:
            return [{**head, "failed": str(error)[:300]}]
        finally:
            for name in ("environment", "source"):
                shutil.rmtree(folder / name, ignore_errors=True)


def _measured(
    package: Package, folder: Path, base: Path, budget: Budget, head: Row, note: Callable[[str], None]
) -> list[Row]:
    with (folder / "prepare.txt").open("w", encoding="utf-8") as log:
        made = prepare(package, folder, base, log)
    began = time.time()
    with tempfile.TemporaryDirectory(dir=folder) as place, (folder / "pytest.txt").open("wb") as output:
        recordings = Path(place)
        plan = SuitePlan(
            str(made.python),
            (*_PYTEST, *made.select),
            made.folder,
            made.modules,
            passes=("latency",),
            timeout=_TEST_SECONDS,
            examples=True,
            seconds=budget.suite * package.times,
        )
        run(plan, recordings, note, output)
        tested = time.time()
        RunLeader("label-run", 0, platform.node(), began, cpu_name()).write(recordings)
        found = collect(recordings, cpu_name())
        limits = ScaleLimits(total=budget.scale * package.times)
        scaled = scale(recordings, str(made.python), limits, note)
    head["seconds"] = {"tests": round(tested - began, 1), "scale": round(time.time() - tested, 1)}
    head["tests"], head["passed"] = sum(found.tests.values()), found.passed
    if not found.measurements:
        head["failed"] = "no function was measured"
    curves = {(str(Path(one.file).resolve()), one.line, one.qualname): one for one in scaled}
    return [head, *(_row(one, curves.get((one.path, one.line, one.qualname))) for one in found.measurements)]


def _row(measured: Measurement, curve: ScaledFunction | None) -> Row:
    """A function: where it is, what it costs in the tests, and its curve."""
    row: Row = {
        "module": measured.module,
        "qualname": measured.qualname,
        "file": measured.file,
        "firstlineno": measured.line,
        "lastlineno": measured.last_line,
        "source_sha1": measured.source_sha1,
        "kind": measured.kind,
        "recursive": measured.recursive,
        "calls": measured.calls,
        "tests": measured.tests,
        "latency_us": {
            name: round(value * 1e6, 4)
            for name, value in (("p10", measured.low), ("p50", measured.median), ("p90", measured.high))
        },
        "latency_ok": measured.ok,
        "python": measured.workload.get("runtime", ""),
    }
    if curve is None:
        return {**row, "points": [], "why": "not called again"}
    result = to_row(curve)
    return {**row, "points": result["points"], "why": curve.why, "ended": curve.ended, "cpu": curve.cpu}
