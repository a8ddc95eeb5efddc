"""Device and workload of queries as a plain table of numbers for the boosting baseline."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlm_core.types import Query

from .metrics import Array

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?(?:x\d+)*\Z", re.IGNORECASE)
_NAMES, _SIZES, _DEVICES = 40, 6, 250


@dataclass(frozen=True, slots=True)
class WorkloadTable:
    """What the training queries hold: codes of devices, and of the words of each frequent name (empty: numbers)."""

    devices: dict[str, int]
    names: dict[str, dict[str, int]]

    @classmethod
    def fit(cls, queries: Sequence[Query]) -> WorkloadTable:
        """Read the most frequent names, and the devices by number of rows."""
        devices = Counter(query.device or "" for query in queries)
        values: dict[str, Counter[str]] = defaultdict(Counter)
        for query in queries:
            for name, value in query.workload.items():
                values[name][value] += 1
        frequent = sorted(values, key=lambda name: (-values[name].total(), name))[:_NAMES]
        names: dict[str, dict[str, int]] = {}
        for name in frequent:
            words = [word for word, _ in values[name].most_common() if not _NUMBER.match(word)]
            numeric = sum(count for word, count in values[name].items() if _NUMBER.match(word))
            names[name] = {} if 2 * numeric > values[name].total() else {word: i for i, word in enumerate(words)}
        return cls({device: i for i, (device, _) in enumerate(devices.most_common(_DEVICES))}, names)

    def columns(self, queries: Sequence[Query]) -> Array:
        """Device, largest sizes, their number, then one column a name. NaN where unknown. ``(rows, columns)``."""
        result = np.full((len(queries), 1 + _SIZES + 1 + len(self.names)), np.nan)
        for row, query in zip(result, queries, strict=True):
            row[0] = self.devices.get(query.device or "", np.nan)
            sizes = sorted((_size(v) for v in query.workload.values() if _NUMBER.match(v)), reverse=True)[:_SIZES]
            row[1 : 1 + len(sizes)] = sizes
            row[1 + _SIZES] = len(sizes)
            for place, (name, words) in enumerate(self.names.items(), 2 + _SIZES):
                value = query.workload.get(name)
                if value is not None:
                    row[place] = words.get(value, np.nan) if words or not _NUMBER.match(value) else _size(value)
        return result


def _size(text: str) -> float:
    """log2 of one more than the product of a shape, with the sign of a negative number."""
    value = math.prod(float(part) for part in text.lower().split("x"))
    return math.copysign(math.log2(1 + abs(value)), value) if math.isfinite(value) else math.nan
