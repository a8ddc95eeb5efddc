"""The student: a small encoder that reads a text once and a query head that answers many questions about it (PyTorch).

Encoder: pre-norm transformer, rotary positions, SwiGLU, attention pooling. Head: the unit's vector, pooled vectors of
its callees, the n-gram ridge's number and the query in; logits over the outcomes of ``bins`` out. Both are
exported to ONNX. Attention is written out: under ``torch.compile`` it fuses with the softmax around it, which on a
CPU makes a training step 1.3 to 1.5 times as fast as the library's kernel at these lengths, and it exports to plain
MatMul and Softmax.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rlm_core.inference.ngram_ridge import CALENDAR_NODES, CALENDAR_START, CALENDAR_STEP
from rlm_core.queries.query_vector import QUERY
from rlm_core.source.syntax_counts import FACTS

WIDE_CENTRES = 24


@dataclass(frozen=True, slots=True)
class StudentConfig:
    """Sizes of the student; written into the model card."""

    vocabulary: int = 8192
    width: int = 256
    layers: int = 4
    heads: int = 4
    hidden: int = 704
    context: int = 512
    head_hidden: int = 512
    base_hidden: int = 192
    slices: int = 12
    outcomes: int = 65
    dropout: float = 0.2

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)


def rotary(length: int, size: int, device: torch.device, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary positions (arXiv 2104.09864), each ``(length, size)``."""
    frequency = base ** (-torch.arange(0, size, 2, device=device, dtype=torch.float32) / size)
    angle = torch.arange(length, device=device, dtype=torch.float32)[:, None] * frequency[None, :]
    angle = torch.cat([angle, angle], dim=-1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn ``x (batch, heads, tokens, size)`` by its positions."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat([-second, first], dim=-1) * sine


class Norm(nn.Module):
    """RMSNorm whose weight follows the input's type, so that autocast keeps the fused kernel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Same shape in and out."""
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), 1e-6)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax attention over ``(batch, heads, tokens, size)``; ``mask`` is True at keys that may be read."""
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e4)
    mixed: Tensor = scores.softmax(-1).to(v.dtype) @ v
    return mixed


class Layer(nn.Module):
    """One pre-norm transformer layer: ``(batch, tokens, width)`` in and out."""

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm1 = Norm(config.width)
        self.norm2 = Norm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.up = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None, cosine: Tensor, sine: Tensor) -> Tensor:
        """``mask (batch, 1, 1, tokens)`` is True at real tokens; None when there is no padding."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, tokens, size)
        q, k = rotate(q, cosine, sine).to(v.dtype), rotate(k, cosine, sine).to(v.dtype)
        mixed = attend(q, k, v, mask)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        gate, value = self.up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """Token ids ``(batch, tokens)`` -> vectors ``(batch, width)``."""

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        nn.init.normal_(self.embed.weight, std=0.7)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = Norm(config.width)
        self.score = nn.Linear(config.width, 4, bias=False)
        self.pool = nn.Linear(5 * config.width, config.width)

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """``mask (batch, tokens)`` is True at real tokens; None when there is no padding."""
        return self.pooled(self.states(ids, mask), mask)

    def states(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """A vector for each token, ``(batch, tokens, width)``."""
        x = self.embed(ids)
        cosine, sine = rotary(ids.shape[1], self.config.width // self.config.heads, ids.device)
        keys = None if mask is None else mask[:, None, None, :]
        for layer in self.layers:
            x = layer(x, keys, cosine, sine)
        normed: Tensor = self.norm(x)
        return normed

    def pooled(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Token vectors -> one vector per text, ``(batch, width)``."""
        scores = self.score(x).float()  # (batch, tokens, 4)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, :, None], -1e9)
            weights = mask.float() / mask.sum(1, keepdim=True)
        else:
            weights = torch.full_like(scores[:, :, 0], 1.0) / x.shape[1]
        attention = torch.cat([scores.softmax(1), weights[:, :, None]], dim=-1).to(x.dtype)  # (batch, tokens, 5)
        pooled = attention.transpose(1, 2) @ x  # (batch, 5, width)
        vectors: Tensor = self.pool(pooled.flatten(1)).float()
        return vectors


def calendar_hats(date: Tensor) -> Tensor:
    """Piecewise-linear basis over half years, ``(rows,) -> (rows, nodes)``; as ``calendar``."""
    nodes = CALENDAR_START + CALENDAR_STEP * torch.arange(CALENDAR_NODES, dtype=torch.float32, device=date.device)
    return (1 - (date[:, None] - nodes[None, :]).abs() / CALENDAR_STEP).clamp(min=0)


class QueryEmbedding(nn.Module):
    """The query as one vector ``(rows, 64)``: its slice, the judge's date, device and workload."""

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.slice = nn.Embedding(config.slices, 64)
        self.calendar = nn.Linear(CALENDAR_NODES, 64, bias=False)
        self.query = nn.Linear(QUERY, 64, bias=False)
        nn.init.zeros_(self.calendar.weight)
        nn.init.zeros_(self.query.weight)

    def forward(self, slice: Tensor, date: Tensor, query: Tensor) -> Tensor:
        """Arguments as in :meth:`Head.forward`."""
        asked: Tensor = self.slice(slice) + self.calendar(calendar_hats(date)) + self.query(query)
        return asked


class Deep(nn.Module):
    """Logits from the encodings of a unit and its callees."""

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.head_hidden
        self.asked = QueryEmbedding(config)
        self.own = nn.Linear(width, hidden)
        self.called = nn.Linear(4 * width + 2, hidden, bias=False)
        nn.init.zeros_(self.called.weight)
        self.query = nn.Linear(64, hidden)
        self.gate = nn.Linear(64, hidden)
        self.norm = Norm(hidden)
        self.middle = nn.Linear(hidden, hidden)
        self.logits = nn.Linear(hidden, config.outcomes)
        self.drop = nn.Dropout(config.dropout)

    def forward(
        self, unit: Tensor, callees: Tensor, counts: Tensor, slice: Tensor, date: Tensor, query: Tensor
    ) -> Tensor:
        """Logits ``(rows, outcomes)``; arguments as in :meth:`Head.forward`."""
        asked = self.asked(slice, date, query)
        called = torch.cat([callees, torch.log1p(counts)], dim=-1)
        x = self.own(unit) + self.called(called) + self.query(asked)
        x = F.gelu(self.norm(x * (1 + self.gate(asked))))
        x = x + F.gelu(self.middle(self.drop(x)))
        logits: Tensor = self.logits(self.drop(x))
        return logits


class Base(nn.Module):
    """Logits from what is known without the encoder: the query and, if ``informed``, the wide prediction and facts."""

    def __init__(self, config: StudentConfig, *, informed: bool) -> None:
        super().__init__()
        self.informed = informed
        self.asked = QueryEmbedding(config)
        self.inner = nn.Linear(64 + (WIDE_CENTRES + 1 + FACTS if informed else 0), config.base_hidden)
        self.gate = nn.Linear(64, config.base_hidden)
        self.middle = nn.Linear(config.base_hidden, config.base_hidden)
        self.logits = nn.Linear(config.base_hidden, config.outcomes)
        nn.init.zeros_(self.logits.weight)
        nn.init.zeros_(self.logits.bias)
        self.bias = nn.Embedding(config.slices, config.outcomes)
        nn.init.zeros_(self.bias.weight)
        self.drop = nn.Dropout(0.1)
        # It starts as a broad Gaussian around the wide prediction, so that little data is enough.
        self.precision = nn.Parameter(torch.full((config.slices,), 0.5 if informed else 0.0), requires_grad=informed)
        self.outcomes: Tensor
        self.centres: Tensor
        self.register_buffer("outcomes", torch.arange(config.outcomes, dtype=torch.float32) - 0.5, persistent=False)
        self.register_buffer("centres", torch.linspace(0, config.outcomes - 1, WIDE_CENTRES), persistent=False)

    def forward(self, wide: Tensor, facts: Tensor, slice: Tensor, date: Tensor, query: Tensor) -> Tensor:
        """Logits ``(rows, outcomes)``; arguments as in :meth:`Head.forward`."""
        asked = self.asked(slice, date, query)
        known = asked
        if self.informed:
            spread = self.centres[1] - self.centres[0]
            places = (-0.5 * ((wide[:, None] - self.centres[None, :]) / spread) ** 2).exp()
            known = torch.cat([asked, places, wide[:, None] / self.centres[-1], (facts - 2) / 2], dim=-1)
        x = F.gelu(self.inner(known) * (1 + self.gate(asked)))
        x = x + F.gelu(self.middle(self.drop(x)))
        logits: Tensor = self.logits(self.drop(x)) + self.bias(slice)
        if self.informed:
            distance = (self.outcomes[None, :] - wide[:, None]) / 8
            logits = logits - 0.5 * self.precision[slice][:, None] * distance**2
        return logits


class Head(nn.Module):
    """Answers queries about encoded units; all inputs float32 but ``slice`` (int64), one row per query.

    The base reads the wide part's prediction, which for training rows is out of fold, so it can be trusted. The deep
    part is trained on the same rows as its encoder and knows their groups; so it only adds its evidence beyond the
    ``prior`` (the query alone), weighted by one number per task that is fitted on groups that the encoder has not seen.
    """

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.deep = Deep(config)
        self.base = Base(config, informed=True)
        self.prior = Base(config, informed=False)
        self.weight = nn.Parameter(torch.zeros(config.slices))

    def forward(
        self,
        unit: Tensor,
        callees: Tensor,
        counts: Tensor,
        wide: Tensor,
        facts: Tensor,
        slice: Tensor,
        date: Tensor,
        query: Tensor,
    ) -> Tensor:
        """Logits ``(rows, outcomes)``.

        Args:
            unit: ``(rows, width)``.
            callees: ``(rows, 4 * width)``, mean and maximum of the callees' vectors per level, zeros without callees.
            counts: ``(rows, 2)``, callees per level.
            wide: ``(rows,)``, the n-gram ridge's prediction on the outcome axis.
            facts: ``(rows, FACTS)``, see :func:`rlm_core.source.syntax_counts.facts`.
            slice: ``(rows,)``, index of basis/language/metric.
            date: ``(rows,)``, decimal year; 0 where time has no meaning.
            query: ``(rows, QUERY)``, see :func:`rlm_core.queries.query_vector.query_vector`.
        """
        evidence = self.deep(unit, callees, counts, slice, date, query)
        evidence = evidence - self.prior(wide, facts, slice, date, query)
        logits: Tensor = self.base(wide, facts, slice, date, query) + self.weight[slice][:, None] * evidence
        return logits


class Student(nn.Module):
    """Encoder and head together, as they are trained."""

    def __init__(self, config: StudentConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.head = Head(config)
