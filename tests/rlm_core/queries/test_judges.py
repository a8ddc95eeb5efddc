"""The table of judges."""

from __future__ import annotations

import pytest
from rlm_core.queries.devices import canonical_device, device_table
from rlm_core.queries.judges import DEFAULT_JUDGE, JUDGES


def test_every_judge_is_a_device() -> None:
    assert set(JUDGES) <= set(device_table())
    assert DEFAULT_JUDGE in JUDGES


@pytest.mark.parametrize(("name", "judge"), [("BOJ", "boj"), ("baekjoon", "boj"), ("AtCoder", "atcoder")])
def test_a_judge_is_known_by_its_names(name: str, judge: str) -> None:
    assert canonical_device(name) == judge


def test_only_run_time_has_a_floor() -> None:
    assert {judge.id: judge.floor("latency") for judge in JUDGES.values()} == {
        "leetcode": 0,
        "boj": 4e-3,
        "atcoder": 1e-3,
    }
    assert not any(judge.floor("memory") for judge in JUDGES.values())
