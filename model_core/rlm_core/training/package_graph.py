"""The functions of packages and how they call each other, from data sets of call graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rlm_core.inference.propagation import METRICS
from rlm_core.queries.called_functions import MAX_MEASURED, MAX_OF_PACKAGE, random_order
from rlm_core.types import (
    CalledFunction,
    Callee,
    Calls,
    CallSite,
    CodeText,
    KnownCost,
    MeasuredFunctions,
    WorkFacts,
)

from .corpus import floor_of
from .datasets.schema import read_facts, read_rows
from .student.ngram_ridge_fit import fold_of

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_CALLEES = 12
PREFIX = "call/python"


@dataclass(frozen=True, slots=True)
class PackageGraph:
    """The functions of packages: ``texts`` are distinct, all else has one entry per function.

    ``module`` and ``owner`` number the functions' modules and classes.
    ``callees`` are text numbers at both levels, ``sites`` have function numbers, ``values`` are in SI units or NaN.
    """

    module: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    texts: list[str]
    text: npt.NDArray[np.int64]
    callees: list[tuple[list[int], list[int]]]
    facts: list[WorkFacts | None]
    sites: list[list[tuple[list[int], int, int, float]]]
    outside: npt.NDArray[np.int64]
    unresolved: npt.NDArray[np.int64]
    package: npt.NDArray[np.str_]
    split: npt.NDArray[np.str_]
    values: dict[str, Array]

    def __len__(self) -> int:
        return len(self.text)

    @property
    def fold(self) -> npt.NDArray[np.int64]:
        """The fold of each function's package."""
        return np.array([fold_of(name) for name in self.package.tolist()])

    def logs(self, metric: str) -> Array:
        """Log10 of the values, none below what the measurement resolves; NaN where unknown."""
        result: Array = np.log10(np.maximum(self.values[metric], floor_of(f"{PREFIX}/{metric}")))
        return result


def is_graph(path: Path) -> bool:
    """Return whether a data set contains call graphs of packages instead of rows."""
    try:
        return "sites" in pq.read_schema(path).names
    except (OSError, pa.ArrowInvalid):
        return False  # whoever reads the rows says what is wrong


def read_graph(paths: Sequence[Path]) -> PackageGraph:
    """The call graphs in data sets of :mod:`rlm_core.training.datasets.functions`.

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    rows: dict[str, dict[str, Any]] = {}
    for row in read_rows(paths):
        known = rows.get(row["id"])
        # A package may have been measured twice: a later row adds what is missing.
        rows[row["id"]] = row if known is None else {**row, **{k: v for k, v in known.items() if v is not None}}
    number = {name: place for place, name in enumerate(rows)}
    texts: dict[str, int] = {}

    def of(text: str) -> int:
        return texts.setdefault(text, len(texts))

    def level(row: dict[str, Any], depth: int) -> list[int]:
        return [of(entry["text"]) for entry in row["callees"] if entry["level"] == depth][:_CALLEES]

    listed = list(rows.values())
    places = [name.rpartition(":") for name in rows]
    return PackageGraph(
        module=_numbered([module for module, _, _ in places]),
        owner=_numbered([f"{module}:{name.rpartition('.')[0]}" for module, _, name in places]),
        text=np.array([of(row["text"]) for row in listed]),
        callees=[(level(row, 1), level(row, 2)) if row["split"] != "none" else ([], []) for row in listed],
        texts=list(texts),
        facts=[read_facts(row["work"]) for row in listed],
        sites=[
            [
                ([number[name] for name in site["candidates"]], site["loops"], site["branches"], site["times"])
                for site in row["sites"]
            ]
            for row in listed
        ],
        outside=np.array([row["outside"] for row in listed]),
        unresolved=np.array([row["unresolved"] for row in listed]),
        package=np.array([row["family"] for row in listed]),
        split=np.array([row["split"] for row in listed]),
        values={
            metric: np.array([np.nan if row[metric] is None else row[metric] for row in listed]) for metric in METRICS
        },
    )


def _numbered(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The same number for the same name."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names])


class Pools:
    """The measured functions that a predictor compares a function with, see :class:`GraphReader`."""

    def __init__(self, graph: PackageGraph, known: Mask) -> None:
        self._graph = graph
        self._of_package: dict[str, list[int]] = {}
        self._of_module: dict[int, list[int]] = {}
        order = sorted(np.flatnonzero(known).tolist(), key=lambda place: random_order(graph.texts[graph.text[place]]))
        for place in order:
            self._of_package.setdefault(str(graph.package[place]), []).append(place)
            self._of_module.setdefault(int(graph.module[place]), []).append(place)

    def others(self, row: int) -> list[int]:
        """Return the functions of the other files of a function's package."""
        members = self._of_package.get(str(self._graph.package[row]), ())
        module = self._graph.module[row]
        return list(islice((place for place in members if self._graph.module[place] != module), MAX_OF_PACKAGE))

    def around(self, row: int) -> npt.NDArray[np.int64]:
        """Those of its file and of the other files."""
        own = self._of_module.get(int(self._graph.module[row]), [])[:MAX_MEASURED]
        return np.array([*own, *self.others(row)], np.int64)


class GraphReader:
    """Builds the predictor's input of functions; ``measured`` functions with values are known to all others."""

    def __init__(self, graph: PackageGraph, measured: Mask) -> None:
        self._graph = graph
        self._known = [_known_costs(graph, place) if measured[place] else () for place in range(len(graph))]
        self._members: dict[int, list[int]] = {}
        known = np.array([bool(costs) for costs in self._known])
        self._pools, self._of_package = Pools(graph, known), dict[int, MeasuredFunctions]()
        for place in np.flatnonzero(known).tolist():
            self._members.setdefault(int(graph.module[place]), []).append(place)

    def _called(self, place: int) -> CalledFunction:
        return CalledFunction(self._graph.texts[self._graph.text[place]], known=self._known[place])

    def _measured(self, places: Iterable[int]) -> MeasuredFunctions:
        return MeasuredFunctions(tuple(map(self._called, places)))

    def code(self, row: int) -> CodeText:
        """Return the predictor's input of one function."""
        graph = self._graph
        sites = tuple(
            CallSite(tuple(map(self._called, candidates)), loops, branches, times)
            for candidates, loops, branches, times in graph.sites[row]
        )
        of_file = [place for place in self._members.get(int(graph.module[row]), ()) if place != row]
        of_class = [place for place in of_file if graph.owner[place] == graph.owner[row]]
        module = int(graph.module[row])
        if module not in self._of_package:
            self._of_package[module] = self._measured(self._pools.others(row))
        calls = Calls(
            sites,
            int(graph.outside[row]),
            int(graph.unresolved[row]),
            self._measured(of_file[:MAX_MEASURED]),
            self._measured(of_class[:MAX_MEASURED]),
            self._of_package[module],
        )
        callees = tuple(
            Callee(graph.texts[text], depth) for depth, texts in enumerate(graph.callees[row], 1) for text in texts
        )
        text = graph.texts[graph.text[row]]
        return CodeText(text, "python", "call", callees, work=graph.facts[row], calls=calls)


def _known_costs(graph: PackageGraph, place: int) -> tuple[KnownCost, ...]:
    values = {metric: float(graph.values[metric][place]) for metric in METRICS}
    return tuple(KnownCost(metric, value, value, value) for metric, value in values.items() if np.isfinite(value))
