"""Rows of data sets as a predictor reads them: functions of packages as `rlm-lsp predict` reads them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.file_units import file_units
from rlm_core.training.datasets.functions import FunctionBuilder
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.evaluation.rows import predict_table, select
from rlm_core.types import Query

from tests.rlm_core.training.conftest import function_rows

pytestmark = pytest.mark.timeout(60)

MAIN = """from .tools import Table

LIMIT = 3


def total(table: Table, rows):
    return sum(table.weigh_all(row, LIMIT) for row in rows)


def double(x):
    return x + x
"""
TOOLS = """class Table:
    def weigh_all(self, row, limit):
        found = []
        for first in row:
            for second in row:
                found.append([first, second] * limit)
        return len(sorted(found))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set of the two functions of ``pack/main.py``, and the package next to it."""
    (tmp_path / "pack").mkdir()
    files = {"__init__.py": "", "main.py": MAIN, "tools.py": TOOLS}
    with zipfile.ZipFile(tmp_path / "pack-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            (tmp_path / "pack" / name).write_text(text)
            wheel.writestr(f"pack/{name}", text)
    lines = MAIN.splitlines(keepends=True)
    labels = [
        {
            "package": "pack",
            "version": "1.0",
            "module": "pack.main",
            "qualname": name,
            "file": "pack/main.py",
            "firstlineno": line,
            "source_sha1": hashlib.sha1("".join(lines[line - 1 : line + 1]).encode()).hexdigest(),
            "generator": False,
            "calls": 9,
            "latency_ok": True,
            "latency_us": {"p10": 1.0, "p50": 2.0, "p90": 3.0},
            "mem_calls": 9,
            "peak_bytes": {"p10": 100, "p50": 200, "p90": 300},
        }
        for name, line in (("total", 6), ("double", 10))
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    builder = FunctionBuilder(tmp_path / "labels.jsonl", tmp_path, "test", download=False, workers=1)
    assert write_rows(builder.rows(), tmp_path / "rows.parquet") == 4
    return tmp_path / "rows.parquet"


def test_a_function_of_a_package_has_the_prediction_that_users_get(data: Path) -> None:
    predictor = OnnxPredictor(builtin())
    rows = select([data], ("test",), 0).rows
    found = predict_table(predictor, [(row.code, row.query) for row in rows]).table
    [text] = file_units(Analyser(), data.parent / "pack" / "main.py")
    codes = {entry.unit.qualname: entry.code for entry in text.units}
    for place, row in enumerate(rows):
        code = codes[row.id.split(":")[2]]
        [[expected]] = predictor.predict([code], [[Query(row.query.metric)]])
        assert expected.band is not None
        assert found.median[place] == expected.median
        assert (found.low80[place], found.high80[place]) == (expected.band.low, expected.band.high)
    # The package counts: from its text alone the caller has another prediction.
    alone = [(type(row.code)(row.code.text, "python", "call"), row.query) for row in rows if ":total:" in row.id]
    medians = predict_table(predictor, alone).table.median
    assert all(value not in found.median for value in medians)


def test_data_sets_without_calls_are_read_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_rows(function_rows(8), path)
    table = pq.read_table(path)
    assert any(row.code.calls is not None for row in select([path], None, 0).rows)
    pq.write_table(table.drop_columns(["calls"]), path)
    rows = select([path], None, 0).rows
    assert len(rows) == len(table)
    assert all(row.code.calls is None for row in rows)
