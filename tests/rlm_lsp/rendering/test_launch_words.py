"""The words for launches name what is known, and ranges where data decide."""

from __future__ import annotations

from dataclasses import replace

from rlm_core.types import AmountRange, Band, CalibrationSource, LaunchCost, Prediction
from rlm_lsp.rendering.launch_words import (
    amounts,
    cells,
    comparison,
    hover_lines,
    launch_fields,
    note,
    share_of_roofline,
)

COST = LaunchCost(
    AmountRange(2.0**26, 2.0**26, 2.0**26), 2.0**25, AmountRange(4.2e9, 4.2e9, 4.2e9), 4096.0, 1, 2e-5, "bandwidth"
)
FAST = Prediction(
    "kernel", "latency", "nvidia-h100-sxm", {"M": "4096"}, "m", 4e-5, (Band(2e-5, 8e-5, 0.8),), 0.0, False, launch=COST
)
SLOW = replace(
    FAST,
    device="nvidia-t4",
    median=4e-4,
    bands=(Band(2e-4, 8e-4, 0.8, source=CalibrationSource("k", by_data_sheet=True)),),
    launch=replace(COST, roofline=1e-4, bound="launch"),
)


def test_the_amounts_of_a_launch_have_units() -> None:
    assert amounts(COST) == "moves 64 MiB (32 MiB distinct), 4.2 GFLOP, 130 FLOP per byte; 1 launch, 4.1k programs"


def test_what_data_decide_is_a_range() -> None:
    masked = replace(COST, moved=AmountRange(2.0**20, 2.0**22, 2.0**22), flops=AmountRange(0.0, 1e6, 2e6), launches=3)
    assert amounts(masked).startswith("moves 1 MiB to 4 MiB (32 MiB distinct), 0 FLOP to 2 MFLOP, ")
    assert "; 3 launches, " in amounts(masked)


def test_of_an_assumed_launch_only_bytes_are_stated() -> None:
    cost = replace(COST, assumed=True, roofline=None, bound=None)
    assert amounts(cost) == "moves 64 MiB in a launch that covers the output once"
    prediction = replace(FAST, launch=cost)
    assert (cells(prediction), note(prediction)) == ({}, "")
    fields = launch_fields(prediction)
    assert fields is not None
    stated = {name for name, value in fields.items() if value is not None}
    assert stated == {"moved_bytes", "launches", "assumed", "first_program"}
    assert fields["moved_bytes"]["likely"] == COST.moved.likely


def test_of_triton_ir_the_first_program_is_meant() -> None:
    cost = replace(COST, distinct=None, programs=None, roofline=None, bound=None, is_program=True)
    assert amounts(cost) == "the first program moves 64 MiB, 4.2 GFLOP"


def test_a_line_for_each_workload_names_its_sizes() -> None:
    assert hover_lines([FAST, SLOW]) == [amounts(COST)]
    other = replace(FAST, workload={"M": "8192"}, launch=replace(COST, launches=2))
    assert [line.partition(": ")[0] for line in hover_lines([FAST, other])] == ["M 4096", "M 8192"]
    assert hover_lines([replace(FAST, launch=None)]) == []


def test_the_share_of_the_roofline_is_at_most_all_of_it() -> None:
    assert share_of_roofline(FAST) == 0.5
    assert cells(FAST) == {"roofline": "20 µs", "of roofline": "50 %", "bound by": "bandwidth"}
    assert note(FAST) == "bound by bandwidth, 50 % of the roofline"
    assert share_of_roofline(replace(FAST, median=1e-6)) == 1.0
    assert note(replace(FAST, median=1.0)).endswith("<1 % of the roofline")
    unknown = replace(FAST, launch=replace(COST, roofline=None, bound=None))
    assert (cells(unknown), note(unknown), share_of_roofline(unknown)) == ({}, "", None)


def test_json_has_the_amounts_in_si_units() -> None:
    fields = launch_fields(FAST)
    assert fields is not None
    assert fields["moved_bytes"] == {"least": 2.0**26, "likely": 2.0**26, "most": 2.0**26}
    assert (fields["roofline"], fields["share_of_roofline"], fields["bound"]) == (2e-5, 0.5, "bandwidth")
    assert launch_fields(replace(FAST, launch=None)) is None
    empty = launch_fields(replace(FAST, launch=replace(COST, distinct=0.0)))
    assert empty is not None
    assert empty["intensity"] is None


def test_gpus_are_compared_from_the_fastest_to_the_slowest() -> None:
    lines = comparison("mod.kernel", [SLOW, FAST]).splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("|")]
    assert rows[0] == ["GPU", "median", "80 % band", "roofline", "of roofline", "bound by", "note"]
    assert rows[2][:2] == ["nvidia-h100-sxm", "40 µs"]
    assert [rows[3][0], rows[3][5], rows[3][6]] == ["nvidia-t4", "launches", "by its data sheet"]
    assert "on 2 GPUs" in lines[0]
    assert any(line.startswith("At M 4096: moves 64 MiB") for line in lines)


def test_kernels_without_known_launches_are_compared_all_the_same() -> None:
    text = comparison("kernel", [replace(FAST, launch=None)])
    assert "| GPU" in text
    assert "roofline" not in text
