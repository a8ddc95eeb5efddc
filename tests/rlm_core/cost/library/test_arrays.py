"""Shapes, element types and bytes of arrays against numpy itself; odd arguments; time that grows as it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost import library
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.domain.quantities import ONE, ZERO, Quantity, constant, of_size
from rlm_core.cost.domain.values import NONE, UNKNOWN, Value
from rlm_core.cost.library.array_values import array, broadcast, refaulted

from ..evaluating import evaluated
from .calls import recorded, value_of

LENGTHS = st.integers(1, 5)
DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float32", "float64", "complex128")
ARRAYS = st.tuples(st.lists(LENGTHS, min_size=1, max_size=3), st.sampled_from(DTYPES))
NUMPY_FUNCTIONS = sorted(name for name in library.ENTRIES.functions if name.startswith("numpy."))


def _lengths(value: Value) -> tuple[int, ...]:
    assert value.shape is not None
    return tuple(int(axis.exact) for axis in value.shape if axis.exact is not None)


def _abstract(real: np.ndarray[Any, Any]) -> Value:
    return array(tuple(constant(axis) for axis in real.shape), str(real.dtype))


def _called(name: str, *args: Any, **keywords: Any) -> Value:
    rule = library.rule_for(f"numpy.{name}")
    assert rule is not None
    return rule(recorded(*args, **keywords))


def _agrees(result: Value, real: np.ndarray[Any, Any]) -> None:
    assert _lengths(result) == real.shape
    assert result.dtype == str(real.dtype)
    assert result.itemsize == real.itemsize
    assert result.size is not None
    assert result.size.exact == (real.size or None) or not real.size


@given(ARRAYS, ARRAYS, st.sampled_from(["+", "*", "/", "<", "=="]))
def test_an_operator_has_the_shape_and_type_that_numpy_gives(
    left: tuple[list[int], str], right: tuple[list[int], str], sign: str
) -> None:
    a, b = np.ones(left[0], left[1]), np.ones(right[0], right[1])
    try:
        with np.errstate(all="ignore"):
            real = {"+": np.add, "*": np.multiply, "/": np.divide, "<": np.less, "==": np.equal}[sign](a, b)
    except ValueError:  # the shapes do not fit
        return
    rule = library.operator_rule("array", sign)
    assert rule is not None
    result = rule(recorded(_abstract(a), _abstract(b)))
    assert _lengths(result) == real.shape
    if sign in "<==" or (sign != "/" and left[1] == right[1]):
        assert result.dtype == str(real.dtype)


@given(st.lists(LENGTHS, max_size=4), st.lists(LENGTHS, max_size=4))
def test_shapes_broadcast_as_in_numpy(left: list[int], right: list[int]) -> None:
    try:
        real = np.broadcast_shapes(tuple(left), tuple(right))
    except ValueError:
        return
    shape = broadcast(tuple(map(constant, left)), tuple(map(constant, right)))
    assert tuple(axis.exact for axis in shape) == real


@given(st.lists(LENGTHS, min_size=1, max_size=3), st.integers(-3, 2), st.booleans())
def test_a_reduction_drops_its_axis(shape: list[int], axis: int, keepdims: bool) -> None:
    if not -len(shape) <= axis < len(shape):
        return
    real = np.ones(shape).sum(axis=axis, keepdims=keepdims)
    result = _called("sum", _abstract(np.ones(shape)), axis=axis, keepdims=keepdims)
    if real.shape:
        _agrees(result, real)
    else:
        assert result.kind == "float"


@given(
    st.integers(1, 40),
    *[st.one_of(st.none(), st.integers(-50, 50))] * 2,
    st.one_of(st.none(), st.integers(-5, 5).filter(bool)),
)
def test_a_slice_has_the_length_that_numpy_gives(n: int, start: int | None, stop: int | None, step: int | None) -> None:
    real = np.ones(n)[start:stop:step]
    rule = library.operator_rule("array", "[]")
    assert rule is not None
    index = Value("slice", payload=tuple(value_of(bound) for bound in (start, stop, step)))
    result = rule(recorded(_abstract(np.ones(n)), index))
    assert _lengths(result) == real.shape or (not real.size and result.size == ZERO)
    assert not result.bytes.terms, "a slice is a view"


@pytest.mark.parametrize(
    "text",
    [
        "np.zeros((3, 4))",
        "np.ones(7, dtype=np.float32)",
        "np.full((2, 2), 7)",
        "np.arange(3, 20, 4)",
        "np.arange(0, 1, 0.25)",
        "np.linspace(0, 1, 11)",
        "np.eye(3, 5)",
        "np.random.rand(3, 2)",
        "np.random.randint(0, 5, size=(2, 3))",
        "np.random.default_rng(0).normal(size=(4, 2))",
        "np.array([[1, 2, 3], [4, 5, 6]])",
        "np.array([1.5, 2.5])",
        "np.concatenate([np.ones((2, 3)), np.ones((4, 3))])",
        "np.vstack([np.ones(3), np.ones(3)])",
        "np.hstack([np.ones((2, 3)), np.ones((2, 4))])",
        "np.stack([np.arange(3), np.arange(3)])",
        "np.append(np.ones(3), np.ones((2, 2)))",
        "np.append(np.ones((2, 3)), np.ones((4, 3)), axis=0)",
        "np.append(np.arange(3), 1)",
        "np.tile(np.arange(3), (2, 2))",
        "np.repeat(np.arange(3), 4)",
        "np.ones((2, 3)).T",
        "np.ones((2, 3, 4)).transpose(2, 0, 1)",
        "np.ones(12).reshape(3, -1)",
        "np.ones((3, 4)) @ np.ones((4, 5))",
        "np.ones((3, 4)) @ np.ones(4)",
        "np.ones((4, 5))[1]",
        "np.ones((4, 5))[:, 2]",
        "np.ones((4, 5))[:, None, :]",
        "np.ones((4, 5))[np.array([0, 2, 2])]",
        "np.sort(np.ones((3, 4)))",
        "np.argsort(np.ones(5))",
        "np.cumsum(np.ones((3, 4)), axis=1)",
        "np.linalg.inv(np.eye(3))",
        "np.linalg.solve(np.eye(3), np.ones(3))",
        "np.diff(np.arange(10))",
        "np.pad(np.ones((2, 2)), 3)",
        "np.expand_dims(np.ones((2, 3)), 1)",
        "np.where(np.arange(5) > 2, np.arange(5), 0)",
        "np.sqrt(np.arange(5))",
        "np.ones(4, dtype=np.float32) * 2",
        "np.arange(5) / 2",
        "np.arange(6).astype('int8')",
        "np.ones((3, 4)).mean(axis=0)",
        "np.ones((3, 4)).argmax(axis=1)",
    ],
)
def test_an_expression_has_the_shape_and_type_that_numpy_gives(text: str) -> None:
    real = eval(text, {"np": np})
    facts = work_facts(f"def f():\n    import numpy as np\n    return {text}.shape[0]\n")
    assert facts is not None
    assert not facts.unknown_calls
    assert _value(text).dtype == str(real.dtype)
    assert _lengths(_value(text)) == real.shape


def _value(text: str) -> Value:
    """The abstract value of an expression, as the evaluator works it out."""
    return evaluated(text)


def test_odd_arguments_never_raise() -> None:
    assert len(NUMPY_FUNCTIONS) > 150
    odd = [
        (),
        (UNKNOWN,),
        (UNKNOWN, UNKNOWN, UNKNOWN),
        (NONE, NONE),
        ("text",),
        (-1,),
        ((),),
        ([], []),
        (array(()), array(())),
        (array((of_size("n"),)), UNKNOWN),
        (Value("array"), Value("array")),
        (array((ONE, ONE, ONE)), -7, 2.5),
        ([[1, 2], [3]], "axis"),
        ("ij,jk", Value("array"), array((ONE,))),
    ]
    for name in NUMPY_FUNCTIONS:
        rule = library.rule_for(name)
        assert rule is not None
        for args in odd:
            assert isinstance(rule(recorded(*args)), Value), (name, args)


def test_time_grows_with_the_size_and_beyond_the_caches() -> None:
    def seconds(n: int) -> float:
        facts = work_facts(f"def f():\n    import numpy as np\n    a = np.ones({n})\n    return a + a\n")
        assert facts is not None
        return facts.latency.known.likely

    assert seconds(10) < seconds(10_000) < seconds(1_000_000) < seconds(100_000_000)
    assert seconds(100_000_000) / seconds(20_000_000) == pytest.approx(5, rel=0.1)


def test_memory_goes_back_to_the_system_only_beyond_twice_the_largest_block() -> None:
    def megabytes(count: float) -> Quantity:
        return constant(count * 2**20)

    assert refaulted(megabytes(1), megabytes(1)) == ZERO
    assert refaulted(megabytes(1), megabytes(3)).exact == pytest.approx(
        3 * (refaulted(megabytes(1), megabytes(2)).exact or 0) / 2
    )
    assert refaulted(megabytes(40), megabytes(100)) == ZERO, "each large block is counted where it is made"


def test_an_unknown_size_makes_time_grow_with_the_parameter() -> None:
    facts = work_facts("def f(n):\n    import numpy as np\n    return np.zeros((n, n)) @ np.zeros((n, n))\n")
    assert facts is not None
    assert facts.latency.growth[0].size == "n"
    assert facts.latency.growth[0].degree == 3
    assert facts.memory.growth[0].degree == 2
