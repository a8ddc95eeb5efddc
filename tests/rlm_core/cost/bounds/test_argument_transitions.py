"""How recursive calls change their arguments."""

from __future__ import annotations

import pytest
from rlm_core.cost.bounds.argument_transitions import falls, grows, moves_of, split_range
from rlm_core.cost.bounds.recursion import recurrence
from rlm_core.cost.bounds.solver import Gap
from rlm_core.cost.domain.frames import Recursive
from rlm_core.cost.domain.quantities import ONE, Quantity, constant, of_size
from rlm_core.cost.domain.values import Value

N, LOW, HIGH = of_size("n"), of_size("low"), of_size("high")
RANGE = {"low": LOW, "high": HIGH}


def step(times: Quantity = ONE, **arguments: Quantity) -> Recursive:
    values = {name: Value("int", number=number) for name, number in arguments.items()}
    return Recursive(values, (1.0, 1.0, 1.0), times, given={name: name for name in arguments})


def up_to(bound: Quantity, name: Quantity) -> Gap:
    """The gap of ``name < bound``."""
    return Gap(bound - name)


@pytest.mark.parametrize(
    ("passed", "gap", "ratio", "less"),
    [
        (N - constant(2), Gap(N), 1.0, 2.0),
        (N.times(0.5), Gap(N), 0.5, 0.0),
        (N + constant(1), up_to(HIGH, N), 1.0, 1.0),
        (N.times(2) + constant(1), up_to(HIGH, N), 0.5, 0.0),  # a child in a heap
        (
            N * constant(1.0, 2.0) + constant(0.0, 1.0),
            up_to(HIGH, N),
            0.5,
            0.0,
        ),  # it stays only if nothing is passed on
    ],
)
def test_a_call_passes_on_a_share_or_a_fixed_amount_less(passed: Quantity, gap: Gap, ratio: float, less: float) -> None:
    [move] = moves_of([step(n=passed)], {"n": N}, [gap])
    assert (move.ratio, move.less) == (ratio, less)


@pytest.mark.parametrize("ends", [[Gap(HIGH - LOW)], [Gap(HIGH - LOW, "below zero")]])
def test_halves_of_a_range_end_after_a_logarithm_of_calls(ends: list[Gap]) -> None:
    middle = (LOW + HIGH).times(0.5)
    steps = [step(low=LOW, high=middle), step(low=middle + ONE, high=HIGH)]
    for move in moves_of(steps, RANGE, ends):
        assert (move.ratio, move.symbol) == (0.5, "high")
        assert move.depth.names == {"high"}
        assert move.depth.evaluate(lambda name: 1024.0)[1] == pytest.approx(10, abs=1)


def test_a_loop_over_what_is_left_makes_a_call_for_each_smaller_size() -> None:
    [move] = moves_of([step(N, n=N.times(0.5))], {"n": N}, [])
    assert (move.any_less, move.less) == (True, 1.0)
    # A part between two places that nothing says: all parts together are no larger than the whole.
    [part] = moves_of([step(N, n=N * constant(0.0, 1.0, 0.5))], {"n": N}, [])
    assert not part.any_less


def test_what_is_collected_of_another_argument_does_not_shrink() -> None:
    values = {"found": Value("list", size=N.times(0.25))}
    assert not moves_of([Recursive(values, (1.0, 1.0, 1.0), given={"n": "n"})], {"n": N}, [])


@pytest.mark.parametrize("passed", [[N], [N + constant(1)], [N + constant(1), N - constant(1)]])
def test_an_argument_that_stays_or_grows_or_goes_both_ways_ends_nothing(passed: list[Quantity]) -> None:
    assert not moves_of([step(n=amount) for amount in passed], {"n": N}, [])


def test_a_call_may_widen_the_gap_of_another_one_that_ends() -> None:
    opened, closed = of_size("opened"), of_size("closed")
    start = {"opened": opened, "closed": closed}
    steps = [step(opened=opened + ONE, closed=closed), step(opened=opened, closed=closed + ONE)]
    first, second = moves_of(steps, start, [up_to(N, opened), up_to(opened, closed)])
    assert first.depth == N - opened
    sizes = {"n": 9.0, "opened": 2.0, "closed": 1.0}
    assert second.depth.evaluate(sizes.__getitem__)[1] == 8  # up to all that may be opened


def test_what_is_left_after_something_else_falls() -> None:
    assert falls(step(n=N - of_size("cost")), "n")
    assert not falls(step(n=N + of_size("cost")), "n")
    assert grows(Value("int", number=N + constant(1)), {"n": N})


@pytest.mark.parametrize(
    ("first", "second", "end"),
    [
        (LOW + constant(0.0, 9.0), HIGH, "high"),  # the middle is somewhere behind the start
        ((LOW + HIGH).times(0.5), HIGH, "high"),
        (HIGH, HIGH - constant(1), None),  # both keep the end of the first
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
    found = recurrence([on_child, on_new], start, [Gap(N)], cached=False, base_share=0.5, fallback="tree")
    assert found.name == "calls itself"
    assert found.branches == 1
