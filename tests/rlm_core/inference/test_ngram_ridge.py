"""The wide part: hashed n-grams of token ids and words, summed up to a few numbers a text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import ModelError
from rlm_core.inference import ngram_ridge
from rlm_core.inference.ngram_ridge import MAX_TOKENS, NgramRidge, bag, calendar, code_weights, combine, tfidf, words_of
from safetensors.numpy import save_file

BITS = 8
NO_WORDS = words_of("")
Ids = npt.NDArray[np.int32]


def ids_of(values: list[int]) -> Ids:
    return np.array(values, dtype=np.int32)


def some_slice(roles: int = 3) -> NgramRidge:
    rng = np.random.default_rng(0)
    idf = rng.uniform(0.5, 2, 1 << BITS).astype(np.float32)
    return code_weights(idf, rng.normal(size=(roles, 2, 1 << BITS)).astype(np.float32))


token_ids = st.lists(st.integers(0, 8191), min_size=1, max_size=40).map(ids_of)


@given(token_ids, st.integers(4, 20))
def test_buckets_ascend_within_the_hash_width(ids: Ids, bits: int) -> None:
    found = bag(ids, NO_WORDS, bits)
    assert 0 <= found.buckets[0] <= found.buckets[-1] < 1 << bits
    assert np.all(np.diff(found.buckets) > 0)
    assert np.all(found.weights >= 1)


def test_the_order_of_tokens_counts() -> None:
    assert (
        bag(ids_of([1, 2, 3]), NO_WORDS, 18).buckets.tolist() != bag(ids_of([3, 2, 1]), NO_WORDS, 18).buckets.tolist()
    )


def test_one_token_has_no_bigram() -> None:
    assert len(bag(ids_of([7]), NO_WORDS, 18).buckets) == 1


def test_words_make_up_to_trigrams() -> None:
    assert len(bag(ids_of([]), words_of("one two three"), 20).buckets) == 6


def test_words_are_identifiers_whole_and_signs_alone() -> None:
    assert len(words_of("push_back(x2);")) == 5
    assert words_of("x\n\ty").tolist() == words_of("x y").tolist()


def test_a_word_and_a_token_id_of_the_same_number_differ() -> None:
    word = words_of("x")
    assert bag(ids_of([]), word, 20).buckets.tolist() != bag(word.astype(np.int64), NO_WORDS, 20).buckets.tolist()


def test_repeats_count_by_their_logarithm() -> None:
    assert bag(ids_of([7, 7, 7, 7]), NO_WORDS, 18).weights.max() == pytest.approx(1 + np.log(4))


def test_text_beyond_the_token_limit_is_not_read() -> None:
    long = np.arange(MAX_TOKENS + 100, dtype=np.int32) % 50
    assert bag(long, NO_WORDS, 18).weights.tolist() == bag(long[:MAX_TOKENS], NO_WORDS, 18).weights.tolist()


@given(token_ids)
def test_a_weighted_bag_has_unit_length(ids: Ids) -> None:
    assert np.linalg.norm(tfidf(bag(ids, NO_WORDS, BITS), some_slice().idf).weights) == pytest.approx(1, abs=1e-5)


def test_a_text_of_unknown_n_grams_adds_nothing() -> None:
    blind = replace(some_slice(), idf=np.zeros(1 << BITS, np.float32))
    assert np.all(blind.contributions(ids_of([1, 2, 3]), NO_WORDS) == 0)


def test_contributions_have_a_number_a_role_and_metric() -> None:
    found = some_slice(roles=2).contributions(ids_of([1, 2, 3]), NO_WORDS)
    assert found.shape == (2, 2)
    assert found.dtype == np.float32


def test_callees_count_by_the_square_root_of_their_number() -> None:
    own, callee = np.zeros((3, 2), np.float32), np.ones((3, 2), np.float32)
    assert combine(own, [callee] * 4, []).tolist() == [2.0, 2.0]
    assert combine(own, [callee] * 4, [callee]).tolist() == [3.0, 3.0]


def test_without_roles_for_callees_only_the_text_counts() -> None:
    own = np.full((1, 2), 5, np.float32)
    assert combine(own, [np.ones((1, 2), np.float32)], []).tolist() == [5.0, 5.0]


def test_combining_leaves_its_inputs_alone() -> None:
    own, callee = np.zeros((3, 2), np.float32), np.ones((3, 2), np.float32)
    combine(own, [callee], [callee])
    assert not own.any()


@given(st.integers(0, 2**32), st.floats(1e-6, 1e3), token_ids)
def test_eight_bits_keep_a_prediction_within_what_the_squares_of_codes_lose(seed: int, scale: float, ids: Ids) -> None:
    rng = np.random.default_rng(seed)
    idf = rng.uniform(0.5, 2, 1 << BITS).astype(np.float32)
    weights = (rng.standard_t(2, (3, 2, 1 << BITS)) * scale).astype(np.float32)
    part = code_weights(idf, weights)
    unit = tfidf(bag(ids, NO_WORDS, BITS), idf)
    exact = weights[:, :, unit.buckets] @ unit.weights
    # A root is rounded by half a code at most, so its square by 2 * root * half + half ** 2 of the largest weight.
    half = 0.5 / 127
    share = np.abs(weights[:, :, unit.buckets]) / part.largest[:, :, None]
    lost = (2 * np.sqrt(share) * half + half**2) * part.largest[:, :, None]
    assert np.all(np.abs(part.contributions(ids, NO_WORDS) - exact) <= lost @ unit.weights + 1e-4 * part.largest)


def test_the_largest_weight_is_kept_and_no_weight_stays_none() -> None:
    weights = np.zeros((1, 2, 1 << BITS), np.float32)
    weights[0, 0, 3] = -0.25
    part = code_weights(np.ones(1 << BITS, np.float32), weights)
    assert part.codes.dtype == np.int8
    assert part.codes[0, 0, 3] == -127
    assert part.largest[0, 0] == np.float32(0.25)
    assert np.count_nonzero(part.codes) == 1


@given(st.floats(2020.5, 2027))
def test_the_calendar_shares_a_date_between_its_neighbours(date: float) -> None:
    [weights] = calendar([date])
    assert weights.sum() == pytest.approx(1, abs=1e-4)
    assert np.count_nonzero(weights) <= 2


def test_no_date_is_no_place_in_the_calendar() -> None:
    assert not calendar([0.0]).any()


def test_saved_slices_are_read_back(tmp_path: Path) -> None:
    path, before = tmp_path / "wide.safetensors", some_slice()
    ngram_ridge.save({"call/python": before, "program/go": some_slice(roles=1)}, path)
    after = ngram_ridge.load(path)
    assert sorted(after) == ["call/python", "program/go"]
    assert np.array_equal(after["call/python"].codes, before.codes)
    assert after["call/python"].bits == BITS
    ids = ids_of([1, 2, 3, 4])
    np.testing.assert_allclose(
        after["call/python"].contributions(ids, NO_WORDS), before.contributions(ids, NO_WORDS), atol=0.01
    )


def test_parts_of_a_file_are_read_when_they_are_used_even_if_the_file_is_gone_by_then(tmp_path: Path) -> None:
    path = tmp_path / "wide.safetensors"
    ngram_ridge.save({"call/python": some_slice(), "program/go": some_slice(roles=1)}, path)
    parts = ngram_ridge.load(path)
    path.unlink()
    assert len(parts) == 2
    assert parts["program/go"] is parts["program/go"]
    assert "program/c" not in parts


@pytest.mark.parametrize(
    "change",
    [
        {"idf": np.ones(4, np.float32)},
        {"codes": np.zeros((1, 2, 8), np.int8)},
        {"codes": np.zeros((2, 4), np.int8)},
        {"largest": np.ones((2, 2), np.float32)},
    ],
)
def test_a_file_with_other_types_or_shapes_is_named(tmp_path: Path, change: dict[str, npt.NDArray[Any]]) -> None:
    path = tmp_path / "wide.safetensors"
    right: dict[str, npt.NDArray[Any]] = {
        "idf": np.ones(4, np.float16),
        "codes": np.zeros((1, 2, 4), np.int8),
        "largest": np.ones((1, 2), np.float32),
    }
    save_file({f"call/python/{name}": array for name, array in right.items()}, path)
    assert list(ngram_ridge.load(path)) == ["call/python"]
    save_file({f"call/python/{name}": array for name, array in (right | change).items()}, path)
    with pytest.raises(ModelError, match=r"wide\.safetensors: missing or corrupt \(call/python has other"):
        ngram_ridge.load(path)


def test_a_file_without_a_part_of_a_slice_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wide.safetensors"
    save_file({"call/python/idf": np.ones(4, np.float16)}, path)
    with pytest.raises(ModelError, match=r"wide\.safetensors: missing or corrupt"):
        ngram_ridge.load(path)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\x08\0\0\0\0\0\0\0{]      "])
def test_a_bad_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "wide.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"wide\.safetensors"):
        ngram_ridge.load(path)
