"""Costs at sizes that a text does not fix: features, what may be stated, and that more items never cost less."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.analysis import work_facts
from rlm_core.errors import ModelError
from rlm_core.inference import sized_cost, trees
from rlm_core.inference.input_growth import STEPS, inputs_of
from rlm_core.inference.model_store import builtin
from rlm_core.inference.sized_cost import (
    FEATURES,
    MOST_GROWTH,
    MOST_SIZE,
    MOST_WIDTH,
    RATIO,
    RISING,
    SIZED_COST,
    SizedCostHead,
    Steps,
    features_of,
    is_stated,
)
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.function_sizes import text_at
from rlm_core.types import LEVELS, MEDIAN, CodeText, Prediction, Query, SizeValue

from tests.sized_functions import NAMES

SEND = "def send(orders, paid):\n    for order in orders:\n        for one in paid:\n            deliver(order, one)\n"
ROWS = "def rows(text):\n    return [clean(line).split(',') for line in text.splitlines() if line]\n"
TEXTS = (NAMES, SEND, ROWS)
SECONDS = tuple(1e-6 * (0.5 + level) for level in LEVELS)


def sized(text: str, /, **sizes: float) -> tuple[CodeText, CodeText]:
    """A function with sizes, and with facts in which they are fixed."""
    values = tuple(SizeValue(name, value, "comment") for name, value in sizes.items())
    code = CodeText(text, "python", "call", work=work_facts(text), sizes=values)
    at_sizes = text_at(code, values)
    assert at_sizes is not None
    return code, at_sizes


def certain(code: CodeText, step: str) -> Steps:
    """The same step for each parameter of a function, and none for what belongs to one."""
    steps = {name: step if name.isidentifier() else "constant" for name in inputs_of(code)}
    return {name: np.eye(len(STEPS))[STEPS.index(step)] for name, step in steps.items()}


def features(code: CodeText, at_sizes: CodeText, step: str = "linear") -> np.ndarray:
    found = features_of(code, at_sizes, SECONDS, certain(code, step))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def small() -> Prediction:
    code, _ = sized(NAMES, orders=1.0)
    [[answer]] = OnnxPredictor(builtin(), threads=1).predict([replace(code, sizes=())], [[Query("latency")]])
    return answer


def test_the_features_have_their_names() -> None:
    found = dict(zip(FEATURES, features(*sized(NAMES, orders=1000.0))[0].tolist(), strict=True))
    assert found["growth"] == pytest.approx(3.0)
    assert found["growth_from_10"] == pytest.approx(2.0)
    assert (found["slope_0"], found["linear_0"], found["constant_0"]) == (1.0, 1.0, 0.0)
    assert np.isnan(found["slope_1"])
    assert found["small"] == pytest.approx(np.log10(SECONDS[MEDIAN]), abs=1e-5)
    assert found["largest"] == found["log_size_0"] == 3.0


def test_sizes_that_the_cost_does_not_depend_on_have_no_features() -> None:
    code, at_sizes = sized(NAMES, orders=10.0)
    other = (SizeValue("other", 5.0, "comment"),)
    assert features_of(replace(code, sizes=other), at_sizes, SECONDS, certain(code, "linear")) is None


@pytest.mark.parametrize("text", TEXTS)
@given(sizes=st.lists(st.floats(1, 1e7), min_size=2, max_size=6))
@settings(max_examples=25, deadline=None)
def test_only_features_that_rise_change_with_a_size(text: str, sizes: list[float]) -> None:
    name = inputs_of(CodeText(text, "python", "call", work=work_facts(text)))[0]
    table = np.concatenate([features(*sized(text, **{name: size})) for size in sorted(sizes)])
    for place, feature in enumerate(FEATURES):
        column = table[:, place]
        if feature in RISING:
            assert (np.diff(column[~np.isnan(column)]) >= -1e-5).all(), feature
        else:
            np.testing.assert_array_equal(column, column[:1].repeat(len(column)), feature)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("step", ["partial", "linear", "steep"])
@given(sizes=st.lists(st.floats(1, 1e6), min_size=2, max_size=8), other=st.floats(1, 1e4))
@settings(max_examples=25, deadline=None)
def test_more_items_never_cost_less(text: str, step: str, sizes: list[float], other: float) -> None:
    forest = sized_cost.load(builtin() / SIZED_COST)[RATIO]
    first, *rest = inputs_of(CodeText(text, "python", "call", work=work_facts(text)))
    table = [features(*sized(text, **dict.fromkeys(rest, other), **{first: size}), step) for size in sorted(sizes)]
    assert (np.diff(forest.predict(np.concatenate(table))) >= -1e-5).all()


def test_what_is_stated_needs_a_slope_a_narrow_band_and_sizes_as_in_training() -> None:
    def stated(code: CodeText, at_sizes: CodeText, step: str = "linear", width: float = 1.0) -> bool:
        return is_stated(code, features(code, at_sizes, step), width, certain(code, step))

    assert stated(*sized(NAMES, orders=1000.0))
    assert not stated(*sized(NAMES, orders=1000.0), step="constant")
    assert not stated(*sized(NAMES, orders=1000.0), width=MOST_WIDTH + 0.01)
    assert stated(*sized(NAMES, orders=MOST_SIZE))
    assert not stated(*sized(NAMES, orders=MOST_SIZE + 1))
    steepest = 10 ** (MOST_GROWTH / 2)
    assert stated(*sized(NAMES, orders=steepest * 0.99), step="steep")
    assert not stated(*sized(NAMES, orders=steepest * 1.01), step="steep")


def test_an_input_that_the_cost_grows_with_needs_a_size() -> None:
    one = sized(SEND, orders=10.0)
    assert not is_stated(one[0], features(*one), 1.0, certain(one[0], "linear"))
    both = sized(SEND, orders=10.0, paid=10.0)
    assert is_stated(both[0], features(*both), 1.0, certain(both[0], "linear"))


def test_a_number_is_at_least_the_bound(small: Prediction) -> None:
    code, at_sizes = sized(NAMES, orders=100.0)
    head = SizedCostHead(builtin())
    free = head.cost(code, at_sizes, small, 0.0)
    assert free is not None
    assert free.band.low < free.median < free.band.high
    assert free.quantiles == tuple(sorted(free.quantiles))
    assert free.median > (small.median or 0.0)
    bounded = head.cost(code, at_sizes, small, free.median * 1.1)
    assert bounded is not None
    assert bounded.band.low == bounded.median == pytest.approx(free.median * 1.1)
    assert bounded.band.high == free.band.high


def test_the_same_question_has_the_same_answer(small: Prediction) -> None:
    answers = {SizedCostHead(builtin()).cost(*sized(NAMES, orders=300.0), small, 0.0) for _ in range(2)}
    assert len(answers) == 1


def test_weights_of_other_features_are_refused(tmp_path: Path) -> None:
    path = tmp_path / SIZED_COST
    forests = sized_cost.load(builtin() / SIZED_COST)
    sized_cost.save(forests, path)
    assert sized_cost.load(path).keys() == forests.keys()
    trees.save(forests, dict.fromkeys(forests, FEATURES[:-1]), path)
    with pytest.raises(ModelError, match="other features"):
        sized_cost.load(path)
    trees.save({RATIO: forests[RATIO]}, {RATIO: FEATURES}, path)
    with pytest.raises(ModelError, match="corrupt"):
        sized_cost.load(path)
