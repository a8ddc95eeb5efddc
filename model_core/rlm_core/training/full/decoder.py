"""The decoder: a causal transformer over queries and number tokens that reads the encoded text by cross-attention.

Everything is laid out as ``(inputs, branches, ...)``: the branches are the sequences about one input (its queries, the
beginnings of numbers under search, samples). Keys and values of a text are computed once an input and shared by all of
its branches; those of the sequence itself are cached, so that a step costs one token.

A query becomes one vector before the number that it is about (:class:`QueryTokens`), so that each number of a sequence
can be another metric on another device: "accuracy; then latency on a phone; then latency on a GPU".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rlm_core.errors import ModelError
from rlm_core.queries.query_vector import QUERY, decimal_year, query_vector
from rlm_core.training.student.network import Norm, rotary, rotate
from rlm_core.types import BASIS_OF_KIND, SI_UNIT, Query

from .gemma import CappedLinear, GemmaDecoderLayer, GemmaNorm, GemmaSizes
from .numbers import NumberFormat

FEATURES = QUERY + 2
_YEAR = 2023.0


@dataclass(frozen=True)
class FullConfig:
    """The decoder of a full model.

    Attributes:
        numbers: how numbers are written.
        encoder_width: size of a token vector that the encoder gives.
        width, layers, heads, hidden: sizes of the decoder; ``hidden`` is the width inside its feed-forward layers.
        norm: ``rms`` or ``layer``; ``final_norm`` puts one more before the logits.
        positions: ``rotary`` in self-attention, or ``sinusoidal`` added to the embeddings.
        gated: SiLU-gated feed-forward layers instead of ReLU.
        bias: whether linear layers but the last have one (the last always does).
        opening: what comes before a number: ``ask``, a query vector before each; or ``start``, a start token before
            the first alone.
        metrics, bases, languages: what queries may name. An unknown basis or language is answered like none.
        max_numbers: the most numbers in one sequence.
        dropout: inside feed-forward layers, in training.
        gemma: the layers are those of T5Gemma with these sizes; what is said above of layers does not apply then.
    """

    numbers: NumberFormat = field(default_factory=NumberFormat)
    encoder_width: int = 512
    width: int = 512
    layers: int = 2
    heads: int = 8
    hidden: int = 1408
    norm: Literal["rms", "layer"] = "rms"
    final_norm: bool = True
    positions: Literal["rotary", "sinusoidal"] = "rotary"
    gated: bool = True
    bias: bool = False
    opening: Literal["ask", "start"] = "ask"
    metrics: tuple[str, ...] = tuple(SI_UNIT)
    bases: tuple[str, ...] = tuple(BASIS_OF_KIND.values())
    languages: tuple[str, ...] = ()
    max_numbers: int = 16
    dropout: float = 0.0
    gemma: GemmaSizes | None = None

    def __post_init__(self) -> None:
        if min(self.width, self.layers, self.heads, self.hidden, self.encoder_width, self.max_numbers) < 1:
            raise ModelError("full model: sizes must be at least 1; correct the configuration")
        if self.gemma is None and (self.width % self.heads or self.width // self.heads % 2):
            raise ModelError(
                f"full model: width {self.width} must be an even multiple of {self.heads} heads; change one"
            )
        switches = (self.norm in ("rms", "layer"), self.positions in ("rotary", "sinusoidal"))
        if not all(switches) or self.opening not in ("ask", "start"):
            raise ModelError("full model: an unknown norm, positions or opening; see the names in FullConfig")

    @property
    def has_queries(self) -> bool:
        """True if a query vector precedes each number."""
        return self.opening == "ask"

    def start_of(self, number: int) -> int:
        """The place in the decoder's input whose output predicts the first token of a number (0-based)."""
        return number * (self.numbers.positions + self.has_queries)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {**asdict(self), "numbers": self.numbers.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FullConfig:
        """The configuration that :meth:`to_json` wrote.

        Raises:
            ModelError: a field is missing, unknown or wrong.
        """
        try:
            lists = {name: tuple(data[name]) for name in ("metrics", "bases", "languages")}
            gemma = GemmaSizes(**data["gemma"]) if data.get("gemma") else None
            return cls(**{**data, **lists, "numbers": NumberFormat.from_json(data["numbers"]), "gemma": gemma})
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"full model: settings are incomplete or wrong ({error}); save the model again") from None


def regress_lm_config(numbers: NumberFormat, encoder_width: int, layers: int, objectives: int) -> FullConfig:
    """The decoder of regress-lm: as wide as its encoder, eight heads, LayerNorm, sinusoids, ReLU, biases."""
    return FullConfig(
        numbers=numbers,
        encoder_width=encoder_width,
        width=encoder_width,
        layers=layers,
        heads=8,
        hidden=4 * encoder_width,
        norm="layer",
        final_norm=False,
        positions="sinusoidal",
        gated=False,
        bias=True,
        opening="start",
        metrics=(),
        bases=(),
        max_numbers=objectives,
    )


def t5gemma_config(numbers: NumberFormat, encoder_width: int, sizes: GemmaSizes, objectives: int = 1) -> FullConfig:
    """The decoder of the RLMs of arXiv 2509.26476: T5Gemma's, which writes number tokens."""
    return FullConfig(
        numbers=numbers,
        encoder_width=encoder_width,
        width=sizes.width,
        layers=sizes.layers,
        heads=sizes.heads,
        hidden=sizes.hidden,
        opening="start",
        metrics=(),
        bases=(),
        max_numbers=objectives,
        gemma=sizes,
    )


@dataclass(frozen=True, slots=True)
class Memory:
    """The encoded texts that the decoder attends to: keys and values per layer ``(inputs, heads, tokens, size)``.

    ``mask (inputs, 1, 1, tokens)`` is True at real tokens; None when nothing is padded.
    """

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    mask: Tensor | None

    @property
    def inputs(self) -> int:
        """Number of texts."""
        return len(self.keys[0])


@dataclass(frozen=True, slots=True)
class Cache:
    """A layer's keys and values of the sequences so far, ``(rows, heads, length, size)``; a row is a branch."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]

    @property
    def length(self) -> int:
        """Tokens so far."""
        return self.keys[0].shape[2]

    def select(self, rows: Tensor) -> Cache:
        """The cache of other branches: that of row ``rows[i]`` for row i."""
        keys = tuple(tensor.index_select(0, rows) for tensor in self.keys)
        return Cache(keys, tuple(tensor.index_select(0, rows) for tensor in self.values))

    @staticmethod
    def join(parts: list[Cache]) -> Cache:
        """Several caches of one length, one after another."""
        keys = tuple(torch.cat(tensors) for tensors in zip(*(part.keys for part in parts), strict=True))
        return Cache(keys, tuple(torch.cat(tensors) for tensors in zip(*(part.values for part in parts), strict=True)))


class DecoderLayer(nn.Module):
    """Pre-norm self-attention, cross-attention and feed-forward."""

    def __init__(self, config: FullConfig) -> None:
        super().__init__()
        width, bias = config.width, config.bias
        self.heads, self.gated = config.heads, config.gated
        self.norm1, self.norm2, self.norm3 = (_norm(config) for _ in range(3))
        self.self_qkv = nn.Linear(width, 3 * width, bias)
        self.self_out = nn.Linear(width, width, bias)
        self.cross_q = nn.Linear(width, width, bias)
        self.cross_kv = nn.Linear(config.encoder_width, 2 * width, bias)
        self.cross_out = nn.Linear(width, width, bias)
        self.up = nn.Linear(width, config.hidden * (2 if config.gated else 1), bias)
        self.down = nn.Linear(config.hidden, width, bias)
        self.dropout = nn.Dropout(config.dropout)

    def remember(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values ``(inputs, heads, tokens, size)`` of token vectors ``(inputs, tokens, encoder width)``."""
        inputs, tokens, _ = vectors.shape
        both = self.cross_kv(vectors).view(inputs, tokens, 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        return both[0].contiguous(), both[1].contiguous()

    def forward(
        self,
        x: Tensor,
        text: tuple[Tensor, Tensor, Tensor | None],
        past: tuple[Tensor, Tensor] | None,
        turn: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors ``(inputs, branches, tokens, width)`` through the layer, and all keys and values of the sequences."""
        inputs, branches, tokens, width = x.shape
        rows = inputs * branches
        qkv = self.self_qkv(self.norm1(x)).view(rows, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (rows, heads, tokens, size)
        if turn is not None:
            q, k = rotate(q, *turn).to(v.dtype), rotate(k, *turn).to(v.dtype)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        mixed = _attend(q, k, v)
        x = x + self.self_out(mixed.transpose(1, 2).reshape(x.shape))
        # All branches of an input are rows of one product with its keys.
        q = self.cross_q(self.norm2(x)).view(inputs, branches * tokens, self.heads, width // self.heads).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(q, text[0], text[1], attn_mask=text[2])
        x = x + self.cross_out(mixed.transpose(1, 2).reshape(x.shape))
        inner = self.up(self.norm3(x))
        if self.gated:
            gate, value = inner.chunk(2, dim=-1)
            inner = F.silu(gate) * value
        else:
            inner = F.relu(inner)
        return x + self.down(self.dropout(inner)), k, v


class Decoder(nn.Module):
    """Number tokens and queries -> logits of the next number token."""

    def __init__(self, config: FullConfig) -> None:
        super().__init__()
        self.config = config
        vocabulary = len(config.numbers.names)
        self.embed = nn.Embedding(vocabulary, config.width)
        gemma = config.gemma
        if gemma is None:
            self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
            self.norm = _norm(config) if config.final_norm else nn.Identity()
            self.logits: nn.Linear = nn.Linear(config.width, vocabulary)
        else:
            self.layers = nn.ModuleList(GemmaDecoderLayer(gemma, config.encoder_width) for _ in range(gemma.layers))
            self.norm = GemmaNorm(gemma.width, gemma.epsilon)
            self.logits = CappedLinear(gemma.width, vocabulary, gemma.logit_cap)

    def remember(self, vectors: Tensor, mask: Tensor | None) -> Memory:
        """Compute the keys and values of texts, once for all branches.

        Args:
            vectors: ``(inputs, tokens, encoder width)``.
            mask: ``(inputs, tokens)``, True at real tokens; None when nothing is padded.
        """
        pairs = [layer.remember(vectors) for layer in self.layers]  # type: ignore[operator]
        keys, values = zip(*pairs, strict=True)
        return Memory(keys, values, None if mask is None else mask[:, None, None, :])

    def forward(self, x: Tensor, memory: Memory, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Read more of the sequences.

        Args:
            x: ``(inputs, branches, tokens, width)``, embedded tokens and query vectors.
            memory: of the inputs.
            cache: of the sequences so far, with ``inputs * branches`` rows.

        Returns:
            Vectors before the logits, shaped like ``x``, and the cache with the new tokens.
        """
        start, tokens, width = 0 if cache is None else cache.length, x.shape[2], x.shape[3]
        turn, gemma = None, self.config.gemma
        if gemma is not None:
            cosine, sine = rotary(start + tokens, gemma.head_size, x.device, gemma.rotary_base)
            turn, x = (cosine[start:], sine[start:]), x * width**0.5
        elif self.config.positions == "rotary":
            cosine, sine = rotary(start + tokens, width // self.config.heads, x.device)
            turn = cosine[start:], sine[start:]
        else:
            x = x + sinusoids(start, tokens, width, x.device).to(x.dtype)
        keys, values = [], []
        for index, layer in enumerate(self.layers):
            past = None if cache is None else (cache.keys[index], cache.values[index])
            x, k, v = layer(x, (memory.keys[index], memory.values[index], memory.mask), past, turn)
            keys.append(k)
            values.append(v)
        return self.norm(x), Cache(tuple(keys), tuple(values))


def sinusoids(start: int, tokens: int, width: int, device: torch.device) -> Tensor:
    """Sines and cosines, interleaved (arXiv 1706.03762), of ``tokens`` positions from ``start`` on: (tokens, width)."""
    place = torch.arange(start, start + tokens, device=device)[:, None]
    angle = place * torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000.0) / width))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def _norm(config: FullConfig) -> nn.Module:
    return Norm(config.width) if config.norm == "rms" else nn.LayerNorm(config.width)


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of the last tokens of sequences over all of them."""
    tokens, length = q.shape[2], k.shape[2]
    mask = None
    if tokens > 1:
        mask = torch.ones(tokens, length, dtype=torch.bool, device=q.device).tril(length - tokens)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@dataclass(frozen=True, slots=True)
class NumberQuery:
    """The query that one number answers. ``device=None`` and an empty workload mean that they are unknown."""

    metric: str
    basis: str = ""
    language: str = ""
    device: str | None = None
    workload: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Query, basis: str, language: str) -> NumberQuery:
        """A query about a unit of a basis and language."""
        return cls(query.metric, basis, language, query.device, query.workload)


@dataclass(frozen=True, slots=True)
class QueryBatch:
    """Queries as tensors: ``names (..., 3)``, ids of metric, basis, language; ``features (..., FEATURES)``."""

    names: Tensor
    features: Tensor

    def to(self, device: torch.device) -> QueryBatch:
        """The same on a device."""
        return QueryBatch(self.names.to(device), self.features.to(device))

    def view(self, *shape: int) -> QueryBatch:
        """The same in another shape."""
        return QueryBatch(self.names.view(*shape, 3), self.features.view(*shape, FEATURES))

    def __getitem__(self, index: Tensor | tuple[Tensor | slice | int, ...] | slice | int) -> QueryBatch:
        return QueryBatch(self.names[index], self.features[index])


class QueryTokens(nn.Module):
    """Queries -> vectors ``(..., width)``.

    A vector is the sum of learned vectors for metric, basis and language and a linear map of the device and workload as
    numbers (``query_vector``).
    """

    def __init__(self, config: FullConfig) -> None:
        super().__init__()
        self._ids = [
            {name: index for index, name in enumerate(names, 1)}
            for names in (config.metrics, config.bases, config.languages)
        ]
        self.metric, self.basis, self.language = (nn.Embedding(1 + len(ids), config.width) for ids in self._ids)
        self.features = nn.Linear(FEATURES, config.width)

    def batch(self, queries: Sequence[NumberQuery]) -> QueryBatch:
        """Queries as tensors on the CPU, ``(queries,)``.

        Raises:
            ModelError: a metric that the model does not know.
            DataError: a workload's date is malformed.
        """
        names, features = np.zeros((len(queries), 3), np.int64), np.zeros((len(queries), FEATURES), np.float32)
        for row, query in enumerate(queries):
            if query.metric not in self._ids[0]:
                known = ", ".join(self._ids[0])
                raise ModelError(f"metric {query.metric!r}: this model was not trained for it; it knows {known}")
            names[row] = [
                ids.get(name, 0)
                for ids, name in zip(self._ids, (query.metric, query.basis, query.language), strict=True)
            ]
            year = decimal_year(query.workload)
            features[row, :QUERY] = query_vector(query.device, query.workload)
            features[row, QUERY:] = (1.0, (year - _YEAR) / 5) if year else (0.0, 0.0)
        return QueryBatch(torch.from_numpy(names), torch.from_numpy(features))

    def forward(self, queries: QueryBatch) -> Tensor:
        """Vectors ``(..., width)``."""
        metric, basis, language = queries.names.unbind(-1)
        total: Tensor = self.metric(metric) + self.basis(basis) + self.language(language)
        return total + self.features(queries.features.to(total.dtype))  # type: ignore[no-any-return]
