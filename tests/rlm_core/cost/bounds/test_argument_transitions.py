"""How recursive calls change their arguments."""

from __future__ import annotations

import pytest
from rlm_core.cost.bounds.argument_transitions import falls, grows, move_of, split_range
from rlm_core.cost.bounds.recursion import recurrence
from rlm_core.cost.domain.frames import Recursive
from rlm_core.cost.domain.quantities import ONE, Quantity, constant, of_size
from rlm_core.cost.domain.values import Value

N, LOW, HIGH = of_size("n"), of_size("low"), of_size("high")
RANGE = {"low": LOW, "high": HIGH}


def step(times: Quantity = ONE, **arguments: Quantity) -> Recursive:
    values = {name: Value("int", number=number) for name, number in arguments.items()}
    return Recursive(values, (1.0, 1.0, 1.0), times, given={name: name for name in arguments})


@pytest.mark.parametrize(
    ("passed", "ratio", "added"), [(N - constant(2), 1.0, -2.0), (N.times(0.5), 0.5, 0.0), (N + constant(1), 1.0, 1.0)]
)
def test_a_call_passes_on_a_share_or_a_fixed_amount_less(passed: Quantity, ratio: float, added: float) -> None:
    move = move_of(step(n=passed), {"n": N}, {"n": HIGH})
    assert move is not None
    assert (move.ratio, move.added) == (ratio, added)


def test_a_loop_over_what_is_left_makes_a_call_for_each_smaller_size() -> None:
    move = move_of(step(N, n=N.times(0.5)), {"n": N}, {})
    assert move is not None
    assert (move.any_less, move.added) == (True, -1.0)
    # A part between two places that nothing says: all parts together are no larger than the whole.
    part = move_of(step(N, n=N * constant(0.0, 1.0, 0.5)), {"n": N}, {})
    assert part is not None
    assert not part.any_less


def test_what_is_collected_of_another_argument_does_not_shrink() -> None:
    values = {"found": Value("list", size=N.times(0.25))}
    assert move_of(Recursive(values, (1.0, 1.0, 1.0), given={"n": "n"}), {"n": N}, {}) is None


def test_an_argument_that_stays_or_grows_without_a_bound_is_no_move() -> None:
    assert move_of(step(n=N), {"n": N}, {}) is None
    assert move_of(step(n=N + constant(1)), {"n": N}, {}) is None


def test_what_is_left_after_something_else_falls() -> None:
    assert falls(step(n=N - of_size("cost")), "n")
    assert not falls(step(n=N + of_size("cost")), "n")
    assert grows(Value("int", number=N + constant(1)), {"n": N})


@pytest.mark.parametrize(
    ("first", "second", "end"),
    [
        (LOW + constant(0.0, 9.0), HIGH, "high"),  # the middle is somewhere behind the start
        ((LOW + HIGH).times(0.5), HIGH, "high"),
        (HIGH - constant(1), HIGH, None),  # both ends are taken from: all ways to shrink a range
    ],
)
def test_a_range_is_split_where_only_one_call_takes_from_an_end(
    first: Quantity, second: Quantity, end: str | None
) -> None:
    steps = [step(low=LOW, high=first), step(low=LOW + constant(1), high=second)]
    assert split_range(steps, RANGE) == end


def test_calls_on_parts_and_one_more_do_not_branch() -> None:
    fewer, given = Value("list", size=N - ONE), {"tree": "tree", "parts": "n"}
    on_child = Recursive({"tree": Value(), "parts": fewer}, (0.0, 0.3, 1.0), of_size("tree"), given=given)
    on_new = Recursive({"tree": Value("none"), "parts": fewer}, (0.0, 0.45, 1.0), given=given)
    start = {"tree": of_size("tree"), "n": N}
    found = recurrence([on_child, on_new], start, 1.0, cached=False, base_share=0.5, fallback="tree")
    assert found.name == "calls itself"
    assert found.branches == 1
