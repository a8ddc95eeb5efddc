"""The student's training configuration: one TOML file, every key with a default.

[model]        sizes of the student (see StudentConfig)
[pretrain]     the encoder without labels: tokens to read, learning rates, or the student to start from
[train]        the encoder with labels: epochs, learning rates, tokens per batch
[ngram_ridge]  ridge regression on n-grams
[trees.B]      boosted trees on features, for the bases B: program, kernel, module, network
[distill]      read by ``rlm-lsp train --teacher`` only, see :mod:`rlm_core.training.student.distill`
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from rlm_core.errors import DataError
from rlm_core.source.canonical import CanonicalForm
from rlm_core.types import METRICS_OF_BASIS

from .network import StudentConfig

TEXTS_PER_BASIS = 30_000
# The canonical forms that a student is trained on, by ``basis/language``; ``LINES`` for the others. For functions,
# neutral texts predict slightly better than the texts as written.
FORMS = {"call/python": CanonicalForm.NEUTRAL}
TREE_BASES = ("program", "kernel", "module", "network")


@dataclass(frozen=True, slots=True)
class PretrainConfig:
    """How the encoder is pretrained without labels; ``tokens = 0`` leaves it out.

    ``start``, a student (its name, its folder or ``builtin``), replaces it: training starts from that student's
    encoder and tokenizer, and their sizes replace those of ``[model]``.
    """

    start: str = ""
    tokens: int = 30_000_000
    tokens_per_batch: int = 8192
    learning_rate: float = 2e-3
    matrix_learning_rate: float = 4e-3
    warmup_steps: int = 100
    hidden_share: float = 0.2
    count_weight: float = 1.0
    checkpoint_minutes: float = 4.0
    seed: int = 0
    compile: bool = True


@dataclass(frozen=True, slots=True)
class TreesConfig:
    """The boosted trees of a basis; ``estimate_share`` of the prediction is the basis' own estimate of a latency."""

    trees: int = 400
    seeds: int = 2
    learning_rate: float = 0.05
    leaves: int = 31
    leaf_rows: int = 8
    l2: float = 1.0
    features_per_split: float = 0.4
    estimate_share: float = 0.0


# Programs have so many rows that small leaves learn problems by heart.
DEFAULT_TREES = dict.fromkeys(TREE_BASES, TreesConfig()) | {
    "program": TreesConfig(
        trees=150, seeds=1, learning_rate=0.06, leaves=16, leaf_rows=20, l2=2.0, features_per_split=0.3
    )
}


@dataclass(frozen=True, slots=True)
class EncoderFitConfig:
    """How the encoder is trained, and how its head is fitted to the finished encodings.

    ``texts_per_basis`` is the most texts of a basis in an epoch, ``TEXTS_PER_BASIS`` for a basis that is not named.
    """

    epochs: int = 3
    tokens_per_batch: int = 8192
    learning_rate: float = 1e-3
    matrix_learning_rate: float = 2e-3
    weight_decay: float = 0.05
    warmup_steps: int = 100
    token_dropout: float = 0.2
    label_sigma: float = 0.75
    rows_per_text: int = 8
    rows_per_task: int = 60_000
    texts_per_basis: dict[str, int] = field(default_factory=dict)
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
    pretrain: PretrainConfig = field(default_factory=PretrainConfig)
    train: EncoderFitConfig = field(default_factory=EncoderFitConfig)
    trees: dict[str, TreesConfig] = field(default_factory=lambda: dict(DEFAULT_TREES))
    ngram_bits: int = 18
    ngram_penalty: float = 3.0


def load_config(path: Path) -> TrainConfig:
    """Read a configuration file.

    Raises:
        DataError: the file is missing, is not TOML, or has a key that we do not know.
    """
    raw = read_toml(path)
    for table in ("model", "pretrain", "train", "trees", "ngram_ridge"):
        if not isinstance(raw.get(table, {}), dict):
            raise DataError(f"{path}: [{table}] must be a table")
    ridge = raw.pop("ngram_ridge", {})
    raw.pop("distill", None)
    parts: dict[str, Any] = {
        "model": typed(StudentConfig, raw.pop("model", {}), f"{path}: [model]"),
        "pretrain": typed(PretrainConfig, raw.pop("pretrain", {}), f"{path}: [pretrain]"),
        "train": typed(EncoderFitConfig, raw.pop("train", {}), f"{path}: [train]"),
        "trees": _trees(raw.pop("trees", {}), f"{path}: [trees"),
    }
    if unknown_bases := parts["train"].texts_per_basis.keys() - set(METRICS_OF_BASIS):
        known = ", ".join(METRICS_OF_BASIS)
        raise DataError(f"{path}: [train]: texts_per_basis: unknown basis {min(unknown_bases)!r}; known: {known}")
    for key, target in (("bits", "ngram_bits"), ("penalty", "ngram_penalty")):
        if key in ridge:
            parts[target] = checked(
                ridge.pop(key), type(getattr(TrainConfig(), target)), f"{path}: [ngram_ridge]: {key}"
            )
    if "name" in raw:
        parts["name"] = str(raw.pop("name"))
    if unknown := [*raw, *(f"ngram_ridge.{key}" for key in ridge)]:
        raise DataError(f"{path}: unknown key {unknown[0]!r}; see the docs of rlm_core.training.student.config")
    return TrainConfig(**parts)


def _trees(tables: dict[str, Any], where: str) -> dict[str, TreesConfig]:
    """One table for each basis."""
    for name, table in tables.items():
        if name not in TREE_BASES or not isinstance(table, dict):
            raise DataError(f"{where}.{name}]: unknown; give tables for {', '.join(TREE_BASES)}")
    read = {name: typed(TreesConfig, table, f"{where}.{name}]") for name, table in tables.items()}
    return DEFAULT_TREES | read


T = TypeVar("T")
_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a text", tuple: "a list", dict: "a table"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file.

    Raises:
        DataError: the file is missing or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not TOML ({error})") from None


def typed(kind: type[T], values: Mapping[str, Any], where: str) -> T:
    """A dataclass of settings from a table: unknown keys and values of another type are refused.

    Raises:
        DataError: with the name of the key.
    """
    default = kind()
    known = [entry.name for entry in fields(default)]  # type: ignore[arg-type]
    found = {}
    for key, value in values.items():
        if key not in known:
            raise DataError(f"{where}: unknown key {key!r}; known: {', '.join(known)}")
        found[key] = checked(value, type(getattr(default, key)), f"{where}: {key}")
    return kind(**found)


def checked(value: Any, wanted: type, where: str) -> Any:
    """The value as the wanted type; an integer will do for a number, tables and lists hold numbers.

    Raises:
        DataError: it is of another type.
    """
    if wanted is tuple and isinstance(value, list):
        return tuple(float(checked(item, float, where)) for item in value)
    if type(value) is not wanted and not (wanted is float and type(value) is int):
        raise DataError(f"{where} must be {_NAMES[wanted]}, not {value!r}")
    if isinstance(value, dict):
        return {key: checked(item, int, f"{where}.{key}") for key, item in value.items()}
    return value
