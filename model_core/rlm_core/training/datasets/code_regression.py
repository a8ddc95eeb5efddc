"""The published data sets of arXiv 2509.26476 -> our rows, for users who have them.

Both have a row an example: ``identifier``, ``space``, ``input``, the target (``val_accuracy``, or ``target`` in later
versions), ``metric_type`` and ``metadata``, a Python literal.

| space | read as |
|---|---|
| APPS | Python solutions of basis ``program``: peak memory in bytes |
| CDSS | CodeNet solutions of basis ``program``: memory in bytes and, from the metadata, CPU time; by problem |
| KBSS | Triton kernels of KernelBook: latency on an RTX A6000 in milliseconds |
| NDS, Twopath, HiAML, Inception and all others | networks as printed ONNX graphs: accuracy, and latencies (``lat_*``) |

Accuracies of a space are per cent where any is above 1. What names no problem is a group by its text: the same text is
in one split only. Neither data set says on which machine programs ran: their device is x86-64, their judge the space.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rlm_core.errors import DataError
from rlm_core.queries.devices import canonical_device
from rlm_core.source.languages import LANGUAGES

from .functions import DEVICE, Progress
from .schema import Report
from .splits import split_of

KERNEL_DEVICE = "nvidia-rtx-a6000"
_NEEDED = ("identifier", "space", "input")
_TARGETS = ("target", "val_accuracy")
_OPTIONAL = ("metric_type", "metadata")
_SCALES = {"memory_bytes": ("memory", 1.0), "latency_ms": ("latency", 1e-3)}
_DEFAULT_TYPES = {"APPS": "memory_bytes", "CDSS": "memory_bytes", "KBSS": "latency_ms"}
_PROBLEMS = ("problem_id", "p_id", "problem", "problem_metainformation")
_BATCHED = re.compile(r"(.+)_(\d+)")
_TITLES = {language.title.lower(): name for name, language in LANGUAGES.items()}
_CIFAR = ("nb101", "nb201", "nasbench", "nds", "darts", "enas", "nasnet", "pnas", "amoeba", "twopath", "hiaml", "incep")
_ROWS_A_BATCH = 256  # texts may be long


@dataclass(frozen=True, slots=True)
class _Value:
    """One number about an example, in SI units."""

    metric: str
    value: float
    device: str | None
    workload: Mapping[str, str]
    name: str


@dataclass(frozen=True, slots=True)
class _Example:
    """What all rows of an example share."""

    language: str
    basis: str
    group: str
    held_out: str


class _UnusableError(Exception):
    """An example that has no place in our schema; the text says why."""


class Builder:
    """Builds the rows of a file; after iterating :meth:`rows`, :meth:`report` says what was left out.

    Args:
        path: ``.parquet``, ``.jsonl`` or ``.jsonl.gz``.
        split: of all rows, or ``auto``: by group.

    Raises:
        DataError: the file cannot be read or lacks a column.
    """

    def __init__(self, path: Path, split: str = "auto") -> None:
        self._path, self._split = path, split
        self._total = 0
        largest: dict[str, float] = defaultdict(float)
        for row in _read(path, ("identifier", "space"), _TARGETS):
            self._total += 1
            if (target := _number(_target(row))) is not None:
                largest[str(row["space"])] = max(largest[str(row["space"])], target)
        if not self._total:
            raise DataError(f"{path}: no rows")
        self._percent = {space for space, value in largest.items() if value > 1}
        self._missing: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = defaultdict(list)
        self._rows = self._units = 0

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows in the order of the file."""
        for done, row in enumerate(_read(self._path, _NEEDED, (*_TARGETS, *_OPTIONAL)), 1):
            yield from self._of(row)
            if done % _ROWS_A_BATCH == 0 or done == self._total:
                progress(done, self._total)

    def report(self) -> Report:
        """What was kept and what was left out, by reason."""
        return Report(self._rows, self._units, dict(self._missing), dict(self._examples))

    def _of(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        name, space, text = str(row["identifier"]), str(row["space"]), str(row["input"] or "")
        told = _metadata(row.get("metadata"))
        try:
            if not text.strip():
                raise _UnusableError("empty text")
            example = _example(space, text, told)
            values = list(self._values(row, space, told))
            if not values:
                raise _UnusableError("no target")
        except _UnusableError as reason:
            self._leave_out(str(reason), name)
            return
        self._units += 1
        for entry in values:
            self._rows += 1
            yield {
                "id": f"code-regression/{space}/{name}/{entry.name}",
                "text": text,
                "callees": [],
                "language": example.language,
                "basis": example.basis,
                "metric": entry.metric,
                "device": entry.device,
                "workload": dict(entry.workload),
                "value": entry.value,
                "group": example.group,
                "family": example.group,
                "held_out": example.held_out,
                "split": split_of(example.group) if self._split == "auto" else self._split,
                "source": f"Code-Regression {name}" if space in _DEFAULT_TYPES else f"GraphArch-Regression {name}",
            }

    def _values(self, row: Mapping[str, Any], space: str, told: Mapping[str, Any]) -> Iterator[_Value]:
        """The numbers of an example; those that cannot be used are counted."""
        target, name = _number(_target(row)), str(row["identifier"])
        if space not in _DEFAULT_TYPES:
            yield from self._network(target, space, told, name)
            return
        kind = str(row.get("metric_type") or _DEFAULT_TYPES[space])
        if kind not in _SCALES:
            raise _UnusableError(f"unknown metric_type {kind}")
        metric, unit = _SCALES[kind]
        device, workload = KERNEL_DEVICE, {}
        if space != "KBSS":
            day = _day(told.get("date"))
            device, workload = DEVICE, {"judge": space.lower(), **({"date": day} if day else {})}
        if target is not None and target > 0:
            yield _Value(metric, target * unit, device, workload, metric)
        seconds = _number(told.get("cpu_time"))
        if seconds is not None and seconds > 0 and metric != "latency":
            yield _Value("latency", seconds * 1e-3, device, workload, "latency")

    def _network(self, target: float | None, space: str, told: Mapping[str, Any], name: str) -> Iterator[_Value]:
        if target is not None and target > 0:
            workload = {"space": space.lower()}
            if space.lower().startswith(_CIFAR):
                workload["dataset"] = "cifar10"
            fraction = target / 100 if space in self._percent else target
            yield _Value("accuracy", fraction, None, workload, "accuracy")
        for key, value in told.items():
            if not key.startswith("lat_"):
                continue
            number, (device, batch) = _number(value), _device(key.removeprefix("lat_"))
            if device is None:
                self._leave_out(f"latency of unknown device {key.removeprefix('lat_')}", name)
            elif number is None or number <= 0:
                self._leave_out("no latency in the metadata", name)
            else:
                yield _Value("latency", number * 1e-3, device, {"batch": batch}, f"latency/{device}/{batch}")

    def _leave_out(self, reason: str, name: str) -> None:
        self._missing[reason] += 1
        if len(self._examples[reason]) < 5:
            self._examples[reason].append(name)


def _example(space: str, text: str, told: Mapping[str, Any]) -> _Example:
    own = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    if space == "KBSS":
        return _Example("triton", "kernel", f"kernelbook/{own}", "kernel")
    if space not in _DEFAULT_TYPES:
        return _Example("onnx", "network", f"graph/{own}", "architecture")
    language = "python"
    if space == "CDSS":
        title = str(told.get("language") or "")
        language = _TITLES.get(title.lower(), "")
        if not language:
            raise _UnusableError(f"language {title} is not one of ours" if title else "no language in the metadata")
    problem = next((str(told[key]) for key in _PROBLEMS if told.get(key) is not None), None)
    if problem is None:
        return _Example(language, "program", f"{space.lower()}/text/{own}", "text")
    if len(problem) > 40:
        problem = hashlib.sha256(problem.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return _Example(language, "program", f"{space.lower()}/{problem}", "problem")


def _read(path: Path, needed: Sequence[str], optional: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The rows of a file with the needed columns, and those of the others that it has."""
    rows = _parquet(path, (*needed, *optional)) if path.suffix == ".parquet" else _lines(path)
    for number, row in enumerate(rows, 1):
        lacking = [name for name in needed if name not in row]
        if lacking or not any(name in row for name in _TARGETS):
            name = lacking[0] if lacking else " or ".join(_TARGETS)
            raise DataError(f"{path}: row {number} lacks {name!r}; is this a file of Code-Regression?")
        yield row


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    try:
        file = pq.ParquetFile(path)
        names = [name for name in columns if name in file.schema_arrow.names]
        for batch in file.iter_batches(_ROWS_A_BATCH, columns=names):
            yield from batch.to_pylist()
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from None


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for line in file:
                number += 1
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise DataError(f"{path}:{number}: not an object; is this a file of Code-Regression?")
                    yield row
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{number}: not JSON ({error.msg}); mend or remove the line") from None
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error}); name a .parquet or .jsonl file") from None


def _target(row: Mapping[str, Any]) -> Any:
    return next((row[name] for name in _TARGETS if row.get(name) is not None), None)


def _metadata(text: Any) -> Mapping[str, Any]:
    """The metadata as a dict; empty where there is none that can be read. Nothing in it is run."""
    if isinstance(text, dict):
        return text
    try:
        found = ast.literal_eval(text) if isinstance(text, str) else {}
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _day(value: Any) -> str | None:
    """A Unix time or an ISO date as a day."""
    seconds = _number(value)
    try:
        if seconds is not None:
            return datetime.fromtimestamp(seconds, UTC).date().isoformat()
        return date.fromisoformat(str(value)[:10]).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _device(name: str) -> tuple[str | None, str]:
    """The device and batch of a column of latencies, like ``pixel3`` or ``1080ti_32``."""
    device, match = canonical_device(name), _BATCHED.fullmatch(name)
    if device is None and match:
        return canonical_device(match[1]), match[2]
    return device, "1"
