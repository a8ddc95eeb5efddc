"""The arithmetic of ``tools.experiments.revisions``."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tools.experiments.revisions import Row, result


def _row(before: float, predicted: float, after: float, again: float) -> Row:
    return Row(
        package="p",
        file="p.py",
        qualname="f",
        group="changed",
        metric="latency",
        before=before,
        reference=before,
        predicted=predicted,
        low=predicted / 20,
        high=predicted * 20,
        least=predicted / 2,
        most=predicted * 2,
        after=after,
        again=again,
        ratio=math.log10(predicted / before),
        agreed=0.0,
        repeat=0.03,
    )


def test_figures_of_a_group() -> None:
    rows = [_row(1.0, 10.0, 10.0, 10.0), _row(1.0, 1.0, 10.0, 100.0), _row(1.0, 1.0, 1.0, 1.0)]
    found = result(rows)
    assert found.functions == 3
    assert found.error == 0.0
    assert found.unchanged_error == pytest.approx(1.0)
    assert found.noise == 0.0
    assert found.width == pytest.approx(4.0)
    assert found.covered == pytest.approx(2 / 3)
    assert found.calls_width == pytest.approx(400.0)
    assert found.calls_covered == 1.0
    # A ratio of 1 predicts no direction.
    assert (found.large, found.direction) == (2, 0.5)


def test_the_direction_is_judged_by_the_half_that_the_prediction_has_not_seen() -> None:
    by_chance = replace(_row(before=10.0, predicted=9.0, after=1.0, again=1.0), reference=1.0)
    assert result([by_chance]).large == 0


def test_a_group_without_functions_has_no_figures() -> None:
    assert math.isnan(result([]).error)
