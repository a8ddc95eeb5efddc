"""The first things that anybody types are predicted with common sense by the model that ships."""

from __future__ import annotations

import functools
import json

import pytest
from rlm_core.inference.predictor import Predictor
from rlm_core.loading import load

from .judging import answers, edit_verdicts, function_verdicts
from .measure import TRUTH
from .suite import edits, functions

_FUNCTIONS = (
    "waits_time.one_second",
    "counting_loops.sum_to_ten_million",
    "arrays.ones_float32",
    "memory.million_zeros",
    "recursion.fib_of_thirty",
    "endless.spin",
    "waits_network.download",
)
_EDITS = (
    "literals.total.to_a_million",
    "waits.poll.ten_seconds",
    "structure.ranked.sorted_into_the_loop",
    "structure.matches.compile_in_the_loop",
    "structure.count_known.set_to_list",
    "neutral.mean.rename_locals",
)


@functools.cache
def _predictor() -> Predictor:
    return load()


_TRUTHS = json.loads(TRUTH.read_text(encoding="utf-8"))["values"]


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_the_truth_is_in_the_band_and_what_waits_is_labelled(name: str) -> None:
    [case] = [case for case in functions() if case.name == name]
    [answer] = answers(_predictor(), [case])
    verdicts = list(function_verdicts(case, answer, _TRUTHS[name], facts=False))
    assert verdicts
    assert [verdict for verdict in verdicts if not verdict.good] == []


@pytest.mark.parametrize("name", _EDITS)
def test_an_edit_has_the_right_direction(name: str) -> None:
    [edit] = [edit for edit in edits() if edit.name == name]
    verdicts = edit_verdicts(_predictor(), [edit], _TRUTHS, facts=False)
    assert verdicts
    assert [verdict for verdict in verdicts if not verdict.good] == []
