"""A full model as a directory: weights as safetensors, settings and card as JSON. Opening one runs no code from it.

``card.json`` names the model, its training data and the checksums of the other files: ``config.json`` (the decoder),
``decoder.safetensors``, the directory ``encoder`` with the files of the encoder, and ``serving.json``: what the model
was trained on, the defaults of incomplete queries, and the calibration of bands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import safetensors
import safetensors.torch
import torch

from rlm_core.errors import ModelError
from rlm_core.files import atomic_write
from rlm_core.inference.calibration import Calibration
from rlm_core.inference.card import CARD, FULL_FORMAT, SERVING, ModelCard, check_files, checksum, read_model_card
from rlm_core.inference.model_store import serving_file

from .decoder import FullConfig
from .encoders.base import load_encoder
from .encoders.gemma import GemmaTextEncoder
from .encoders.scratch import ScratchEncoder
from .encoders.t5gemma import T5GemmaEncoder
from .model import FullModel
from .regress_lm import RegressLmEncoder
from .spaces import Space

CONFIG, DECODER, ENCODER = "config.json", "decoder.safetensors", "encoder"
SERVING_FORMAT = "rlm-serving-1"
SPACES = "spaces"
KINDS = (
    GemmaTextEncoder,
    RegressLmEncoder,
    ScratchEncoder,
    T5GemmaEncoder,
)  # load_encoder finds them by their definition
_ADVICE = "copy the whole model directory again, or train or convert the model again"


def save(model: FullModel, directory: Path, name: str, trained: Mapping[str, Any] | None = None) -> ModelCard:
    """Write a model; the directory is made where needed, a model that it holds is replaced.

    Raises:
        ModelError: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        config = json.dumps(model.config.to_json(), indent=1)
        (directory / CONFIG).write_text(config + "\n", encoding="utf-8")
        weights = {key: tensor.detach().cpu().contiguous() for key, tensor in _decoder_weights(model).items()}
        safetensors.torch.save_file(weights, directory / DECODER)
        model.encoder.save(directory / ENCODER)
        paths = [directory / CONFIG, directory / DECODER, *sorted((directory / ENCODER).rglob("*"))]
        files = {path.relative_to(directory).as_posix(): checksum(path) for path in paths if path.is_file()}
        card = ModelCard(FULL_FORMAT, name, dict(trained or {}), files)
        data = {"format": FULL_FORMAT, "name": card.name, "trained": card.trained, "files": files}
        with atomic_write(directory / CARD) as partial:
            partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ModelError(f"{error.filename or directory}: cannot be written ({error.strerror})") from None
    return card


def read_card(directory: Path) -> ModelCard:
    """Read ``card.json`` and compare the checksums.

    Raises:
        ModelError: a file is missing, is not the one that the card describes, or the format is another.
    """
    card = read_model_card(directory, _ADVICE)
    if not card.is_full:
        raise ModelError(f"{directory / CARD}: format {card.format!r} is not {FULL_FORMAT}; {_ADVICE}")
    check_files(directory, card.files, _ADVICE)
    return card


def load(directory: Path, device: str | torch.device = "cpu") -> tuple[FullModel, ModelCard]:
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
    expected = _decoder_weights(model)
    if expected.keys() != weights.keys() or any(expected[name].shape != weights[name].shape for name in expected):
        raise ModelError(f"{path}: not the weights that {CONFIG} describes; {_ADVICE}")
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(weights[name])
    return model.to(device).eval(), card


def _decoder_weights(model: FullModel) -> dict[str, torch.Tensor]:
    """The weights outside the encoder, by their names in the file: there, query tokens are called ``asks``."""
    weights = {name: weight for name, weight in model.state_dict().items() if not name.startswith("encoder.")}
    return {re.sub(r"^query_tokens\.", "asks.", name): weight for name, weight in weights.items()}


@dataclass(frozen=True, slots=True)
class Serving:
    """The queries that a model answers, and their calibration.

    Attributes:
        floors: by slice (basis/language/metric) that it was trained on, the smallest value that is resolved.
        devices: those with training rows by basis, the most frequent first.
        defaults: device and workload of a query without them, by basis or ``basis/metric``.
        calibration: of central intervals, on the probability axis.
        callees: how many called functions are read after a text.
        spaces: of a converted model, the data sets that it was trained on; the card has them.
    """

    floors: Mapping[str, float]
    devices: Mapping[str, Sequence[str]]
    defaults: Mapping[str, Mapping[str, Any]]
    calibration: Calibration = field(default_factory=lambda: Calibration({}))
    callees: int = 0
    spaces: Sequence[Space] = ()

    def write(self, directory: Path) -> dict[str, str]:
        """Write the file; what the card has to hold of it."""
        data = {
            "format": SERVING_FORMAT,
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
    def read(cls, directory: Path, card: ModelCard) -> Serving:
        """Read what :meth:`write` wrote.

        Raises:
            ModelError: the file is missing, is not the one that the card describes, or is of another format.
        """
        path = serving_file(directory, card.trained)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != SERVING_FORMAT:
                raise ModelError(f"{path}: format {data['format']!r} is not {SERVING_FORMAT}; {_ADVICE}")
            floors = {str(name): float(floor) for name, floor in data["floors"].items()}
            calibration = Calibration.from_json(data["calibration"])
            spaces = msgspec.convert(card.trained.get(SPACES, []), list[Space])
            found = cls(
                floors, dict(data["devices"]), dict(data["defaults"]), calibration, int(data["callees"]), spaces
            )
        except FileNotFoundError:
            raise ModelError(
                f"{path}: missing: nothing says what the model may be asked; train, add or convert it again"
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


@contextmanager
def fast_products(device: torch.device) -> Iterator[None]:
    """On a GPU, matrix products in single precision with inputs of 10 bits (TF32), several times as fast."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if device.type == "cuda" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
