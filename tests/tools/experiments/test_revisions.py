"""The arithmetic of ``tools.experiments.revisions``."""

from __future__ import annotations

import math

import pytest

from tools.experiments.revisions import Row, result


def _row(before: float, predicted: float, after: float, again: float) -> Row:
    return Row("p", "changed", "latency", before, before, predicted, predicted / 2, predicted * 2, after, again)


def test_figures_of_a_group() -> None:
    rows = [_row(1.0, 10.0, 10.0, 10.0), _row(1.0, 1.0, 10.0, 100.0), _row(1.0, 1.0, 1.0, 1.0)]
    found = result(rows)
    assert found.functions == 3
    assert found.error == 0.0
    assert found.unchanged_error == pytest.approx(1.0)
    assert found.noise == 0.0
    assert found.width == pytest.approx(4.0)
    assert found.covered == pytest.approx(2 / 3)
    # A ratio of 1 predicts no direction.
    assert (found.large, found.direction) == (2, 0.5)


def test_the_direction_is_judged_by_the_half_that_the_prediction_has_not_seen() -> None:
    by_chance = Row("p", "unchanged", "latency", 10.0, 1.0, 9.0, 5.0, 20.0, 1.0, 1.0)
    assert result([by_chance]).large == 0


def test_a_group_without_functions_has_no_figures() -> None:
    assert math.isnan(result([]).error)
