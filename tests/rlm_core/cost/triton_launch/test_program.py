"""Statements of a program: loops that are followed in part, branches that data decide, limits."""

from __future__ import annotations

import math

import pytest
from rlm_core.cost.torch_trace.values import Tensor
from rlm_core.cost.triton_launch.launch import evaluate_launch

from .programs import facts_of, likely, program_of

TILES = """
offsets = tl.arange(0, 64)
pointers = x_ptr + offsets
acc = tl.zeros((64,), dtype=tl.float32)
for k in range(0, tl.cdiv(n, 64)):
    acc += tl.load(pointers, mask=offsets < n - k * 64)
    pointers += 64
tl.store(y_ptr + offsets, acc)
"""


@pytest.mark.parametrize("n", [0, 1, 64, 100, 500, 513, 1000, 12345, 1_000_003])
def test_a_long_loop_counts_like_all_of_its_iterations(n: int) -> None:
    facts = facts_of(TILES, n=n)
    assert likely(facts, "loaded", "stored", "scalar") == [4 * n, 256, 64 * math.ceil(n / 64)]
    assert facts.known


@pytest.mark.parametrize("n", [3, 20, 100])
def test_inner_loops_that_grow_with_the_outer_one(n: int) -> None:
    body = "for i in range(n):\n    for j in range(i):\n        tl.load(x_ptr + i * n + j)"
    [loaded] = likely(facts_of(body, n=n), "loaded")
    assert loaded == pytest.approx(4 * n * (n - 1) / 2, rel=0.02)


def test_a_while_loop_is_counted_by_what_it_carries() -> None:
    facts = facts_of("i = 0\nwhile i < n:\n    tl.load(x_ptr + i)\n    i += 7", n=70_000)
    assert likely(facts, "loaded") == [40_000]


def test_a_loop_of_powers_is_followed_one_by_one() -> None:
    facts = facts_of("i = 1\nwhile i < n:\n    tl.load(x_ptr + i)\n    i *= 2", n=1025)
    assert facts.counts["loaded"].least <= 44 <= facts.counts["loaded"].most


def test_iterations_that_data_decide_have_no_limit() -> None:
    facts = facts_of("for i in range(tl.load(y_ptr)):\n    tl.load(x_ptr + i)", y_ptr=Tensor((1,), "int32"))
    loaded = facts.counts["loaded"]
    assert (loaded.least, loaded.most) == (4, math.inf)
    assert not facts.known


def test_both_branches_that_data_decide_are_followed() -> None:
    body = "if tl.load(y_ptr) > 0:\n    tl.load(x_ptr + tl.arange(0, 64))\nelse:\n    tl.load(x_ptr + tl.arange(0, 16))"
    loaded = facts_of(body).counts["loaded"]
    assert (loaded.least, loaded.most) == (4 + 64, 4 + 256)


def test_what_follows_an_exit_that_data_decide_may_not_happen() -> None:
    body = "if tl.load(y_ptr) > 0:\n    return\ntl.load(x_ptr + tl.arange(0, 64))"
    loaded = facts_of(body).counts["loaded"]
    assert (loaded.least, loaded.most) == (4, 4 + 256)


def test_known_conditions_choose_a_branch() -> None:
    body = "if n > 5:\n    tl.load(x_ptr)\nelif n is None:\n    tl.store(x_ptr, 1.0)"
    assert likely(facts_of(body), "loaded", "stored") == [4, 0]


def test_helpers_are_followed_with_their_results() -> None:

    text = (
        "@triton.jit\ndef sizes(a, b):\n    return a + b, a * b\n\n"
        "@triton.jit\ndef kernel(x_ptr):\n    s, p = sizes(3, 4)\n    tl.load(x_ptr + s)\n"
        "    for i in range(p):\n        tl.load(x_ptr + i)\n"
    )
    facts = evaluate_launch(program_of(text).kernels["kernel"].function, (2,), {"x_ptr": Tensor((64,))})
    assert facts is not None
    assert likely(facts, "loaded") == [2 * 13 * 4]


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n    tl.load(x_ptr)",
        "for i in range(10**15):\n    for j in range(10**15):\n        for k in range(10**15):\n            n = n * 3",
        "x = tl.arange(0, 1 << 60)",
        "tl.zeros((1 << 20, 1 << 20), dtype=tl.float32)",
        "n = n ** n ** n",
        "kernel(x_ptr, y_ptr, n)",
    ],
)
def test_what_has_no_end_is_given_up_within_a_budget(body: str) -> None:

    lines = "\n".join(f"    {line}" for line in body.splitlines())
    program = program_of(f"@triton.jit\ndef kernel(x_ptr, y_ptr, n):\n{lines}\n")
    facts = evaluate_launch(program.kernels["kernel"].function, (2**31 - 1,), {"x_ptr": Tensor((8,)), "n": 1000})
    assert facts is None or facts.programs == 2**31 - 1
