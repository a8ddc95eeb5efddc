"""Numbers of launches on a device: times that bound them, programs at once, waves."""

from __future__ import annotations

import numpy as np
import pytest
from rlm_core.cost.triton_launch.workload import WorkloadFacts, workload_facts
from rlm_core.inference.features.launch import NAMES, launch_features, launch_times, resident_programs
from rlm_core.queries.architectures import architecture_of
from rlm_core.queries.devices import device_table

COPY = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

def run(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
MATMUL = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, N, BLOCK: tl.constexpr):
    r, c, k = (tl.arange(0, BLOCK) for _ in range(3))
    rows, columns, inner = tl.arange(0, BLOCK), tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK)):
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :] + step * BLOCK)
        b = tl.load(b_ptr + (inner[:, None] + step * BLOCK) * N + columns[None, :])
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)

def run(a, b):
    c = torch.empty((a.shape[0], b.shape[1]))
    grid = (triton.cdiv(a.shape[0], 128) * triton.cdiv(b.shape[1], 128),)
    kernel[grid](a, b, c, a.shape[1], b.shape[1], BLOCK=128, num_warps=8, num_stages=3)
"""


def known(text: str, **workload: str) -> WorkloadFacts:
    facts = workload_facts(text, workload)
    assert facts is not None
    return facts


def value(facts: WorkloadFacts | None, device: str | None, name: str) -> float:
    return float(launch_features(facts, device)[NAMES.index(name)])


def test_a_large_copy_takes_the_time_of_its_bytes() -> None:
    facts = known(COPY, arg0="268435456", dtype="fp32")
    card = device_table()["nvidia-a100-sxm4-80gb"]
    architecture = architecture_of(card.id)
    assert architecture is not None
    times = launch_times(facts.facts[0], card, architecture)
    assert times.memory == pytest.approx(2 * 4 * 2**28 / 2.039e12, rel=0.01)
    assert times.bound < 2 * times.memory


def test_a_product_of_matrices_takes_the_time_of_its_operations() -> None:
    facts = known(MATMUL, arg0="8192x8192", arg1="8192x8192", dtype="fp16")
    card = device_table()["nvidia-a100-sxm4-80gb"]
    architecture = architecture_of(card.id)
    assert architecture is not None
    times = launch_times(facts.facts[0], card, architecture)
    assert times.dot == pytest.approx(2 * 8192**3 / 312e12, rel=0.01)
    assert times.dot == max(times.memory, times.dot, times.scalar, times.special)
    # Accumulators and operands leave room for few programs.
    assert resident_programs(facts.facts[0], architecture) in (1, 2)


def test_a_faster_memory_takes_less_time() -> None:
    facts = known(COPY, arg0="268435456", dtype="fp32")
    times = [value(facts, device, "time_launches") for device in ("l4", "a100", "h100", "b200")]
    assert times == sorted(times, reverse=True)


def test_one_program_that_does_everything_waits_for_each_access() -> None:
    serial = (
        "@triton.jit\ndef kernel(x, n):\n    for i in range(n):\n        tl.store(x + i, tl.load(x + i))\n\n"
        "def run(x):\n    kernel[(1,)](x, x.numel())\n"
    )
    facts = known(serial, arg0="100000", dtype="fp32")
    assert value(facts, "a100", "time_latency") > value(facts, "a100", "time_memory") + 1
    assert value(facts, "a100", "program_accesses") == pytest.approx(np.log10(200_000), abs=0.01)


def test_what_is_not_known_is_nan() -> None:
    assert np.isnan(launch_features(None, "a100")).all()
    facts = known(COPY, arg0="1024", dtype="fp32")
    assert np.isnan(value(facts, None, "time_launches"))
    assert np.isnan(value(facts, "some other device", "waves"))
    assert value(facts, None, "programs") == 0.0
