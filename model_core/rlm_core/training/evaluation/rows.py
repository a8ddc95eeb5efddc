"""Data sets of any size -> the rows to evaluate, a seeded sample of each cell, and a predictor's answers for them.

The first pass reads only names and chooses; the second reads the chosen rows. Architectures are sampled rather than
their rows, so that a network is encoded once for all its devices. :func:`predict_table` is the one way to query a
predictor about rows: evaluation, the report and the check after tuning use it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlm_core.inference.predictor import Predictor
from rlm_core.queries.query_vector import Task, task_name, task_parts
from rlm_core.training.datasets.schema import read_calls, read_facts, read_tables
from rlm_core.types import Callee, CodeText, Query

from .batches import predictions

TASK = ("basis", "language", "metric", "judge")
CELL = (*TASK, "held_out", "device")
_BATCH = 4096
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a data set (:mod:`rlm_core.training.datasets.schema`)."""

    id: str
    code: CodeText
    query: Query
    value: float
    group: str
    project_group: str
    held_out: str
    split: str
    source: str
    edit_of: str | None = None
    noise: float | None = None

    @property
    def task(self) -> Task:
        """Basis, language, metric and judge."""
        return task_parts(task_name(self.code.basis, self.code.language, self.query.metric, self.query.device))

    @property
    def whole(self) -> str:
        """The unit that intervals resample: the project group if whole project groups were held out, else the group."""
        return self.project_group if self.held_out in ("package", "edit") else self.group

    @property
    def quarter(self) -> str:
        """The quarter of the workload's date, like ``2024Q1``; empty without a date."""
        return quarter_of(self.query.workload)

    @property
    def unit(self) -> str:
        """The kernel or problem that the row is about, whatever its sizes and device."""
        return self.id.split("/", 1)[-1].rsplit("/", 1)[0]

    @property
    def setting(self) -> str:
        """The setting of the number, besides the unit: the device; for networks, space and batch or training."""
        device, workload = self.query.device, self.query.workload
        if self.code.basis != "network":
            return device or ""
        space = self.id.split("/")[1] if "/" in self.id else ""
        if self.query.metric == "accuracy":
            named = [workload.get(name) for name in ("dataset", "subset")]
            epochs = [f"{workload['epochs']} epochs"] if "epochs" in workload else []
            return ", ".join(filter(None, (space, *named, *epochs)))
        batch = f", batch {workload['batch']}" if "batch" in workload else ""
        return f"{space}, {device or 'any'}{batch}"


@dataclass(frozen=True, slots=True)
class Selection:
    """Chosen rows in the order of the files, and the number of rows in each cell before sampling."""

    rows: list[Row]
    available: Mapping[tuple[str, ...], int]


def quarter_of(workload: Mapping[str, str]) -> str:
    """The quarter of a workload's date, like ``2024Q1``; empty without a date."""
    day = workload.get("date")
    return f"{day[:4]}Q{(int(day[5:7]) - 1) // 3 + 1}" if day else ""


def select(
    paths: Sequence[Path], splits: Sequence[str] | None, most: int, *, by: Sequence[str] = CELL, seed: int = 0
) -> Selection:
    """At most ``most`` rows of each cell (0: all) of some splits (None: of all).

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    indices: dict[tuple[str, ...], list[int]] = defaultdict(list)
    ranks: dict[tuple[str, ...], list[int]] = defaultdict(list)
    count = 0
    for table in _names(paths, splits, {"id", "basis", "group", "device", *by} - {"judge"}):
        columns = [_judges(table) if name == "judge" else _texts(table, name) for name in by]
        keys = (
            group if basis == "network" else name
            for name, basis, group in zip(*(table[c].to_pylist() for c in ("id", "basis", "group")), strict=True)
        )
        for *cell, key in zip(*columns, keys, strict=True):
            indices[tuple(cell)].append(count)
            if most:
                ranks[tuple(cell)].append(_rank(key, seed))
            count += 1
    chosen: list[int] = []
    for names, selected in indices.items():
        if most and len(selected) > most:
            order = np.argsort(np.array(ranks[names], np.uint64), kind="stable")
            chosen += [selected[i] for i in order[:most]]
        else:
            chosen += selected
    available = {names: len(selected) for names, selected in indices.items()}
    return Selection(list(_chosen(paths, splits, np.sort(np.array(chosen, np.int64)))), available)


def _texts(table: pa.Table, name: str) -> list[str]:
    return [value or "" for value in table[name].to_pylist()]


def _judges(table: pa.Table) -> list[str]:
    """The judges of the rows' tasks."""
    pairs = zip(table["basis"].to_pylist(), table["device"].to_pylist(), strict=True)
    return [task_parts(task_name(basis, "", "", device)).judge for basis, device in pairs]


def _rank(key: str, seed: int) -> int:
    """A position in a random order that is the same on every machine."""
    return int.from_bytes(hashlib.blake2b(f"{seed}:{key}".encode(), digest_size=8).digest(), "big")


def _names(paths: Sequence[Path], splits: Sequence[str] | None, columns: set[str]) -> Iterator[pa.Table]:
    """Some columns of all rows, a batch at a time."""
    for path in paths:
        # Opening it as a data set first raises the error that says what to do.
        next(read_tables([path]), None)
        for batch in pq.ParquetFile(path).iter_batches(_BATCH, columns=sorted(columns | {"split"})):
            table = pa.Table.from_batches([batch])
            yield table if splits is None else table.filter(pc.is_in(table["split"], pa.array(list(splits))))


def _chosen(paths: Sequence[Path], splits: Sequence[str] | None, indices: np.ndarray[Any, Any]) -> Iterator[Row]:
    """The rows at sorted places, equal texts as one object."""
    seen: dict[str, str] = {}
    start = 0
    for table in read_tables(paths, splits):
        first, last = np.searchsorted(indices, [start, start + len(table)])
        for row in table.take(pa.array(indices[first:last] - start)).to_pylist(maps_as_pydicts="strict"):
            yield _row(row, seen)
        start += len(table)


def _row(row: dict[str, Any], seen: dict[str, str]) -> Row:
    callees = tuple(Callee(seen.setdefault(c["text"], c["text"]), c["level"]) for c in row["callees"])
    text = seen.setdefault(row["text"], row["text"])
    # What `predict` reads of a function in its package, so that the figures are those of what users get.
    work, calls = read_facts(row.get("work")), read_calls(row.get("calls"))
    code = CodeText(text, row["language"], row["basis"], callees, work=work, calls=calls)
    query = Query(row["metric"], row["device"], row["workload"])
    names = [row[name] for name in ("group", "family", "held_out", "split", "source")]
    edit: list[Any] = [row.get("edit_of"), row.get("noise")]
    return Row(row["id"], code, query, row["value"], *names, *edit)


@dataclass(frozen=True, slots=True)
class PredictionTable:
    """Medians and band ends in SI units, ``(rows,)`` each; NaN where there is no prediction or no band."""

    median: Array
    low80: Array
    high80: Array
    low90: Array
    high90: Array

    def chosen(self, rows: npt.NDArray[np.int64]) -> PredictionTable:
        """The same for some rows."""
        return PredictionTable(*(getattr(self, name)[rows] for name in PredictionTable.__slots__))


@dataclass(frozen=True, slots=True)
class PredictedRows:
    """The table of all rows, the floor of each, and why the predictor abstained: a code, empty where it did not."""

    table: PredictionTable
    floors: Array
    reasons: list[str]


def predict_table(predictor: Predictor, pairs: Sequence[tuple[CodeText, Query]]) -> PredictedRows:
    """Predictions for all pairs as columns, in the order of the pairs."""
    columns = np.full((5, len(pairs)), np.nan)
    floors, reasons = np.zeros(len(pairs)), [""] * len(pairs)
    for row, prediction in predictions(predictor, pairs):
        if prediction.median is None:
            reasons[row] = str(prediction.abstained)
            continue
        floors[row] = prediction.floor
        ends = [end for band in prediction.bands[:2] for end in (band.low, band.high)]
        columns[: 1 + len(ends), row] = [prediction.median, *ends]
    return PredictedRows(PredictionTable(*columns), floors, reasons)
