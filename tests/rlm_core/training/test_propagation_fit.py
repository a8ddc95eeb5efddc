"""Fitting the propagation of costs: rows from a call graph, what a network learns, and its bands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rlm_core
from rlm_core.inference.propagation import FEATURES, PREDICTED
from rlm_core.training.package_graph import PackageGraph
from rlm_core.training.propagation_fit import (
    CallRows,
    Scores,
    call_rows,
    corrected,
    fit_network,
    inputs_of,
    score_model,
    score_networks,
)
from rlm_core.training.tuning.first_pass import FirstPass
from rlm_core.types import LEVELS, MEDIAN
from scipy import sparse

pytestmark = pytest.mark.extras
BUILTIN = Path(rlm_core.__file__).parent / "builtin"


def first_of(graph: PackageGraph) -> FirstPass:
    logs = np.tile(np.linspace(-6, -4, len(LEVELS)), (len(graph), 1))
    # The texts have one bucket each, and share another.
    bags = sparse.csr_matrix(np.hstack([np.eye(len(graph.texts)), np.ones((len(graph.texts), 1))]) / np.sqrt(2))
    return FirstPass(logs, np.tile([-5.0, 2.0], (len(graph), 1)), np.ones(len(graph), bool), bags)


def of(name: str, inputs: np.ndarray) -> list[float]:
    return [float(value) for value in inputs[:, FEATURES.index(name)]]


def test_measured_callees_and_neighbours_are_known_but_not_the_function_itself(graph: PackageGraph) -> None:
    measured = np.array([True, True, False, False])
    inputs = inputs_of(graph, "latency", first_of(graph), [0, 1, 2], measured)
    assert of("known_share", inputs) == pytest.approx([0.99, 0, 0], abs=0.01)
    # f and g are both measured: each is the other's neighbour, and h has two.
    assert np.expm1(of("file_measured", inputs)) == pytest.approx([1, 1, 2])
    assert np.expm1(of("class_measured", inputs)) == pytest.approx([0, 0, 1])


def test_similar_measured_functions_are_read_but_not_the_function_itself(graph: PackageGraph) -> None:
    measured = np.array([True, True, False, False])
    inputs = inputs_of(graph, "latency", first_of(graph), [0, 1, 2], measured)
    assert of("similarity", inputs) == pytest.approx([0.5, 0.5, 0.5])
    # f takes 10 us and g 1 ms where 10 us is expected of both: residuals 0 and 2.
    weight = 0.5**4
    assert of("similar_residual", inputs) == pytest.approx(
        [2 * weight / (weight + 0.01), 0, 2 * weight / (2 * weight + 0.01)]
    )
    nothing = inputs_of(graph, "latency", first_of(graph), [0], np.zeros(4, bool))
    assert of("similarity", nothing) == [0]


def test_test_rows_are_neither_rows_nor_measured(graph: PackageGraph) -> None:
    rows = call_rows(graph, "latency", first_of(graph), graph.split == "train", (1.0,))
    assert rows.values.tolist() == pytest.approx([-5, -3])
    assert max(np.expm1(of("file_measured", rows.inputs))) == pytest.approx(1)


def test_with_half_a_package_measured_the_other_half_is_judged(graph: PackageGraph) -> None:
    def repeated(values: np.ndarray) -> np.ndarray:
        return np.tile(values, 200)

    many = replace(
        graph,
        text=repeated(graph.text),
        module=repeated(graph.module),
        owner=repeated(graph.owner),
        outside=repeated(graph.outside),
        unresolved=repeated(graph.unresolved),
        package=repeated(graph.package),
        split=repeated(graph.split),
        facts=graph.facts * 200,
        callees=graph.callees * 200,
        sites=[[]] * 800,
        values={name: repeated(values) for name, values in graph.values.items()},
    )
    rows = call_rows(many, "latency", first_of(many), many.split == "train", (0.5,))
    assert 150 < len(rows.values) < 250


def test_bands_are_calibrated_on_what_the_model_itself_predicts(graph: PackageGraph) -> None:
    name = f"{PREDICTED}/call/python/latency"
    every, one = Scores(), Scores()
    score_model(graph, BUILTIN, every)
    score_model(graph, BUILTIN, one, most=1)
    levels = every.calibration().to_json()
    assert levels[name]["groups"] == 1
    assert not any("memory" in task for task in levels)
    assert 1 <= len(one.levels) < len(every.levels)


def random_rows(count: int = 6000) -> CallRows:
    """Functions that cost what they call, more or less, whatever their text makes one expect."""
    generator = np.random.default_rng(0)
    callee = generator.uniform(-7, -1, count)
    logs = np.linspace(-1, 1, len(LEVELS))[None, :] + generator.uniform(-6, -3, count)[:, None]
    inputs = generator.normal(size=(count, len(FEATURES)))
    inputs[:, FEATURES.index("median")] = logs[:, MEDIAN]
    inputs[:, FEATURES.index("total_beyond")] = callee - logs[:, MEDIAN]
    inputs[:, FEATURES.index("known_share")] = inputs[:, FEATURES.index("file_measured")] = 0
    inputs[:, FEATURES.index("similarity")] = 0
    package = np.array([f"p{number % 200}" for number in range(count)])
    values = callee + generator.normal(scale=0.1, size=count)
    return CallRows(inputs, logs, values, package, np.arange(count) % 5, np.zeros(count), 5e-8)


def test_a_network_learns_that_functions_cost_what_they_call_and_calibration_makes_bands_hold() -> None:
    rows = random_rows()
    learnt, held = rows.chosen(rows.fold != 0), rows.chosen(rows.fold == 0)
    logs = corrected(held, fit_network(learnt, epochs=40))
    before, after = (np.median(np.abs(part[:, MEDIAN] - held.values)) for part in (held.logs, logs))
    assert after < before / 4
    scores = Scores()
    score_networks("latency", held, logs, scores)
    level = scores.calibration().exactly(f"{PREDICTED}/call/python/latency")
    assert level is not None
    levels = level.raw_levels()
    low, high = (np.array([np.interp(levels[LEVELS.index(at)], LEVELS, line) for line in logs]) for at in (0.1, 0.9))
    assert np.mean((held.values >= low) & (held.values <= high)) == pytest.approx(0.8, abs=0.03)
