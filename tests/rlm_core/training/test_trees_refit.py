"""Trees that are fitted again take the place of the old ones, and nothing else of the model changes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rlm_core.errors import DataError
from rlm_core.inference import trees
from rlm_core.inference.card import read_card
from rlm_core.inference.features import all_feature_names
from rlm_core.inference.model_store import builtin
from rlm_core.inference.residuals import Residuals
from rlm_core.inference.student import TREES, OnnxPredictor
from rlm_core.training.corpus import Corpus, Rows
from rlm_core.training.student.trees_fit import TreesFit
from rlm_core.training.trees_refit import main, put_into
from rlm_core.types import LEVELS, CodeText, Query

TASK = "kernel/triton/latency"
KERNEL = "@triton.jit\ndef k(x, n):\n    tl.store(x + tl.program_id(0), n)\n"


def corpus(device: str) -> Corpus:
    names = np.array(["a"])
    numbers = np.zeros(1, np.int64)
    split = np.array(["train"])
    rows = Rows(
        names,
        numbers,
        numbers,
        numbers,
        np.ones(1),
        np.zeros(1),
        np.full((1, 2, 1), -1, np.int32),
        names,
        names,
        split,
        np.zeros(1, bool),
    )
    return Corpus([(KERNEL, "triton")], [(device, {"n": "16"})], rows, [TASK])


def test_new_trees_answer_and_other_tasks_stay(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(builtin(), model)
    before = trees.load(model / TREES, all_feature_names())
    card = read_card(model)
    constant = replace(before[TASK], offset=np.array([-3.0, -1, 0], np.float32), value=0 * before[TASK].value)
    residuals = Residuals(tuple(float(level) - 0.5 for level in LEVELS), 40, 400)
    put_into(model, corpus("nvidia-t4"), TreesFit({TASK: constant}, {TASK: residuals}, np.zeros(1)))
    after = trees.load(model / TREES, all_feature_names())
    assert after.keys() == before.keys()
    assert all(
        np.array_equal(getattr(after[key], name), getattr(before[key], name))
        for key in before
        if key != TASK
        for name in ("feature", "threshold", "value", "offset")
    )
    assert read_card(model).devices == {**card.devices, "kernel": ["nvidia-t4"]}
    predictor = OnnxPredictor(model)
    assert predictor.model_id != card.model_id
    query = Query("latency", "nvidia-t4", {"n": "16", "arg0": "16", "dtype": "fp16"})
    [[answer]] = predictor.predict([CodeText(KERNEL, "triton", "kernel")], [[query]])
    assert answer.median == pytest.approx(1e-3)


def test_a_task_whose_head_reads_the_trees_is_refused(tmp_path: Path) -> None:
    arguments = ["--data", "a.parquet", "--config", "a.toml", "--model", str(tmp_path), "--task"]
    with pytest.raises(DataError, match="module/pytorch/latency: its trees do not answer alone"):
        main([*arguments, "module/pytorch/latency"])
