"""Batches: every text once within the token budget, and the head's inputs from a bank of vectors."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.inference.tokenizer import PAD
from rlm_core.queries.query_vector import QUERY, query_vector
from rlm_core.source.syntax_counts import FACTS, NAMES, structure
from rlm_core.training.corpus import Corpus
from rlm_core.training.student.batches import (
    EncoderData,
    Sampler,
    head_inputs,
    pad,
    pool_callees,
    token_batches,
)
from rlm_core.training.student.config import EncoderFitConfig

lengths = st.lists(st.integers(1, 512), min_size=1, max_size=60).map(np.array)


def padded(length: int) -> int:
    return -(-length // 16) * 16


@given(lengths, st.integers(16, 4096), st.one_of(st.none(), st.integers(0, 99)))
def test_every_text_is_in_one_batch(
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]], budget: int, seed: int | None
) -> None:
    rng = None if seed is None else np.random.default_rng(seed)
    batches = list(token_batches(sizes, budget, rng))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sizes)))


@given(lengths, st.integers(16, 4096))
def test_a_batch_keeps_to_its_budget_unless_it_is_one_text(
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]], budget: int
) -> None:
    for batch in token_batches(sizes, budget):
        assert len(batch) == 1 or padded(int(sizes[batch].max())) * len(batch) <= budget


def test_the_same_generator_gives_the_same_batches_in_another_order_than_none() -> None:
    sizes = np.random.default_rng(0).integers(1, 300, 200)
    first, second = (
        [batch.tolist() for batch in token_batches(sizes, 1024, np.random.default_rng(7))] for _ in range(2)
    )
    assert first == second
    assert first != [batch.tolist() for batch in token_batches(sizes, 1024)]


def test_padding_is_masked() -> None:
    ids, mask = pad([np.array([3, 4, 5], np.int32), np.arange(20, dtype=np.int32)])
    assert ids.shape == mask.shape == (2, 32)
    assert ids[0].tolist() == [3, 4, 5] + [PAD] * 29
    assert mask.sum(1).tolist() == [3, 20]


def test_the_heads_inputs_are_those_of_use(mixed_corpus: Corpus) -> None:
    rows = mixed_corpus.rows
    counts = np.stack([structure(*entry) for entry in mixed_corpus.texts])
    lengths = np.array([len(text) for text, _ in mixed_corpus.texts])
    inputs = head_inputs(mixed_corpus, counts, lengths, np.arange(len(rows)) / 2.0, np.zeros(len(rows)))
    assert inputs.facts.shape == (len(rows), FACTS)
    assert inputs.query.shape == (len(rows), QUERY)
    assert inputs.wide.tolist() == [number / 2 for number in range(len(rows))]
    for row in (0, 3, 60, len(rows) - 1):
        device, workload = mixed_corpus.queries[rows.query[row]]
        assert inputs.query[row].tolist() == query_vector(device, workload).tolist()
        assert inputs.facts[row, -len(NAMES) :].tolist() == counts[rows.text[row]].tolist()
        assert float(inputs.facts[row, 0]) == pytest.approx(np.log1p(lengths[rows.text[row]]))
        assert float(inputs.facts[row, 1]) == pytest.approx(np.log1p(np.count_nonzero(rows.callees[row, 0] >= 0)))
    some = inputs.rows(torch.tensor([5, 2]))
    assert some.wide.tolist() == [2.5, 1.0]
    assert some.query.shape == (2, QUERY)


def test_callees_are_pooled_by_level() -> None:
    bank, known = torch.tensor([[1.0, 5.0], [3.0, 1.0], [7.0, 7.0]]), torch.tensor([True, True, True])
    pooled, counts = pool_callees(bank, known, torch.tensor([[[0, 1, -1], [2, -1, -1]]]))
    assert counts.tolist() == [[2, 1]]
    # Level 1: mean, maximum; level 2: mean, maximum.
    assert pooled.tolist() == [[2.0, 3.0, 3.0, 5.0, 7.0, 7.0, 7.0, 7.0]]


def test_no_callees_are_zeros() -> None:
    pooled, counts = pool_callees(torch.ones(2, 3), torch.tensor([True, True]), torch.full((1, 2, 4), -1))
    assert not pooled.any()
    assert not counts.any()


def test_a_callee_without_a_vector_yet_counts_as_absent() -> None:
    bank, known = torch.tensor([[1.0], [9.0]]), torch.tensor([True, False])
    pooled, counts = pool_callees(bank, known, torch.tensor([[[0, 1], [1, -1]]]))
    assert pooled.tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert counts.tolist() == [[1, 0]]


BASES = ("call", "program")
# Few texts a basis, so that none comes several times an epoch.
CONFIG = EncoderFitConfig(epochs=2, texts_per_basis=dict.fromkeys(BASES, 8))


def with_share(most: int) -> EncoderFitConfig:
    return replace(CONFIG, texts_per_basis=dict.fromkeys(BASES, most))


def test_every_training_text_is_read_before_one_comes_again(task: EncoderData) -> None:
    sampler = Sampler(task, CONFIG)
    sampler.groups = [np.arange(4), np.arange(4, 13)]
    read = Counter(int(place) for epoch in range(6) for place in sampler.sample(epoch))
    assert read == dict.fromkeys(range(4), 3) | dict.fromkeys(range(4, 13), 2)


def test_no_basis_takes_more_than_its_share_of_an_epoch(task: EncoderData) -> None:
    sampler = Sampler(task, with_share(3))
    for epoch in range(4):
        sample = sampler.sample(epoch)
        taken = Counter(str(task.basis[sampler.rows_of[place][0]]) for place in sample)
        assert taken["call"] == 3
        assert taken["program"] <= 3
        assert len(set(sample.tolist())) == len(sample)


def test_a_small_basis_comes_several_times(task: EncoderData) -> None:
    assert set(Counter(Sampler(task, with_share(10_000)).sample(0).tolist()).values()) == {4}


def test_the_sample_of_an_epoch_is_always_the_same(task: EncoderData) -> None:
    first, second = Sampler(task, with_share(3)), Sampler(task, with_share(3))
    assert [first.sample(epoch).tolist() for epoch in (1, 0)] == [second.sample(epoch).tolist() for epoch in (1, 0)]


def test_what_is_read_are_the_training_rows_of_the_texts_of_all_epochs(task: EncoderData) -> None:
    sampler = Sampler(task, with_share(2))
    texts = {int(sampler.texts[place]) for epoch in range(CONFIG.epochs) for place in sampler.sample(epoch)}
    read = sampler.read()
    assert set(task.split[read]) == {"train"}
    assert set(task.inputs.text.numpy()[read].tolist()) == texts
    train = np.flatnonzero(task.split == "train")
    mine = np.isin(task.inputs.text.numpy()[train], list(texts))
    assert read.tolist() == train[mine].tolist()
    assert len(read) < len(train)
