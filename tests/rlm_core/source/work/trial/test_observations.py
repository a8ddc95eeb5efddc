"""Counts of a trial: averages over what came to its end, and what was seen at least."""

from __future__ import annotations

import ast

import pytest
from rlm_core.source.work.trial import Observations

NODE = ast.Pass()


def test_nothing_is_known_of_what_never_ended() -> None:
    seen = Observations()
    assert seen.trips(NODE) is None
    assert seen.calls(NODE) is None
    assert seen.share(NODE) is None
    seen.loop(NODE).trips = 7
    assert seen.trips(NODE) is None
    assert seen.fewest(NODE) == 7


def test_a_loop_that_left_out_trips_has_no_count() -> None:
    seen = Observations()
    loop = seen.loop(NODE)
    loop.ended, loop.ended_trips, loop.most = 2, 10, 8
    assert seen.trips(NODE) == 5
    assert seen.fewest(NODE) == 8
    loop.is_sample = True
    assert seen.trips(NODE) is None


def test_few_tests_say_something_in_a_whole_run_only() -> None:
    seen = Observations()
    for holds in (True, False, True, True):
        seen.tally(NODE, hit=holds)
    assert seen.share(NODE) is None
    seen.is_whole = True
    assert seen.share(NODE) == 0.75


def test_what_gets_rare_goes_on_getting_rarer() -> None:
    seen = Observations()
    for time in range(1, 1025):
        seen.tally(NODE, hit=time & (time - 1) == 0)
    share = seen.share(NODE)
    assert share == 11 / 1024
    assert seen.share(NODE, 500) == share
    later = seen.share(NODE, 1e6)
    assert later is not None
    assert share / 1024 <= later < share / 100


def test_an_even_mix_goes_on_as_it_was() -> None:
    seen = Observations()
    for time in range(1, 1025):
        seen.tally(NODE, hit=time % 4 == 0)
    assert seen.share(NODE, 1e6) == pytest.approx(0.25)


def test_what_always_holds_after_a_while_holds_nearly_always() -> None:
    seen = Observations()
    for time in range(100):
        seen.tally(NODE, hit=time >= 8)
    assert seen.share(NODE, 1e6) == pytest.approx(1, abs=1e-4)


def test_trips_of_a_triangle_go_on_growing() -> None:
    seen = Observations()
    for size in range(256):
        seen.ran(NODE, size)
    assert seen.trips(NODE) == 127.5
    later = seen.trips(NODE, 2560)
    assert later is not None
    assert 1100 < later < 1400


def test_calls_are_an_average_over_those_from_outside() -> None:
    seen = Observations()
    function = seen.function(NODE)
    function.ended, function.ended_calls, function.calls, function.most = 2, 30, 4, 20
    assert seen.calls(NODE) == 15
    assert seen.most_calls(NODE) == 20
