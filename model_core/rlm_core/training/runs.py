"""The directory of a training run: claimed by one run, with its tokenizer; and what every run checks and reports."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlm_core.errors import DataError
from rlm_core.files import atomic_write
from rlm_core.inference.student import TOKENIZER
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.inference.tokenizer import train as train_tokenizer

from .corpus import Corpus

SPLITS = ("train", "val", "cal")
_RUN = "run.json"
_TOKENIZER_TEXTS = 9_000  # per language, so that the large ones do not take all tokens


def say(text: str) -> None:
    """Report progress on standard error."""
    print(text, file=sys.stderr)


def require_splits(corpus: Corpus, data: Sequence[Path]) -> None:
    """Check that a corpus has rows of every split of a training.

    Raises:
        DataError: a split is missing.
    """
    for split in SPLITS:
        if split not in corpus.rows.split:
            names = ", ".join(map(str, data))
            raise DataError(f"{names}: no rows of split {split}; build a data set with --split auto")


def claim_run(out: Path, corpus: Corpus, settings: Mapping[str, Any], *, resume: bool) -> None:
    """Make a directory that of one run, which is identified by its rows and settings.

    Raises:
        DataError: the directory holds another run, or this one and ``resume`` is False.
    """
    digest = hashlib.sha256()
    for name, split in zip(corpus.rows.ids, corpus.rows.split, strict=True):
        digest.update(f"{name}\t{split}\n".encode())
    run = {"data": digest.hexdigest(), **json.loads(json.dumps(settings))}
    out.mkdir(parents=True, exist_ok=True)
    path = out / _RUN
    if path.exists():
        if not resume:
            raise DataError(f"{out}: already holds a training run; add --resume or name another directory")
        if json.loads(path.read_text(encoding="utf-8")) != run:
            raise DataError(f"{out}: the run in it used other data or settings; name another directory")
    else:
        with atomic_write(path) as partial:
            partial.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def fit_tokenizer(
    out: Path, texts: list[tuple[str, str]], size: int, seed: int, resume: bool, table: str = "model"
) -> Tokenizer:
    """The tokenizer of a run: trained on (text, language) pairs, or with ``resume`` the one that the run already has.

    ``table`` is the table of the configuration that sets the vocabulary's ``size``.

    Raises:
        DataError: the vocabulary is too small or too large.
    """
    path = out / TOKENIZER
    if resume and path.exists():
        return Tokenizer.load(path)
    rng = np.random.default_rng(seed)
    by_language: dict[str, list[str]] = defaultdict(list)
    for text, language in texts:
        by_language[language].append(text)
    sample = [
        text
        for members in by_language.values()
        for text in (members[i] for i in rng.permutation(len(members))[:_TOKENIZER_TEXTS])
    ]
    rng.shuffle(sample)
    try:
        tokenizer = train_tokenizer(sample, size, seed=seed)
    except RuntimeError as error:
        if "smaller than required" in str(error):
            raise DataError(f"a vocabulary of {size} does not hold the fixed symbols; raise it in [{table}]") from None
        raise DataError(f"{len(sample)} texts are too few for a vocabulary of {size}; lower it in [{table}]") from None
    with atomic_write(path) as partial:
        partial.write_bytes(tokenizer.model)
    return tokenizer
