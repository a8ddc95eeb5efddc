"""``rlm-lsp predict --batch`` with rows of JSON: answers, and every kind of bad row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rlm_core
from click.testing import CliRunner, Result
from rlm_core import Callee, CodeText, Query
from rlm_lsp.cli.app import app
from rlm_lsp.rendering.json_rows import prediction_fields

TEXT = "def f(xs):\n    return g(xs)\n"
CALLEE = "def g(xs):\n    return sorted(xs)\n"
ROW: dict[str, Any] = {
    "id": "f",
    "text": TEXT,
    "language": "python",
    "basis": "call",
    "queries": [{"metric": "latency"}, {"metric": "memory"}],
}


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
