"""Cropping, batching and padding of texts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference import tokenizer
from rlm_core.training.full.encoders.base import crop, length_batches, load_encoder, marked, pad

LENGTHS = st.lists(st.integers(1, 400), min_size=1, max_size=60)


@given(st.integers(0, 300), st.integers(1, 300))
def test_a_crop_keeps_start_and_end_and_counts_the_rest(tokens: int, length: int) -> None:
    ids = list(range(tokens))
    kept, lost = crop(ids, length)
    assert kept.dtype == np.int64
    assert len(kept) + lost == tokens
    assert len(kept) == min(tokens, length)
    assert kept.tolist() == tokenizer.crop(np.array(ids, np.int32), length)[0].tolist()
    gaps = np.flatnonzero(np.diff(kept) != 1)
    assert len(gaps) <= 1
    if tokens > 0 and length > 1:
        assert kept[0] == 0
        assert kept[-1] == tokens - 1


@given(LENGTHS, st.integers(1, 2000))
def test_batches_hold_each_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths)
    batches = list(length_batches(sizes, budget))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * sizes[batch].max() <= budget
    longest = [int(sizes[batch].max()) for batch in batches]
    shortest = [int(sizes[batch].min()) for batch in batches]
    assert all(low >= high for low, high in zip(shortest, longest[1:], strict=False))


def test_shuffled_batches_differ_but_a_seed_repeats_them() -> None:
    sizes = np.random.default_rng(0).integers(1, 300, 200)

    def draw(seed: int) -> list[list[int]]:
        return [batch.tolist() for batch in length_batches(sizes, 1000, np.random.default_rng(seed))]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert sorted(index for batch in draw(1) for index in batch) == list(range(200))


@given(LENGTHS)
def test_padding_reaches_the_longest_text_and_is_masked(lengths: list[int]) -> None:
    texts = [np.arange(1, length + 1) for length in lengths]
    ids, mask = pad(texts, pad_id=-5)
    assert ids.shape == mask.shape == (len(lengths), max(lengths))
    assert mask.sum(1).tolist() == lengths
    for row, kept, text in zip(ids, mask, texts, strict=True):
        assert row[kept].tolist() == text.tolist()
        assert (row[~kept] == -5).all()


def test_a_language_precedes_its_text() -> None:
    assert marked("x = 1", "python") == "<python>x = 1"


def test_a_directory_without_an_encoder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"encoder\.json: cannot be read"):
        load_encoder(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"kind": "other"})])
def test_settings_of_no_known_encoder_are_one_clear_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "encoder.json").write_text(text)
    with pytest.raises(ModelError, match=r"must be one of .*scratch, t5gemma"):
        load_encoder(tmp_path)
