"""Judging: few groups count next to the model's levels."""

from __future__ import annotations

import numpy as np
import pytest
from rlm_core.inference.calibration import INTERVALS, Calibration, TaskCalibration
from rlm_core.training.tuning.judging import HeadBands


@pytest.mark.parametrize(("groups", "expected"), [(40, 0.5), (10, 0.7)])
def test_few_groups_count_in_addition_to_the_models_own_levels(groups: int, expected: float) -> None:
    shipped = Calibration({"call": TaskCalibration("call", (0.9,) * len(INTERVALS), 100, 1000)})
    names = np.array([f"module{number}" for number in range(groups)])
    bands = HeadBands("call/python/latency", shipped)
    covered = bands.after(np.full(groups, 0.5), names, np.array([expected - 0.01, expected + 0.01]))
    assert covered.tolist() == [True, False]
