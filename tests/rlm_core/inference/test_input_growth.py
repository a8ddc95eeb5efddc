"""The growth head of functions: features, weights on disk, and what it says of plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference import input_growth, trees
from rlm_core.inference.input_growth import (
    FEATURES,
    INPUT_GROWTH,
    METRICS,
    STEPS,
    InputGrowthHead,
    estimate_of,
    features_of,
    inputs_of,
    step_of,
)
from rlm_core.inference.model_store import builtin
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import CodeText

TOTAL = (
    "def total(orders):\n    result = 0\n    for order in orders:\n        result += order.price\n    return result\n"
)
PAIRS = "def pairs(names):\n    t = 0\n    for a in names:\n        for b in names:\n            t += 1\n    return t\n"
FIRST = "def first(rows):\n    return rows[0]\n"


def code_of(text: str) -> CodeText:
    [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
    return unit.code


@pytest.fixture(scope="module")
def head() -> InputGrowthHead:
    return InputGrowthHead(builtin() / INPUT_GROWTH)


def table(*rows: Sequence[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Probabilities of the steps, one row per input."""
    return np.array(rows, np.float64)


def test_a_loop_over_an_input_is_linear_in_it(head: InputGrowthHead) -> None:
    estimate = head.estimates(code_of(TOTAL))["latency"]
    assert (estimate.growth_class, estimate.sizes, estimate.is_claim) == ("n", ("orders",), True)


def test_an_item_of_an_input_is_no_growth(head: InputGrowthHead) -> None:
    estimate = head.estimates(code_of(FIRST))["latency"]
    assert estimate.growth_class == "1" or not estimate.is_claim


@pytest.mark.parametrize(
    "text",
    [
        "def wrapper(*args, **kwargs):\n    return function(*args, **kwargs)\n",
        "def tag(name, **attributes):\n    return name + ' '.join(f'{k}={v}' for k, v in attributes.items())\n",
        "def wrapper(*args, **kwargs):\n    kwargs.setdefault('x', args[0])\n    return function(*args, **kwargs)\n",
    ],
)
def test_the_number_of_arguments_that_are_passed_on_is_no_size(head: InputGrowthHead, text: str) -> None:
    sizes = [set(one.sizes) for one in head.estimates(code_of(text)).values() if one.is_claim]
    assert {"args"} not in sizes
    assert {"attributes"} not in sizes


def test_arguments_that_are_gone_through_are_a_size(head: InputGrowthHead) -> None:
    estimate = head.estimates(code_of("def total(*values):\n    return sum(value.size for value in values)\n"))
    assert estimate["latency"].sizes == ("values",)


def test_each_input_has_the_features_of_the_head() -> None:
    code = code_of(PAIRS)
    features = features_of(code, inputs_of(code))
    assert features.shape == (1, len(FEATURES))
    assert features[0, FEATURES.index("latency_degree")] == 2
    assert np.isfinite(features).all()


def test_a_function_without_inputs_has_no_features() -> None:
    assert features_of(code_of("def f():\n    return 1\n"), ()).shape == (0, len(FEATURES))


@pytest.mark.parametrize(
    ("rows", "growth_class", "sizes", "probability"),
    [
        (table([0.05, 0.0, 0.95, 0.0], [0.9, 0.05, 0.05, 0.0]), "n", ("a",), 0.95),
        (table([0.05, 0.0, 0.95, 0.0], [0.1, 0.0, 0.9, 0.0]), "n", ("a", "b"), 0.9),
        (table([0.0, 0.0, 0.1, 0.9], [0.05, 0.0, 0.95, 0.0]), "n^2", ("a",), 0.9),
        (table([0.4, 0.0, 0.6, 0.0], [0.9, 0.0, 0.1, 0.0]), "n", ("a",), 0.6),
        (table([0.9, 0.1, 0.0, 0.0], [0.9, 0.1, 0.0, 0.0]), "1", (), 0.81),
    ],
)
def test_the_steepest_step_that_is_certain_decides(
    rows: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    growth_class: str,
    sizes: tuple[str, ...],
    probability: float,
) -> None:
    code = CodeText("def f(a, b):\n    return g(a, b)\n", "python", "call")
    estimate = estimate_of(code, "latency", ("a", "b"), rows)
    assert (estimate.growth_class, estimate.sizes) == (growth_class, sizes)
    assert estimate.probability == pytest.approx(probability)


def test_a_step_has_the_class_of_the_facts_that_agree_with_it() -> None:
    sorting = code_of("def f(a):\n    return sorted(a)\n")
    assert estimate_of(sorting, "latency", ("a",), table([0.0, 0.0, 1.0, 0.0])).growth_class == "n log n"
    assert estimate_of(sorting, "latency", ("a",), table([0.0, 0.0, 0.0, 1.0])).growth_class == "n^2"


@pytest.mark.parametrize(
    "text",
    [
        "def f(root):\n    if root:\n        f(root.left)\n        f(root.right)\n        print(root.value)\n",
        "def height(self):\n    return 1 + self.left.height() if self.left else 0\n",
    ],
)
def test_a_recursion_over_parts_is_not_said_to_stay_the_same(text: str) -> None:
    assert not estimate_of(code_of(text), "latency", ("self.left",), table([1.0, 0.0, 0.0, 0.0])).is_claim


def test_a_walk_through_linked_nodes_is_not_said_to_stay_the_same() -> None:
    walk = code_of("def f(head):\n    while head.next:\n        head = head.next\n    return head\n")
    assert not estimate_of(walk, "latency", ("head",), table([1.0, 0.0, 0.0, 0.0])).is_claim
    assert estimate_of(code_of(FIRST), "latency", ("rows",), table([1.0, 0.0, 0.0, 0.0])).is_claim


@given(st.floats(0, 5), st.floats(0, 5))
def test_steps_are_in_the_order_of_slopes(one: float, other: float) -> None:
    assert (step_of(min(one, other)), step_of(0.0), step_of(9.0)) <= (step_of(max(one, other)), 0, len(STEPS) - 1)


def test_weights_are_the_same_after_a_round_trip(head: InputGrowthHead, tmp_path: Path) -> None:
    input_growth.save(head.forests, tmp_path / "w")
    again = input_growth.load(tmp_path / "w")
    features = np.random.default_rng(0).normal(size=(20, len(FEATURES))).astype(np.float32)
    for metric in METRICS:
        for one, other in zip(again[metric], head.forests[metric], strict=True):
            np.testing.assert_array_equal(one.predict(features), other.predict(features))


def test_damaged_weights_are_refused(head: InputGrowthHead, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes((builtin() / INPUT_GROWTH).read_bytes()[:1000])
    with pytest.raises(ModelError, match="missing or corrupt"):
        input_growth.load(tmp_path / "w")
    forest = head.forests["latency"][0]
    trees.save({"latency/constant": forest}, {"latency": FEATURES}, tmp_path / "part")
    with pytest.raises(ModelError, match="corrupt; reinstall"):
        input_growth.load(tmp_path / "part")


def test_without_weights_complete_facts_alone_give_growth() -> None:
    known = code_of("def f(xs):\n    t = 0\n    for x in xs:\n        t += 1\n    return t\n")
    assert InputGrowthHead(None).estimates(known)["latency"].growth_class == "n"
    assert InputGrowthHead(None).estimates(code_of(TOTAL.replace("order.price", "g(order)"))) == {}


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("def f():\n    t = 0\n    for i in range(100_000):\n        t += i\n    return t\n", None),
        ("def f():\n    while unknown():\n        other()\n", None),
        ("class A:\n    def f(self):\n        return unknown()\n", None),
        ("def f():\n    for name in NAMES:\n        print(name)\n", ("NAMES",)),
        ("class A:\n    def f(self):\n        return [x for x in self.items]\n", ("self.items",)),
    ],
)
def test_a_function_without_inputs_grows_only_with_what_the_text_names(
    head: InputGrowthHead, text: str, sizes: tuple[str, ...] | None
) -> None:
    estimate = head.estimates(code_of(text)).get("latency")
    assert (estimate.named_sizes if estimate is not None else None) == sizes
