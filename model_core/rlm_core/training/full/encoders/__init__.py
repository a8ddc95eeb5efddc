"""Text encoders of the full model: pretrained (T5Gemma, T5Gemma 2) or from scratch, behind one interface."""

from .base import TextEncoder, Tokens, crop, encode, length_batches, load_encoder, marked, pad
from .scratch import ScratchConfig, ScratchEncoder
from .t5gemma import T5GemmaEncoder, T5GemmaSettings

__all__ = [
    "ScratchConfig",
    "ScratchEncoder",
    "T5GemmaEncoder",
    "T5GemmaSettings",
    "TextEncoder",
    "Tokens",
    "crop",
    "encode",
    "length_batches",
    "load_encoder",
    "marked",
    "pad",
]
