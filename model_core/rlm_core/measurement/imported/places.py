"""Timings of other tools -> measurements: the functions are found in the project as they were when they were timed."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rlm_core.cost.domain.syntax import BlockSyntax, parsed_function
from rlm_core.errors import DataError
from rlm_core.files import read_regular
from rlm_core.inference.adaptation.cpu_score import cpu_name, stored
from rlm_core.measurement.functions.sources import FunctionFile
from rlm_core.measurement.types import RUNTIME, TOOL, Kind, Measurement
from rlm_core.queries.package_files import package_of

from .benchmarks import is_benchmark_file, read_benchmarks
from .profiles import is_profile, read_profile
from .timings import FunctionTiming, ToolResult

_LARGEST = 256 * 2**20
_CHANGED = "the file has changed since"
_NOT_FOUND = "no function of that name is at that place"


@dataclass(frozen=True, slots=True)
class ImportedResult:
    """The measurements of a file that another tool has written, and what was left out, counted by reason."""

    tool: str
    measurements: tuple[Measurement, ...]
    left_out: Counter[str]


def import_result(path: Path, root: Path) -> ImportedResult | None:
    """Read a profile or the results of benchmarks of the project in the folder ``root``; None for any other file.

    Raises:
        DataError: the file cannot be read, or has another form.
    """
    try:
        content = read_regular(path, _LARGEST)
        written = path.stat().st_mtime
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    root = root.resolve()
    if is_profile(content):
        result = read_profile(path, content, root, written)
    elif not is_benchmark_file(content):
        return None
    else:
        result = read_benchmarks(path, content, root, written)
    run = f"{result.tool}-{hashlib.blake2b(content, digest_size=8).hexdigest()}"
    maker = _MeasurementBuilder(result, run)
    left_out = Counter(result.left_out)
    measurements = []
    for timing in result.timings:
        made = maker.make(timing)
        if isinstance(made, Measurement):
            measurements.append(made)
        else:
            left_out[made] += 1
    return ImportedResult(result.tool, tuple(measurements), left_out)


class _MeasurementBuilder:
    """Makes the measurements of a result."""

    def __init__(self, result: ToolResult, run: str) -> None:
        self._result, self._run = result, run
        self._files: dict[Path, FunctionFile] = {}
        self._device = result.device or cpu_name()
        score = stored()
        self._score = score.overall if score is not None and score.cpu == self._device else 0.0
        self._measured_at = datetime.fromtimestamp(result.measured_at, UTC).isoformat(timespec="seconds")

    def make(self, timing: FunctionTiming) -> Measurement | str:
        """The measurement of a function, or why there is none."""
        path = timing.file
        try:
            if path.stat().st_mtime > self._result.measured_at:
                return _CHANGED
        except OSError:
            return _NOT_FOUND
        if path not in self._files:
            self._files[path] = FunctionFile(path)
        source = self._files[path].named(timing.name, timing.line)
        if source is None:
            return _NOT_FOUND
        folder, module = package_of(path)
        return Measurement(
            source_hash=source.hash,
            source_sha1=source.sha1,
            device=self._device,
            machine="",
            workload={RUNTIME: self._result.runtime, TOOL: self._result.tool},
            metric="latency",
            median=timing.median,
            low=timing.low,
            high=timing.high,
            calls=timing.calls,
            tests=timing.runs,
            exceptions=0,
            kind=kind_of(source.unit.text),
            recursive=timing.is_recursive,
            threads=False,
            ok=True,
            package=module.partition(".")[0],
            version="",
            module=module,
            qualname=source.unit.qualname,
            file=path.relative_to(folder).as_posix(),
            line=source.unit.span.start_line + 1,
            last_line=source.last_line,
            measured_at=self._measured_at,
            run=self._run,
            path=str(path),
            cpu_score=self._score,
            text=source.measured_text,
        )


def kind_of(text: str) -> Kind:
    """Say of a function's text what a call of it runs: all of it, or a part until it yields or awaits."""
    node = parsed_function(text)
    yields = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and BlockSyntax(node.body).yields
    if isinstance(node, ast.AsyncFunctionDef):
        return "async generator" if yields else "coroutine"
    return "generator" if yields else "function"
