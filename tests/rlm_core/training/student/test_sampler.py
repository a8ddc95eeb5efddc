"""The sampler: every text in turn, no basis above its share, and what all epochs read together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from rlm_core.training.student.config import LoopConfig
from rlm_core.training.student.sampler import Sampler
from rlm_core.training.student.task import Task

BASES = ("call", "program")
# Few texts a basis, so that none comes several times an epoch.
CONFIG = LoopConfig(epochs=2, texts_a_basis=dict.fromkeys(BASES, 8))


def with_share(most: int) -> LoopConfig:
    return replace(CONFIG, texts_a_basis=dict.fromkeys(BASES, most))


def test_every_training_text_is_read_before_one_comes_again(task: Task) -> None:
    sampler = Sampler(task, CONFIG)
    sampler.groups = [np.arange(4), np.arange(4, 13)]
    read = Counter(int(place) for epoch in range(6) for place in sampler.sample(epoch))
    assert read == dict.fromkeys(range(4), 3) | dict.fromkeys(range(4, 13), 2)


def test_no_basis_takes_more_than_its_share_of_an_epoch(task: Task) -> None:
    sampler = Sampler(task, with_share(3))
    for epoch in range(4):
        sample = sampler.sample(epoch)
        taken = Counter(str(task.basis[sampler.rows_of[place][0]]) for place in sample)
        assert taken["call"] == 3
        assert taken["program"] <= 3
        assert len(set(sample.tolist())) == len(sample)


def test_a_small_basis_comes_several_times(task: Task) -> None:
    assert set(Counter(Sampler(task, with_share(10_000)).sample(0).tolist()).values()) == {4}


def test_the_sample_of_an_epoch_is_always_the_same(task: Task) -> None:
    first, second = Sampler(task, with_share(3)), Sampler(task, with_share(3))
    assert [first.sample(epoch).tolist() for epoch in (1, 0)] == [second.sample(epoch).tolist() for epoch in (1, 0)]


def test_what_is_read_are_the_training_rows_of_the_texts_of_all_epochs(task: Task) -> None:
    sampler = Sampler(task, with_share(2))
    texts = {int(sampler.texts[place]) for epoch in range(CONFIG.epochs) for place in sampler.sample(epoch)}
    read = sampler.read()
    assert set(task.split[read]) == {"train"}
    assert set(task.inputs.text.numpy()[read].tolist()) == texts
    train = np.flatnonzero(task.split == "train")
    mine = np.isin(task.inputs.text.numpy()[train], list(texts))
    assert read.tolist() == train[mine].tolist()
    assert len(read) < len(train)
