"""Labels of functions called with larger and larger inputs + pinned sources -> slopes of costs by input.

A slope is that of a cost over the size of an input, on logarithmic axes, at the largest measured sizes. Where several
inputs grew together, it belongs to the one that explains the growth alone; where none does, there is no slope.

| column | meaning |
|---|---|
| ``id`` | unique name of the function |
| ``text``, ``work`` | source text of the function, and its work facts, as in :mod:`.schema` |
| ``latency``, ``memory`` | the slope of each input's size |
| ``family``, ``split``, ``source`` | as in :mod:`.schema`; the family is the package, all of which is in one split |
"""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa

from rlm_core.types import CodeText

from .cache import find_archive, find_wheel
from .functions import PackageBuilder, PackageRows, labelled_rows, name_of, read_functions, source_of
from .schema import open_parquet, write_facts
from .splits import split_of

FORMAT = "rlm-scaled-1"
_SLOPES = pa.map_(pa.string(), pa.float64())
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "text", "work", "family", "split", "source")),
        ("latency", _SLOPES),
        ("memory", _SLOPES),
    ],
    metadata={"format": FORMAT},
)
_FIELDS = frozenset({"package", "version", "module", "qualname", "file", "firstlineno", "source_sha1", "points"})
# What each metric is called in a point, and what the measurement resolves in its unit.
_MEASURED = {"latency": ("seconds", 2e-7), "memory": ("peak", 64.0)}
_FEWEST_POINTS, _LEAST_FACTOR = 3, 10
# Two slopes in a row that differ by less, or that are both steep, are the slope of what follows.
_SETTLED, _STEEP = 0.25, 1.35
# Below the slope of a linear cost a rise shows a fixed part, with a larger slope at larger sizes.
_FLAT, _LINEAR, _RISE = 0.15, 0.7, 0.1
# The shares of a growth that an input explains alone, that a part of a sum has at least, and that is noise.
_MOST, _PART, _HARDLY, _NOISE = 0.85, 0.2, 0.1, 0.05
# Slopes of single inputs add up to that of all of them, if the cost is their product.
_SAME = 0.3
Point = dict[str, Any]


class ScaledBuilder(PackageBuilder):
    """Rows of functions with slopes, read package by package from wheels in a source cache."""

    unit_column = "id"

    def __init__(self, labels: Path, cache: Path, split: str = "auto", *, download: bool = True) -> None:
        super().__init__(labels, cache, split, download=download, fields=_FIELDS)

    def _find(self, labels: list[dict[str, Any]], package: str, version: str) -> Path | None:
        return _archive(labels[0], self._cache, download=self._download)

    def _reader(self) -> Callable[[Path | None, list[dict[str, Any]]], PackageRows]:
        return partial(labelled_rows, row_of=_ScaledRows(self._split), units_only=True)


@dataclass(frozen=True, slots=True)
class _ScaledRows:
    """One row for each function with a slope."""

    split: str

    def values(self, label: dict[str, Any]) -> dict[str, dict[str, float]] | str:
        slopes = {metric: slopes_by_input(label["points"], metric) for metric in _MEASURED}
        return slopes if any(slopes.values()) else "no settled slope"

    def rows(self, label: dict[str, Any], text: str, code: CodeText, values: dict[str, Any]) -> list[dict[str, Any]]:
        row = {
            "id": f"scaled/{name_of(label)}:{label['firstlineno']}",
            "text": text,
            "work": write_facts(code.work),
            "family": label["package"],
            "split": split_of(label["package"]) if self.split == "auto" else self.split,
            "source": source_of(label),
        }
        return [row | values]


def read_labels(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The labels of files that ``python -m tools.label_run.collect`` writes."""
    labels: list[dict[str, Any]] = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            labels += map(json.loads, file)
    return labels


def labelled_functions(
    labels: Iterable[dict[str, Any]], cache: Path, *, download: bool = True
) -> Iterator[tuple[dict[str, Any], CodeText]]:
    """The labels of a label run with their functions as ``rlm-lsp predict`` reads them, package by package.

    Those whose source is not found are left out.
    """
    packages: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for label in labels:
        packages[label["package"], label["version"]].append(label)
    for rows in packages.values():
        archive = _archive(rows[0], cache, download=download)
        for row, found in read_functions(archive, rows, units_only=True) if archive is not None else ():
            if found is not None:
                yield row, found[1]


def _archive(label: dict[str, Any], cache: Path, *, download: bool) -> Path | None:
    """The wheel of a label's package, or the archive of its repository."""
    if repository := label.get("repository"):
        return find_archive(cache, repository, label["version"], download=download)
    return find_wheel(cache, label["package"], label["version"], download=download)


def slopes_by_input(points: Sequence[Point], metric: str) -> dict[str, float]:
    """The slope of each input that grew, where the points show it.

    Args:
        points: points of a function as ``measure tests --scale`` writes them: those of all inputs that grew together,
            by ``factor``, and then those of single inputs, each at one factor.
        metric: ``latency`` or ``memory``.
    """
    key, floor = _MEASURED[metric]
    grown = points[0]["grown"]
    together = [(point["factor"], point) for point in points if point["grown"] == grown and point[key] >= 0]
    costs = [(factor, max(point[key], floor)) for factor, point in _rising(together)]
    if len(costs) < _FEWEST_POINTS or costs[-1][0] < _LEAST_FACTOR:
        return {}
    before, last = [math.log(b / a) / math.log(g / f) for (f, a), (g, b) in pairwise(costs)][-2:]
    (first, low), (end, high) = costs[-3], costs[-1]
    slope = math.log(high / low) / math.log(end / first) if min(before, last) >= _STEEP else last
    is_rising = _FLAT < last < _LINEAR and last - before > _RISE
    is_settled = (abs(last - before) < _SETTLED and not is_rising) or min(before, last) >= _STEEP
    if is_settled and last < _FLAT:
        return dict.fromkeys(grown, max(last, 0.0))
    if len(grown) == 1:
        slopes = {grown[0]: slope} if is_settled else {}
    else:
        slopes = _attributed(points, dict(costs), key, floor, slope if is_settled else None)
    ends = [point for _, point in _rising(together)][-3:]
    return {name: of_factor / _sizes_per_factor(name, ends[0], ends[-1]) for name, of_factor in slopes.items()}


def _sizes_per_factor(name: str, first: Point, last: Point) -> float:
    """The slope of a size over the factor: one half for a square matrix, of which the cells are so many times more."""
    before, after = (point["sizes"].get(name, 0) for point in (first, last))
    if not 0 < before < after:
        return 1.0
    return math.log(after / before) / math.log(last["factor"] / first["factor"])


def _rising(points: Iterable[tuple[int, Point]]) -> list[tuple[int, Point]]:
    """The points up to the first whose factor is not above that of the one before: a single input was grown there."""
    largest = 0

    def rises(entry: tuple[int, Point]) -> bool:
        nonlocal largest
        known, largest = largest, entry[0]
        return entry[0] > known

    return list(takewhile(rises, points))


def _attributed(
    points: Sequence[Point], together: dict[int, float], key: str, floor: float, slope: float | None
) -> dict[str, float]:
    """The slopes of inputs that grew together, as far as points of single inputs show them.

    An input that explains nearly all of the growth alone has its slope; one without a part in it, zero. In a sum, each
    large part has the slope of the whole; in a product, the slopes add up to it.
    """
    once = together[min(together)]
    alone = {
        point["grown"][0]: (point["factor"], max(point[key], floor))
        for point in points
        if len(point["grown"]) == 1 and point[key] >= 0 and point["factor"] in together
    }
    slopes: dict[str, float] = {}
    if not alone:
        return slopes
    factor = next(iter(alone.values()))[0]
    total = together[factor] - once
    added = {name: cost - once for name, (_, cost) in alone.items()}
    own = {name: math.log(cost / once) / math.log(factor) for name, (_, cost) in alone.items()}
    whole = math.log(together[factor] / once) / math.log(factor)
    is_sum = total > _HARDLY * once and abs(sum(added.values()) - total) < _HARDLY * total
    is_product = not is_sum and abs(sum(own.values()) - whole) < _SAME
    for name, growth in added.items():
        if growth < _NOISE * once and (total <= _HARDLY * once or growth < _HARDLY * total):
            slopes[name] = 0.0
        elif slope is not None and total > _HARDLY * once and growth > (_PART if is_sum else _MOST) * total:
            slopes[name] = slope
        elif is_product and own[name] > _STEEP / 2:
            slopes[name] = own[name]
    return slopes


def read_slopes(path: Path) -> list[dict[str, Any]]:
    """The rows of a data set of slopes.

    Raises:
        DataError: the file is missing or is not a data set of slopes.
    """
    advice = "build it with `rlm-lsp data build scaled`"
    rows: list[dict[str, Any]] = (
        open_parquet(path, FORMAT, "a data set of slopes", advice).read().to_pylist(maps_as_pydicts="strict")
    )
    return rows
