"""The tasks of the scripted agent: versions of one function, in texts that `compare` can pair."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units

from tests.rlm_lsp.findings.support import commit
from tools.experiments.agent_loop import Answer, Versions, counts, is_same, measure, own_tasks
from tools.experiments.public_tasks import PUBLIC_TASKS, PublicTask

EACH = pytest.mark.parametrize("task", own_tasks(), ids=lambda task: task.name)
BOOK = """\
import heapq
import math
import string

LIMIT = 3


def helper(values):
    return heapq.nlargest(LIMIT, values)


def slow(values):
    return sorted(values)[-LIMIT:][::-1]


def fast(values):
    return helper(values) if len(values) > 1 else fast(values * 2)
"""


@EACH
def test_the_versions_of_a_task_return_the_same(task: Versions) -> None:
    first, *others = (call(*task.arguments) for call in task.functions())
    assert all(is_same(first, other) for other in others)


@EACH
def test_each_text_of_a_task_defines_its_function(task: Versions) -> None:
    for text in task.texts:
        assert task.name in [unit.qualname for unit in find_units(ParsedSource(text.encode(), "python"))]


@EACH
def test_the_sizes_of_a_task_are_those_of_its_arguments(task: Versions) -> None:
    assert all(size > 0 for size in task.sizes().values())
    assert task.sizes()


def test_versions_that_sort_their_arguments_get_new_ones_for_each_call() -> None:
    checks = "def f(values):\n    assert values == [3, 1, 2]\n    values.sort()\n    return values\n"
    assert min(measure(Versions("f", (checks, checks), ([3, 1, 2],)), rounds=2)) > 0


def test_a_version_of_a_file_comes_with_what_it_needs_and_under_one_name(tmp_path: Path) -> None:
    commit(tmp_path / "owner+book", {"a.py": BOOK})
    task = PublicTask("top", "owner/book", "HEAD", (("a.py", "slow"), ("a.py", "fast")), lambda source: ([4, 1, 7, 5],))
    slow, fast = task.texts(tmp_path)
    assert "import" not in slow
    assert "import heapq" in fast
    assert "import math" not in fast
    versions = Versions("top", (slow, fast), task.arguments(random.Random(1)))
    assert [call(*versions.arguments) for call in versions.functions()] == [[7, 5, 4]] * 2
    assert versions.sizes() == {"values": 4}
    with pytest.raises(FileNotFoundError, match="owner"):
        replace(task, repository="owner/other").texts(tmp_path)


def test_each_task_has_a_name_and_at_least_two_versions() -> None:
    assert len({task.name for task in PUBLIC_TASKS}) == len(PUBLIC_TASKS)
    assert all(len(set(task.versions)) >= 2 for task in PUBLIC_TASKS)


def test_an_answer_is_right_opposite_or_about_a_difference_that_is_none() -> None:
    answers = [Answer((0, 1), 1, 0.5), Answer((0, 1), 0, 0.5), Answer((0, 1), 1, 0.9), Answer((0, 1), None, 3.0)]
    assert counts(answers).startswith("3 of 4 answered, 1 right, 1 opposite, 1 within 1.2 times; 2 right")
