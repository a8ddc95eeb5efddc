"""Measurements <-> label rows: one JSON object per function and run, in the form that ``data build functions`` reads.

Besides that form's fields a row has ``lastlineno``, ``source_hash``, ``kind``, ``language``, ``threads``, ``device``,
``machine``, ``workload``, ``measured_at`` and ``run``, and on demand the source ``text`` and its ``callees``. Of a
program there is a row an input and run, of a kernel, module or network one a workload and run.

By metric a row has ``sizes`` (least, median and largest value of each size of the calls' inputs), ``sized`` (calls by
sizes, with their median) and ``first`` (the first call in each process), in seconds or bytes. Older rows have none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple
from datetime import datetime
from pathlib import Path
from typing import Any, cast, get_args

from rlm_core.errors import DataError, RlmError
from rlm_core.files import read_regular
from rlm_core.measurement.functions.sources import FunctionFile
from rlm_core.measurement.programs.sources import source_of
from rlm_core.measurement.types import (
    BENCHED,
    MOST_SIZE_NAME,
    MOST_SIZES,
    RESUMED,
    SIZE_NAME,
    Kind,
    Measurement,
    SizedCalls,
    SizeSpread,
    source_hash,
)
from rlm_core.queries.analysis import Analyser
from rlm_core.source.languages import LANGUAGES
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES, find_units, read_source
from rlm_core.types import Metric

Label = dict[str, Any]
_MICRO = 1e-6
_DIGITS = 6
_MOST_AMOUNT = 1e15
_HASH = re.compile(r"[0-9a-f]{32}")
_SHA1 = re.compile(r"[0-9a-f]{40}")

_TEXTS = ("device", "machine", "package", "version", "module", "qualname", "file", "run", "measured_at")


def newest(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Keep only the newest measurement of each function's text, device, workload and metric."""
    found: dict[tuple[object, ...], Measurement] = {}
    for one in sorted(measurements, key=lambda one: one.measured_at):
        workload = tuple(sorted(one.workload.items()))
        found[one.source_hash, one.module, one.qualname, one.device, workload, one.metric] = one
    return list(found.values())


def to_labels(measurements: Iterable[Measurement]) -> list[Label]:
    """Label rows, sorted by package, file and line; the metrics of a function (or program and input) share a row."""
    rows: dict[tuple[object, ...], Label] = {}
    ordered = sorted(measurements, key=lambda one: (one.package, one.version, one.file, one.line, one.run))
    for one in ordered:
        workload = tuple(sorted(one.workload.items()))
        key = (one.run, one.device, one.module, one.qualname, one.line, one.source_hash, workload)
        row = rows.setdefault(key, _empty(one))
        row["exceptions"] = max(row["exceptions"], one.exceptions)
        row["recursive"] |= one.recursive
        row["tests"] = max(row["tests"], one.tests)
        if one.metric == "latency":
            row |= {"calls": one.calls, "latency_ok": one.ok, "latency_us": _spread(one, _MICRO)}
        else:
            row |= {"mem_calls": one.calls, "peak_bytes": _spread(one, 1.0), "threads": one.threads}
        row["sizes"][one.metric] = {name: list(astuple(spread)) for name, spread in one.sizes.items()}
        row["sized"][one.metric] = [asdict(calls) for calls in one.sized]
        if one.first is not None:
            row["first"][one.metric] = one.first
    return list(rows.values())


def with_source(labels: Sequence[Label], measurements: Iterable[Measurement]) -> int:
    """Add ``text`` and ``callees`` to the rows whose file still has that text; how many rows are without."""
    paths = {(one.run, one.file, one.qualname, one.line): one.path for one in measurements}
    sources = _Sources()
    for row in labels:
        path = paths.get((row["run"], row["file"], row["qualname"], row["firstlineno"]))
        if path:
            row |= sources.of(Path(path), row)
    return sum("text" not in row for row in labels)


def from_labels(rows: Iterable[tuple[str, Any]]) -> Iterator[Measurement]:
    """The measurements of label rows; each comes with the place at which it stands, for messages.

    Raises:
        DataError: a row has another form.
    """
    for place, row in rows:
        try:
            yield from _measurements(row)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise DataError(
                f"{place}: not a row of `rlm-lsp measure export` ({type(error).__name__}: {error}); fix or remove it"
            ) from None


def _empty(one: Measurement) -> Label:
    return {
        "package": one.package,
        "version": one.version,
        "module": one.module,
        "qualname": one.qualname,
        "file": one.file,
        "firstlineno": one.line,
        "lastlineno": one.last_line,
        "source_sha1": one.source_sha1,
        "source_hash": one.source_hash,
        "calls": 0,
        "tests": 0,
        "generator": one.kind in RESUMED,
        "kind": one.kind,
        "language": one.language,
        "recursive": False,
        "exceptions": 0,
        "latency_us": None,
        "latency_ok": False,
        "mem_calls": 0,
        "peak_bytes": None,
        "threads": False,
        "device": one.device,
        "machine": one.machine,
        "workload": dict(one.workload),
        "measured_at": one.measured_at,
        "run": one.run,
        "sizes": {},
        "sized": {},
        "first": {},
    }


def _spread(one: Measurement, scale: float) -> dict[str, float]:
    values = {"p10": one.low, "p50": one.median, "p90": one.high}
    return {name: round(value / scale, _DIGITS) for name, value in values.items()}


def _measurements(row: Mapping[str, Any]) -> Iterator[Measurement]:
    texts = {name: row[name] for name in _TEXTS}
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("names must be text")
    datetime.fromisoformat(row["measured_at"])
    workload = {str(name): str(value) for name, value in row["workload"].items()}
    if not _HASH.fullmatch(row["source_hash"]) or not _SHA1.fullmatch(row["source_sha1"]):
        raise ValueError("hashes must be hexadecimal")
    if row["kind"] not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}")
    for metric, values, scale, calls in (
        ("latency", row["latency_us"], _MICRO, row["calls"]),
        ("memory", row["peak_bytes"], 1.0, row["mem_calls"]),
    ):
        if values is None:
            continue
        low, median, high = (float(values[name]) * scale for name in ("p10", "p50", "p90"))
        if not all(map(math.isfinite, (low, median, high))) or not low <= median <= high:
            raise ValueError("quantiles must be finite and rise")
        yield Measurement(
            source_hash=row["source_hash"],
            source_sha1=row["source_sha1"],
            workload=workload,
            metric=cast(Metric, metric),
            median=median,
            low=low,
            high=high,
            calls=int(calls),
            tests=int(row["tests"]),
            exceptions=int(row["exceptions"]),
            kind=row["kind"],
            recursive=bool(row["recursive"]),
            threads=bool(row["threads"]),
            ok=bool(row["latency_ok"]) if metric == "latency" else True,
            language=_language(row.get("language", "python")),
            line=int(row["firstlineno"]),
            last_line=int(row["lastlineno"]),
            sizes=_sizes(_of_metric(row, "sizes", metric) or {}),
            sized=tuple(map(_calls, _of_metric(row, "sized", metric) or ())),
            first=_amount(first) if (first := _of_metric(row, "first", metric)) is not None else None,
            **texts,
        )


def _of_metric(row: Mapping[str, Any], name: str, metric: str) -> Any:
    """A field that older rows do not have, for a metric; None where it is not there."""
    return (row.get(name) or {}).get(metric)


def _sizes(given: Mapping[str, Any]) -> dict[str, SizeSpread]:
    spreads = {_size_name(name): SizeSpread(*map(_amount, values)) for name, values in given.items()}
    if len(spreads) > MOST_SIZES:
        raise ValueError(f"more than {MOST_SIZES} sizes")
    if not all(spread.least <= spread.median <= spread.most for spread in spreads.values()):
        raise ValueError("the three values of a size must rise")
    return spreads


def _calls(given: Mapping[str, Any]) -> SizedCalls:
    sizes = {_size_name(name): _amount(size) for name, size in given["sizes"].items()}
    return SizedCalls(sizes, _amount(given["median"]), int(given["calls"]), bool(given["scaled"]))


def _size_name(name: str) -> str:
    if len(name) > MOST_SIZE_NAME or not re.match(SIZE_NAME, name):
        raise ValueError(f"{name[:MOST_SIZE_NAME]!r} is not the name of a size")
    return name


def _amount(value: Any) -> float:
    number = float(value)
    if not 0 <= number <= _MOST_AMOUNT:
        raise ValueError("sizes and costs must be numbers from 0 on")
    return number


def _language(name: object) -> str:
    if name not in LANGUAGES:
        raise ValueError(f"unknown language {name!r}")
    return str(name)


class _Sources:
    """Texts and callees of functions; files are read once."""

    def __init__(self) -> None:
        self._analyser = Analyser()
        self._files: dict[Path, FunctionFile] = {}
        self._units: dict[Path, dict[str, str]] = {}
        self._callees: dict[Path, dict[tuple[str, int], list[dict[str, Any]]]] = {}

    def of(self, path: Path, row: Label) -> Label:
        """The added fields of a row, none if its text is not there any more."""
        if row["kind"] == "program":
            text, sha1 = source_of(path) or ("", "")
            return {"text": text, "callees": []} if sha1 == row["source_sha1"] else {}
        if row["kind"] in BENCHED:
            found = self._texts(path).get(row["source_hash"])
            return {"text": found, "callees": []} if found is not None else {}
        if path not in self._files:
            self._files[path] = FunctionFile(path)
        source = self._files[path].function(row["qualname"], row["firstlineno"])
        if source is None or source.sha1 != row["source_sha1"]:
            return {}
        if path not in self._callees:
            self._callees[path] = {
                (found.unit.qualname, found.unit.span.start_line + 1): [
                    {"text": callee.text, "level": callee.depth} for callee in found.code.callees
                ]
                for found in self._analyser.analyse(
                    ParsedSource(read_regular(path, MAX_FILE_BYTES), "python", may_leave_out=True), path
                )
            }
        key = (row["qualname"], row["firstlineno"])
        return {"text": source.text, "callees": self._callees[path].get(key, [])}

    def _texts(self, path: Path) -> dict[str, str]:
        """Return the texts that the model reads of a file's units, by hash; empty if the file cannot be read."""
        if path not in self._units:
            try:
                units = find_units(read_source(path), path)
            except RlmError:
                units = []
            self._units[path] = {source_hash(unit.text, unit.language): unit.text for unit in units}
        return self._units[path]
