"""``card.json``, the card next to a model's weights: the one module that reads and validates it.

Every card has a format, a name, facts of the training and the checksums of the other files. The card of a student also
holds its tasks with their outcome scales, the linear terms of the n-gram ridge, the calibration, the known devices and
the default queries. Plain JSON: opening a model from a stranger runs nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, get_args

import msgspec
import numpy as np

from rlm_core.errors import ModelError
from rlm_core.files import atomic_write, open_regular, read_regular
from rlm_core.queries.judges import JUDGES
from rlm_core.queries.query_vector import task_parts
from rlm_core.source.canonical import CanonicalForm
from rlm_core.types import Metric

from .calibration import Calibration, Scale, TaskCalibration
from .cost_ratio import RatioModel
from .ngram_ridge import CALENDAR_NODES
from .residuals import Residuals

STUDENT_FORMAT, FULL_FORMAT = "rlm-student-4", "rlm-full-1"
CARD = "card.json"
# The calibration of a full model, written after its weights: its checksum is among the facts of the training.
SERVING = "serving.json"
_ADVICE = "reinstall rlm-lsp or export the model again"
MAX_CARD_BYTES = 16 * 2**20  # a hundred times the card that ships
_MAX_FILE_BYTES = 2**40
_MAX_STUDENT_FILE_BYTES = 2**31  # a hundred times the largest file of the model that ships
_HASHED_AT_ONCE = 4
_SHOWN_REASON = 300
_T = TypeVar("_T")

# Names are shown on one line; a sum of log10 values stays a number that can be shown.
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$")]
_Checksum = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Log = Annotated[float, msgspec.Meta(ge=-1000, le=1000)]


@dataclass(frozen=True, slots=True)
class TaskName:
    """The part of a task's entry that the cards of all models share."""

    name: str


@dataclass(frozen=True, slots=True)
class ModelCard:
    """The part that the cards of all models share. ``files`` maps names to SHA-256."""

    format: str
    name: _Name
    trained: Mapping[str, Any]
    files: Mapping[_Name, _Checksum]
    slices: tuple[TaskName, ...] = ()
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """True for the card of a full model, which needs PyTorch."""
        return self.format == FULL_FORMAT

    @property
    def served_files(self) -> Mapping[str, str]:
        """All files that predictions depend on, with the calibration of a full model."""
        calibrated = self.is_full and SERVING in self.trained
        return {**self.files, SERVING: str(self.trained[SERVING])} if calibrated else self.files

    @property
    def model_id(self) -> str:
        """Name and a short checksum of the weights and their calibration."""
        return model_id(self.name, self.served_files)


def model_id(name: str, files: Mapping[str, str]) -> str:
    """A model's name and a short checksum of its files."""
    return f"{name}-{hashlib.sha256(''.join(sorted(files.values())).encode()).hexdigest()[:8]}"


def read_model_card(directory: Path, advice: str = _ADVICE) -> ModelCard:
    """Read the card of a student or a full model; the files that it names are not opened.

    Raises:
        ModelError: there is no card, or it is not a card of rlm-lsp; the message names the bad field.
    """
    path = directory / CARD
    card = _decoded(path, _content(path, advice), ModelCard, advice)
    if card.format not in (STUDENT_FORMAT, FULL_FORMAT):
        raise ModelError(f"{path}: format {card.format!r} is not {STUDENT_FORMAT} or {FULL_FORMAT}; {advice}")
    return card


def check_files(directory: Path, files: Mapping[str, str], advice: str = _ADVICE, limit: int = _MAX_FILE_BYTES) -> None:
    """Compare the files that a card names with their checksums; none may be larger than ``limit`` bytes.

    Raises:
        ModelError: a file is missing, is outside the directory, or is not the one that the card describes.
    """
    for name in files:
        file = directory / name
        if not file.resolve().is_relative_to(directory.resolve()):
            raise ModelError(f"{directory / CARD}: names a file outside its directory ({name!r}); {advice}")
        if not file.is_file():
            raise ModelError(f"{file}: missing; {advice}")

    def check(name: str) -> None:
        file = directory / name
        try:
            found = checksum(file, limit)
        except OSError as error:
            raise ModelError(f"{file}: cannot be read ({error.strerror}); {advice}") from None
        if found != files[name]:
            raise ModelError(f"{file}: corrupt (its checksum is not the one in {CARD}); {advice}")

    # Hashing takes about half of the time in which a model opens, and releases the interpreter.
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        for _ in pool.map(check, files):
            pass


def checksum(path: Path, limit: int = _MAX_FILE_BYTES) -> str:
    """The SHA-256 of a file of at most ``limit`` bytes, as hexadecimal.

    Raises:
        OSError: the file cannot be read, is not a regular file or is larger.
    """
    with open_regular(path, limit) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class TaskCard:
    """One task of a student: its outcome scale, and intercept and calendar of the n-gram ridge (log10 SI units).

    ``deep_weight`` is that of the encoder's evidence in the head; at 0 the task does not need the encoder.
    """

    name: str
    scale: Scale
    intercept: float
    calendar: tuple[float, ...]
    deep_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class StudentCard:
    """Everything about a student that is not a tensor.

    ``sizes`` are the fields of ``StudentConfig``; ``defaults`` give, by basis, a device and a workload for each metric;
    ``devices`` are those with training rows, by basis; ``residuals`` are those of the forests that answer alone, by
    ``forest_key``, for devices without such rows by ``data_sheet_key`` of it, and apart by ``work_key`` of both;
    ``changes`` are by :func:`rlm_core.inference.cost_ratio.ratio_task`; ``forms`` give the canonical form that the
    model was trained with by ``basis/language`` (those not listed: ``LINES``).
    """

    name: str
    sizes: Mapping[str, Any]
    tasks: Sequence[TaskCard]
    calibration: Calibration
    defaults: Mapping[str, Mapping[str, Any]]
    devices: Mapping[str, Sequence[str]]
    residuals: Mapping[str, Residuals] = field(default_factory=dict)
    changes: Mapping[str, RatioModel] = field(default_factory=dict)
    trained: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, CanonicalForm] = field(default_factory=dict)

    @property
    def model_id(self) -> str:
        """Name and a short checksum of the weights."""
        return model_id(self.name, self.files)

    @property
    def encoded(self) -> frozenset[str]:
        """The kinds of texts that the encoder reads, as ``basis/language``: those of tasks that need it."""
        return frozenset(entry.name.rpartition("/")[0] for entry in self.tasks if entry.deep_weight > 0)

    def write(self, directory: Path, names: Sequence[str]) -> None:
        """Write the card with the checksums of the files called ``names`` next to it."""
        data = {
            "format": STUDENT_FORMAT,
            "name": self.name,
            "sizes": dict(self.sizes),
            "slices": [
                {
                    "name": entry.name,
                    "floor": entry.scale.floor,
                    "edges": [round(float(edge), 6) for edge in entry.scale.edges],
                    "intercept": entry.intercept,
                    "calendar": list(entry.calendar),
                    "deep_weight": entry.deep_weight,
                }
                for entry in self.tasks
            ],
            "calibration": self.calibration.to_json(),
            "residuals": {key: asdict(entry) for key, entry in self.residuals.items()},
            "changes": {name: asdict(entry) for name, entry in self.changes.items()},
            "defaults": {basis: dict(query) for basis, query in self.defaults.items()},
            "devices": {basis: list(known) for basis, known in self.devices.items()},
            "canonical_forms": {prefix: form.value for prefix, form in self.forms.items()},
            "trained": dict(self.trained),
            "files": {name: checksum(directory / name) for name in names},
        }
        with atomic_write(directory / CARD) as partial:
            partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_card(directory: Path) -> StudentCard:
    """Read and check the card of a student, and the checksums of the files that it names.

    Raises:
        ModelError: the directory or a file is missing, is not the one the card describes, or is of another format.
    """
    path = directory / CARD
    content = _content(path)
    written = _decoded(path, content, ModelCard).format
    if written != STUDENT_FORMAT:
        raise ModelError(f"{path}: format {written!r} is not {STUDENT_FORMAT}; {_ADVICE}")
    data = _decoded(path, content, _StudentFile)
    for name in data.files:
        if Path(name).name != name:
            raise ModelError(f"{path}: names a file outside its directory ({name!r}); {_ADVICE}")
    check_files(directory, data.files, limit=_MAX_STUDENT_FILE_BYTES)
    return StudentCard(
        data.name,
        data.sizes,
        [
            TaskCard(
                entry.name,
                Scale(entry.floor, np.asarray(entry.edges)),
                entry.intercept,
                entry.calendar,
                entry.deep_weight,
            )
            for entry in data.slices
        ],
        Calibration(data.calibration),
        data.defaults,
        data.devices,
        data.residuals,
        data.changes,
        data.trained,
        data.files,
        data.canonical_forms,
    )


class _SliceFields(msgspec.Struct):
    """A task as the file has it; ``edges`` in log10 SI units."""

    name: Annotated[str, msgspec.Meta(pattern="^[^/@\\s]+/[^/@\\s]+/[^/@\\s]+(@[^/@\\s]+)?$", max_length=200)]
    floor: Annotated[float, msgspec.Meta(ge=0, le=1e100)]
    edges: Annotated[list[_Log], msgspec.Meta(min_length=2, max_length=10_000)]
    intercept: _Log
    calendar: tuple[_Log, ...]
    deep_weight: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 1.0

    def __post_init__(self) -> None:
        if any(left > right for left, right in pairwise(self.edges)) or self.edges[0] == self.edges[-1]:
            raise ValueError("edges must rise")
        if len(self.calendar) not in (0, CALENDAR_NODES):
            raise ValueError(f"a calendar has 0 or {CALENDAR_NODES} values")
        task = task_parts(self.name)
        if task.metric not in get_args(Metric) or (task.judge and task.judge not in JUDGES):
            raise ValueError(f"unknown metric or judge in {self.name!r}")


class _DefaultQuery(TypedDict):
    """The query that is asked by default about a basis."""

    device: str | None
    workload: dict[str, str]


class _StudentFile(msgspec.Struct):
    """The fields of a student's ``card.json``; see :class:`StudentCard`."""

    name: _Name
    sizes: dict[str, Any]
    slices: Annotated[list[_SliceFields], msgspec.Meta(min_length=1, max_length=10_000)]
    calibration: dict[str, TaskCalibration]
    residuals: dict[str, Residuals]
    changes: dict[str, RatioModel]
    defaults: dict[str, _DefaultQuery]
    devices: dict[str, list[_Name]]
    trained: dict[str, Any]
    files: dict[_Name, _Checksum]
    canonical_forms: dict[str, CanonicalForm] = {}

    def __post_init__(self) -> None:
        if len({len(entry.edges) for entry in self.slices}) > 1:
            raise ValueError("all slices need the same number of edges")
        if len({entry.name for entry in self.slices}) < len(self.slices):
            raise ValueError("a slice is given twice")


def _content(path: Path, advice: str = _ADVICE) -> bytes:
    try:
        return read_regular(path, MAX_CARD_BYTES)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {advice}") from None


def _decoded(path: Path, content: bytes, kind: type[_T], advice: str = _ADVICE) -> _T:
    """The card as ``kind``; messages of msgspec end with the path of the bad field, like ``$.slices[0].floor``."""
    try:
        return msgspec.json.decode(content, type=kind)
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: corrupt (not UTF-8 at byte {error.start}); {advice}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        shown = reason if len(reason) <= _SHOWN_REASON else f"{reason[:_SHOWN_REASON]}..."
        raise ModelError(f"{path}: corrupt ({shown}); {advice}") from None
