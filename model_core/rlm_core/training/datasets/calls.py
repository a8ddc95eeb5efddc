"""Function labels + pinned wheels -> the call graphs of packages, to train how costs of callees propagate.

One row per function: those with labels, and those that they call. Edges refer to rows by id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from rlm_core.cost.analysis import work_facts
from rlm_core.cost.scope import ModuleScope
from rlm_core.source.call_graph import CallGraph, Resolved, ResolvedCalls
from rlm_core.source.function_names import FunctionNames
from rlm_core.source.module_index import ModuleIndex
from rlm_core.types import Unit

from .cache import open_wheel
from .functions import TEST_PACKAGES, PackageBuilder, PackageRows, WheelSources, values_of
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


class CallGraphBuilder(PackageBuilder):
    """Functions of packages with their call sites."""

    unit_column = "id"

    def _reader(self) -> Callable[[Path | None, list[dict[str, Any]]], PackageRows]:
        return _package_rows


def _package_rows(wheel: Path | None, labels: list[dict[str, Any]]) -> PackageRows:
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
