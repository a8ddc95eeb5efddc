"""The layers of T5Gemma (arXiv 2504.06225), the backbone of the published RLMs, without transformers.

Gemma 2's block: a norm before and after each part, attention scores that are capped by a tanh, rotary positions, and a
feed-forward layer gated by GELU. The encoder reads in both directions, the decoder attends to the text in a separate
part. Every second layer of a checkpoint looks at a window of tokens only; texts are no longer than that window, so that
all layers read everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rlm_core.errors import ModelError
from rlm_core.training.student.network import rotate

_ACTIVATION = "gelu_pytorch_tanh"


@dataclass(frozen=True, slots=True)
class GemmaSizes:
    """Sizes of an encoder or a decoder.

    Attributes:
        width, layers, hidden: of the vectors, how many layers, and inside their feed-forward part.
        heads, key_heads, head_size: of attention; ``heads / key_heads`` heads share keys and values.
        query_scale: what attention divides by the root of.
        attention_cap, logit_cap: the largest attention score and logit, None without a cap.
        rotary_base: of the rotary positions.
        epsilon: of the norms.
        window: tokens that every second layer sees.
    """

    width: int
    layers: int
    hidden: int
    heads: int
    key_heads: int
    head_size: int
    query_scale: float = 256.0
    attention_cap: float | None = 50.0
    logit_cap: float | None = 30.0
    rotary_base: float = 10_000.0
    epsilon: float = 1e-6
    window: int = 4096

    def __post_init__(self) -> None:
        if min(self.width, self.layers, self.hidden, self.heads, self.key_heads, self.head_size, self.window) < 1:
            raise ModelError("T5Gemma: sizes must be at least 1; fetch the checkpoint again")
        if self.heads % self.key_heads or self.head_size % 2:
            raise ModelError(
                f"T5Gemma: {self.heads} heads cannot share {self.key_heads} keys, or the head size {self.head_size} is "
                "odd; fetch the checkpoint again"
            )

    @property
    def scale(self) -> float:
        """The factor of the products of queries and keys."""
        return float(self.query_scale**-0.5)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    @classmethod
    def of_transformers(cls, data: Mapping[str, Any]) -> GemmaSizes:
        """The sizes in a configuration that transformers wrote; what it leaves out has that library's default.

        Raises:
            ModelError: a value is missing, or of a kind that this architecture does not have.
        """
        rotary = data.get("rope_parameters") or data.get("rope_scaling") or {}
        activation = data.get("hidden_activation", _ACTIVATION)
        if activation != _ACTIVATION or rotary.get("rope_type", "default") != "default" or data.get("attention_bias"):
            raise ModelError(
                f"T5Gemma: activation {activation!r}, rotary positions {rotary or 'default'} or biases of attention "
                "are not those of T5Gemma; this layout is not known"
            )
        window = data.get("sliding_window") or data.get("max_position_embeddings", 8192)
        try:
            return cls(
                width=int(data["hidden_size"]),
                layers=int(data["num_hidden_layers"]),
                hidden=int(data["intermediate_size"]),
                heads=int(data["num_attention_heads"]),
                key_heads=int(data.get("num_key_value_heads", data["num_attention_heads"])),
                head_size=int(data.get("head_dim", 256)),
                query_scale=float(data.get("query_pre_attn_scalar", 256)),
                attention_cap=_cap(data.get("attn_logit_softcapping", 50.0)),
                logit_cap=_cap(data.get("final_logit_softcapping", 30.0)),
                rotary_base=float(rotary.get("rope_theta") or data.get("rope_theta") or 10_000.0),
                epsilon=float(data.get("rms_norm_eps", 1e-6)),
                window=min(int(window), int(data.get("max_position_embeddings", 8192))),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"T5Gemma: its sizes are incomplete or wrong ({error}); fetch the checkpoint again"
            ) from None


class GemmaNorm(nn.Module):
    """RMSNorm in no less than single precision, whose weight is kept as the difference from 1."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.zeros(width)), epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Same shape in and out."""
        exact = torch.promote_types(x.dtype, torch.float32)
        return F.rms_norm(x.to(exact), (x.shape[-1],), 1 + self.weight.to(exact), self.epsilon)


class GemmaAttention(nn.Module):
    """Attention of ``(rows, tokens, width)`` over keys and values ``(rows, heads, tokens, size)``."""

    def __init__(self, sizes: GemmaSizes, source: int) -> None:
        super().__init__()
        self.sizes = sizes
        outer = sizes.heads * sizes.head_size
        self.queries = nn.Linear(sizes.width, outer, bias=False)
        self.keys_values = nn.Linear(source, 2 * sizes.key_heads * sizes.head_size, bias=False)
        self.out = nn.Linear(outer, sizes.width, bias=False)

    def remember(self, x: Tensor, turn: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values ``(rows, key heads, tokens, size)`` of ``(rows, tokens, source width)``."""
        rows, tokens, _ = x.shape
        both = self.keys_values(x).view(rows, tokens, 2, self.sizes.key_heads, self.sizes.head_size)
        keys, values = both.permute(2, 0, 3, 1, 4).unbind(0)
        return (keys if turn is None else rotate(keys, *turn).to(values.dtype)), values

    def forward(
        self,
        x: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        turn: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """``mask`` is True at keys that may be read and has the shape of the scores, or of one that is repeated."""
        rows, tokens, _ = x.shape
        sizes = self.sizes
        queries = self.queries(x).view(rows, tokens, sizes.heads, sizes.head_size).transpose(1, 2)
        if turn is not None:
            queries = rotate(queries, *turn).to(values.dtype)
        mixed = capped_attention(queries, keys, values, mask, sizes.scale, sizes.attention_cap)
        return self.out(mixed.transpose(1, 2).reshape(rows, tokens, -1))  # type: ignore[no-any-return]


class GemmaFeedForward(nn.Module):
    """The gated feed-forward part."""

    def __init__(self, sizes: GemmaSizes) -> None:
        super().__init__()
        self.up = nn.Linear(sizes.width, 2 * sizes.hidden, bias=False)
        self.down = nn.Linear(sizes.hidden, sizes.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape in and out."""
        gate, value = self.up(x).chunk(2, dim=-1)
        return self.down(F.gelu(gate, approximate="tanh") * value)  # type: ignore[no-any-return]


class GemmaEncoderLayer(nn.Module):
    """Self-attention in both directions and feed-forward."""

    def __init__(self, sizes: GemmaSizes) -> None:
        super().__init__()
        self.attention, self.feed_forward = GemmaAttention(sizes, sizes.width), GemmaFeedForward(sizes)
        self.norms = nn.ModuleList(GemmaNorm(sizes.width, sizes.epsilon) for _ in range(4))

    def forward(self, x: Tensor, mask: Tensor | None, turn: tuple[Tensor, Tensor]) -> Tensor:
        """``(rows, tokens, width)`` in and out."""
        before, after, before_wide, after_wide = self.norms
        normed = before(x)
        x = x + after(self.attention(normed, *self.attention.remember(normed, turn), mask, turn))
        return x + after_wide(self.feed_forward(before_wide(x)))  # type: ignore[no-any-return]


class GemmaDecoderLayer(nn.Module):
    """Causal self-attention, attention to the text and feed-forward; called like :class:`.decoder.DecoderLayer`."""

    def __init__(self, sizes: GemmaSizes, source: int) -> None:
        super().__init__()
        self.attention, self.cross_attention = GemmaAttention(sizes, sizes.width), GemmaAttention(sizes, source)
        self.feed_forward = GemmaFeedForward(sizes)
        self.norms = nn.ModuleList(GemmaNorm(sizes.width, sizes.epsilon) for _ in range(6))

    def remember(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values ``(inputs, key heads, tokens, size)`` of the text."""
        keys, values = self.cross_attention.remember(vectors)
        return keys.contiguous(), values.contiguous()

    def forward(
        self,
        x: Tensor,
        text: tuple[Tensor, Tensor, Tensor | None],
        past: tuple[Tensor, Tensor] | None,
        turn: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors ``(inputs, branches, tokens, width)`` through the layer, and all keys and values of the sequences."""
        before, after, before_text, after_text, before_wide, after_wide = self.norms
        inputs, branches, tokens, width = x.shape
        normed = before(x).view(inputs * branches, tokens, width)
        keys, values = self.attention.remember(normed, turn)
        if past is not None:
            keys, values = torch.cat([past[0], keys], 2), torch.cat([past[1], values], 2)
        length = keys.shape[2]
        mask = None
        if tokens > 1:
            mask = torch.ones(tokens, length, dtype=torch.bool, device=x.device).tril(length - tokens)
        x = x + after(self.attention(normed, keys, values, mask, turn)).view(x.shape)
        # All branches of an input are rows of one product with its keys.
        normed = before_text(x).view(inputs, branches * tokens, width)
        x = x + after_text(self.cross_attention(normed, *text)).view(x.shape)
        return x + after_wide(self.feed_forward(before_wide(x))), keys, values


class CappedLinear(nn.Linear):
    """Logits without a bias, none above ``cap`` in magnitude."""

    def __init__(self, width: int, vocabulary: int, cap: float | None) -> None:
        super().__init__(width, vocabulary, bias=False)
        self.cap = cap

    def forward(self, x: Tensor) -> Tensor:
        """``(..., width)`` in, ``(..., vocabulary)`` out."""
        logits = super().forward(x)
        return logits if self.cap is None else torch.tanh(logits / self.cap) * self.cap


def capped_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float, cap: float | None
) -> Tensor:
    """Softmax attention whose scores are capped by a tanh: ``(rows, heads, tokens, size)``."""
    shared = queries.shape[1] // keys.shape[1]
    if shared > 1:
        keys, values = keys.repeat_interleave(shared, 1), values.repeat_interleave(shared, 1)
    if cap is None:
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale)
    scores = torch.tanh((queries * (scale / cap)) @ keys.transpose(-1, -2)) * cap
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    mixed: Tensor = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(values.dtype) @ values
    return mixed


def _cap(value: Any) -> float | None:
    return None if value is None else float(value)
