"""The texts that an encoder may read without labels: none that it is judged on, however it is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.training.corpus import Corpus
from rlm_core.training.datasets.texts import read_texts

_CHUNK = 500  # texts for a process at a time


def pretraining_texts(corpus: Corpus, files: Sequence[Path]) -> list[tuple[str, str]]:
    """The distinct texts of the ``train`` split and of files, without those of any other split.

    The functions that a row calls count as texts of its split. Texts are compared in the neutral form, because a data
    set and a file may hold the same function in different forms and with other names.

    Returns:
        (text, language) pairs, each in the form in which it was found.

    Raises:
        DataError: a file is missing or is not a file of texts.
    """
    train_rows = corpus.rows.split == "train"
    found = dict.fromkeys(_texts(corpus, train_rows))
    for path in files:
        found.update(dict.fromkeys(read_texts(path)))
    held_out, candidates = _texts(corpus, ~train_rows), list(found)
    forms = _neutral_forms([*held_out, *candidates])
    excluded = set(forms[: len(held_out)])
    return [text for text, form in zip(candidates, forms[len(held_out) :], strict=True) if form not in excluded]


def _texts(corpus: Corpus, chosen: np.ndarray) -> list[tuple[str, str]]:
    """The texts of rows and of the functions that they call."""
    callees = corpus.rows.callees[chosen]
    return [corpus.texts[text] for text in np.union1d(corpus.rows.text[chosen], callees[callees >= 0])]


def _neutral_forms(texts: Sequence[tuple[str, str]]) -> list[str]:
    if len(texts) <= _CHUNK:
        return [_neutral_form(entry) for entry in texts]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(_neutral_form, texts, chunksize=_CHUNK))


def _neutral_form(entry: tuple[str, str]) -> str:
    return canonical(*entry, CanonicalForm.NEUTRAL)
