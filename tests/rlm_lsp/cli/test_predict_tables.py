"""``rlm-lsp predict --batch`` with Parquet and URIs gives what it gives for lines of JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from rlm_lsp.cli.app import app
from rlm_lsp.cli.predict_rows import ANSWER_COLUMNS

pytestmark = pytest.mark.extras

ROWS: list[dict[str, Any]] = [
    {
        "id": f"row {number}",
        "text": f"def f(n):\n    return g(n) + {number}\n",
        "language": "python",
        "basis": "call",
        "queries": [{"metric": "latency"}, {"metric": "memory"}],
        "callees": [{"text": "def g(n):\n    return sum(range(n))\n", "level": 1}],
    }
    for number in range(70)
]
KERNEL = {
    "id": "kernel",
    "text": "@triton.jit\ndef k(x, n, B: tl.constexpr):\n    tl.store(x, tl.load(x + tl.arange(0, B)))\n",
    "language": "triton",
    "basis": "kernel",
    "queries": [{"metric": "latency", "device": "nvidia-h100", "workload": {"n": "4096", "dtype": "fp16"}}],
}


def predict(source: object, out: object) -> Result:
    return CliRunner().invoke(app, ["predict", "--batch", str(source), "--out", str(out)])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def plain(value: Any) -> Any:
    """A value of Parquet as JSON has it."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_answers_in_parquet_are_those_in_json(tmp_path: Path, form: str) -> None:
    rows = [*ROWS, KERNEL]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    assert predict(tmp_path / "rows.jsonl", tmp_path / "expected.jsonl").exit_code == 0
    done = predict(form.format(tmp_path / "rows.parquet"), form.format(tmp_path / "answers.parquet"))
    assert done.exit_code == 0, done.stderr
    expected = lines(tmp_path / "expected.jsonl")
    answers = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    assert [answer["id"] for answer in answers] == [row["id"] for row in rows]
    for answer, row in zip(answers, expected, strict=True):
        for prediction, known in zip(plain(answer["predictions"]), row["predictions"], strict=True):
            assert prediction == {name: known[name] for name in prediction}
    # JSON by URI, and Parquet in with JSON out.
    done = predict(form.format(tmp_path / "rows.parquet"), form.format(tmp_path / "answers.jsonl"))
    assert done.exit_code == 0, done.stderr
    assert lines(tmp_path / "answers.jsonl") == expected
    done = predict(form.format(tmp_path / "rows.jsonl"), tmp_path / "again.jsonl")
    assert done.exit_code == 0, done.stderr
    assert lines(tmp_path / "again.jsonl") == expected


# What rests on a measurement, which a row never has, and the sizes of the row.
NOT_IN_TABLES = {"measured", "sizes", "curve", "beyond_measured"}


def test_the_sizes_of_a_row_are_those_of_its_answer(tmp_path: Path) -> None:
    text = "def f(items: list[int]) -> int:\n    return sum(item * item for item in items)\n"
    row = {"id": 1, "text": text, "language": "python", "basis": "call", "queries": [{"metric": "latency"}]}
    sized = {**row, "id": 2, "sizes": {"items": 1e5}}
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(sized)}\n")
    assert predict(tmp_path / "rows.jsonl", tmp_path / "answers.parquet").exit_code == 0
    small, large = [answer["predictions"][0] for answer in pq.read_table(tmp_path / "answers.parquet").to_pylist()]
    assert (small["holds_for"], large["holds_for"]) == ("small inputs", "given sizes")
    assert large["small_inputs"]["median"] == small["median"]
    assert large["median"] > 1000 * small["median"]


def test_every_field_of_an_answer_has_a_column(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({**ROWS[0], "text": "def f(values):\n    return [value * 2 for value in values]\n"})
    )
    predict(tmp_path / "rows.jsonl", tmp_path / "answers.jsonl")
    [answer] = lines(tmp_path / "answers.jsonl")
    [columns] = ANSWER_COLUMNS["predictions"]
    assert set(answer["predictions"][0]) == {*columns, *NOT_IN_TABLES}
    assert set(answer["predictions"][0]["growth"]) == set(columns["growth"])


def test_a_bad_row_is_answered_and_makes_the_exit_status_2(tmp_path: Path) -> None:
    bad = {**ROWS[0], "id": "bad", "language": "klingon"}
    pq.write_table(pa.Table.from_pylist([ROWS[0], bad]), tmp_path / "rows.parquet")
    done = predict(tmp_path / "rows.parquet", tmp_path / "answers.parquet")
    assert done.exit_code == 2
    good, answered = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    assert good["error"] is None
    assert (answered["id"], answered["line"], answered["predictions"]) == ("bad", 2, None)
    assert "unknown language 'klingon'" in answered["error"]


def test_ids_that_are_numbers_are_text_in_parquet(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({**ROWS[0], "id": 7}))
    assert predict(tmp_path / "rows.jsonl", tmp_path / "answers.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "answers.parquet").column("id").to_pylist() == ["7"]


def test_a_scheme_without_a_driver_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROWS[0]))
    for source, out in (("nothing://rows.parquet", "-"), (tmp_path / "rows.jsonl", "nothing://answers.parquet")):
        done = predict(source, out)
        assert done.exit_code == 2
        [line] = done.stderr.splitlines()
        assert "no driver reads nothing://" in line


def test_without_pyarrow_one_line_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_lsp.cli.options.find_spec", lambda name: None if name == "pyarrow" else sys)
    done = predict("rows.parquet", tmp_path / "out.jsonl")
    assert done.exit_code == 2
    assert done.stderr == "rlm-lsp: error: pyarrow is not installed; run: pip install '.[parquet]'\n"
