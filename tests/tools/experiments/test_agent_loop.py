"""The tasks of the scripted agent: rewrites of one function, in texts that `compare` can pair."""

from __future__ import annotations

import pytest
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units

from tools.experiments.agent_loop import FORMS, lower, measure
from tools.experiments.agent_tasks import TASKS, Task

EACH = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


@EACH
def test_the_rewrites_of_a_task_return_what_the_slow_function_returns(task: Task) -> None:
    # `measure` compares the results before it times anything.
    assert measure(task, rounds=1).keys() == set(FORMS)


@EACH
def test_each_text_of_a_task_defines_its_function(task: Task) -> None:
    for form in FORMS:
        units = find_units(ParsedSource(getattr(task, form).encode(), "python"))
        assert task.name in [unit.qualname for unit in units]


def test_equal_numbers_pick_nothing() -> None:
    assert [lower(1.0, 2.0), lower(2.0, 1.0), lower(1.0, 1.0)] == ["first", "second", ""]
