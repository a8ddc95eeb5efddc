"""How much of a model's work runs at once: what the memory of a device holds."""

from __future__ import annotations

from dataclasses import dataclass

import torch

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
