"""A full model as a directory: weights as safetensors, settings and card as JSON. Opening a stranger's runs nothing.

``card.json`` names the model, what it was trained on and the checksums of the other files: ``config.json`` (the
decoder), ``decoder.safetensors``, and the directory ``encoder`` with what the encoder keeps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from rlm_core.errors import ModelError
from rlm_core.inference.card import CARD, checksum

from .config import FullConfig
from .encoders import load_encoder
from .model import FullModel
from .regress_lm_encoder import RegressLmEncoder

FORMAT = "rlm-full-1"
CONFIG, DECODER, ENCODER = "config.json", "decoder.safetensors", "encoder"
KINDS = (RegressLmEncoder,)  # known to load_encoder by their definition
_ADVICE = "copy the whole model directory again, or train or convert the model again"


@dataclass(frozen=True, slots=True)
class FullCard:
    """What is told about a full model: its name, facts of its training, and checksums (SHA-256) by file."""

    name: str
    trained: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def model_id(self) -> str:
        """Name and a short checksum of the files."""
        return f"{self.name}-{hashlib.sha256(''.join(sorted(self.files.values())).encode()).hexdigest()[:8]}"


def save(model: FullModel, directory: Path, name: str, trained: Mapping[str, Any] | None = None) -> FullCard:
    """Write a model; the directory is made where needed, a model that it holds is replaced.

    Raises:
        ModelError: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        config = json.dumps(model.config.to_json(), indent=1)
        (directory / CONFIG).write_text(config + "\n", encoding="utf-8")
        weights = {key: tensor.detach().cpu().contiguous() for key, tensor in _own(model).items()}
        safetensors.torch.save_file(weights, directory / DECODER)
        model.encoder.save(directory / ENCODER)
        paths = [directory / CONFIG, directory / DECODER, *sorted((directory / ENCODER).rglob("*"))]
        files = {path.relative_to(directory).as_posix(): checksum(path) for path in paths if path.is_file()}
        card = FullCard(name, dict(trained or {}), files)
        data = {"format": FORMAT, "name": card.name, "trained": card.trained, "files": files}
        (directory / CARD).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ModelError(f"{error.filename or directory}: cannot be written ({error.strerror})") from None
    return card


def read_card(directory: Path) -> FullCard:
    """Read ``card.json`` and compare the checksums.

    Raises:
        ModelError: a file is missing, is not the one that the card describes, or the format is another.
    """
    path = directory / CARD
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ModelError(f"{path}: format {data['format']!r} is not {FORMAT}; {_ADVICE}")
        card = FullCard(str(data["name"]), dict(data["trained"]), dict(data["files"]))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: corrupt ({type(error).__name__}: {error}); {_ADVICE}") from None
    for name, expected in card.files.items():
        file = directory / name
        if not file.resolve().is_relative_to(directory.resolve()):
            raise ModelError(f"{path}: names a file outside its directory ({name!r}); {_ADVICE}")
        if not file.is_file():
            raise ModelError(f"{file}: missing; {_ADVICE}")
        if checksum(file) != expected:
            raise ModelError(f"{file}: corrupt (its checksum is not the one in {CARD}); {_ADVICE}")
    return card


def load(directory: Path, device: str | torch.device = "cpu") -> tuple[FullModel, FullCard]:
    """Read a model, in evaluation mode.

    Raises:
        ModelError: as :func:`read_card`; files do not fit together; the encoder's base model cannot be had.
    """
    card = read_card(directory)
    path = directory / DECODER
    try:
        config = FullConfig.from_json(json.loads((directory / CONFIG).read_text(encoding="utf-8")))
        weights = safetensors.torch.load_file(path)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise ModelError(f"{directory}: {CONFIG} or {DECODER} cannot be read ({error}); {_ADVICE}") from None
    except ModelError as error:
        raise ModelError(f"{directory / CONFIG}: {error}") from None
    model = FullModel(config, load_encoder(directory / ENCODER))
    own = _own(model)
    if own.keys() != weights.keys() or any(own[name].shape != weights[name].shape for name in own):
        raise ModelError(f"{path}: not the weights that {CONFIG} describes; {_ADVICE}")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(weights[name])
    return model.to(device).eval(), card


def _own(model: FullModel) -> dict[str, torch.Tensor]:
    """The weights that the encoder does not keep."""
    return {name: weight for name, weight in model.state_dict().items() if not name.startswith("encoder.")}
