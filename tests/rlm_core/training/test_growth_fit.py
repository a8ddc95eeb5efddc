"""A growth data set -> the weights of the head, and their figures on unseen problems."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from rlm_core.inference import growth
from rlm_core.inference.card import checksum, read_card
from rlm_core.inference.model_store import builtin
from rlm_core.training.datasets.growth import SCHEMA
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.growth_fit import GrowthRows, add_to, as_function, fit, predictions, read_rows
from rlm_core.types import GROWTH_CLASSES

from tools.experiments.growth_report import page, report, within_one

pytestmark = pytest.mark.extras

BODIES = {
    "n": "\t\tfor {0} in {1}:\n\t\t\tprint({0})",
    "n^2": "\t\tfor {0} in {1}:\n\t\t\tfor k in {1}:\n\t\t\t\tprint({0}, k)",
    "n log n": "\t\t{1}.sort()\n\t\treturn {1}[{0}]",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 240 solutions of 80 problems in three classes, in all splits."""
    rows = []
    for number in range(240):
        name = list(BODIES)[number % 3]
        body = BODIES[name].format(f"a{number}", f"b{number}")
        split = ("train", "train", "train", "val", "cal", "test")[number // 3 % 6]
        rows.append(
            {
                "id": str(number),
                "text": f"class Solution:\n\tdef f{number}(self, b{number}):\n{body}",
                "language": "python",
                "time": name,
                "space": "1" if number % 2 else None,
                "group": f"problem-{number // 3}",
                "split": split,
                "source": "here",
            }
        )
    path = tmp_path_factory.mktemp("growth") / "growth.parquet"
    write_rows(rows, path, SCHEMA)
    return path


@pytest.fixture(scope="module")
def rows(data: Path) -> GrowthRows:
    return read_rows(data)


@pytest.fixture(scope="module")
def head(rows: GrowthRows) -> growth.GrowthWeights:
    return fit(rows, rows.of_split("train", "val"), rows.of_split("cal"))


def test_solutions_with_one_method_are_read_as_functions_too(rows: GrowthRows) -> None:
    assert rows.basis.count("call") == rows.basis.count("program") == 240
    assert as_function("class Solution:\n\tdef f(self):\n\t\treturn 1", "python") == "def f(self):\n\treturn 1"
    assert as_function("class Solution:\n\tdef f(self):\n\t\treturn 1\n\tdef g(self):\n\t\treturn 2", "python") is None
    assert as_function("class Solution:\n\tdef f(self):\n\t\treturn 1\nprint(1)", "python") is None
    assert as_function("class Solution { }", "cpp") is None


def test_the_head_learns_what_the_structure_says(rows: GrowthRows, head: growth.GrowthWeights) -> None:
    test = rows.of_split("test")
    table = predictions(head, rows, test)
    assert np.mean(table[:, 0].argmax(axis=1) == rows.labels[test, 0]) > 0.95


def test_the_same_rows_and_seed_give_the_same_head(rows: GrowthRows, head: growth.GrowthWeights) -> None:
    again = fit(rows, rows.of_split("train", "val"), rows.of_split("cal"))
    np.testing.assert_array_equal(again.codes, head.codes)
    np.testing.assert_allclose(again.first, head.first, atol=1e-5)


def test_a_head_is_added_to_a_model_with_its_checksum(head: growth.GrowthWeights, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(builtin(), model)
    before = read_card(model)
    add_to(before, head, model)
    after = read_card(model)
    assert after.files[growth.GROWTH] == checksum(model / growth.GROWTH)
    assert set(after.files) == {*before.files, growth.GROWTH}
    assert after.model_id != before.model_id


def test_neighbours_are_within_one_and_other_has_none() -> None:
    def near(first: str, second: str) -> bool:
        numbers = [np.array([GROWTH_CLASSES.index(name)]) for name in (first, second)]
        return bool(within_one(*numbers)[0])

    assert all(
        near(*pair) for pair in (("n", "n log n"), ("mn", "n^2"), ("mn", "n^3"), ("n log n", "mn"), ("2^n", "n^3"))
    )
    assert near("other", "other")
    assert not any(near(*pair) for pair in (("n", "n^2"), ("1", "n"), ("other", "2^n"), ("n", "mn")))


def test_the_report_has_figures_and_a_baseline_and_the_page_shows_them(
    rows: GrowthRows, head: growth.GrowthWeights
) -> None:
    entries = report(head, rows)
    assert {(entry["language"], entry["unit"], entry["cost"]) for entry in entries} == {
        ("Python", "program", "time"),
        ("Python", "call", "time"),
    }
    for entry in entries:
        assert entry["rows"] == 39
        assert entry["accuracy"] > 0.95
        assert 0 <= entry["baseline accuracy"] <= 1
    text = page(entries, "`model`", "test")
    assert "| Python, functions | time | 39 |" in text
