"""The full model's training configuration: one TOML file with ``kind = "full"``, every other key with a default.

[encoder]    from scratch, or pretrained (``kind = "t5gemma"``): sizes, or which base and what of it is trained
[decoder]    sizes of the decoder
[numbers]    how numbers are written; always with the exponent first, so that a distribution function is exact
[train]      epochs, learning rates, tokens per batch ...
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError, ModelError
from rlm_core.training.student.config import read_toml, typed
from rlm_core.types import METRICS_OF_BASIS, SI_UNIT

from .decoder import FullConfig
from .encoders.pretrained import T5GemmaSettings
from .encoders.scratch import ScratchConfig
from .numbers import NumberFormat

OPTIMIZERS = ("adamw", "adafactor", "muon")
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """The text encoder.

    Attributes:
        kind: ``scratch`` or ``t5gemma``.
        max_tokens: longest text; longer ones are cropped.
        vocabulary, width, layers, heads, hidden: of a from-scratch encoder (:class:`ScratchConfig`).
        tokenizer: an existing SentencePiece model, instead of one trained on the data.
        start: a student (its name, its folder or ``builtin``): the encoder takes up its sizes, tokenizer and weights.
        base, revision, mode, precision, attention, rank, alpha, dropout: of a pretrained encoder
            (:class:`T5GemmaSettings`).
    """

    kind: str = "scratch"
    max_tokens: int = 2048
    vocabulary: int = 8192
    width: int = 512
    layers: int = 6
    heads: int = 8
    hidden: int = 1408
    tokenizer: str = ""
    start: str = ""
    base: str = ""
    revision: str = ""
    mode: str = "lora"
    precision: str = "auto"
    attention: str = "auto"
    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.05

    def scratch(self) -> ScratchConfig:
        """The sizes of a from-scratch encoder."""
        return ScratchConfig(self.width, self.layers, self.heads, self.hidden, self.max_tokens)

    def pretrained(self) -> T5GemmaSettings:
        """The settings of a pretrained encoder."""
        names = ("base", "mode", "max_tokens", "precision", "attention", "rank", "alpha", "dropout")
        return T5GemmaSettings(revision=self.revision or None, **{name: getattr(self, name) for name in names})


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Sizes of the decoder; see :class:`rlm_core.training.full.decoder.FullConfig`."""

    width: int = 512
    layers: int = 2
    heads: int = 8
    hidden: int = 1408
    dropout: float = 0.0
    max_numbers: int = 16


@dataclass(frozen=True, slots=True)
class NumbersConfig:
    """How numbers are written; see :class:`rlm_core.training.full.numbers.NumberFormat`."""

    base: int = 10
    mantissa_digits: int = 4
    exponent_digits: int = 2


@dataclass(frozen=True, slots=True)
class ModelFitConfig:
    """Settings for training the model.

    Attributes:
        accumulation: batches of ``tokens_per_batch`` padded tokens whose gradients are summed up for a step.
        optimizer: one of :data:`OPTIMIZERS`; with Muon the matrices of all layers learn at ``matrix_learning_rate``.
        encoder_rate: what the encoder's learning rates are multiplied by.
        warmup_steps, final_rate: rates rise from zero, then fall along a cosine to this share of their peak.
        clip: the largest norm of the gradient.
        token_dropout: the share of tokens that are hidden from encoder and decoder.
        recompute: gradient checkpointing: less memory, one more forward pass.
        precision: ``auto`` takes bfloat16 where the device multiplies it fast.
        compile: ``torch.compile`` for the layers of a from-scratch encoder; texts are then padded a little more.
        position_weights: weight of each number token in the loss by position; empty: all 1.
        order: of the numbers about one text: ``random``, or metrics by name, like ``accuracy, latency, memory``.
        numbers_per_sequence: at most, each conditioned on those before.
        rows_per_text: at most, in a batch.
        group_power: an epoch takes ``size ** group_power`` texts of each group (1: all), so that large groups are
            not memorized.
        texts_per_basis: the most texts of a basis in an epoch; a basis that is not named has no limit.
        callees: how many called functions are read after a text.
        validation_rows: at most; validated after each epoch and, unless 0, every ``validate_steps`` steps.
    """

    epochs: int = 3
    tokens_per_batch: int = 16_384
    accumulation: int = 1
    optimizer: str = "adamw"
    learning_rate: float = 3e-4
    matrix_learning_rate: float = 2e-3
    encoder_rate: float = 1.0
    weight_decay: float = 0.05
    warmup_steps: int = 200
    final_rate: float = 0.02
    clip: float = 1.0
    token_dropout: float = 0.0
    recompute: bool = False
    precision: str = "auto"
    compile: bool = False
    position_weights: tuple[float, ...] = ()
    order: str = "random"
    numbers_per_sequence: int = 3
    rows_per_text: int = 8
    group_power: float = 0.5
    texts_per_basis: dict[str, int] = field(default_factory=dict)
    callees: int = 4
    validation_rows: int = 2000
    validate_steps: int = 0
    log_steps: int = 20
    checkpoint_minutes: float = 4.0
    seed: int = 0
    threads: int = 0

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics in the given order; empty for a random one."""
        return () if self.order == "random" else tuple(name.strip() for name in self.order.split(","))


@dataclass(frozen=True, slots=True)
class FullTrainConfig:
    """Everything that decides what is trained, besides the data."""

    name: str = "full"
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    numbers: NumbersConfig = field(default_factory=NumbersConfig)
    train: ModelFitConfig = field(default_factory=ModelFitConfig)

    def model(self, encoder_width: int, languages: tuple[str, ...]) -> FullConfig:
        """The decoder over an encoder of this width, for texts in these languages.

        Raises:
            ModelError: sizes do not fit together.
        """
        own = {entry.name: getattr(self.decoder, entry.name) for entry in fields(DecoderConfig)}
        return FullConfig(self.format, encoder_width=encoder_width, languages=languages, **own)

    @property
    def format(self) -> NumberFormat:
        """The format of numbers."""
        return NumberFormat(**{entry.name: getattr(self.numbers, entry.name) for entry in fields(NumbersConfig)})


def is_full(path: Path) -> bool:
    """Return whether a configuration file is one of the full model.

    Raises:
        DataError: the file is missing or is not TOML.
    """
    return read_toml(path).get("kind") == "full"


def load_config(path: Path) -> FullTrainConfig:
    """Read a configuration file.

    Raises:
        DataError: the file is missing, is not TOML, or has a key or value that cannot be.
    """
    raw = read_toml(path)
    raw.pop("kind", None)
    tables = {"encoder": EncoderConfig, "decoder": DecoderConfig, "numbers": NumbersConfig, "train": ModelFitConfig}
    for name in (*tables, "name"):
        if not isinstance(raw.get(name, "" if name == "name" else {}), str if name == "name" else dict):
            raise DataError(f"{path}: {name} must be {'a text' if name == 'name' else 'a table'}")
    parts: dict[str, Any] = {name: typed(kind, raw.pop(name, {}), f"{path}: [{name}]") for name, kind in tables.items()}
    name = raw.pop("name", "full")
    if raw:
        raise DataError(f"{path}: unknown key {min(raw)!r}; see the docs of rlm_core.training.full.training_config")
    settings = FullTrainConfig(name, **parts)
    _check(settings, path)
    return settings


def _check(settings: FullTrainConfig, path: Path) -> None:
    encoder, train = settings.encoder, settings.train
    choices = (
        ("[encoder]: kind", encoder.kind, ("scratch", "t5gemma")),
        ("[train]: optimizer", train.optimizer, OPTIMIZERS),
        ("[train]: precision", train.precision, PRECISIONS),
        *(("[train]: order", metric, ("random", *SI_UNIT)) for metric in train.metrics),
        *(("[train]: texts_per_basis", basis, tuple(METRICS_OF_BASIS)) for basis in train.texts_per_basis),
    )
    for where, value, known in choices:
        if value not in known:
            raise DataError(f"{path}: {where} is {value!r}; it must be one of {', '.join(known)}")
    if encoder.kind == "t5gemma" and not encoder.base:
        raise DataError(f"{path}: [encoder]: base is missing; name a T5Gemma on the hub or a folder")
    if encoder.start and (encoder.kind != "scratch" or encoder.tokenizer):
        raise DataError(
            f"{path}: [encoder]: start brings its own tokenizer and is for kind scratch; remove one of them"
        )
    if train.compile and encoder.kind != "scratch":
        raise DataError(f"{path}: [train]: compile is for an encoder of kind scratch; remove it")
    positive = ("epochs", "tokens_per_batch", "accumulation", "numbers_per_sequence", "rows_per_text", "log_steps")
    for name in positive:
        if getattr(train, name) < 1:
            raise DataError(f"{path}: [train]: {name} must be at least 1")
    if not (0 <= train.group_power <= 1 and 0 <= train.token_dropout < 1):
        raise DataError(f"{path}: [train]: group_power and token_dropout must lie within 0..1")
    if train.numbers_per_sequence > settings.decoder.max_numbers:
        raise DataError(f"{path}: [train]: numbers_per_sequence is more than the decoder's max_numbers; lower it")
    try:
        positions = settings.format.positions
        settings.model(encoder.width, ())
        if encoder.kind == "scratch":
            encoder.scratch()
        else:
            encoder.pretrained()
    except ModelError as error:
        raise DataError(f"{path}: {error}") from None
    if train.position_weights and len(train.position_weights) != positions:
        raise DataError(f"{path}: [train]: position_weights needs {positions} numbers, one per token of a number")
