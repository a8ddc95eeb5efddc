"""Facts -> the places of a unit's text that a claim of growth rests on, and those with a cheaper way to write them.

Both are lines for a reader: they are named only where they have a large part of the cost.
"""

from __future__ import annotations

from collections.abc import Set

from rlm_core.cost.at_sizes import evaluated, names_of
from rlm_core.cost.cures import PER_ITEM
from rlm_core.cost.input_names import InputNames, input_names
from rlm_core.types import CodeText, CostOrigin, CostTerm, GrowthEstimate

from .growth_terms import STEEP_CLASSES, STEEP_DEGREE, TYPICAL_SIZE, USUAL_SIZE

_PART_OF_LARGEST = 0.3
"""The least part of the most expensive place's cost at which another place is named with it."""
_MANY = 1_000.0
"""The items at which a place with a cure has to be a large part of the latency."""
_LEAST_PART = 0.3
_LEAST_SECONDS = 1e-4
_EXPENSIVE_CALL_SECONDS = 5e-5
"""What a call of unknown cost counts here: a place is named if it is much of the cost next to slow calls too."""


def growth_origins(code: CodeText, estimate: GrowthEstimate) -> list[CostOrigin]:
    """The places that make a latency grow as an estimate claims, the most expensive first.

    Those count whose cost grows faster than linearly in the inputs of the claim, at the sizes at which a steep term is
    looked for; several only where each has a large part. Empty for a claim that no place of the text explains.
    """
    amounts = _amounts(code, estimate)
    return [origin for amount, origin in amounts if amount >= _PART_OF_LARGEST * amounts[0][0]]


def seconds_of_growth(code: CodeText, estimate: GrowthEstimate) -> float:
    """What the places that make a latency grow as an estimate claims take together at large sizes."""
    return sum(amount for amount, _ in _amounts(code, estimate))


def _amounts(code: CodeText, estimate: GrowthEstimate) -> list[tuple[float, CostOrigin]]:
    """The places that make a latency grow as an estimate claims, with their seconds at large sizes."""
    if code.work is None or code.basis != "call" or not estimate.is_claim or estimate.growth_class not in STEEP_CLASSES:
        return []
    names = input_names(code.text, is_function=True)
    sizes = set(estimate.named_sizes)
    amounts: list[tuple[float, CostOrigin]] = []
    for origin in code.work.latency.origins:
        terms = [term for term in origin.terms if _explains(term, names, sizes)]
        at = {name: USUAL_SIZE for name in names_of(terms) if _is_counted(names.of(name), sizes)}
        if terms and (amount := evaluated(terms, at, TYPICAL_SIZE).likely) > 0:
            amounts.append((amount, origin))
    return sorted(amounts, key=lambda entry: -entry[0])


def _explains(term: CostTerm, names: InputNames, sizes: Set[str]) -> bool:
    """Return whether a term grows faster than linearly in inputs, one of them of the claim if that names any."""
    factors = [(names.of(factor.size), factor) for factor in term.factors]
    counted = [(name, factor) for name, factor in factors if _is_counted(name, sizes)]
    is_steep = sum(factor.degree for _, factor in counted) > STEEP_DEGREE or any(
        factor.base > 1 for _, factor in factors
    )
    return is_steep and (not sizes or any(name in sizes for name, _ in counted))


def _is_counted(name: str | None, sizes: Set[str]) -> bool:
    """Return whether a size is of an input, or of what is inside one that a claim names; all if it names none."""
    return not sizes or (name is not None and ("[]" not in name or name in sizes))


def curable_places(code: CodeText) -> list[CostOrigin]:
    """The places at which each item costs more than it has to, the most expensive first.

    They are a large part of the latency at a thousand items of each size, calls of unknown cost included. Empty for a
    unit that waits for each item.
    """
    work = code.work
    if work is None or code.basis == "network" or work.loop_waits or not work.latency.origins:
        return []
    places = [origin for origin in work.latency.origins if origin.cure in PER_ITEM]
    if not places:
        return []
    calls = [calls.terms for calls in work.repeated if calls.name.endswith("()")]
    sizes = {
        name: _size(name) for name in names_of([*work.latency.terms, *(term for terms in calls for term in terms)])
    }
    unknown = sum(evaluated(terms, sizes).likely for terms in calls)
    whole = evaluated(work.latency.terms, sizes).likely + _EXPENSIVE_CALL_SECONDS * unknown
    amounts = [(evaluated(origin.terms, sizes).likely, origin) for origin in places]
    least = max(_LEAST_PART * whole, _LEAST_SECONDS)
    found = [(amount, origin) for amount, origin in amounts if amount >= least]
    return [origin for _, origin in sorted(found, key=lambda entry: -entry[0])]


def _size(name: str) -> float:
    return TYPICAL_SIZE if "[]" in name else _MANY
