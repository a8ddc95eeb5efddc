"""Parquet rows -> arrays: each distinct text once as token ids, each row as indices and numbers."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rlm_core.errors import DataError
from rlm_core.inference.tokenizer import Ids, Tokenizer
from rlm_core.queries.judges import DEFAULT_JUDGE, JUDGES
from rlm_core.queries.query_vector import decimal_year, task_name, task_parts
from rlm_core.source.call_graph import MAX_CALLEES
from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.training.datasets import functions
from rlm_core.training.datasets.schema import read_tables

# What a query without a device means, by basis.
_DEVICES = {
    "call": functions.DEVICE,
    "program": DEFAULT_JUDGE,
    "kernel": "nvidia-a100-sxm4-80gb",
    "module": "nvidia-l40s",
    "network": "pixel-3",
}
_WORKLOADS = {"call": functions.RUNTIME, "module": {"backend": "eager", "dtype": "fp32"}, "network": {"batch": "1"}}
_TRAINING = {"dataset": "cifar10", "epochs": "200", "subset": "test"}
_Source = tuple[str, str, CanonicalForm]  # text, language, form
FLOORS = {"call": {"latency": 5e-8, "memory": 64.0}}


@dataclass(frozen=True, slots=True)
class Rows:
    """One entry per unit and query: ``text``, ``task``, ``query`` and ``callees (rows, 2, MAX_CALLEES)`` are indices.

    A missing callee is -1. Values ``at_floor`` of a measurement are only known not to be above it.
    """

    ids: npt.NDArray[np.str_]
    text: npt.NDArray[np.int64]
    task: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    date: npt.NDArray[np.float64]
    callees: npt.NDArray[np.int32]
    group: npt.NDArray[np.str_]
    family: npt.NDArray[np.str_]
    split: npt.NDArray[np.str_]
    at_floor: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.text)

    def chosen(self, index: npt.NDArray[np.int64]) -> Rows:
        """Some of the rows."""
        return Rows(*(getattr(self, name)[index] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Corpus:
    """Distinct canonical texts with their language, and the rows that refer to them.

    ``queries`` are the distinct (device, workload) pairs; ``forms`` the canonical forms of the texts by
    ``basis/language`` (those not listed: ``LINES``).
    """

    texts: list[tuple[str, str]]
    queries: list[tuple[str | None, dict[str, str]]]
    rows: Rows
    tasks: list[str]
    forms: Mapping[str, CanonicalForm] = field(default_factory=dict)

    def encode(self, tokenizer: Tokenizer) -> list[Ids]:
        """The uncropped token ids of every text."""
        return [tokenizer.encode(text, language) for text, language in self.texts]

    def prefixes(self) -> list[str]:
        """The distinct ``basis/language`` of the tasks."""
        return sorted({name.rpartition("/")[0] for name in self.tasks})

    def rows_of(self, prefix: str) -> npt.NDArray[np.int64]:
        """The rows of a ``basis/language``."""
        numbers = [i for i, name in enumerate(self.tasks) if name.rpartition("/")[0] == prefix]
        return np.flatnonzero(np.isin(self.rows.task, numbers))


def floor_of(name: str) -> float:
    """The smallest value that the measurement of a task resolves, in SI units; 0 if there is none."""
    basis, _, metric, judge = task_parts(name)
    if basis == "program":
        return JUDGES[judge or DEFAULT_JUDGE].floor(metric)
    return FLOORS.get(basis, {}).get(metric, 0.0)


def load_corpus(
    paths: Sequence[Path],
    splits: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    forms: Mapping[str, CanonicalForm] | None = None,
) -> Corpus:
    """Read data sets.

    Args:
        paths: Parquet files of ``rlm-lsp data build``.
        splits: rows of other splits are left out.
        tasks: those of a trained model; rows of others are left out.
        forms: the canonical forms of the texts by ``basis/language``; ``LINES`` by default.

    Raises:
        DataError: a file is not a data set, or no row is left.
    """
    numbers: dict[str, int] = {name: i for i, name in enumerate(tasks or ())}
    forms = forms or {}
    sources: dict[_Source, int] = {}
    queries: dict[tuple[str | None, str], int] = {}
    parts: list[Rows] = []
    for table in read_tables(paths, splits):
        column = {name: table[name].to_pylist() for name in ("basis", "language", "metric", "device", "text")}
        queried = zip(*(column[name] for name in ("basis", "language", "metric", "device")), strict=True)
        names = [task_name(*entry) for entry in queried]
        if tasks is None:
            for name in names:
                numbers.setdefault(name, len(numbers))
        kept = [i for i, name in enumerate(names) if name in numbers]
        if not kept:
            continue
        languages = column["language"]
        read_as = [
            (language, forms.get(f"{basis}/{language}", CanonicalForm.LINES))
            for basis, language in zip(column["basis"], languages, strict=True)
        ]
        workloads = table["workload"].to_pylist(maps_as_pydicts="strict")
        callees = np.full((len(kept), 2, MAX_CALLEES), -1, np.int32)
        for place, (i, called) in enumerate(zip(kept, table["callees"].take(kept).to_pylist(), strict=True)):
            for level in (1, 2):
                texts = [callee["text"] for callee in called if callee["level"] == level][:MAX_CALLEES]
                callees[place, level - 1, : len(texts)] = [
                    sources.setdefault((text, *read_as[i]), len(sources)) for text in texts
                ]
        pairs = ((column["device"][i], json.dumps(workloads[i], sort_keys=True)) for i in kept)
        parts.append(
            Rows(
                table["id"].take(kept).to_numpy().astype(np.str_),
                np.array([sources.setdefault((column["text"][i], *read_as[i]), len(sources)) for i in kept]),
                np.array([numbers[names[i]] for i in kept]),
                np.array([queries.setdefault(query, len(queries)) for query in pairs]),
                table["value"].take(kept).to_numpy(),
                np.array([decimal_year(workloads[i]) for i in kept]),
                callees,
                table["group"].take(kept).to_numpy().astype(np.str_),
                table["family"].take(kept).to_numpy().astype(np.str_),
                table["split"].take(kept).to_numpy().astype(np.str_),
                _at_floor(table.take(kept)),
            )
        )
    if not parts:
        raise DataError(f"{', '.join(map(str, paths))}: no rows of these splits and tasks")
    rows = Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in Rows.__slots__))
    distinct, placed = _canonicals(list(sources))
    ordered = list(tasks) if tasks is not None else sorted(numbers)
    renumbered = np.array([ordered.index(name) for name in numbers])
    rows = replace(
        rows,
        text=placed[rows.text],
        task=renumbered[rows.task],
        callees=np.where(rows.callees >= 0, placed[rows.callees.clip(0)], -1).astype(np.int32),
    )
    prefixes = {name.rpartition("/")[0] for name in ordered}
    read_forms = {prefix: form for prefix, form in forms.items() if prefix in prefixes}
    completed = [(device, json.loads(workload)) for device, workload in queries]
    return Corpus(distinct, completed, rows, ordered, read_forms)


def _at_floor(table: pa.Table) -> npt.NDArray[np.bool_]:
    floors = pc.fill_null(table["floor"], 0.0).to_numpy()
    found: npt.NDArray[np.bool_] = table["value"].to_numpy() <= floors
    return found


def _canonicals(sources: list[_Source]) -> tuple[list[tuple[str, str]], npt.NDArray[np.int64]]:
    """The distinct canonical texts of sources with their language, and the place of every source among them."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        canonicals = list(pool.map(_canonical, sources, chunksize=500))
    distinct: dict[tuple[str, str], int] = {}
    place = [
        distinct.setdefault((text, language), len(distinct))
        for (_, language, _), text in zip(sources, canonicals, strict=True)
    ]
    return list(distinct), np.array(place)


def _canonical(source: _Source) -> str:
    return canonical(*source)


def known_devices(corpus: Corpus) -> dict[str, list[str]]:
    """The devices with training rows, by basis, those with most rows first."""
    counts: dict[str, dict[str, int]] = {}
    train = corpus.rows.split == "train"
    for task, query in zip(corpus.rows.task[train], corpus.rows.query[train], strict=True):
        device = corpus.queries[query][0]
        if device is None:
            continue
        basis = counts.setdefault(corpus.tasks[task].split("/")[0], {})
        basis[device] = basis.get(device, 0) + 1
    return {basis: sorted(found, key=lambda name: (-found[name], name)) for basis, found in counts.items()}


def default_queries_of(corpus: Corpus) -> dict[str, Any]:
    """The device and workload that a query without them means; "today" is the last day of the training labels."""
    defaults: dict[str, Any] = {"network/accuracy": {"device": None, "workload": dict(_TRAINING)}}
    for basis, devices in known_devices(corpus).items():
        chosen = _DEVICES.get(basis, devices[0])
        workload = dict(_WORKLOADS.get(basis, {}))
        defaults[basis] = {"device": chosen if chosen in devices else devices[0], "workload": workload}
    for judge in known_devices(corpus).get("program", ()):
        if judge in JUDGES:
            workload = _judge_workload(corpus, judge)
            name = "program" if judge == defaults["program"]["device"] else f"program@{judge}"
            defaults[name] = {"device": judge, "workload": workload}
            for language, runtime in _runtimes(corpus, judge).items():
                own = {"device": judge, "workload": {**workload, "runtime": runtime}}
                defaults[f"program/{language}@{judge}"] = own
    return defaults


def _train_rows(corpus: Corpus, judge: str) -> npt.NDArray[np.int64]:
    """The training rows of a judge."""
    of_judge = np.array([device == judge for device, _ in corpus.queries])[corpus.rows.query]
    programs = np.array([name.startswith("program/") for name in corpus.tasks])[corpus.rows.task]
    return np.flatnonzero(of_judge & programs & (corpus.rows.split == "train"))


def _judge_workload(corpus: Corpus, judge: str) -> dict[str, str]:
    """Return the default workload of a judge: its date is the last day of the judge's training labels."""
    latest = float(corpus.rows.date[_train_rows(corpus, judge)].max())
    if latest <= 0:
        return {"judge": judge}
    year = int(latest)
    today = date(year, 1, 1) + timedelta(days=int((latest - year) * 365.25))
    return {"judge": judge, "date": today.isoformat()}


def _runtimes(corpus: Corpus, judge: str) -> dict[str, str]:
    """The most common runtime of each language for which most of a judge's training labels name one."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in _train_rows(corpus, judge):
        runtime = corpus.queries[corpus.rows.query[row]][1].get("runtime", "")
        counts[task_parts(corpus.tasks[corpus.rows.task[row]]).language][runtime] += 1
    named = {language: found for language, found in counts.items() if 2 * found[""] < found.total()}
    return {language: max(sorted(set(found) - {""}), key=found.__getitem__) for language, found in named.items()}
