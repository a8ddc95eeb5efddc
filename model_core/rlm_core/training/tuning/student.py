"""An exported student, opened to be tuned: its head as a PyTorch module, its wide part and trees as arrays."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rlm_core.errors import ModelError
from rlm_core.inference import ngram_ridge, trees
from rlm_core.inference.card import StudentCard, read_card
from rlm_core.inference.features import feature_names
from rlm_core.inference.ngram_ridge import NgramRidge
from rlm_core.inference.student import HEAD, NGRAM_RIDGE, TOKENIZER, TREES
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.inference.trees import Forest
from rlm_core.training.student.export import WEIGHTS, export
from rlm_core.training.student.network import Head, StudentConfig

from .head_weights import read_head
from .rows import Known


@dataclass(frozen=True, slots=True)
class Opened:
    """A model in memory; ``directory`` is the exported one that it was read from."""

    directory: Path
    card: StudentCard
    sizes: StudentConfig
    head: Head
    parts: dict[str, NgramRidge]
    forests: dict[str, Forest]
    tokenizer: Tokenizer

    @property
    def slices(self) -> list[str]:
        """The names of the slices, in the order of their numbers."""
        return [entry.name for entry in self.card.slices]

    @property
    def known(self) -> Known:
        """What the model answers."""
        return Known(self.slices, self.card.devices, self.card.defaults, self.forests)


def features_of(card: StudentCard) -> dict[str, tuple[str, ...]]:
    """The names of the features of each slice."""
    return {entry.name: feature_names(entry.name.split("/")[0]) for entry in card.slices}


@contextmanager
def opened(model: Path) -> Iterator[Opened]:
    """The student in ``model``, a directory of ``rlm-lsp export`` or of ``rlm-lsp train`` (which is exported first).

    Raises:
        ModelError: the directory is missing, incomplete or corrupt.
    """
    with tempfile.TemporaryDirectory(prefix="rlm-lsp-tune-") as scratch:
        directory = model
        if (model / WEIGHTS).is_file() and not (model / HEAD).is_file():
            directory = Path(scratch)
            export(model, directory)
        card = read_card(directory)
        try:
            sizes = StudentConfig(**card.sizes)
        except TypeError as error:
            raise ModelError(f"{directory}: its card tells other sizes than a student has ({error})") from None
        yield Opened(
            directory,
            card,
            sizes,
            read_head(directory / HEAD, sizes),
            ngram_ridge.load(directory / NGRAM_RIDGE),
            trees.load(directory / TREES, features_of(card)),
            Tokenizer.load(directory / TOKENIZER),
        )
