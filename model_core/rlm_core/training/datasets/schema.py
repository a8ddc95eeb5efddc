"""The schema of a data set: one row a (unit, query), values in SI units.

| column | meaning |
|---|---|
| ``id`` | unique name of the row |
| ``text`` | source text of the unit, as written |
| ``callees`` | what it calls in the same package: source text and level (1 = called directly, 2 = by those) |
| ``language``, ``basis`` | as in :mod:`rlm_core.types` |
| ``metric``, ``device``, ``workload`` | the query |
| ``value`` | the measurement: seconds, bytes or a fraction |
| ``group`` | problem or module; a group is in one split only |
| ``family`` | package or problem: the whole that a user's code is never part of |
| ``held_out`` | what a test row's model has not seen: ``package``, ``module`` or ``problem`` |
| ``split`` | ``train``, ``val``, ``cal`` or ``test`` |
| ``source`` | where the text comes from: repository, blob and path, or package, version, file and line |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlm_core.errors import DataError

FORMAT = "rlm-data-1"
SPLITS = ("train", "val", "cal", "test")

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("callees", pa.list_(pa.struct([("text", pa.string()), ("level", pa.int8())]))),
        ("language", pa.string()),
        ("basis", pa.string()),
        ("metric", pa.string()),
        ("device", pa.string()),
        ("workload", pa.map_(pa.string(), pa.string())),
        ("value", pa.float64()),
        ("group", pa.string()),
        ("family", pa.string()),
        ("held_out", pa.string()),
        ("split", pa.string()),
        ("source", pa.string()),
    ],
    metadata={"format": FORMAT},
)
_ROWS_A_GROUP = 4096


@dataclass(frozen=True, slots=True)
class Report:
    """What a build kept and what it could not have: ``missing`` counts by reason, ``examples`` names some of each."""

    rows: int
    units: int
    missing: dict[str, int]
    examples: dict[str, list[str]]


def write_rows(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Write rows to a Parquet file (through a temporary file, so that a broken build leaves nothing) and count them."""
    partial = path.with_name(path.name + ".partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    count, batch = 0, []
    with pq.ParquetWriter(partial, SCHEMA, compression="zstd", dictionary_pagesize_limit=64 << 20) as writer:
        for row in rows:
            batch.append(row)
            if len(batch) == _ROWS_A_GROUP:
                writer.write_table(pa.Table.from_pylist(batch, SCHEMA))
                count, batch = count + len(batch), []
        if batch:
            writer.write_table(pa.Table.from_pylist(batch, SCHEMA))
            count += len(batch)
    partial.replace(path)
    return count


def read_rows(paths: Sequence[Path], splits: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of data sets, one after another; ``splits`` keeps only those.

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    for table in read_tables(paths, splits):
        yield from table.to_pylist(maps_as_pydicts="strict")


def read_tables(paths: Sequence[Path], splits: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of data sets, some thousands at a time; ``splits`` keeps only those.

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    for path in paths:
        try:
            file = pq.ParquetFile(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from None
        if (file.schema_arrow.metadata or {}).get(b"format") != FORMAT.encode():
            raise DataError(f"{path}: not a data set of format {FORMAT}; build it with `rlm-lsp data build`")
        for batch in file.iter_batches(_ROWS_A_GROUP):
            table = pa.Table.from_batches([batch])
            if splits is not None:
                table = table.filter(pc.is_in(table["split"], pa.array(list(splits))))
            yield table
