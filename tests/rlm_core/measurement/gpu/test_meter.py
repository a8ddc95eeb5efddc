"""Timing: what is computed from seconds, and how many calls are made for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.gpu.kernel_resources import amd_resources, read_report
from rlm_core.measurement.gpu.meter import CpuStopwatch, Effort, measure, quantile, summary

seconds = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=30)


@given(seconds, st.floats(0, 1))
def test_quantiles_are_those_of_numpy(values: list[float], level: float) -> None:
    assert quantile(sorted(values), level) == pytest.approx(np.quantile(values, level))


@given(seconds)
def test_a_summary_is_in_order(values: list[float]) -> None:
    timing = summary(values)
    assert timing.p10 <= timing.p20 <= timing.median <= timing.p80 <= timing.p90
    assert timing.median == pytest.approx(np.median(values))
    assert timing.runs == len(values)


class Steady:
    """A stopwatch on which every call takes as long."""

    def __init__(self, one: float) -> None:
        self.one, self.timed = one, 0

    def time(self, call: Callable[[], object], count: int) -> list[float]:
        self.timed += count
        return [self.one] * count


@pytest.mark.parametrize(("one", "runs"), [(1e-3, 100), (10.0, 10), (1e-9, 2000)])
def test_short_calls_are_timed_more_often_than_long_ones(
    one: float, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopwatch = Steady(one)
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)  # another process would add to what a flush takes
    timing = measure(lambda: None, stopwatch, Effort(warm=0, measure=0.1, least=10, most=2000))
    assert (timing.median, timing.runs) == (one, runs)
    assert stopwatch.timed == runs + 3


def test_the_processors_stopwatch_times_calls() -> None:
    calls = []
    timing = measure(lambda: calls.append(sum(range(1000))), CpuStopwatch(1 << 16), Effort(0.001, 0.002, 5, 50))
    assert 0 < timing.p20 <= timing.median <= timing.p80
    assert len(calls) >= timing.runs + 4


def test_the_assemblers_report_is_read() -> None:
    report = """ptxas info    : Function properties for kernel
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 28 registers, used 1 barriers
ptxas info    : Used 17 registers"""
    assert read_report(report) == {"registers": 28, "stack": 16, "spill_stores": 8, "spill_loads": 4}
    assert read_report("") == {}
    text = ".sgpr_count: 19\n.vgpr_count:     8\n.vgpr_spill_count: 0\n.private_segment_fixed_size: 0\n"
    assert amd_resources(text) == {"registers": 8, "scalar_registers": 19, "spilled_registers": 0, "stack": 0}
