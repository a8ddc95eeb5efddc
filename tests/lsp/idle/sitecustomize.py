"""An idle machine for tests, twice as fast as the reference, in every Python process that imports this."""

from __future__ import annotations

import os
from dataclasses import replace

import rlm_core.inference.adaptation.cpu_score as cpu_score


def _twice_as_fast() -> cpu_score.Rates:
    base = cpu_score.reference()
    return replace(base, interpreter=2 * base.interpreter, allocation=2 * base.allocation, numpy=2 * base.numpy)


os.getloadavg = lambda: (0.0, 0.0, 0.0)
cpu_score.measure_rates = _twice_as_fast
