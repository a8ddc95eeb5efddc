"""The full Regression Language Model: a text encoder and a decoder that writes numbers about the text.

Texts are encoded once (:meth:`FullModel.encode`), kept as :class:`TextMemory`, and asked as often as wanted
(:mod:`rlm_core.training.full.decoding`). Training calls the model itself: token ids, queries and number tokens in, the
log-probability of each number token out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rlm_core.errors import ModelError

from .decoder import Decoder, FullConfig, Memory, QueryBatch, QueryTokens
from .encoders.base import TextEncoder, encode
from .grammar import Grammar
from .numbers import PAD

_WHOLE = 80 * 2**30


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits of one step.

    Attributes:
        encoded_tokens: padded tokens of the texts that are encoded together.
        text_tokens: padded tokens of the texts that are asked about together.
        questions: that are asked together.
        rows: beginnings of numbers that the decoder reads at once.
    """

    encoded_tokens: int = 16_384
    text_tokens: int = 32_768
    questions: int = 4096
    rows: int = 1024

    @classmethod
    def of(cls, device: torch.device) -> Limits:
        """Return the limits of a device; a GPU needs as much work at once as its memory allows."""
        if device.type != "cuda":
            return cls()
        share = min(torch.cuda.get_device_properties(device).total_memory / _WHOLE, 1.0)
        return cls(int(131_072 * share), int(262_144 * share), max(int(1024 * share), 1), int(65_536 * share))


@dataclass(frozen=True, slots=True)
class TextMemory:
    """An encoded text: ``vectors (tokens, encoder width)`` and how many of its tokens did not fit."""

    vectors: Tensor
    cropped: int = 0


class FullModel(nn.Module):
    """Encoder, decoder, query vectors and the grammar of numbers.

    Raises:
        ModelError: encoder and configuration disagree about the size of a token vector.
    """

    def __init__(self, config: FullConfig, encoder: TextEncoder) -> None:
        super().__init__()
        if encoder.width != config.encoder_width:
            raise ModelError(
                f"full model: its encoder is {encoder.width} wide and its settings say {config.encoder_width}; "
                "set encoder_width to the encoder's"
            )
        self.config = config
        self.encoder = encoder
        self.decoder = Decoder(config)
        self.query_tokens = QueryTokens(config) if config.has_queries else None
        self.grammar = Grammar(config.numbers)

    @property
    def device(self) -> torch.device:
        """The device of the decoder."""
        return self.decoder.embed.weight.device

    @property
    def limits(self) -> Limits:
        """The limits of the work that runs at once on the device."""
        return Limits.of(self.device)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], limit: int | None = None) -> list[TextMemory]:
        """Encode texts, each once; with a ``limit``, no more than their first tokens.

        On a CPU they run one at a time: nothing is padded, and a text's vectors do not depend on its batch. Elsewhere
        they share batches of similar length.
        """
        tokens = self.encoder.tokenize(texts)
        ids = tokens.ids if limit is None else [own[:limit] for own in tokens.ids]
        vectors = encode(self.encoder, ids, 1 if self.device.type == "cpu" else self.limits.encoded_tokens)
        lost = [
            cropped + len(own) - len(kept) for own, kept, cropped in zip(tokens.ids, ids, tokens.cropped, strict=True)
        ]
        return [TextMemory(own, cropped) for own, cropped in zip(vectors, lost, strict=True)]

    def remember(self, memories: Sequence[TextMemory]) -> Memory:
        """Keys and values of encoded texts for the decoder, padded to the longest of them."""
        vectors = [memory.vectors.to(self.device, self.decoder.embed.weight.dtype) for memory in memories]
        lengths = torch.tensor([len(own) for own in vectors], device=self.device)
        padded = nn.utils.rnn.pad_sequence(vectors, batch_first=True)
        mask = torch.arange(padded.shape[1], device=self.device) < lengths[:, None]
        even = all(len(own) == len(vectors[0]) for own in vectors)
        return self.decoder.remember(padded, None if even else mask)

    def opening(self, queries: QueryBatch | None, number: int, shape: tuple[int, int]) -> Tensor:
        """Vectors before a number: ``(inputs, branches, 0 or 1, width)``; ``queries (inputs, branches, numbers)``."""
        if self.query_tokens is not None:
            if queries is None:
                raise ModelError(
                    "full model: this model needs to know what each number means; give a query with each number"
                )
            return self.query_tokens(queries[:, :, number])[:, :, None]  # type: ignore[no-any-return]
        start = torch.full((*shape, 1 if number == 0 else 0), PAD, device=self.device)
        return self.decoder.embed(start)  # type: ignore[no-any-return]

    def sequence(self, queries: QueryBatch | None, tokens: Tensor) -> Tensor:
        """The decoder's input (inputs, branches, length, width); ``tokens (inputs, branches, numbers, positions)``."""
        parts = []
        for number in range(tokens.shape[2]):
            parts += [
                self.opening(queries, number, (tokens.shape[0], tokens.shape[1])),
                self.decoder.embed(tokens[:, :, number]),
            ]
        return torch.cat(parts, 2)

    def logits(self, memory: Memory, queries: QueryBatch | None, tokens: Tensor) -> Tensor:
        """Logits of each number token given the text and all tokens before it.

        Args:
            memory: of ``inputs`` texts.
            queries: ``(inputs, branches, numbers)``; None for a model without queries.
            tokens: ``(inputs, branches, numbers, positions)``.

        Returns:
            ``(inputs, branches, numbers, positions, vocabulary)``, not yet under the grammar.
        """
        inputs, branches, numbers, positions = tokens.shape
        if numbers > self.config.max_numbers:
            raise ModelError(
                f"full model: {numbers} numbers in a row; this model writes {self.config.max_numbers} at most"
            )
        hidden, _ = self.decoder(self.sequence(queries, tokens)[:, :, :-1], memory)
        starts = torch.tensor([self.config.start_of(number) for number in range(numbers)], device=tokens.device)
        places = (starts[:, None] + torch.arange(positions, device=tokens.device)).flatten()
        logits: Tensor = self.decoder.logits(hidden[:, :, places])
        return logits.view(inputs, branches, numbers, positions, -1)

    def log_probs(self, memory: Memory, queries: QueryBatch | None, tokens: Tensor, constrained: bool = True) -> Tensor:
        """Log-probabilities of number tokens ``(inputs, branches, numbers, positions)``, same shape; 0 at padding.

        ``constrained`` shares the probability among what the grammar allows; otherwise among the whole vocabulary, as
        regress-lm trains and scores.
        """
        logits = self.logits(memory, queries, tokens)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if constrained:
            logits = logits.masked_fill(~self.grammar.masks(tokens), torch.finfo(logits.dtype).min)
        scores = logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]
        return scores.masked_fill(tokens == PAD, 0.0)

    def forward(
        self, ids: Tensor, mask: Tensor, queries: QueryBatch | None, tokens: Tensor, constrained: bool = True
    ) -> Tensor:
        """Training: texts in, log-probabilities of number tokens out.

        Args:
            ids: ``(inputs, tokens)``, int64.
            mask: ``(inputs, tokens)``, True at real tokens.
            queries: ``(inputs, branches, numbers)``, the meaning of each number.
            tokens: ``(inputs, branches, numbers, positions)``; a number that is missing is all padding.
            constrained: as for :meth:`log_probs`.

        Returns:
            ``(inputs, branches, numbers, positions)``, 0 at padding.
        """
        memory = self.decoder.remember(self.encoder(ids, mask), mask)
        return self.log_probs(memory, queries, tokens, constrained)
