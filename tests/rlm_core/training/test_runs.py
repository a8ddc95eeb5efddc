"""The directory of a run belongs to one run; splits and vocabularies that cannot be used are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rlm_core.errors import DataError
from rlm_core.training.corpus import Corpus
from rlm_core.training.runs import SPLITS, claim_run, fit_tokenizer, require_splits


def test_a_claimed_directory_can_only_be_resumed_by_the_same_run(corpus: Corpus, tmp_path: Path) -> None:
    settings = {"name": "student", "train": {"sizes": (1, 2)}}
    claim_run(tmp_path / "run", corpus, settings, resume=False)
    with pytest.raises(DataError, match="already holds a training run; add --resume"):
        claim_run(tmp_path / "run", corpus, settings, resume=False)
    claim_run(tmp_path / "run", corpus, settings, resume=True)
    with pytest.raises(DataError, match="used other data or settings"):
        claim_run(tmp_path / "run", corpus, {**settings, "name": "other"}, resume=True)
    other = replace(corpus, rows=corpus.rows.chosen(np.arange(1, len(corpus.rows))))
    with pytest.raises(DataError, match="used other data or settings"):
        claim_run(tmp_path / "run", other, settings, resume=True)


@pytest.mark.parametrize("split", SPLITS)
def test_a_missing_split_is_named_with_its_files(corpus: Corpus, split: str) -> None:
    require_splits(corpus, [Path("a.parquet")])
    left = replace(corpus, rows=corpus.rows.chosen(np.flatnonzero(corpus.rows.split != split)))
    with pytest.raises(DataError, match=rf"a\.parquet, b\.parquet: no rows of split {split}"):
        require_splits(left, [Path("a.parquet"), Path("b.parquet")])


def test_a_resumed_run_keeps_its_tokenizer(corpus: Corpus, tmp_path: Path) -> None:
    first = fit_tokenizer(tmp_path, corpus.texts, 540, 0, resume=False)
    kept = fit_tokenizer(tmp_path, corpus.texts[:1], 540, 1, resume=True)
    assert kept.model == first.model


@pytest.mark.parametrize(
    ("size", "message"),
    [(300, r"vocabulary of 300 does not hold the fixed symbols; raise it in \[encoder\]"), (8192, "lower it in")],
)
def test_a_vocabulary_that_does_not_fit_names_its_table(
    corpus: Corpus, tmp_path: Path, size: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        fit_tokenizer(tmp_path, corpus.texts, size, 0, resume=False, table="encoder")
