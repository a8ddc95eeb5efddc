"""Where models live: the one that ships, those in the user's data folder, and any directory by its path.

Reading a card opens no weights and needs no PyTorch, so students and full models are listed alike; ``verify`` reads
every byte. Nothing of a model is ever run here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_path

from .errors import DataError, ModelError
from .inference.card import CARD, checksum
from .inference.card import FORMAT as STUDENT_FORMAT
from .loading import BUILTIN, builtin

_FULL_FORMAT, _SERVING = "rlm-full-1", "serving.json"  # of rlm_core.training.full, which needs PyTorch
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
Kind = Literal["student", "full"]
State = Literal["ok", "changed", "missing", "outside"]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a card says in short. ``trained`` are the facts of its training; ``files`` maps names to SHA-256."""

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
        """Bytes of the files that are there."""
        return sum(path.stat().st_size for path in (self.directory / name for name in self.files) if path.is_file())

    @property
    def tuned_from(self) -> str | None:
        """The id of the model that this one was tuned from."""
        tuned = self.trained.get("tuned")
        last = tuned[-1] if isinstance(tuned, list) and tuned else None
        return str(last["from"]) if isinstance(last, dict) and "from" in last else None


@dataclass(frozen=True, slots=True)
class Checked:
    """A file of a model and whether it is the one that the card describes."""

    name: str
    state: State


def folder() -> Path:
    """Where this user's models are kept, a directory each."""
    return user_data_path("rlm-lsp") / "models"


def place_of(name: str) -> Path:
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
    raise ModelError(f"{model}: no such model; rlm-lsp model list shows those there are, or name a directory")


def installed() -> list[Path]:
    """The directories of the model that ships and of those in the user's folder, by name."""
    own = folder()
    # A name with a dot in front is a model that is being written.
    found = (path for path in own.iterdir() if path.is_dir() and path.name[0] != ".") if own.is_dir() else ()
    return [builtin(), *sorted(found)]


def summary(directory: Path) -> Summary:
    """The card of a model in short.

    Raises:
        ModelError: there is no card, or it is none of ours.
    """
    path = directory / CARD
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        kind = _kind(data["format"], path)
        files = {str(name): str(digest) for name, digest in data["files"].items()}
        if kind == "full" and _SERVING in data["trained"]:
            files[_SERVING] = str(data["trained"][_SERVING])  # what a full model is served with is told there
        digest = hashlib.sha256("".join(sorted(files.values())).encode()).hexdigest()[:8]
        name = str(data["name"])
        return Summary(
            directory,
            kind,
            name,
            f"{name}-{digest}",
            tuple(str(entry["name"]) for entry in data.get("slices", ())),
            {str(basis): tuple(map(str, names)) for basis, names in data.get("devices", {}).items()},
            dict(data["trained"]),
            files,
        )
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); export or tune the model again") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{path}: corrupt ({type(error).__name__}: {error}); copy the directory again") from None


def _kind(written: object, path: Path) -> Kind:
    if written == STUDENT_FORMAT:
        return "student"
    if written == _FULL_FORMAT:
        return "full"
    raise ModelError(f"{path}: format {written!r} is not {STUDENT_FORMAT} or {_FULL_FORMAT}; export the model again")


def verify(found: Summary) -> list[Checked]:
    """Compute the checksum of every file that the card names.

    Raises:
        ModelError: a file cannot be read.
    """
    root = found.directory.resolve()
    checked: list[Checked] = []
    for name, expected in sorted(found.files.items()):
        path = found.directory / name
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
        checked.append(Checked(name, state))
    return checked
