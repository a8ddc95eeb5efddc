"""Canonical text <-> token ids (SentencePiece BPE with byte fallback, so that every text has an encoding).

A line end with the indentation after it, each digit and each ONNX operator are one token; each language has a token
that opens its texts.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sentencepiece

from rlm_core.errors import ModelError
from rlm_core.files import read_regular
from rlm_core.source import languages
from rlm_core.source.onnx_graph.graph import SYMBOLS

PAD = 0
_LINE_END, _TAB = "\u21b5", "\u21e5"
_MAX_INDENT_TOKEN = 6
_MAX_BYTES = 2**26  # four hundred times the tokenizer that ships
_HEAD_SHARE = 0.75  # of a cropped text; the rest is its end, where results are built and returned

Ids = npt.NDArray[np.int32]


class Tokenizer:
    """A trained SentencePiece model.

    Raises:
        ModelError: the bytes are not a SentencePiece model.
    """

    def __init__(self, model: bytes, where: str = "tokenizer") -> None:
        self.model = model
        try:
            if not model:
                # SentencePiece takes no bytes for a model without pieces.
                raise OSError
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError):
            raise ModelError(f"{where}: not a SentencePiece model; reinstall the model") from None
        names = (*languages.LANGUAGES, *languages.TEXT_ONLY)  # those without a token share that of unknown text
        self._language_ids = {name: self._processor.PieceToId(f"<{name}>") for name in names}

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read a ``.model`` file."""
        try:
            return cls(read_regular(path, _MAX_BYTES), str(path))
        except OSError as error:
            raise ModelError(f"{path}: cannot be read ({error.strerror}); reinstall the model") from None

    @property
    def size(self) -> int:
        """The number of token ids."""
        return int(self._processor.GetPieceSize())

    def encode(self, text: str, language: str) -> Ids:
        """All token ids of a canonical text, the language's token first. Shape ``(tokens,)``."""
        ids = self._processor.EncodeAsIds(_visible(text))
        return np.asarray([self._language_ids[language], *ids], dtype=np.int32)


def crop(ids: Ids, length: int) -> tuple[Ids, bool]:
    """At most ``length`` ids (the start and the end of a longer text) and whether anything was left out."""
    if len(ids) <= length:
        return ids, False
    head = int(length * _HEAD_SHARE)
    return np.concatenate([ids[:head], ids[len(ids) - (length - head) :]]), True


def train(texts: Iterable[str], vocabulary: int, *, sample: int = 40_000, seed: int = 0) -> Tokenizer:
    """Train a tokenizer on canonical texts."""
    sentencepiece.set_random_generator_seed(seed)
    output = io.BytesIO()
    symbols = [*(f"<{name}>" for name in languages.LANGUAGES), *SYMBOLS]
    symbols += [_LINE_END + _TAB * level for level in range(_MAX_INDENT_TOKEN + 1)] + [_TAB]
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=(_visible(text)[:6000] for text in texts),
        model_writer=output,
        vocab_size=vocabulary,
        model_type="bpe",
        pad_id=PAD,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        user_defined_symbols=symbols,
        input_sentence_size=sample,
        shuffle_input_sentence=True,
        max_sentence_length=40_000,
        character_coverage=0.9995,
        num_threads=2,
        minloglevel=1,
    )
    return Tokenizer(output.getvalue())


def _visible(text: str) -> str:
    """SentencePiece reads one line per text: line ends and tabs become visible symbols."""
    return text.replace("\n", _LINE_END).replace("\t", _TAB)
