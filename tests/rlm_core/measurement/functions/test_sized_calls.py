"""Samples with sizes -> what a measurement says about sizes."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.functions.recordings import FunctionSamples, merge_recordings, read_recordings
from rlm_core.measurement.functions.sized_calls import summarise_inputs
from rlm_core.measurement.types import MOST_SIZED, MOST_SIZES, SizedCalls, SizeSpread


def seen(samples: list[int], sizes: dict[str, list[float]], first: tuple[int, ...] = ()) -> FunctionSamples:
    columns = {name: array("d", column) for name, column in sizes.items()}
    return FunctionSamples("m", "f", "m.py", 1, "function", array("q", samples), columns, list(first))


def test_calls_of_about_the_same_sizes_share_a_row() -> None:
    found = summarise_inputs(seen([10, 20, 30, 400, 500], {"items": [4, 5, 7, 64, 100], "n": [3, 3, 3, 3, 3]}), 1.0)
    assert found.sizes == {"items": SizeSpread(4, 7, 100), "n": SizeSpread(3, 3, 3)}
    assert found.sized == (
        SizedCalls({"items": 5, "n": 3}, 20, 3),
        SizedCalls({"items": 82, "n": 3}, 450, 2),
    )
    assert found.first is None


def test_the_first_call_of_each_process_is_apart() -> None:
    found = summarise_inputs(seen([9000, 10, 11, 7000, 12], {"items": [4, 4, 4, 4, 4]}, (0, 3)), 1.0)
    assert found.first == 8000
    assert found.sized == (SizedCalls({"items": 4}, 11, 3),)
    # Where there is no other, it is all that is known.
    [row] = summarise_inputs(seen([9000], {"items": [4]}, (0,)), 2.0).sized
    assert (row.median, row.calls) == (18_000, 1)


def test_calls_without_sizes_have_no_rows() -> None:
    found = summarise_inputs(seen([-5, 10], {}, (0,)), 1.0)
    assert (found.sizes, found.sized, found.first) == ({}, (), 0.0)


def test_a_size_that_only_some_calls_have_is_one_of_those() -> None:
    found = summarise_inputs(seen([1, 2, 3], {"items": [8, math.nan, 9], "other": [math.nan] * 3}), 1.0)
    assert found.sizes == {"items": SizeSpread(8, 8.5, 9)}
    assert found.sized == (SizedCalls({}, 2, 1), SizedCalls({"items": 8.5}, 2, 2))


def test_a_name_that_is_none_is_left_out() -> None:
    names = ["ok", "self.a[]", "`x`", "a\n", "", "x" * 300, "a b", "1a"]
    found = summarise_inputs(seen([1], {name: [2.0] for name in names}), 1.0)
    assert set(found.sizes) == {"ok", "self.a[]"}


_sizes = st.integers(0, 10**6).map(float) | st.just(math.nan)
_calls = st.lists(st.tuples(st.integers(0, 10**6), _sizes, _sizes), min_size=1, max_size=80)


@given(_calls)
def test_rows_are_few_and_their_calls_alike(calls: list[tuple[int, float, float]]) -> None:
    samples, a, b = (list(column) for column in zip(*calls, strict=True))
    found = summarise_inputs(seen(samples, {"a": a, "b": b}), 1.0)
    assert len(found.sized) <= MOST_SIZED
    known = [call for call in calls if not (math.isnan(call[1]) and math.isnan(call[2]))]
    if found.sizes:
        assert sum(row.calls for row in found.sized) <= len(calls)
        for row in found.sized:
            for name, size in row.sizes.items():
                spread = found.sizes[name]
                assert spread.least <= size <= spread.most
            assert min(samples) <= row.median <= max(samples)
    else:
        assert not known
    # The order of the calls says nothing.
    backwards = summarise_inputs(seen(samples[::-1], {"a": a[::-1], "b": b[::-1]}), 1.0)
    assert backwards == found


def test_many_names_are_cut_to_those_that_most_calls_have() -> None:
    columns = {f"x{number:02}": [1.0, math.nan if number % 2 else 1.0] for number in range(40)}
    found = summarise_inputs(seen([1, 2], columns), 1.0)
    assert set(found.sizes) == {f"x{number:02}" for number in range(0, 2 * MOST_SIZES, 2)}


def test_sizes_of_several_processes_are_joined(tmp_path: Path) -> None:
    function = '["function",0,"m","f","m.py",1,"function"]\n'
    lines = {
        # Of a recording of the first format, which has no sizes.
        1: ("rlm-spool-1", '["seen",[[0,0,0,0,[5,6]]]]\n'),
        2: ("rlm-spool-2", '["seen",[[0,0,0,0,[7],{"n":3}]]]\n["seen",[[0,0,0,0,[8,9],{"n":[4,null],"k":1}]]]\n'),
        3: ("rlm-spool-2", '["seen",[[0,0,0,0,[1],{"n":3}]]]\n["seen",[[0,0,0,0,[8,9],{"n":[4]}]]]\n'),
    }
    for pid, (form, seen_lines) in lines.items():
        start = f'["start",{{"format":"{form}","metric":"latency","began":{pid}}}]\n'
        (tmp_path / f"{pid}-1.jsonl").write_text(start + function + seen_lines)
    [joined] = merge_recordings(read_recordings(tmp_path))
    assert joined.samples.tolist() == [5, 6, 7, 8, 9, 1]
    assert [joined.samples[place] for place in joined.first] == [5, 7, 1]
    columns = {
        name: [None if math.isnan(value) else value for value in column] for name, column in joined.sizes.items()
    }
    assert columns == {"n": [None, None, 3, 4, None, 3], "k": [None, None, None, 1, 1, None]}
