"""Measured labels of our own functions -> rows of basis ``call``, each edit with the row that it is an edit of.

The labels hold the text: the module around a function, in which the unit and its callees are found as in a user's file.
Whole families of functions are held out; a function and its edits form one group.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from rlm_core.cost.analysis import work_facts
from rlm_core.cost.scope import ModuleScope
from rlm_core.errors import DataError
from rlm_core.source.call_graph import CallGraph, ResolvedCalls
from rlm_core.source.module_index import index_module
from rlm_core.source.parsed import ParsedSource
from rlm_core.training.datasets.builder import Progress, RowBuilder, read_labels
from rlm_core.training.datasets.functions import DEVICE, LATENCY_FLOOR_SECONDS, RUNTIME
from rlm_core.training.datasets.schema import HAND_WRITTEN, size_columns, write_calls, write_facts
from rlm_core.training.datasets.splits import split_of
from rlm_core.types import CalledFunction, Calls, CallSite

LABELS = Path(__file__).with_name("labels.jsonl.gz")
HAND_WRITTEN_LABELS = Path(__file__).with_name("hand_written_labels.jsonl.gz")
LITERAL_LABELS = Path(__file__).with_name("literal_labels.jsonl.gz")
MEMORY_FLOOR_BYTES = 64.0
HELD_OUT = "edit"
NEUTRAL = "neutral-"  # kinds of edits that should change no cost start so

_FIELDS = frozenset({"group", "family", "functions", "python", "date", "machine"})
_METRICS = ("latency", "memory")


@dataclass(frozen=True, slots=True)
class _Code:
    """The parts of a function that the model reads: its module, text, callees, facts of its work, and calls.

    Facts and calls are as the columns of a data set have them.
    """

    module: str
    text: str
    callees: list[dict[str, Any]]
    work: str | None
    calls: dict[str, Any] | None


def family_split(family: str) -> str:
    """``train`` or ``test``: what real functions cost is tuned and calibrated on real functions alone.

    Functions written by hand calibrate the bands of texts that fix their cost: all of them.
    """
    if family.startswith(HAND_WRITTEN):
        return "train"
    return "test" if split_of(family) == "test" else "train"


class CounterfactualBuilder(RowBuilder):
    """Rows of label files, by default of those in this folder; ``facts`` computes work facts and calls."""

    def __init__(
        self,
        labels: Sequence[Path] = (LABELS, LITERAL_LABELS, HAND_WRITTEN_LABELS),
        split: str = "auto",
        *,
        facts: bool = True,
    ) -> None:
        super().__init__(split)
        self._labels = list(chain.from_iterable(read_labels(path, _FIELDS, "counterfactual") for path in labels))
        self._facts = facts

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, group by group in the order of the label file."""
        for done, label in enumerate(self._labels, 1):
            split = family_split(label["family"]) if self._split == "auto" else self._split
            base, names = label["functions"][0], _names(label)
            for name, function in zip(names, label["functions"], strict=True):
                self._units += 1
                is_base = function is base
                code = self._code(label, function)
                for metric, value in zip(_METRICS, _values(function), strict=True):
                    self._rows += 1
                    yield {
                        "id": f"{name}/{metric}",
                        "text": code.text,
                        "callees": code.callees,
                        "language": "python",
                        "basis": "call",
                        "metric": metric,
                        "device": DEVICE,
                        "workload": RUNTIME,
                        "value": value,
                        "group": label["group"],
                        "family": label["family"],
                        "held_out": HELD_OUT,
                        "split": split,
                        "source": f"generated, {_how(function)} {label['date']} on CPython {label['python']}: {name}",
                        "edit_of": None if is_base else f"{names[0]}/{metric}",
                        "noise": None if is_base else _noise(metric, base, function),
                        "module": code.module,
                        "work": code.work,
                        "calls": code.calls,
                        "repository": None,
                        "floor": None,
                        **size_columns({}, metric),
                    }
            progress(done, len(self._labels))

    def _code(self, label: dict[str, Any], function: dict[str, Any]) -> _Code:
        """The code of a function, read as the product reads a file.

        Raises:
            DataError: the module does not define the function.
        """
        module = function["module"]
        index, graph = index_module(ParsedSource(module.encode(), "python")), CallGraph()
        for unit in index.units.values():
            if unit.qualname.rpartition(".")[2] != function["name"]:
                continue
            work = write_facts(work_facts(unit.text, ModuleScope(index, graph), unit.qualname)) if self._facts else None
            calls = write_calls(_calls(graph.call_sites(index, unit))) if self._facts else None
            callees = [{"text": callee.text, "level": callee.depth} for callee in graph.callees(index, unit)]
            return _Code(module, unit.text, callees, work, calls)
        raise DataError(f"{label['group']}: the module does not define {function['name']!r}")


def _calls(resolved: ResolvedCalls) -> Calls:
    sites = (
        CallSite(tuple(CalledFunction(unit.text) for _, unit in site.candidates), site.loops, site.branches, site.times)
        for site in resolved.sites
    )
    return Calls(tuple(sites), resolved.outside, resolved.unresolved)


def _names(label: dict[str, Any]) -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for function in label["functions"]:
        seen[function["kind"]] += 1
        again = f"-{seen[function['kind']]}" if seen[function["kind"]] > 1 else ""
        names.append(f"{label['group']}/{function['kind']}{again}")
    return names


def _how(function: dict[str, Any]) -> str:
    return "extrapolated from smaller sizes" if function.get("extrapolated") else "measured"


def _values(function: dict[str, Any]) -> tuple[float, float]:
    """Latency in seconds and peak memory in bytes, at their floors or above."""
    return max(function["latency"], LATENCY_FLOOR_SECONDS), max(float(function["memory"]), MEMORY_FLOOR_BYTES)


def _noise(metric: str, base: dict[str, Any], function: dict[str, Any]) -> float:
    """The largest log10 ratio that is noise: the wider spread of both latencies; infinite for a neutral edit."""
    if function["kind"].startswith(NEUTRAL):
        return math.inf
    return max(_spread(base), _spread(function)) if metric == "latency" else 0.0


def _spread(function: dict[str, Any]) -> float:
    """log10 of p90 over p10 of the repeated latency measurement."""
    low = max(function["spread"]["p10"], LATENCY_FLOOR_SECONDS)
    return math.log10(max(function["spread"]["p90"], low) / low)
