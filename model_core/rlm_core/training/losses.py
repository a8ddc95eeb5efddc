"""The losses of the networks, as functions of tensors.

Losses that are one call of PyTorch stay where they are minimised: those of hidden tokens and counts
(:mod:`.student.pretrain`), of growth classes (:mod:`.growth_fit`) and of number tokens (:mod:`.full.model_fit`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Teacher:
    """A teacher's distributions of rows, ``targets (rows, outcomes)``, and their share of each row's target."""

    targets: Tensor
    weight: Tensor

    def rows(self, chosen: Tensor) -> Teacher:
        """The same for some rows."""
        return Teacher(self.targets[chosen], self.weight[chosen])


def soft_cross_entropy(logits: Tensor, position: Tensor, sigma: float, teacher: Teacher | None = None) -> Tensor:
    """Mean cross-entropy against the soft targets, mixed with those of a teacher if there is one, in nats.

    Args:
        logits: ``(rows, outcomes)``.
        position: of the values on the outcome axis, as for :func:`soft_targets`.
        sigma: of the targets, in bins.
        teacher: of the same rows.
    """
    target = soft_targets(position, logits.shape[1], sigma)
    if teacher is not None:
        target = torch.lerp(target, teacher.targets.float(), teacher.weight[:, None])
    target = target.to(logits.device)
    return -(target * F.log_softmax(logits.float(), dim=1)).sum(1).mean()


def soft_targets(position: Tensor, outcomes: int, sigma: float) -> Tensor:
    """Gaussian targets on the outcome axis (HL-Gauss, arXiv 2403.03950). ``(rows,)`` -> ``(rows, outcomes)``.

    A value at or below the floor is outcome 0 alone; others spread over the bins 1.. only.
    """
    edges = torch.arange(outcomes, dtype=torch.float32)
    place = position.clamp(min=0)[:, None]
    cumulative = torch.special.ndtr((edges[None, :] - place) / sigma)  # (rows, outcomes): at the bins' edges
    mass = cumulative.diff(dim=1)
    mass = mass / mass.sum(1, keepdim=True).clamp(min=1e-6)
    above = (position >= 0).float()[:, None]
    return torch.cat([1 - above, mass * above], dim=1)


def pinball(quantiles: Tensor, values: Tensor, levels: Tensor) -> Tensor:
    """The mean pinball loss of quantiles ``(rows, levels)`` for values ``(rows, 1)`` and ``levels``: ``(rows,)``."""
    over = values - quantiles
    return torch.maximum(levels * over, (levels - 1) * over).mean(1)


def mixture_nats(gate: Tensor, deviation: Tensor, spread: Tensor, at_floor: Tensor, log_density: Tensor) -> Tensor:
    """The negative log-likelihood of values in a mixture of a Student's t and another density, in nats: ``(rows,)``.

    Args:
        gate: ``(rows,)`` as all others; logit of the weight of the Student's t, which has 4 degrees of freedom.
        deviation: of the value from its centre, in units of ``spread``.
        spread: scale of the Student's t.
        at_floor: whether the value is the smallest that can be measured: it stands for all that are at most as large.
        log_density: of the value in the other density.
    """
    square = 1 + deviation**2 / 4
    log_t = -2.5 * torch.log1p(deviation**2 / 4) + math.log(0.375) - spread.log()
    below = 0.5 + 0.375 * deviation / square.sqrt() * (1 - deviation**2 / square / 12)
    log_t = torch.where(at_floor, below.clamp_min(1e-6).log(), log_t)
    return -torch.logaddexp(F.logsigmoid(gate) + log_t, F.logsigmoid(-gate) + log_density)
