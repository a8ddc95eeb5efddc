"""The first things that anybody types: what static analysis says about them, with no help from the model."""

from __future__ import annotations

import functools
import json
import math

import pytest
from rlm_core.inference.predictor import Predictor
from rlm_core.loading import load

from .alarms import wait_label
from .judging import analysed, edit_verdicts, estimate_of
from .measure import TRUTH
from .suite import Case, edits, functions

_TRUTHS = json.loads(TRUTH.read_text(encoding="utf-8"))["values"]


def _case(name: str) -> Case:
    return next(case for case in functions() if case.name == name)


@functools.cache
def _predictor() -> Predictor:
    return load()


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("waits_time.one_second", "latency"),
        ("counting_loops.sum_to_ten_million", "latency"),
        ("recursion.fib_of_thirty", "latency"),
        ("arrays.zeros_plus_one", "latency"),
        ("arrays.zeros_plus_one", "memory"),
        ("memory.million_zeros", "memory"),
    ],
)
def test_facts_estimate_what_the_text_fixes_within_a_factor_of_three(name: str, metric: str) -> None:
    estimate = estimate_of(analysed(_case(name)).code.work, metric)
    assert estimate is not None
    assert abs(math.log10(estimate / _TRUTHS[name][metric])) <= math.log10(3)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("waits_time.one_second", "≥1 s waits"),
        ("endless.spin", "may not end"),
        ("waits_network.download", "waits: network"),
    ],
)
def test_what_waits_or_does_not_end_is_labelled(name: str, label: str) -> None:
    assert wait_label(analysed(_case(name)).code.work) == label


@pytest.mark.parametrize(
    "name",
    [
        "literals.total.to_a_million",
        "waits.poll.ten_seconds",
        "structure.ranked.sorted_into_the_loop",
        "structure.matches.compile_in_the_loop",
        "structure.count_known.set_to_list",
        "neutral.mean.rename_locals",
    ],
)
def test_facts_give_an_edit_its_direction(name: str) -> None:
    [edit] = [edit for edit in edits() if edit.name == name]
    verdicts = edit_verdicts(_predictor(), [edit], _TRUTHS, facts=True)
    assert verdicts
    assert [verdict for verdict in verdicts if not verdict.good] == []
