"""Facts -> the term that decides a cost at the sizes of production, by the inputs that it depends on.

The leading term of a sum is that of the highest degree. At ten thousand items it may still be hidden behind others, or
may be a worst case that no call has to reach. This module finds the steep term that is larger than all that is not
steep, and whether it certainly is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from rlm_core.cost.at_sizes import evaluated, names_of
from rlm_core.cost.input_names import InputNames, input_names
from rlm_core.types import CodeText, CostTerm, Growth

USUAL_SIZE = 10_000.0
"""The size of an input that claims are about: one of production, not of tests."""
PRODUCT_SIZE = 1_000.0
"""The size of each input at which a product has to decide too: they are rarely all large at once."""
TYPICAL_SIZE = 10.0
"""The size of what is inside an input, and of what no input names."""
_UNKNOWN_CALL_SECONDS = 2e-6
_TEXTS, _TEXT = frozenset({"str", "bytes", "bytearray", "memoryview"}), 100.0
"""Texts, which have so many characters where other inputs have one item."""
STEEP_DEGREE = 1.35
_LINEAR, _NEARLY_ALL, _PART = 0.9, 0.8, 0.2
_CALL_SECONDS = 2e-7
"""What a call always takes next to what its text says."""
_SHARE_TAKEN_OFF = 0.1
_DECIDING_SHARE = 0.35
"""The share of a square in a sum with a linear part at which the slope of the sum is that of a steep cost."""

STEEP_CLASSES = frozenset({"mn", "n^2", "n^3", "2^n"})


@dataclass(frozen=True, slots=True)
class SteepTerm:
    """A term that grows faster than in proportion to its inputs: its factors, and whether every call pays it."""

    factors: tuple[Growth, ...]
    is_certain: bool


def steep_term(code: CodeText, metric: str) -> SteepTerm | None:
    """The steep term that decides a cost at sizes of production; None where another term or unknown calls do."""
    work = code.work
    if work is None or code.language != "python" or code.basis != "call" or not work.of(metric).terms:
        return None
    names = input_names(code.text, is_function=True)
    groups: dict[tuple[Growth, ...], list[CostTerm]] = defaultdict(list)
    for term in map(_of_wholes, work.of(metric).terms):
        groups[_by_input(term, names)].append(term)
    if max(map(_degree, groups)) <= STEEP_DEGREE:
        return None
    calls = [one.terms for one in work.repeated if one.name.endswith("()")] if metric == "latency" else []
    texts = {name for name, hint in work.types if hint in _TEXTS}
    found = _deciding(groups, calls, names, texts, USUAL_SIZE)
    if found is None:
        return None
    smaller = _deciding(groups, calls, names, texts, PRODUCT_SIZE)
    if len(found.factors) == 1:
        # Between two steep terms a cost grows with an exponent between theirs.
        is_one = smaller is None or _degree(smaller.factors) == _degree(found.factors)
        return replace(found, is_certain=found.is_certain and is_one)
    return replace(found, is_certain=found.is_certain and smaller.is_certain) if smaller is not None else None


def linear_terms(code: CodeText, *, in_worst_case: bool = False) -> tuple[tuple[Growth, ...], ...]:
    """The linear terms of latency that every call pays, each nearly all of it at a thousand items of its input.

    Nothing that the text repeats as often as it does not say may add to them. In the worst case, those that the most
    expensive call pays: a search may have to see all items, and a way down a tree is as long as the tree is large if no
    node has two children.
    """
    work = code.work
    if work is None or code.language != "python" or code.basis != "call" or work.unknown_calls:
        return ()
    names = input_names(code.text, is_function=True)
    groups: dict[tuple[Growth, ...], list[CostTerm]] = defaultdict(list)
    unnamed: list[CostTerm] = []
    for term in map(_of_wholes, work.latency.terms):
        is_named = all(_input(names, factor.size) is not None for factor in term.factors)
        (groups[_by_input(term, names)] if is_named else unnamed).append(term)
    degrees = [*map(_degree, groups), *(sum(factor.degree for factor in term.factors) for term in unnamed)]
    if max(degrees, default=0.0) > STEEP_DEGREE or any(factor.base > 1 for factors in groups for factor in factors):
        return ()
    found = {}
    for factors, of_group in groups.items():
        sizes = {factor.size: PRODUCT_SIZE for term in of_group for factor in term.factors}
        rest = [*unnamed, *(term for other, terms in groups.items() if other != factors for term in terms)]
        amount = evaluated(of_group, sizes)
        # What hardly ever happens, such as the message of an error, is not what a call costs in the worst case.
        is_usual = amount.likely >= _PART * amount.most or _logarithm(groups, factors)
        least = amount.least if not in_worst_case else amount.most if is_usual else 0.0
        others = evaluated(rest, sizes, TYPICAL_SIZE).likely + _CALL_SECONDS
        if len(factors) == 1 and factors[0].degree >= _LINEAR and least >= _NEARLY_ALL * (least + others):
            found[factors] = least
    return tuple(factors for factors, least in found.items() if least >= _PART * max(found.values()))


def _logarithm(groups: Mapping[tuple[Growth, ...], Sequence[CostTerm]], factors: tuple[Growth, ...]) -> bool:
    """Return whether a cost usually grows with the logarithm of an input, as a way down a tree does."""
    return any(
        len(other) == 1 and other[0].size == factors[0].size and not other[0].degree for other in groups if factors
    )


def _deciding(
    groups: Mapping[tuple[Growth, ...], Sequence[CostTerm]],
    calls: Sequence[tuple[CostTerm, ...]],
    names: InputNames,
    texts: Set[str],
    size: float,
) -> SteepTerm | None:
    """The steep term that decides a cost, given by the inputs of its terms, when inputs have a size."""
    terms = [term for of_group in groups.values() for term in of_group]
    # What is taken off another size is smaller, as the width of a window over many items.
    steep_in = {
        is_added: {
            f.size for term in terms if (term.likely > 0) is is_added for f in term.factors if f.degree > STEEP_DEGREE
        }
        for is_added in (True, False)
    }
    taken_off = steep_in[False] - steep_in[True]
    sizes = {
        name: size * (_SHARE_TAKEN_OFF if name in taken_off else _TEXT if _input(names, name) in texts else 1.0)
        for name in names_of([*terms, *(term for of_call in calls for term in of_call)])
        if _input(names, name) is not None
    }
    steep = [term for factors, of_group in groups.items() if _degree(factors) > STEEP_DEGREE for term in of_group]
    rest = [term for factors, of_group in groups.items() if _degree(factors) <= STEEP_DEGREE for term in of_group]
    others = evaluated(rest, sizes, TYPICAL_SIZE).likely
    others += _UNKNOWN_CALL_SECONDS * sum(evaluated(of_call, sizes, TYPICAL_SIZE).likely for of_call in calls)
    amounts = evaluated(steep, sizes, TYPICAL_SIZE)
    if amounts.likely < _DECIDING_SHARE * (amounts.likely + others):
        return None
    leading = max(
        (factors for factors in groups if _degree(factors) > STEEP_DEGREE),
        key=lambda factors: evaluated(groups[factors], sizes, TYPICAL_SIZE).likely,
    )
    return SteepTerm(leading, amounts.least > 0 and amounts.least >= _DECIDING_SHARE * (amounts.least + others))


def _input(names: InputNames, size: str) -> str | None:
    """The input that a size is of; None for one inside an input, or of none."""
    name = names.of(size)
    return None if name is None or "[]" in name else name


def _of_wholes(term: CostTerm) -> CostTerm:
    """A term in which what is inside another of its sizes, such as the children of each node, is of typical size."""
    sizes = [factor.size for factor in term.factors]
    inside = [
        factor for factor in term.factors if any(factor.size.startswith((f"{size}.", f"{size}[")) for size in sizes)
    ]
    if not inside:
        return term
    times = TYPICAL_SIZE ** sum(factor.degree for factor in inside)
    kept = tuple(factor for factor in term.factors if factor not in inside)
    return CostTerm(term.least * times, term.likely * times, term.most * times, kept)


def _by_input(term: CostTerm, names: InputNames) -> tuple[Growth, ...]:
    """The factors of a term by input, the fastest first; what is of no input is left out."""
    merged: dict[str, Growth] = {}
    for factor in term.factors:
        name = _input(names, factor.size)
        if name is not None:
            same = merged.get(name, Growth(name, 0.0))
            base = max(same.base, 1.0) * max(factor.base, 1.0)
            merged[name] = Growth(name, same.degree + factor.degree, same.logs + factor.logs, base)
    return tuple(sorted(merged.values(), key=lambda factor: (-factor.degree, factor.size)))


def _degree(factors: tuple[Growth, ...]) -> float:
    return sum(factor.degree for factor in factors)
