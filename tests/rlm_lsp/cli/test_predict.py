"""``rlm-lsp predict`` with the model that ships: its formats, their order, devices, sizes and judges, and its ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from rlm_core.inference.query_selection import DEFAULT_SELECTION
from rlm_lsp.cli.app import app
from rlm_lsp.cli.predict import query_selection
from rlm_lsp.rendering import labels as render

from tests.paths import REPOSITORY

from .predicting import GOOD, predict, rows_of

EXAMPLES = REPOSITORY / "examples"
FIELDS = [
    *("file", "cell", "line", "qualname", "basis", "metric", "unit", "median"),
    *("low", "high", "coverage", "calibrated", "device", "workload", "model", "abstained", "truncated"),
    *(
        "growth",
        "source",
        "measured",
        "holds_for",
        "evidence",
        "sizes",
        "curve",
        "beyond_measured",
        "bound",
        "small_inputs",
    ),
    *("waits", "loop_waits", "endless", "causes", "growth_from", "curable", "analysis_failed"),
]


def test_json_is_one_array_with_a_row_for_each_unit_and_metric() -> None:
    path = EXAMPLES / "functions.py"
    result = predict(path, "--format", "json")
    assert result.exit_code == 0
    rows = rows_of(result)
    assert all(list(row) == FIELDS for row in rows)
    assert {(row["metric"], row["unit"]) for row in rows} == {("latency", "s"), ("memory", "B")}
    assert {row["basis"] for row in rows} == {"call"}
    assert [row["line"] for row in rows if row["qualname"] == "mean"] == [14, 14]
    lines = path.read_text().splitlines()
    assert all(f"def {row['qualname'].rsplit('.')[-1]}(" in lines[row["line"] - 1] for row in rows)


def test_answered_rows_have_an_ordered_band_and_abstained_rows_have_a_reason() -> None:
    for row in rows_of(predict(EXAMPLES, "--format", "json")):
        if row["abstained"] is None:
            assert 0 <= row["low"] <= row["median"] <= row["high"]
            assert row["coverage"] == 0.8
        else:
            assert row["abstained"]
            assert row["median"] is row["low"] is row["high"] is row["coverage"] is None


def test_jsonl_holds_the_same_rows_a_line_each() -> None:
    lines = predict(EXAMPLES, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == rows_of(predict(EXAMPLES, "--format", "json"))


def test_the_table_is_aligned_and_has_a_row_for_each_unit_the_most_expensive_first() -> None:
    result = predict(EXAMPLES / "functions.py")
    header, *lines = result.stdout.splitlines()
    assert header.split("  ")[0] == "WHERE"
    # Functions run on one device, and have no accuracy.
    assert re.split(" {2,}", header) == ["WHERE", "UNIT", "LATENCY (80 % BAND)", "MEMORY (80 % BAND)", "NOTE"]
    rows = rows_of(predict(EXAMPLES / "functions.py", "--format", "json"))
    by_name = {(row["qualname"], row["metric"]): row for row in rows}
    assert 2 * len(lines) == len(rows) == len(by_name)
    shown = [re.split(" {2,}", line)[1] for line in lines]
    medians = [by_name[name, "latency"]["median"] for name in shown]
    assert medians == sorted(medians, reverse=True)
    for line, name in zip(lines, shown, strict=True):
        for metric in ("latency", "memory"):
            cell = line[header.index(metric.upper()) :]
            row = by_name[name, metric]
            assert cell.startswith(render.quantity(metric, row["median"]))
            assert render.quantity(metric, row["high"]) in cell


def test_the_order_and_the_number_of_units_can_be_chosen() -> None:
    def medians(metric: str, *arguments: str) -> list[float]:
        rows = rows_of(predict(EXAMPLES / "functions.py", "--format", "json", *arguments))
        return [row["median"] for row in rows if row["metric"] == metric]

    in_file, by_latency = medians("latency"), medians("latency", "--sort", "latency")
    assert by_latency == sorted(in_file, reverse=True) != in_file
    assert medians("memory", "--sort", "memory", "--top", "3") == sorted(medians("memory"), reverse=True)[:3]
    result = predict(EXAMPLES / "functions.py", "--top", "2")
    assert len(result.stdout.splitlines()) == 3
    assert "; the 2 most expensive shown" in result.stderr
    lines = predict(EXAMPLES / "functions.py", "--sort", "file").stdout.splitlines()
    places = [int(re.split(" {2,}", line)[0].rpartition(":")[2]) for line in lines[1:]]
    assert places == sorted(places)
    refused = predict(EXAMPLES / "functions.py", "--sort", "file", "--top", "2")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_kernels_are_predicted_for_the_chosen_devices_and_sizes() -> None:
    arguments = (EXAMPLES / "kernel.py", "--format", "json", "--device", "A100", "--device", "nvidia-l40s")
    small, large = (
        rows_of(predict(*arguments, "--workload", f"arg0={size}", "--workload", "dtype=fp16"))
        for size in ("1024", "1048576x64")
    )
    kernels = [row for row in small if row["basis"] == "kernel"]
    assert [row["device"] for row in kernels if row["qualname"] == kernels[0]["qualname"]] == [
        *("nvidia-a100-sxm4-80gb", "nvidia-l40s")
    ]
    assert [row["qualname"] for row in small] == [row["qualname"] for row in large]
    if all(row["abstained"] is None for row in [*small, *large]):
        assert [row["median"] for row in small] != [row["median"] for row in large]


def test_functions_keep_the_device_of_their_labels() -> None:
    plain = rows_of(predict(EXAMPLES / "functions.py", "--format", "json"))
    chosen = predict(EXAMPLES / "functions.py", "--format", "json", "--device", "a100", "--workload", "n=7")
    assert rows_of(chosen) == plain


@pytest.mark.parametrize("workload", ["M", "=4096", "M=", ""])
def test_a_workload_that_is_none_is_one_line(workload: str) -> None:
    result = predict(EXAMPLES / "functions.py", "--workload", workload)
    assert result.exit_code == 2
    assert result.stderr == (
        f"rlm-lsp: error: --workload {workload!r} is not NAME=VALUE; write it like M=4096 or dtype=fp16\n"
    )


def test_a_summary_ends_the_run_on_stderr() -> None:
    assert predict(EXAMPLES / "solution.go").stderr.startswith("rlm-lsp: 1 file, 1 unit in ")


def test_paths_and_batch_exclude_each_other() -> None:
    result = predict("a.py", "--batch", "rows.jsonl")
    assert result.exit_code == 2
    assert result.stderr == "rlm-lsp: error: predict: give either paths or --batch\n"


def test_a_bad_model_directory_is_one_line(tmp_path: Path) -> None:
    result = predict(EXAMPLES / "solution.go", "--model", tmp_path / "nothing")
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith(f"rlm-lsp: error: {tmp_path / 'nothing'}")


def test_a_closed_pipe_ends_quietly() -> None:
    command = [sys.executable, "-m", "rlm_lsp", "predict", "--format", "jsonl", str(EXAMPLES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_an_interrupt_ends_with_130_and_no_traceback() -> None:
    command = [sys.executable, "-m", "rlm_lsp", "predict", "--batch", "-"]
    row = {"id": 1, "text": GOOD, "language": "python", "basis": "call", "queries": [{"metric": "latency"}]}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write((json.dumps(row) + "\n").encode() * 64)
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
        assert process.wait() == 130


def test_options_become_a_query_selection() -> None:
    assert query_selection((), ()) is DEFAULT_SELECTION
    selection = query_selection(["a100"], ["M=4096", "shape=64x128", "note=a=b"])
    assert (selection.metrics, selection.devices) == (None, ("a100",))
    assert selection.workload == {"M": "4096", "shape": "64x128", "note": "a=b"}


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("a.py", "--out", "a.json"), "redirect the output instead"),
        (("--batch", "rows.jsonl", "--judge", "boj"), "omit --device, --workload and --judge"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(arguments: tuple[str, ...], advice: str) -> None:
    refused = CliRunner().invoke(app, ["predict", *arguments])
    assert refused.exit_code == 2
    assert advice in refused.stderr


def test_a_program_is_predicted_for_the_judge_that_it_looks_like_or_that_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.cpp"
    path.write_text("#include <bits/stdc++.h>\nint main() { int n; std::cin >> n; std::cout << n; }\n")
    looks, chosen = (rows_of(predict(path, "--format", "json", *more)) for more in ((), ("--judge", "leetcode")))
    assert {(row["device"], row["abstained"]) for row in looks} == {("boj", None)}
    assert {(row["device"], row["workload"]["judge"]) for row in chosen} == {("leetcode", "leetcode")}
    assert "  BOJ  " in predict(path).stdout
    assert "  LeetCode  " in predict(path, "--judge", "leetcode").stdout
    path.write_text(f"// rlm: judge=boj\n{path.read_text()}")
    stated = rows_of(predict(path, "--format", "json", "--judge", "leetcode"))
    assert {row["device"] for row in stated} == {"boj"}


def test_a_judge_that_does_not_know_the_language_gives_no_number_when_it_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "a.rb"
    path.write_text("n = gets.to_i\nputs (1..n).map { |i| i * i }.sum\n")
    looks, chosen = (rows_of(predict(path, "--format", "json", *more)) for more in ((), ("--judge", "boj")))
    assert {(row["device"], row["abstained"]) for row in looks} == {("leetcode", None)}
    assert {row["device"] for row in chosen} == {"boj"}
    assert all("BOJ" in row["abstained"] for row in chosen)
    assert "predicted for LeetCode; the file looks like a program for BOJ" in predict(path).stdout
