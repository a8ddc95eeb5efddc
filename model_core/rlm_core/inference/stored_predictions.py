"""Predictions on the disk: the same text with the same facts, calls and queries has the same answer from one model.

Input: a model whose answers depend on nothing else, such as the embedded student. Adapted devices, the CPU's score and
measurements are applied to what is read, so that a stored answer does not depend on them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from rlm_core import cost, inference, queries, source, types
from rlm_core.queries.entry_store import EntryStore, default_folder, digest_of, source_digest
from rlm_core.types import Calls, CodeText, Prediction, Query

from .predictor import Predictor, PredictorWrapper

FILE = "predictions.sqlite3"
# About 2 KB per query.
_MOST_ENTRIES = 20_000
_MOST_BYTES = 64 * 2**10  # of an entry
_ENCODER = msgspec.msgpack.Encoder()


class StoredPredictor(PredictorWrapper):
    """Another predictor, whose answers are kept on the disk for all processes of a user.

    ``model`` identifies all that the answers depend on in the model, its card included.
    """

    def __init__(self, base: Predictor, model: bytes) -> None:
        super().__init__(base)
        self._model = model
        folder = default_folder()
        path = folder / FILE if folder is not None else None
        self._store = EntryStore(path, list[Prediction], _MOST_ENTRIES, _MOST_BYTES)
        self._lock = threading.Lock()

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; see :class:`rlm_core.inference.predictor.Predictor`."""
        keys = [self._key(code, asked) for code, asked in zip(texts, queries, strict=True)]
        with self._lock:
            answers = [self._store.get(key) for key in keys]
        missing = [number for number, answer in enumerate(answers) if answer is None]
        if missing:
            made = self.base.predict([texts[number] for number in missing], [queries[number] for number in missing])
            with self._lock:
                for number, line in zip(missing, made, strict=True):
                    answers[number] = line
                    self._store.put(keys[number], line)
        with self._lock:
            self._store.save()
        return [answer for answer in answers if answer is not None]

    def _key(self, code: CodeText, asked: Sequence[Query]) -> bytes | None:
        """The digest of what answers depend on; None where there is none."""
        if not self._store.is_open:
            return None
        try:
            return digest_of(version(), self._model, _ENCODER.encode((what_is_read(code), asked)))
        # The source is not in files; half a surrogate pair; an integer of more than 64 bits.
        except (OSError, UnicodeError, OverflowError):
            return None


def what_is_read(code: CodeText) -> tuple[object, ...]:
    """Return all that a model reads of a text, as plain data: not what says only what to ask, and measurements."""
    return code.text, code.language, code.basis, code.callees, code.work, _plain(code.calls)


def _plain(calls: Calls | None) -> tuple[object, ...] | None:
    """Calls without the hashes that they remember, which differ between processes."""
    if calls is None:
        return None
    around = (calls.of_file.functions, calls.of_class.functions, calls.of_package.functions)
    return calls.sites, calls.outside, calls.unresolved, around


@cache
def version() -> str:
    """A digest of the source of predictions, from text to number.

    Raises:
        OSError: it is not in files.
    """
    folders = [Path(folder) for package in (source, cost, queries, inference) for folder in package.__path__]
    return source_digest(*folders, *map(Path, types.__path__))
