"""What a training goes on with instead of a pretraining: encoder and tokenizer of another student."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from rlm_core.inference.card import read_card
from rlm_core.inference.student import TOKENIZER
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.models import find

from .encoder_weights import read_encoder
from .network import Encoder, StudentConfig

_SIZES = ("vocabulary", "width", "layers", "heads", "hidden", "context")


@dataclass(frozen=True, slots=True)
class Start:
    """A student's encoder and tokenizer, and the student's id."""

    model_id: str
    encoder: Encoder
    tokenizer: Tokenizer

    @classmethod
    def of(cls, model: str) -> Self:
        """Read a student by its name, its folder, or ``builtin``.

        Raises:
            ModelError: there is none, or it cannot be read.
        """
        folder = find(model)
        return cls(read_card(folder).model_id, read_encoder(folder), Tokenizer.load(folder / TOKENIZER))

    def sized(self, own: StudentConfig) -> StudentConfig:
        """The sizes of a student with the head of ``own`` and this encoder."""
        return replace(own, **{name: getattr(self.encoder.config, name) for name in _SIZES})
