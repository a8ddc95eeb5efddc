"""The tokenizer: every text has ids, and the layout of code costs few of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference import tokenizer
from rlm_core.inference.tokenizer import PAD, Tokenizer, crop
from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES
from rlm_core.source.onnx_graph.graph import SYMBOLS

UNKNOWN = 1


@given(text=st.text(), language=st.sampled_from(sorted(LANGUAGES)))
def test_any_text_has_ids_within_the_vocabulary(small_tokenizer: Tokenizer, text: str, language: str) -> None:
    ids = small_tokenizer.encode(canonical(text, language), language)
    assert len(ids) >= 1
    assert 0 <= ids.min() <= ids.max() < small_tokenizer.size


@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1))
def test_no_text_is_unknown_or_padding(small_tokenizer: Tokenizer, text: str) -> None:
    ids = small_tokenizer.encode(text, "python")
    assert UNKNOWN not in ids
    assert PAD not in ids


def test_a_text_opens_with_its_languages_token(small_tokenizer: Tokenizer) -> None:
    firsts = {int(small_tokenizer.encode("x", language)[0]) for language in LANGUAGES}
    assert len(firsts) == len(LANGUAGES)
    assert UNKNOWN not in firsts


@pytest.mark.parametrize("levels", range(7))
def test_a_line_end_and_the_indentation_after_it_are_one_token(small_tokenizer: Tokenizer, levels: int) -> None:
    joined = small_tokenizer.encode("a\n" + "\t" * levels + "a", "python")
    assert len(joined) == 4  # language, a, line end with indentation, a


def test_deeper_indentation_costs_a_token_a_level(small_tokenizer: Tokenizer) -> None:
    assert len(small_tokenizer.encode("a\n" + "\t" * 8 + "a", "python")) == 6


def test_digits_are_separate(small_tokenizer: Tokenizer) -> None:
    # The language's token, then a token a digit.
    assert len(small_tokenizer.encode("1234567890", "python")) in (11, 12)


def test_an_operator_of_a_network_is_one_token(small_tokenizer: Tokenizer) -> None:
    for symbol in SYMBOLS:
        assert len(small_tokenizer.encode(symbol, "onnx")) == 2, symbol
        assert len(small_tokenizer.encode(f"{symbol}·Relu", "onnx")) == 3, symbol


def test_names_of_operators_do_not_tear_words_of_other_languages(small_tokenizer: Tokenizer) -> None:
    symbols = {int(small_tokenizer.encode(symbol, "onnx")[1]) for symbol in SYMBOLS}
    assert not symbols & set(small_tokenizer.encode("Address Relu(Conv)", "c").tolist())


def test_training_is_reproducible() -> None:
    texts = [f"def f{number}(x):\n\treturn x * {number}" for number in range(200)]
    assert tokenizer.train(texts, 520, seed=3).model == tokenizer.train(texts, 520, seed=3).model


def test_a_saved_model_reads_the_same(small_tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(small_tokenizer.model)
    text = "def f(x):\n\treturn x"
    loaded = Tokenizer.load(path)
    assert loaded.size == small_tokenizer.size
    assert loaded.encode(text, "python").tolist() == small_tokenizer.encode(text, "python").tolist()


@pytest.mark.parametrize("content", [None, b"", b"not a model", b"\x80\x04\x95"])
def test_a_bad_model_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.model"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer\.model"):
        Tokenizer.load(path)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=60), st.integers(4, 50))
def test_cropping_keeps_the_start_and_the_end(values: list[int], length: int) -> None:
    ids = np.array(values, dtype=np.int32)
    kept, truncated = crop(ids, length)
    assert truncated == (len(ids) > length)
    assert len(kept) == min(len(ids), length)
    if truncated:
        head = int(length * 0.75)
        assert kept[:head].tolist() == values[:head]
        assert kept[head:].tolist() == values[len(values) - (length - head) :]
    else:
        assert kept.tolist() == values
