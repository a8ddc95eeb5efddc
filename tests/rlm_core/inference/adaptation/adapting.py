"""What the tests of adapters share: a predictor that goes by length, measurements, devices that mix costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from rlm_core import CodeText, Prediction, Query
from rlm_core.inference.adaptation.fit import Array
from rlm_core.inference.adaptation.measurements import Measurement
from rlm_core.inference.calibration import bands
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.types import METRICS_OF_BASIS, Basis, CalibrationSource

from tests.fakes import NO_NUMBER, quantiles

DEVICES = ("gpu-a", "gpu-b", "gpu-c")


class FakePredictor(WithoutComparison):
    """Predicts a kernel's latency as its length in microseconds, times a factor a device; abstains from ``odd``."""

    model_id = "fake-1"
    factors: Mapping[str, float] = dict(zip(DEVICES, (1.0, 2.0, 5.0), strict=True))
    odd = "odd"

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return DEVICES if basis == "kernel" else ()

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return tuple(Query(metric, "gpu-a") for metric in METRICS_OF_BASIS[basis])

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [[self._one(code, query) for query in line] for code, line in zip(texts, queries, strict=True)]

    def _one(self, code: CodeText, query: Query) -> Prediction:
        blank = Prediction(
            code.basis, query.metric, query.device, query.workload, self.model_id, None, (), 0.0, False, NO_NUMBER
        )
        if query.device is None or query.device not in self.factors or self.odd in code.text:
            return blank
        slope = 1.0 + 0.1 * list(self.factors).index(query.device)
        value = 1e-6 * len(code.text) ** slope * self.factors[query.device]
        found = quantiles(value)
        return replace(
            blank,
            median=value,
            bands=bands(found, 50, 500, CalibrationSource("kernel")),
            abstained=None,
            quantiles=found,
        )


def kernel(size: int) -> CodeText:
    return CodeText("k" * size, "triton", "kernel")


def measured(sizes: Sequence[int], factor: float = 20.0) -> list[Measurement]:
    return [Measurement(i, kernel(n), Query("latency"), 1e-6 * n * factor) for i, n in enumerate(sizes, 1)]


def synthetic(rng: np.random.Generator, rows: int, devices: int = 8) -> tuple[Array, Array]:
    """log10 latencies of known devices and of a new one that mixes them: shared costs, own costs, noise."""
    costs = rng.standard_normal((rows, 4)) * (0.4, 0.2, 0.1, 0.1)
    loads = np.column_stack([np.ones(devices + 1), rng.standard_normal((devices + 1, 3))])
    values = costs @ loads.T + rng.standard_normal((rows, devices + 1)) * 0.02 + rng.normal(0, 1, devices + 1) - 3
    return values[:, :-1], values[:, -1]
