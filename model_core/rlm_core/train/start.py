"""What a training goes on with instead of a pretraining: encoder and tokenizer of another student."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from ..card import read_card
from ..models import find
from ..onnx_predictor import TOKENIZER
from ..student import Encoder, StudentConfig
from ..tokenizer import Tokenizer
from .encoder_weights import read_encoder

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
