"""What one can ask of a full model: exact quantiles, joint samples, the probability of a value.

All functions take encoded texts and, for each, its questions; texts of similar length and questions of one pattern
run together. Numbers that are known condition those after them: "accuracy is .93; what is the latency?" is
``[Slot(accuracy, 0.93), Slot(latency)]``. There is no expectation: with exponents as tokens it would rest on tiny
probabilities of huge exponents, and say more about the softmax than about the code.
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
from .prefix_cache import Branches
from .quantile_search import Search, questions_at_once
from .sequences import Group, Question, Slot, groups

__all__ = ["Quantiles", "Slot", "log_prob", "quantiles", "sample"]

Array = npt.NDArray[np.float64]
_BUDGET = 32_768


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of one wanted number, given that it is an ordered value (neither NaN nor "unknown").

    Attributes:
        levels: ``(levels,)``, ascending as asked.
        values: ``(levels,)``, the numbers x that the tokens hold with F(x) >= level for the first time: exact.
        smooth: ``(levels,)``, the same with probability spread evenly over what is rounded to a number: continuous in
            the level and in the weights, so a hint moves only as much as the model does.
        error: how far F may be off at these values, because unlikely branches were left out (0: exact).
        unordered: the probability of special tokens that have no place in the order.
    """

    levels: tuple[float, ...]
    values: Array
    smooth: Array
    error: float
    unordered: float


@torch.inference_mode()
def quantiles(
    model: FullModel,
    memories: Sequence[TextMemory],
    questions: Sequence[Sequence[Question]],
    levels: Sequence[float],
    tolerance: float = 0.0,
) -> list[list[Quantiles]]:
    """Exact quantiles of the last number of each question, all before it known.

    Args:
        model: in evaluation mode.
        memories: the encoded texts.
        questions: ``questions[i]`` are those about text i.
        levels: within 0..1.
        tolerance: how much probability may be left out where that saves work (see ``quantile_search``).

    Returns:
        Answers in the shape of ``questions``.

    Raises:
        ModelError: a question does not end with its only wanted number, or a metric is unknown.
        DataError: a known value cannot be written.
    """
    if not all(0 <= level <= 1 for level in levels):
        raise ModelError(f"quantile levels {list(levels)}: must lie within 0..1")
    found: list[list[Quantiles | None]] = [[None] * len(own) for own in questions]
    for group in groups(model, memories, questions, _BUDGET, questions_at_once(model.config.numbers)):
        if group.wanted != (False,) * (len(group.wanted) - 1) + (True,):
            raise ModelError("quantiles are of the last number, all before it known; for several at once use sample()")
        memory = model.remember([memories[text] for text in group.texts])
        search = Search(model, memory, group, levels, tolerance)
        search.run()
        values, smooth = search.answers()
        for row, branch, index in group.places:
            at = row * group.shape[1] + branch
            found[group.texts[row]][index] = Quantiles(
                tuple(levels), values[at], smooth[at], float(search.error[at]), float(search.unordered[at])
            )
    return [[answer for answer in own if answer is not None] for own in found]


@torch.inference_mode()
def log_prob(
    model: FullModel,
    memories: Sequence[TextMemory],
    questions: Sequence[Sequence[Question]],
    constrained: bool = True,
) -> list[list[Array]]:
    """The log-probability of each number of questions without wanted ones, given the numbers before it.

    ``constrained=False`` shares the probability among the whole vocabulary at each step, as regress-lm's scores do.

    Returns:
        By text and question ``(numbers,)``.

    Raises:
        ModelError: a value is missing, or a metric is unknown.
        DataError: a value cannot be written.
    """
    found: list[list[Array]] = [[np.empty(0)] * len(own) for own in questions]
    for group in groups(model, memories, questions, _BUDGET):
        if any(group.wanted):
            raise ModelError("log_prob scores values; give a value to each number of the question")
        memory = model.remember([memories[text] for text in group.texts])
        scores = model.log_probs(memory, group.asks, group.tokens, constrained).double().sum(-1).cpu().numpy()
        for row, branch, index in group.places:
            found[group.texts[row]][index] = scores[row, branch]
    return found


@torch.inference_mode()
def sample(
    model: FullModel,
    memories: Sequence[TextMemory],
    questions: Sequence[Sequence[Question]],
    count: int,
    generator: torch.Generator,
    temperature: float = 1.0,
) -> list[list[Array]]:
    """Joint samples of the wanted numbers of each question, under the grammar.

    Args:
        model: in evaluation mode.
        memories: the encoded texts.
        questions: ``questions[i]`` are those about text i; known numbers condition those after them.
        count: samples a question.
        generator: of the model's device; the same seed gives the same samples for the same call.
        temperature: divides the logits.

    Returns:
        By text and question ``(count, wanted numbers)``.
    """
    found: list[list[Array]] = [[np.empty((0, 0))] * len(own) for own in questions]
    for group in groups(model, memories, questions, _BUDGET):
        memory = model.remember([memories[text] for text in group.texts])
        tokens = _draw(model, memory, group, count, generator, temperature)
        values, _ = model.grammar.bounds(tokens.flatten(0, 2))
        drawn = values.view(*group.shape, *tokens.shape[1:3]).cpu().numpy()
        for row, branch, index in group.places:
            found[group.texts[row]][index] = drawn[row, branch]
    return found


def _draw(
    model: FullModel, memory: Memory, group: Group, count: int, generator: torch.Generator, temperature: float
) -> Tensor:
    """Draw number tokens ``(questions, count, wanted, positions)``. Samples that begin alike share a row."""
    questions = group.shape[0] * group.shape[1]
    shape = questions, count, 0, model.config.numbers.positions
    drawn = [torch.empty(shape, dtype=torch.int64, device=model.device)]
    own = torch.arange(questions, device=model.device)  # the question of each row
    source, row = own, own[:, None].expand(-1, count)  # the row that each goes on from; the row of each sample
    branches: Branches | None = None
    pending: list[Tensor] = []
    for number, wanted in enumerate(group.wanted):
        pending.append(model.opening(group.asks, number, group.shape).flatten(0, 1)[own])
        if not wanted:
            pending.append(model.decoder.embed(group.tokens[:, :, number].flatten(0, 1)[own]))
            continue
        first: Tensor | None = None
        written: list[Tensor] = []
        for position in range(shape[-1]):
            x = torch.cat(pending, 1)
            if branches is None:
                branches = Branches(model, memory, x.unflatten(0, group.shape))
            else:
                branches.read(source, x)
            mask = model.grammar.mask(position, first)
            total = (branches.logits / temperature).masked_fill(~mask, -torch.inf).softmax(-1).cumsum(-1)
            point = torch.rand(questions, count, generator=generator, device=model.device, dtype=torch.float64)
            token = _choose(total, row, point)
            vocabulary = total.shape[1]
            pairs, row = torch.unique(row * vocabulary + token, return_inverse=True)
            source, last = pairs // vocabulary, pairs % vocabulary
            own, first = own[source], last if first is None else first[source]
            written.append(token)
            pending = [model.decoder.embed(last)[:, None]]
        drawn.append(torch.stack(written, -1)[:, :, None])
    return torch.cat(drawn, 2)


def _choose(total: Tensor, row: Tensor, point: Tensor) -> Tensor:
    """The token at which the running sum of a sample's row passes its point of 0..1; ``row`` and ``point`` alike."""
    steps = total / total[:, -1:]
    steps = steps + torch.arange(len(steps), device=steps.device)[:, None]
    # One search for all: row r's sums lie between r and r + 1, and no point may be rounded to r + 1.
    at = torch.searchsorted(steps.flatten(), (point.clamp(max=1 - 1e-9) + row).flatten(), right=True)
    return at.view(row.shape) - row * total.shape[1]
