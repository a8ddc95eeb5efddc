"""The published data sets of arXiv 2509.26476 -> our rows, for users who have them.

Code-Regression and GraphArch-Regression have one row per example: ``identifier``, ``space``, ``input``, the target
(``val_accuracy``, in later versions ``target``), ``metric_type`` (Code-Regression only) and ``metadata``, a Python
literal.

| space | read as |
|---|---|
| APPS | Python solutions of basis ``program``: peak memory in bytes |
| CDSS | CodeNet solutions of basis ``program``: memory and, from the metadata, CPU time; by problem |
| KBSS | Triton kernels of KernelBook: latency on an RTX A6000 in milliseconds |
| NDS, Twopath, HiAML, Inception and all others | networks as printed ONNX graphs: accuracy, and latencies (``lat_*``) |

``metric_type`` says ``memory_bytes`` of both APPS and CDSS. Of CDSS that is wrong: CodeNet's metadata count kilobytes
(its README; a limit of 128 MiB is 131072 there), and targets such as 2940 for Python, 22996 for Java and 256 for C++
are the resident sets of whole processes in that unit. Of APPS it is right: targets lie between 5,260 and 100,960,435,
many are odd, and half of them are below 6,000. No interpreter runs in 6 kB, and 100 million kilobytes would be 96 GiB;
these are peaks of what Python allocates for the solution's objects.

A network's accuracy is a percentage if a space has values above 1. That is decided while reading: rows of a space are
held back until one is above 1 (it has percentages) or ``_UNDECIDED`` of them are not (it has fractions), so the rows of
a space with fractions may come later than in the file. In a space taken for fractions, a later value above 1 is left
out.

An example without a problem is grouped by its text, so that equal texts are in one split. Neither data set says on
which machine programs ran: the device is x86-64, the judge is the space.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rlm_core.errors import DataError
from rlm_core.files import read_json_lines
from rlm_core.queries.devices import canonical_device
from rlm_core.source.languages import LANGUAGES, TEXT_ONLY

from .builder import Progress, RowBuilder
from .functions import DEVICE
from .schema import open_parquet

KERNEL_DEVICE = "nvidia-rtx-a6000"
_NEEDED = ("identifier", "space", "input")
_TARGETS = ("target", "val_accuracy")
_OPTIONAL = ("metric_type", "metadata")
_SCALES = {"memory_bytes": ("memory", 1.0), "latency_ms": ("latency", 1e-3)}
_CODENET_MEMORY = 1024.0  # bytes per unit, whatever metric_type says
_DEFAULT_TYPES = {"APPS": "memory_bytes", "CDSS": "memory_bytes", "KBSS": "latency_ms"}
_PROBLEMS = ("problem_id", "p_id", "problem", "problem_metainformation")
_BATCHED = re.compile(r"(.+)_(\d+)")
_TITLES = {language.title.lower(): name for name, language in (LANGUAGES | TEXT_ONLY).items()}
_CIFAR = ("nb101", "nb201", "nasbench", "nds", "darts", "enas", "nasnet", "pnas", "amoeba", "twopath", "hiaml", "incep")
_UNDECIDED = 256
_ROWS_PER_BATCH = 256  # texts may be long
# The published files have few row groups: without a buffer, a column of gigabytes would be read as a whole.
_READ_BYTES = 1 << 20


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
    """The fields that all rows of an example share."""

    language: str
    basis: str
    group: str
    held_out: str


class _UnusableError(Exception):
    """An example that our schema cannot hold; the text says why."""


class CodeRegressionBuilder(RowBuilder):
    """Rows of one published file, which is read once.

    Args:
        path: ``.parquet``, ``.jsonl`` or ``.jsonl.gz``.
        split: the split of all rows; ``auto`` decides by group.

    Raises:
        DataError: the file cannot be read, has no rows, or its first one lacks a column.
    """

    def __init__(self, path: Path, split: str = "auto") -> None:
        super().__init__(split)
        self._path = path
        if next(_read(path, _NEEDED, (*_TARGETS, *_OPTIONAL)), None) is None:
            raise DataError(f"{path}: no rows")
        self._total = pq.read_metadata(path).num_rows if path.suffix == ".parquet" else 0
        self._percent: dict[str, bool] = {}  # by space of networks, once it is decided

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, those of a space in the order of the file; ``progress`` receives a total of 0 for JSON lines.

        Raises:
            DataError: a later row lacks a column, or the file cannot be read to its end.
        """
        held: dict[str, list[Mapping[str, Any]]] = {}
        done = 0
        for done, row in enumerate(_read(self._path, _NEEDED, (*_TARGETS, *_OPTIONAL)), 1):
            space, target = str(row["space"]), _number(_target(row))
            if space in _DEFAULT_TYPES or space in self._percent or target is None:
                yield from self._of(row)
            else:
                undecided = held.setdefault(space, [])
                undecided.append(row)
                if target > 1 or len(undecided) == _UNDECIDED:
                    self._percent[space] = target > 1
                    yield from (entry for row in held.pop(space) for entry in self._of(row))
            if done % _ROWS_PER_BATCH == 0:
                progress(done, self._total)
        for space, undecided in held.items():
            self._percent[space] = False
            yield from (entry for row in undecided for entry in self._of(row))
        progress(done, done)

    def _of(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        name, space, text = str(row["identifier"]), str(row["space"]), str(row["input"] or "")
        metadata = _metadata(row.get("metadata"))
        try:
            if not text.strip():
                raise _UnusableError("empty text")
            example = _example(space, text, metadata)
            values = list(self._values(row, space, metadata))
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
                "split": self._split_of(example.group),
                "source": f"Code-Regression {name}" if space in _DEFAULT_TYPES else f"GraphArch-Regression {name}",
            }

    def _values(self, row: Mapping[str, Any], space: str, metadata: Mapping[str, Any]) -> Iterator[_Value]:
        """The numbers of an example; those that cannot be used are counted."""
        target, name = _number(_target(row)), str(row["identifier"])
        if space not in _DEFAULT_TYPES:
            yield from self._network(target, space, metadata, name)
            return
        kind = str(row.get("metric_type") or _DEFAULT_TYPES[space])
        if kind not in _SCALES:
            raise _UnusableError(f"unknown metric_type {kind}")
        metric, unit = _SCALES[kind]
        if space == "CDSS" and metric == "memory":
            unit = _CODENET_MEMORY
        device, workload = KERNEL_DEVICE, {}
        if space != "KBSS":
            day = _day(metadata.get("date"))
            device, workload = DEVICE, {"judge": space.lower(), **({"date": day} if day else {})}
        if target is not None and target > 0:
            yield _Value(metric, target * unit, device, workload, metric)
        seconds = _number(metadata.get("cpu_time"))
        if seconds is not None and seconds > 0 and metric != "latency":
            yield _Value("latency", seconds * 1e-3, device, workload, "latency")

    def _network(self, target: float | None, space: str, metadata: Mapping[str, Any], name: str) -> Iterator[_Value]:
        fraction = target
        if target is not None and self._percent[space]:
            fraction = target / 100
        if fraction is not None and fraction > 1:
            self._leave_out("accuracy above 1", name)
        elif fraction is not None and fraction > 0:
            workload = {"space": space.lower()}
            if space.lower().startswith(_CIFAR):
                workload["dataset"] = "cifar10"
            yield _Value("accuracy", fraction, None, workload, "accuracy")
        for key, value in metadata.items():
            if not key.startswith("lat_"):
                continue
            number, (device, batch) = _number(value), _device(key.removeprefix("lat_"))
            if device is None:
                self._leave_out(f"latency of unknown device {key.removeprefix('lat_')}", name)
            elif number is None or number <= 0:
                self._leave_out("no latency in the metadata", name)
            else:
                yield _Value("latency", number * 1e-3, device, {"batch": batch}, f"latency/{device}/{batch}")


def _example(space: str, text: str, metadata: Mapping[str, Any]) -> _Example:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    if space == "KBSS":
        return _Example("triton", "kernel", f"kernelbook/{digest}", "kernel")
    if space not in _DEFAULT_TYPES:
        return _Example("onnx", "network", f"graph/{digest}", "architecture")
    language = "python"
    if space == "CDSS":
        title = str(metadata.get("language") or "")
        language = _TITLES.get(title.lower(), "")
        if not language:
            raise _UnusableError(f"language {title} is not supported" if title else "no language in the metadata")
    problem = next((str(metadata[key]) for key in _PROBLEMS if metadata.get(key) is not None), None)
    if problem is None:
        return _Example(language, "program", f"{space.lower()}/text/{digest}", "text")
    if len(problem) > 40:
        problem = hashlib.sha256(problem.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return _Example(language, "program", f"{space.lower()}/{problem}", "problem")


def _read(path: Path, needed: Sequence[str], optional: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The rows of a file: the needed columns, and the optional ones that it has."""
    rows = _parquet(path, (*needed, *optional)) if path.suffix == ".parquet" else _lines(path)
    for number, row in enumerate(rows, 1):
        missing = [name for name in needed if name not in row]
        if missing or not any(name in row for name in _TARGETS):
            name = missing[0] if missing else " or ".join(_TARGETS)
            raise DataError(f"{path}: row {number} has no {name!r}; is this a file of Code-Regression?")
        yield row


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    for batch, _, _ in read_batches(path, (), columns):
        yield from batch.to_pylist()


def read_batches(
    path: Path, needed: Sequence[str], optional: Sequence[str], kind: str = "Code-Regression"
) -> Iterator[tuple[pa.RecordBatch, int, int]]:
    """A few hundred rows at a time of a Parquet file of any size, with the number of rows read so far and of all.

    Args:
        path: the file.
        needed: columns that it must have.
        optional: columns that are read where it has them.
        kind: the data set, for messages.

    Raises:
        DataError: the file cannot be read, or lacks a needed column.
    """
    names = open_parquet(path, None, "", "").schema_arrow.names
    for name in needed:
        if name not in names:
            raise DataError(f"{path}: has no column {name!r}; is this a file of {kind}?")
    columns = [name for name in (*needed, *optional) if name in names]
    done = 0
    with pq.ParquetFile(path, buffer_size=_READ_BYTES, pre_buffer=False) as file:
        try:
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=columns):
                done += len(batch)
                yield batch, done, file.metadata.num_rows
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{path}: cannot be read to its end ({str(error).splitlines()[0]})") from None


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    for where, row in read_json_lines(path):
        if not isinstance(row, dict):
            raise DataError(f"{where}: not an object; is this a file of Code-Regression?")
        yield row


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
