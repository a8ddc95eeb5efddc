"""Two tables of unit costs -> one: what both machines agree on, at the scale of the first."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping

from rlm_core.cost.domain.quantities import constant
from rlm_core.cost.library.unit_costs import growth, law

from .entries import Entry
from .measuring import Cost, fit, rounded

_LEAST = 1e-10  # seconds


def merged(first: Mapping[str, Cost], second: Mapping[str, Cost], entries: Iterable[Entry]) -> dict[str, Cost]:
    """The geometric mean of two tables, with its laws fitted; the second is divided by how much slower its machine is.

    An entry of one table alone is taken from there.
    """
    listed = [entry for entry in entries if entry.name in first or entry.name in second]
    slower = slowness(first, second, listed)
    result: dict[str, Cost] = {}
    for entry in listed:
        points = []
        for n in entry.sizes:
            found = [_seconds(first[entry.name], n)] if entry.name in first else []
            found += [_seconds(second[entry.name], n) / slower] if entry.name in second else []
            points.append((_law(str((first.get(entry.name) or second[entry.name])["law"]), n, entry), _mean(found)))
        known_fixed = float((first.get(entry.name) or second[entry.name])["fixed"])
        # Where the sizes are far from 0, a fixed part would be noise.
        fixed, each = fit(points) if known_fixed else (0.0, _mean([y / x for x, y in points]))
        known = (first.get(entry.name) or second[entry.name])["law"]
        result[entry.name] = {"fixed": rounded(fixed), "each": rounded(each), "law": known}
    return result


def slowness(first: Mapping[str, Cost], second: Mapping[str, Cost], entries: Iterable[Entry]) -> float:
    """How many times slower the machine of the second table is: the median of the entries that both have."""
    return statistics.median(
        _seconds(second[entry.name], n) / _seconds(first[entry.name], n)
        for entry in entries
        if entry.name in first and entry.name in second
        for n in entry.sizes
    )


def _mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _law(name: str, n: int, entry: Entry) -> float:
    return 0.0 if entry.law == "1" else law(constant(n), *growth(name)).exact or 0.0


def _seconds(cost: Cost, n: int) -> float:
    at = law(constant(n), *growth(str(cost["law"]))).exact or 0.0
    return max(float(cost["fixed"]) + float(cost["each"]) * at, _LEAST)
