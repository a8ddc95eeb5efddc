"""Answers of a full model: exact quantiles, joint samples, the probability of a value and the distribution at a value.

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

from .decoder import Memory, NumberQuery, QueryBatch
from .model import FullModel, TextMemory
from .numbers import PAD
from .quantile_search import QuantileSearch, max_questions
from .sequences import Group, PrefixCache, Question, Slot, groups

Array = npt.NDArray[np.float64]
# Of what is less likely, it does not matter on which side of a value it is.
_NEGLIGIBLE = 1e-9
# A share of the distance between two numbers.
_SAME = 1e-3


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of one wanted number, given that it is an ordered value (neither NaN nor "unknown").

    Attributes:
        levels: ``(levels,)``, ascending, as requested.
        values: ``(levels,)``, the numbers x that the tokens hold with F(x) >= level for the first time: exact; of
            numbers that count as one, the smallest.
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
    resolution: float = 0.0,
) -> list[list[Quantiles]]:
    """Exact quantiles of the last number of each question, all before it known.

    Args:
        model: in evaluation mode.
        memories: the encoded texts.
        questions: ``questions[i]`` are those about text i.
        levels: within 0..1.
        tolerance: how much probability may be left out where that saves work (see ``quantile_search``).
        resolution: numbers within this share of each other count as one, and their probability as spread evenly.

    Returns:
        Answers in the shape of ``questions``.

    Raises:
        ModelError: a question does not end with its only wanted number, or a metric is unknown.
        DataError: a known value cannot be written.
    """
    if not all(0 <= level <= 1 for level in levels):
        raise ModelError(f"quantile levels {list(levels)}: must lie within 0..1")
    found: list[list[Quantiles | None]] = [[None] * len(own) for own in questions]
    for group in groups(model, memories, questions, max_questions(model.config.numbers)):
        if group.wanted != (False,) * (len(group.wanted) - 1) + (True,):
            raise ModelError("quantiles are of the last number, all before it known; for several at once use sample()")
        memory = model.remember([memories[text] for text in group.texts])
        search = QuantileSearch(model, memory, group, levels, tolerance, resolution)
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
    for group in groups(model, memories, questions):
        if any(group.wanted):
            raise ModelError("log_prob scores values; give a value to each number of the question")
        memory = model.remember([memories[text] for text in group.texts])
        scores = model.log_probs(memory, group.queries, group.tokens, constrained).double().sum(-1).cpu().numpy()
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
    top_p: float = 1.0,
) -> list[list[Array]]:
    """Joint samples of the wanted numbers of each question, under the grammar.

    Args:
        model: in evaluation mode.
        memories: the encoded texts.
        questions: ``questions[i]`` are those about text i; known numbers condition those after them.
        count: samples per question.
        generator: of the model's device; the same seed gives the same samples for the same call.
        temperature: divides the logits.
        top_p: draw each token only from the smallest set of tokens whose probability reaches it (arXiv 1904.09751);
            see :func:`_nucleus`.

    Returns:
        By text and question ``(count, wanted numbers)``.

    Raises:
        ModelError: ``top_p`` is not within 0..1 or is 0, or a metric is unknown.
        DataError: a known value cannot be written.
    """
    if not 0 < top_p <= 1:
        raise ModelError(f"top-p {top_p}: must be above 0 and at most 1")
    found: list[list[Array]] = [[np.empty((0, 0))] * len(own) for own in questions]
    for group in groups(model, memories, questions):
        memory = model.remember([memories[text] for text in group.texts])
        tokens = _draw(model, memory, group, count, generator, temperature, top_p)
        values, _ = model.grammar.bounds(tokens.flatten(0, 2))
        drawn = values.view(*group.shape, *tokens.shape[1:3]).cpu().numpy()
        for row, branch, index in group.places:
            found[group.texts[row]][index] = drawn[row, branch]
    return found


def _draw(
    model: FullModel,
    memory: Memory,
    group: Group,
    count: int,
    generator: torch.Generator,
    temperature: float,
    top_p: float,
) -> Tensor:
    """Draw number tokens ``(questions, count, wanted, positions)``. Samples that begin alike share a row."""
    questions = group.shape[0] * group.shape[1]
    shape = questions, count, 0, model.config.numbers.positions
    drawn = [torch.empty(shape, dtype=torch.int64, device=model.device)]
    own = torch.arange(questions, device=model.device)  # the question of each row
    source, row = own, own[:, None].expand(-1, count)  # the row that each continues; the row of each sample
    branches: PrefixCache | None = None
    pending: list[Tensor] = []
    for number, wanted in enumerate(group.wanted):
        pending.append(model.opening(group.queries, number, group.shape).flatten(0, 1)[own])
        if not wanted:
            pending.append(model.decoder.embed(group.tokens[:, :, number].flatten(0, 1)[own]))
            continue
        first: Tensor | None = None
        written: list[Tensor] = []
        for position in range(shape[-1]):
            x = torch.cat(pending, 1)
            if branches is None:
                branches = PrefixCache(model, memory, x.unflatten(0, group.shape))
            else:
                branches.read(source, x)
            scores = branches.logits / temperature
            mask = model.grammar.mask(position, first)
            if top_p < 1:
                mask = _nucleus(scores, mask, top_p)
            total = scores.masked_fill(~mask, -torch.inf).softmax(-1).cumsum(-1)
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


def _nucleus(scores: Tensor, mask: Tensor, top_p: float) -> Tensor:
    """The tokens of ``mask`` that are in the nucleus of their row, ``(rows, vocabulary)``.

    The order is that in which transformers samples the published models: first the nucleus, then the grammar. The
    nucleus is the smallest set of tokens whose probability *without* the grammar reaches ``top_p``; the token that
    crosses it is included, and of equally likely ones at the border as many as are needed. Only padding is taken out
    before, where the grammar forbids it: it would end the text there. If the grammar allows no token of the nucleus,
    all tokens that it allows may be drawn.

    Args:
        scores: ``(rows, vocabulary)``, logits divided by the temperature.
        mask: ``(vocabulary,)`` or ``(rows, vocabulary)``, what the grammar allows.
        top_p: below 1.
    """
    mask = mask.expand_as(scores)
    open_scores = scores.clone()
    open_scores[:, PAD] = torch.where(mask[:, PAD], scores[:, PAD], -torch.inf)
    ordered, tokens = open_scores.sort(-1)
    inside = ordered.softmax(-1).cumsum(-1) > 1 - top_p
    inside[:, -1] = True
    allowed = torch.zeros_like(mask).scatter(1, tokens, inside) & mask
    return torch.where(allowed.any(-1, keepdim=True), allowed, mask)


def _choose(total: Tensor, row: Tensor, point: Tensor) -> Tensor:
    """The token at which the running sum of a sample's row passes its point of 0..1; ``row`` and ``point`` alike."""
    steps = total / total[:, -1:]
    steps = steps + torch.arange(len(steps), device=steps.device)[:, None]
    # One search for all: row r's sums lie between r and r + 1, and no point may be rounded to r + 1.
    at = torch.searchsorted(steps.flatten(), (point.clamp(max=1 - 1e-9) + row).flatten(), right=True)
    return at.view(row.shape) - row * total.shape[1]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The predicted distribution at given values, each array ``(values,)``, given that the number is ordered.

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
    model: FullModel,
    memories: Sequence[TextMemory],
    queries: Sequence[Sequence[NumberQuery | None]],
    values: Sequence[Sequence[float]],
) -> list[Distribution]:
    """The distribution of ``queries[i][j]`` about text i at ``values[i][j]``; one distribution per text.

    A query is None for a model without queries; values are finite.

    Raises:
        ModelError: a metric is unknown, or the format has the exponent last.
        DataError: a value cannot be written.
    """
    numbers = model.config.numbers
    if not numbers.exponent_first:
        raise ModelError("full model: the distribution function needs numbers with the exponent first")
    slots = [
        [[Slot(query, x if numbers.normalised else None)] for query, x in zip(*own, strict=True)]
        for own in zip(queries, values, strict=True)
    ]
    found = [Distribution(*(np.empty(len(own)) for _ in range(3))) for own in queries]
    for group in groups(model, memories, slots, None if numbers.normalised else max_questions(numbers)):
        memory = model.remember([memories[text] for text in group.texts])
        if numbers.normalised:
            parts = _walk(model, memory, group.queries, group.tokens)
        else:
            at = torch.zeros(group.shape, dtype=torch.float64, device=model.device)
            for row, branch, index in group.places:
                at[row, branch] = numbers.decode(numbers.encode(values[group.texts[row]][index]))
            parts = _search(model, memory, group, at)
        below, mass = (part.cpu().numpy() for part in parts)
        for row, branch, index in group.places:
            own = found[group.texts[row]]
            own.below[index], own.mass[index] = below[row, branch], mass[row, branch]
    for own, given in zip(found, values, strict=True):
        own.share[:] = [_share(numbers.cell(numbers.decode(numbers.encode(x))), x) for x in given]
    return found


def _search(model: FullModel, memory: Memory, group: Group, values: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities ``(inputs, branches)`` below numbers ``values (inputs, branches)``, and of them.

    Where numbers may have leading zeros, a number is written in several ways, and every larger exponent may begin a
    smaller one. So all beginnings that can become the number, and numbers on both sides of it, are followed: one per
    exponent. Those less likely than ``_NEGLIGIBLE`` are not.
    """
    numbers, grammar = model.config.numbers, model.grammar
    value = values.flatten()
    # Equal numbers with other exponents may differ in their last bits.
    margin = value.abs() * (_SAME * float(numbers.base) ** -numbers.mantissa_digits)
    branches = PrefixCache(model, memory, model.opening(group.queries, 0, group.shape))
    question = torch.arange(len(value), device=value.device)
    tokens = torch.empty(len(value), 0, dtype=torch.int64, device=value.device)
    mass = torch.ones_like(value)
    below, equal, ordered = torch.zeros_like(value), torch.zeros_like(value), torch.ones_like(value)
    steps = numbers.positions - numbers.separator
    for depth in range(steps):
        mask = grammar.mask(depth, tokens[:, 0] if depth else None).expand_as(branches.logits)
        share = branches.logits.double().masked_fill(~mask, -torch.inf).softmax(-1)
        parent, token = mask.nonzero(as_tuple=True)
        written = torch.cat([tokens[parent], token[:, None]], 1)
        low, high = grammar.bounds(written)
        own, weight = question[parent], mass[parent] * share[parent, token]
        first, last = (value - margin)[own], (value + margin)[own]
        if depth == 0:
            ordered.index_add_(0, own, -weight * low.isnan())
        same = (low >= first) & (high <= last)
        below.index_add_(0, own, weight * (high < first))
        equal.index_add_(0, own, weight * same)
        open_ = (low <= last) & (high >= first) & ~same & (weight > _NEGLIGIBLE)
        if depth + 1 == steps or not open_.any():
            break
        question, tokens, mass = own[open_], written[open_], weight[open_]
        branches.read(parent[open_], model.decoder.embed(tokens[:, -1:]), depth + 2 == steps)
    return (below / ordered).view(group.shape), (equal / ordered).view(group.shape)


def _walk(model: FullModel, memory: Memory, queries: QueryBatch | None, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities ``(inputs, branches)`` below numbers ``tokens (inputs, branches, 1, positions)``, and of them.

    Without leading zeros, what beginnings of numbers can become does not overlap, with one exception: in a format whose
    numbers are not unique, the exponent 0 has two signs. Such a number is written in both ways, and the probabilities
    below the two add up.
    """
    numbers = model.config.numbers
    path = tokens[:, :, -1]
    plus, minus, zero = (numbers.ids[name] for name in ("<+>", "<->", "<0>"))
    signed = (path[..., 1] == plus) | (path[..., 1] == minus)
    twice = signed & (path[..., 2 : numbers.lead] == zero).all(-1) & (not numbers.unique)
    first, below, mass = _branch(model, memory, queries, tokens, twice)
    if twice.any():
        other = tokens.clone()
        other[:, :, -1, 1] = torch.where(twice, plus + minus - path[..., 1], path[..., 1])
        _, more, mass_of_other = _branch(model, memory, queries, other, twice)
        below, mass = below + more * twice, mass + mass_of_other * twice
    return first + below, mass


def _branch(
    model: FullModel, memory: Memory, queries: QueryBatch | None, tokens: Tensor, twice: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities ``(inputs, branches)`` below numbers by their sign, below them otherwise, and of their tokens.

    Where ``twice``, the other sign of the exponent is left out.
    """
    logits = model.logits(memory, queries, tokens)[:, :, -1].double()
    shape, count = tokens.shape[:2], logits.shape[-1]
    path = tokens[:, :, -1].flatten(0, 1)
    masks = model.grammar.masks(path)
    share = logits.flatten(0, 1).masked_fill(~masks, -torch.inf).softmax(-1)
    value, _ = model.grammar.bounds(path)
    below = torch.zeros(len(path), 2, dtype=torch.float64, device=path.device)
    reached, ordered = torch.ones_like(below[:, 0]), torch.ones_like(below[:, 0])
    every = torch.arange(count, device=path.device).expand(len(path), -1)
    for position in range(path.shape[1]):
        written = torch.cat([path[:, None, :position].expand(-1, count, -1), every[..., None]], -1)
        low = model.grammar.bounds(written.flatten(0, 1))[0].view(len(path), count)
        own = path[:, position, None]
        smaller = masks[:, position] & (low < value[:, None]) & (every != own)
        if position == 1:
            smaller &= ~twice.flatten()[:, None]
        below[:, int(position > 0)] += reached * (share[:, position] * smaller).sum(-1)
        if position == 0:
            ordered -= (share[:, 0] * (masks[:, 0] & low.isnan())).sum(-1)
        reached = reached * share[:, position].gather(1, own)[:, 0]
    first, rest = (below / ordered[:, None]).unbind(1)
    return first.view(shape), rest.view(shape), (reached / ordered).view(shape)


def _share(cell: tuple[float, float], value: float) -> float:
    low, high = cell
    return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
