"""Exact quantiles by a search in the tree of number tokens.

The beginning of a number is a node: its probability, and the interval of values it can still become. The nodes give
two distribution functions, one with every node's mass at the low end of its interval and one at the high end. The true
one lies between, so a quantile lies between theirs. Only nodes whose interval reaches into this bracket are expanded,
all of one depth together, for all inputs, queries and levels at once. Each step narrows the brackets, and when all
tokens are written both ends meet: the result is exact, in as many steps as a number has tokens.

With the exponent first, the children of a node follow one another and the search walks one path a level. Where a format
allows a leading zero, intervals overlap and a few more paths are open. With the exponent last (P10) nearly every
mantissa can lie on either side until its exponent is known: the search is then an enumeration of mantissas, and
``tolerance`` lets it leave out the least likely ones, and those that are too many to follow. What is left out is
counted: F at a result is off by at most ``error``. A ``resolution`` ends a path when all that it can become is within
that share of its value: the last digits of a number cost the most and say the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .decoder import Memory
from .model import FullModel
from .numbers import NumberFormat
from .sequences import Group, PrefixCache

Array = npt.NDArray[np.float64]
_NODES = 2_000_000
# Beginnings of numbers with the exponent first that a search with a tolerance follows at once, for each question.
_MOST_OPEN = 64
_SERVED_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Beginnings of numbers: the question of each, its probability and the interval of its values, ``(nodes,)``."""

    question: Tensor
    mass: Tensor
    low: Tensor
    high: Tensor

    def __getitem__(self, index: Tensor) -> _Nodes:
        return _Nodes(self.question[index], self.mass[index], self.low[index], self.high[index])

    @staticmethod
    def join(parts: Sequence[_Nodes]) -> _Nodes:
        columns = zip(*((part.question, part.mass, part.low, part.high) for part in parts), strict=True)
        return _Nodes(*(torch.cat(column) for column in columns))


def served_tolerance(numbers: NumberFormat) -> float:
    """Return the probability that a search may leave out so that it is fast enough for a hint.

    Where numbers may have leading zeros, each exponent is a way to write any smaller number, and most are unlikely.
    """
    return 0.0 if numbers.normalised else _SERVED_TOLERANCE


def max_questions(numbers: NumberFormat) -> int:
    """Return how many questions a search may take so that its nodes fit into a few hundred megabytes."""
    if numbers.exponent_first:
        return 4096
    mantissas = int(numbers.base**numbers.mantissa_digits)
    return max(_NODES // (2 * mantissas * (2 * numbers.exponent_range + 1)), 1)


class QuantileSearch:
    """The quantiles of the last number of a group of questions.

    Attributes:
        error: ``(questions,)``, how far F may be off at a result.
        unordered: ``(questions,)``, the probability of special tokens without a place in the order.
    """

    def __init__(
        self,
        model: FullModel,
        memory: Memory,
        group: Group,
        levels: Sequence[float],
        tolerance: float,
        resolution: float,
    ) -> None:
        self.model, self.memory, self.group = model, memory, group
        self.tolerance, self.resolution = tolerance, resolution
        self.levels = torch.tensor(levels, dtype=torch.float64, device=model.device)
        self.count = group.shape[0] * group.shape[1]
        self.numbers = model.config.numbers
        self._spare = torch.full((self.count,), tolerance, dtype=torch.float64, device=model.device)
        self._skipped: list[_Nodes] = []
        self._leaves: _Nodes

    def run(self) -> None:
        """Search until all brackets are closed."""
        steps = self.numbers.positions - self.numbers.separator
        branches = self._first()
        device = branches.logits.device
        question = torch.arange(self.count, device=device)
        tokens = torch.empty(self.count, 0, dtype=torch.int64, device=device)
        mass = torch.ones(self.count, dtype=torch.float64, device=device)
        settled: list[_Nodes] = []
        for depth in range(steps):
            logits = branches.logits
            mask = self.model.grammar.mask(depth, tokens[:, 0] if depth else None).expand_as(logits)
            share = logits.masked_fill(~mask, -torch.inf).softmax(-1)
            parent, token = mask.nonzero(as_tuple=True)
            written = torch.cat([tokens[parent], token[:, None]], 1)
            low, high = self.model.grammar.bounds(written)
            fresh = _Nodes(question[parent], mass[parent] * share[parent, token], low, high)
            if not depth:
                fresh, kept = self._ordered(fresh)
                written, parent = written[kept], parent[kept]
            bottom, top = self._brackets(_Nodes.join([*settled, fresh]))
            reach = (fresh.low[:, None] < top[fresh.question]) & (fresh.high[:, None] > bottom[fresh.question])
            open_ = fresh.high - fresh.low > self.resolution * torch.maximum(fresh.low.abs(), fresh.high.abs())
            chosen = self._drop(fresh, reach.any(1) & open_)
            settled.append(fresh[~chosen])
            if depth + 1 == steps or not chosen.any():
                break
            question, tokens, mass = fresh.question[chosen], written[chosen], fresh.mass[chosen]
            branches.read(parent[chosen], self.model.decoder.embed(tokens[:, -1:]), depth + 2 == steps)
        self._leaves = _Nodes.join(settled)

    def answers(self) -> tuple[Array, Array]:
        """Quantiles ``(questions, levels)``: as numbers, and with each number's probability spread over its cell."""
        nodes, order, total, starts = self._sorted(self._leaves, self._leaves.low)
        at = self._reach(total, starts)
        low, high = nodes.low[order], nodes.high[order]
        # Leaves of one value, whatever their tokens, are one jump of F.
        edge = torch.ones(len(low), dtype=torch.bool, device=low.device)
        edge[1:] = (low[1:] != low[:-1]) | (nodes.question[order][1:] != nodes.question[order][:-1])
        run = edge.cumsum(0) - 1
        first = edge.nonzero()[:, 0]
        last = torch.cat([first[1:], first.new_tensor([len(low)])]) - 1
        before = torch.cat([total.new_zeros(1), total])[first]
        target = self._targets(total, starts)
        jump = (total[last] - before)[run[at]]
        share = torch.where(jump > 0, (target - before[run[at]]) / jump, 0.5).clamp(0, 1)
        values = torch.where(self.unordered[:, None] < 1, low[at], torch.nan)
        self._count_error(values)
        found, top, spread = (part.cpu().numpy() for part in (values, high[at], share))
        bottom, top = self.numbers.cells(found)[0], self.numbers.cells(top)[1]
        smooth = np.where(np.isfinite(found), bottom + spread * (top - bottom), found)
        return found, smooth

    def _first(self) -> PrefixCache:
        """The questions up to the wanted number."""
        model, group = self.model, self.group
        known = len(group.wanted) - 1
        x = model.opening(group.queries, known, group.shape)
        if known:
            x = torch.cat([model.sequence(group.queries, group.tokens[:, :, :known]), x], 2)
        return PrefixCache(model, self.memory, x)

    def _ordered(self, nodes: _Nodes) -> tuple[_Nodes, Tensor]:
        """First tokens without those that have no order, their masses summing up to 1; and which stay."""
        kept = ~nodes.low.isnan()
        none = torch.zeros(self.count, dtype=torch.float64, device=kept.device)
        self.unordered = none.index_add(0, nodes.question[~kept], nodes.mass[~kept])
        rest = none.index_add(0, nodes.question[kept], nodes.mass[kept])
        nodes = nodes[kept]
        scaled = nodes.mass / rest[nodes.question].clamp(min=torch.finfo(torch.float64).tiny)
        return _Nodes(nodes.question, scaled, nodes.low, nodes.high), kept

    def _drop(self, fresh: _Nodes, chosen: Tensor) -> Tensor:
        """Leave out the least likely of the nodes to be expanded, within the tolerance or where there are too many."""
        if self.tolerance <= 0:
            return chosen
        most = _MOST_OPEN if self.numbers.exponent_first else len(fresh.mass)
        index = chosen.nonzero()[:, 0]
        order = index[fresh.mass[index].argsort()]
        order = order[fresh.question[order].argsort(stable=True)]
        question, mass = fresh.question[order], fresh.mass[order]
        counts = torch.bincount(question, minlength=self.count)
        total = mass.cumsum(0)
        start = counts.cumsum(0) - counts
        before = torch.cat([total.new_zeros(1), total])[start]
        within = total - before[question] <= self._spare[question]
        rank = torch.arange(len(order), device=order.device) - start[question]
        gone = within | (rank < counts[question] - most)
        dropped = fresh[order[gone]]
        self._spare.index_add_(0, dropped.question, -dropped.mass).clamp_(min=0)
        self._skipped.append(dropped)
        chosen[order[gone]] = False
        return chosen

    def _count_error(self, values: Tensor) -> None:
        """Sum up what was left out and could lie on either side of a result."""
        worst = torch.zeros(values.shape, dtype=torch.float64, device=values.device)
        for part in self._skipped:
            open_ = (part.low[:, None] <= values[part.question]) & (part.high[:, None] > values[part.question])
            worst.index_add_(0, part.question, open_ * part.mass[:, None])
        self.error = worst.amax(1)

    def _brackets(self, nodes: _Nodes) -> tuple[Tensor, Tensor]:
        """The smallest and largest value that each quantile can have, ``(questions, levels)``."""
        ends = []
        for values in (nodes.low, nodes.high):
            _, order, total, starts = self._sorted(nodes, values)
            ends.append(values[order][self._reach(total, starts)])
        return ends[0], ends[1]

    def _sorted(self, nodes: _Nodes, values: Tensor) -> tuple[_Nodes, Tensor, Tensor, Tensor]:
        """Order by question, then value; the running sum of mass; where each question starts ``(questions + 1,)``."""
        order = values.argsort(stable=True)
        order = order[nodes.question[order].argsort(stable=True)]
        counts = torch.bincount(nodes.question, minlength=self.count)
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return nodes, order, nodes.mass[order].cumsum(0), starts

    def _targets(self, total: Tensor, starts: Tensor) -> Tensor:
        """The running sum at which each question reaches each level."""
        sums = torch.cat([total.new_zeros(1), total])[starts]
        return sums[:-1, None] + (sums[1:] - sums[:-1])[:, None] * self.levels

    def _reach(self, total: Tensor, starts: Tensor) -> Tensor:
        """Where each question reaches each level."""
        at = torch.searchsorted(total, self._targets(total, starts))
        return at.clamp(starts[:-1, None], (starts[1:] - 1)[:, None])
