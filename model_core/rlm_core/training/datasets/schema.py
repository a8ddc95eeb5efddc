"""The schema of a data set, one row per unit and query with values in SI units; its Parquet files.

| column | meaning |
|---|---|
| ``id`` | unique name of the row |
| ``text`` | source text of the unit, as written |
| ``callees`` | what it calls in the same package: source text and level (1 = called directly, 2 = by those) |
| ``language``, ``basis`` | as in :mod:`rlm_core.types` |
| ``metric``, ``device``, ``workload`` | the query |
| ``value`` | the measurement: seconds, bytes or a fraction |
| ``floor`` | of this measurement, in the same unit: a value at it is only known not to be above it; null without one |
| ``group`` | problem or module; all rows of a group are in one split |
| ``family`` | project group: the package or problem, which no user's code is part of |
| ``held_out`` | what a test row's model has not seen: ``package``, ``module`` or ``problem`` |
| ``split`` | ``train``, ``val``, ``cal`` or ``test`` |
| ``work`` | work facts in the context of the file, as JSON of :class:`rlm_core.types.WorkFacts`; null without facts |
| ``calls`` | the calls of a function: sites with the texts of their candidates; null where they were not resolved |
| ``repository`` | ``OWNER/NAME`` of a program's text, for splits of languages that few authors dominate; else null |
| ``source`` | where the text comes from: repository, blob and path, or package, version, file and line |
| ``sizes`` | least, median and largest value of each size of the calls' inputs; null where they were not recorded |
| ``sized`` | calls by sizes: their ``sizes``, ``median``, ``calls``, and ``scaled`` where inputs were grown; or null |
| ``first`` | the first call of a process, which pays for caches and imports; or null |

A data set of functions and edits of them (:data:`EDITS_SCHEMA`) has three more columns:

| column | meaning |
|---|---|
| ``edit_of`` | ``id`` of the row of the unedited function, same metric; null for that row itself |
| ``noise`` | log10 of the largest ratio that is noise; infinite for edits that should not change the cost |
| ``module`` | source text of the file around the unit, from which its work facts are computed |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlm_core.errors import DataError
from rlm_core.files import atomic_write
from rlm_core.types import CalledFunction, Calls, CallSite, WorkFacts

FORMAT = "rlm-data-1"
HAND_WRITTEN = "hand/"
"""What families of functions that were written by hand, to calibrate on, start with."""

SIZED_CALLS = pa.struct(
    [
        ("sizes", pa.map_(pa.string(), pa.float64())),
        ("median", pa.float64()),
        ("calls", pa.int64()),
        ("scaled", pa.bool_()),
    ]
)
# A place with calls; candidates are texts in rows of functions, and ids of rows in call graphs.
SITE = pa.struct(
    [
        ("candidates", pa.list_(pa.string())),
        ("loops", pa.int16()),
        ("branches", pa.int16()),
        ("times", pa.float64()),
    ]
)
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
        ("work", pa.string()),
        ("calls", pa.struct([("sites", pa.list_(SITE)), ("outside", pa.int32()), ("unresolved", pa.int32())])),
        ("repository", pa.string()),
        ("sizes", pa.map_(pa.string(), pa.list_(pa.float64()))),
        ("sized", pa.list_(SIZED_CALLS)),
        ("first", pa.float64()),
        ("floor", pa.float64()),
    ],
    metadata={"format": FORMAT},
)
EDITS_SCHEMA = pa.schema(
    [*SCHEMA, ("edit_of", pa.string()), ("noise", pa.float64()), ("module", pa.string())], metadata=SCHEMA.metadata
)
_ROWS_PER_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Edit:
    """The ids of two rows: a function before and after an edit."""

    before: str
    after: str


def write_facts(work: WorkFacts | None) -> str | None:
    """Work facts as the column ``work`` has them."""
    return msgspec.json.encode(work).decode() if work is not None else None


def read_facts(text: str | None) -> WorkFacts | None:
    """Read the text that :func:`write_facts` wrote.

    Raises:
        DataError: the text is not that of work facts.
    """
    try:
        return msgspec.json.decode(text, type=WorkFacts) if text else None
    except msgspec.DecodeError as error:
        raise DataError(f"column work: {error}; build the data set again") from None


def size_columns(label: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """The columns on sizes of a row, from a label row of :mod:`rlm_core.measurement.labels`."""
    return {name: (label.get(name) or {}).get(metric) for name in ("sizes", "sized", "first")}


def write_calls(calls: Calls | None) -> dict[str, Any] | None:
    """Calls as the column ``calls`` has them; what was measured of other functions is left out."""
    if calls is None:
        return None
    sites = [
        {
            "candidates": [function.text for function in site.candidates],
            "loops": site.loops,
            "branches": site.branches,
            "times": site.times,
        }
        for site in calls.sites
    ]
    return {"sites": sites, "outside": calls.outside, "unresolved": calls.unresolved}


def read_calls(value: Mapping[str, Any] | None) -> Calls | None:
    """Read what :func:`write_calls` wrote."""
    if value is None:
        return None
    sites = (
        CallSite(tuple(map(CalledFunction, site["candidates"])), site["loops"], site["branches"], site["times"])
        for site in value["sites"]
    )
    return Calls(tuple(sites), value["outside"], value["unresolved"])


def write_rows(rows: Iterable[dict[str, Any]], path: Path, schema: pa.Schema = SCHEMA) -> int:
    """Write rows to a Parquet file, whole or not at all, and count them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count, rows = 0, iter(rows)
    with (
        atomic_write(path) as partial,
        pq.ParquetWriter(partial, schema, compression="zstd", dictionary_pagesize_limit=64 << 20) as writer,
    ):
        while batch := list(islice(rows, _ROWS_PER_BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
            count += len(batch)
    return count


def read_edits(paths: Sequence[Path], splits: Sequence[str] | None = None) -> Iterator[Edit]:
    """The edits in data sets; ``splits`` keeps only those.

    Raises:
        DataError: a file is missing or is not one of our data sets, or has edits without the columns that pair them.
    """
    for path in paths:
        for table in read_tables([path], splits):
            if "edit_of" in table.schema.names:
                for before, after in zip(table["edit_of"].to_pylist(), table["id"].to_pylist(), strict=True):
                    if before is not None:
                        yield Edit(before, after)
            elif "edit" in pc.unique(table["held_out"]).to_pylist():
                raise DataError(f"{path}: has no column edit_of; build it again with `python -m tools.counterfactual`")


def open_parquet(path: Path, form: str | None, kind: str, advice: str) -> pq.ParquetFile:
    """A Parquet file, checked to be of the format ``form`` (None: any).

    Raises:
        DataError: it cannot be read or is not ``kind``; the message ends with ``advice``.
    """
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from None
    if form is not None and (file.schema_arrow.metadata or {}).get(b"format") != form.encode():
        raise DataError(f"{path}: not {kind} of format {form}; {advice}")
    return file


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
        file = open_parquet(path, FORMAT, "a data set", "build it with `rlm-lsp data build`")
        for batch in file.iter_batches(_ROWS_PER_BATCH):
            table = pa.Table.from_batches([batch])
            if splits is not None:
                table = table.filter(pc.is_in(table["split"], pa.array(list(splits))))
            yield table
