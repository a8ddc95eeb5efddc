"""The rows of data sets by where their labels come from."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rlm_core.training.datasets.schema import read_tables


@dataclass(frozen=True, slots=True)
class SourceCount:
    """The rows of one source of labels by split, and their distinct groups and texts."""

    key: str
    basis: str
    rows: Mapping[str, int]
    groups: int
    texts: int


def source_of(row_id: str, basis: str) -> str:
    """The key of a row's label source: the first part of its id; for kernels, modules and networks the first two."""
    parts = row_id.split("/")
    if parts[0] in ("triton", "nas") and len(parts) > 1:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else basis


def count_sources(paths: Sequence[Path]) -> list[SourceCount]:
    """Count the rows of data sets by label source and basis, a batch at a time.

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    texts: dict[tuple[str, str], set[bytes]] = defaultdict(set)
    for path in paths:
        next(read_tables([path]), None)
        for batch in pq.ParquetFile(path).iter_batches(4096, columns=["id", "basis", "split", "group", "text"]):
            table = pa.Table.from_batches([batch])
            names = (table[name].to_pylist() for name in ("id", "basis", "split", "group"))
            coded = pc.dictionary_encode(table["text"]).combine_chunks()
            digests = [hashlib.blake2b(t.encode(), digest_size=8).digest() for t in coded.dictionary.to_pylist()]
            for name, basis, split, group, text in zip(*names, coded.indices.to_pylist(), strict=True):
                key = source_of(name, basis), basis
                rows[key][split] += 1
                groups[key].add(group)
                texts[key].add(digests[text])
    return [SourceCount(*key, dict(rows[key]), len(groups[key]), len(texts[key])) for key in rows]
