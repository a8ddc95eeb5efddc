"""A student of programs of two judges: separate tasks, floors, ridges, defaults and calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rlm_core
from rlm_core import CodeText, Query
from rlm_core.inference import ngram_ridge
from rlm_core.inference.card import StudentCard, read_card
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import queries_for
from rlm_core.training.datasets.schema import write_rows
from rlm_core.types import AbstentionCode, JudgeChoice

from tests.rlm_core.training.conftest import program_rows, run_cli

pytestmark = [pytest.mark.extras, pytest.mark.timeout(300)]

STEP = 4e-3


def judged_rows(count: int) -> list[dict[str, Any]]:
    """Rows of BOJ, where a long program is fast: a third of them within one step of the judge's clock.

    One in seven texts was judged by LeetCode too.
    """
    rows = []
    for row in program_rows(count):
        number = int(row["id"].split("/")[1])
        lines = "".join(f"        n += {line};\n" for line in range(number % 6))
        text = f"class Main {{\n    int g(int n) {{\n{lines}        return n * {number};\n    }}\n}}\n"
        text = row["text"] if number % 7 == 0 else text
        value = max(STEP * (4 - number % 6), STEP) if row["metric"] == "latency" else 2e7 + 1e6 * (number % 6)
        group = f"boj/{number}"
        names = {"id": row["id"].replace("leethub", "boj"), "text": text, "group": group, "family": group}
        query = {"device": "boj", "workload": {"judge": "boj", "date": f"2023-{1 + number % 12:02}-15"}}
        rows.append(row | names | query | {"value": value})
    return rows


READS = CodeText(judged_rows(4)[-1]["text"], "java", "program", judge=JudgeChoice("boj"))


@pytest.fixture(scope="module")
def judged(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported model."""
    folder = tmp_path_factory.mktemp("judges")
    write_rows(program_rows(48) + judged_rows(240), folder / "rows.parquet")
    run_cli("train", "--data", folder / "rows.parquet", "--config", config, "--out", folder / "run")
    run_cli("export", "--model", folder / "run", "--out", folder / "exported")
    return folder / "exported"


@pytest.fixture(scope="module")
def card(judged: Path) -> StudentCard:
    return read_card(judged)


@pytest.fixture(scope="module")
def predictor(judged: Path) -> Predictor:
    return rlm_core.load(judged)


def test_each_judge_has_its_own_tasks_and_floors(card: StudentCard) -> None:
    floors = {entry.name: entry.scale.floor for entry in card.tasks}
    assert floors == {
        "program/java/latency": 0.0,
        "program/java/latency@boj": STEP,
        "program/java/memory": 0.0,
        "program/java/memory@boj": 0.0,
    }


def test_bands_are_calibrated_for_each_judge(card: StudentCard) -> None:
    levels = card.calibration.to_json()
    assert "program/java/latency/leetcode" in levels
    assert set(card.residuals) == {"program/java/latency@boj", "program/java/memory@boj"}


def test_the_card_has_the_judges_and_what_a_query_leaves_open(card: StudentCard) -> None:
    assert card.devices["program"] == ["boj", "leetcode"]
    assert card.defaults["program"]["device"] == "leetcode"
    assert card.defaults["program"]["workload"]["date"].startswith("2024-12-1")
    assert card.defaults["program@boj"]["workload"]["judge"] == "boj"
    assert card.defaults["program@boj"]["workload"]["date"].startswith("2023-12-1")


def test_the_ridge_has_separate_weights_for_each_judge(judged: Path) -> None:
    parts = ngram_ridge.load(judged / "wide.safetensors")
    assert set(parts) == {"program/java", "program/java@boj"}
    assert {part.codes.shape[1] for part in parts.values()} == {len(ngram_ridge.METRICS)}


def test_a_judge_is_known_in_the_languages_that_it_taught(predictor: Predictor) -> None:
    assert set(predictor.devices("program")) == {"boj", "leetcode"}
    assert set(predictor.devices("program", "java")) == {"boj", "leetcode"}
    assert predictor.devices("program", "ruby") == ()


def test_a_program_is_answered_for_the_judge_that_it_looks_like(predictor: Predictor) -> None:
    [found] = predictor.predict([READS], [queries_for(predictor, READS)])
    assert [prediction.device for prediction in found] == ["boj", "boj"]
    assert [prediction.abstained for prediction in found] == [None, None]
    assert [prediction.floor for prediction in found] == [STEP, 0.0]
    assert found[0].workload["judge"] == "boj"


def test_the_judge_changes_the_number(predictor: Predictor) -> None:
    both = CodeText(program_rows(8)[-1]["text"], "java", "program")
    [[first, second]] = predictor.predict([both], [[Query("memory", "leetcode"), Query("memory", "boj")]])
    assert first.median is not None
    assert second.median is not None
    assert first.median > 1.5 * second.median


def test_a_language_that_a_judge_did_not_teach_gives_a_reason_with_its_name(predictor: Predictor) -> None:
    code = CodeText("int main() { return 0; }\n", "cpp", "program")
    [[known, unknown]] = predictor.predict([code], [[Query("latency", "boj"), Query("latency", "atcoder")]])
    assert known.abstained is not None
    assert known.abstained.code is AbstentionCode.TASK_NOT_TRAINED
    assert known.abstained.details["judge"] == "BOJ"
    assert unknown.abstained is not None
    assert unknown.abstained.code is AbstentionCode.DEVICE_NOT_TRAINED
