"""A transformer that starts from random or from a student's weights, with our own SentencePiece vocabulary.

It has the layers of the student's encoder (pre-norm, rotary positions, SwiGLU) and gives a vector per token instead of
one per text. Attention goes through the device's fused kernel, whose memory grows with the length, not with its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from rlm_core.errors import ModelError
from rlm_core.inference.tokenizer import PAD, Tokenizer
from rlm_core.training.student.network import Layer, Norm, StudentConfig, rotary, rotate

from .base import TextEncoder, Tokens, crop

TOKENIZER = "tokenizer.model"


@dataclass(frozen=True, slots=True)
class ScratchConfig:
    """Sizes of a from-scratch encoder; ``hidden`` is the inner width of a feed-forward layer.

    Raises:
        ModelError: the sizes do not fit together.
    """

    width: int = 512
    layers: int = 6
    heads: int = 8
    hidden: int = 1408
    max_tokens: int = 2048

    def __post_init__(self) -> None:
        if min(asdict(self).values()) < 1 or self.width % (2 * self.heads):
            raise ModelError(
                f"encoder: width {self.width} with {self.heads} heads; "
                "sizes must be at least 1, and the width a multiple of twice the heads"
            )


class FusedLayer(Layer):
    """The student's layer with the same weights, its attention in one kernel."""

    def forward(self, x: Tensor, mask: Tensor | None, cosine: Tensor, sine: Tensor) -> Tensor:
        """``(batch, tokens, width)`` in and out; ``mask (batch, 1, 1, tokens)`` is True at real tokens."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (batch, heads, tokens, size)
        q, k = rotate(q, cosine, sine).to(v.dtype), rotate(k, cosine, sine).to(v.dtype)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        gate, value = self.up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)  # type: ignore[no-any-return]


class ScratchEncoder(TextEncoder):
    """A trained or fresh from-scratch encoder; all its weights are trained."""

    kind = "scratch"

    def __init__(self, config: ScratchConfig, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.config, self.tokenizer = config, tokenizer
        self.width, self.max_tokens, self.pad_id = config.width, config.max_tokens, PAD
        sizes = StudentConfig(width=config.width, heads=config.heads, hidden=config.hidden)
        self.embed = nn.Embedding(tokenizer.size, config.width)
        nn.init.normal_(self.embed.weight, std=0.7)
        self.layers = nn.ModuleList(FusedLayer(sizes) for _ in range(config.layers))
        self.norm = Norm(config.width)
        self.trained = frozenset(name for name, _ in self.named_parameters())
        self._recompute = False

    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """Token ids; a language in front (see :func:`.base.marked`) is one token."""
        # The tokenizer puts a language's token first; here it comes out of the text, so that it may be absent.
        rows = [self.tokenizer.encode(text or "\n", "python")[1:] for text in texts]
        pairs = [crop(row, self.max_tokens) for row in rows]
        return Tokens([ids for ids, _ in pairs], [lost for _, lost in pairs])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See :meth:`TextEncoder.forward`."""
        x = self.embed(ids)
        cosine, sine = rotary(ids.shape[1], self.width // self.config.heads, ids.device)
        # Without padding the kernel is free to take its fastest form.
        keys = None if bool(mask.all()) else mask[:, None, None, :]
        for layer in self.layers:
            if self._recompute and torch.is_grad_enabled():
                x = checkpoint(layer, x, keys, cosine, sine, use_reentrant=False)
            else:
                x = layer(x, keys, cosine, sine)
        normed: Tensor = self.norm(x)
        return normed.float()

    def recompute(self, on: bool) -> None:
        """See :meth:`TextEncoder.recompute`."""
        self._recompute = on

    def to_json(self) -> dict[str, Any]:
        """See :meth:`TextEncoder.to_json`."""
        return {"kind": self.kind, **asdict(self.config)}

    @classmethod
    def from_json(cls, data: dict[str, Any], folder: Path) -> Self:
        """See :meth:`TextEncoder.from_json`."""
        sizes = {name: int(value) for name, value in data.items() if name != "kind"}
        return cls(ScratchConfig(**sizes), Tokenizer.load(folder / TOKENIZER))

    @classmethod
    def from_student(cls, folder: Path, max_tokens: int) -> Self:
        """An encoder with sizes, tokenizer and weights of the student in ``folder``, a trained or an exported one.

        Raises:
            ModelError: the folder holds no student, or its files do not belong together.
        """
        # Imported here: reading an exported student takes ONNX, which models that are served do without.
        from rlm_core.training.student.export import read_encoder

        student = read_encoder(folder)
        shape = {name: getattr(student.config, name) for name in ("width", "layers", "heads", "hidden")}
        encoder = cls(ScratchConfig(**shape, max_tokens=max_tokens), Tokenizer.load(folder / TOKENIZER))
        weights = student.state_dict()
        encoder.load_state_dict({name: weights[name] for name in encoder.state_dict()})
        return encoder

    def save_files(self, folder: Path) -> None:
        """See :meth:`TextEncoder.save_files`."""
        (folder / TOKENIZER).write_bytes(self.tokenizer.model)
