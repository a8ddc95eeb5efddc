"""A query as model input: the name of its task, the judge's date, and a vector of device and workload."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from rlm_core.errors import DataError
from rlm_core.types import Basis, Metric

from .devices import device_table
from .judges import DEFAULT_JUDGE, JUDGES

Array = npt.NDArray[np.float32]
_HASHED, _SPECS, _SIZES = 24, 5, 6
QUERY = _HASHED + _SPECS + _SIZES
_NUMBERS = re.compile(r"\d{1,18}(?:x\d{1,18}){0,15}\Z")
# A typical GPU: specifications are features as log2 of their ratio to it.
_TYPICAL_GPU = (1e12, 2e13, 1e14, 4e10, 100.0)


class Task(NamedTuple):
    """The parts of a task's name; ``judge`` is empty for functions and other units, and for programs of LeetCode."""

    basis: Basis
    language: str
    metric: Metric
    judge: str = ""

    @property
    def name(self) -> str:
        """The name that :func:`task_name` makes of the parts."""
        return task_name(self.basis, self.language, self.metric, self.judge or None)


def task_name(basis: str, language: str, metric: str, device: str | None = None) -> str:
    """The name of a task: a combination of basis, language and metric with one scale of outcomes.

    Judges measure programs in different ways on different inputs, so each judge has its own tasks:
    ``program/python/latency@boj``. Those of LeetCode have no suffix, and neither have those of a team's device.
    """
    own = basis == "program" and device in JUDGES and device != DEFAULT_JUDGE
    return f"{basis}/{language}/{metric}" + (f"@{device}" if own else "")


def task_parts(name: str) -> Task:
    """The parts of a name that :func:`task_name` made."""
    task, _, judge = name.partition("@")
    basis, language, metric = task.split("/")
    return Task(cast(Basis, basis), language, cast(Metric, metric), judge)


def decimal_year(workload: Mapping[str, str]) -> float:
    """The judge's date as a decimal year, 0 when the workload has none.

    Raises:
        DataError: the date is not YYYY-MM-DD.
    """
    text = workload.get("date")
    if text is None:
        return 0.0
    try:
        day = date.fromisoformat(text)
    except (ValueError, TypeError):
        raise DataError(f"workload date {text!r} is not YYYY-MM-DD; write it like 2026-01-31") from None
    return day.year + (day.timetuple().tm_yday - 1) / 365.25


def query_vector(device: str | None, workload: Mapping[str, str]) -> Array:
    """Device and workload as numbers: hashed names, the device's specifications, the sizes. Shape ``(QUERY,)``.

    The judge's date has a separate basis (``calendar``) and is left out. The array is shared.
    """
    return _query_vector(device, tuple(workload.items()))


@lru_cache(maxsize=4096)
def _query_vector(device: str | None, workload: tuple[tuple[str, str], ...]) -> Array:
    words = [f"device={device}"] if device else []
    elements: list[float] = []
    for name, value in workload:
        if _NUMBERS.match(value):
            elements.append(math.prod(int(number) for number in value.split("x")))
        elif name != "date":
            words.append(f"{name}={value}")
    hashed = np.sum([_signs(word) for word in words], axis=0) / math.sqrt(_HASHED) if words else np.zeros(_HASHED)
    entry = device_table().get(device or "")
    specs = [0.0] * _SPECS
    if entry is not None:
        known = (entry.memory_bandwidth, entry.fp32_flops, entry.fp16_flops, entry.memory, entry.multiprocessors)
        specs = [
            math.log2(value / typical) if value else 0.0 for value, typical in zip(known, _TYPICAL_GPU, strict=True)
        ]
    largest = sorted((math.log2(max(value, 1)) / 10 for value in elements), reverse=True)[: _SIZES - 1]
    sizes = [*largest, *[0.0] * (_SIZES - 1 - len(largest)), math.log1p(len(elements))]
    result = np.concatenate([hashed, specs, sizes]).astype(np.float32)
    result.flags.writeable = False
    return result


def has_sizes(workload: Mapping[str, str]) -> bool:
    """Return whether a workload names any number."""
    return any(_NUMBERS.match(value) for value in workload.values())


@lru_cache(maxsize=4096)
def _signs(word: str) -> npt.NDArray[np.float64]:
    """A fixed random direction for a word (feature hashing)."""
    random = np.random.default_rng(zlib.crc32(word.encode("utf-8", "replace")))
    return random.choice([-1.0, 1.0], _HASHED)
