"""The interface of the full model's text encoders: texts -> token ids -> a vector per token, and how they are saved.

Texts come in as canonical text, :func:`marked` with their language. Long texts lose their middle; the number of
lost tokens is kept. Batches hold texts of similar length and are padded to the longest of them, never to the maximum.
A saved encoder is a directory with ``encoder.json`` and, only if training changed any, ``encoder.safetensors``.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from rlm_core.errors import ModelError
from rlm_core.inference import tokenizer

SETTINGS, WEIGHTS = "encoder.json", "encoder.safetensors"

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids of texts, each ``(tokens,)`` with at least one token, and how many tokens each text lost."""

    ids: list[Ids]
    cropped: list[int]

    @property
    def lengths(self) -> Ids:
        """Tokens of each text that are left, ``(texts,)``."""
        return np.array([len(row) for row in self.ids], np.int64)


class TextEncoder(nn.Module, ABC):
    """A text encoder; subclasses name their ``kind`` and are found by it.

    Attributes:
        width: size of a token vector.
        max_tokens: longest text in tokens; longer ones are cropped.
        pad_id: the id that pads a batch; its positions are masked.
        trained: names of the parameters that training may change.
    """

    kind: ClassVar[str] = ""
    _kinds: ClassVar[dict[str, type[TextEncoder]]] = {}

    width: int
    max_tokens: int
    pad_id: int
    trained: frozenset[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.kind:
            TextEncoder._kinds[cls.kind] = cls

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """Token ids of texts, cropped to ``max_tokens``."""

    @abstractmethod
    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Token vectors ``(batch, tokens, width)``, float32 whatever the inner precision.

        Args:
            ids: ``(batch, tokens)``, int64.
            mask: ``(batch, tokens)``, True at real tokens. Vectors elsewhere have no meaning.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return all that :meth:`from_json` needs except :meth:`weights`; includes ``kind``."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: dict[str, Any], folder: Path) -> Self:
        """The encoder that :meth:`to_json` described and :meth:`save` wrote into ``folder``, before its weights."""

    def weights(self) -> dict[str, Tensor]:
        """The weights that training can change, by name: all that a checkpoint has to hold. Empty when frozen."""
        return {name: weight for name, weight in self.named_parameters() if name in self.trained}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Take what :meth:`weights` gave.

        Raises:
            ModelError: names or shapes do not fit.
        """
        self.check_weights(weights)
        with torch.no_grad():
            for name, weight in self.weights().items():
                weight.copy_(weights[name])

    def check_weights(self, weights: dict[str, Tensor]) -> None:
        """Check that :meth:`load_weights` can take these weights.

        Raises:
            ModelError: names or shapes do not fit.
        """
        own = self.weights()
        if own.keys() != weights.keys():
            name = min(own.keys() ^ weights.keys())
            raise ModelError(
                f"`{name}` is {'missing' if name in own else 'unknown'}; the weights are of another encoder"
            )
        for name, weight in own.items():
            if weight.shape != weights[name].shape:
                shapes = f"{tuple(weights[name].shape)}, not {tuple(weight.shape)}"
                raise ModelError(f"`{name}` has the shape {shapes}; the weights are of another encoder")

    @abstractmethod
    def recompute(self, on: bool) -> None:
        """Trade time for memory: compute a layer's inner values again in the backward pass instead of keeping them."""

    @abstractmethod
    def save_files(self, folder: Path) -> None:
        """Write what else :meth:`from_json` reads, such as the tokenizer."""

    def save(self, folder: Path) -> None:
        """Write the encoder into a separate directory; :func:`load_encoder` reads it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.save_files(folder)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.weights().items()}
        if weights:
            safetensors.torch.save_file(weights, folder / WEIGHTS)
        else:
            (folder / WEIGHTS).unlink(missing_ok=True)
        (folder / SETTINGS).write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")

    @property
    def device(self) -> torch.device:
        """The device of the encoder."""
        return next(self.parameters()).device


def load_encoder(folder: Path) -> TextEncoder:
    """Read an encoder that :meth:`TextEncoder.save` wrote, on the CPU and in evaluation mode.

    Raises:
        ModelError: files are missing or do not fit together, or the encoder's base model cannot be had.
    """
    path = folder / SETTINGS
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        kind = TextEncoder._kinds[data["kind"]]
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); give a directory with a saved encoder") from None
    except (ValueError, TypeError, KeyError):
        known = ", ".join(sorted(TextEncoder._kinds))
        raise ModelError(f"{path}: not the settings of an encoder; `kind` must be one of {known}") from None
    try:
        encoder = kind.from_json(data, folder)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: a setting is missing or wrong ({error}); save the model again") from None
    if encoder.weights():
        try:
            encoder.load_weights(safetensors.torch.load_file(folder / WEIGHTS))
        except OSError:
            raise ModelError(f"{folder / WEIGHTS}: cannot be read; copy the whole model directory again") from None
        except safetensors.SafetensorError as error:
            raise ModelError(f"{folder / WEIGHTS}: damaged ({error}); copy the model directory again") from None
        except ModelError as error:
            raise ModelError(f"{folder / WEIGHTS}: {error}") from None
    return encoder.eval()


def marked(text: str, language: str) -> str:
    """A canonical text with its language in front, as encoders read it; our own vocabularies have a token for it."""
    return f"<{language}>{text}"


def crop(ids: Sequence[int] | npt.NDArray[np.integer[Any]], length: int) -> tuple[Ids, int]:
    """The start and the end of a text within ``length`` ids, as ``crop``, and the loss."""
    kept, _ = tokenizer.crop(np.asarray(ids, np.int32), length)
    return kept.astype(np.int64), len(ids) - len(kept)


def length_batches(
    lengths: Ids, budget: int, generator: np.random.Generator | None = None
) -> Iterator[npt.NDArray[np.int64]]:
    """Indices of texts in batches of similar length: ``texts * longest <= budget``, or one text alone.

    With a generator, the order of batches and who shares one varies a little from call to call; without, longest first,
    so that a device which is too small shows at once.
    """
    noise = generator.normal(0, 0.05, len(lengths)) if generator is not None else np.zeros(len(lengths))
    order = np.argsort(-(np.log(np.maximum(lengths, 1)) + noise), kind="stable")
    batches: list[npt.NDArray[np.int64]] = []
    start = 0
    while start < len(order):
        longest, end = 0, start
        while end < len(order):
            longest = max(longest, int(lengths[order[end]]))
            if end > start and longest * (end - start + 1) > budget:
                break
            end += 1
        batches.append(order[start:end])
        start = end
    if generator is not None:
        generator.shuffle(batches)
    yield from batches


def pad(ids: Sequence[Ids], pad_id: int) -> tuple[Tensor, Tensor]:
    """Ids and mask ``(batch, tokens)``, as wide as the longest text."""
    lengths = np.array([len(row) for row in ids])
    table = np.full((len(ids), int(lengths.max())), pad_id, np.int64)
    mask = np.arange(table.shape[1])[None, :] < lengths[:, None]
    table[mask] = np.concatenate(ids)
    return torch.from_numpy(table), torch.from_numpy(mask)


def encode(encoder: TextEncoder, ids: Sequence[Ids], budget: int = 16_384) -> list[Tensor]:
    """Token vectors of each text, ``(tokens, width)`` in the order given; at most ``budget`` padded tokens at once.

    Gradients are recorded where they are enabled.
    """
    vectors: list[Tensor] = [torch.empty(0)] * len(ids)
    for batch in length_batches(np.array([len(row) for row in ids], np.int64), budget):
        padded, mask = pad([ids[i] for i in batch], encoder.pad_id)
        states = encoder(padded.to(encoder.device), mask.to(encoder.device))
        for row, index in enumerate(batch):
            vectors[index] = states[row, : len(ids[index])]
    return vectors


def reading(text: str, language: str, callees: Sequence[str], most: int) -> str:
    """The text that the encoder gets.

    Args:
        text: canonical text of the unit.
        language: of both.
        callees: canonical texts of what the unit calls, the nearest first.
        most: how many of them are read.
    """
    return marked("\n".join([text, *callees[:most]]), language)
