"""The growth head of Python functions: how a cost grows with each of a function's inputs.

Input: what the facts say of an input (the cost at several sizes of it) and how the text uses it. Output: the
probability of each step of :data:`STEPS`, from boosted trees that were fitted to measured slopes of other packages'
functions, and the :class:`GrowthEstimate` of the function: the inputs that its cost grows with.

A slope is that of cost over size on logarithmic axes, up to a hundred times the sizes of a package's tests. A linear
cost of a nanosecond per character therefore counts as constant next to a microsecond, and a square that is hidden at
hundreds of items as linear. Where the facts are certain of it at the sizes of production, they decide
(:mod:`.growth_terms`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rlm_core.cost.at_sizes import evaluated, names_of
from rlm_core.cost.input_names import InputNames, input_names
from rlm_core.cost.input_uses import OF_INPUT, USES, input_uses
from rlm_core.errors import ModelError
from rlm_core.types import (
    LEAST_GROWTH,
    CodeText,
    CostFacts,
    CostTerm,
    Growth,
    GrowthClass,
    GrowthEstimate,
    UnknownCalls,
    WorkFacts,
)

from . import trees
from .growth_facts import (
    FACT_FEATURES,
    class_of,
    decided_estimate,
    fact_estimate,
    fact_features,
    follows_chain,
    input_growth,
    linear_worst_case,
    recurs,
    without_logarithms,
)
from .growth_terms import steep_term
from .trees import Forest

Array = npt.NDArray[np.float32]
INPUT_GROWTH = "input_growth.safetensors"
METRICS = ("latency", "memory")
STEPS = ("constant", "partial", "linear", "steep")
STEP_ENDS = (0.3, 0.7, 1.35)
"""The slopes between which the steps lie."""
_SIZES = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)
_TYPICAL = 10.0
_OF_TERMS = (
    "known", "items_known", "slope_1", "slope_10", "slope_100", "slope_1000", "least", "most", "degree", "logs",
    "has_items", "slope_of_items", "repeats_unknown", "slope_of_unknown", "cost",
)  # fmt: skip
FEATURES = (
    *(f"{metric}_{name}" for metric in METRICS for name in _OF_TERMS),
    *USES,
    *OF_INPUT,
    *FACT_FEATURES,
)
_NAMES = dict.fromkeys(METRICS, FEATURES)
# A cost below this is not resolved, in seconds and bytes.
_LEAST_COST = {"latency": 1e-7, "memory": 64.0}
_MOST_DECADES = 9.0
_MOST_INPUTS = 16
_FEW = 1e-30


def step_of(slope: float) -> int:
    """The number in :data:`STEPS` of a measured slope."""
    return sum(slope >= end for end in STEP_ENDS)


def inputs_of(code: CodeText) -> tuple[str, ...]:
    """The inputs of a function whose growth can be stated: those of its facts, then those that its text uses most."""
    names = input_names(code.text, is_function=True)
    found: dict[str, None] = {}
    work = code.work or WorkFacts()
    for metric in METRICS:
        for size in names_of(work.of(metric).terms):
            if (name := names.of(size)) is not None and not name.endswith("[]"):
                found[name] = None
    return tuple({**found, **dict.fromkeys(input_uses(code.text).inputs)})[:_MOST_INPUTS]


def features_of(code: CodeText, inputs: Sequence[str]) -> Array:
    """The features of some inputs of a function, ``(inputs, len(FEATURES))``."""
    work = code.work or WorkFacts()
    names = input_names(code.text, is_function=True)
    uses = input_uses(code.text)
    whole = fact_features(code.work).tolist()
    rows = []
    for name in inputs:
        row = [value for metric in METRICS for value in _term_features(code, work, names, name, metric)]
        rows.append([*row, *uses.features(name), *whole])
    return np.array(rows, np.float32).reshape(len(inputs), len(FEATURES))


def _term_features(code: CodeText, work: WorkFacts, names: InputNames, name: str, metric: str) -> list[float]:
    """The features of :data:`_OF_TERMS`: the cost over one input's size, other sizes being typical."""
    costs = work.of(metric)
    sizes = names_of(costs.terms)
    own = {size for size in sizes if (names.of(size) or size) == name}
    items = {size for size in sizes if size not in own and (names.of(size) or size).startswith(name)}
    fixed = _LEAST_COST[metric] + _guessed(costs)
    over = [_cost(costs, own, size, fixed) for size in _SIZES]
    at = _cost(costs, own, 1_000.0, fixed)
    least, most = (_cost(costs, own, 1_000.0, fixed, end) for end in ("least", "most"))
    growth = input_growth(code, metric) if code.work is not None else ()
    leading = next((factor for factor in growth if factor.size == name), Growth(name, 0.0))
    near = any(factor.size != name and factor.size.startswith(name) for factor in growth)
    repeated = [calls for calls in work.repeated if _depends_on(calls, names, name)]
    of_items = _decades(_cost(costs, items, 100.0, fixed), _cost(costs, items, 1_000.0, fixed)) if items else 0.0
    return [
        float(bool(own)),
        float(bool(items)),
        *(_decades(before, after) for before, after in pairwise(over)),
        _decades(at, least),
        _decades(at, most),
        min(leading.degree, 6.0),
        min(leading.logs, 3.0),
        float(near),
        of_items,
        float(len(repeated)),
        _decades(1 + _times(repeated, names, name, 10.0), 1 + _times(repeated, names, name, 1_000.0)),
        _decades(_LEAST_COST[metric], over[1]),
    ]


def _guessed(costs: CostFacts) -> float:
    """The part of a typical cost that stands for unknown calls."""
    if not costs.terms:
        return costs.typical
    return max(costs.typical - evaluated(costs.terms, {}, _TYPICAL).likely, 0.0)


def _cost(costs: CostFacts, sizes: set[str], size: float, fixed: float, end: str = "likely") -> float:
    if not costs.terms:
        return costs.known.likely + fixed
    amount = evaluated(costs.terms, dict.fromkeys(sizes, size), _TYPICAL)
    return float(getattr(amount, end)) + fixed


def _depends_on(calls: UnknownCalls, names: InputNames, name: str) -> bool:
    return any((names.of(size) or size) == name for size in names_of(calls.terms))


def _times(repeated: Sequence[UnknownCalls], names: InputNames, name: str, size: float) -> float:
    """How often unknown calls run at one size of an input."""

    def at(terms: tuple[CostTerm, ...]) -> float:
        own = {one: size for one in names_of(terms) if (names.of(one) or one) == name}
        return evaluated(terms, own, _TYPICAL).likely

    return sum(at(calls.terms) for calls in repeated)


def _decades(before: float, after: float) -> float:
    decades = math.log10(max(after, _FEW) / max(before, _FEW)) if after < math.inf else _MOST_DECADES
    return min(max(decades, -_MOST_DECADES), _MOST_DECADES)


class InputGrowthHead:
    """Estimates growth; loads the weights at ``path`` on first use. Safe to use from several threads.

    Without weights (None: models from before the head), only complete facts give an estimate.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @cached_property
    def forests(self) -> Mapping[str, Sequence[Forest]]:
        """The forests of each metric, one per step.

        Raises:
            ModelError: the file is missing or corrupt, or is for other features.
        """
        assert self._path is not None
        return load(self._path)

    def probabilities(self, code: CodeText, inputs: Sequence[str]) -> Mapping[str, npt.NDArray[np.float64]]:
        """The probability of each step by metric, ``(inputs, steps)``."""
        features = features_of(code, inputs)
        return {metric: step_probabilities(forests, features) for metric, forests in self.forests.items()}

    def estimates(self, code: CodeText) -> Mapping[str, GrowthEstimate]:
        """The growth of latency and memory of a function; empty for one without inputs.

        None is stated that is only in the number of arguments of a call: no input makes that large.
        """
        found = self._estimates(code)
        arguments = input_uses(code.text).arguments if found else frozenset()
        return {metric: one for metric, one in found.items() if not one.sizes or not arguments.issuperset(one.sizes)}

    def _estimates(self, code: CodeText) -> Mapping[str, GrowthEstimate]:
        inputs = inputs_of(code)
        if not inputs:
            return {}
        from_facts = fact_estimate if self._path is None else decided_estimate
        found = {metric: fact for metric in METRICS if (fact := from_facts(code, metric)) is not None}
        if self._path is None or len(found) == len(METRICS):
            return found
        table = self.probabilities(code, inputs)
        found = {metric: estimate_of(code, metric, inputs, steps) for metric, steps in table.items()} | found
        if not found["latency"].is_claim and (worst := linear_worst_case(code)) is not None:
            found["latency"] = worst
        return found


def estimate_of(code: CodeText, metric: str, inputs: Sequence[str], table: npt.NDArray[np.float64]) -> GrowthEstimate:
    """The growth of a function, from the probabilities ``(inputs, steps)`` of its inputs.

    The steepest step that is certain enough of some input decides, and the inputs are those of that step. Where none
    is, the most probable one is stated with its probability. What the facts multiply an input with is stated with it,
    unless the cost certainly does not grow with that.
    """
    constant, linear, steep = (STEPS.index(name) for name in ("constant", "linear", "steep"))
    for step in (steep, linear):
        sure = [place for place in np.argsort(-table[:, step]) if table[place, step] >= LEAST_GROWTH]
        if sure:
            names = [inputs[place] for place in sure]
            missing = _missing_factors(code, metric, names) if step == linear else []
            others = [place for place, name in enumerate(inputs) if name in missing]
            if others and max(table[place, constant] for place in others) < LEAST_GROWTH:
                both = [*sure, *others]
                return _stated(code, metric, [inputs[place] for place in both], step, float(table[both, step].min()))
            return _stated(code, metric, names, step, float(table[sure, step].min()))
    grown_nowhere = float(table[:, constant].prod())
    place, step = divmod(int(table[:, linear:].argmax()), len(STEPS) - linear)
    grown = float(table[place, linear + step])
    if grown_nowhere > grown:
        return _hardly_growing(code, metric, inputs, table, grown_nowhere)
    return _stated(code, metric, [inputs[place]], linear + step, grown)


def _missing_factors(code: CodeText, metric: str, names: Sequence[str]) -> list[str]:
    """The inputs that the facts multiply with one of some others, in the term that decides at usual sizes."""
    steep = steep_term(code, metric)
    factors = [factor.size for factor in steep.factors] if steep is not None else []
    return [name for name in factors if name not in names] if not set(factors).isdisjoint(names) else []


def _hardly_growing(
    code: CodeText, metric: str, inputs: Sequence[str], table: npt.NDArray[np.float64], constant: float
) -> GrowthEstimate:
    """Constant growth, or the slower than linear one that the facts state: a logarithm has a slope close to 0.

    What runs as often as no input says, such as a walk through linked nodes or the parts of a tree, may grow: then no
    class is stated.
    """
    leading = input_growth(code, metric)
    named = class_of(leading)
    sizes = tuple(factor.size for factor in leading)
    if named == "log n":
        return GrowthEstimate(named, constant, sizes)
    if named == "sqrt n" and sizes[0] in inputs:
        return GrowthEstimate(named, float(table[inputs.index(sizes[0]), STEPS.index("partial")]), sizes)
    if _has_unnamed_sizes(code, metric) or recurs(code, metric) or follows_chain(code.text):
        return GrowthEstimate("other", constant)
    return GrowthEstimate("1", constant)


def _has_unnamed_sizes(code: CodeText, metric: str) -> bool:
    """Return whether the facts of a cost depend on a size that is that of no input."""
    names = input_names(code.text, is_function=True)
    terms = code.work.of(metric).terms if code.work is not None else ()
    return any(names.of(size) is None for size in names_of(terms))


def _stated(code: CodeText, metric: str, inputs: list[str], step: int, probability: float) -> GrowthEstimate:
    """A step as a class: that of the facts where they agree with it, else the usual one of the step."""
    leading = tuple(factor for factor in input_growth(code, metric) if factor.size in inputs)
    named: GrowthClass = "n" if STEPS[step] == "linear" else "n^2"
    if (leading and step_of(sum(factor.degree for factor in leading)) == step) or len(leading) > 1:
        leading = without_logarithms(leading) if STEPS[step] == "steep" else leading
        named = class_of(leading)
        inputs = [factor.size for factor in leading]
    return GrowthEstimate(named, probability, tuple(inputs))


def step_scores(forests: Sequence[Forest], features: Array) -> npt.NDArray[np.float64]:
    """The scores of the steps before they become probabilities, ``(rows, steps)``."""
    return np.stack([forest.predict(features) for forest in forests], axis=1)


def step_probabilities(forests: Sequence[Forest], features: Array) -> npt.NDArray[np.float64]:
    """The probabilities of the steps, ``(rows, steps)``, from features ``(rows, len(FEATURES))``."""
    return softmax(step_scores(forests, features))


def softmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scores ``(rows, steps)`` as probabilities."""
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: npt.NDArray[np.float64] = exponentials / exponentials.sum(axis=1, keepdims=True)
    return result


def save(forests: Mapping[str, Sequence[Forest]], path: Path) -> None:
    """Write the forests of each metric, one per step."""
    flat = {
        f"{metric}/{name}": forest for metric in METRICS for name, forest in zip(STEPS, forests[metric], strict=True)
    }
    trees.save(flat, _NAMES, path)


def load(path: Path) -> dict[str, list[Forest]]:
    """Read what :func:`save` wrote.

    Raises:
        ModelError: the file is missing or corrupt, or is for other features.
    """
    flat = trees.load(path, _NAMES)
    try:
        return {metric: [flat[f"{metric}/{name}"] for name in STEPS] for metric in METRICS}
    except KeyError:
        raise ModelError(f"{path}: corrupt; reinstall the model") from None
