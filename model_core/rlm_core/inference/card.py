"""The model card that the program reads: ``card.json`` beside the weights.

It names the slices and their outcome scales, the wide part's linear terms, the calibration, the known devices, the
default queries and the checksums of the files. Plain JSON: opening a model from a stranger runs nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rlm_core.errors import ModelError

from .bins import Scale
from .calibration import Calibration
from .cost_ratio import ChangeModel
from .residuals import Residuals

FORMAT = "rlm-student-3"
CARD = "card.json"


@dataclass(frozen=True, slots=True)
class SliceCard:
    """One basis/language/metric: its outcome scale and the wide part's intercept and calendar (log10 SI units)."""

    name: str
    scale: Scale
    intercept: float
    calendar: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """Everything about a model that is not a tensor.

    ``sizes`` are the fields of ``StudentConfig``; ``defaults`` give, by basis, a device and a workload for each metric;
    ``devices`` are those with training rows, by basis; ``residuals`` are those of the forests that answer alone, by
    ``forest_key``, and for devices without such rows by ``data_sheet_key`` of it;
    ``changes`` are by :func:`rlm_core.inference.cost_ratio.change_name`.
    """

    name: str
    sizes: Mapping[str, Any]
    slices: Sequence[SliceCard]
    calibration: Calibration
    defaults: Mapping[str, Mapping[str, Any]]
    devices: Mapping[str, Sequence[str]]
    residuals: Mapping[str, Residuals] = field(default_factory=dict)
    changes: Mapping[str, ChangeModel] = field(default_factory=dict)
    trained: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def model_id(self) -> str:
        """Name and a short checksum of the weights."""
        digest = hashlib.sha256("".join(sorted(self.files.values())).encode()).hexdigest()[:8]
        return f"{self.name}-{digest}"

    def write(self, directory: Path, names: Sequence[str]) -> None:
        """Write the card with the checksums of the files called ``names`` beside it."""
        data = {
            "format": FORMAT,
            "name": self.name,
            "sizes": dict(self.sizes),
            "slices": [
                {
                    "name": entry.name,
                    "floor": entry.scale.floor,
                    "edges": [round(float(edge), 6) for edge in entry.scale.edges],
                    "intercept": entry.intercept,
                    "calendar": list(entry.calendar),
                }
                for entry in self.slices
            ],
            "calibration": self.calibration.to_json(),
            "residuals": {key: entry.to_json() for key, entry in self.residuals.items()},
            "changes": {name: entry.to_json() for name, entry in self.changes.items()},
            "defaults": {basis: dict(query) for basis, query in self.defaults.items()},
            "devices": {basis: list(known) for basis, known in self.devices.items()},
            "trained": dict(self.trained),
            "files": {name: checksum(directory / name) for name in names},
        }
        (directory / CARD).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_card(directory: Path) -> Card:
    """Read and check ``card.json`` and the checksums of the files it names.

    Raises:
        ModelError: the directory or a file is missing, is not the one the card describes, or is of another format.
    """
    path = directory / CARD
    advice = "reinstall rlm-lsp or export the model again"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("format") != FORMAT:
            raise ModelError(f"{path}: format {data.get('format')!r} is not {FORMAT}; {advice}")
        slices = [
            SliceCard(
                entry["name"],
                Scale(float(entry["floor"]), np.asarray(entry["edges"], dtype=np.float64)),
                float(entry["intercept"]),
                tuple(entry["calendar"]),
            )
            for entry in data["slices"]
        ]
        card = Card(
            data["name"],
            data["sizes"],
            slices,
            Calibration.from_json(data["calibration"]),
            data["defaults"],
            data["devices"],
            {key: Residuals.from_json(entry) for key, entry in data["residuals"].items()},
            {name: ChangeModel.from_json(entry) for name, entry in data["changes"].items()},
            data["trained"],
            data["files"],
        )
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {advice}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path}: corrupt ({type(error).__name__}: {error}); {advice}") from None
    for name, expected in card.files.items():
        if Path(name).name != name:
            raise ModelError(f"{path}: names a file outside its directory ({name!r}); {advice}")
        file = directory / name
        if not file.is_file():
            raise ModelError(f"{file}: missing; {advice}")
        if checksum(file) != expected:
            raise ModelError(f"{file}: corrupt (its checksum is not the one in {CARD}); {advice}")
    return card


def checksum(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
