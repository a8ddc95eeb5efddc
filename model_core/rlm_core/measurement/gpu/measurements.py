"""Rows of ``rlm-lsp bench`` -> measurements of the kernels, modules and networks that they time.

A row names a file and the hash of what it held; its unit is read from that file, and a row counts only while the file
holds the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rlm_core.errors import RlmError
from rlm_core.measurement.types import RUNTIME, Measurement, measured_text, sha1_of, source_hash
from rlm_core.queries.devices import canonical_device
from rlm_core.queries.sizes import canonical_workload
from rlm_core.source.units import find_units, read_source
from rlm_core.types import Metric, Unit

from .bench_rows import Row, digest
from .bench_spec import module_file, triton_file

_KINDS: Mapping[str, Literal["kernel", "module", "network"]] = {
    "triton": "kernel",
    "torch": "module",
    "onnx": "network",
}
_LIBRARIES = {"triton": "triton", "torch": "torch", "onnx": "onnxruntime"}


@dataclass(frozen=True, slots=True)
class BenchImport:
    """The measurements of rows, and the number of rows that were left out, by reason."""

    measurements: list[Measurement] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


class _LeftOutError(Exception):
    """A row says nothing about a unit; the text says why."""


def measurements_of(rows: Iterable[Row], files: Mapping[str, Path]) -> BenchImport:
    """The measurements of the rows that timed one of ``files``, which are paths by the name that rows have for them.

    Of the configurations of an autotuned kernel the quickest counts, as it is the one that the autotuner will choose.
    """
    taken, sources = BenchImport(), _Sources()
    best: dict[tuple[object, ...], Row] = {}
    units: dict[str, Unit] = {}
    for row in rows:
        if row.get("path") not in files or row.get("status") != "ok" or "latency" not in row:
            continue
        try:
            if "p10" not in row:
                raise _LeftOutError("an older rlm-lsp made them")
            unit = sources.unit(row, files[row["path"]])
            units[row["key"]] = unit
            key = (row["path"], unit.qualname, _device(row), tuple(sorted(_workload(row).items())))
        except (_LeftOutError, RlmError) as error:
            taken.left_out[str(error)] += 1
            continue
        if key not in best or row["latency"] < best[key]["latency"]:
            best[key] = row
    for row in best.values():
        taken.measurements.extend(_measurements(row, units[row["key"]], files[row["path"]]))
    return taken


class _Sources:
    """The units of the files that were run; each file is read once."""

    def __init__(self) -> None:
        self._files: dict[Path, tuple[str, list[Unit]]] = {}

    def unit(self, row: Row, path: Path) -> Unit:
        """The unit that a row is about."""
        kind, name = _KINDS[row["kind"]], _named(row)
        if path not in self._files:
            self._files[path] = _digest(row["kind"], path), find_units(read_source(path))
        found, units = self._files[path]
        if found != row["source"]:
            raise _LeftOutError("its file has changed since")
        for unit in units:
            if unit.kind == kind and name in (None, unit.qualname, unit.qualname.rpartition(".")[2]):
                return unit
        raise _LeftOutError(f"{path} holds no {kind} called {name}")


def _digest(kind: str, path: Path) -> str:
    """The hash that the rows of a file have, of the file as it is now."""
    if kind == "onnx":
        try:
            return digest(path.read_bytes())
        except OSError:
            return ""
    file = triton_file(path) if kind == "triton" else module_file(path)
    return file.digest if file is not None else ""


def _named(row: Row) -> str | None:
    """The name of the kernel or module that a row times; None for a network, which is all of its file."""
    if row["kind"] == "onnx":
        return None
    if row["kind"] == "torch":
        return str(row["name"])
    kernels = {str(launch["kernel"]) for launch in row.get("launches") or ()}
    if len(kernels) != 1:
        raise _LeftOutError(f"its call launches {len(kernels) or 'no'} kernels, so it is not the time of one kernel")
    return kernels.pop()


def _device(row: Row) -> str:
    machine: Mapping[str, Any] = row.get("machine") or {}
    name = str(machine.get("gpu") or machine.get("cpu") or row["device"])
    return canonical_device(name) or name


def _workload(row: Row) -> dict[str, str]:
    """Return the workload of the model's query, with the runtime of the measurement."""
    machine, library = row.get("machine") or {}, _LIBRARIES[row["kind"]]
    words = [f"{library}-{machine.get(library, '')}"]
    if row["kind"] == "onnx":
        words.append(str(row["device"]))
    threads = row.get("threads") or machine.get("threads")
    if threads:
        words.append(f"threads={threads}")
    return {**_asked(row), RUNTIME: " ".join(words)}


def _asked(row: Row) -> dict[str, str]:
    if row["kind"] == "onnx":
        shape = next(iter((row.get("inputs") or {"": "1"}).values())).split(" ")[0]
        return {"batch": shape.partition("x")[0]}
    case = {str(name): str(value) for name, value in (row.get("case") or {}).items()}
    return canonical_workload(case) if row["kind"] == "triton" else case


def _measurements(row: Row, unit: Unit, path: Path) -> Iterator[Measurement]:
    spreads: dict[Metric, tuple[float, ...]] = {"latency": (row["p10"], row["latency"], row["p90"])}
    if row.get("memory") is not None:
        spreads["memory"] = (float(row["memory"]),) * 3
    file = f"{path.parent.name}/{path.name}"
    for metric, (low, median, high) in spreads.items():
        yield Measurement(
            source_hash=source_hash(unit.text, unit.language),
            source_sha1=sha1_of(unit.text),
            device=_device(row),
            machine="",
            workload=_workload(row),
            metric=metric,
            median=median,
            low=low,
            high=high,
            calls=int(row["runs"]) if metric == "latency" else 1,
            tests=1,
            exceptions=0,
            kind=_KINDS[row["kind"]],
            recursive=False,
            threads=False,
            ok=True,
            package=path.parent.name,
            version="",
            module=file.rpartition(".")[0],
            qualname=unit.qualname,
            file=file,
            line=unit.span.start_line + 1,
            last_line=unit.span.end_line + 1,
            measured_at=row["date"],
            run=row["key"],
            path=str(path),
            language=unit.language,
            # No model compares two networks, and their texts are long.
            text=measured_text(unit.text, unit.language) if unit.kind != "network" else "",
        )
