"""A pickled predictor is the path of its model: another process loads it again, and gives the same numbers."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rlm_core
from rlm_core import CodeText, ModelError, Query
from rlm_core.inference.model_store import builtin
from rlm_core.inference.student import OnnxPredictor
from rlm_core.loading import load_corrected

CODE = CodeText("def f(items):\n    return sorted(items)\n", "python", "call")
QUERIES = [Query("latency"), Query("memory")]
CHILD = """
import json, pickle, sys
predictor, code, queries = pickle.load(sys.stdin.buffer)
[answers] = predictor.predict([code], [queries])
print(json.dumps([predictor.model_id, [answer.median for answer in answers]]))
"""


def in_child(predictor: object) -> list[object]:
    """The model id and the medians that another process gives."""
    sent = pickle.dumps((predictor, CODE, QUERIES))
    assert len(sent) < 4000
    done = subprocess.run([sys.executable, "-c", CHILD], input=sent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answer: list[object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("load", [rlm_core.load, load_corrected])
def test_another_process_gives_the_same_numbers(load: object) -> None:
    assert callable(load)
    predictor = load()
    [answers] = predictor.predict([CODE], [QUERIES])
    assert in_child(predictor) == [predictor.model_id, [answer.median for answer in answers]]


def test_how_the_predictor_was_made_is_kept() -> None:
    code = CodeText("def f():\n    return sum(range(10**7))\n", "python", "call", work=None)
    for options in ({"join_facts": False}, {"propagate": False}, {"threads": 1}):
        predictor = OnnxPredictor(builtin(), **options)
        again = pickle.loads(pickle.dumps(predictor))
        assert again.__reduce__() == predictor.__reduce__()
        assert again.predict([code], [QUERIES]) == predictor.predict([code], [QUERIES])


def test_a_process_loads_a_model_once() -> None:
    sent = pickle.dumps(rlm_core.load())
    assert pickle.loads(sent) is pickle.loads(sent)


def test_the_model_that_ships_is_found_wherever_it_is_installed() -> None:
    assert str(builtin()).encode() not in pickle.dumps(rlm_core.load())


def test_another_model_under_the_same_path_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(builtin(), model)
    sent = pickle.dumps(rlm_core.load(model))
    card = json.loads((model / "card.json").read_text())
    card["name"] = "other"
    (model / "card.json").write_text(json.dumps(card))
    with pytest.raises(ModelError, match=r"is other-.* here and rlm-student-.* where it was pickled"):
        pickle.loads(sent)
    shutil.rmtree(model)
    with pytest.raises(ModelError, match=str(model)):
        pickle.loads(sent)
