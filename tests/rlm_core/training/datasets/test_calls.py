"""Function labels and a wheel -> the call graph of a package: labelled functions, and those that they call."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rlm_core.training.datasets.calls import SCHEMA, CallGraphBuilder
from rlm_core.training.datasets.schema import read_rows, write_rows

pytestmark = pytest.mark.extras
MODULE = "from .tools import helper\n\n\ndef work(items):\n    return [helper(item) for item in items]\n"
WORK = "def work(items):\n    return [helper(item) for item in items]\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A source cache with the wheel of ``small-package`` 1.0."""
    with zipfile.ZipFile(tmp_path / "small_package-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small_package/__init__.py", "")
        wheel.writestr("small_package/main.py", MODULE)
        wheel.writestr(
            "small_package/tools.py", "def helper(item):\n    return inner(item)\n\n\ndef inner(x):\n    return x\n"
        )
    return tmp_path


def rows(cache: Path, **changes: Any) -> dict[str, dict[str, Any]]:
    label: dict[str, Any] = {
        "package": "small-package",
        "version": "1.0",
        "module": "small_package.main",
        "qualname": "work",
        "file": "small_package/main.py",
        "firstlineno": 4,
        "calls": 20,
        "generator": False,
        "latency_us": {"p10": 1.0, "p50": 2.0, "p90": 9.0},
        "latency_ok": True,
        "mem_calls": 20,
        "peak_bytes": {"p10": 0, "p50": 480, "p90": 900},
        "source_sha1": hashlib.sha1(WORK.encode()).hexdigest(),
    }
    path = cache / "labels.jsonl"
    path.write_text(json.dumps(label | changes) + "\n")
    builder = CallGraphBuilder(path, cache, download=False, workers=1)
    write_rows(builder.rows(), cache / "calls.parquet", SCHEMA)
    return {row["id"]: row for row in read_rows([cache / "calls.parquet"])}


def test_a_labelled_function_and_what_it_calls_are_rows(cache: Path) -> None:
    found = rows(cache)
    work, helper = found["small-package:small_package.main:work"], found["small-package:small_package.tools:helper"]
    assert len(found) == 2
    assert (work["latency"], work["memory"]) == (pytest.approx(2e-6), 480.0)
    assert [(site["candidates"], site["loops"]) for site in work["sites"]] == [([helper["id"]], 1)]
    assert (helper["split"], helper["latency"], helper["sites"]) == ("none", None, [])
    assert work["group"] == "small-package/small_package.main"


def test_generators_and_functions_with_few_calls_have_no_row(cache: Path) -> None:
    assert rows(cache, generator=True) == {}
    assert rows(cache, calls=1, mem_calls=1) == {}


def test_all_functions_of_a_test_package_are_test_rows(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.training.datasets.calls.TEST_PACKAGES", frozenset({"small-package"}))
    assert rows(cache)["small-package:small_package.main:work"]["split"] == "test"
