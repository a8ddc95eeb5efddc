"""The distribution function of a full model at given values, exactly and in one pass.

Along the tokens of a value, each token that could have stood in its place leads to numbers that are all smaller or all
larger. So the probability below the value is a sum over the places, and the model is asked only once. This holds for
formats in which each number has one way of writing and the exponent comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlm_core.errors import ModelError

from .decoder import Memory
from .model import FullModel, TextMemory
from .query_tokens import Ask, AskBatch
from .sequences import Slot, groups

Array = npt.NDArray[np.float64]
_BUDGET = 32_768


@dataclass(frozen=True, slots=True)
class Distribution:
    """What is known of the distribution at values, ``(values,)`` each, given that the number is ordered.

    Attributes:
        below: the probability of numbers below the one that a value is written as.
        mass: the probability of that number.
        share: where in the interval that is rounded to it the value lies, 0..1.
    """

    below: Array
    mass: Array
    share: Array

    @property
    def at(self) -> Array:
        """F, with each number's probability spread over its interval: the inverse of ``Quantiles.smooth``."""
        return self.below + self.share * self.mass

    @property
    def through(self) -> Array:
        """The probability up to the number that a value is written as, that number included."""
        return self.below + self.mass


@torch.inference_mode()
def distribution(
    model: FullModel, memories: Sequence[TextMemory], asks: Sequence[Sequence[Ask]], values: Sequence[Sequence[float]]
) -> list[Distribution]:
    """The distribution of ``asks[i][j]`` about text i at ``values[i][j]``; a distribution a text.

    Raises:
        ModelError: a metric is unknown, or the format has several ways of writing a number.
        DataError: a value cannot be written.
    """
    numbers = model.config.numbers
    if not (numbers.unique and numbers.exponent_first):
        raise ModelError("full model: the distribution function needs unique numbers with the exponent first")
    slots = [[[Slot(ask, x)] for ask, x in zip(*own, strict=True)] for own in zip(asks, values, strict=True)]
    found = [Distribution(*(np.empty(len(own)) for _ in range(3))) for own in asks]
    for group in groups(model, memories, slots, _BUDGET):
        memory = model.remember([memories[text] for text in group.texts])
        below, mass = (part.cpu().numpy() for part in _walk(model, memory, group.asks, group.tokens))
        for row, branch, index in group.places:
            own = found[group.texts[row]]
            own.below[index], own.mass[index] = below[row, branch], mass[row, branch]
    for own, at in zip(found, values, strict=True):
        own.share[:] = [_share(numbers.cell(numbers.decode(numbers.encode(x))), x) for x in at]
    return found


def _walk(model: FullModel, memory: Memory, asks: AskBatch | None, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities ``(inputs, branches)`` below numbers ``tokens (inputs, branches, 1, positions)``, and of them."""
    logits = model.logits(memory, asks, tokens)[:, :, -1].double()
    shape, count = tokens.shape[:2], logits.shape[-1]
    path = tokens[:, :, -1].flatten(0, 1)
    masks = model.grammar.masks(path)
    share = logits.flatten(0, 1).masked_fill(~masks, -torch.inf).softmax(-1)
    value, _ = model.grammar.bounds(path)
    below = torch.zeros(len(path), dtype=torch.float64, device=path.device)
    reached, ordered = torch.ones_like(below), torch.ones_like(below)
    every = torch.arange(count, device=path.device).expand(len(path), -1)
    for position in range(path.shape[1]):
        written = torch.cat([path[:, None, :position].expand(-1, count, -1), every[..., None]], -1)
        low = model.grammar.bounds(written.flatten(0, 1))[0].view(len(path), count)
        own = path[:, position, None]
        smaller = masks[:, position] & (low < value[:, None]) & (every != own)
        below += reached * (share[:, position] * smaller).sum(-1)
        if position == 0:
            ordered -= (share[:, 0] * (masks[:, 0] & low.isnan())).sum(-1)
        reached = reached * share[:, position].gather(1, own)[:, 0]
    return (below / ordered).view(shape), (reached / ordered).view(shape)


def _share(cell: tuple[float, float], value: float) -> float:
    low, high = cell
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
