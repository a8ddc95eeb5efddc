"""What an encoder reads without labels: everything but what it is judged on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rlm_core.training.corpus import Corpus
from rlm_core.training.datasets.texts import SCHEMA
from rlm_core.training.student.pretraining_texts import pretraining_texts

pytestmark = pytest.mark.extras


def held_out(corpus: Corpus) -> list[tuple[str, str]]:
    """The texts of rows outside the split train."""
    return [corpus.texts[text] for text in np.unique(corpus.rows.text[corpus.rows.split != "train"])]


def file_of(folder: Path, *texts: tuple[str, str]) -> Path:
    """A file of texts."""
    columns = {"text": [text for text, _ in texts], "language": [language for _, language in texts]}
    pq.write_table(pa.table(columns, schema=SCHEMA), folder / "texts.parquet")
    return folder / "texts.parquet"


def test_training_texts_and_files_are_read_but_none_that_is_held_out(tmp_path: Path, mixed_corpus: Corpus) -> None:
    new = ("def new(x):\n\treturn x", "python")
    found = pretraining_texts(mixed_corpus, [file_of(tmp_path, held_out(mixed_corpus)[0], new, new)])
    training = {mixed_corpus.texts[text] for text in mixed_corpus.rows.text[mixed_corpus.rows.split == "train"]}
    assert set(found) >= {new, *training} - set(held_out(mixed_corpus))
    assert not set(found) & set(held_out(mixed_corpus))
    called = mixed_corpus.rows.callees[mixed_corpus.rows.split != "train"]
    assert not set(found) & {mixed_corpus.texts[text] for text in called[called >= 0]}
    assert len(found) == len(set(found))


def test_a_held_out_function_is_recognised_under_other_names_and_layout(tmp_path: Path, mixed_corpus: Corpus) -> None:
    text = next(text for text, language in held_out(mixed_corpus) if language == "python")
    renamed = text.replace("items", "things"), "python"
    commented = text.replace("\n", "  # as written\n", 1), "python"
    assert len({text, renamed[0], commented[0]}) == 3
    found = pretraining_texts(mixed_corpus, [file_of(tmp_path, renamed, commented)])
    assert not {renamed, commented} & set(found)


def test_the_same_texts_are_found_by_several_processes(
    tmp_path: Path, mixed_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(tmp_path, held_out(mixed_corpus)[0], ("def new(x):\n\treturn x", "python"))
    expected = pretraining_texts(mixed_corpus, [path])
    monkeypatch.setattr("rlm_core.training.student.pretraining_texts._CHUNK", 10)
    assert pretraining_texts(mixed_corpus, [path]) == expected
