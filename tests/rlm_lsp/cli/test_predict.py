"""``rlm-lsp predict`` with the model that ships: paths and batches, formats, and every kind of bad input."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rlm_core
from click.testing import CliRunner, Result
from rlm_core import Callee, CodeText, Query
from rlm_core.inference.query_selection import DEFAULT_SELECTION
from rlm_lsp.cli.app import app
from rlm_lsp.cli.predict import query_selection
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.json_rows import prediction_fields

from tests.notebooks import notebook_text
from tests.paths import REPOSITORY

pytestmark = pytest.mark.timeout(120)

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
    *("waits", "loop_waits", "endless", "causes", "growth_from", "analysis_failed"),
]
GOOD = "def good(n):\n    return sum(range(n))\n"
TEXT = "def f(xs):\n    return g(xs)\n"
CALLEE = "def g(xs):\n    return sorted(xs)\n"
ROW: dict[str, Any] = {
    "id": "f",
    "text": TEXT,
    "language": "python",
    "basis": "call",
    "queries": [{"metric": "latency"}, {"metric": "memory"}],
}


def predict(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["predict", *map(str, arguments)])


def rows_of(result: Result) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


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


def test_tests_are_left_out_unless_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "test" / "project"  # what is above the project says nothing
    for name in ("a.py", "test_a.py", "tests/b.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(GOOD)

    def files(*names: str) -> list[str]:
        rows = rows_of(predict(*names, "--format", "json"))
        return sorted({Path(row["file"]).name for row in rows})

    monkeypatch.chdir(project)
    result = predict(".")
    assert "; 2 files of tests left out: name one to see it" in result.stderr
    assert files() == files(".") == files(str(project)) == ["a.py"]
    assert files("test_a.py") == ["test_a.py"]
    assert files("tests") == files(str(project / "tests")) == ["b.py"]
    assert files(".", "tests") == ["a.py", "b.py"]
    monkeypatch.chdir(project / "tests")
    assert files(".") == ["b.py"]


def test_functions_of_notebooks_have_the_places_of_their_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(notebook_text(GOOD, "%time x = 1\n\ndef caller(n):\n    return good(n) + 1\n", "def broken(:\n"))
    (tmp_path / "bad.ipynb").write_text('{"cells": [')
    (tmp_path / "empty.ipynb").touch()
    found = predict(tmp_path, "--format", "json")
    rows = [row for row in rows_of(found) if row["metric"] == "latency"]
    assert [(row["file"], row["cell"], row["line"], row["qualname"]) for row in rows] == [
        (str(path), 2, 1, "good"),
        (str(path), 3, 3, "caller"),
    ]
    [error] = [line for line in found.stderr.splitlines() if "error:" in line]
    assert re.search(r"bad\.ipynb: is not a Jupyter notebook \(.+\); save it again in Jupyter$", error)
    assert found.exit_code == 2
    table = predict(path)
    assert table.exit_code == 0
    assert {line.split("  ")[0] for line in table.stdout.splitlines()[1:]} == {f"{path}:cell 2:1", f"{path}:cell 3:3"}
    # A function may call those of the cells before it.
    whole = tmp_path / "whole.py"
    whole.write_text(GOOD + "\ndef caller(n):\n    return good(n) + 1\n")
    of_file = [row for row in rows_of(predict(whole, "--format", "json")) if row["metric"] == "latency"]
    assert rows[1]["median"] == pytest.approx(of_file[1]["median"])


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


def test_ir_without_a_public_function_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "empty.ttir"
    path.write_text("module {\n}\n")
    result = predict(path, "--format", "json")
    assert result.exit_code == 0
    assert rows_of(result) == []
    assert f"{path}: nothing to predict" in result.stderr


def test_a_summary_ends_the_run_on_stderr() -> None:
    assert predict(EXAMPLES / "solution.go").stderr.startswith("rlm-lsp: 1 file, 1 unit in ")


def test_a_directory_is_walked_in_order_without_dependencies_and_caches(tmp_path: Path) -> None:
    skipped = (".git/a.py", "node_modules/a.js", "__pycache__/a.py", "env/lib/a.py")
    for name in ("b/z.py", "b/a.go", "a.py", "notes.txt", *skipped):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("// rlm: program\npackage main\nfunc f() {}\n" if name.endswith(".go") else GOOD)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "__init__.py").touch()
    result = predict(tmp_path, "--format", "json")
    assert result.exit_code == 0
    files = [row["file"] for row in rows_of(result)]
    assert list(dict.fromkeys(files)) == [str(tmp_path / name) for name in ("a.py", "b/a.go", "b/z.py")]


def make_bad(folder: Path, kind: str) -> Path:
    path = folder / {"unknown": "bad.xyz", "directory": "bad"}.get(kind, "bad.py")
    if kind == "directory":
        path.mkdir()
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(50 * 2**20)
    elif kind != "missing":
        content = {
            "binary": b"\x7fELF\0\0\0",
            "empty": b"",
            "blank": b" \n\n",
            "not utf-8": b"def f():\n    return '\xff\xfe'\n",
            "unknown": GOOD.encode(),
            "unparsable": b"def (((\n)]\n",
        }
        path.write_bytes(content[kind])
    return path


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("missing", "no such file; check the path"),
        ("binary", "is a binary file"),
        ("empty", "is empty"),
        ("blank", "is empty"),
        ("huge", "50 MiB is over the limit"),
        ("not utf-8", "is not valid UTF-8"),
        ("unknown", "unknown language"),
        ("directory", "no source file in this directory"),
        ("unparsable", "and no unit that parses as Python"),
    ],
)
def test_a_bad_path_is_one_line_and_the_others_still_get_predictions(tmp_path: Path, kind: str, what: str) -> None:
    good = tmp_path / "good.py"
    good.write_text(GOOD)
    bad = make_bad(tmp_path, kind)
    result = predict(bad, good, "--format", "json")
    assert result.exit_code == 2
    error, summary = result.stderr.splitlines()
    assert error.startswith(f"rlm-lsp: error: {bad}: ")
    assert what in error
    assert "1 path failed" in summary
    assert {row["qualname"] for row in rows_of(result)} == {"good"}


def test_a_link_out_of_a_walked_folder_is_one_line_and_a_named_one_is_predicted(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret.py").write_text("def secret(n):\n    return sum(range(n))\n")
    (folder / "good.py").write_text(GOOD)
    (folder / "link.py").symlink_to(tmp_path / "secret.py")
    result = predict(folder, "--format", "json")
    assert {row["qualname"] for row in rows_of(result)} == {"good"}
    assert f"{folder / 'link.py'}: outside {folder}" in result.stderr
    named = predict(folder / "link.py", "--format", "json")
    assert {row["qualname"] for row in rows_of(named)} == {"secret"}


def test_a_file_with_syntax_errors_gives_the_units_that_parse(tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text(GOOD + "\n\nx = (((\n")
    result = predict(path, "--format", "json")
    assert result.exit_code == 0
    assert {row["qualname"] for row in rows_of(result)} == {"good"}
    # A function that does not parse has no cost.
    path.write_text(f'def old():\n    print "x"\n\n\n{GOOD}')
    result = predict(path, "--format", "json")
    assert result.exit_code == 0
    assert {row["qualname"] for row in rows_of(result)} == {"good"}
    assert f"{path}: 1 unit with syntax errors left out (line 2: Missing parentheses" in result.stderr


def test_a_named_file_without_units_is_no_error_but_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "constants.py"
    path.write_text("X = 1\n")
    result = predict(path, "--format", "json")
    assert result.exit_code == 0
    assert rows_of(result) == []
    assert f"{path}: nothing to predict" in result.stderr


@pytest.mark.parametrize(("name", "mark"), [("client.ts", "//"), ("client.rb", "#")])
def test_a_file_that_is_not_a_solution_is_noted_and_predicted_on_demand(tmp_path: Path, name: str, mark: str) -> None:
    path = tmp_path / name
    path.write_text("import { api } from './api';\n" if mark == "//" else "require_relative 'api'\n")
    result = predict(path, "--format", "json")
    assert (result.exit_code, rows_of(result)) == (0, [])
    [note, _] = result.stderr.splitlines()
    assert "does not look like a solution" in note
    directive = f"{mark} rlm: program"
    assert f"`{directive}`" in note
    path.write_text(f"{directive}\n{path.read_text()}")
    assert {row["basis"] for row in rows_of(predict(path, "--format", "json"))} == {"program"}


def test_syntax_of_a_file_that_is_not_a_solution_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "App.tsx"
    path.write_text("import React from 'react';\nexport const App = () => <div onClick={() => null}>Hi</div>;\n")
    assert predict(path).exit_code == 0
    result = predict(tmp_path)
    assert (result.exit_code, result.stderr.count("\n")) == (0, 1)


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


def batch(text: str | bytes, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["predict", "--batch", "-", *arguments], input=text)


def replies(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_answers_equal_the_librarys() -> None:
    rows = [ROW, {**ROW, "id": 2, "callees": [CALLEE, {"text": "def h(): pass", "level": 2}]}]
    result = batch("\n".join(map(json.dumps, rows)))
    assert result.exit_code == 0
    predictor = rlm_core.load()
    queries = [Query("latency"), Query("memory")]
    for reply, row, callees in zip(
        replies(result), rows, [(), (Callee(CALLEE), Callee("def h(): pass", 2))], strict=True
    ):
        [expected] = predictor.predict([CodeText(TEXT, "python", "call", callees)], [queries])
        assert reply["id"] == row["id"]
        assert reply["predictions"] == [prediction_fields(prediction) for prediction in expected]


def test_more_rows_than_a_batch_come_back_in_order(tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({**ROW, "id": number}) + "\n" for number in range(70)))
    result = CliRunner().invoke(app, ["predict", "--batch", str(source), "--out", str(out)])
    assert result.exit_code == 0
    assert result.stdout == ""
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert [reply["id"] for reply in answers] == list(range(70))
    assert all(reply["predictions"] == answers[0]["predictions"] for reply in answers)


def test_device_and_workload_are_part_of_the_query() -> None:
    query = {"metric": "latency", "device": "no-such-device", "workload": {"runtime": "cpython-3.12"}}
    [reply] = replies(batch(json.dumps({**ROW, "queries": [query]})))
    assert len(reply["predictions"]) == 1
    assert reply["predictions"][0]["metric"] == "latency"


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"text": ""}, "`text` must not be blank"),
        ({"text": 1}, "Expected `str`, got `int` - at `$.text`"),
        ({"language": "cobol"}, "unknown language 'cobol'"),
        ({"language": None}, "Expected `str`, got `null` - at `$.language`"),
        ({"basis": "year"}, "Invalid enum value 'year' - at `$.basis`"),
        ({"basis": []}, "Expected `str`, got `array` - at `$.basis`"),
        ({"queries": []}, "Expected `array` of length >= 1 - at `$.queries`"),
        ({"queries": ["latency"]}, "Expected `object`, got `str` - at `$.queries[0]`"),
        ({"queries": [{"metric": "speed"}]}, "Invalid enum value 'speed' - at `$.queries[0].metric`"),
        ({"queries": [{"metric": "latency", "device": 1}]}, "at `$.queries[0].device`"),
        (
            {"queries": [{"metric": "latency", "workload": {"n": 1}}]},
            "Expected `str`, got `int` - at `$.queries[0].workload[...]`",
        ),
        ({"callees": "g"}, "Expected `array`, got `str` - at `$.callees`"),
        ({"callees": [1]}, "Expected `str | object`, got `int` - at `$.callees[0]`"),
        ({"callees": [{"text": "x", "level": 0}]}, "Expected `int` >= 1 - at `$.callees[0].level`"),
        ({"id": None}, "Expected `int | str`, got `null` - at `$.id`"),
    ],
)
def test_a_bad_row_gets_one_line_and_the_others_are_answered(change: dict[str, Any], part: str) -> None:
    result = batch("\n".join(map(json.dumps, [{**ROW, **change}, ROW])))
    assert result.exit_code == 2
    bad, good = replies(result)
    assert bad["id"] == change.get("id", "f")
    assert bad["line"] == 1
    assert part in bad["error"]
    assert "\n" not in bad["error"]
    assert len(good["predictions"]) == 2


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (b"{", "Input data was truncated"),
        (b"{]", "JSON is malformed"),
        (b"[1]", "Expected `object`, got `array`"),
        (b'"\xff"', "Expected `object`, got `str`"),
        (b'{"text": "\xff"}', "'utf-8' codec can't decode byte"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
    ],
)
def test_a_line_that_is_no_row_is_named_by_its_number(line: bytes, part: str) -> None:
    result = batch(b"\n\n" + line + b"\n")
    assert result.exit_code == 2
    [bad] = replies(result)
    assert bad["id"] is None
    assert bad["line"] == 3
    assert part in bad["error"]


def test_files_that_cannot_be_opened_are_one_line(tmp_path: Path) -> None:
    missing = CliRunner().invoke(app, ["predict", "--batch", str(tmp_path / "none.jsonl")])
    assert missing.exit_code == 2
    assert missing.stderr.startswith(f"rlm-lsp: error: {tmp_path / 'none.jsonl'}: cannot be read")
    unwritable = batch(json.dumps(ROW), "--out", str(tmp_path / "no" / "out.jsonl"))
    assert unwritable.exit_code == 2
    assert "cannot be written" in unwritable.stderr


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


def test_names_of_files_and_functions_cannot_control_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b]0;owned\x07\n::stop-commands::x"
    folder.mkdir()
    (folder / "b\x9b.py").write_text("def f(n):\n    return n\n")
    (folder / "c\x1b.py").write_bytes(b"\0")
    (folder / "k.ttir").write_text('tt.func public @"k\x1b[2J"(%arg0: i32) {\n}\n')
    result = predict(folder)
    assert result.exit_code == 2
    assert r"\x1b]0;owned\x07\x0a::stop-commands::x/b\x9b.py:1" in result.stdout
    assert r"k\x1b[2J" in result.stdout
    shown = result.stdout + result.stderr
    assert not [c for c in shown if c != "\n" and not c.isprintable() and c != "\u202f"]
    assert not [line for line in shown.splitlines() if line.startswith("::")]


def test_a_text_that_is_too_complex_is_one_line_and_the_others_are_predicted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(n):\n    return n\n")
    (tmp_path / "b.py").write_text("".join(f"def f{number}(n): return n\n" for number in range(5_001)))
    result = predict(tmp_path, "--format", "json")
    assert result.exit_code == 2
    assert {row["qualname"] for row in rows_of(result)} == {"f"}
    error = result.stderr.splitlines()[0]
    assert error == f"rlm-lsp: error: {tmp_path / 'b.py'}: too complex to analyse: more than 5000 functions"
