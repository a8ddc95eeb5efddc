"""Joins what the model predicts with what the text says: a mixture of the model's distribution and of known work.

The second part is a Student t distribution in log10 around the work that static analysis found. A small network reads
the facts and the model's quantiles and gives its weight, its shift and its width: near 1 and narrow where the text
fixes the cost, near 0 where sizes or callees are unknown. The result is truncated at the least work that the text
allows, and waits of known length are added.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from rlm_core.boundary import absorb
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.domain.quantities import part_of
from rlm_core.cost.scope import Texts
from rlm_core.errors import ModelError
from rlm_core.types import (
    FIXED_TASK,
    LEVELS,
    MEDIAN,
    Abstention,
    AbstentionCode,
    CalibrationSource,
    CauseKind,
    CodeText,
    Prediction,
    WorkFacts,
)

from .calibration import Calibration, bands

Array = npt.NDArray[np.float64]
METRICS = ("latency", "memory")
# The least amounts that differ: a nanosecond and a byte.
_SMALLEST = {"latency": 1e-9, "memory": 1.0}
_KINDS = (CauseKind.LOOP, CauseKind.RECURSION, CauseKind.CALL, CauseKind.ALLOCATION)
FEATURES = 26
# What is below a call's own cost, or below the smallest object, does not make a ratio.
LEAST_WORK = {"latency": 2e-8, "memory": 64.0}
MOST_WORK = {"latency": 1e5, "memory": 1e13}
# Below this weight the model's distribution stays as it is, bit by bit.
LEAST_WEIGHT = 0.02
# From this weight on, the band is calibrated on texts that fix their cost.
FIXED_WEIGHT = 0.5
# Unit costs are those of a reference machine: less than half of them is not believed.
FLOOR_SHARE = 0.5
# CPython keeps small objects for later: a call may take that much less than its objects add up to.
_REUSED_BYTES = 4096.0
# Where a mixture is evaluated: around the known work in units of its width, and over all of the range. The model's own
# quantiles are among these places, since its distribution has corners there, and a step where it reaches the floor.
_STANDARD, _RANGE = np.linspace(-8, 8, 257), 128
_LEAST_STEP = 1e-6  # between quantiles, in log10: those at the floor are 1e-3 below it
# Bands of texts that fix their cost, and of all others with facts: the names of their calibration start so.
FIXED, FACTS = "fixed", "facts"
_DEFINITION = re.compile(r"^[^\S\n]*(?:async\s+)?def\s+(\w+)", re.MULTILINE)
_MOST_LOG = 30.0
MOST_STATED: float = 10.0**_MOST_LOG
"""The most seconds or bytes that a prediction takes from a text, which may state infinite ones."""


def features(facts: WorkFacts, metric: str, logs: Array) -> Array:
    """Return the network's inputs, ``(FEATURES,)``, from the facts and the model's log10 quantiles at ``LEVELS``."""
    cost, smallest = facts.of(metric), _SMALLEST[metric]

    def log(value: float) -> float:
        return math.log10(min(max(value, smallest), 1e30))

    least, likely, most, typical = (
        log(value) for value in (cost.known.least, cost.known.likely, cost.known.most, cost.typical)
    )
    median, spread = float(logs[MEDIAN]), float(logs[LEVELS.index(0.9)] - logs[LEVELS.index(0.1)])
    amounts = {kind: max((c.amount for c in cost.causes if c.kind is kind), default=0.0) for kind in _KINDS}
    total = max(cost.typical, cost.known.likely, smallest)
    count = max((c.count for c in cost.causes if c.count is not None), default=1.0)
    degree = sum(entry.degree + 0.2 * entry.logs for entry in cost.growth)
    other = facts.of("memory" if metric == "latency" else "latency")
    return np.array(
        [
            median,
            spread,
            least,
            likely,
            most,
            typical,
            typical - median,
            likely - median,
            least - median,
            most - least,
            math.log1p(min(max(facts.unknown_calls, 0.0), 1e6)),
            min(facts.unknown_sizes, 6),
            float(facts.fixed),
            float(not facts.unknown_calls),
            min(degree, 4.0),
            float(any(entry.base > 1 for entry in cost.growth)),
            math.log10(facts.nodes + 1),
            *(part_of(amounts[kind], total) for kind in _KINDS),
            math.log10(min(max(count, 1.0), 1e12)),
            math.log10(min(max(other.typical, 1e-9), 1e12)),
            float(any(wait.seconds is None for wait in facts.waits)),
            math.log1p(min(max(facts.opaque, 0.0), 1e6)),
            float(not facts.opaque),
        ]
    )


@dataclass(frozen=True, slots=True)
class KnownWork:
    """The part of the distribution that the facts speak for: its weight, and centre and width in log10."""

    weight: float
    centre: float
    width: float


@dataclass(frozen=True, slots=True)
class Network:
    """Weights of the network of one metric: inputs are standardised, one hidden layer, three outputs."""

    mean: Array
    scale: Array
    hidden: Array
    hidden_bias: Array
    out: Array
    out_bias: Array

    def known_work(self, inputs: Array) -> list[KnownWork]:
        """Weight, centre and width for inputs ``(rows, FEATURES)``."""
        standardised = np.clip((inputs - self.mean) / self.scale, -8, 8)
        hidden = np.tanh(standardised @ self.hidden + self.hidden_bias)
        raw = hidden @ self.out + self.out_bias
        typical = inputs[:, 5]
        return [
            KnownWork(1 / (1 + math.exp(-float(gate))), float(at + shift), math.exp(min(max(float(width), -4.0), 1.5)))
            for at, (gate, shift, width) in zip(typical, raw, strict=True)
        ]


class WorkMixture:
    """The networks by metric."""

    def __init__(self, networks: dict[str, Network]) -> None:
        self.networks = networks

    @classmethod
    def load(cls, path: Path) -> WorkMixture:
        """Read what :meth:`save` wrote.

        Raises:
            ModelError: the file is missing or corrupt, or is not one of a mixture.
        """
        try:
            tensors = load_file(path)
            networks = {
                metric: Network(*(tensors[f"{metric}.{name}"].astype(np.float64) for name in Network.__slots__))
                for metric in METRICS
            }
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ModelError(f"{path}: not the work mixture of a model ({error}); reinstall the model") from None
        for network in networks.values():
            units = network.hidden_bias.size
            shapes = [(FEATURES,), (FEATURES,), (FEATURES, units), (units,), (units, 3), (3,)]
            if [getattr(network, name).shape for name in Network.__slots__] != shapes:
                raise ModelError(f"{path}: has other features than this version reads; reinstall the model")
            if not all(np.isfinite(getattr(network, name)).all() for name in Network.__slots__):
                raise ModelError(f"{path}: corrupt; reinstall the model")
        return cls(networks)

    def save(self, path: Path) -> None:
        """Write the networks."""
        save_file(
            {
                f"{metric}.{name}": np.asarray(getattr(network, name), dtype=np.float32)
                for metric, network in self.networks.items()
                for name in Network.__slots__
            },
            path,
        )

    def known_work(self, facts: WorkFacts, metric: str, quantiles: Sequence[float], floor: float) -> KnownWork:
        """Return the distribution of the known work, given a prediction with these quantiles."""
        logs = log_quantiles(quantiles, floor)
        return self.networks[metric].known_work(features(facts, metric, logs)[None, :])[0]


def log_quantiles(quantiles: Sequence[float], floor: float) -> Array:
    """Quantiles at ``LEVELS`` as increasing log10 values; those at the floor are spread just below it."""
    least = math.log10(floor) if floor > 0 else -_MOST_LOG
    logs = np.log10(np.maximum(np.asarray(quantiles, dtype=np.float64), 10**least * 0.999))
    result: Array = np.maximum.accumulate(logs) + _LEAST_STEP * np.arange(len(LEVELS))
    return result


def model_cdf(logs: Array, at: Array) -> Array:
    """The model's cumulative distribution at log10 values: linear between its quantiles, exponential beyond them."""
    inside = np.interp(at, logs, LEVELS)
    low, high = logs[0], logs[-1]
    rate = 1 / max(high - low, 0.2) * 8
    below = LEVELS[0] * np.exp(np.minimum((at - low) * rate, 0))
    above = 1 - (1 - LEVELS[-1]) * np.exp(-np.maximum((at - high) * rate, 0))
    return np.where(at < low, below, np.where(at > high, above, inside))


def t_cdf(standardised: Array) -> Array:
    """The cumulative distribution of Student's t with four degrees of freedom."""
    square = 1 + standardised**2 / 4
    return 0.5 + 0.375 * standardised / np.sqrt(square) * (1 - standardised**2 / square / 12)


def mixture_cdf(logs: Array, work: KnownWork, at: Array) -> Array:
    """The cumulative distribution of the mixture at log10 values."""
    return (1 - work.weight) * model_cdf(logs, at) + work.weight * t_cdf((at - work.centre) / work.width)


def mixture_quantiles(
    quantiles: Sequence[float], floor: float, work: KnownWork, levels: Sequence[float], least: float
) -> tuple[float, ...]:
    """Quantiles of the mixture at the ``levels`` that stand for ``LEVELS``, in SI units, none below ``least``.

    Those at or below the floor are 0, and above the median the floor: a band reaches at least to the floor.
    """
    logs = log_quantiles(quantiles, floor)
    around = work.centre + work.width * _STANDARD
    whole = np.linspace(min(logs[0], around[0]) - 0.5, max(logs[-1], around[-1]) + 0.5, _RANGE)
    at = np.sort(np.concatenate([logs, around, whole]))
    cumulative = mixture_cdf(logs, work, at)
    start = 0.0
    if least > 0:
        bound = math.log10(least)
        start = float(mixture_cdf(logs, work, np.array([bound]))[0])
        if start > 0.999:
            # All of the distribution contradicts the text: just above its bound.
            at, cumulative, start = bound + np.array([0.0, 0.6]), np.array([0.0, 1.0]), 0.0
    wanted = start + np.asarray(levels) * (1 - start)
    found = 10 ** np.interp(wanted, cumulative, at)
    if least > 0:
        found = np.maximum(found, least)
    found[found <= floor] = 0.0
    found[MEDIAN + 1 :] = np.maximum(found[MEDIAN + 1 :], floor)
    return tuple(found.tolist())


def truncated(quantiles: Sequence[float], floor: float, least: float) -> tuple[float, ...]:
    """The model's quantiles under the condition that the value is at least ``least``."""
    if least <= 0 or not quantiles or quantiles[0] >= least:
        return tuple(quantiles)
    nothing = KnownWork(0.0, math.log10(least), 1.0)
    return mixture_quantiles(quantiles, floor, nothing, LEVELS, least)


def known_wait(facts: WorkFacts) -> tuple[float, float]:
    """The seconds that a unit waits by its text: the least, and the likely."""
    timed = [wait.seconds for wait in facts.waits if wait.is_known and wait.seconds is not None]
    least = min(sum(seconds.least for seconds in timed), MOST_STATED)
    return least, min(max(sum(seconds.likely for seconds in timed), least), MOST_STATED)


def facts_of(code: CodeText, types: Mapping[str, str] | None = None) -> WorkFacts | None:
    """The facts of a text; of one that comes without them, those that it shows together with its callees.

    ``types`` are hints for parameters whose type the text does not show. None where there are no facts, or where the
    analysis fails.
    """
    if code.work is not None or code.language != "python" or code.basis not in ("call", "program"):
        return code.work
    functions = {match[1]: callee.text for callee in code.callees if (match := _DEFINITION.search(callee.text))}
    try:
        return work_facts(code.text, Texts(functions), types=types)
    except Exception as error:
        absorb("the analysis of a text", error)
        return None


def with_facts(
    prediction: Prediction, facts: WorkFacts | None, mixture: WorkMixture | None, calibration: Calibration
) -> Prediction:
    """A prediction of a function or program joined with the facts of its text."""
    if facts is None or not prediction.quantiles or prediction.metric not in METRICS:
        return prediction
    least = stated_floor(facts, prediction.metric)
    quantiles, banded = prediction.quantiles, prediction.bands
    if mixture is not None and prediction.basis == "call":
        work = mixture.known_work(facts, prediction.metric, quantiles, prediction.floor)
        level = calibration.exactly(f"{kind_of(facts, work)}/call/python/{prediction.metric}")
        if work.weight >= LEAST_WEIGHT and level is not None:
            quantiles = mixture_quantiles(quantiles, prediction.floor, work, level.raw_levels(), least)
            banded = bands(quantiles, level.groups, level.rows, CalibrationSource(level.name))
    bounded = truncated(quantiles, prediction.floor, least)
    waits = known_wait(facts) if prediction.metric == "latency" else (0.0, 0.0)
    if waits[1] > 0:
        # Below the median the least, above it the likely wait.
        bounded = tuple(value + waits[0 if place < MEDIAN else 1] for place, value in enumerate(bounded))
    if bounded != prediction.quantiles and banded:
        first = banded[0]
        banded = bands(bounded, first.groups, first.rows, first.source)
    return replace(prediction, median=bounded[MEDIAN], bands=banded, quantiles=bounded)


def without_end(predictions: Sequence[Prediction], facts: WorkFacts | None) -> list[Prediction]:
    """The predictions for one unit; a function that may not end has no latency."""
    if facts is None or facts.endless is None:
        return list(predictions)
    missing = Abstention(AbstentionCode.MAY_NOT_END)
    return [
        replace(prediction, median=None, bands=(), quantiles=(), growth=None, abstained=missing)
        if prediction.basis == "call" and prediction.metric == "latency" and prediction.abstained is None
        else prediction
        for prediction in predictions
    ]


def kind_of(facts: WorkFacts, work: KnownWork) -> str:
    """Return the calibration of a band: ``FIXED`` if the text fixes the cost and the network agrees, else ``FACTS``."""
    return FIXED if facts.fixed and work.weight >= FIXED_WEIGHT else FACTS


def stated_floor(facts: WorkFacts, metric: str) -> float:
    """Return the least cost that the text allows, in seconds or bytes, with a margin for the machine."""
    least = facts.of(metric).known.least
    if metric == "memory":
        least -= _REUSED_BYTES
    return min(max(least, 0.0), MOST_STATED) * FLOOR_SHARE


def is_fixed(prediction: Prediction) -> bool:
    """Return whether a prediction is for a text that fixes its cost."""
    return prediction.band is not None and prediction.band.source.task.startswith(FIXED_TASK)


def log_work(facts: WorkFacts, metric: str) -> float:
    """Log10 of the work of a text: the mean for typical and for large inputs."""
    wait = known_wait(facts)[1] if metric == "latency" else 0.0
    cost = facts.of(metric)
    least, most = LEAST_WORK[metric], MOST_WORK[metric]
    return sum(math.log10(min(max(amount + wait, least), most)) for amount in (cost.typical, cost.large)) / 2
