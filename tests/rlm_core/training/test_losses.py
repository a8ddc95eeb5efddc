"""The losses: soft targets are distributions, and each loss agrees with its definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.training.losses import Teacher, mixture_nats, pinball, soft_cross_entropy, soft_targets
from scipy import stats


@given(st.lists(st.one_of(st.just(-0.5), st.floats(0, 64)), min_size=1), st.floats(0.3, 3))
def test_soft_targets_are_distributions(places: list[float], sigma: float) -> None:
    targets = soft_targets(torch.tensor(places, dtype=torch.float32), 65, sigma)
    assert targets.shape == (len(places), 65)
    assert torch.all(targets >= 0)
    torch.testing.assert_close(targets.sum(1), torch.ones(len(places)), atol=1e-4, rtol=0)


def test_a_value_at_the_floor_is_the_floors_outcome_alone_and_others_have_none_of_it() -> None:
    targets = soft_targets(torch.tensor([-0.5, 0.2]), 65, 0.75)
    assert targets[0].tolist() == [1.0] + [0.0] * 64
    assert targets[1, 0] == 0


@pytest.mark.parametrize("place", [0.5, 10.25, 63.5])
def test_a_target_is_centred_on_its_value(place: float) -> None:
    [target] = soft_targets(torch.tensor([place]), 65, 0.75)
    assert int(target.argmax()) == int(place) + 1


def test_the_loss_mixes_teacher_and_label() -> None:
    torch.manual_seed(0)
    logits, targets = torch.randn(3, 65), torch.rand(3, 65).softmax(1)
    position = torch.tensor([3.5, 10.5, -0.5])
    label = soft_cross_entropy(logits, position, 0.75)
    alone = -(targets * logits.log_softmax(1)).sum(1).mean()
    for weight, expected in ((0.0, label), (1.0, alone), (0.25, 0.75 * label + 0.25 * alone)):
        found = soft_cross_entropy(logits, position, 0.75, Teacher(targets, torch.full((3,), weight)))
        torch.testing.assert_close(found, expected)


def test_the_pinball_loss_is_least_at_the_quantiles() -> None:
    values = torch.linspace(0, 1, 1001)[:, None]
    levels = torch.tensor([0.1, 0.5, 0.9])
    best = pinball(levels.expand(1001, 3), values, levels).mean()
    for shift in (-0.1, 0.1):
        assert pinball((levels + shift).expand(1001, 3), values, levels).mean() > best


@given(st.floats(-3, 3), st.floats(-6, 6), st.floats(0.05, 4), st.floats(-9, 1), st.booleans())
def test_the_mixture_is_that_of_a_students_t_and_the_other_density(
    gate: float, deviation: float, spread: float, log_density: float, at_floor: bool
) -> None:
    t = stats.t(4, scale=spread)
    own = t.cdf(deviation * spread) if at_floor else t.pdf(deviation * spread)
    weight = 1 / (1 + np.exp(-gate))
    expected = -np.log(weight * own + (1 - weight) * np.exp(log_density))
    numbers = (torch.tensor([x], dtype=torch.float64) for x in (gate, deviation, spread, log_density))
    first, second, third, last = numbers
    [found] = mixture_nats(first, second, third, torch.tensor([at_floor]), last)
    assert float(found) == pytest.approx(expected, rel=1e-6, abs=1e-9)
