"""The part of the query head that is one slice's own, fitted anew; what other slices answer cannot change.

Each slice has an embedding that steers the base, a bias over the outcomes, a precision with which it is drawn to the
wide prediction and a weight of the deep part's evidence: some three hundred numbers. The rest of the head is frozen.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rlm_core.training.student.batches import HeadInputs
from rlm_core.training.student.config import EncoderFitConfig
from rlm_core.training.student.encoder_fit import loss_of
from rlm_core.training.student.network import Head

_SIGMA = EncoderFitConfig().label_sigma
_RATE, _MOST_STEPS, _PATIENCE = 0.02, 120, 15
_DISTANCE = 1e-3  # nats for a squared distance of one from the weights of before
_STILL = 0.1  # nats for a nat of divergence from the answers of before


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows of one slice for the head: inputs (the wide prediction among them) and the deep part's evidence."""

    inputs: HeadInputs
    evidence: Tensor

    def rows(self, chosen: Tensor) -> Asked:
        """The same for some rows."""
        return Asked(self.inputs.rows(chosen), self.evidence[chosen])


@dataclass(frozen=True, slots=True)
class Still:
    """Rows whose answers are to stay: as they are asked now, and the distributions ``(rows, outcomes)`` of before."""

    asked: Asked
    before: Tensor


class SliceHead(nn.Module):
    """Logits of one slice over a frozen head: ``(rows, outcomes)``."""

    def __init__(self, head: Head, number: int) -> None:
        super().__init__()
        self.number = number
        self.base = copy.deepcopy(head.base).eval().requires_grad_(False)
        self.weight = nn.Parameter(head.weight[number].detach().clone())
        for tensor in self.own():
            tensor.requires_grad_(True)

    def own(self) -> list[Tensor]:
        """What is fitted; of the tables only the slice's row ever has a gradient."""
        base = self.base
        return [base.asked.slice.weight, base.bias.weight, base.precision, self.weight]

    def forward(self, asked: Asked) -> Tensor:
        """Logits ``(rows, outcomes)``."""
        i = asked.inputs
        logits: Tensor = self.base(i.wide, i.facts, i.task, i.date, i.query) + self.weight * asked.evidence
        return logits

    def written(self, head: Head) -> None:
        """Put the slice's rows into a head."""
        with torch.no_grad():
            for target, source in (
                (head.base.asked.slice.weight, self.base.asked.slice.weight),
                (head.base.bias.weight, self.base.bias.weight),
                (head.base.precision, self.base.precision),
            ):
                target[self.number] = source[self.number]
            head.weight[self.number] = self.weight


def fit(
    head: Head,
    number: int,
    train: Asked,
    *,
    held_out: Asked | None = None,
    still: Still | None = None,
    steps: int = _MOST_STEPS,
) -> tuple[SliceHead, int]:
    """Fit a slice to rows for ``steps`` steps, or to the best step on ``held_out``; also the number of steps."""
    part = SliceHead(head, number)
    start = [parameter.detach().clone() for parameter in part.own()]
    optimizer = torch.optim.Adam(part.own(), lr=_RATE)
    best, best_step, state = math.inf, 0, copy.deepcopy(part.state_dict())
    for step in range(steps + 1):
        if held_out is not None:
            with torch.no_grad():
                reached = float(loss_of(part(held_out), held_out.inputs, _SIGMA))
            if reached < best - 1e-4:
                best, best_step, state = reached, step, copy.deepcopy(part.state_dict())
            elif step - best_step >= _PATIENCE:
                break
        if step == steps:
            break
        loss = loss_of(part(train), train.inputs, _SIGMA)
        moved = sum(((now - then) ** 2).sum() for now, then in zip(part.own(), start, strict=True))
        loss = loss + _DISTANCE * moved
        if still is not None:
            now = F.log_softmax(part(still.asked), dim=1)
            loss = loss + _STILL * F.kl_div(now, still.before, reduction="batchmean")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            part.base.precision.clamp_(min=0)
            part.weight.clamp_(min=0)
    if held_out is not None:
        part.load_state_dict(state)
        return part, best_step
    return part, steps
