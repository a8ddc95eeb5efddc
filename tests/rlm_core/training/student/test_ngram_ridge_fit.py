"""Fitting the wide part: no training row is predicted by a ridge that saw its family."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from rlm_core.inference.ngram_ridge import calendar, words_of
from rlm_core.inference.tokenizer import Ids
from rlm_core.training.corpus import Corpus
from rlm_core.training.student.ngram_ridge_fit import FOLDS, contributions, fit_ngram_ridge, fold_of

BITS = 12


@pytest.fixture(scope="module")
def ids(corpus: Corpus) -> list[Ids]:
    """A token a word: the wide part needs ids, not a tokenizer."""
    words: dict[str, int] = {}
    return [
        np.array([words.setdefault(word, len(words)) for word in text.split()], dtype=np.int32)
        for text, _ in corpus.texts
    ]


def rows_of(corpus: Corpus, *splits: str) -> npt.NDArray[np.int64]:
    return np.flatnonzero(np.isin(corpus.rows.split, splits))


def test_what_is_predicted_at_use_is_what_was_fitted(corpus: Corpus, ids: list[Ids]) -> None:
    fitted = fit_ngram_ridge(corpus, ids, bits=BITS)
    # Rows of these splits are predicted by the ridge of all training rows.
    rows = rows_of(corpus, "val", "test")
    terms = [fitted.terms[corpus.tasks[number]] for number in corpus.rows.task[rows]]
    dates = np.sum(calendar(corpus.rows.date[rows]) * [term.calendar for term in terms], axis=1)
    intercepts = np.array([term.intercept for term in terms])
    found = contributions(fitted.parts, corpus, ids, rows) + dates + intercepts
    np.testing.assert_allclose(found, fitted.predictions[rows], atol=0.01)  # weights have eight bits


def test_predictions_follow_the_values(corpus: Corpus, ids: list[Ids]) -> None:
    fitted = fit_ngram_ridge(corpus, ids, bits=BITS)
    rows = rows_of(corpus, "val", "test")
    rows = rows[corpus.rows.task[rows] == corpus.tasks.index("call/python/latency")]
    assert np.corrcoef(fitted.predictions[rows], np.log10(corpus.rows.value[rows]))[0, 1] > 0.8


@pytest.mark.parametrize("split", ["train", "cal"])
def test_a_row_is_predicted_without_its_family(corpus: Corpus, ids: list[Ids], split: str) -> None:
    before = fit_ngram_ridge(corpus, ids, bits=BITS).predictions
    train = rows_of(corpus, "train")
    for family in np.unique(corpus.rows.family[train]):
        mine = corpus.rows.family == family
        changed = replace(corpus, rows=replace(corpus.rows, value=np.where(mine, 1000.0, corpus.rows.value)))
        after = fit_ngram_ridge(changed, ids, bits=BITS).predictions
        held = np.intersect1d(np.flatnonzero(mine), rows_of(corpus, split))
        np.testing.assert_allclose(after[held], before[held], atol=1e-3)


def test_n_grams_of_one_text_alone_have_no_weight(corpus: Corpus, ids: list[Ids]) -> None:
    fitted = fit_ngram_ridge(corpus, ids, bits=18)
    part = fitted.parts["call/python"]
    stranger = np.array([90_001, 90_002, 90_003], dtype=np.int32)
    assert not part.contributions(stranger, words_of("never seen words")).any()


def test_an_unmeasured_metric_has_no_weight(corpus: Corpus, ids: list[Ids]) -> None:
    latency = corpus.tasks.index("call/python/latency")
    mine = np.flatnonzero(corpus.rows.task == latency)
    columns: dict[str, Any] = {name: np.asarray(getattr(corpus.rows, name))[mine] for name in corpus.rows.__slots__}
    columns |= {"task": np.zeros(len(mine), np.int64)}
    only = Corpus(corpus.texts, corpus.queries, type(corpus.rows)(**columns), ["call/python/latency"])
    codes = fit_ngram_ridge(only, ids, bits=BITS).parts["call/python"].codes
    assert codes[:, 0].any()
    assert not codes[:, 1].any()


def test_kernels_have_no_wide_part(mixed_corpus: Corpus) -> None:
    ids = [np.arange(len(text) % 7 + 2, dtype=np.int32) for text, _ in mixed_corpus.texts]
    fitted = fit_ngram_ridge(mixed_corpus, ids, bits=BITS)
    assert fitted.parts.keys() == {"call/python", "program/java"}
    assert not any(name.startswith("kernel/") for name in fitted.terms)
    assert not fitted.predictions[mixed_corpus.rows_of("kernel/triton")].any()


def test_folds_are_stable_and_all_used() -> None:
    assert fold_of("networkx") == fold_of("networkx")
    assert {fold_of(f"package{number}") for number in range(100)} == set(range(FOLDS))
