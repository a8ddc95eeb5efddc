"""The last stage: the head on finished encodings, and calibration on families that its head never saw."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from rlm_core.inference.calibration import Scale, fit_scale
from rlm_core.source.syntax_counts import structure
from rlm_core.training.corpus import Corpus, floor_of
from rlm_core.training.losses import soft_cross_entropy
from rlm_core.training.student import head_fit
from rlm_core.training.student.batches import head_inputs, pool_callees
from rlm_core.training.student.config import EncoderFitConfig
from rlm_core.training.student.encoder_fit import Bank
from rlm_core.training.student.head_fit import (
    Features,
    as_dropped,
    calibrate,
    drop_encoder,
    fit_head,
    needed,
    probabilities,
)
from rlm_core.training.student.network import Deep, Head, StudentConfig

SIZES = StudentConfig(vocabulary=64, width=16, layers=1, heads=2, hidden=24, context=32, head_hidden=16, slices=4)
CONFIG = EncoderFitConfig(head_epochs=30, head_learning_rate=0.01)
Rows = npt.NDArray[np.int64]


@pytest.fixture(scope="module")
def scales(corpus: Corpus) -> list[Scale]:
    """A scale a task."""
    return [
        fit_scale(corpus.rows.value[corpus.rows.task == number], floor_of(name))
        for number, name in enumerate(corpus.tasks)
    ]


@pytest.fixture(scope="module")
def features(corpus: Corpus, scales: list[Scale]) -> Features:
    """Random vectors for the texts; the wide part knows the values but for some noise."""
    rng = np.random.default_rng(0)
    position = np.zeros(len(corpus.rows))
    for number, scale in enumerate(scales):
        mine = corpus.rows.task == number
        position[mine] = scale.position(corpus.rows.value[mine])
    wide = np.maximum(position + rng.normal(0, 3, len(position)), 0)
    vectors = torch.from_numpy(rng.normal(size=(len(corpus.texts), SIZES.width)).astype(np.float32))
    bank = Bank(vectors, torch.ones(len(vectors), dtype=torch.bool))
    lengths = np.array([len(text) for text, _ in corpus.texts])
    counts = np.stack([structure(*entry) for entry in corpus.texts])
    return Features.build(head_inputs(corpus, counts, lengths, wide, position), bank)


def rows_of(corpus: Corpus, split: str) -> Rows:
    return np.flatnonzero(corpus.rows.split == split)


def test_callees_are_pooled_as_in_training(features: Features, corpus: Corpus) -> None:
    known = torch.ones(len(corpus.texts), dtype=torch.bool)
    pooled, counts = pool_callees(features.vectors, known, features.inputs.callees)
    torch.testing.assert_close(features.callees.float(), pooled, atol=2e-3, rtol=2e-3)
    assert torch.equal(features.counts, counts)


def loss(features: Features, head: Head, rows: Rows) -> float:
    """Mean cross-entropy of a head, in nats."""
    chosen = torch.from_numpy(rows)
    with torch.inference_mode():
        return float(
            soft_cross_entropy(features.logits(head.eval(), chosen), features.inputs.target[chosen], CONFIG.label_sigma)
        )


def test_fitting_lowers_the_loss_on_held_out_rows(features: Features, corpus: Corpus) -> None:
    train, val, test = (rows_of(corpus, split) for split in ("train", "val", "test"))
    torch.manual_seed(0)
    fitted, reached = fit_head(features, train, val, SIZES, CONFIG)
    assert reached == pytest.approx(loss(features, fitted, val), abs=1e-4)
    assert loss(features, fitted, train) < loss(features, Head(SIZES), train) - 0.1
    # Knowing nothing costs log(outcomes).
    assert loss(features, fitted, test) < math.log(SIZES.outcomes) - 0.5


def test_encodings_that_say_nothing_do_little_harm(features: Features, corpus: Corpus) -> None:
    train, val, test = (rows_of(corpus, split) for split in ("train", "val", "test"))
    fitted, _ = fit_head(features, train, val, SIZES, CONFIG)
    blind = copy.deepcopy(fitted)
    with torch.no_grad():
        blind.weight.zero_()
    assert loss(features, fitted, test) < loss(features, blind, test) + 0.3


def test_a_task_keeps_the_encoder_only_where_it_ranks_better(
    features: Features, corpus: Corpus, scales: list[Scale], monkeypatch: pytest.MonkeyPatch
) -> None:
    train, val = rows_of(corpus, "train"), rows_of(corpus, "val")
    fitted, _ = fit_head(features, train, val, SIZES, CONFIG)

    def after(gain: float) -> tuple[Head, dict[str, float]]:
        monkeypatch.setattr(head_fit, "_LEAST_GAIN", gain)
        head = copy.deepcopy(fitted)
        return head, drop_encoder(features, head, corpus, scales, val)

    kept, gains = after(-2.0)
    assert torch.equal(kept.weight, fitted.weight)
    dropped, same = after(2.0)
    assert same == gains
    numbers = {name: number for number, name in enumerate(corpus.tasks)}
    assert all(dropped.weight[numbers[name]] == 0 for name in gains)
    # A task that gains keeps the encoder for the other metric of its texts as well.
    least = sorted(gains.values())[len(gains) // 2]
    partly, _ = after(least)
    read = {name.rpartition("/")[0] for name in gains if partly.weight[numbers[name]] > 0}
    assert read == {name.rpartition("/")[0] for name, gain in gains.items() if gain >= least}


def test_evidence_that_a_task_does_without_is_none(features: Features, corpus: Corpus) -> None:
    head = Head(SIZES)
    with torch.no_grad():
        head.weight[:] = torch.tensor([0.0, 0.5, 0.0, 0.5])
    tasks = torch.tensor([0, 1, 2, 3])
    assert needed(head, tasks, torch.ones(4, 3)).tolist() == [[0.0] * 3, [1.0] * 3, [0.0] * 3, [1.0] * 3]
    other = copy.deepcopy(head)
    with torch.no_grad():
        other.weight[:] = 1.0
    assert as_dropped(other, head).weight.tolist() == [0.0, 1.0, 0.0, 1.0]


def test_a_deep_part_that_is_given_is_kept(features: Features, corpus: Corpus) -> None:
    torch.manual_seed(7)
    deep = Deep(SIZES)
    head, _ = fit_head(features, rows_of(corpus, "train"), rows_of(corpus, "val"), SIZES, CONFIG, deep=deep)
    for before, after in zip(deep.parameters(), head.deep.parameters(), strict=True):
        assert torch.equal(before, after)


def test_the_same_seed_gives_the_same_head(features: Features, corpus: Corpus) -> None:
    train, val = rows_of(corpus, "train"), rows_of(corpus, "val")
    first, second = (fit_head(features, train, val, SIZES, CONFIG)[0] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_distributions_sum_to_1_with_no_mass_at_a_floor_that_is_none(
    features: Features, corpus: Corpus, scales: list[Scale]
) -> None:
    torch.manual_seed(0)
    found = probabilities(features, Head(SIZES), np.arange(len(corpus.rows)), scales)
    np.testing.assert_allclose(found.sum(1), 1)
    floorless = np.array([scales[number].floor == 0 for number in corpus.rows.task])
    assert np.all(found[floorless, 0] == 0)
    assert np.all(found[~floorless, 0] > 0)


@pytest.mark.parametrize(("enough", "splits"), [(1, {"cal"}), (100, {"cal", "train"})])
def test_a_family_is_calibrated_by_a_head_that_never_saw_it(
    features: Features,
    corpus: Corpus,
    scales: list[Scale],
    monkeypatch: pytest.MonkeyPatch,
    enough: int,
    splits: set[str],
) -> None:
    # A language with fewer families than are enough is calibrated on its training rows too.
    monkeypatch.setattr(head_fit, "_FEW_FAMILIES", enough)
    train, val = rows_of(corpus, "train"), rows_of(corpus, "val")
    seen: dict[int, set[str]] = {}
    score = head_fit.probabilities
    checked: list[str] = []

    def fitting(train: Any, val: Any) -> Head:
        head, _ = fit_head(features, train, val, SIZES, CONFIG)
        seen[id(head)] = set(corpus.rows.family[train]) | set(corpus.rows.family[val])
        return head

    def scoring(features: Features, head: Head, rows: Any, scales: list[Scale]) -> Any:
        families = set(corpus.rows.family[rows])
        assert not families & seen[id(head)]
        checked.extend(families)
        return score(features, head, rows, scales)

    monkeypatch.setattr(head_fit, "probabilities", scoring)
    calibrate(features, corpus, fitting(train, val), scales, fitting)
    assert set(checked) == set(corpus.rows.family[np.isin(corpus.rows.split, list(splits))])


def test_the_weight_of_the_evidence_is_drawn_to_the_mean_of_all(features: Features, corpus: Corpus) -> None:
    # Held-out rows of one task only: the others take its weight.
    val = rows_of(corpus, "val")
    val = val[corpus.rows.task[val] == 0]
    head, _ = fit_head(features, rows_of(corpus, "train"), val, SIZES, CONFIG)
    assert torch.all(head.weight >= 0)
    torch.testing.assert_close(head.weight, head.weight.mean().expand(4), atol=0.05, rtol=0.2)


def test_calibrated_levels_are_numbers_even_for_little_data(
    features: Features, corpus: Corpus, scales: list[Scale]
) -> None:
    # All validation rows of one family: without its fold there are none.
    rows = corpus.rows
    alone = np.where((rows.split == "val") & (rows.family != "package2"), "train", rows.split)
    assert "val" in alone
    little = replace(corpus, rows=replace(rows, split=alone))

    def fitted(train: Any, val: Any) -> Head:
        return fit_head(features, train, val, SIZES, CONFIG)[0]

    head = fitted(rows_of(little, "train"), rows_of(little, "val"))
    levels = calibrate(features, little, head, scales, fitted).to_json()
    assert {"call", "program", "call/latency", "call/python/memory"} <= levels.keys()
    for level in levels.values():
        assert all(0 <= value < 1 for value in level["levels"])
