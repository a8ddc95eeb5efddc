"""The grammar of numbers admits what can be written, and bounds it."""

from __future__ import annotations

import itertools

import pytest
import torch
from rlm_core.training.full.grammar import Grammar
from rlm_core.training.full.numbers import PAD, NumberFormat
from rlm_core.training.full.regress_lm import SPECIAL, ieee, p10

from . import tiny
from .tiny import SMALL, rows_of


@pytest.mark.parametrize("numbers", tiny.FORMATS.values(), ids=tiny.FORMATS)
def test_the_grammar_admits_numbers_and_nothing_else(numbers: NumberFormat) -> None:
    grammar = Grammar(numbers)
    admitted = {tuple(row) for row in rows_of(grammar).tolist()}
    for row in itertools.product(range(len(numbers.names)), repeat=numbers.positions):
        special = row[0] in numbers.specials and len(set(row)) == 1
        names = [numbers.names[token].strip("<>") for token in row]
        digits = names[numbers.lead : numbers.lead + numbers.mantissa_digits]
        ordinary = names[0] in "+-" and all(name.isdigit() for name in digits)
        if numbers.exponent_first:
            ordinary &= names[1] in "+-" and names[2].isdigit()
        else:
            ordinary &= names[-1][0] == "E"
        ordinary &= not (numbers.unique and digits[0] == "0")
        assert (row in admitted) == (special or ordinary), names


def test_every_number_is_another_one_if_they_are_unique() -> None:
    values = [SMALL.decode(row) for row in rows_of(Grammar(SMALL)).tolist()]
    ordered = [value for value in values if value == value]
    assert len(set(ordered)) == len(ordered) == len(values) - 1


@pytest.mark.parametrize("numbers", [*tiny.FORMATS.values(), p10(2, 2, SPECIAL, separator=True)])
def test_bounds_are_the_extremes_of_what_a_beginning_can_become(numbers: NumberFormat) -> None:
    grammar = Grammar(numbers)
    rows = rows_of(grammar)
    values = torch.tensor([numbers.decode(row) for row in rows.tolist()], dtype=torch.float64)
    for length in range(1, numbers.positions + 1):
        low, high = grammar.bounds(rows[:, :length])
        beginnings, group = rows[:, :length].unique(dim=0, return_inverse=True)
        for index in range(len(beginnings)):
            own = values[group == index]
            chosen = low[group == index], high[group == index]
            if own.isnan().any():
                assert chosen[0].isnan().all()
                continue
            assert (chosen[0] == own.min()).all()
            assert (chosen[1] == own.max()).all()


def test_masks_of_whole_numbers_are_the_masks_of_their_steps() -> None:
    grammar = Grammar(ieee(special=SPECIAL, separator=True))
    rows = torch.from_numpy(grammar.numbers.encode_many([1.5, float("nan"), -3e-4, "INVALID"]))
    masks = grammar.masks(rows)
    for position in range(grammar.numbers.positions):
        first = rows[:, 0] if position else None
        assert (masks[:, position] == grammar.mask(position, first)).all()
        assert masks[torch.arange(4), position, rows[:, position]].all()
    assert masks[:, -1].sum() == 4
    assert masks[:, -1, PAD].all()
