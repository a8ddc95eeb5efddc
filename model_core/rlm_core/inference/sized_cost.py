"""The latency of a function at given sizes over the one for small inputs, where its text does not fix it.

Input: a function with sizes of its inputs, its facts at these sizes, and the model's answer for small inputs. Output:
the latency at the sizes with an 80 % band, from boosted trees that were fitted to functions of packages that were
called with inputs of up to 100 times the size. A larger size never costs less: the trees only rise with what depends on
sizes.

A number is stated only where the growth head expects a slope, where the band is narrow, and for sizes and growth such
as the trees were fitted to. All of that is known before anything is measured.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from rlm_core.errors import ModelError
from rlm_core.queries.function_sizes import input_sizes, inputs_of
from rlm_core.types import LEVELS, MEDIAN, Band, CodeText, Prediction, WorkFacts

from . import input_growth, trees
from .cost_curve import COVERAGE
from .input_growth import INPUT_GROWTH, STEPS, step_probabilities
from .model_store import builtin
from .trees import Forest
from .work_mixture import known_wait, stated_floor

Array = npt.NDArray[np.float64]
Steps = Mapping[str, Array]
SIZED_COST = "sized_cost.safetensors"
RATIO, WIDTH = "ratio", "width"
"""The forests: decades above the cost for small inputs, and the natural logarithm of half of the width of the band."""
LEAST_SLOPE = 0.5
"""The expected slope of an input from which on a number is stated, and from which on it needs the size."""
MOST_WIDTH = math.log10(30)
"""The widest 80 % band of a stated number, in decades."""
# 95 % of the inputs in tests that a cost grows with have a size up to 100, and the labels go to 100 times these.
MOST_SIZE = 1e4
# In decades. Of 28 answers of development beyond it, 32 % are within a factor of 3; of 79 in the last decade before it,
# 71 %. Only 3 % of the functions grow so much in the labels.
MOST_GROWTH = 4.0
_OF_INPUT = ("slope", "log_size", "constant", "linear", "steep")
_KNOWN = ("least", "likely", "most", "typical", "floor")
_NAMED = 2  # inputs with features: those that the cost probably grows with most
_GROWTH = "growth"
FEATURES = (
    "small", "small_low", "small_high", _GROWTH, "growth_from_10",
    *(f"{name}_{place}" for place in range(_NAMED) for name in _OF_INPUT),
    *(f"known_{name}" for name in _KNOWN), *(f"{name}_over_small" for name in _KNOWN),
    "unknown_calls", "opaque", "unknown_sizes", "inputs", "largest_input", "largest", "all_sizes",
)  # fmt: skip
RISING = frozenset({
    _GROWTH, "growth_from_10", *(f"log_size_{place}" for place in range(_NAMED)),
    *(f"known_{name}" for name in _KNOWN), *(f"{name}_over_small" for name in _KNOWN),
    "unknown_calls", "opaque", "largest_input", "largest", "all_sizes",
})  # fmt: skip
"""The features that depend on the values of sizes: none of them falls with a size."""
_SLOPES = np.array([0.0, 0.5, 1.0, 2.0])  # that the steps of the growth head stand for
_LEAST_SECONDS = 5e-8
_MOST_COUNT = 1e9
_CACHED_STEPS = 256  # of functions
_NORMAL = NormalDist()
_NINTH = _NORMAL.inv_cdf(0.9)


def features_of(
    code: CodeText, at_sizes: CodeText, quantiles: Sequence[float], steps: Steps
) -> npt.NDArray[np.float32] | None:
    """The features of a function at the sizes that it comes with, ``(1, len(FEATURES))``.

    Args:
        code: the function with its sizes.
        at_sizes: the function with facts in which the sizes are fixed.
        quantiles: the latency for small inputs in seconds, at ``LEVELS``.
        steps: the probability of each of :data:`.input_growth.STEPS` by input.

    None where no input with a size is one that the cost may grow with.
    """
    work, sizes = at_sizes.work, input_sizes(code)
    logs = {name: _log(sizes[name], 1.0) for name in steps if name in sizes}
    if work is None or not logs:
        return None
    slopes = {name: slope_of(steps[name]) for name in logs}
    small = [log_seconds(quantiles[place]) for place in (MEDIAN, LEVELS.index(0.1), LEVELS.index(0.9))]
    growth = [sum(slopes[name] * (log - least) for name, log in logs.items()) for least in (0, 1)]
    leading = sorted(logs, key=lambda name: -slopes[name])[:_NAMED]
    of_inputs = [value for name in leading for value in _of_input(slopes[name], logs[name], steps[name])]
    of_inputs += [math.nan] * (len(_OF_INPUT) * _NAMED - len(of_inputs))
    costs = work.latency
    known = [_log(one) for one in (costs.known.least, costs.known.likely, costs.known.most, costs.typical)]
    known.append(_log(stated_floor(work, "latency") + known_wait(work)[0]))
    row = [
        *small,
        *growth,
        *of_inputs,
        *known,
        *(one - small[0] for one in known),
        math.log1p(min(work.unknown_calls, _MOST_COUNT)),
        math.log1p(min(work.opaque, _MOST_COUNT)),
        float(work.unknown_sizes),
        float(len(steps)),
        max(logs.values()),
        max(_log(size, 1.0) for size in sizes.values()),
        sum(logs.values()),
    ]
    return np.array([row], np.float32)


def slope_of(steps: Array) -> float:
    """The expected slope of an input."""
    return float(steps @ _SLOPES)


def log_seconds(seconds: float) -> float:
    """log10 of a latency, at least of what measurements resolve."""
    return _log(seconds, _LEAST_SECONDS)


def is_stated(code: CodeText, features: npt.NDArray[np.float32], width: float, steps: Steps) -> bool:
    """Return whether a number is stated for features ``(1, len(FEATURES))`` and a band ``width`` decades wide.

    Each input that the cost probably grows with needs a size, or the number would silently be for a small one.
    """
    sizes = input_sizes(code)
    names = (name for name in set(inputs_of(code.text, code.work).values()) if name in steps)
    grown = [sizes.get(name, math.inf) for name in names if slope_of(steps[name]) > LEAST_SLOPE]
    growth = float(features[0, FEATURES.index(_GROWTH)])
    return bool(grown) and max(grown) <= MOST_SIZE and growth <= MOST_GROWTH and width <= MOST_WIDTH


def _of_input(slope: float, log: float, steps: Array) -> tuple[float, ...]:
    return slope, log, *(float(steps[STEPS.index(name)]) for name in ("constant", "linear", "steep"))


def _log(value: float, least: float = 1e-9) -> float:
    return math.log10(min(max(value, least), 1e12))


@dataclass(frozen=True, slots=True)
class SizedCost:
    """A latency at sizes in seconds, its 80 % band, and its quantiles at ``LEVELS``."""

    median: float
    band: Band
    quantiles: tuple[float, ...]


class SizedCostHead:
    """Predicts latencies at sizes; loads the weights in a model's directory on first use.

    Without a directory, it is the model that ships. Safe to use from several threads; pickled, it is its directory.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._steps: LRUCache[tuple[str, WorkFacts | None], Steps] = LRUCache(_CACHED_STEPS)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[SizedCostHead], tuple[Path | None]]:
        return SizedCostHead, (self._directory,)

    @cached_property
    def _forests(self) -> tuple[list[Forest], dict[str, Forest]]:
        directory = self._directory or builtin()
        return input_growth.load(directory / INPUT_GROWTH)["latency"], load(directory / SIZED_COST)

    def cost(self, code: CodeText, at_sizes: CodeText, small: Prediction, least: float) -> SizedCost | None:
        """The latency of a function at the sizes that it comes with; None where it cannot be stated.

        Args:
            code: the function with its sizes and facts.
            at_sizes: the function with facts in which the sizes are fixed.
            small: the predicted latency for small inputs.
            least: the lower bound of the latency at the sizes, in seconds.

        Raises:
            ModelError: the weights are missing or corrupt, or are for other features.
        """
        _, forests = self._forests
        steps = self._steps_of(code)
        features = features_of(code, at_sizes, small.quantiles, steps)
        if features is None:
            return None
        half = half_width(forests, features)
        if not is_stated(code, features, 2 * half, steps):
            return None
        centre = log_seconds(small.quantiles[MEDIAN]) + float(forests[RATIO].predict(features)[0])
        values = (max(10 ** (centre + _NORMAL.inv_cdf(level) * half / _NINTH), least) for level in LEVELS)
        quantiles = tuple(value if value > small.floor else 0.0 for value in values)
        band = Band(quantiles[LEVELS.index(0.1)], quantiles[LEVELS.index(0.9)], COVERAGE)
        return SizedCost(quantiles[MEDIAN], band, quantiles)

    def _steps_of(self, code: CodeText) -> Steps:
        """The probability of each step by input; cached, since several sizes are asked about."""
        key = code.text, code.work
        with self._lock:
            known = self._steps.get(key)
        if known is None:
            of_growth, _ = self._forests
            inputs = input_growth.inputs_of(code)
            table = step_probabilities(of_growth, input_growth.features_of(code, inputs))
            known = dict(zip(inputs, table, strict=True))
            with self._lock:
                self._steps[key] = known
        return known


def half_width(forests: Mapping[str, Forest], features: npt.NDArray[np.float32]) -> float:
    """Half of the width of the 80 % band in decades, for features ``(1, len(FEATURES))``."""
    return math.exp(float(forests[WIDTH].predict(features)[0]))


def save(forests: Mapping[str, Forest], path: Path) -> None:
    """Write both forests."""
    trees.save(forests, _NAMES, path)


def load(path: Path) -> dict[str, Forest]:
    """Read what :func:`save` wrote.

    Raises:
        ModelError: the file is missing or corrupt, or is for other features.
    """
    forests = trees.load(path, _NAMES)
    if forests.keys() != _NAMES.keys():
        raise ModelError(f"{path}: corrupt; reinstall the model")
    return forests


_NAMES = dict.fromkeys((RATIO, WIDTH), FEATURES)
