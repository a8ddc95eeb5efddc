"""Costs of callees propagate to their callers: a first prediction and those of what a unit calls -> a corrected one.

Every unit is predicted from its own text first. Then the costs of the functions that it calls (measured where that is
known, else predicted from their own text) are added up over its call sites, and a small network reads the sums, what
could not be resolved, and the first distribution. It gives a shift and a stretch of that distribution in log10. Nothing
is followed further than one call, so cycles need no care and a prediction depends on few texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rlm_core.errors import ModelError
from rlm_core.types import (
    LEVELS,
    MEDIAN,
    CalibrationSource,
    CalledFunction,
    Calls,
    MeasuredFunctions,
    Metric,
    Prediction,
    WorkFacts,
)

from .calibration import Calibration, bands
from .trees import fingerprint
from .work_mixture import KnownWork, is_fixed, known_wait, log_quantiles, mixture_quantiles, stated_floor

Array = npt.NDArray[np.float64]
CALLS = "calls.safetensors"
METRICS: tuple[Metric, ...] = ("latency", "memory")
# The names of the calibrations of corrected bands start so: without and with measured callees.
PREDICTED, MEASURED = "calls", "measured-calls"
_P10, _P90 = LEVELS.index(0.1), LEVELS.index(0.9)
_BELOW_MEDIAN = np.arange(len(LEVELS)) < MEDIAN
# What a call costs at the least, in seconds and bytes: sums of nothing have a logarithm.
LEAST: Mapping[str, float] = {"latency": 5e-8, "memory": 16.0}
# A loop of unknown length runs its body some times, a branch is taken at some calls: weights of sums, in log10.
_PER_LOOP, _PER_BRANCH = 0.5, -0.3
_MOST_TIMES = 1e9
MOST_STRETCH = 1.5  # of the logarithm of the stretch, either way


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The cost of one call, in log10 SI units: median and 10-90 % spread; ``known`` if it was measured."""

    median: float
    spread: float
    known: bool = False


@dataclass(frozen=True, slots=True)
class SiteEstimate:
    """A call site with the costs of its candidates, none of which is missing."""

    candidates: Sequence[CostEstimate]
    loops: int = 0
    branches: int = 0
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class Residuals:
    """The residuals of measured functions near a unit: measured minus predicted from the text, in log10.

    ``mean`` is drawn towards 0 where they are few; ``spread`` is their root mean square.
    """

    mean: float = 0.0
    count: int = 0
    spread: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float], shrink: float) -> Residuals:
        """The residuals of some functions; ``shrink`` is how many functions without residual count too."""
        if not values:
            return cls()
        square = sum(value * value for value in values) / len(values)
        return cls(sum(values) / (len(values) + shrink), len(values), math.sqrt(square))


@dataclass(frozen=True, slots=True)
class Similar:
    """The residuals of the measured functions of a package whose texts are most similar to a unit's.

    ``residual`` is their mean, in log10, weighted by a power of the similarity and drawn towards 0 where the weights
    are small; ``weight`` is the log10 of their sum, ``similarity`` the largest cosine of the n-grams, 0..1.
    """

    residual: float
    weight: float
    similarity: float

    @classmethod
    def of(cls, similarities: Array, residuals: Array) -> Similar:
        """From the ``(functions,)`` similarities and residuals of the most similar functions."""
        weights = similarities**_SHARPNESS
        total = float(weights.sum())
        largest = float(similarities.max(initial=0.0))
        return cls(float(weights @ residuals) / (total + _SHRINK_SIMILAR), math.log10(total + _LEAST_WEIGHT), largest)


MOST_SIMILAR = 16
_SHARPNESS, _SHRINK_SIMILAR, _LEAST_WEIGHT = 4, 0.01, 1e-4
_NONE = Residuals()
NONE_SIMILAR = Similar(0.0, math.log10(_LEAST_WEIGHT), 0.0)
# For the functions of a file and of a class: a class says more about its methods.
SHRINK_FILE, SHRINK_CLASS = 3.0, 2.0

FEATURES = (
    "median",
    "spread",
    "lower",
    "sites",
    "outside",
    "unresolved",
    "unresolved_share",
    "total",
    "straight",
    "looped",
    "certain",
    "largest",
    "known_total",
    "known_share",
    "known_straight_share",
    "callee_spread",
    "disagreement",
    "ambiguous",
    "loops",
    "times",
    "total_beyond",
    "straight_beyond",
    "looped_beyond",
    "largest_beyond",
    "known_beyond",
    "has_sites",
    "all_known",
    "work",
    "work_beyond",
    "unknown_calls",
    "unknown_sizes",
    "opaque",
    "nodes",
    "file_residual",
    "file_measured",
    "file_spread",
    "class_residual",
    "class_measured",
    "class_spread",
    "similar_residual",
    "similar_weight",
    "similarity",
)


def features(
    metric: str,
    logs: Array,
    sites: Sequence[SiteEstimate],
    outside: int = 0,
    unresolved: int = 0,
    facts: WorkFacts | None = None,
    of_file: Residuals = _NONE,
    of_class: Residuals = _NONE,
    similar: Similar = NONE_SIMILAR,
) -> list[float]:
    """Return the inputs of the network, in the order of ``FEATURES``.

    Args:
        metric: latency or memory.
        logs: the first prediction's log10 quantiles at ``LEVELS``.
        sites: the call sites with known or predicted costs.
        outside: calls of builtins, containers and other packages.
        unresolved: calls of unknown objects.
        facts: what static analysis knows of the unit.
        of_file: residuals of measured functions of the same file.
        of_class: residuals of measured methods of the same class.
        similar: residuals of the most similar measured functions of the package.
    """
    facts = facts or WorkFacts()
    least = math.log10(LEAST[metric])
    median = float(logs[MEDIAN])
    spread = float(logs[_P90] - logs[_P10])
    terms = []
    for site in sites:
        costs = [max(candidate.median, least) for candidate in site.candidates]
        mean = sum(costs) / len(costs)
        deviation = math.sqrt(sum((cost - mean) ** 2 for cost in costs) / len(costs))
        times = math.log10(min(max(site.times, 1.0), _MOST_TIMES))
        weight = times + _PER_LOOP * site.loops + _PER_BRANCH * site.branches
        known = sum(candidate.known for candidate in site.candidates) / len(site.candidates)
        width = sum(candidate.spread for candidate in site.candidates) / len(site.candidates)
        terms.append((mean, weight, known, width, deviation, site))

    def log_sum(values: Sequence[float]) -> float:
        return math.log10(sum(10.0**value for value in values)) if values else least - 1

    total = log_sum([mean + weight for mean, weight, *_ in terms])
    shares = [10.0 ** (mean + weight - total) for mean, weight, *_ in terms]
    straight = [term for term in terms if not term[5].loops]
    looped = [term for term in terms if term[5].loops]
    plain = log_sum([mean + weight for mean, weight, *_ in straight])
    inner = log_sum([mean + weight for mean, weight, *_ in looped])
    certain = log_sum([mean for mean, _, _, _, _, site in terms if not site.branches])
    largest = max((mean for mean, *_ in terms), default=least - 1)
    known_total = log_sum([mean + weight for mean, weight, known, *_ in terms if known == 1.0])
    known_share = sum(share * term[2] for share, term in zip(shares, terms, strict=True))
    calls = len(terms) + outside + unresolved
    work = math.log10(min(max(facts.of(metric).typical, LEAST[metric]), 1e12))
    return [
        median,
        spread,
        float(logs[MEDIAN] - logs[_P10]),
        math.log1p(len(terms)),
        math.log1p(outside),
        math.log1p(unresolved),
        unresolved / max(calls, 1),
        total,
        plain,
        inner,
        certain,
        largest,
        known_total,
        known_share,
        sum(term[2] for term in straight) / max(len(straight), 1),
        sum(share * term[3] for share, term in zip(shares, terms, strict=True)),
        sum(share * term[4] for share, term in zip(shares, terms, strict=True)),
        sum(share * (len(term[5].candidates) > 1) for share, term in zip(shares, terms, strict=True)),
        sum(share * term[5].loops for share, term in zip(shares, terms, strict=True)),
        max((term[1] for term in terms), default=0.0),
        total - median,
        plain - median,
        inner - median,
        largest - median,
        known_total - median,
        float(bool(terms)),
        float(bool(terms) and all(term[2] == 1.0 for term in terms)),
        work,
        work - median,
        math.log1p(min(max(facts.unknown_calls, 0.0), 1e6)),
        min(facts.unknown_sizes, 6),
        math.log1p(min(max(facts.opaque, 0.0), 1e6)),
        math.log10(facts.nodes + 1),
        *(entry for group in (of_file, of_class) for entry in (group.mean, math.log1p(group.count), group.spread)),
        similar.residual,
        similar.weight,
        similar.similarity,
    ]


@dataclass(frozen=True, slots=True)
class Correction:
    """A change of a prediction's distribution: a shift of its median and a factor of its width."""

    shift: float
    stretch: float

    def apply(self, logs: Array, floor: float) -> Array:
        """Return corrected log10 quantiles; ``floor`` is the least value that a measurement resolves, 0 for none.

        Quantiles below the median that are at the floor stay there: what they are is not known, so that a small shift
        does not make them more than the floor.
        """
        moved: Array = logs[MEDIAN] + self.shift + self.stretch * (logs - logs[MEDIAN])
        if floor > 0:
            is_unresolved = _BELOW_MEDIAN & (logs <= math.log10(floor))
            moved = np.where(is_unresolved, np.minimum(moved, logs), moved)
        return moved


@dataclass(frozen=True, slots=True)
class Network:
    """Weights of the network of one metric: standardised inputs, one hidden layer, shift and log stretch."""

    mean: Array
    scale: Array
    hidden: Array
    hidden_bias: Array
    out: Array
    out_bias: Array

    def corrections(self, inputs: Array) -> list[Correction]:
        """The corrections for inputs ``(rows, FEATURES)``."""
        standardised = np.clip((inputs - self.mean) / self.scale, -6, 6)
        raw = np.tanh(standardised @ self.hidden + self.hidden_bias) @ self.out + self.out_bias
        return [
            Correction(float(shift), math.exp(min(max(float(width), -MOST_STRETCH), MOST_STRETCH)))
            for shift, width in raw
        ]


class Propagation:
    """The networks by metric."""

    def __init__(self, networks: Mapping[str, Network]) -> None:
        self.networks = networks

    @classmethod
    def load(cls, path: Path) -> Propagation:
        """Read what :meth:`save` wrote.

        Raises:
            ModelError: the file is missing or corrupt, or is for other features.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "numpy") as file:
                read = (file.metadata() or {}).get("features")
                networks: dict[str, Network] = {
                    metric: Network(
                        *(file.get_tensor(f"{metric}.{name}").astype(np.float64) for name in Network.__slots__)
                    )
                    for metric in METRICS
                }
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{path}: missing or corrupt ({error}); reinstall the model") from None
        shapes = {(n.mean.shape, n.scale.shape, n.hidden.shape[:1], n.out.shape[1:]) for n in networks.values()}
        size = (len(FEATURES),)
        if read != str(fingerprint(FEATURES)) or shapes != {(size, size, size, (2,))}:
            raise ModelError(f"{path}: has other features than this version reads; reinstall the model")
        return cls(networks)

    def save(self, path: Path) -> None:
        """Write the networks."""
        from safetensors.numpy import save_file

        tensors = {
            f"{metric}.{name}": np.asarray(getattr(network, name), dtype=np.float32)
            for metric, network in self.networks.items()
            for name in Network.__slots__
        }
        save_file(tensors, path, metadata={"features": str(fingerprint(FEATURES))})


def is_open(prediction: Prediction, facts: WorkFacts | None) -> bool:
    """Return whether calls can change a prediction: not if the text fixes the cost or says how the function waits."""
    return (
        prediction.basis == "call"
        and prediction.metric in METRICS
        and bool(prediction.quantiles)
        and not is_fixed(prediction)
        and (facts is None or not known_wait(facts)[1])
    )


def estimate_of(quantiles: Sequence[float], metric: str) -> CostEstimate:
    """The estimate of a function's cost from a prediction's quantiles."""
    logs = np.log10(np.maximum(np.asarray(quantiles)[[_P10, MEDIAN, _P90]], LEAST[metric]))
    return CostEstimate(float(logs[1]), float(logs[2] - logs[0]))


def known_estimate(called: CalledFunction, metric: str) -> CostEstimate | None:
    """Return the measured cost of a function, or None if it was not measured."""
    cost = next((entry for entry in called.known if entry.metric == metric), None)
    return CostEstimate(math.log10(max(cost.median, LEAST[metric])), 0.0, True) if cost is not None else None


def site_estimates(calls: Calls, estimates: Mapping[CalledFunction, CostEstimate]) -> list[SiteEstimate]:
    """The call sites whose candidates have estimates."""
    sites = []
    for site in calls.sites:
        costs = [estimates[called] for called in site.candidates if called in estimates]
        if costs:
            sites.append(SiteEstimate(costs, site.loops, site.branches, site.times))
    return sites


def residuals(
    measured: MeasuredFunctions, metric: str, estimates: Mapping[str, CostEstimate | None], shrink: float
) -> Residuals:
    """The residuals of measured functions against the ``estimates`` of their texts."""
    values = [residual(function, metric, estimates.get(function.text)) for function in measured.functions]
    return Residuals.of([value for value in values if value is not None], shrink)


def similar_of(
    functions: Sequence[tuple[float, CalledFunction]], metric: str, estimates: Mapping[str, CostEstimate | None]
) -> Similar:
    """The residuals of measured functions, given with their similarity to a unit."""
    values = [(at, residual(function, metric, estimates.get(function.text))) for at, function in functions]
    known = [(at, value) for at, value in values if value is not None]
    return Similar.of(np.array([at for at, _ in known]), np.array([value for _, value in known]))


def residual(function: CalledFunction, metric: str, expected: CostEstimate | None) -> float | None:
    """Return a function's measured cost minus that predicted from its text, in log10; None if either is missing."""
    known = known_estimate(function, metric)
    return known.median - expected.median if known is not None and expected is not None else None


def with_calls(
    prediction: Prediction,
    facts: WorkFacts | None,
    calls: Calls,
    estimates: Mapping[CalledFunction, CostEstimate],
    around: tuple[Residuals, Residuals, Similar],
    propagation: Propagation,
    calibration: Calibration,
) -> Prediction:
    """An open prediction (:func:`is_open`) corrected by what the unit calls; as it is without a calibration."""
    metric = prediction.metric
    sites = site_estimates(calls, estimates)
    has_known = (
        around[0].count or around[2].similarity > 0 or any(cost.known for site in sites for cost in site.candidates)
    )
    kind = MEASURED if has_known else PREDICTED
    level = calibration.exactly(f"{kind}/call/python/{metric}")
    if level is None:
        return prediction
    logs = log_quantiles(prediction.quantiles, prediction.floor)
    inputs = np.array([features(metric, logs, sites, calls.outside, calls.unresolved, facts, *around)])
    corrected = propagation.networks[metric].corrections(inputs)[0].apply(logs, prediction.floor)
    least = stated_floor(facts, metric) if facts is not None else 0.0
    nothing = KnownWork(0.0, float(corrected[MEDIAN]), 1.0)
    found = mixture_quantiles(tuple(10**corrected), prediction.floor, nothing, level.raw_levels(), least)
    banded = bands(found, level.groups, level.rows, CalibrationSource(level.name))
    return replace(prediction, median=found[MEDIAN], bands=banded, quantiles=found)
