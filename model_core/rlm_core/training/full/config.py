"""The sizes and switches of the full model's decoder, and how they are kept as JSON.

The defaults are our own design (RMSNorm, rotary positions, gated feed-forward, a query vector before each number);
:func:`regress_lm_config` is the architecture of google-deepmind/regress-lm, whose weights the same module holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from rlm_core.errors import ModelError
from rlm_core.types import BASIS_OF_KIND, SI_UNIT

from .numbers import NumberFormat


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

    def __post_init__(self) -> None:
        if min(self.width, self.layers, self.heads, self.hidden, self.encoder_width, self.max_numbers) < 1:
            raise ModelError("full model: sizes must be at least 1; correct the configuration")
        if self.width % self.heads or self.width // self.heads % 2:
            raise ModelError(
                f"full model: width {self.width} must be an even multiple of {self.heads} heads; change one"
            )
        switches = (self.norm in ("rms", "layer"), self.positions in ("rotary", "sinusoidal"))
        if not all(switches) or self.opening not in ("ask", "start"):
            raise ModelError("full model: an unknown norm, positions or opening; see the names in FullConfig")

    @property
    def asks(self) -> bool:
        """Whether a query vector stands before each number."""
        return self.opening == "ask"

    def start_of(self, number: int) -> int:
        """The place in the decoder's input whose output predicts the first token of a number (0-based)."""
        return number * (self.numbers.positions + self.asks)

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
            return cls(**{**data, **lists, "numbers": NumberFormat.from_json(data["numbers"])})
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
