"""Samples with the sizes of their calls' inputs -> what a measurement says about sizes.

That is the least, median and largest value of each size, rows of calls with inputs of about the same sizes, and the
first call of a process, which pays for caches and imports.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from rlm_core.measurement.types import MOST_SIZE_NAME, MOST_SIZED, MOST_SIZES, SIZE_NAME, SizedCalls, SizeSpread

from .recordings import FunctionSamples


@dataclass(frozen=True, slots=True)
class InputSummary:
    """The sizes of the inputs of a function's calls, with costs in SI units."""

    sizes: Mapping[str, SizeSpread] = field(default_factory=dict)
    sized: tuple[SizedCalls, ...] = ()
    first: float | None = None


def summarise_inputs(seen: FunctionSamples, scale: float) -> InputSummary:
    """Summarise the sizes of a function's calls; a sample times ``scale`` is in SI units.

    A row has calls whose sizes differ by less than a factor of 2 each. Of more than :data:`MOST_SIZED` rows those with
    most calls stay. First calls are in no row, unless all are.
    """
    columns = _most_common(seen.sizes)
    spreads = {name: _spread(column) for name, column in columns.items()}
    varying = [name for name, spread in spreads.items() if spread.least != spread.most]
    places = set(range(len(seen.samples))) if columns else set()
    rows: dict[tuple[int | None, ...], list[int]] = defaultdict(list)
    for place in sorted(places.difference(seen.first) or places):
        rows[tuple(_bucket(columns[name][place]) for name in varying)].append(place)
    ordered = sorted(rows.items(), key=lambda row: (-len(row[1]), _order(row[0])))[:MOST_SIZED]
    kept = [_row(seen.samples, columns, places, scale) for _, places in sorted(ordered, key=lambda row: _order(row[0]))]
    first = [seen.samples[place] for place in seen.first]
    return InputSummary(spreads, tuple(kept), max(median(first), 0.0) * scale if first else None)


def _most_common(sizes: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    """The sizes that most calls have, at most :data:`MOST_SIZES`, by name."""
    counts = {
        name: sum(not math.isnan(value) for value in column)
        for name, column in sizes.items()
        if len(name) <= MOST_SIZE_NAME and re.match(SIZE_NAME, name)
    }
    names = sorted((name for name in counts if counts[name]), key=lambda name: (-counts[name], name))
    return {name: sizes[name] for name in sorted(names[:MOST_SIZES])}


def _spread(column: Sequence[float]) -> SizeSpread:
    values = [value for value in column if not math.isnan(value)]
    return SizeSpread(min(values), median(values), max(values))


def _bucket(size: float) -> int | None:
    """The power of two of a size; below all others that of 0, and None for none."""
    if math.isnan(size):
        return None
    return math.frexp(size)[1] if size else -2000


def _order(key: tuple[int | None, ...]) -> tuple[int, ...]:
    return tuple(-3000 if bucket is None else bucket for bucket in key)


def _row(
    samples: Sequence[int], columns: Mapping[str, Sequence[float]], places: Sequence[int], scale: float
) -> SizedCalls:
    known = {
        name: [column[place] for place in places if not math.isnan(column[place])] for name, column in columns.items()
    }
    sizes = {name: median(values) for name, values in known.items() if values}
    return SizedCalls(sizes, max(median(samples[place] for place in places), 0.0) * scale, len(places))
