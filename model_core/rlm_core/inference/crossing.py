"""From which size on one of two texts costs less than the other.

Input: two texts whose facts fix everything but one size that both depend on. Output: the size at which their sums are
equal, which is as certain as the unit costs of the analysis: about.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from rlm_core.cost.at_sizes import depends_on_nothing, evaluated, facts_at, names_of
from rlm_core.queries.function_sizes import inputs_of
from rlm_core.types import CodeText, Crossing

# Sizes between which costs are compared, and the steps per factor of ten.
_LEAST, _MOST = 1.0, 1e7
_STEPS = 4
# Sums that differ by less are equal to a reader: two digits of a ratio of unit costs are noise.
_EQUAL = math.log(1.2)
_ROUNDS = 24


def crossing(before: CodeText, after: CodeText, metric: str) -> Crossing | None:
    """The crossing of the costs of two texts; None where they have none, or several."""
    names = _inputs(before, metric) | _inputs(after, metric)
    if len(names) != 1:
        return None
    [name] = names
    first, second = _cost(before, name, metric), _cost(after, name, metric)
    if first is None or second is None:
        return None

    def log_ratio(size: float) -> float:
        return math.log(max(second(size), 1e-12) / max(first(size), 1e-12))

    decades = round(math.log10(_MOST / _LEAST) * _STEPS)
    sizes = [_LEAST * 10 ** (step / _STEPS) for step in range(decades + 1)]
    clear = [(size, ratio) for size in sizes if abs(ratio := log_ratio(size)) >= _EQUAL]
    turns = [(one, other) for one, other in pairwise(clear) if one[1] * other[1] < 0]
    if len(turns) != 1:
        return None
    (low, _), (high, last) = turns[0]
    for _ in range(_ROUNDS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if log_ratio(middle) * last > 0 else (middle, high)
    return Crossing(name, high, last < 0)


def _inputs(code: CodeText, metric: str) -> set[str]:
    """The inputs that a cost depends on; a size that is that of no input is called ``?``."""
    if code.work is None:
        return set()
    inputs = inputs_of(code.text, code.work)
    return {inputs.get(name, "?") for name in names_of(code.work.of(metric).terms)}


def _cost(code: CodeText, name: str, metric: str) -> Callable[[float], float] | None:
    """The cost of a text as a function of one size; None where it depends on more."""
    work = code.work
    if work is None:
        return None
    behind = [inner for inner, known in inputs_of(code.text, work).items() if known == name]
    if not depends_on_nothing(facts_at(work, dict.fromkeys(behind, 1.0)), metric):
        return None
    costs = work.of(metric)
    if not costs.terms:
        return lambda size: costs.known.likely
    return lambda size: evaluated(costs.terms, dict.fromkeys(behind, size)).likely
