"""Numbers that a loop scales, against how often such loops run."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.bounds.geometric import Scaling, scaling

from ..counting import facts_of


def body(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n //= 2", "shrinks"), ("n = n >> 1", "shrinks"), ("n = (n - 1) // 2", "shrinks"),
        ("a, n = n, a % n", "shrinks"), ("p = (n - 1) // 2\nn = p", "shrinks"),
        ("n *= 2", "grows"), ("n = 2 * n + 1", "grows"), ("n <<= 1", "grows"),
        ("c = 2 * n + 1\nif c > 3:\n    c += 1\nn = c", "grows"),
        ("n += 1", None), ("n -= 2", None), ("n = n * 1", None), ("n = m // 2", None), ("m //= 2", None),
        ("n //= 2\nn += 1", None), ("n = f(n)", None), ("n = m\nm = n", None), ("n *= k", None),
    ],
)  # fmt: skip
def test_what_scales_a_name(text: str, expected: Scaling | None) -> None:
    assert scaling(body(text), "n") == expected


@pytest.mark.parametrize(
    "loop",
    [
        "while n:\n        n, k = k % n, n", "while n:\n        n //= 10",
        "while n > 0:\n        p = (n - 1) // 2\n        n = p",
    ],
)  # fmt: skip
def test_such_a_loop_takes_the_logarithm(loop: str) -> None:
    [growth] = facts_of(f"def f(n, k=7):\n    {loop}\n    return n\n").latency.growth
    assert (growth.degree, growth.logs, growth.base) == (0, 1, 1)
