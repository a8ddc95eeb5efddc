"""Pairs: which of two is costlier."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from rlm_core import CodeText, Query
from rlm_core.training.evaluation.pairs import (
    MOST_PER_GROUP,
    Pair,
    Ratios,
    directions,
    edited,
    report_pairs,
    revisions,
    same_problem,
)
from rlm_core.training.evaluation.rows import Row


def solution(number: int, value: float, *, group: str = "p", date: str = "2024-01-15", source: str = "") -> Row:
    """A solution in Go, a text of its own."""
    code = CodeText(f"func f{number}()", "go", "program")
    query = Query("latency", "leetcode", {"date": date})
    return Row(f"leethub/{number}/latency", code, query, value, group, group, "problem", "test", source)


def test_solutions_of_a_half_year_pair_when_their_costs_differ_enough() -> None:
    rows = [solution(0, 1.0), solution(1, 1.2), solution(2, 2.0), solution(3, 9.0, date="2024-08-01")]
    found = same_problem(rows)
    assert {(pair.first, pair.second) for pair in found} == {(0, 1), (0, 2), (1, 2)}
    assert {(pair.first, pair.second) for pair in found if pair.changed} == {(0, 2), (1, 2)}


def test_equal_texts_and_other_problems_make_no_pair() -> None:
    assert same_problem([solution(0, 1.0), solution(0, 5.0), solution(1, 5.0, group="q")]) == []


def test_a_large_problem_gives_no_more_than_its_share() -> None:
    assert len(same_problem([solution(n, 2.0**n) for n in range(30)])) == MOST_PER_GROUP


def test_revisions_share_repository_and_path_but_not_the_blob() -> None:
    rows = [
        solution(0, 1.0, source="me/r@aa:x.go"),
        solution(1, 3.0, source="me/r@bb:x.go", date="2025-08-01"),
        solution(2, 3.0, source="me/r@cc:y.go"),
        solution(3, 3.0, source="you/r@dd:x.go"),
    ]
    assert [(pair.first, pair.second) for pair in revisions(rows)] == [(0, 1)]


def test_edits_count_when_they_change_the_cost_beyond_noise() -> None:
    def function(name: str, metric: str, value: float, before: str | None = "base", noise: float = 0.0) -> Row:
        code, query = CodeText(name, "python", "call"), Query(metric, "x86-64")  # type: ignore[arg-type]
        before = before and f"{before}/{metric}"
        return Row(f"{name}/{metric}", code, query, value, "g", "f", "edit", "test", "", before, noise)

    rows = [function("base", "latency", 1.0, None), function("base", "memory", 100.0, None)]
    rows += [function("a", "latency", 10.0, noise=0.01), function("a", "memory", 100.0)]
    rows += [function("b", "latency", 10**0.2, noise=0.5), function("b", "memory", 10.0)]
    rows += [function("c", "latency", 10.0, noise=math.inf), function("c", "memory", 10.0, noise=math.inf)]
    rows += [function("d", "latency", 10.0, "not in the data")]
    assert [rows[pair.second].id for pair in edited(rows)] == [row.id for row in rows[2:-1]]
    found = [pair for pair in edited(rows) if pair.changed]
    assert [(rows[p.first].id, rows[p.second].id, p.ratio) for p in found] == [
        ("base/latency", "a/latency", 1.0),
        ("base/memory", "b/memory", -1.0),
    ]


def test_no_difference_seen_counts_half() -> None:
    pairs = same_problem([solution(0, 1.0), solution(1, 2.0)])
    for said, right in ((1.0, 1), (-1.0, 0), (0.0, 0.5)):
        assert directions(pairs, np.array([said])) == pytest.approx(right)


def test_report_has_every_predictor_and_leaves_out_pairs_without_an_answer() -> None:
    rows = [solution(n, 10.0 ** (n % 3), group=f"p{n // 3}") for n in range(30)]
    actual = np.array([row.value for row in rows])
    gone = actual.copy()
    gone[0] = math.nan
    [found] = report_pairs(rows, {"model": actual, "tfidf": 1 / gone})
    assert (found.suite, found.language, found.n, found.groups) == ("same problem", "all", 30 - 2, 10)
    assert found.figures["model"].value == 1
    assert found.figures["tfidf"].value == 0


def test_ratios_of_a_predictor_take_the_place_of_its_medians() -> None:
    rows = [solution(n, 10.0 ** (n % 3), group=f"p{n // 3}") for n in range(60)]

    def ratios(pairs: Sequence[Pair]) -> Ratios:
        true = np.array([pair.ratio for pair in pairs])
        inside = np.arange(len(pairs)) % 4 > 0
        return Ratios(true, np.where(inside, true - 1, true + 0.1), true + 1)

    blind = np.ones(60)
    [found] = report_pairs(rows, {"model": blind, "tfidf": blind}, ratios={"model": ratios})
    assert (found.figures["model"].value, found.figures["tfidf"].value) == (1, 0.5)
    assert found.cover80 is not None
    assert found.width80 is not None
    assert found.cover80.value == pytest.approx(0.75)
    assert found.width80.value == pytest.approx(100)
