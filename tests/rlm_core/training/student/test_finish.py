"""The end of a run: vectors as the shipped encoder gives them, and the files of the trained directory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rlm_core.inference.card import read_card
from rlm_core.inference.encoder import encode, open_session
from rlm_core.inference.novelty import DISTANCE, NoveltyDetector, fit_novelty_detector
from rlm_core.training.corpus import Corpus
from rlm_core.training.student.export import export_encoder
from rlm_core.training.student.finish import encode_all, texts_by_prefix
from rlm_core.training.student.network import Student, StudentConfig
from rlm_core.training.student.train import _thinned

from tests.rlm_core.training.conftest import Trained

SIZES = StudentConfig(vocabulary=64, width=16, layers=1, heads=2, hidden=24, context=32, head_hidden=16)


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_thinning_keeps_at_most_so_many_rows_of_a_slice_and_split(mixed_corpus: Corpus, most: int) -> None:
    kept = _thinned(mixed_corpus, most, seed=0)
    assert np.all(np.diff(kept) > 0)
    thinned = mixed_corpus.rows.chosen(kept)
    for split in np.unique(mixed_corpus.rows.split):
        for number in range(len(mixed_corpus.tasks)):
            had = np.sum((mixed_corpus.rows.split == split) & (mixed_corpus.rows.task == number))
            has = np.sum((thinned.split == split) & (thinned.task == number))
            assert has == min(most, had)
    assert _thinned(mixed_corpus, most, seed=0).tolist() == kept.tolist()


def test_every_text_is_encoded_by_the_exported_encoder(tmp_path: Path) -> None:
    student = Student(SIZES).eval()
    export_encoder(student, tmp_path / "encoder.onnx")
    ids = [np.arange(5, 5 + length, dtype=np.int32) for length in (3, 20, 7)]
    bank = encode_all(tmp_path / "encoder.onnx", ids)
    assert bank.known.all()
    session = open_session(tmp_path / "encoder.onnx")
    for vector, text in zip(bank.vectors.numpy(), ids, strict=True):
        assert vector.tolist() == encode(session, text).tolist()


def test_distances_are_fitted_by_language_and_basis(mixed_corpus: Corpus, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(mixed_corpus.texts), 8)).astype(np.float32)
    parts = texts_by_prefix(mixed_corpus, vectors)
    fit_novelty_detector(parts["train"], parts["cal"]).save(tmp_path / DISTANCE)
    found = NoveltyDetector.load(tmp_path / DISTANCE)
    assert sorted(found.regions) == mixed_corpus.prefixes()
    train = mixed_corpus.rows.text[mixed_corpus.rows.split == "train"]
    mine = np.intersect1d(train, mixed_corpus.rows.text[mixed_corpus.rows_of("kernel/triton")])
    np.testing.assert_allclose(found.regions["kernel/triton"].mean, vectors[mine].mean(axis=0), atol=1e-5)


def test_the_trained_directory_names_its_files_and_slices(trained: Trained) -> None:
    card = read_card(trained.directory)
    [kernels] = [entry for entry in card.tasks if entry.name.startswith("kernel/")]
    assert (kernels.intercept, kernels.calendar) == (0.0, ())
    assert kernels.scale.floor == 0
    assert sorted(NoveltyDetector.load(trained.directory / DISTANCE).regions) == [
        *("call/python", "kernel/triton", "program/java")
    ]
