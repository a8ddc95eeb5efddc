"""Few-shot devices on matrices: what the fit predicts, what its bands cover, what leaving texts out means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.adaptation import fit as fit_module
from rlm_core.inference.adaptation.fit import Array, choose, fit_device

from .adapting import synthetic


def correlation(a: Array, b: Array) -> float:
    return float(np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1])


def test_ten_measurements_rank_unseen_texts_better_than_the_mean_of_the_known_devices() -> None:
    fitted, plain = [], []
    for seed in range(40):
        known, target = synthetic(np.random.default_rng(seed), 210)
        fit = fit_device(known[:10], target[:10])
        fitted.append(correlation(fit.predict(known[10:]), target[10:]))
        plain.append(correlation(known[10:].mean(1), target[10:]))
    assert np.mean(fitted) > 0.95 > np.mean(plain)


@pytest.mark.parametrize("n", [10, 20, 60])
def test_bands_cover_what_they_say(n: int) -> None:
    covered = []
    for seed in range(120):
        known, target = synthetic(np.random.default_rng(seed), n + 100)
        fit = fit_device(known[:n], target[:n])
        ends = [fit.band(known[n:], coverage) for coverage in (0.8, 0.9)]
        covered.append([np.mean((low <= target[n:]) & (target[n:] <= high)) for low, high in ends])
    eighty, ninety = np.mean(covered, 0)
    assert 0.74 <= eighty <= 0.90
    assert 0.84 <= ninety <= 0.97


def test_below_ten_measurements_the_models_own_band_only_widens() -> None:
    known, target = synthetic(np.random.default_rng(3), 30)
    few, enough = fit_device(known[:6], target[:6]), fit_device(known[:12], target[:12])
    for own in (0.0, 1.0):
        low, high = few.band(known[20:], 0.8, own)
        plain_low, plain_high = few.band(known[20:], 0.8)
        assert (low <= plain_low + 1e-12).all()
        assert (high >= plain_high - 1e-12).all()
        assert ((high - low) > (plain_high - plain_low) + 0.5).all() == (own == 1.0)
    np.testing.assert_array_equal(enough.band(known[20:], 0.8, 1.0), enough.band(known[20:], 0.8))


def test_leaving_a_point_out_is_what_fitting_without_it_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    known, target = synthetic(np.random.default_rng(5), 12)
    basis = fit_module._basis(known, known.shape[1])
    monkeypatch.setattr(fit_module, "_PENALTIES", np.array([0.1]))
    monkeypatch.setattr(fit_module, "_basis", lambda columns, devices: basis)
    whole, rest = fit_device(known, target), np.arange(12) != 4
    without = fit_device(known[rest], target[rest])
    np.testing.assert_allclose(whole.without_text.weights[4], without.weights, atol=1e-10)
    assert whole.without_text.residuals[4] == pytest.approx(target[4] - without.predict(known[[4]])[0], abs=1e-10)


def test_leaving_a_group_out_is_what_fitting_without_it_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    known, target = synthetic(np.random.default_rng(6), 14)
    groups = [0, 0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    basis = fit_module._basis(known, known.shape[1])
    monkeypatch.setattr(fit_module, "_PENALTIES", np.array([0.1]))
    monkeypatch.setattr(fit_module, "_GROUP_SHARES", (3.0,))
    monkeypatch.setattr(fit_module, "_basis", lambda columns, devices: basis)
    whole = fit_device(known, target, texts=groups)
    for group in (0, 2, 8):
        own = np.array(groups) == group
        kept = [other for other in groups if other != group]
        without = fit_device(known[~own], target[~own], texts=kept)
        [number] = set(whole.texts[own])
        np.testing.assert_allclose(whole.without_text.weights[number], without.weights[:8], atol=1e-9)
        assert whole.without_text.intercepts[number] == pytest.approx(without.intercept, abs=1e-9)
        missed = target[own] - without.predict(known[own])
        np.testing.assert_allclose(whole.without_text.residuals[own], missed, atol=1e-9)


def grouped(rng: np.random.Generator, groups: int, each: int, spread: float) -> tuple[Array, Array, list[int]]:
    """Rows of texts with something of their own that no known device shows: ``spread`` is its size in decades."""
    known, target = synthetic(rng, groups * each)
    owners = np.repeat(np.arange(groups), each)
    return known, target + spread * rng.standard_normal(groups)[owners], owners.tolist()


def test_bands_cover_new_texts_where_the_measured_ones_have_many_rows_each() -> None:
    together: list[float] = []
    alone: list[float] = []
    for seed in range(30):
        known, target, groups = grouped(np.random.default_rng(seed), 32, 6, 0.3)
        fitted, new = slice(0, 12 * 6), slice(12 * 6, None)
        for found, own in ((together, groups[fitted]), (alone, None)):
            low, high = fit_device(known[fitted], target[fitted], texts=own).band(known[new], 0.8)
            found.append(float(np.mean((low <= target[new]) & (target[new] <= high))))
    assert 0.74 <= np.mean(together) <= 0.9
    assert np.mean(together) > np.mean(alone) + 0.03


def test_many_rows_of_few_texts_move_the_prediction_less_than_as_many_texts() -> None:
    """What rows of a text have in common is not taken for what the device does to all texts."""
    errors: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(20):
        known, target = synthetic(np.random.default_rng(seed), 400)
        groups = np.repeat(np.arange(4), 25)
        own = 0.5 * np.random.default_rng(seed + 1).standard_normal(4)[groups]
        for knows, found in errors.items():
            fit = fit_device(known[:100], target[:100] + own, texts=groups.tolist() if knows else None)
            found.append(float(np.std(fit.predict(known[100:]) - target[100:])))  # the offset takes what it can
    assert np.mean(errors[True]) < 0.7 * np.mean(errors[False])


def test_a_text_with_several_measurements_is_known_from_them_at_other_sizes() -> None:
    known, target, texts = grouped(np.random.default_rng(2), 12, 8, 0.5)
    given = np.arange(len(texts)) % 8 < 4
    fit = fit_device(known[given], target[given], texts=np.array(texts)[given].tolist())
    assert fit.several == 12
    covered, errors, widths = [], [], []
    for text in range(12):
        asked = ~given & (np.array(texts) == text)
        for number in (text, None):
            low, high = fit.band(known[asked], 0.8, text=number)
            covered.append(np.mean((low <= target[asked]) & (target[asked] <= high)))
            errors.append(np.abs(fit.predict(known[asked], text=number) - target[asked]).mean())
            widths.append((high - low).mean())
    assert np.mean(errors[::2]) < 0.3 * np.mean(errors[1::2])
    assert np.mean(widths[::2]) < 0.3 * np.mean(widths[1::2])
    assert np.mean(covered[::2]) >= 0.7


def test_leaving_a_row_out_keeps_the_features_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    known, target, texts = grouped(np.random.default_rng(4), 5, 3, 0.5)
    basis = fit_module._basis(known, known.shape[1])
    monkeypatch.setattr(fit_module, "_PENALTIES", np.array([0.1]))
    monkeypatch.setattr(fit_module, "_GROUP_SHARES", (3.0,))
    monkeypatch.setattr(fit_module, "_basis", lambda columns, devices: basis)
    whole, kept = fit_device(known, target, texts=texts), np.arange(15) != 7
    without = fit_device(known[kept], target[kept], texts=np.array(texts)[kept].tolist())
    assert whole.without_row is not None
    np.testing.assert_allclose(whole.without_row.weights[7], without.weights, atol=1e-9)
    missed = target[7] - without.predict(known[[7]], text=texts[7])[0]
    assert whole.without_row.residuals[7] == pytest.approx(missed, abs=1e-9)


@given(st.lists(st.integers(0, 4), min_size=5, max_size=12), st.integers(0, 99))
def test_any_grouping_gives_finite_bands_around_the_prediction(groups: list[int], seed: int) -> None:
    known, target = synthetic(np.random.default_rng(seed), len(groups) + 3)
    fit = fit_device(known[: len(groups)], target[: len(groups)], texts=groups)
    assert fit.text_count == len(set(groups))
    middle = fit.predict(known)
    before = middle, middle
    for coverage in (0.5, 0.8, 0.9):
        low, high = fit.band(known, coverage, 0.2)
        assert np.isfinite(low).all()
        assert (low <= before[0] + 1e-9).all()
        assert (high >= before[1] - 1e-9).all()
        before = low, high


def test_a_device_that_is_a_constant_factor_slower_is_found_exactly() -> None:
    rng = np.random.default_rng(0)
    known = rng.standard_normal((8, 1))
    fit = fit_device(known, known[:, 0] + 0.7)
    np.testing.assert_allclose(fit.predict(known), known[:, 0] + 0.7, atol=1e-6)


@given(st.floats(-5, 5), st.integers(0, 1000))
def test_a_change_of_unit_moves_the_prediction_by_as_much(shift: float, seed: int) -> None:
    known, target = synthetic(np.random.default_rng(seed), 14)
    moved = fit_device(known[:10], target[:10] + shift).predict(known[10:])
    np.testing.assert_allclose(moved, fit_device(known[:10], target[:10]).predict(known[10:]) + shift, atol=1e-6)


def test_one_text_measured_over_and_over_gives_its_value_and_no_more() -> None:
    fit = fit_device(np.full((6, 3), -4.0), np.array([-3.0, -3.1, -2.9, -3.0, -3.05, -2.95]))
    assert fit.predict(np.full((1, 3), -4.0))[0] == pytest.approx(-3.0, abs=1e-6)
    assert np.isfinite(fit.predict(np.array([[-5.0, -4.0, -3.0]]))).all()


def test_text_columns_help_and_unknown_ones_do_no_harm() -> None:
    rng = np.random.default_rng(1)
    known, target = synthetic(rng, 220)
    launches = rng.standard_normal((220, 1))
    target = target + 0.3 * launches[:, 0]
    plain = fit_device(known[:20], target[:20])
    fitted = fit_device(known[:20], target[:20], launches[:20])
    unknown = np.full((200, 1), math.nan)
    assert correlation(fitted.predict(known[20:], launches[20:]), target[20:]) > 0.95
    assert correlation(plain.predict(known[20:]), target[20:]) < 0.9
    assert np.isfinite(fitted.predict(known[20:], unknown)).all()
    silent = fit_device(known[:20], target[:20], unknown[:20])
    np.testing.assert_allclose(silent.predict(known[20:], unknown), plain.predict(known[20:]), atol=1e-9)


@pytest.mark.parametrize("rows", [0, 4])
def test_too_few_rows_cannot_be_fitted(rows: int) -> None:
    with pytest.raises(ValueError, match="cannot be fitted"):
        fit_device(np.zeros((rows, 2)), np.zeros(rows))


def test_chosen_texts_are_distinct_and_better_than_chance() -> None:
    chosen: list[float] = []
    chance: list[float] = []
    for seed in range(30):
        known, target = synthetic(np.random.default_rng(seed), 400)
        best = choose(known[:200], 10)
        assert len(set(best)) == 10
        for rows, scores in ((best, chosen), (list(range(10)), chance)):
            scores.append(correlation(fit_device(known[rows], target[rows]).predict(known[200:]), target[200:]))
    assert np.mean(chosen) > np.mean(chance)
    assert choose(known[:3], 10) == pytest.approx(choose(known[:3], 3))
