"""Parquet rows -> arrays: each distinct text once as token ids, each row as indices and numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..callgraph import MAX_CALLEES
from ..canonical import canonical
from ..data.schema import read_rows
from ..errors import DataError
from ..tokenizer import Ids, Tokenizer
from ..workload import decimal_year, slice_name

FLOORS = {"call": {"latency": 5e-8, "memory": 64.0}}


@dataclass(frozen=True, slots=True)
class Rows:
    """One entry a (unit, query): ``text``, ``slice``, ``callees (rows, 2, MAX_CALLEES)`` are indices, -1 for none."""

    ids: list[str]
    text: npt.NDArray[np.int64]
    slice: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    date: npt.NDArray[np.float64]
    callees: npt.NDArray[np.int32]
    group: npt.NDArray[np.str_]
    family: npt.NDArray[np.str_]
    held_out: npt.NDArray[np.str_]
    split: npt.NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Distinct canonical texts with their language, and the rows that refer to them."""

    texts: list[tuple[str, str]]
    rows: Rows
    slices: list[str]

    def encode(self, tokenizer: Tokenizer) -> list[Ids]:
        """The uncropped token ids of every text."""
        return [tokenizer.encode(text, language) for text, language in self.texts]


def floor_of(name: str) -> float:
    """The smallest value that the measurement of a slice resolves, in SI units; 0 when it has none."""
    basis, _, metric = name.split("/")
    return FLOORS.get(basis, {}).get(metric, 0.0)


def _canonical(key: tuple[str, str]) -> str:
    return canonical(*key)


def load_corpus(
    paths: Sequence[Path], splits: Sequence[str] | None = None, slices: Sequence[str] | None = None
) -> Corpus:
    """Read data sets. With ``slices`` (those of a trained model) rows of other slices are left out.

    Raises:
        DataError: a file is no data set, or nothing is left.
    """
    rows: list[dict[str, Any]] = []
    for row in read_rows(paths, splits):
        row["slice"] = slice_name(row["basis"], row["language"], row["metric"])
        if slices is None or row["slice"] in slices:
            rows.append(row)
    if not rows:
        raise DataError(f"{', '.join(map(str, paths))}: no rows of the wanted splits and slices")
    sources: dict[tuple[str, str], int] = {}
    for row in rows:
        sources.setdefault((row["text"], row["language"]), len(sources))
        for callee in row["callees"]:
            sources.setdefault((callee["text"], row["language"]), len(sources))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        canonicals = list(pool.map(_canonical, sources, chunksize=500))
    distinct: dict[tuple[str, str], int] = {}
    index = {
        key: distinct.setdefault((text, key[1]), len(distinct)) for key, text in zip(sources, canonicals, strict=True)
    }
    names = list(slices) if slices is not None else sorted({row["slice"] for row in rows})
    number = {name: i for i, name in enumerate(names)}
    callees = np.full((len(rows), 2, MAX_CALLEES), -1, np.int32)
    for i, row in enumerate(rows):
        for level in (1, 2):
            found = [index[callee["text"], row["language"]] for callee in row["callees"] if callee["level"] == level]
            callees[i, level - 1, : len(found[:MAX_CALLEES])] = found[:MAX_CALLEES]
    return Corpus(
        list(distinct),
        Rows(
            [row["id"] for row in rows],
            np.array([index[row["text"], row["language"]] for row in rows]),
            np.array([number[row["slice"]] for row in rows]),
            np.array([row["value"] for row in rows]),
            np.array([decimal_year(row["workload"]) for row in rows]),
            callees,
            np.array([row["group"] for row in rows]),
            np.array([row["family"] for row in rows]),
            np.array([row["held_out"] for row in rows]),
            np.array([row["split"] for row in rows]),
        ),
        names,
    )
