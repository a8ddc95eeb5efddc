"""Quantiles, samples and probabilities of values, against each other and against writing all numbers down."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch
from rlm_core.errors import DataError, ModelError
from rlm_core.training.full.decoder import NumberQuery
from rlm_core.training.full.decoding import _nucleus, distribution, log_prob, quantiles, sample
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.numbers import PAD, NumberFormat
from rlm_core.training.full.quantile_search import max_questions
from rlm_core.training.full.regress_lm import SPECIAL, p10
from rlm_core.training.full.sequences import Slot, groups

from .tiny import ACCURACY, FORMATS, LAST, LATENCY, LOOSE, MEMORY, SMALL, TEXTS, rows_of, tiny_model, tiny_regress_lm

LEVELS = (0.005, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.995)
Array = npt.NDArray[np.float64]
MODELS = {f"{name}-{own}": (numbers, own) for name, numbers in FORMATS.items() for own in ("own", "regress-lm")}


def build(numbers: NumberFormat, own: str) -> FullModel:
    return tiny_model(numbers) if own == "own" else tiny_regress_lm(numbers)


def all_numbers(model: FullModel, known: tuple[float, ...] = ()) -> tuple[Array, Array]:
    """Every value and its probability, given what is known; both ``(numbers,)``."""
    rows = rows_of(model.grammar)
    numbers = model.config.numbers
    values = np.array([numbers.decode(row) for row in rows.tolist()])
    past = torch.from_numpy(numbers.encode_many(known)).expand(len(rows), -1, -1)
    tokens = torch.cat([past, rows[:, None]], 1)[None]
    queries = None
    if model.query_tokens is not None:
        queries = model.query_tokens.batch([ACCURACY] * len(known) + [LATENCY]).view(1, 1, -1)
        queries = queries[:, torch.zeros(len(rows), dtype=torch.int64)]
    with torch.inference_mode():
        scores = model.log_probs(model.remember(model.encode(TEXTS[:1])), queries, tokens)
    return values, scores[0, :, -1].double().sum(-1).exp().numpy()


def question(model: FullModel, *known: float) -> list[Slot]:
    if model.query_tokens is None:
        return [*(Slot(value=value) for value in known), Slot()]
    return [*(Slot(ACCURACY, value) for value in known), Slot(LATENCY)]


@pytest.mark.parametrize(("numbers", "own"), MODELS.values(), ids=MODELS)
def test_the_probabilities_of_all_numbers_sum_up_to_one(numbers: NumberFormat, own: str) -> None:
    for known in ((), (0.5,)):
        _, probabilities = all_numbers(build(numbers, own), known)
        assert probabilities.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("numbers", "own"), MODELS.values(), ids=MODELS)
def test_quantiles_are_those_of_all_numbers(numbers: NumberFormat, own: str) -> None:
    model = build(numbers, own)
    for known in ((), (0.5,)):
        values, probabilities = all_numbers(model, known)
        (answer,) = quantiles(model, model.encode(TEXTS[:1]), [[question(model, *known)]], LEVELS)[0]
        ordered = ~np.isnan(values)
        assert answer.unordered == pytest.approx(probabilities[~ordered].sum(), abs=1e-5)
        order = np.argsort(values[ordered], kind="stable")
        total = np.cumsum(probabilities[ordered][order]) / probabilities[ordered].sum()
        for level, value in zip(LEVELS, answer.values, strict=True):
            low = values[ordered][order][np.searchsorted(total, level - 1e-5)]
            high = values[ordered][order][np.searchsorted(total, level + 1e-5)]
            assert low <= value <= high
        assert answer.error == 0


@pytest.mark.parametrize(("numbers", "own"), MODELS.values(), ids=MODELS)
def test_quantiles_agree_with_a_hundred_thousand_samples(numbers: NumberFormat, own: str) -> None:
    model = build(numbers, own)
    memories = model.encode(TEXTS[:1])
    (answer,) = quantiles(model, memories, [[question(model)]], LEVELS)[0]
    (drawn,) = sample(model, memories, [[question(model)]], 100_000, torch.Generator().manual_seed(1))[0]
    ordered = drawn[~np.isnan(drawn[:, 0]), 0]
    for level, value in zip(LEVELS, answer.values, strict=True):
        error = 4.5 * np.sqrt(level * (1 - level) / len(ordered))
        assert (ordered < value).mean() - error <= level <= (ordered <= value).mean() + error


@pytest.mark.parametrize("own", ["own", "regress-lm"])
def test_answers_do_not_depend_on_the_batch(own: str) -> None:
    model = build(NumberFormat(base=4, exponent_digits=1, mantissa_digits=4), own)
    memories = model.encode(TEXTS)
    asked = [[question(model)], [question(model, 0.25), question(model)], [question(model)]]
    together = quantiles(model, memories, asked, LEVELS)
    for text, questions in enumerate(asked):
        for index, one in enumerate(questions):
            (alone,) = quantiles(model, [memories[text]], [[one]], LEVELS)[0]
            many = together[text][index]
            assert many.smooth == pytest.approx(alone.smooth, rel=1e-5)
    again = quantiles(model, memories, asked, LEVELS)
    assert all((a.values == b.values).all() for a, b in zip(again[1], together[1], strict=True))


def test_quantiles_rise_with_the_level_and_lie_in_their_cells() -> None:
    model = tiny_model()
    levels = tuple(np.linspace(0, 1, 101).tolist())
    (answer,) = quantiles(model, model.encode(TEXTS[:1]), [[question(model)]], levels)[0]
    assert (np.diff(answer.values) >= 0).all()
    assert (np.diff(answer.smooth) >= 0).all()
    for value, smooth in zip(answer.values, answer.smooth, strict=True):
        low, high = SMALL.cell(value)
        assert low <= smooth <= high


@pytest.mark.parametrize("tolerance", [1e-3, 0.05])
def test_what_is_left_out_bounds_the_error(tolerance: float) -> None:
    model = tiny_regress_lm(p10(2, 3, SPECIAL), sharpness=20)
    values, probabilities = all_numbers(model)
    ordered = ~np.isnan(values)
    values, probabilities = values[ordered], probabilities[ordered] / probabilities[ordered].sum()
    (answer,) = quantiles(model, model.encode(TEXTS[:1]), [[question(model)]], LEVELS, tolerance)[0]
    assert answer.error <= tolerance
    for level, value in zip(LEVELS, answer.values, strict=True):
        assert probabilities[values < value].sum() <= level + 1e-5
        assert probabilities[values <= value].sum() >= level - answer.error - 1e-5


def test_a_known_metric_changes_the_answer_and_an_unknown_one_is_left_out() -> None:
    model = tiny_model()
    memories = model.encode(TEXTS[:1])
    asked = [[Slot(LATENCY)], [Slot(ACCURACY, 0.1), Slot(LATENCY)], [Slot(ACCURACY, 5.0), Slot(LATENCY)]]
    answers = quantiles(model, memories, [asked], LEVELS)[0]
    assert len({tuple(answer.smooth) for answer in answers}) == 3


def test_samples_are_joint() -> None:
    """What is drawn for the second number follows the first one drawn, not only the text."""
    model = tiny_regress_lm(LOOSE)
    memories = model.encode(TEXTS[:1])
    drawn = sample(model, memories, [[[Slot(), Slot()]]], 20_000, torch.Generator().manual_seed(3))[0][0]
    assert drawn.shape == (20_000, 2)
    first = next(value for value in drawn[:, 0] if np.isfinite(value))
    own = drawn[drawn[:, 0] == first, 1]
    (answer,) = quantiles(model, memories, [[[Slot(value=float(first)), Slot()]]], (0.5,))[0]
    ordered = own[~np.isnan(own)]
    error = 4.5 * np.sqrt(0.25 / len(ordered))
    # Numbers of equal value may be written in other ways, so only the bulk need agree.
    assert (ordered < answer.values[0]).mean() - error <= 0.5 + 0.1
    assert (ordered <= answer.values[0]).mean() + error >= 0.5 - 0.1


def test_samples_follow_the_seed_and_keep_what_is_known() -> None:
    model = tiny_model()
    memories = model.encode(TEXTS)
    asked = [[[Slot(MEMORY), Slot(ACCURACY, 0.5), Slot(LATENCY)]], [], [[Slot(LATENCY)], [Slot(MEMORY, 1.0)]]]
    first, second, third = (
        sample(model, memories, asked, 50, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert [[own.shape for own in text] for text in first] == [[(50, 2)], [], [(50, 1), (50, 0)]]
    assert np.array_equal(first[0][0], second[0][0], equal_nan=True)
    assert not np.array_equal(first[0][0], third[0][0], equal_nan=True)


def nucleus_numbers(model: FullModel, top_p: float) -> tuple[Array, Array]:
    """Every value and its probability with top-p sampling, by hand: nucleus, then grammar; both ``(numbers,)``."""
    rows = rows_of(model.grammar)
    queries = None
    if model.query_tokens is not None:
        queries = model.query_tokens.batch([LATENCY]).view(1, 1, 1)[:, torch.zeros(len(rows), dtype=torch.int64)]
    with torch.inference_mode():
        logits = model.logits(model.remember(model.encode(TEXTS[:1])), queries, rows[None, :, None])[0, :, 0].double()
    allowed = model.grammar.masks(rows)
    probabilities = np.ones(len(rows))
    for number, row in enumerate(rows.tolist()):
        for position, token in enumerate(row):
            share = logits[number, position].exp()
            share[PAD] = 0
            share /= share.sum()
            kept, total = [], 0.0
            for candidate in share.argsort(descending=True).tolist():
                if total < top_p:
                    kept.append(candidate)
                total += float(share[candidate])
            admitted = [candidate for candidate in kept if allowed[number, position, candidate]]
            admitted = admitted or allowed[number, position].nonzero()[:, 0].tolist()
            own = float(share[token]) if token in admitted else 0.0
            probabilities[number] *= own / float(share[admitted].sum())
    return np.array([model.config.numbers.decode(row) for row in rows.tolist()]), probabilities


@pytest.mark.parametrize("name", ["unique-own", "loose-regress-lm", "last-own"])
@pytest.mark.parametrize("top_p", [0.5, 0.95])
def test_top_p_draws_from_the_nucleus_that_the_grammar_allows(name: str, top_p: float) -> None:
    numbers, own = MODELS[name]
    model = build(numbers, own)
    values, probabilities = nucleus_numbers(model, top_p)
    assert probabilities.sum() == pytest.approx(1, abs=1e-6)
    assert (probabilities == 0).any()
    count = 50_000
    memories = model.encode(TEXTS[:1])
    (drawn,) = sample(model, memories, [[question(model)]], count, torch.Generator().manual_seed(5), 1.0, top_p)[0]
    for value in np.unique(values):
        same = np.isnan(values) if np.isnan(value) else values == value
        hits = np.isnan(drawn[:, 0]) if np.isnan(value) else drawn[:, 0] == value
        expected = probabilities[same].sum()
        assert abs(hits.mean() - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / count) + 1e-6


def test_a_top_p_of_one_changes_nothing() -> None:
    model = tiny_model()
    memories = model.encode(TEXTS)
    asked = [[[Slot(LATENCY)]]] * 3
    plain = sample(model, memories, asked, 20, torch.Generator().manual_seed(1))
    same = sample(model, memories, asked, 20, torch.Generator().manual_seed(1), 1.0, 1.0)
    assert all(np.array_equal(a[0], b[0], equal_nan=True) for a, b in zip(plain, same, strict=True))
    for top_p in (0.0, -0.1, 1.1):
        with pytest.raises(ModelError, match="above 0 and at most 1"):
            sample(model, memories, asked, 1, torch.Generator(), 1.0, top_p)


def test_a_nucleus_is_chosen_before_the_grammar() -> None:
    scores = torch.tensor([[0.0, 0.6, 0.36, 0.04]], dtype=torch.float64).log()
    mask = torch.tensor([False, False, True, True])
    # With the grammar first, the shares would be .9 and .1, and both tokens in the nucleus.
    assert _nucleus(scores, mask, 0.95).tolist() == [[False, False, True, False]]
    assert _nucleus(scores, mask, 0.97).tolist() == [[False, False, True, True]]
    # No token of the nucleus is allowed: all that is.
    assert _nucleus(scores, mask, 0.5).tolist() == [[False, False, True, True]]


def test_padding_is_part_of_a_nucleus_only_where_the_grammar_has_it() -> None:
    assert PAD == 0
    scores = torch.tensor([[0.9, 0.08, 0.02]] * 2, dtype=torch.float64).log()
    mask = torch.tensor([[False, True, True], [True, True, False]])
    assert _nucleus(scores, mask, 0.85).tolist() == [[False, True, True], [True, False, False]]
    assert _nucleus(scores, mask, 0.75).tolist() == [[False, True, False], [True, False, False]]


def test_a_nucleus_is_that_of_transformers() -> None:
    logits_process = pytest.importorskip("transformers.generation.logits_process")
    scores = torch.randn(200, 13, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
    scores[100:] = scores[100:].round()  # equally likely tokens
    scores[:, PAD] = -torch.inf
    for top_p in (0.1, 0.5, 0.95):
        kept = logits_process.TopPLogitsWarper(top_p)(None, scores).isfinite()
        assert torch.equal(_nucleus(scores, torch.ones(13, dtype=torch.bool), top_p) & scores.isfinite(), kept)


def test_log_prob_is_that_of_training() -> None:
    model = tiny_model()
    memories = model.encode(TEXTS)
    asked = [[[Slot(ACCURACY, 0.5), Slot(LATENCY, 3.0)]], [[Slot(LATENCY, 1.0)], [Slot(MEMORY, 1.0)]], []]
    scores = log_prob(model, memories, asked)
    assert [[own.shape for own in text] for text in scores] == [[(2,)], [(1,), (1,)], []]
    free = log_prob(model, memories, asked, constrained=False)
    assert all((a < b).all() for a, b in zip(free[1], scores[1], strict=True))


def test_questions_that_cannot_be_answered_are_refused() -> None:
    model = tiny_model()
    memories = model.encode(TEXTS[:1])
    for slots, message in (
        ([Slot(LATENCY, 1.0)], "last number"),
        ([Slot(ACCURACY), Slot(LATENCY)], "use sample"),
        ([Slot()], "what each number means"),
        ([Slot(NumberQuery("price"))], "knows latency, memory, accuracy, energy"),
        ([], "writes 1 to 16"),
    ):
        with pytest.raises(ModelError, match=message):
            quantiles(model, memories, [[slots]], (0.5,))
    with pytest.raises(ModelError, match=r"within 0\.\.1"):
        quantiles(model, memories, [[[Slot(LATENCY)]]], (50.0,))
    with pytest.raises(ModelError, match="give a value"):
        log_prob(model, memories, [[[Slot(LATENCY)]]])
    with pytest.raises(DataError, match="no special token"):
        log_prob(model, memories, [[[Slot(LATENCY, "UNKNOWN")]]])


def test_many_questions_are_answered_in_parts() -> None:
    """A search takes a bounded number of questions at once; none is lost, and the order stays."""
    numbers = NumberFormat("exponent-last", base=10, mantissa_digits=5, exponent_range=4)
    assert max_questions(numbers) == 1
    model = tiny_model()
    memories = model.encode(TEXTS)
    asked = [[[Slot(LATENCY)], [Slot(MEMORY)], [Slot(ACCURACY)]], [[Slot(MEMORY)]], [[Slot(LATENCY)], [Slot(MEMORY)]]]
    parts = list(groups(model, memories, asked, most=2))
    found = [(group.texts[row], index) for group in parts for row, _, index in group.places]
    assert sorted(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1)]
    assert all(len(group.places) <= 2 for group in parts)


def test_it_is_the_sum_over_all_smaller_numbers() -> None:
    model = tiny_model()
    values, probabilities = all_numbers(model)
    ordered = ~np.isnan(values)
    share = probabilities / probabilities[ordered].sum()
    asked = sorted(values[ordered].tolist())[::7]
    [found] = distribution(model, model.encode(TEXTS[:1]), [[LATENCY] * len(asked)], [asked])
    for place, value in enumerate(asked):
        assert found.below[place] == pytest.approx(share[values < value].sum(), abs=1e-6)
        assert found.mass[place] == pytest.approx(share[values == value].sum(), abs=1e-6)


def test_quantiles_invert_it() -> None:
    model = tiny_model(seed=1, sharpness=2.0)
    checked = 0
    levels = (0.01, 0.2, 0.5, 0.7, 0.99)
    memories = model.encode(TEXTS)
    queries = [[LATENCY], [MEMORY], [LATENCY, MEMORY]]
    found = quantiles(model, memories, [[[Slot(query)] for query in own] for own in queries], levels)
    for own, memory, line in zip(queries, memories, found, strict=True):
        for query, answer in zip(own, line, strict=True):
            [at] = distribution(model, [memory], [[query] * len(levels)], [answer.smooth.tolist()])
            # Zero has no interval, and a quantile at an interval's very end may be rounded into the next one.
            inside = (answer.smooth != 0) & (at.share > 1e-9) & (at.share < 1 - 1e-9)
            checked += int(inside.sum())
            np.testing.assert_allclose(at.at[inside], np.array(levels)[inside], atol=1e-6)
    assert checked >= 8


def test_it_is_the_same_alone_and_in_a_batch() -> None:
    model = tiny_model()
    memories = model.encode(TEXTS)
    queries, values = [[LATENCY], [MEMORY, LATENCY], [LATENCY]], [[0.01], [3.0, 0.2], [7.0]]
    together = distribution(model, memories, queries, values)
    for one, query, value, memory in zip(together, queries, values, memories, strict=True):
        [alone] = distribution(model, [memory], [query], [value])
        np.testing.assert_allclose(one.at, alone.at, atol=1e-6)


def test_it_runs_from_nothing_to_one() -> None:
    model = tiny_model()
    ends = [-SMALL.largest, SMALL.largest]
    [found] = distribution(model, model.encode(TEXTS[:1]), [[LATENCY] * 2], [ends])
    assert found.below[0] == 0
    assert math.isclose(found.through[1], 1, abs_tol=1e-6)


def test_numbers_with_the_exponent_last_are_refused() -> None:
    model = tiny_model(LAST)
    with pytest.raises(ModelError, match="needs numbers with the exponent first"):
        distribution(model, model.encode(TEXTS[:1]), [[LATENCY]], [[1.0]])


# Numbers without leading zeros that are not unique: the exponent 0 has two signs. A base that doubles hold exactly.
SIGNED = replace(LOOSE, base=4, leading_zero=False, rounding="down")
ZEROS = replace(SIGNED, leading_zero=True)


@pytest.mark.parametrize(
    "numbers",
    [
        SIGNED,
        replace(SIGNED, base=2, exponent_digits=2, mantissa_digits=3),
        ZEROS,
        replace(ZEROS, base=2, exponent_digits=2, mantissa_digits=3, separator=True),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_the_sum_over_all_smaller_numbers_where_numbers_are_written_in_several_ways(
    numbers: NumberFormat, seed: int
) -> None:
    model = tiny_model(numbers, seed)
    values, probabilities = all_numbers(model)
    ordered = ~np.isnan(values)
    share = probabilities / probabilities[ordered].sum()
    assert len(np.unique(values[ordered])) < ordered.sum()
    # Numbers with a leading zero and the smallest exponent are only written by the model.
    kept = np.isfinite(values) & ((np.abs(values) >= numbers.smallest) | (values == 0))
    asked = sorted(set(values[kept].tolist()))
    [found] = distribution(model, model.encode(TEXTS[:1]), [[LATENCY] * len(asked)], [asked])
    np.testing.assert_allclose(found.below, [share[values < value].sum() for value in asked], atol=1e-6)
    np.testing.assert_allclose(found.mass, [share[values == value].sum() for value in asked], atol=1e-6)
    # Digits are cut off, so all values up to the next number are written as this one.
    finite = [value for value in asked if numbers.smallest <= value < numbers.largest]
    between = [value + 0.25 * numbers.step(value) for value in finite]
    [inside] = distribution(model, model.encode(TEXTS[:1]), [[LATENCY] * len(finite)], [between])
    expected = [share[values < value].sum() + 0.25 * share[values == value].sum() for value in finite]
    np.testing.assert_allclose(inside.at, expected, atol=1e-6)


def test_equal_numbers_may_differ_in_their_last_bits() -> None:
    """Powers of ten that doubles do not hold: 2e-8 is 2.0e-8 and 0.2e-7."""
    numbers = replace(ZEROS, base=10, exponent_digits=1, mantissa_digits=2)
    model = tiny_regress_lm(numbers)
    values, probabilities = all_numbers(model)
    share = probabilities / probabilities[~np.isnan(values)].sum()
    asked = [2e-8, 1.2e-7, 3e-9, 0.7, 5e8]
    [found] = distribution(model, model.encode(TEXTS[:1]), [[None] * len(asked)], [asked])
    for index, value in enumerate(asked):
        near = np.isclose(values, numbers.decode(numbers.encode(value)), rtol=1e-9, atol=0)
        assert found.mass[index] == pytest.approx(share[near].sum(), abs=1e-6)
        assert found.below[index] == pytest.approx(share[(values < value) & ~near].sum(), abs=1e-6)


# Where beginnings of numbers overlap, a quantile may count some of the next number's probability to its own.
@pytest.mark.parametrize(("numbers", "error"), [(SIGNED, 1e-6), (ZEROS, 0.01)])
def test_quantiles_invert_it_where_numbers_are_written_in_several_ways(numbers: NumberFormat, error: float) -> None:
    model = tiny_model(numbers, seed=1, sharpness=2.0)
    levels = (0.05, 0.3, 0.5, 0.7, 0.95)
    memories = model.encode(TEXTS)
    found = quantiles(model, memories, [[[Slot(LATENCY)]]] * len(TEXTS), levels)
    for memory, (answer,) in zip(memories, found, strict=True):
        [at] = distribution(model, [memory], [[LATENCY] * len(levels)], [answer.smooth.tolist()])
        inside = (
            np.isfinite(answer.smooth)
            & (np.abs(answer.smooth) >= numbers.smallest)
            & (at.share > 1e-9)
            & (at.share < 1 - 1e-9)
        )
        np.testing.assert_allclose(at.at[inside], np.array(levels)[inside], atol=error)
        assert inside.any()
