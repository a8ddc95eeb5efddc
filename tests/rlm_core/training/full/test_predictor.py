"""The predictor of the full model: what it answers, when it abstains, and that nothing but the text decides."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import rlm_core
from rlm_core import CodeText, ModelError, Query
from rlm_core.training.datasets.schema import read_rows
from rlm_core.training.full.model import TextMemory
from rlm_core.training.full.predictor import TorchPredictor
from rlm_core.types import LEVELS, MEDIAN, Abstention, AbstentionCode, CalibrationSource, Callee

from .tiny import Trained, run_cli

LATENCY, MEMORY = Query("latency"), Query("memory")


def nested(number: int) -> CodeText:
    """A function of one to three loops."""
    loops = 1 + number % 3
    lines = [f"{'    ' * (depth + 1)}for x{depth} in items:" for depth in range(loops)]
    body = "    " * (loops + 1) + f"helper(x0 + {number})"
    return CodeText("\n".join([f"def f{number}(items):", *lines, body, "    return items\n"]), "python", "call")


CODES = [nested(number) for number in range(9)]


def untrained(basis: str, language: str, metric: str) -> Abstention:
    details = {"basis": basis, "language": language, "metric": metric}
    return Abstention(AbstentionCode.TASK_NOT_TRAINED, details)


def test_it_answers_with_calibrated_quantiles(predictor: TorchPredictor) -> None:
    [[latency, memory]] = predictor.predict(CODES[:1], [[LATENCY, MEMORY]])
    for found, metric, floor in ((latency, "latency", 5e-8), (memory, "memory", 64.0)):
        assert found.abstained is None
        assert (found.metric, found.device, found.floor) == (metric, "x86-64", floor)
        assert found.workload["runtime"] == "cpython-3.12"
        assert len(found.quantiles) == len(LEVELS)
        assert list(found.quantiles) == sorted(found.quantiles)
        assert found.median == found.quantiles[MEDIAN]
        assert [band.coverage for band in found.bands] == [0.8, 0.9]
        assert found.bands[0].source == CalibrationSource(f"call/python/{metric}/x86-64")
        assert found.model == predictor.model_id
        assert not found.truncated


def test_more_loops_cost_more(predictor: TorchPredictor) -> None:
    medians = [answer.median or 0.0 for [answer] in predictor.predict(CODES[:3], [[LATENCY]] * 3)]
    # A model that was trained for seconds hardly tells one loop from two.
    assert medians[2] > 5 * max(medians[:2])


def test_the_stated_coverage_is_reached_on_unseen_packages(full: Trained, predictor: TorchPredictor) -> None:
    rows = [row for row in read_rows([full.data], ["cal", "test"]) if row["metric"] == "latency"]
    codes = [
        CodeText(row["text"], "python", "call", tuple(Callee(c["text"], c["level"]) for c in row["callees"]))
        for row in rows
    ]
    bands = [answer.band for [answer] in predictor.predict(codes, [[LATENCY]] * len(codes))]
    covered = [band.low <= row["value"] <= band.high for band, row in zip(bands, rows, strict=True) if band]
    assert len(covered) == len(rows)
    assert 0.7 <= np.mean(covered) <= 0.95


def test_a_prediction_is_the_same_alone_in_a_batch_twice_and_from_threads(full: Trained) -> None:
    fresh = TorchPredictor(full.directory, "cpu")
    alone = [TorchPredictor.predict(fresh, [code], [[LATENCY, MEMORY]])[0] for code in CODES]
    other = TorchPredictor(full.directory, "cpu", cache_bytes=0)
    together = other.predict(CODES, [[LATENCY, MEMORY]] * len(CODES))
    with ThreadPoolExecutor(4) as pool:
        threads = list(pool.map(lambda code: other.predict([code], [[LATENCY, MEMORY]])[0], CODES * 2))
    for one, two, three in zip(alone * 2, together * 2, threads, strict=True):
        for a, b, c in zip(one, two, three, strict=True):
            np.testing.assert_allclose(a.quantiles, b.quantiles, rtol=2e-3)
            np.testing.assert_allclose(a.quantiles, c.quantiles, rtol=2e-3)
    assert fresh.predict(CODES, [[LATENCY, MEMORY]] * len(CODES)) == fresh.predict(CODES, [[LATENCY, MEMORY]] * 9)


def test_a_known_text_is_not_encoded_again(full: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = TorchPredictor(full.directory, "cpu")
    read: list[str] = []
    encode = fresh._model.encode

    def counted(texts: list[str], limit: int | None) -> list[TextMemory]:
        read.extend(texts)
        return encode(texts, limit)

    monkeypatch.setattr(fresh._model, "encode", counted)
    commented = CodeText("# why\n" + CODES[0].text, "python", "call")
    fresh.predict([CODES[0], CODES[1], CODES[0], commented], [[LATENCY], [LATENCY, MEMORY], [MEMORY], [LATENCY]])
    fresh.predict(CODES[:3], [[MEMORY]] * 3)
    assert len(read) == len(set(read)) == 3


def test_what_a_function_calls_is_read(predictor: TorchPredictor) -> None:
    callees = (Callee("def helper(x):\n    for a in x:\n        for b in x:\n            pass\n"),)
    calling = CodeText(CODES[0].text, "python", "call", callees)
    [[alone], [with_callees]] = predictor.predict([CODES[0], calling], [[LATENCY]] * 2)
    assert alone.quantiles != with_callees.quantiles


def test_a_long_text_is_reported_as_truncated(predictor: TorchPredictor) -> None:
    long = CodeText("def f(x):\n" + "    x = x + 1\n" * 60, "python", "call")
    [[found]] = predictor.predict([long], [[LATENCY]])
    assert found.truncated
    assert found.median is not None


@pytest.mark.parametrize(
    ("code", "query", "reason"),
    [
        (CodeText(" \n", "python", "call"), LATENCY, Abstention(AbstentionCode.EMPTY_TEXT)),
        (CodeText("fn f() {}", "rust", "call"), LATENCY, untrained("call", "rust", "latency")),
        (CodeText("x", "python", "program"), MEMORY, untrained("program", "python", "memory")),
        (CODES[0], Query("accuracy"), untrained("call", "python", "accuracy")),
        (
            CODES[0],
            Query("latency", "nvidia-l4"),
            Abstention(
                AbstentionCode.DEVICE_NOT_TRAINED,
                {"basis": "call", "device": "nvidia-l4", "known": "x86-64", "others": "0"},
            ),
        ),
        (
            CODES[0],
            Query("latency", None, {"date": "yesterday"}),
            Abstention(AbstentionCode.INVALID_DATE, {"date": "yesterday"}),
        ),
    ],
)
def test_it_abstains_with_the_reason(
    predictor: TorchPredictor, code: CodeText, query: Query, reason: Abstention
) -> None:
    [[found, answered]] = predictor.predict([code], [[query, query]])
    assert found == answered
    assert found.abstained == reason
    assert (found.median, found.bands, found.quantiles) == (None, (), ())


def test_it_abstains_where_too_few_groups_calibrate(full: Trained, tmp_path: Path) -> None:
    shutil.copytree(full.directory, tmp_path / "model")
    path = tmp_path / "model" / "serving.json"
    data = json.loads(path.read_text())
    for level in data["calibration"].values():
        level["groups"] = 7
    _rewrite(tmp_path / "model", data)
    [[found]] = TorchPredictor(tmp_path / "model", "cpu").predict(CODES[:1], [[LATENCY]])
    details = {"basis": "call", "groups": "7", "needed": "30"}
    assert found.abstained == Abstention(AbstentionCode.TOO_FEW_GROUPS, details)


def _rewrite(directory: Path, data: object) -> None:
    from rlm_core.inference.card import checksum

    (directory / "serving.json").write_text(json.dumps(data))
    card = json.loads((directory / "card.json").read_text())
    card["trained"]["serving.json"] = checksum(directory / "serving.json")
    (directory / "card.json").write_text(json.dumps(card))


def test_no_texts_and_no_queries_have_no_answers(predictor: TorchPredictor) -> None:
    assert predictor.predict([], []) == []
    assert predictor.predict(CODES[:2], [[], [LATENCY]])[0] == []


def test_load_distinguishes_full_models(full: Trained, predictor: TorchPredictor) -> None:
    found = rlm_core.load(full.directory)
    assert isinstance(found, TorchPredictor)
    assert found.model_id == predictor.model_id
    assert found.devices("call") == ("x86-64",)
    assert [query.metric for query in found.default_queries("call", "python")] == ["latency", "memory"]


def test_a_damaged_or_missing_calibration_is_reported(full: Trained, tmp_path: Path) -> None:
    shutil.copytree(full.directory, tmp_path / "model")
    path = tmp_path / "model" / "serving.json"
    content = path.read_text()
    for text, message in (
        (content.replace("x86-64", "x86-65"), "its checksum is not the one in the card"),
        (content.replace("rlm-serving-1", "rlm-serving-9"), "format 'rlm-serving-9' is not"),
        ("{", "corrupt"),
    ):
        path.write_text(text)
        with pytest.raises(ModelError, match=rf"serving\.json: .*{message}"):
            rlm_core.load(tmp_path / "model")
    path.unlink()
    with pytest.raises(ModelError, match="nothing says what the model may be asked"):
        rlm_core.load(tmp_path / "model")


def test_without_torch_the_error_says_what_to_install(full: Trained) -> None:
    script = (
        "import sys\nsys.modules['torch'] = None\nimport rlm_core\n"
        f"try:\n    rlm_core.load({str(full.directory)!r})\nexcept rlm_core.ModelError as error:\n    print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "a full model needs torch; run: pip install '.[rlm]'" in result.stdout


def test_the_command_line_predicts_and_evaluates_with_it(full: Trained, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODES[1].text)
    [row, _] = json.loads(run_cli("predict", tmp_path / "a.py", "--model", full.directory, "--format", "json").stdout)
    assert row["model"].startswith("tiny-full-")
    assert row["low"] <= row["median"] <= row["high"]
    report = json.loads(run_cli("eval", "--data", full.data, "--model", full.directory, "--format", "json").stdout)
    [latency] = [entry for entry in report["slices"] if entry["metric"] == "latency"]
    assert latency["figures"]["model"]["spearman"]["value"] > 0.5
