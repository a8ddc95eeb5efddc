"""What serving a trained full model needs besides its weights: ``serving.json``, in the model's directory.

It names what the model was trained on, what queries mean when they leave something out, and the calibration of bands.
The model's card holds its checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from rlm_core.errors import ModelError
from rlm_core.inference.calibration import Calibration
from rlm_core.inference.card import checksum

from .store import FullCard

FORMAT = "rlm-serving-1"
SERVING = "serving.json"
_ADVICE = "copy the whole model directory again, or train the model again"


@dataclass(frozen=True, slots=True)
class Serving:
    """What a model answers.

    Attributes:
        floors: by slice (basis/language/metric) that it was trained on, the smallest value that is resolved.
        devices: those with training rows by basis, the most frequent first.
        defaults: device and workload of a query without them, by basis or ``basis/metric``.
        calibration: of central intervals, on the probability axis.
        callees: how many called functions are read after a text.
    """

    floors: Mapping[str, float]
    devices: Mapping[str, Sequence[str]]
    defaults: Mapping[str, Mapping[str, Any]]
    calibration: Calibration = field(default_factory=lambda: Calibration({}))
    callees: int = 0

    def write(self, directory: Path) -> dict[str, str]:
        """Write the file; what the card has to hold of it."""
        data = {
            "format": FORMAT,
            "floors": dict(self.floors),
            "devices": {basis: list(names) for basis, names in self.devices.items()},
            "defaults": {name: dict(entry) for name, entry in self.defaults.items()},
            "calibration": self.calibration.to_json(),
            "callees": self.callees,
        }
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / SERVING
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        return {SERVING: checksum(path)}

    @classmethod
    def read(cls, directory: Path, card: FullCard) -> Serving:
        """Read what :meth:`write` wrote.

        Raises:
            ModelError: the file is missing, is not the one that the card describes, or is of another format.
        """
        path = directory / SERVING
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise ModelError(f"{path}: format {data['format']!r} is not {FORMAT}; {_ADVICE}")
            floors = {str(name): float(floor) for name, floor in data["floors"].items()}
            calibration = Calibration.from_json(data["calibration"])
            found = cls(floors, dict(data["devices"]), dict(data["defaults"]), calibration, int(data["callees"]))
        except FileNotFoundError:
            raise ModelError(
                f"{path}: missing: a model without calibration cannot be served; train one with `rlm-lsp train`"
            ) from None
        except OSError as error:
            raise ModelError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(f"{path}: corrupt ({type(error).__name__}: {error}); {_ADVICE}") from None
        if card.trained.get(SERVING) != checksum(path):
            raise ModelError(f"{path}: corrupt (its checksum is not the one in the card); {_ADVICE}")
        return found


def autocast(device: torch.device) -> torch.autocast:
    """The precision in which texts are encoded when a model is served, and so also when it is calibrated."""
    fast = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, torch.bfloat16, enabled=fast)


def model_id(directory: Path, card: FullCard) -> str:
    """The id of a model with its calibration."""
    return replace(card, files={**card.files, SERVING: checksum(directory / SERVING)}).model_id
