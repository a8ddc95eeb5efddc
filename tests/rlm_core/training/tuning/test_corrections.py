"""Corrections: forests are summed, weights coded again, scales moved."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.inference.calibration import Scale
from rlm_core.inference.card import TaskCard
from rlm_core.inference.features import feature_names
from rlm_core.inference.ngram_ridge import code_weights
from rlm_core.training.student.config import TreesConfig
from rlm_core.training.student.forest_fit import fit_forest
from rlm_core.training.tuning.corrections import AffineCorrection, decoded, fit_correction, joined
from rlm_core.training.tuning.student import load_student

from tests.rlm_core.training.conftest import Trained


def test_a_joined_forest_predicts_the_sum() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, len(feature_names("kernel")))).astype(np.float32)
    config = TreesConfig(trees=5, seeds=1, leaves=4, leaf_rows=2)
    name, weights = "kernel/triton/residual", np.ones(80)
    first, second = (fit_forest(features, rng.normal(size=80), weights, name, config) for _ in range(2))
    np.testing.assert_allclose(
        joined(first, second).predict(features), first.predict(features) + second.predict(features), atol=1e-5
    )


def test_decoded_weights_are_coded_to_the_same(trained: Trained) -> None:
    with load_student(trained.exported) as student:
        for part in student.parts.values():
            again = code_weights(part.idf, decoded(part))
            np.testing.assert_array_equal(again.codes, part.codes)
            np.testing.assert_allclose(again.largest, part.largest, rtol=1e-6)


@given(st.floats(0.2, 3), st.floats(-3, 3), st.floats(-6, 2))
def test_a_moved_scale_gives_a_moved_value_its_place(slope: float, offset: float, log: float) -> None:
    moved = AffineCorrection(slope, offset)
    entry = TaskCard("program/java/memory", Scale(0.0, np.linspace(-7, 3, 65)), -2.0, (0.1,))
    place, again = entry.scale.position(10**log), moved.move_task(entry).scale.position(10 ** (slope * log + offset))
    np.testing.assert_allclose(again, place, atol=1e-6)


@given(st.floats(0.3, 2), st.floats(-2, 2), st.integers(20, 80))
@settings(max_examples=25)
def test_a_level_is_found_again(slope: float, offset: float, rows: int) -> None:
    predicted = np.linspace(-6, 0, rows)
    found = fit_correction(predicted, slope * predicted + offset)
    np.testing.assert_allclose(found.apply(predicted), slope * predicted + offset, atol=0.1)


def test_a_level_never_turns_the_ranks_around() -> None:
    predicted = np.linspace(-6, 0, 40)
    assert fit_correction(predicted, -predicted).slope > 0
