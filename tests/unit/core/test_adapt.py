"""Few-shot devices: the fit on matrices, what it is told, how it is kept, and the predictor that uses it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import CodeText, DataError, ModelError, Prediction, Query
from rlm_core.adapt import (
    AdaptedPredictor,
    Measurement,
    adapt,
    choose,
    fit_device,
    personal,
    posterior,
    read_adapters,
    read_measurements,
    suggest,
    write_adapters,
)
from rlm_core.adapt import fit as fit_module
from rlm_core.adapt.columns import column_names, text_columns
from rlm_core.adapt.fit import Array, DeviceFit
from rlm_core.calibration import bands
from rlm_core.graphs import Constant, Graph, Node, Ref, Value, ordered, render
from rlm_core.types import METRICS_OF_BASIS, Basis

from ...fakes import quantiles

DEVICES = ("gpu-a", "gpu-b", "gpu-c")


class FakePredictor:
    """Predicts a kernel's latency as its length in microseconds, times a factor a device; abstains from ``odd``."""

    model_id = "fake-1"
    factors: Mapping[str, float] = dict(zip(DEVICES, (1.0, 2.0, 5.0), strict=True))
    odd = "odd"

    def devices(self, basis: Basis) -> tuple[str, ...]:
        return DEVICES if basis == "kernel" else ()

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return tuple(Query(metric, "gpu-a") for metric in METRICS_OF_BASIS[basis])

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return [[self._one(code, query) for query in line] for code, line in zip(texts, queries, strict=True)]

    def _one(self, code: CodeText, query: Query) -> Prediction:
        blank = Prediction(
            code.basis, query.metric, query.device, query.workload, self.model_id, None, (), 0.0, False, "unknown"
        )
        if query.device is None or query.device not in self.factors or self.odd in code.text:
            return blank
        slope = 1.0 + 0.1 * DEVICES.index(query.device)
        value = 1e-6 * len(code.text) ** slope * self.factors[query.device]
        found = quantiles(value)
        return replace(blank, median=value, bands=bands(found, 50, 500, "kernel"), abstained=None, quantiles=found)


def kernel(size: int) -> CodeText:
    return CodeText("k" * size, "triton", "kernel")


def measured(sizes: Sequence[int], factor: float = 20.0) -> list[Measurement]:
    return [Measurement(i, kernel(n), Query("latency"), 1e-6 * n * factor) for i, n in enumerate(sizes, 1)]


def synthetic(rng: np.random.Generator, rows: int, devices: int = 8) -> tuple[Array, Array]:
    """log10 latencies of known devices and of a new one that mixes them: shared costs, own costs, noise."""
    costs = rng.standard_normal((rows, 4)) * (0.4, 0.2, 0.1, 0.1)
    loads = np.column_stack([np.ones(devices + 1), rng.standard_normal((devices + 1, 3))])
    values = costs @ loads.T + rng.standard_normal((rows, devices + 1)) * 0.02 + rng.normal(0, 1, devices + 1) - 3
    return values[:, :-1], values[:, -1]


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
    monkeypatch.setattr(posterior, "_PENALTIES", np.array([0.1]))
    monkeypatch.setattr(fit_module, "_basis", lambda columns, devices: basis)
    whole, rest = fit_device(known, target), np.arange(12) != 4
    without = fit_device(known[rest], target[rest])
    np.testing.assert_allclose(whole.without_text.weights[4], without.weights, atol=1e-10)
    assert whole.without_text.residuals[4] == pytest.approx(target[4] - without.predict(known[[4]])[0], abs=1e-10)


def test_leaving_a_group_out_is_what_fitting_without_it_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    known, target = synthetic(np.random.default_rng(6), 14)
    groups = [0, 0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    basis = fit_module._basis(known, known.shape[1])
    monkeypatch.setattr(posterior, "_PENALTIES", np.array([0.1]))
    monkeypatch.setattr(posterior, "_GROUP_SHARES", (3.0,))
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


def test_leaving_a_row_out_keeps_what_its_text_told(monkeypatch: pytest.MonkeyPatch) -> None:
    known, target, texts = grouped(np.random.default_rng(4), 5, 3, 0.5)
    basis = fit_module._basis(known, known.shape[1])
    monkeypatch.setattr(posterior, "_PENALTIES", np.array([0.1]))
    monkeypatch.setattr(posterior, "_GROUP_SHARES", (3.0,))
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


def test_a_measured_text_is_known_whatever_its_comments() -> None:
    """Five kernels, one three times as slow as the model thinks: its comments change, its own factor stays."""
    base = FakePredictor()

    def code(name: str, comment: str = "") -> CodeText:
        return CodeText(f"def {name}(x):{comment}\n    tl.store(x, 1)\n", "triton", "kernel")

    names = [letter * size for letter, size in zip("abcde", (1, 9, 5, 7, 3), strict=True)]
    slow = names[2]
    rows = [
        Measurement(line, code(name), Query("latency", None, {"n": str(line)}), (3 if name == slow else 1) * 1e-5)
        for line in range(1, 9)
        for name in names
    ]
    adapters = adapt(base, "new", rows).adapters
    assert len(adapters[0].texts) == 5
    asked = [code(slow), code(slow, "  #"), code("f" * 5)]
    found = AdaptedPredictor(base, adapters).predict(asked, [[Query("latency", "new")]] * 3)
    first, second, other = (answer.median or 0.0 for [answer] in found)
    assert first == pytest.approx(3e-5, rel=0.1)
    assert second > 2.5e-5  # the fake predictor reads comments
    assert 1e-5 < other < 1.6e-5


def test_measurements_of_one_text_say_so() -> None:
    rows = [Measurement(i, kernel(40), Query("latency", None, {"n": str(i)}), 1e-3 * i) for i in range(1, 8)]
    found = adapt(FakePredictor(), "new", rows)
    assert found.problems == ("latency of basis kernel: all measurements are of one text; others may lie far outside",)


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
    told = fit_device(known[:20], target[:20], launches[:20])
    unknown = np.full((200, 1), math.nan)
    assert correlation(told.predict(known[20:], launches[20:]), target[20:]) > 0.95
    assert correlation(plain.predict(known[20:]), target[20:]) < 0.9
    assert np.isfinite(told.predict(known[20:], unknown)).all()
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


def test_an_adapted_device_is_answered_and_others_pass_through() -> None:
    base = FakePredictor()
    found = adapt(base, "new", measured(range(10, 130, 10)))
    assert found.problems == ()
    predictor = AdaptedPredictor(base, found.adapters)
    queries = [Query("latency", "gpu-b"), Query("latency", "new"), Query("latency", "nothing")]
    [[known, new, unknown]] = predictor.predict([kernel(75)], [queries])
    assert known == base.predict([kernel(75)], [queries])[0][0]
    assert new.median == pytest.approx(1e-6 * 75 * 20, rel=0.02)
    assert (new.device, new.model, new.abstained) == ("new", "fake-1", None)
    assert [band.coverage for band in new.bands] == [0.8, 0.9]
    assert new.band is not None
    assert (new.band.level, new.band.rows) == ("adapted to new", 12)
    assert new.median is not None
    assert new.band.low <= new.median <= new.band.high
    assert unknown.abstained == "unknown"
    assert predictor.devices("kernel") == (*DEVICES, "new")
    assert predictor.default_queries("kernel", "triton") == base.default_queries("kernel", "triton")


def test_a_text_that_a_known_device_abstains_from_is_abstained_from() -> None:
    base = FakePredictor()
    predictor = AdaptedPredictor(base, adapt(base, "new", measured(range(10, 60, 10))).adapters)
    [[answer]] = predictor.predict([CodeText("odd", "triton", "kernel")], [[Query("latency", "new")]])
    assert answer.median is None
    assert answer.device == "new"
    assert answer.abstained is not None
    assert "unknown" in answer.abstained


def test_bad_measurements_are_told_and_the_others_used() -> None:
    odd = Measurement(99, CodeText("odd one", "triton", "kernel"), Query("latency"), 1.0)
    other = Measurement(7, CodeText("def f(): pass", "python", "call"), Query("latency"), 1.0)
    found = adapt(FakePredictor(), "new", [*measured(range(10, 60, 10)), odd, other])
    assert [adapter.fit.n for adapter in found.adapters] == [5]
    assert found.problems[0] == "line 99: unknown"
    assert "latency of basis call: 0 usable measurements; at least 5" in found.problems[-1]


def test_fewer_than_five_distinct_measurements_are_one_error() -> None:
    repeats = [*measured([10, 20, 30, 40]), *measured([10, 20, 30, 40])]
    with pytest.raises(DataError, match="4 usable measurements; at least 5"):
        adapt(FakePredictor(), "new", repeats)
    with pytest.raises(DataError, match="nothing to adapt from"):
        adapt(FakePredictor(), "new", [])


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden", "x" * 99])
def test_a_device_name_that_is_no_file_name_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="use letters"):
        adapt(FakePredictor(), name, measured(range(10, 60, 10)))


def test_an_adapter_survives_its_file(tmp_path: Path) -> None:
    base = FakePredictor()
    adapters = adapt(base, "new", measured(range(10, 130, 10))).adapters
    write_adapters(adapters, tmp_path / "deep" / "new.json")
    back = read_adapters(tmp_path / "deep" / "new.json", base.model_id)
    [[first]] = AdaptedPredictor(base, adapters).predict([kernel(33)], [[Query("latency", "new")]])
    [[second]] = AdaptedPredictor(base, back).predict([kernel(33)], [[Query("latency", "new")]])
    assert first.median is not None
    assert second.median == pytest.approx(first.median, rel=1e-4)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["new.json"]


def test_an_adapter_of_other_weights_says_to_adapt_again(tmp_path: Path) -> None:
    base = FakePredictor()
    write_adapters(adapt(base, "new", measured(range(10, 60, 10))).adapters, tmp_path / "new.json")
    with pytest.raises(ModelError, match=r"rests on the model fake-1, but other-2 is in use; run rlm-lsp adapt again"):
        read_adapters(tmp_path / "new.json", "other-2")


def _set(key: str, value: object) -> Callable[[dict[str, object]], None]:
    return lambda data: data.update({key: value})


@pytest.mark.parametrize(
    "damage",
    [
        _set("format", "rlm-adapter-0"),
        _set("fits", 3),
        _set("device", "../x"),
        lambda data: data["fits"][0].update(weights=[1.0]),
        lambda data: data["fits"][0]["without_text"].update(residuals=[float("nan")] * 5),
        lambda data: data["fits"][0].update(metric="accuracy"),
        lambda data: data["fits"][0].update(text_of_row=[0, 1, 3, 4, 5]),
        lambda data: data["fits"][0].update(text_of_row=[]),
        lambda data: data["fits"][0].pop("intercept"),
        lambda data: data.pop("model"),
    ],
)
def test_a_damaged_adapter_is_one_clear_error(tmp_path: Path, damage: Callable[[dict[str, object]], None]) -> None:
    path = tmp_path / "new.json"
    write_adapters(adapt(FakePredictor(), "new", measured(range(10, 60, 10))).adapters, path)
    data = json.loads(path.read_text())
    damage(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ModelError, match=r"new\.json: .*run rlm-lsp adapt again"):
        read_adapters(path)


def test_adapters_in_the_folder_are_used_and_a_stale_one_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_LSP_CPU_SCALE", "0")
    base = FakePredictor()
    adapters = adapt(base, "new", measured(range(10, 60, 10))).adapters
    write_adapters(adapters, tmp_path / "new.json")
    write_adapters([replace(entry, device="old", model="fake-0") for entry in adapters], tmp_path / "old.json")
    [[new, old]] = personal(base, tmp_path).predict([kernel(30)], [[Query("latency", "new"), Query("latency", "old")]])
    assert new.median is not None
    assert old.abstained is not None
    assert "run rlm-lsp adapt again" in old.abstained
    assert personal(base, tmp_path / "none") is base


def _rows(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


def test_measurements_are_read_from_texts_and_files_in_si_units(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("def f(n):\n    return n\n\n\ndef g(n):\n    return f(n)\n")
    path = _rows(
        tmp_path / "m.jsonl",
        {"path": "code.py", "qualname": "g", "latency_us": 5},
        "",
        {
            "text": "int x;",
            "language": "c",
            "basis": "program",
            "metric": "memory",
            "value": 2048,
            "workload": {"n": 3},
        },
    )
    [first, second], problems = read_measurements(path)
    assert problems == []
    assert first.value == pytest.approx(5e-6)
    assert (first.line, first.code.basis) == (1, "call")
    assert [callee.level for callee in first.code.callees] == [1]
    assert (second.line, second.value, second.query) == (3, 2048.0, Query("memory", None, {"n": "3"}))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "not JSON"),
        ([1], "must be a JSON object"),
        ({"text": "x", "language": "c", "basis": "program"}, "give one of `value`"),
        ({"text": "x", "language": "c", "basis": "program", "value": 1, "latency_ms": 1}, "give one of `value`"),
        ({"text": "x", "language": "c", "basis": "program", "value": 0}, "must be a number above 0"),
        ({"text": "x", "language": "c", "basis": "program", "value": True}, "must be a number above 0"),
        ({"text": "x", "language": "c", "basis": "program", "metric": "accuracy", "value": 1}, "`metric` must be"),
        ({"text": "x", "language": "c", "basis": "program", "metric": "memory", "latency_ms": 1}, "is no memory"),
        ({"text": "x", "language": "c", "basis": "nothing", "value": 1}, "`basis` must be"),
        ({"text": "x", "language": "klingon", "basis": "program", "value": 1}, "klingon"),
        ({"text": "x", "language": "c", "basis": "program", "value": 1, "workload": {"n": [1]}}, "`workload` must"),
        ({"value": 1}, "give `path` or `text`"),
        ({"path": "code.py", "qualname": "h", "value": 1}, "0 units are called 'h'; code.py has f, g"),
        ({"path": "code.py", "value": 1}, "`qualname` is missing; code.py has f, g"),
        ({"path": "missing.py", "value": 1}, "missing.py"),
    ],
)
def test_a_bad_row_is_told_by_line_and_the_others_are_used(tmp_path: Path, row: object, reason: str) -> None:
    (tmp_path / "code.py").write_text("def f(n):\n    return n\n\n\ndef g(n):\n    return f(n)\n")
    good = {"text": "int x;", "language": "c", "basis": "program", "latency_ms": 2}
    path = _rows(tmp_path / "m.jsonl", row, good)
    found, [problem] = read_measurements(path)
    assert [entry.value for entry in found] == [pytest.approx(2e-3)]
    assert problem.startswith(f"{path}:1: ")
    assert reason in problem
    assert "\n" not in problem


def test_a_missing_file_of_measurements_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_measurements(tmp_path / "none.jsonl")


def test_candidates_need_no_value_and_the_suggested_ones_are_named_by_line() -> None:
    candidates = [replace(row, value=None) for row in measured([10, 11, 12, 500, 13, 14])]
    lines = suggest(FakePredictor(), candidates, 2)
    assert len(lines) == 2
    assert 4 in lines


def test_a_networks_operators_are_counted_by_kind() -> None:
    weight = Constant((4, 3, 3, 3))
    nodes = (
        Node("Conv", (Ref(-1), weight), (("kernel_shape", (3, 3)),), ((1, 4, 8, 8),)),
        Node("Relu", (Ref(0),), (), ((1, 4, 8, 8),)),
        Node("Add", (Ref(0), Ref(1)), (), ((1, 4, 8, 8),)),
    )
    text = render(ordered(Graph((Value((1, 3, 10, 10)),), nodes, (Ref(2),))))
    names = column_names("network")
    found = dict(zip(names, text_columns(CodeText(text, "onnx", "network"), names), strict=True))
    assert {name for name, value in found.items() if value > 0} == {"spatial", "other", "merge"}
    assert np.isnan(text_columns(CodeText("no graph", "onnx", "network"), names)).all()
    assert column_names("kernel") == ()


def test_a_fit_is_small_on_disk(tmp_path: Path) -> None:
    known, target = synthetic(np.random.default_rng(0), 100, devices=26)
    fit: DeviceFit = fit_device(known, target)
    [adapter] = adapt(FakePredictor(), "new", measured(range(10, 60, 10))).adapters
    whole = replace(adapter, known=tuple(f"d{i}" for i in range(26)), fit=fit)
    write_adapters([whole], tmp_path / "new.json")
    assert (tmp_path / "new.json").stat().st_size < 64 * 1024
