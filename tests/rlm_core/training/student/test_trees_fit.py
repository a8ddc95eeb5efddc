"""Fitting the trees: no row is predicted by trees that saw its family; forests that answer alone know their errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rlm_core.errors import ModelError
from rlm_core.inference.features import describe, feature_names, features
from rlm_core.inference.residuals import spread_key
from rlm_core.training.corpus import Corpus
from rlm_core.training.student import forest_fit, trees_fit
from rlm_core.training.student.config import TreesConfig
from rlm_core.training.student.forest_fit import ForestJob, fit_job, without_devices
from rlm_core.training.student.trees_fit import TreesFit, feature_matrix, fit_trees, load_fit, log_values, save_fit

CONFIG = TreesConfig(trees=20, seeds=2, leaves=6, leaf_rows=2)
KERNELS = "kernel/triton/latency"
NETWORKS = "network/onnx/latency@pixel-3/1"


def test_rows_have_the_features_of_use(mixed_corpus: Corpus) -> None:
    rows = mixed_corpus.rows_of("kernel/triton")
    rows = np.random.default_rng(0).permutation(rows)[:20]
    found = feature_matrix(mixed_corpus, rows, "kernel")
    assert found.shape == (20, len(feature_names("kernel")))
    for place, row in enumerate(rows):
        device, workload = mixed_corpus.queries[mixed_corpus.rows.query[row]]
        text = mixed_corpus.texts[mixed_corpus.rows.text[row]][0]
        np.testing.assert_array_equal(
            found[place], features(describe(text, "kernel", "triton"), "kernel", workload, device)
        )


def test_only_bases_with_features_have_trees(mixed_corpus: Corpus) -> None:
    fitted = fit_trees(mixed_corpus, {"kernel": CONFIG})
    assert fitted.forests.keys() == {KERNELS}
    kernels = mixed_corpus.rows_of("kernel/triton")
    others = np.setdiff1d(np.arange(len(mixed_corpus.rows)), kernels)
    assert not fitted.predictions[others].any()
    actual = log_values(mixed_corpus, kernels, KERNELS)
    held = mixed_corpus.rows.split[kernels] != "train"
    assert np.corrcoef(fitted.predictions[kernels][held], actual[held])[0, 1] > 0.7


EAGER = TreesConfig(trees=40, seeds=1, learning_rate=0.3, leaf_rows=2, features_per_split=1.0)


def test_the_trees_of_programs_read_what_the_ridge_says(mixed_corpus: Corpus) -> None:
    configs = {"kernel": replace(CONFIG, trees=5, seeds=1), "program": EAGER}
    of_boj = [f"{name}@boj" if name.startswith("program/") else name for name in mixed_corpus.tasks]
    values = 10 ** np.random.default_rng(0).uniform(-1, 1, len(mixed_corpus.rows))  # no text says them
    corpus = replace(mixed_corpus, tasks=of_boj, rows=replace(mixed_corpus.rows, value=values))
    programs = np.array([name.endswith("@boj") for name in of_boj])[corpus.rows.task]
    logs = np.log10(corpus.rows.value)
    blind, informed = (fit_trees(corpus, configs, ridge) for ridge in (np.zeros(len(logs)), logs))
    errors = [float(np.abs(found.predictions - logs)[programs].mean()) for found in (blind, informed)]
    assert errors[1] < 0.7 * errors[0]


def test_a_training_row_is_predicted_without_its_family_and_others_by_all(mixed_corpus: Corpus) -> None:
    small = {"kernel": replace(CONFIG, trees=5, seeds=1)}
    kernels = mixed_corpus.rows_of("kernel/triton")
    before = fit_trees(mixed_corpus, small)
    rows = mixed_corpus.rows
    family = str(rows.family[kernels[0]])
    mine = (rows.family == family) & (rows.split == "train")
    assert mine.any()
    changed = replace(mixed_corpus, rows=replace(rows, value=np.where(mine, 1e3, rows.value)))
    after = fit_trees(changed, small)
    np.testing.assert_allclose(after.predictions[mine], before.predictions[mine], atol=1e-6)
    held_out = kernels[rows.split[kernels] == "test"]
    features = feature_matrix(mixed_corpus, held_out, "kernel")
    np.testing.assert_allclose(after.predictions[held_out], after.forests[KERNELS].predict(features), atol=1e-6)


def test_separate_processes_fit_the_same_forests(mixed_corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"kernel": replace(CONFIG, trees=5, seeds=1)}
    here = fit_trees(mixed_corpus, small)
    monkeypatch.setattr(trees_fit, "_ROWS_FOR_PROCESSES", 0)
    there = fit_trees(mixed_corpus, small)
    np.testing.assert_array_equal(there.predictions, here.predictions)
    assert there.forests.keys() == here.forests.keys()


def test_values_are_given_in_powers_of_ten_and_not_below_the_floor(mixed_corpus: Corpus) -> None:
    rows = mixed_corpus.rows_of("call/python")[:4:2]
    tiny = replace(mixed_corpus, rows=replace(mixed_corpus.rows, value=np.zeros(len(mixed_corpus.rows))))
    np.testing.assert_allclose(log_values(tiny, rows, "call/python/latency"), np.log10(5e-8))
    kernels = mixed_corpus.rows_of("kernel/triton")
    np.testing.assert_allclose(10 ** log_values(mixed_corpus, kernels, KERNELS), mixed_corpus.rows.value[kernels])


@pytest.fixture
def four_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks with four features instead of hundreds, so that a forest is fitted in no time."""
    monkeypatch.setattr(forest_fit, "feature_names", lambda basis: ("a", "b", "c", "d"))
    monkeypatch.setattr(forest_fit, "learnable_names", lambda basis: ("a", "b", "c", "d"))
    monkeypatch.setattr(forest_fit, "work_is_known", lambda basis, features: None)


def network_job(rows: int = 3000) -> ForestJob:
    """Networks of two kinds: the latencies of one spread ten times as far as those of the other."""
    rng = np.random.default_rng(0)
    # Few enough values for a bin each: scikit-learn takes half a second to bin more of them by weight.
    features = rng.normal(size=(rows, 4)).round(1).astype(np.float32)
    noisy = features[:, 0] > 0
    target = features[:, 1] + np.where(noisy, 0.2, 0.02) * rng.normal(size=rows)
    groups = np.array([f"network-{number}" for number in range(rows)])
    split = rng.choice(["train", "cal", "test"], rows, p=[0.6, 0.2, 0.2])
    config, device = replace(CONFIG, trees=60, leaf_rows=10), np.full(rows, "pixel-3")
    return ForestJob(
        NETWORKS, config, features, target, groups, np.arange(rows) % 5, split, device, np.zeros(rows, bool)
    )


@pytest.mark.usefixtures("four_features")
def test_a_standalone_forest_covers_networks_of_every_kind() -> None:
    job = network_job()
    forests, measured, found = fit_job(job)
    assert forests.keys() == {NETWORKS, spread_key(NETWORKS)}
    residuals = measured[NETWORKS]
    assert residuals.rows == residuals.groups == np.count_nonzero(job.split == "cal")
    size = 10 ** forests[spread_key(NETWORKS)].predict(job.features)
    low, high = residuals.quantiles[4], residuals.quantiles[12]
    inside = (job.target >= found + low * size) & (job.target <= found + high * size)
    for kind in (job.features[:, 0] > 0, job.features[:, 0] <= 0):
        assert inside[kind & (job.split == "test")].mean() == pytest.approx(0.8, abs=0.07)


@pytest.mark.usefixtures("four_features")
def test_the_test_rows_do_not_touch_the_residuals() -> None:
    job = network_job(600)
    other = replace(job, target=np.where(job.split == "test", 9.0, job.target))
    assert fit_job(job)[1] == fit_job(other)[1]


@pytest.mark.usefixtures("four_features")
def test_few_groups_are_calibrated_on_training_rows_too_with_one_size_for_all() -> None:
    job = network_job()
    groups = np.array([f"idea-{number % 50}" for number in range(len(job.group))])
    number = np.arange(len(groups)) % 50
    split = np.select([number < 35, number < 40, number < 45], ["train", "cal", "val"], "test")
    few = replace(job, group=groups, fold=number % 5, split=split)
    forests, measured, found = fit_job(few)
    assert forests.keys() == {NETWORKS}
    residuals = measured[NETWORKS]
    assert residuals.groups == 45
    assert residuals.rows == np.count_nonzero(split != "test")
    inside = (job.target >= found + residuals.quantiles[4]) & (job.target <= found + residuals.quantiles[12])
    assert inside[split == "test"].mean() == pytest.approx(0.8, abs=0.07)


@pytest.mark.usefixtures("four_features")
def test_a_fit_survives_its_files(tmp_path: Path) -> None:
    forests, residuals, predictions = fit_job(network_job(600))
    fitted = TreesFit(forests, residuals, predictions)
    path, rest = tmp_path / "trees.safetensors", tmp_path / "grown.npz"
    save_fit(fitted, path, rest)
    again = load_fit(path, rest)
    assert again.residuals == fitted.residuals
    assert again.predictions.tolist() == fitted.predictions.tolist()
    assert again.forests.keys() == fitted.forests.keys()
    path.write_bytes(b"")
    with pytest.raises(ModelError, match="reinstall"):
        load_fit(path, rest)


@pytest.mark.usefixtures("four_features")
def test_leaving_devices_out_in_turn_bounds_the_error_for_a_new_one() -> None:
    """Twenty devices with an offset each that no feature tells: bands of a new one must hold the offsets."""
    rng = np.random.default_rng(1)
    job = replace(network_job(2000), key=KERNELS)
    device = np.array([f"gpu-{number}" for number in rng.integers(0, 20, 2000)])
    offset = dict(zip(np.unique(device).tolist(), rng.normal(0, 0.5, 20), strict=True))
    job = replace(job, device=device, target=job.features[:, 1] + [offset[name] for name in device])
    # A forest per device and fold, twice: small ones learn the one feature that matters.
    job = replace(job, config=replace(job.config, trees=25, seeds=1))
    by_task = without_devices(job)
    [(name, residuals)] = by_task.items()
    assert name == "kernel/triton/latency#sheet"
    assert residuals.groups == 20
    assert residuals.rows == np.count_nonzero(job.split != "test")
    inside = [residuals.quantiles[4] <= value <= residuals.quantiles[12] for value in offset.values()]
    assert 0.7 <= np.mean(inside) <= 0.95
    other = replace(job, target=np.where(job.split == "test", 9.0, job.target))
    assert without_devices(other) == by_task
    assert without_devices(replace(job, device=np.array([f"gpu-{number % 9}" for number in range(2000)]))) == {}
