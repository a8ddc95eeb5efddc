"""The encoder of T5Gemma with its own tokenizer, as the published RLMs have it; transformers is not needed.

Long texts lose their end, as those models were trained. The tokenizer is a ``tokenizer.json``; the token for the start
of a text comes first where the model was trained with it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from rlm_core.errors import ModelError
from rlm_core.training.full.gemma import GemmaEncoderLayer, GemmaNorm, GemmaSizes
from rlm_core.training.student.network import rotary

from .base import TextEncoder, Tokens
from .pretrained import need

TOKENIZER = "tokenizer.json"
_ADVICE = "fetch the checkpoint again"


class GemmaTextEncoder(TextEncoder):
    """The encoder, without weights until :meth:`load_weights`.

    Args:
        sizes: of the layers.
        vocabulary: rows of the embedding; the tokenizer may know fewer tokens.
        tokenizer: the content of ``tokenizer.json``.
        max_tokens: longest text; None for as many as the window of its attention holds.
        start, end: names of the tokens around each text; empty for none.

    Raises:
        ModelError: the tokenizer cannot be read or has tokens without an embedding, or the window is too small.
    """

    kind = "gemma"

    def __init__(
        self,
        sizes: GemmaSizes,
        vocabulary: int,
        tokenizer: bytes,
        max_tokens: int | None = None,
        start: str = "<bos>",
        end: str = "",
    ) -> None:
        super().__init__()
        if max_tokens is not None and max_tokens > sizes.window:
            raise ModelError(f"encoder: reads {sizes.window} tokens; set max_tokens to {sizes.window} or less")
        self.sizes, self.vocabulary, self._file = sizes, vocabulary, tokenizer
        self.width, self.max_tokens = sizes.width, max_tokens or sizes.window
        self._marks = (start, end)
        self._split = _tokenizer(tokenizer)
        if self._split.get_vocab_size() > vocabulary:
            raise ModelError(
                f"{TOKENIZER}: has {self._split.get_vocab_size()} tokens, the weights have {vocabulary}; give the "
                "tokenizer that the model was trained with"
            )
        self.pad_id = self._id("<pad>") or 0
        self._start, self._end = ([self._known_id(name)] if name else [] for name in self._marks)
        # The weights come by load_weights: random values of an embedding this large would be drawn for nothing.
        self.embed = nn.Embedding(vocabulary, sizes.width, _weight=torch.empty(vocabulary, sizes.width))
        self.layers = nn.ModuleList(GemmaEncoderLayer(sizes) for _ in range(sizes.layers))
        self.norm = GemmaNorm(sizes.width, sizes.epsilon)
        self.trained = frozenset(name for name, _ in self.named_parameters())
        self._recompute = False

    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """Token ids of the plain text; the end of long texts is cut away."""
        found = [entry.ids for entry in self._split.encode_batch_fast(list(texts), add_special_tokens=False)]
        rows = [[*self._start, *ids, *self._end] or [self.pad_id] for ids in found]
        kept = [np.array(row[: self.max_tokens], np.int64) for row in rows]
        return Tokens(kept, [len(row) - len(own) for row, own in zip(rows, kept, strict=True)])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See :meth:`TextEncoder.forward`."""
        x = self.embed(ids) * self.width**0.5
        turn = rotary(ids.shape[1], self.sizes.head_size, ids.device, self.sizes.rotary_base)
        keys = None if bool(mask.all()) else mask[:, None, None, :]
        for layer in self.layers:
            if self._recompute and torch.is_grad_enabled():
                x = checkpoint(layer, x, keys, turn, use_reentrant=False)
            else:
                x = layer(x, keys, turn)
        normed: Tensor = self.norm(x)
        return normed

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """See :meth:`TextEncoder.load_weights`; the tensors are taken over, not copied."""
        self.check_weights(weights)
        self.load_state_dict(weights, assign=True)

    def recompute(self, on: bool) -> None:
        """See :meth:`TextEncoder.recompute`."""
        self._recompute = on

    def to_json(self) -> dict[str, Any]:
        """See :meth:`TextEncoder.to_json`."""
        marks = {"start": self._marks[0], "end": self._marks[1]}
        return {
            "kind": self.kind,
            "sizes": self.sizes.to_json(),
            "vocabulary": self.vocabulary,
            "max_tokens": self.max_tokens,
            **marks,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], folder: Path) -> Self:
        """See :meth:`TextEncoder.from_json`."""
        path = folder / TOKENIZER
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ModelError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from None
        values = {name: value for name, value in data.items() if name not in ("kind", "sizes")}
        return cls(GemmaSizes(**data["sizes"]), tokenizer=content, **values)

    def save_files(self, folder: Path) -> None:
        """See :meth:`TextEncoder.save_files`."""
        (folder / TOKENIZER).write_bytes(self._file)

    def _id(self, name: str) -> int | None:
        found = self._split.token_to_id(name)
        return None if found is None else int(found)

    def _known_id(self, name: str) -> int:
        found = self._id(name)
        if found is None:
            raise ModelError(f"{TOKENIZER}: has no token {name!r}, which begins or ends a text; {_ADVICE}")
        return found


def _tokenizer(content: bytes) -> Any:
    tokenizers = need("tokenizers")
    try:
        json.loads(content)
        found = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"{TOKENIZER}: not a tokenizer ({error}); {_ADVICE}") from None
    found.no_truncation()
    found.no_padding()
    return found
