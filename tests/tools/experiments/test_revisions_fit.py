"""The fit of ``tools.experiments.revisions_fit``."""

from __future__ import annotations

import numpy as np

from tools.experiments.revisions_fit import Changes, _fitted, _reach, _sizes


def test_bands_cover_their_share_and_are_wider_where_a_larger_change_was_predicted() -> None:
    generator = np.random.default_rng(0)
    predicted = generator.uniform(-1, 1, 4000)
    true = generator.normal(0, 0.05 + 0.3 * np.abs(predicted))
    rows = np.arange(4000)
    changes = Changes(np.array(["p"] * 4000), true, predicted, np.zeros(4000), np.full(4000, 0.02))
    spread, distances = _fitted(changes, np.abs(true), rows < 2000)
    assert spread[1] > 0.1
    assert distances == sorted(distances)
    reach = _reach(distances[3], 0.9, _sizes(changes, spread), changes.repeat)
    inside = (np.abs(true) <= reach)[rows >= 2000]
    assert 0.77 < inside.mean() < 0.83


def test_the_spread_of_repetitions_is_not_counted_twice() -> None:
    repeat = np.full(1000, 0.1)
    true = np.random.default_rng(1).normal(0, 0.1, 1000)
    changes = Changes(np.array(["p"] * 1000), true, np.zeros(1000), np.zeros(1000), repeat)
    spread, distances = _fitted(changes, np.abs(true), np.ones(1000, bool))
    assert distances[3] * spread[0] < 0.04
