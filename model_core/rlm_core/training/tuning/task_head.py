"""The part of the query head that belongs to one task, fitted again; predictions of other tasks cannot change.

Each task has an embedding that steers the base, a bias over the outcomes, a precision with which it is drawn to the
prediction of the n-gram ridge or trees, and a weight of the deep part's evidence: some three hundred numbers. The rest
of the head is frozen.
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
_DISTANCE = 1e-3  # nats for a squared distance of one from the previous weights
_ANCHOR = 0.1  # nats for a nat of divergence from the previous predictions


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Rows of one task for the head: inputs, with the wide prediction, and the deep part's evidence."""

    inputs: HeadInputs
    evidence: Tensor

    def rows(self, chosen: Tensor) -> TaskBatch:
        """The same for some rows."""
        return TaskBatch(self.inputs.rows(chosen), self.evidence[chosen])


@dataclass(frozen=True, slots=True)
class AnchorRows:
    """Rows whose predictions should not change, and their previous distributions ``(rows, outcomes)``."""

    batch: TaskBatch
    before: Tensor


class TaskHead(nn.Module):
    """Logits of one task over a frozen head: ``(rows, outcomes)``."""

    def __init__(self, head: Head, number: int) -> None:
        super().__init__()
        self.number = number
        self.base = copy.deepcopy(head.base).eval().requires_grad_(False)
        self.weight = nn.Parameter(head.weight[number].detach().clone())
        for tensor in self.fitted():
            tensor.requires_grad_(True)

    def fitted(self) -> list[Tensor]:
        """The tensors to fit; in the tables only the row of the task has a gradient."""
        base = self.base
        return [base.asked.slice.weight, base.bias.weight, base.precision, self.weight]

    def forward(self, batch: TaskBatch) -> Tensor:
        """Logits ``(rows, outcomes)``."""
        i = batch.inputs
        logits: Tensor = self.base(i.wide, i.facts, i.task, i.date, i.query) + self.weight * batch.evidence
        return logits

    def write_to(self, head: Head) -> None:
        """Put the task's rows into a head."""
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
    train: TaskBatch,
    *,
    held_out: TaskBatch | None = None,
    anchors: AnchorRows | None = None,
    steps: int = _MOST_STEPS,
) -> tuple[TaskHead, int]:
    """Fit a task to rows for ``steps`` steps, or up to the best step on ``held_out``; also the number of steps."""
    part = TaskHead(head, number)
    start = [parameter.detach().clone() for parameter in part.fitted()]
    optimizer = torch.optim.Adam(part.fitted(), lr=_RATE)
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
        moved = sum(((now - then) ** 2).sum() for now, then in zip(part.fitted(), start, strict=True))
        loss = loss + _DISTANCE * moved
        if anchors is not None:
            now = F.log_softmax(part(anchors.batch), dim=1)
            loss = loss + _ANCHOR * F.kl_div(now, anchors.before, reduction="batchmean")
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
