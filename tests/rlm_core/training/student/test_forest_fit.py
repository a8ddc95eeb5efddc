"""One forest: the arrays predict what scikit-learn does, and features enter it as their basis says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rlm_core.inference import trees
from rlm_core.inference.features import feature_names
from rlm_core.inference.residuals import data_sheet_key, fit_residuals, work_key
from rlm_core.training.student import forest_fit
from rlm_core.training.student.config import TreesConfig
from rlm_core.training.student.forest_fit import Matrix, by_work, fit_forest, to_forest
from sklearn.ensemble import HistGradientBoostingRegressor

CONFIG = TreesConfig(trees=20, seeds=2, leaves=6, leaf_rows=2)
KERNELS = "kernel/triton/latency"
ALL = np.arange(4)
EVEN = np.ones(200)


def table(rows: int, seed: int = 0) -> tuple[Matrix, npt.NDArray[np.float64]]:
    """Features of different kinds with unknown values, and a target that follows from them."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 4)).astype(np.float32)
    features[:, 1] = rng.integers(0, 4, rows)
    features[:, 2] = (10 ** rng.uniform(-6, 9, rows)).astype(np.float32)
    target = features[:, 0] + 3 * (features[:, 1] > 1) + np.log10(features[:, 2]) + 0.1 * rng.normal(size=rows)
    features[rng.random(features.shape) < 0.15] = np.nan
    return features, target.astype(np.float64)


@hypothesis_settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(1, 3), st.integers(2, 40))
def test_a_forest_predicts_what_scikit_learn_does(seed: int, models: int, leaves: int) -> None:
    features, target = table(200, seed)
    fitted = [
        HistGradientBoostingRegressor(max_iter=8, max_leaf_nodes=leaves, min_samples_leaf=2, random_state=i).fit(
            features, target
        )
        for i in range(models)
    ]
    probe = np.concatenate([features, table(100, seed + 1)[0]])
    expected = np.mean([model.predict(probe) for model in fitted], axis=0)
    np.testing.assert_allclose(to_forest(fitted, ALL).predict(probe), expected, atol=1e-5, rtol=0)


def test_neighbouring_numbers_of_single_precision_go_the_ways_of_training() -> None:
    first = np.float32(1.1)
    cells = [first]
    for _ in range(7):
        cells.append(np.nextafter(cells[-1], np.float32(9)))
    features = np.repeat(np.array(cells, np.float32), 20)[:, None]
    target = np.repeat(np.arange(8.0) % 2, 20)
    model = HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=1, learning_rate=0.5).fit(features, target)
    np.testing.assert_allclose(to_forest([model], ALL[:1]).predict(features), model.predict(features), atol=1e-5)


def test_a_fitted_forest_survives_its_file(tmp_path: Path) -> None:
    features, target = table(300)
    forest = to_forest([HistGradientBoostingRegressor(max_iter=10).fit(features, target)], ALL, 2, 0.25)
    names = ("a", "b", "c", "d")
    trees.save({KERNELS: forest}, {"kernel": names}, tmp_path / "trees.safetensors")
    again = trees.load(tmp_path / "trees.safetensors", {"kernel": names})[KERNELS]
    assert again.predict(features).tolist() == forest.predict(features).tolist()


@given(st.floats(0, 0.9), st.integers(0, 99))
@hypothesis_settings(max_examples=10)
def test_an_estimate_takes_its_share_of_the_prediction(share: float, seed: int) -> None:
    features, target = table(150, seed)
    model = HistGradientBoostingRegressor(max_iter=5).fit(features, target)
    found = to_forest([model], ALL, 0, share).predict(features)
    alone, estimate = model.predict(features), features[:, 0]
    # Where the estimate is unknown, the trees have to do alone.
    expected = np.where(np.isnan(estimate), alone, (1 - share) * alone + share * np.nan_to_num(estimate))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_features_that_do_not_carry_over_are_not_queried() -> None:
    features, target = table(150)
    model = HistGradientBoostingRegressor(max_iter=5).fit(features[:, [1, 3]], target)
    wide = np.full((150, 9), 7, np.float32)
    wide[:, [2, 8]] = features[:, [1, 3]]
    forest = to_forest([model], np.array([2, 8]))
    assert set(forest.feature.tolist()) <= {-1, 2, 8}
    np.testing.assert_allclose(forest.predict(wide), model.predict(features[:, [1, 3]]), atol=1e-5)


@pytest.fixture
def simple(monkeypatch: pytest.MonkeyPatch) -> None:
    """A basis of four features; the first is an estimate, the last is not to be learned from."""
    monkeypatch.setattr(forest_fit, "feature_names", lambda basis: ("a", "b", "c", "d"))
    monkeypatch.setattr(forest_fit, "learnable_names", lambda basis: ("a", "b", "c"))
    monkeypatch.setattr(forest_fit, "monotonic_names", lambda basis: ("a",))
    monkeypatch.setattr(forest_fit, "estimate_name", lambda basis: "a")


@pytest.mark.usefixtures("simple")
def test_a_latency_grows_with_what_it_can_only_grow_with() -> None:
    features, _ = table(200)
    noise = np.random.default_rng(0).normal(size=200)
    forest = fit_forest(features, noise, EVEN, KERNELS, CONFIG)
    assert not set(forest.feature.tolist()) & {3}
    probe = np.repeat(features[:1], 50, axis=0)
    probe[:, 0] = np.linspace(-3, 3, 50)
    assert np.all(np.diff(forest.predict(probe)) >= -1e-9)


@pytest.mark.usefixtures("simple")
def test_only_a_latency_takes_the_estimate() -> None:
    features, target = table(200)
    half = replace(CONFIG, estimate_share=0.5)
    assert fit_forest(features, target, EVEN, KERNELS, half).offset[1:].tolist() == [0, 0.5]
    assert fit_forest(features, target, EVEN, "network/onnx/accuracy", half).offset[1:].tolist() == [-1, 0]
    assert fit_forest(features, target, EVEN, KERNELS, CONFIG).offset[1:].tolist() == [-1, 0]


@pytest.mark.usefixtures("simple")
def test_a_feature_that_is_never_known_does_no_harm() -> None:
    features, target = table(200)
    features[:, 2] = np.nan
    forest = fit_forest(features, target, EVEN, "network/onnx/accuracy", CONFIG)
    assert np.all(np.isfinite(forest.predict(features)))
    assert 2 not in forest.feature


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize("rows", [200, 1000])
def test_a_forest_is_the_one_that_scikit_learn_fits_to_the_features_themselves(rows: int) -> None:
    features, target = table(rows)
    features[:5, 0], features[:, 1] = np.nan, 7
    weights = np.random.default_rng(1).uniform(0.1, 3, rows)
    config = replace(CONFIG, seeds=1)
    model = HistGradientBoostingRegressor(
        max_iter=config.trees,
        learning_rate=config.learning_rate,
        max_leaf_nodes=config.leaves,
        min_samples_leaf=config.leaf_rows,
        l2_regularization=config.l2,
        max_features=config.features_per_split,
        random_state=0,
    ).fit(features[:, :3], target, sample_weight=weights)
    probe = np.concatenate([features, table(1000, 1)[0]])
    forest = fit_forest(features, target, weights, "network/onnx/accuracy", config)
    np.testing.assert_allclose(forest.predict(probe), model.predict(probe[:, :3]), atol=1e-5, rtol=0)


@pytest.mark.usefixtures("simple")
def test_rows_count_by_their_weights() -> None:
    features, _ = table(200)
    target = np.where(np.arange(200) < 100, 0.0, 5.0)
    light = fit_forest(features, target, np.where(target > 0, 1e-3, 1.0), "network/onnx/accuracy", CONFIG)
    heavy = fit_forest(features, target, np.where(target > 0, 1.0, 1e-3), "network/onnx/accuracy", CONFIG)
    assert light.predict(features).mean() < 1 < 4 < heavy.predict(features).mean()


@pytest.mark.usefixtures("simple")
def test_the_same_seeds_give_the_same_forest() -> None:
    features, target = table(200)
    first, second = (fit_forest(features, target, EVEN, KERNELS, CONFIG) for _ in range(2))
    assert first.predict(features).tolist() == second.predict(features).tolist()


@pytest.mark.usefixtures("simple")
def test_trees_add_to_a_whole_estimate_what_it_lacks() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 4)).astype(np.float32)
    lacking = 0.5 * (features[:, 1] > 0)
    target = features[:, 0].astype(np.float64) + lacking
    forest = fit_forest(features, target, EVEN, KERNELS, replace(CONFIG, estimate_share=1.0, trees=100))
    far = features + np.array([10, 0, 0, 0], np.float32)
    assert forest.predict(far) - far[:, 0] == pytest.approx(lacking, abs=0.1)


@pytest.mark.usefixtures("simple")
def test_a_value_at_its_floor_pulls_no_prediction_up() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 4)).astype(np.float32)
    truth = features[:, 1].astype(np.float64)
    at_floor = (truth < 0) & (rng.random(200) < 0.6)
    target = np.where(at_floor, 0.5, truth)
    plain = fit_forest(features, target, EVEN, KERNELS, CONFIG)
    censored = fit_forest(features, target, EVEN, KERNELS, CONFIG, at_floor)
    errors = [np.abs(forest.predict(features) - truth)[at_floor].mean() for forest in (plain, censored)]
    assert errors[1] < 0.9 * errors[0]
    above = fit_forest(features, np.where(at_floor, -9.0, truth), EVEN, KERNELS, CONFIG, at_floor)
    assert np.all(above.predict(features[at_floor]) < 0)


def test_residuals_of_kernels_are_apart_where_launches_are_known() -> None:
    names = feature_names("kernel")
    rng = np.random.default_rng(0)
    features = np.zeros((400, len(names)), np.float32)
    known = rng.random(400) < 0.5
    features[~known, names.index("launch_known")] = np.nan
    scores = rng.normal(size=400) * np.where(known, 0.1, 1.0)
    groups = np.array([f"g{number % 50}" for number in range(400)])
    found = by_work(KERNELS, features, scores, groups)
    assert found == {
        KERNELS: fit_residuals(scores, groups),
        work_key(KERNELS, True): fit_residuals(scores[known], groups[known]),
        work_key(KERNELS, False): fit_residuals(scores[~known], groups[~known]),
    }
    few = by_work(KERNELS, features[:20], scores[:20], groups[:20])
    assert few.keys() == {KERNELS}
    sheets = by_work(data_sheet_key(KERNELS), features, scores, np.array([f"d{number % 12}" for number in range(400)]))
    assert len(sheets) == 3
    modules = by_work("module/pytorch/latency", features, scores, groups)
    assert modules.keys() == {"module/pytorch/latency"}
