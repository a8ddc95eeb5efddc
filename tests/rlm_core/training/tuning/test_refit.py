"""Labels read anew on a finished encoder: what moves, what must not, and what only a whole training can learn."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rlm_core
from rlm_core import CodeText, DataError, Query
from rlm_core.inference.card import CARD, read_card
from rlm_core.inference.student import ENCODER, TREES, OnnxPredictor
from rlm_core.source.canonical import CanonicalForm
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.tuning.refit import refit

from tests.rlm_core.training.conftest import Trained, function_rows, kernel_rows, program_rows, run_cli

from .test_run import LATENCY, Rows, quietly, raw_medians, shifted, unseen, written

COUNT = 240


@pytest.fixture(scope="module")
def again(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with its functions read anew, from more of them, which cost three times as much."""
    folder = tmp_path_factory.mktemp("again")
    refit([written(shifted(COUNT), folder)], trained.exported, folder / "model", "anew", quietly)
    return folder / "model"


def test_predictions_follow_the_new_labels(trained: Trained, again: Path) -> None:
    codes, values = unseen(shifted(COUNT))
    before, after = (np.abs(raw_medians(model, codes) - np.log10(values)) for model in (trained.exported, again))
    assert np.median(after) < 0.5 * np.median(before)


def test_bands_are_calibrated_on_the_new_rows(again: Path) -> None:
    levels = read_card(again).calibration.to_json()
    # Seven families, so training rows count too, each by a head without its family.
    assert levels[LATENCY]["groups"] == 7
    splits = {row["id"]: row["split"] for row in shifted(COUNT) if row["metric"] == "latency"}
    assert levels[LATENCY]["rows"] == sum(split in ("train", "cal") for split in splits.values())


def test_other_bases_answer_as_before(trained: Trained, again: Path) -> None:
    rows = program_rows(12)
    codes = [CodeText(row["text"], "java", "program") for row in rows]
    queries = [Query(row["metric"], "leetcode", row["workload"]) for row in rows]
    before, after = (OnnxPredictor(model).distributions(codes, queries)[0] for model in (trained.exported, again))
    np.testing.assert_allclose(after, before, atol=1e-6)
    assert (again / ENCODER).read_bytes() == (trained.exported / ENCODER).read_bytes()
    assert (again / TREES).read_bytes() == (trained.exported / TREES).read_bytes()


def test_the_new_model_reads_the_neutral_form(again: Path, tmp_path: Path) -> None:
    forms = {"call/python": CanonicalForm.NEUTRAL}
    assert read_card(again).forms == forms
    # A model that was trained on texts as written reads them that way.
    copy = shutil.copytree(again, tmp_path / "copy")
    card = json.loads((copy / CARD).read_text())
    del card["canonical_forms"]
    (copy / CARD).write_text(json.dumps(card))
    assert not read_card(copy).forms
    texts = [CodeText(f"def f({name}):\n    return {name} * 17\n", "python", "call") for name in ("x", "other")]
    queries = [Query("latency")] * 2
    for model, is_same in ((again, True), (copy, False)):
        first, second = OnnxPredictor(model).distributions(texts, queries)[0]
        assert np.array_equal(first, second) == is_same


def test_the_device_is_kept_and_listed_in_the_card(trained: Trained, again: Path) -> None:
    before, after = read_card(trained.exported), read_card(again)
    assert after.defaults == before.defaults
    assert after.devices == before.devices
    [refitted] = after.trained["refitted"]
    assert refitted["from"] == before.model_id
    assert refitted["families"] == 7
    assert refitted["rows"] == sum(row["split"] == "train" for row in function_rows(COUNT))
    assert json.loads((again / CARD).read_text())["name"] == "anew"


def _without_split(rows: Rows) -> Rows:
    return [row for row in rows if row["split"] != "cal"]


def _without_metric(rows: Rows) -> Rows:
    return [row for row in rows if row["metric"] == "latency"]


def _other_language(rows: Rows) -> Rows:
    return [*rows, *({**row, "language": "ruby"} for row in rows)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (_without_split, "no rows of split cal"),
        (_without_metric, "no rows of call/python/memory: all tasks of a basis are fitted together"),
        (_other_language, "does not know; use rlm-lsp train"),
        (lambda rows: [*rows, *kernel_rows(8)], "only call and program can be refitted"),
    ],
)
def test_rows_that_it_cannot_learn_from_are_refused(
    trained: Trained, tmp_path: Path, changed: Callable[[Rows], Any], message: str
) -> None:
    write_rows(changed(function_rows(24)), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=message):
        refit([tmp_path / "rows.parquet"], trained.exported, tmp_path / "model", "anew", quietly)
    assert not (tmp_path / "model").exists()


def test_programs_of_another_judge_become_tasks_of_the_model(trained: Trained, tmp_path: Path) -> None:
    known = program_rows(COUNT)
    slower = [
        {
            **row,
            "id": row["id"].replace("leethub", "boj"),
            "device": "boj",
            "workload": {"judge": "boj", "date": row["workload"]["date"]},
            "value": row["value"] * 10,
        }
        for row in known
        if row["metric"] == "latency"
    ]
    write_rows(slower, tmp_path / "rows.parquet")
    refit([tmp_path / "rows.parquet"], trained.exported, tmp_path / "model", "anew", quietly)
    before, after = (OnnxPredictor(model) for model in (trained.exported, tmp_path / "model"))
    codes = [CodeText(row["text"], "java", "program") for row in slower[::9]]
    there = [line[0] for line in after.predict(codes, [[Query("latency", "boj")]] * len(codes))]
    assert all(one.median is not None and one.floor == 4e-3 for one in there)
    assert np.corrcoef([one.median or 0.0 for one in there], [row["value"] for row in slower[::9]])[0, 1] > 0.8
    [refused] = before.predict(codes[:1], [[Query("latency", "boj")]])[0]
    assert refused.abstained is not None
    codes += [CodeText(row["text"], "python", "call") for row in function_rows(12)]
    asked = [[Query("latency"), Query("memory")]] * len(codes)
    medians = [[[one.median for one in line] for line in model.predict(codes, asked)] for model in (before, after)]
    assert medians[0] == medians[1]
    assert {"leetcode", "boj"} <= set(after.devices("program"))


def test_a_place_that_is_taken_is_refused(trained: Trained, again: Path) -> None:
    with pytest.raises(DataError, match="already exists"):
        refit([trained.data], trained.exported, again, "anew", quietly)


def test_the_command_writes_a_model_that_opens(trained: Trained, tmp_path: Path) -> None:
    rows = written(shifted(24), tmp_path)
    printed = run_cli(
        "tune", "--refit", "--data", rows, "--model", trained.exported, "--name", "mine", "--out", tmp_path / "mine"
    )
    assert printed == f"{tmp_path / 'mine'}: model {rlm_core.load(tmp_path / 'mine').model_id}\n"
