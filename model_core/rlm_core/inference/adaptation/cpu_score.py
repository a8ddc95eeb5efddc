"""A score of this machine's CPU against the one on which function labels were measured, and predictions scaled by it.

``measure`` runs a fixed benchmark of about two seconds, unless the machine is busy; ``write`` and ``read`` keep its
score in the user's cache folder; ``ScaledPredictor`` divides the latencies of function calls by it, apart from what
they wait, and widens their bands by its spread. Where there is no score, ``UnscoredPredictor`` widens the bands of
latencies that the text fixes by the spread of CPUs: they are narrower than CPUs differ.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from platformdirs import user_cache_path

from rlm_core.errors import DataError
from rlm_core.files import atomic_write
from rlm_core.inference.calibration import bands
from rlm_core.inference.predictor import Predictor, PredictorWrapper
from rlm_core.inference.work_mixture import facts_of, is_fixed, known_wait
from rlm_core.types import LEVELS, MEDIAN, CodeText, CpuScale, Prediction, Query

FORMAT = "rlm-cpu-score-1"
FILE = "cpu_score.json"
SWITCH = "RLM_LSP_CPU_SCALE"
_ROUNDS, _BLOCKS = 210, 3
# Beyond these a score says more about other load than about the CPU: load average per core, and log10 spread.
_MOST_LOAD, _MOST_SPREAD = 0.5, 0.05
# The standard deviation in log10 of the speeds of CPUs that run Python: 80 % are within a factor of 1.56 of the
# reference, which is of medium speed. Virtual machines with shared cores and laptops on battery are slower, current
# desktops twice as fast.
UNSCORED_SPREAD = 0.15
# Function labels are calls of Python code: mostly interpreter, then objects, then array code.
_SHARES = {"interpreter": 0.5, "allocation": 0.3, "numpy": 0.2}


@dataclass(frozen=True, slots=True)
class Rates:
    """Operations per second of the three parts, and the log10 standard deviation of the whole over repeats."""

    interpreter: float
    allocation: float
    numpy: float
    spread: float


@dataclass(frozen=True, slots=True)
class CpuScore:
    """A CPU relative to the reference: 2 is twice as fast. ``spread`` is in log10, ``date`` is YYYY-MM-DD."""

    interpreter: float
    allocation: float
    numpy: float
    overall: float
    spread: float
    cpu: str
    date: str


# Rates on the kind of machine where the function labels were measured: medians of ten runs of `measure_rates`, and the
# spread of the whole between those runs. A newer interpreter is compared with the reference of the same version, so
# that the score is of the CPU: the labels were measured on CPython 3.12.
REFERENCE: dict[str, Rates] = {
    "3.11": Rates(12.00e6, 4.898e6, 49_580, 0.0042),
    "3.12": Rates(10.39e6, 3.872e6, 48_260, 0.0030),
    "3.13": Rates(10.51e6, 3.697e6, 46_250, 0.0064),
}
REFERENCE_HOW = (
    "two-core x86-64 virtual machine (AMD EPYC), other load present (load average 1 to 4), 2026-11-20; ten runs of"
    " about two seconds for each of CPython 3.11.7, 3.12.1 and 3.13.0 with numpy 2.4 and 2.5"
)


def _interpreter_loop() -> int:
    """20,000 rounds of arithmetic, comparison, indexing and calls."""
    table = [3, 1, 4, 1, 5, 9, 2, 6]
    total = 0

    def step(value: int) -> int:
        return value * 3 + 1 if value & 1 else value >> 1

    for i in range(20_000):
        total = step(total + table[i & 7]) % 1_000_003
    return total


def _allocations() -> int:
    """6,000 rounds of small tuples, strings, dictionaries and lists that live for a while."""
    kept: list[dict[str, Any]] = []
    for i in range(6_000):
        kept.append({"id": i, "name": f"n{i}", "pair": (i, [i, i + 1])})
        if len(kept) > 500:
            kept = kept[250:]
    return len(kept)


_MATRIX = (np.arange(64 * 64, dtype=np.float64).reshape(64, 64) % 7) / 7
_VECTOR = (np.arange(4096, dtype=np.float64) * 0.618) % 1


def _array_code() -> float:
    """150 rounds of small array operations, as array code in tests has them."""
    total = 0.0
    for _ in range(150):
        ordered = np.sort(_VECTOR)
        total += float((np.exp(-ordered) * _VECTOR).sum()) + float((_MATRIX * 1.5 + _MATRIX.T).max())
    return total


_PARTS: dict[str, tuple[Callable[[], object], int]] = {
    "interpreter": (_interpreter_loop, 20_000),
    "allocation": (_allocations, 6_000),
    "numpy": (_array_code, 150),
}


def measure_rates() -> Rates:
    """Run the benchmark. The fastest of many short rounds counts, because other load can only slow a round down."""
    seconds: dict[str, list[float]] = {name: [] for name in _PARTS}
    for _ in range(_ROUNDS):
        for name, (work, _) in _PARTS.items():
            started = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started)

    def log_whole(chosen: slice) -> float:
        return sum(share * math.log10(_PARTS[name][1] / min(seconds[name][chosen])) for name, share in _SHARES.items())

    # The rounds of a block are apart in time, so that intermittent load shows in the spread.
    spread = statistics.stdev(log_whole(slice(block, None, _BLOCKS)) for block in range(_BLOCKS))
    best = {name: _PARTS[name][1] / min(times) for name, times in seconds.items()}
    return Rates(best["interpreter"], best["allocation"], best["numpy"], spread)


def reference() -> Rates:
    """The reference for this interpreter's version, else for the nearest version that has one."""
    wanted = sys.version_info.minor
    return REFERENCE[min(REFERENCE, key=lambda version: (abs(int(version.partition(".")[2]) - wanted), version))]


def score(rates: Rates, base: Rates) -> CpuScore:
    """The score of measured rates against reference rates.

    ``overall`` is the weighted geometric mean of the parts. ``spread`` adds, as variances, the repeats here and there
    and how far the parts differ from each other, since a function may depend on any of them.
    """
    parts = {name: getattr(rates, name) / getattr(base, name) for name in _SHARES}
    overall = sum(share * math.log10(parts[name]) for name, share in _SHARES.items())
    among = sum(share * (math.log10(parts[name]) - overall) ** 2 for name, share in _SHARES.items())
    spread = math.sqrt(rates.spread**2 + base.spread**2 + among)
    today = date.today().isoformat()
    return CpuScore(parts["interpreter"], parts["allocation"], parts["numpy"], 10**overall, spread, cpu_name(), today)


def load_problem() -> str | None:
    """The load of a machine that is too busy to be scored; None for an idle one and where the system does not say."""
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return f"load {load:.1f} on {cores} cores" if load > _MOST_LOAD * cores else None


def measure() -> CpuScore:
    """Run the benchmark (about two seconds) and score this machine.

    Raises:
        DataError: the machine is busy.
    """
    if (problem := load_problem()) is not None:
        raise DataError(f"the machine is busy ({problem}); score its CPU when it is idle")
    rates = measure_rates()
    if rates.spread > _MOST_SPREAD:
        raise DataError(
            f"the machine is busy (repeats differ by a factor of {10**rates.spread:.2f}); score its CPU when it is idle"
        )
    return score(rates, reference())


def cpu_name() -> str:
    """The name of this machine's processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass  # not Linux: use what Python knows
    return platform.processor() or platform.machine()


def default_path() -> Path:
    """The file of this user's score."""
    return user_cache_path("rlm-lsp") / FILE


def write(score: CpuScore, path: Path) -> None:
    """Write a score.

    Raises:
        DataError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            partial.write_text(json.dumps({"format": FORMAT, **asdict(score)}, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path}: the CPU score cannot be kept ({error.strerror}); check its permissions") from None


def read(path: Path) -> CpuScore | None:
    """The score in ``path``; None when it is missing, unusable or of another CPU."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            return None
        found = CpuScore(**data)
        numbers = (found.interpreter, found.allocation, found.numpy, found.overall)
        usable = all(0 < value < math.inf for value in numbers) and 0 <= found.spread < math.inf
        usable = usable and found.cpu == cpu_name() and isinstance(found.date, str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if usable else None


def enabled() -> bool:
    """Return whether latencies may be scaled: ``RLM_LSP_CPU_SCALE`` is not 0 (or false, no, off) in the environment."""
    return os.environ.get(SWITCH, "").strip().lower() not in ("0", "false", "no", "off")


def stored() -> CpuScore | None:
    """This user's score, None where ``rlm-lsp doctor --score-cpu`` has not run or scaling is off."""
    return read(default_path()) if enabled() else None


class ScaledPredictor(PredictorWrapper):
    """Another predictor with the latencies of calls on ``x86-64`` scaled to this CPU; all else passes through."""

    def __init__(self, base: Predictor, cpu: CpuScore) -> None:
        super().__init__(base)
        self.cpu = cpu

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        found = self.base.predict(texts, queries)
        return [
            [scaled(answer, self.cpu, _least_wait(code)) if _applies(answer) else answer for answer in answers]
            for code, answers in zip(texts, found, strict=True)
        ]

    def percentile(self, prediction: Prediction, language: str) -> float | None:
        """The base's percentile of the value before scaling: training values are those of the reference machine."""
        scale = prediction.band.source.cpu_scale if prediction.band is not None else None
        if prediction.median is not None and scale is not None:
            waits = min(scale.waits, prediction.median)
            median = waits + (prediction.median - waits) * self.cpu.overall
            prediction = replace(prediction, median=median, floor=prediction.floor * self.cpu.overall)
        return self.base.percentile(prediction, language)


def _applies(prediction: Prediction) -> bool:
    where = (prediction.basis, prediction.metric, prediction.device)
    return where == ("call", "latency", "x86-64") and prediction.median is not None


def _least_wait(code: CodeText) -> float:
    facts = facts_of(code)
    return known_wait(facts)[0] if facts is not None else 0.0


def scaled(prediction: Prediction, cpu: CpuScore, waits: float = 0.0) -> Prediction:
    """A prediction for this CPU: divided by its score, each side of a band widened by its spread.

    The first ``waits`` seconds, which the text waits whatever the CPU, stay as they are.
    """
    if not _applies(prediction) or prediction.median is None:
        return prediction
    ratio, waits = 1 / cpu.overall, min(waits, prediction.median)
    found = _widened(prediction, ratio, cpu.spread, waits)
    scale = CpuScale(ratio, cpu.date, waits)
    banded = tuple(replace(band, source=replace(band.source, cpu_scale=scale)) for band in found.bands)
    return replace(found, bands=banded)


def _widened(prediction: Prediction, ratio: float, spread: float, waits: float) -> Prediction:
    """Multiply all but the first ``waits`` seconds of a prediction by ``ratio`` and widen its bands by ``spread``.

    Widening is in log space and in quadrature, by as many standard deviations as a normal band of that coverage has.
    """
    assert prediction.median is not None, "callers check"
    floor = prediction.floor
    # Below the floor there is no scale to widen on: the floor replaces a median below it.
    centre = max(prediction.median - waits, floor)

    def moved(level: float, end: float) -> float:
        """A quantile of the time without waits."""
        slack = abs(NormalDist().inv_cdf(level)) * spread
        if level < 0.5:
            if end > 0 and centre > 0:
                end = centre * 10 ** -math.hypot(math.log10(centre / min(end, centre)), slack)
            return 0.0 if end <= floor else end * ratio
        end = max(end, centre)
        if centre > 0 and end < math.inf:
            end = centre * 10 ** math.hypot(math.log10(end / centre), slack)
        return end * ratio

    quantiles = zip(LEVELS, prediction.quantiles, strict=True)
    found = tuple(waits + moved(level, max(value - waits, 0.0)) for level, value in quantiles)
    median = waits + (prediction.median - waits) * ratio
    found = (*found[:MEDIAN], median, *found[MEDIAN + 1 :])
    band = prediction.bands[0]
    banded = bands(found, band.groups, band.rows, band.source)
    return replace(prediction, median=median, floor=floor * ratio, bands=banded, quantiles=found)


class UnscoredPredictor(PredictorWrapper):
    """Another predictor for a CPU of unknown speed: bands of latencies that the text fixes are wider."""

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        found = self.base.predict(texts, queries)
        return [
            [
                unscored(answer, _least_wait(code)) if _applies(answer) and is_fixed(answer) else answer
                for answer in line
            ]
            for code, line in zip(texts, found, strict=True)
        ]


def unscored(prediction: Prediction, waits: float = 0.0) -> Prediction:
    """A prediction for a CPU that was not scored: each side of a band is wider by the spread of CPUs.

    The first ``waits`` seconds, which the text waits whatever the CPU, stay as they are.
    """
    if not _applies(prediction) or prediction.median is None:
        return prediction
    return _widened(prediction, 1.0, UNSCORED_SPREAD, min(waits, prediction.median))
