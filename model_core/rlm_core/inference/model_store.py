"""Where models are: the one that ships, those in the user's data folder, and any directory by its path.

Reading a card opens no weights and needs no PyTorch, so students and full models are listed alike; ``verify`` reads
every byte. Nothing of a model is run here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from platformdirs import user_data_path

from rlm_core.errors import DataError, ModelError
from rlm_core.files import read_regular

from .calibration import MIN_GROUPS, TaskCalibration
from .card import CARD, SERVING, checksum, read_model_card

BUILTIN = "builtin"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_CHECKSUM = re.compile("[0-9a-f]{64}")
_MAX_SERVING_BYTES = 16 * 2**20
Kind = Literal["student", "full"]
_T = TypeVar("_T")
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
class ModelOrigin:
    """Where a converted model comes from: a name on the hub or a folder, its revision and its licence, where known."""

    source: str
    revision: str | None = None
    license: str | None = None


@dataclass(frozen=True, slots=True)
class SpaceSummary:
    """A data set that a converted model answers for.

    ``unit`` are SI units of 1 of the model's answer. ``calibrated`` are the calibrated tasks, by language.
    """

    name: str
    basis: str
    metric: str
    unit: float
    languages: tuple[str, ...]
    device: str | None = None
    workload: Mapping[str, str] = field(default_factory=dict)
    calibrated: Mapping[str, TaskCalibration] = field(default_factory=dict)


class _ServingFile(msgspec.Struct):
    """The part of ``serving.json`` that is read without PyTorch."""

    calibration: dict[str, TaskCalibration] = {}


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
    """Summarise a model's card; no weights are opened.

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


def origin(model: ModelSummary) -> ModelOrigin | None:
    """Return where a converted model comes from; None for other models.

    Raises:
        ModelError: the card describes it in another form.
    """
    if "origin" not in model.trained:
        return None
    return _converted(model, "origin", ModelOrigin)


def spaces(model: ModelSummary) -> tuple[SpaceSummary, ...]:
    """The data sets that a converted model answers for, in the order in which it chooses one; () for other models.

    A language that an earlier data set answers for is left out.

    Raises:
        ModelError: the card or ``serving.json`` describes them in another form, or the latter cannot be read.
    """
    if not model.trained.get("spaces"):
        return ()
    path = serving_file(model.directory, model.trained)
    try:
        levels = msgspec.json.decode(read_regular(path, _MAX_SERVING_BYTES), type=_ServingFile).calibration
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); add the model again") from None
    except msgspec.DecodeError as error:
        raise ModelError(f"{path}: corrupt ({error}); add the model again") from None
    known: list[SpaceSummary] = []
    answered: set[str] = set()
    for space in _converted(model, "spaces", tuple[SpaceSummary, ...]):
        tasks = {
            language: space_task(space.basis, language, space.metric, space.device, space.workload)
            for language in space.languages
        }
        tasks = {language: task for language, task in tasks.items() if task not in answered}
        answered.update(tasks.values())
        found = {language: levels[task] for language, task in tasks.items() if task in levels}
        calibrated = {language: level for language, level in found.items() if level.groups >= MIN_GROUPS}
        known.append(replace(space, languages=tuple(tasks), calibrated=calibrated))
    return tuple(known)


def _converted(model: ModelSummary, name: str, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(model.trained[name], kind)
    except msgspec.ValidationError as error:
        raise ModelError(f"{model.directory / CARD}: {name}: {error}; add the model again") from None


def space_task(basis: str, language: str, metric: str, device: str | None, workload: Mapping[str, str]) -> str:
    """The task that calibrates what a converted model answers for one of its data sets.

    Networks of all data sets have one basis, language and metric, so their tasks end with the data set.
    """
    last = device or workload.get("space", "")
    return f"{basis}/{language}/{metric}" + (f"/{last}" if last else "")


def serving_file(directory: Path, trained: Mapping[str, Any]) -> Path:
    """The file with the calibration that a full model's card describes.

    Card and calibration cannot be replaced in one step. A new calibration is first written under the name of
    :func:`pending_serving`, then the card is replaced, then the file is renamed. If that is interrupted before the last
    step, the file is used under its first name.
    """
    path, expected = directory / SERVING, str(trained.get(SERVING))
    if _CHECKSUM.fullmatch(expected) and (pending := pending_serving(directory, expected)).is_file():
        with suppress(OSError):
            if checksum(pending, _MAX_SERVING_BYTES) == expected:
                return pending
    return path


def pending_serving(directory: Path, expected: str) -> Path:
    """The first name of a calibration with a checksum."""
    return directory / f".{expected[:16]}.{SERVING}"


def verify(model: ModelSummary) -> list[FileCheck]:
    """Compute the checksum of every file that the card names.

    Raises:
        ModelError: a file cannot be read.
    """
    root = model.directory.resolve()
    checks: list[FileCheck] = []
    for name, expected in sorted(model.files.items()):
        path = serving_file(model.directory, model.trained) if name == SERVING else model.directory / name
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
