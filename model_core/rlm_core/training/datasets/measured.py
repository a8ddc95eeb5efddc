"""The user's own measurements as Parquet: the label rows of ``rlm-lsp measure export``, or rows to train on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rlm_core.files import atomic_write
from rlm_core.measurement.types import BENCHED, RUNTIME, TOOL
from rlm_core.types import BASIS_OF_KIND, METRICS_OF_BASIS

from .functions import LATENCY_FLOOR_SECONDS, MIN_CALLS
from .schema import SIZED_CALLS, open_parquet, size_columns, write_rows
from .splits import split_of

FORMAT = "rlm-measurements-1"
_SPREAD = pa.struct([("p10", pa.float64()), ("p50", pa.float64()), ("p90", pa.float64())])
_TEXT = ("package", "version", "module", "qualname", "file", "source_sha1", "source_hash", "kind")
_PLACE = ("language", "device", "machine")
LABELS = pa.schema(
    [
        *((name, pa.string()) for name in (*_TEXT, *_PLACE)),
        *((name, pa.int64()) for name in ("firstlineno", "lastlineno", "calls", "tests", "exceptions", "mem_calls")),
        *((name, pa.bool_()) for name in ("generator", "recursive", "threads", "latency_ok")),
        ("latency_us", _SPREAD),
        ("peak_bytes", _SPREAD),
        ("workload", pa.map_(pa.string(), pa.string())),
        ("measured_at", pa.string()),
        ("run", pa.string()),
        ("sizes", pa.map_(pa.string(), pa.map_(pa.string(), pa.list_(pa.float64())))),
        ("sized", pa.map_(pa.string(), pa.list_(SIZED_CALLS))),
        ("first", pa.map_(pa.string(), pa.float64())),
    ],
    metadata={"format": FORMAT},
)


def write_labels(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """Write label rows, without source text."""
    with atomic_write(path) as partial:
        pq.write_table(pa.Table.from_pylist(list(rows), LABELS), partial, compression="zstd")


def read_labels(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The label rows of a file, each with its location for messages.

    Raises:
        DataError: the file cannot be read or has other contents.
    """
    file = open_parquet(path, FORMAT, "a file of measurements", "export it without --source to import it elsewhere")
    rows = file.read().to_pylist(maps_as_pydicts="strict")
    return [(f"{path}: row {number}", row) for number, row in enumerate(rows, 1)]


def write_training_rows(labels: Iterable[dict[str, Any]], path: Path) -> int:
    """Write a data set for ``rlm-lsp train`` from label rows with their text, and count its rows."""
    return write_rows(training_rows(labels), path)


def training_rows(labels: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of :mod:`.schema`, one per metric, of label rows that have a text and enough good calls.

    As with the labels of packages, generators and coroutines are left out and the module is the group. What other tools
    measured is left out as well: a benchmark has one input, and a profile only a mean. For a program,
    kernel, PyTorch module or network the file is the group, with one row per input, or per device and workload.
    """
    for label in labels:
        if "text" not in label or label["generator"] or TOOL in label["workload"]:
            continue
        basis = BASIS_OF_KIND.get(label["kind"], "call")
        is_program, is_benched = basis == "program", label["kind"] in BENCHED
        workload = {name: value for name, value in label["workload"].items() if not (is_benched and name == RUNTIME)}
        group = f"{label['package']}/{label['module']}"
        name = f"{label['package']}:{label['module']}:{label['qualname']}:{label['firstlineno']}"
        if is_program:
            name += f":{label['workload'].get('input', '')}:{label['workload'].get('input_sha1', '')}"
        for metric, value in _values(label).items():
            yield {
                "id": f"measured/{name}/{label['run']}/{metric}",
                "text": label["text"],
                "callees": label["callees"],
                "language": label["language"],
                "basis": basis,
                "metric": metric,
                # The model knows one device and workload of programs, the judge's; a team's rows replace it.
                "device": None if is_program else label["device"] if is_benched else label["machine"],
                "workload": {} if is_program else workload,
                "value": value,
                "group": group,
                "family": label["package"],
                "held_out": "module" if basis == "call" else "file" if is_benched else "problem",
                "split": split_of(group),
                "source": f"{label['package']}=={label['version']}:{label['file']}:{label['firstlineno']}",
            } | size_columns(label, metric)


def _values(label: dict[str, Any]) -> dict[str, float]:
    values: dict[str, float] = {}
    basis = BASIS_OF_KIND.get(label["kind"], "call")
    fewest = MIN_CALLS if basis == "call" else 1
    if label["latency_us"] and label["latency_ok"] and label["calls"] >= fewest:
        values["latency"] = max(label["latency_us"]["p50"] * 1e-6, LATENCY_FLOOR_SECONDS)
    if label["peak_bytes"] and label["mem_calls"] >= fewest and "memory" in METRICS_OF_BASIS[basis]:
        values["memory"] = max(label["peak_bytes"]["p50"], 0.0)
    return values
