"""The training configuration: one TOML file, every key with a default.

[model]      sizes of the student (see StudentConfig)
[train]      epochs, learning rate, tokens a batch ...
[tokenizer]  vocabulary is that of [model]; the sample it is trained on
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from ..errors import DataError
from ..student import StudentConfig

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """How the encoder is trained, and how its head is fitted to the finished encodings."""

    epochs: int = 3
    tokens_a_batch: int = 8192
    learning_rate: float = 1e-3
    matrix_learning_rate: float = 2e-3
    weight_decay: float = 0.05
    warmup_steps: int = 100
    token_dropout: float = 0.2
    label_sigma: float = 0.75
    rows_a_text: int = 8
    checkpoint_minutes: float = 4.0
    head_epochs: int = 8
    head_learning_rate: float = 2e-3
    seed: int = 0
    threads: int = 0
    compile: bool = True


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Everything that decides what is trained, besides the data."""

    name: str = "student"
    model: StudentConfig = field(default_factory=StudentConfig)
    train: LoopConfig = field(default_factory=LoopConfig)
    wide_bits: int = 18
    wide_penalty: float = 3.0


def load_config(path: Path) -> TrainConfig:
    """Read a configuration file.

    Raises:
        DataError: the file is missing, is not TOML, or has a key that we do not know.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not TOML ({error})") from None
    for table in ("model", "train", "wide"):
        if not isinstance(raw.get(table, {}), dict):
            raise DataError(f"{path}: [{table}] must be a table")
    wide = raw.pop("wide", {})
    parts: dict[str, Any] = {
        "model": _typed(StudentConfig, raw.pop("model", {}), f"{path}: [model]"),
        "train": _typed(LoopConfig, raw.pop("train", {}), f"{path}: [train]"),
    }
    for key, target in (("bits", "wide_bits"), ("penalty", "wide_penalty")):
        if key in wide:
            parts[target] = _checked(wide.pop(key), getattr(TrainConfig(), target), f"{path}: [wide]: {key}")
    if "name" in raw:
        parts["name"] = str(raw.pop("name"))
    if unknown := [*raw, *(f"wide.{key}" for key in wide)]:
        raise DataError(f"{path}: unknown key {unknown[0]!r}; see docs of rlm_core.train.config")
    return TrainConfig(**parts)


def _typed(kind: type[T], values: dict[str, Any], where: str) -> T:
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    for key, value in values.items():
        if key not in known:
            raise DataError(f"{where}: unknown key {key!r}; known: {', '.join(known)}")
        _checked(value, known[key].default, f"{where}: {key}")
    return kind(**values)


def _checked(value: Any, default: Any, where: str) -> Any:
    """The value, of the default's type (an integer will do for a number)."""
    wanted = {bool: "true or false", int: "an integer", float: "a number"}[type(default)]
    if type(value) is not type(default) and not (type(default) is float and type(value) is int):
        raise DataError(f"{where} must be {wanted}, not {value!r}")
    return value
