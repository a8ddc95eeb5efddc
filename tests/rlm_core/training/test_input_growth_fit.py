"""Fitting the growth head of functions: rows, forests that say what the classifier says, scaling, and figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rlm_core.inference.card import read_card
from rlm_core.inference.input_growth import (
    FEATURES,
    INPUT_GROWTH,
    METRICS,
    STEPS,
    InputGrowthHead,
    softmax,
    step_scores,
)
from rlm_core.inference.model_store import builtin
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.training import input_growth_fit
from rlm_core.training.datasets.scaled import SCHEMA
from rlm_core.training.datasets.schema import write_facts, write_rows
from rlm_core.training.input_growth_fit import SlopeRows, figures, fit, fit_scaling, out_of_fold, read_pairs

LOOP = "def f{n}(items):\n    total = {n}\n    for item in items:\n        total += item\n    return total\n"
ITEM = "def f{n}(items):\n    return items[{n}]\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Slopes of loops and of items taken, in twelve packages."""
    rows = []
    for number in range(240):
        text, slope = (LOOP, 1.0) if number % 2 else (ITEM, 0.0)
        text = text.format(n=number)
        [unit] = Analyser().analyse(ParsedSource(text.encode(), "python"))
        rows.append(
            {
                "id": f"scaled/{number}", "text": text, "work": write_facts(unit.code.work), "split": "train",
                "family": f"package {number % 12}", "source": "", "latency": {"items": slope}, "memory": {"items": 0.0},
            }
        )  # fmt: skip
    path = tmp_path_factory.mktemp("scaled") / "scaled.parquet"
    write_rows(rows, path, SCHEMA)
    return path


@pytest.fixture(scope="module")
def rows(data: Path) -> SlopeRows:
    return read_pairs([data])


def test_a_pair_of_function_and_input_is_a_row(rows: SlopeRows) -> None:
    assert rows.features.shape == (240, len(FEATURES))
    assert set(rows.slopes) == set(METRICS)
    assert len(set(rows.family.tolist())) == 12


def test_forests_that_have_not_seen_a_package_distinguish_loops_and_items(rows: SlopeRows) -> None:
    table = softmax(out_of_fold(rows, "latency", folds=3))
    found = figures(rows.slopes["latency"], table)
    assert (found["pairs"], found["said"], found["right where said"]) == (240, 1.0, 1.0)
    assert found["said to grow"] == found["grow"] == 120


def test_a_step_without_rows_is_never_said(rows: SlopeRows) -> None:
    scores = step_scores(fit(rows, "latency", np.ones(len(rows), np.bool_)), rows.features)
    assert softmax(scores)[:, STEPS.index("steep")].max() < 0.01


def test_scaling_makes_probabilities_that_are_too_sure_true() -> None:
    generator = np.random.default_rng(0)
    slopes = np.where(generator.random(4000) < 0.7, 1.0, 0.0)
    scores = np.tile([0.0, -9.0, 5.0, -9.0], (4000, 1))
    scaling = fit_scaling(slopes, scores)
    assert softmax(scaling(scores))[:, STEPS.index("linear")].mean() == pytest.approx(0.7, abs=0.03)


def test_scaled_forests_have_scaled_scores(rows: SlopeRows) -> None:
    forests = fit(rows, "latency", np.ones(len(rows), np.bool_))
    scores = step_scores(forests, rows.features)
    scaling = fit_scaling(rows.slopes["latency"], scores)
    np.testing.assert_allclose(step_scores(scaling.of_forests(forests), rows.features), scaling(scores), atol=1e-4)


def test_the_command_adds_the_head_to_a_model(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_growth_fit, "FOLDS", 2)
    for path in builtin().iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    input_growth_fit.main(["--data", str(data), "--test", str(data), "--model", str(tmp_path)])
    assert '"right where said": 1.0' in capsys.readouterr().out
    assert INPUT_GROWTH in read_card(tmp_path).files
    [unit] = Analyser().analyse(ParsedSource(LOOP.format(n=999).encode(), "python"))
    assert InputGrowthHead(tmp_path / INPUT_GROWTH).estimates(unit.code)["latency"].sizes == ("items",)
