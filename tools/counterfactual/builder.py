"""Measured labels of generated functions -> rows of basis ``call``, each edit with the row that it is an edit of.

The labels hold the text, since it is our own. Whole families of functions are held out; a function and its edits form
one group.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_core.training.datasets.builder import Progress, RowBuilder, read_labels
from rlm_core.training.datasets.functions import DEVICE, LATENCY_FLOOR_SECONDS, RUNTIME
from rlm_core.training.datasets.schema import split_of

from .edits import CALLEE, EDITS

LABELS = Path(__file__).with_name("labels.jsonl.gz")
MEMORY_FLOOR_BYTES = 64.0
HELD_OUT = "edit"
BASE = "base"

_FIELDS = frozenset({"group", "family", "functions", "python", "date", "machine"})
_METRICS = ("latency", "memory")


def family_split(family: str) -> str:
    """``train`` or ``test``: what real functions cost is tuned and calibrated on real functions alone."""
    return "test" if split_of(family) == "test" else "train"


class CounterfactualBuilder(RowBuilder):
    """Rows of a label file, by default of the one in this folder."""

    def __init__(self, labels: Path | None = None, split: str = "auto") -> None:
        super().__init__(split)
        self._labels = read_labels(labels or LABELS, _FIELDS, "counterfactual")

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, group by group in the order of the label file."""
        for done, label in enumerate(self._labels, 1):
            split = family_split(label["family"]) if self._split == "auto" else self._split
            base, names = label["functions"][0], _names(label)
            for name, function in zip(names, label["functions"], strict=True):
                self._units += 1
                is_base = function is base
                for metric, value in zip(_METRICS, _values(function), strict=True):
                    self._rows += 1
                    yield {
                        "id": f"{name}/{metric}",
                        "text": function["text"],
                        "callees": [{"text": text, "level": 1} for text in function["helpers"]],
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
                        "source": f"generated, measured {label['date']} on CPython {label['python']}: {name}",
                        "edit_of": None if is_base else f"{names[0]}/{metric}",
                        "noise": None if is_base else _noise(metric, base, function),
                    }
            progress(done, len(self._labels))


def _names(label: dict[str, Any]) -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for function in label["functions"]:
        seen[function["kind"]] += 1
        again = f"-{seen[function['kind']]}" if seen[function["kind"]] > 1 else ""
        names.append(f"{label['group']}/{function['kind']}{again}")
    return names


def _values(function: dict[str, Any]) -> tuple[float, float]:
    """Latency in seconds and peak memory in bytes, at their floors or above."""
    return max(function["latency"], LATENCY_FLOOR_SECONDS), max(float(function["memory"]), MEMORY_FLOOR_BYTES)


def _noise(metric: str, base: dict[str, Any], function: dict[str, Any]) -> float:
    """The largest log10 ratio that is noise: the wider spread of both latencies; infinite for a neutral edit."""
    if is_neutral(function["kind"]):
        return math.inf
    return max(_spread(base), _spread(function)) if metric == "latency" else 0.0


def is_neutral(kind: str) -> bool:
    """Whether edits of a kind should change no cost."""
    return not kind.startswith(CALLEE) and EDITS[kind].neutral


def _spread(function: dict[str, Any]) -> float:
    """log10 of p90 over p10 of the repeated latency measurement."""
    low = max(function["spread"]["p10"], LATENCY_FLOOR_SECONDS)
    return math.log10(max(function["spread"]["p90"], low) / low)
