"""Measured labels of generated functions -> rows of basis ``call``, and the pairs of a function and its edit.

The labels hold the text, since it is our own. Whole families are held out; a function and its edits form one group.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.training.datasets.functions import DEVICE, LATENCY_FLOOR_SECONDS, RUNTIME
from rlm_core.training.datasets.labels import read_labels
from rlm_core.training.datasets.schema import Report
from rlm_core.training.datasets.splits import split_of

from .edits import CALLEE, EDITS

LABELS = Path(__file__).with_name("labels.jsonl.gz")
MEMORY_FLOOR_BYTES = 64.0
HELD_OUT = "edit"
BASE = "base"

Progress = Callable[[int, int], None]
_FIELDS = frozenset({"group", "family", "functions", "python", "date", "machine"})
_METRICS = ("latency", "memory")


@dataclass(frozen=True, slots=True)
class Pair:
    """A function before and after an edit.

    ``before_id`` and ``after_id`` are row ids without their last part, ``/latency`` or ``/memory``; ``latency`` and
    ``memory`` are log10 of after over before, both clipped at the metric's floor. ``noise`` is the wider of the two
    functions' log10 of p90 over p10 of the repeated latency measurement. ``neutral`` edits should change nothing.
    ``longer`` is the sign of the change in length of text and helpers: most edits that cost make a text longer, so an
    evaluation says how it does on both sides, or takes the mean of the two.
    """

    before_id: str
    after_id: str
    kind: str
    family: str
    split: str
    latency: float
    memory: float
    noise: float
    neutral: bool
    longer: int


def family_split(family: str) -> str:
    """``train`` or ``test``: what real functions cost is tuned and calibrated on real functions alone."""
    return "test" if split_of(family) == "test" else "train"


class Builder:
    """Builds the rows of a label file, by default of the one that ships."""

    def __init__(self, labels: Path | None = None, split: str = "auto") -> None:
        self._labels = read_labels(labels or LABELS, _FIELDS, "counterfactual")
        self._split = split
        self._rows = self._units = 0

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, group by group in the order of the label file."""
        for done, label in enumerate(self._labels, 1):
            split = family_split(label["family"]) if self._split == "auto" else self._split
            for name, function in zip(_names(label), label["functions"], strict=True):
                self._units += 1
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
                    }
            progress(done, len(self._labels))

    def report(self) -> Report:
        """What was built; a label file leaves nothing out."""
        return Report(self._rows, self._units, {}, {})


def pairs(labels: Path | None = None) -> Iterator[Pair]:
    """Every function with each of its edits, in the order of the label file (by default the one that ships).

    Raises:
        DataError: the label file cannot be read.
    """
    for label in read_labels(labels or LABELS, _FIELDS, "counterfactual"):
        names = _names(label)
        base = label["functions"][0]
        for name, function in zip(names[1:], label["functions"][1:], strict=True):
            latency, memory = (
                math.log10(after / before) for before, after in zip(_values(base), _values(function), strict=True)
            )
            kind = function["kind"]
            yield Pair(
                names[0],
                name,
                kind,
                label["family"],
                family_split(label["family"]),
                latency,
                memory,
                max(_spread(base), _spread(function)),
                not kind.startswith(CALLEE) and EDITS[kind].neutral,
                (_length(function) > _length(base)) - (_length(function) < _length(base)),
            )


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


def _length(function: dict[str, Any]) -> int:
    return len(function["text"]) + sum(map(len, function["helpers"]))


def _spread(function: dict[str, Any]) -> float:
    low = max(function["spread"]["p10"], LATENCY_FLOOR_SECONDS)
    return math.log10(max(function["spread"]["p90"], low) / low)
