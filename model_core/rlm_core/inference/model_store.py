"""Where models are: the one that ships, those in the user's data folder, and any directory by its path.

Reading a card opens no weights and needs no PyTorch, so students and full models are listed alike; ``verify`` reads
every byte. Nothing of a model is run here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_path

from rlm_core.errors import DataError, ModelError

from .card import CARD, checksum, read_model_card

BUILTIN = "builtin"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
Kind = Literal["student", "full"]
State = Literal["ok", "changed", "missing", "outside"]


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A model in short. ``trained`` are the facts of its training; ``files`` maps names to SHA-256."""

    directory: Path
    kind: Kind
    name: str
    model_id: str
    slices: tuple[str, ...]
    devices: Mapping[str, tuple[str, ...]]
    trained: Mapping[str, Any]
    files: Mapping[str, str]

    @property
    def size(self) -> int:
        """Bytes of the files that exist."""
        return sum(path.stat().st_size for path in (self.directory / name for name in self.files) if path.is_file())

    @property
    def tuned_from(self) -> str | None:
        """The id of the model that this one was tuned from."""
        tuned = self.trained.get("tuned")
        last = tuned[-1] if isinstance(tuned, list) and tuned else None
        return str(last["from"]) if isinstance(last, dict) and "from" in last else None


@dataclass(frozen=True, slots=True)
class FileCheck:
    """A file of a model, and whether it is the one that the card describes."""

    name: str
    state: State


def builtin() -> Path:
    """The directory of the model that ships."""
    return Path(__file__).parents[1] / BUILTIN


def folder() -> Path:
    """The folder of this user's models, one directory per model."""
    return user_data_path("rlm-lsp") / "models"


def new_directory(name: str) -> Path:
    """The directory of a new model called ``name`` in the user's folder.

    Raises:
        DataError: the name is not fit for a directory.
    """
    if not _NAME.fullmatch(name) or name == BUILTIN:
        raise DataError(f"model {name!r}: use letters, digits, dots, dashes and underscores, for example our-code-2")
    return folder() / name


def find(model: str) -> Path:
    """The directory of ``builtin``, of a model in the user's folder by its name, or of a path.

    Raises:
        ModelError: there is none.
    """
    if model == BUILTIN:
        return builtin()
    named = folder() / model
    path = Path(model).expanduser()
    for candidate in (named, path) if _NAME.fullmatch(model) else (path,):
        if (candidate / CARD).is_file():
            return candidate.absolute()
    if path.is_dir():
        raise ModelError(f"{path}: has no {CARD}; name a directory that rlm-lsp export, tune or train wrote")
    raise ModelError(f"{model}: no such model; run rlm-lsp model list to see the names, or name a directory")


def installed() -> list[Path]:
    """The directories of the model that ships and of those in the user's folder, by name."""
    if not folder().is_dir():
        return [builtin()]
    # A name that starts with a dot is a model that is being written.
    return [builtin(), *sorted(path for path in folder().iterdir() if path.is_dir() and path.name[0] != ".")]


def summary(directory: Path) -> ModelSummary:
    """What a model's card says, in short; no weights are opened.

    Raises:
        ModelError: there is no card, or it is not a card of rlm-lsp.
    """
    card = read_model_card(directory)
    return ModelSummary(
        directory,
        "full" if card.is_full else "student",
        card.name,
        card.model_id,
        tuple(entry.name for entry in card.slices),
        card.devices,
        card.trained,
        card.served_files,
    )


def verify(model: ModelSummary) -> list[FileCheck]:
    """Compute the checksum of every file that the card names.

    Raises:
        ModelError: a file cannot be read.
    """
    root = model.directory.resolve()
    checks: list[FileCheck] = []
    for name, expected in sorted(model.files.items()):
        path = model.directory / name
        state: State
        try:
            if not path.resolve().is_relative_to(root):
                state = "outside"
            elif not path.is_file():
                state = "missing"
            else:
                state = "ok" if checksum(path) == expected else "changed"
        except OSError as error:
            raise ModelError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
        checks.append(FileCheck(name, state))
    return checks
