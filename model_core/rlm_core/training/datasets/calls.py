"""Function labels + pinned wheels -> the call graphs of packages, to train how costs of callees propagate.

One row per function: those with labels, and those that they call. Edges refer to rows by id.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

from rlm_core.source.call_graph import CallGraph, ModuleIndex, Resolved, ResolvedCalls
from rlm_core.source.function_names import FunctionNames
from rlm_core.source.work.analysis import work_facts
from rlm_core.source.work.scope import ModuleScope
from rlm_core.types import Unit

from .builder import Progress, RowBuilder, read_labels
from .cache import find_wheel, open_wheel
from .functions import LABEL_FIELDS, TEST_PACKAGES, WheelSources, values_of
from .schema import FORMAT, split_of, write_facts

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("family", pa.string()),
        ("group", pa.string()),
        ("split", pa.string()),
        ("text", pa.string()),
        ("callees", pa.list_(pa.struct([("text", pa.string()), ("level", pa.int8())]))),
        ("work", pa.string()),
        ("latency", pa.float64()),
        ("memory", pa.float64()),
        (
            "sites",
            pa.list_(
                pa.struct(
                    [
                        ("candidates", pa.list_(pa.string())),
                        ("loops", pa.int16()),
                        ("branches", pa.int16()),
                        ("times", pa.float64()),
                    ]
                )
            ),
        ),
        ("outside", pa.int32()),
        ("unresolved", pa.int32()),
    ],
    metadata={"format": FORMAT},
)


class CallGraphBuilder(RowBuilder):
    """Functions of packages with their call sites, read from wheels in a source cache."""

    def __init__(
        self, labels: Path, cache: Path, split: str = "auto", *, download: bool = True, workers: int = 2
    ) -> None:
        super().__init__(split)
        self._labels = read_labels(labels, LABEL_FIELDS, "function")
        self._cache, self._download, self._workers = cache, download, workers

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, package by package, in the order of the label file."""
        packages: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for label in self._labels:
            packages[label["package"], label["version"]].append(label)
        wheels = {key: find_wheel(self._cache, *key, download=self._download) for key in packages}
        done = 0
        with ProcessPoolExecutor(self._workers) as pool:
            futures = {key: pool.submit(_package_rows, wheels[key], labels) for key, labels in packages.items()}
            for key, future in futures.items():
                rows, left_out = future.result()
                for reason, name in left_out:
                    self._leave_out(reason, name)
                self._rows += len(rows)
                self._units += len(rows)
                yield from rows
                done += len(packages[key])
                progress(done, len(self._labels))


def _package_rows(
    wheel: Path | None, labels: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    if wheel is None:
        return [], [("wheel not found", f"{labels[0]['package']}=={labels[0]['version']}")] * len(labels)
    package = labels[0]["package"]
    rows: dict[str, dict[str, Any]] = {}
    left_out: list[tuple[str, str]] = []
    with open_wheel(wheel) as archive:
        sources = WheelSources(archive)
        graphs = _Graphs(sources)
        waiting: deque[Resolved] = deque()
        for label in labels:
            name = f"{package}:{label['module']}:{label['qualname']}"
            values = values_of(label) if not label["generator"] else {}
            if not values:
                left_out.append(("generator, coroutine or too few good calls", name))
                continue
            text, unit, index = sources.function(label)
            if text is None or unit is None or index is None:
                left_out.append(("source hash differs or file absent", name))
                continue
            group = f"{package}/{label['module']}"
            split = "test" if package in TEST_PACKAGES else split_of(group)
            row, sites = graphs.row(package, index, unit)
            rows[row["id"]] = row | {"group": group, "split": split, **values}
            waiting.extend(candidate for site in sites.sites for candidate in site.candidates)
        # What labelled functions call has no label, and its own calls are not looked up.
        for index, unit in waiting:
            if _id(package, index, unit) not in rows:
                row, _ = graphs.row(package, index, unit)
                rows[row["id"]] = row | {"split": "none", "sites": []}
    return list(rows.values()), left_out


def _id(package: str, index: ModuleIndex, unit: Unit) -> str:
    return f"{package}:{index.dotted}:{unit.qualname}"


class _Graphs:
    """The call graphs of a wheel's top-level packages."""

    def __init__(self, sources: WheelSources) -> None:
        self._sources = sources
        self._graphs: dict[str, CallGraph] = {}

    def row(self, package: str, index: ModuleIndex, unit: Unit) -> tuple[dict[str, Any], ResolvedCalls]:
        graph = self._of(index.dotted.partition(".")[0])
        sites = graph.call_sites(index, unit)
        row = {
            "id": _id(package, index, unit),
            "family": package,
            "text": unit.text,
            "callees": [{"text": callee.text, "level": callee.depth} for callee in graph.callees(index, unit)],
            "work": write_facts(work_facts(unit.text, ModuleScope(index, graph), unit.qualname)),
            "sites": [
                {
                    "candidates": [_id(package, *candidate) for candidate in site.candidates],
                    "loops": site.loops,
                    "branches": site.branches,
                    "times": site.times,
                }
                for site in sites.sites
            ],
            "outside": sites.outside,
            "unresolved": sites.unresolved,
        }
        return row, sites

    def _of(self, top: str) -> CallGraph:
        if top not in self._graphs:
            names: FunctionNames[str] = FunctionNames()
            for path in self._sources.paths(top):
                names.put(path, self._sources.read(path))

            def named(name: str) -> list[ModuleIndex] | None:
                files = names.files(name)
                return [self._sources.index(path) for path in files] if files is not None else None

            self._graphs[top] = CallGraph(self._sources.load, named)
        return self._graphs[top]
