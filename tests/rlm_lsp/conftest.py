"""What the server's unit tests share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rlm_core import Band, Prediction
from rlm_core.types import CalibrationSource

MakePrediction = Callable[..., Prediction]


@pytest.fixture(scope="session")
def make_prediction() -> MakePrediction:
    """A prediction of a call's latency, with the given fields changed; ``low`` and ``high`` make an 80 % band."""

    def make(low: float = 1e-5, high: float = 1.6e-4, **changes: object) -> Prediction:
        fields: dict[str, object] = {
            "basis": "call",
            "metric": "latency",
            "device": "x86-64",
            "workload": {"runtime": "cpython-3.12"},
            "model": "test-1",
            "median": (low + high) / 2,
            "bands": (
                Band(low, high, 0.8, 120, 4500, CalibrationSource("call/latency")),
                Band(low, high * 2, 0.9, 120, 4500, CalibrationSource("call/latency")),
            ),
            "floor": 5e-8,
            "truncated": False,
        }
        if changes.get("abstained") is not None:
            fields |= {"median": None, "bands": ()}
        return Prediction(**{**fields, **changes})  # type: ignore[arg-type]

    return make
