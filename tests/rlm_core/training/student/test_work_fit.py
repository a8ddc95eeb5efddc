"""Fitting the work mixture: it believes facts that explain the values, covers what it states, and chooses its rows."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.work_mixture import FACTS, FIXED, METRICS
from rlm_core.training.datasets.schema import Edit, write_facts, write_rows
from rlm_core.training.student import work_fit
from rlm_core.training.student.cost_ratio_fit import FEWEST_PAIRS
from rlm_core.training.student.work_fit import (
    FOLDS,
    WorkRows,
    calibrate_mixture,
    fit_mixture,
    fit_ratios,
    work_rows,
)
from rlm_core.types import LEVELS, Amount, CostFacts, WorkFacts

pytestmark = pytest.mark.extras
FLOOR = 1e-8


def facts_of(seconds: float, unknown: float) -> WorkFacts:
    """Facts that state so much work, next to calls of unknown cost."""
    cost = CostFacts(Amount(seconds, seconds, seconds), seconds, seconds)
    return WorkFacts(latency=cost, memory=cost, unknown_calls=unknown, nodes=20)


def rows_of(count: int = 400, metric: str = "latency") -> WorkRows:
    """Generated functions that cost what their text fixes, and real ones that cost what the model says."""
    rng = np.random.default_rng(0)
    generated = np.arange(count) % 2 == 0
    work = rng.uniform(-5, 1, count)
    medians = rng.uniform(-5, 1, count)
    values = np.where(generated, work + rng.normal(0, 0.05, count), medians + rng.normal(0, 0.3, count))
    spread = np.array([0.5 * np.log(level / (1 - level)) for level in LEVELS])
    groups = np.array([f"group{index % 40}" for index in range(count)])
    return WorkRows(
        metric,
        FLOOR,
        [str(index) for index in range(count)],
        [facts_of(10**at, 0.0 if known else 5.0) for at, known in zip(work.tolist(), generated, strict=True)],
        [tuple(10 ** (median + spread)) for median in medians.tolist()],
        values,
        groups,
        generated,
        np.arange(count) % 40 % FOLDS,
    )


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The laws hold long before a fit ends."""
    monkeypatch.setattr(work_fit, "_EPOCHS", 120)


def quietly(text: str) -> None:
    """Say nothing."""


def test_facts_that_fix_the_cost_are_believed_and_others_are_not() -> None:
    rows = rows_of()
    said: list[str] = []
    network = fit_mixture({"latency": rows}, said.append).networks["latency"]
    works = network.known_work(rows.inputs())
    weights = np.array([work.weight for work in works])
    assert np.median(weights[rows.generated]) > 0.9
    assert np.median(weights[~rows.generated]) < 0.3
    centres = np.array([work.centre for work in works])[rows.generated]
    assert np.abs(centres - rows.values[rows.generated]).mean() < 0.2
    [line] = said
    before, after = (float(part.split()[0]) for part in line.split("loss ")[1].split(" nats without facts, "))
    assert after < before


def test_a_fit_is_the_same_every_time() -> None:
    first, second = (fit_mixture({"latency": rows_of(100)}, quietly).networks["latency"] for _ in range(2))
    assert np.array_equal(first.hidden, second.hidden)
    assert np.array_equal(first.out, second.out)


def test_bands_are_calibrated_apart_on_groups_that_no_network_saw() -> None:
    rows = rows_of()
    levels = calibrate_mixture({"latency": rows}).to_json()
    assert levels[f"{FIXED}/call/python/latency"]["rows"] == pytest.approx(rows.generated.sum(), abs=10)
    # Generated functions say nothing of real ones.
    assert levels[f"{FACTS}/call/python/latency"]["rows"] <= (~rows.generated).sum()
    assert levels[f"{FACTS}/call/python/latency"]["groups"] == 20


def test_ratios_need_pairs_and_are_apart_for_texts_that_fix_their_cost() -> None:
    rows = rows_of()
    mixture = fit_mixture({"latency": rows}, quietly)
    fixed = [Edit(str(index), str(index + 2)) for index in range(0, 2 * FEWEST_PAIRS, 2)]
    others = [Edit(str(index), str(index + 2)) for index in range(1, 2 * FEWEST_PAIRS + 1, 2)]
    missing = [Edit("0", "of another data set")] * 100
    assert fit_ratios({"latency": rows}, mixture, [*fixed[:-1], *missing]) == {}
    models = fit_ratios({"latency": rows}, mixture, [*fixed, *others, *missing])
    assert len(models) == 2
    spreads = {name: np.ptp(model.residuals.quantiles) for name, model in models.items()}
    assert spreads[next(name for name in spreads if FIXED in name)] < max(spreads.values())


def test_each_group_counts_by_the_root_of_its_size() -> None:
    rows = rows_of(40)
    weights = work_fit._weights(rows)
    assert weights[~rows.generated].sum() == pytest.approx(work_fit._REAL_SHARE * weights[rows.generated].sum())
    chosen = rows.chosen(rows.generated)
    assert len(chosen.ids) == len(chosen.facts) == len(chosen.quantiles) == len(chosen.values) == 20
    assert chosen.inputs().shape == rows.inputs()[:20].shape


def table_rows() -> list[dict[str, Any]]:
    """One function per split, real and generated, with facts and without."""
    made: list[dict[str, Any]] = []
    for number, (split, held_out, has_facts) in enumerate(
        product(("train", "val", "cal", "test"), ("module", "edit"), (True, False))
    ):
        text = f"def f():\n    for i in range({10 ** (number % 5)}):\n        x = i\n"
        made += [
            {
                "id": f"{split}/{held_out}/{has_facts}/{metric}",
                "text": text,
                "callees": [],
                "language": "python",
                "basis": "call",
                "metric": metric,
                "device": "x86-64",
                "workload": {"runtime": "cpython-3.12"},
                "value": 1e-3,
                "group": f"package/module{number}",
                "family": f"base{number}",
                "held_out": held_out,
                "split": split,
                "source": "here",
                "repository": None,
                "work": write_facts(work_facts(text)) if has_facts else None,
            }
            for metric in METRICS
        ]
    return made


def test_only_rows_with_facts_that_the_model_did_not_learn_from_are_used(tmp_path: Path) -> None:
    write_rows(table_rows(), tmp_path / "rows.parquet")
    rows = work_rows(OnnxPredictor(builtin(), threads=1, join_facts=False), [tmp_path / "rows.parquet"])
    assert set(rows) == set(METRICS)
    for metric, part in rows.items():
        names = {"val/module", "val/edit", "cal/module", "cal/edit", "train/edit"}
        assert set(part.ids) == {f"{name}/True/{metric}" for name in names}
        assert part.generated.tolist() == ["/edit/" in name for name in part.ids]
        assert all(
            group.startswith("base" if generated else "package")
            for group, generated in zip(part.groups.tolist(), part.generated, strict=True)
        )
        assert np.isfinite(part.inputs()).all()
