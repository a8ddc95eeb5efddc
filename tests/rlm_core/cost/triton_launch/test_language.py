"""Functions of the language: shapes of their results and what they count."""

from __future__ import annotations

import pytest
from rlm_core.cost.torch_trace.values import Tensor

from .programs import facts_of, likely

TILE = "x = tl.load(x_ptr + 64 * tl.arange(0, 32)[:, None] + tl.arange(0, 64)[None, :])\n"


def store(value: str) -> str:
    return f"{TILE}r = {value}\ntl.store(y_ptr + tl.arange(0, 1), r)"


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        ("tl.exp(x)", (0, 2048)),
        ("x * 2 + 1", (4096, 0)),
        ("-x", (2048, 0)),
        ("tl.sum(x, 1)", (2048, 0)),
        ("tl.libdevice.tanh(x)", (0, 2048)),
        ("tl.maximum(x, 0.0)", (2048, 0)),
        ("tl.where(x > 0, x, 0.0)", (2048, 0)),
        ("tl.math.rsqrt(tl.sum(x, axis=1))", (2048, 32)),
    ],
)
def test_operations_on_data_are_counted_by_unit(value: str, counts: tuple[float, float]) -> None:
    assert tuple(likely(facts_of(f"{TILE}{value}"), "scalar", "special")) == counts


@pytest.mark.parametrize(
    ("value", "elements"),
    [
        ("tl.sum(x, 0)", 64),
        ("tl.sum(x, 1, keep_dims=True)", 32),
        ("tl.max(x)", 1),
        ("tl.max(x, axis=-1)", 32),
        ("tl.trans(x)", 2048),
        ("x.T", 2048),
        ("tl.reshape(x, (2048,))", 2048),
        ("x.to(tl.float16)", 2048),
        ("tl.argmax(x, 1)", 32),
        ("tl.cumsum(x, 0)", 2048),
        ("tl.broadcast_to(tl.sum(x, 0)[None, :], (8, 64))", 512),
        ("tl.expand_dims(tl.sum(x, 0), 1)", 64),
        ("tl.join(x, x)", 4096),
        ("tl.split(tl.reshape(x, (32, 32, 2)))[0]", 1024),
        ("tl.dot(x, tl.trans(x))", 1024),
    ],
)
def test_shapes_of_results(value: str, elements: int) -> None:
    # Of a value that is stored through one pointer, the pointer takes the shape.
    facts = facts_of(f"{TILE}tl.store(y_ptr, {value})")
    assert likely(facts, "stored") == [4 * elements]
    assert facts.unknown == 0


@pytest.mark.parametrize(("dtype", "unit"), [("fp16", "dot"), ("fp32", "dot_wide")])
def test_products_of_matrices_by_their_type(dtype: str, unit: str) -> None:
    facts = facts_of(f"{TILE}tl.dot(x, tl.trans(x))", x_ptr=Tensor((2048,), dtype))
    assert likely(facts, unit) == [2 * 32 * 32 * 64]
    assert facts.widest == 1024
    assert facts.tile_bytes == 2 * 2048 * (2 if dtype == "fp16" else 4)


def test_indices_stay_known() -> None:
    body = (
        "i = tl.minimum(tl.arange(0, 64), 9)\nj = tl.where(i < 5, i, 0).to(tl.int64)\n"
        "m = (i // 2 == 1) | (i == 9)\ntl.load(x_ptr + j, mask=m)\ntl.load(x_ptr + tl.max(n, 3) + max(n, 4))"
    )
    facts = facts_of(body)
    assert likely(facts, "loaded", "gathered", "scalar") == [4 * 57 + 4, 0, 0]


def test_a_function_without_a_rule_is_counted() -> None:
    facts = facts_of(f"{TILE}tl.mystery(x)")
    assert facts.unknown == 1
    assert not facts.known


def test_what_only_prints_or_asserts_counts_nothing() -> None:
    body = 'tl.static_assert(n > 0, "n")\ntl.device_print("x", n)\ntl.debug_barrier()\ntl.multiple_of(n, 16)'
    facts = facts_of(body)
    assert (facts.unknown, sum(likely(facts, "loaded", "scalar", "special"))) == (0, 0)


@pytest.mark.parametrize(
    ("value", "flops"),
    [
        ("tl.sigmoid(x)", 4 * 64),
        ("tl.exp(x)", 64),
        ("tl.sum(x > 0)", 0),  # of truth values
        ("tl.rand(1, tl.arange(0, 64))", 0),  # of integers but for the last step
        ("tl.cumsum(x)", 64),
    ],
)
def test_floating_point_operations_are_those_of_the_results(value: str, flops: float) -> None:
    facts = facts_of(f"x = tl.load(x_ptr + tl.arange(0, 64))\ny = {value}")
    assert likely(facts, "flops") == [flops]
