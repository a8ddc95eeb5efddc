"""``rlm-lsp tune --work``: a model gets a mixture, its bands and ratios, and is otherwise the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rlm_core import CodeText, DataError, ModelError, Query
from rlm_core.cost.analysis import work_facts
from rlm_core.inference.card import read_card
from rlm_core.inference.growth import GROWTH
from rlm_core.inference.input_growth import INPUT_GROWTH
from rlm_core.inference.model_store import builtin
from rlm_core.inference.novelty import DISTANCE
from rlm_core.inference.propagation import CALLS
from rlm_core.inference.student import ENCODER, HEAD, NGRAM_RIDGE, TREES, WORK, OnnxPredictor
from rlm_core.inference.work_mixture import FIXED, METRICS, WorkMixture
from rlm_core.training.datasets.functions import CALL_GRAPH_SCHEMA
from rlm_core.training.datasets.schema import EDITS_SCHEMA, write_facts, write_rows
from rlm_core.training.package_graph import read_graph
from rlm_core.training.student import work_fit
from rlm_core.training.tuning.refit import fit_known_work, unseen_rows
from safetensors.numpy import load_file

from ..conftest import call_row

pytestmark = pytest.mark.extras
COUNT = 120


def rows(*, facts: bool = True) -> list[dict[str, Any]]:
    """Loops over literals that take twice the time that the analysis says: one function and two edits per group."""
    rng = np.random.default_rng(0)
    made: list[dict[str, Any]] = []
    for number in range(COUNT):
        trips = int(10 ** rng.uniform(1, 7))
        lines = (f"def f{number}():", f"    kept = [0] * {trips}", f"    for i in range({trips}):", "        x = i")
        text = "\n".join((*lines, "    return kept\n"))
        work, group = work_facts(text), number // 3
        assert work is not None
        made += [
            {
                "id": f"{number}/{metric}",
                "text": text,
                "callees": [],
                "language": "python",
                "basis": "call",
                "metric": metric,
                "device": "x86-64",
                "workload": {"runtime": "cpython-3.12"},
                "value": 2 * work.of(metric).known.likely * 10 ** rng.normal(0, 0.02),
                "group": f"base{group}",
                "family": f"base{group}",
                "held_out": "edit",
                "split": "train",
                "source": "here",
                "repository": None,
                "work": write_facts(work) if facts else None,
                "edit_of": f"{3 * group}/{metric}" if number % 3 else None,
                "noise": 0.02,
                "module": None,
            }
            for metric in METRICS
        ]
    return made


def quietly(text: str) -> None:
    """Say nothing."""


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped model, joined with the work of these functions."""
    folder = tmp_path_factory.mktemp("joined")
    write_rows(rows(), folder / "rows.parquet", EDITS_SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_fit, "_EPOCHS", 150)
        fit_known_work([folder / "rows.parquet"], builtin(), folder / "model", "joined", quietly)
    return folder / "model"


def test_the_mixture_follows_the_rows(joined: Path) -> None:
    text = "def g():\n    for i in range(2_000_000):\n        x = i\n"
    facts = work_facts(text)
    assert facts is not None
    work = WorkMixture.load(joined / WORK).known_work(facts, "latency", [1e-3] * 17, 1e-9)
    assert work.weight > 0.5
    assert work.centre == pytest.approx(np.log10(2 * facts.latency.typical), abs=0.3)


def test_the_rest_of_the_model_stays_as_it_is(joined: Path) -> None:
    kept = read_card(builtin()).files.keys() - {HEAD, NGRAM_RIDGE, TREES, DISTANCE, WORK, CALLS}
    assert kept >= {ENCODER, GROWTH, INPUT_GROWTH}
    for name in kept:
        assert (joined / name).read_bytes() == (builtin() / name).read_bytes()
    before_trees, after_trees = (load_file(model / TREES) for model in (builtin(), joined))
    assert before_trees.keys() == after_trees.keys()
    assert all(np.array_equal(array, after_trees[name]) for name, array in before_trees.items())
    code, queries = CodeText("def f(a):\n    return g(a) + 1\n", "python", "call"), [Query("latency"), Query("memory")]
    before, after = (
        OnnxPredictor(model, threads=1, join_facts=False).predict([code], [queries])[0] for model in (builtin(), joined)
    )
    assert [answer.quantiles for answer in after] == [pytest.approx(answer.quantiles, rel=1e-4) for answer in before]


def test_ratios_follow_the_edits(joined: Path) -> None:
    short, long = (
        CodeText(f"def g():\n    for i in range({trips}):\n        x = i\n", "python", "call")
        for trips in (10**4, 10**6)
    )
    [ratio] = OnnxPredictor(joined, threads=1).compare([(short, long)], [[Query("latency")]])[0]
    assert ratio.ratio == pytest.approx(100, rel=0.3)


def test_the_card_names_the_basis_of_the_mixture(joined: Path) -> None:
    card = read_card(joined)
    trained = card.trained["work"]
    assert trained["from"] == read_card(builtin()).model_id
    assert trained["data"] == ["rows.parquet"]
    assert trained["rows"] == dict.fromkeys(METRICS, COUNT)
    assert trained["groups"] == dict.fromkeys(METRICS, COUNT // 3)
    levels = card.calibration.to_json()
    assert levels[f"{FIXED}/call/python/latency"]["groups"] == COUNT // 3
    assert set(json.loads((joined / "card.json").read_text())["files"]) >= {WORK}


def test_data_without_facts_is_an_error_of_one_line(tmp_path: Path) -> None:
    write_rows(rows(facts=False)[:8], tmp_path / "rows.parquet", EDITS_SCHEMA)
    with pytest.raises(DataError, match="build the data again") as caught:
        fit_known_work([tmp_path / "rows.parquet"], builtin(), tmp_path / "model", "joined", quietly)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "model").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes.txt").touch()
    with pytest.raises(DataError, match="already exists"):
        fit_known_work([tmp_path / "rows.parquet"], builtin(), tmp_path / "model", "joined", quietly)


def test_a_directory_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        fit_known_work([tmp_path / "rows.parquet"], tmp_path / "none", tmp_path / "model", "joined", quietly)


def test_functions_written_by_hand_widen_the_bands_and_change_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    written = [
        row
        | {"group": f"hand/{row['id']}", "family": f"hand/{row['id']}", "value": row["value"] * 10 ** rng.normal(0, 2)}
        for row in rows()
        if row["edit_of"] is None
    ]
    write_rows(written, tmp_path / "written.parquet", EDITS_SCHEMA)
    fit_known_work([tmp_path / "written.parquet"], builtin(), tmp_path / "model", "wider", quietly)
    before, after = read_card(builtin()), read_card(tmp_path / "model")
    old, new = (card.calibration.to_json() for card in (before, after))
    changed = {name for name in new if new[name] != old[name]}
    assert changed == {f"{FIXED}/call/python/{metric}" for metric in METRICS}
    for name in changed:
        pairs = zip(old[name]["levels"], new[name]["levels"], strict=True)
        assert all(wider >= narrow for narrow, wider in pairs)
        assert new[name]["groups"] == old[name]["groups"] + COUNT // 3
    assert after.trained["work"] == before.trained["work"]
    assert after.trained["written"]["rows"] == dict.fromkeys(METRICS, COUNT // 3)
    for file in (WORK, ENCODER, "calls.safetensors"):
        assert (tmp_path / "model" / file).read_bytes() == (builtin() / file).read_bytes()


def test_real_functions_are_predicted_without_their_package_and_without_facts(tmp_path: Path) -> None:
    work = work_facts("def f():\n    return sum(range(1000))\n")
    assert work is not None
    entries = [
        call_row(f"p{package}:p{package}.m:f{number}", latency=10.0**-number, split=split)
        | {"memory": 1000.0 * number, "work": write_facts(work) if number < 4 else None}
        for package in range(12)
        for number, split in enumerate(("train", "val", "cal", "test", "train"), start=1)
    ]
    pq.write_table(pa.Table.from_pylist(entries, CALL_GRAPH_SCHEMA), tmp_path / "calls.parquet")
    rows = unseen_rows(read_graph([tmp_path / "calls.parquet"]), builtin())["latency"]
    # Neither test rows nor functions without facts; each package is in one fold.
    assert len(rows.values) == 36
    assert sorted(set(rows.values.tolist())) == pytest.approx([-3, -2, -1])
    assert all(len(set(rows.fold[rows.groups == group].tolist())) == 1 for group in rows.groups)
    assert not rows.generated.any()
    assert np.isfinite(rows.logs).all()
