"""Sentences for reasons to abstain and for calibration sources; those of hovers are in test_hover.py."""

from __future__ import annotations

import json

import pytest
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import (
    Abstention,
    AbstentionCode,
    Band,
    CalibrationSource,
    CodeText,
    CpuScale,
    JudgeChoice,
    Prediction,
)
from rlm_lsp.rendering import json_rows, labels
from rlm_lsp.rendering.abstentions import calibration, other_judge, reason, scaling
from rlm_lsp.rendering.agent_answers import unit_lines
from rlm_lsp.rendering.json_rows import unit_row
from rlm_lsp.rendering.prediction_cells import cost_rows

DETAILS: dict[AbstentionCode, dict[str, str]] = {
    AbstentionCode.TASK_NOT_TRAINED: {"basis": "call", "language": "go", "metric": "memory"},
    AbstentionCode.DEVICE_NOT_TRAINED: {"basis": "kernel", "device": "abacus", "known": "a, b, c", "others": "13"},
    AbstentionCode.SETTING_NOT_TRAINED: {"metric": "latency", "workload": "batch 3", "device": "pixel-3"},
    AbstentionCode.EMPTY_TEXT: {},
    AbstentionCode.INVALID_DATE: {"date": "soon"},
    AbstentionCode.UNLIKE_TRAINING_DATA: {"distance": "1.9", "limit": "1.4"},
    AbstentionCode.SIZES_UNKNOWN: {"basis": "module", "language": "pytorch", "example": "x=32x1024"},
    AbstentionCode.TOO_FEW_GROUPS: {"basis": "module", "groups": "7", "needed": "30"},
    AbstentionCode.RATIO_NOT_CALIBRATED: {"basis": "network", "metric": "latency"},
    AbstentionCode.NO_NUMBER: {},
    AbstentionCode.NOT_AT_SIZES: {"sizes": "items=10k", "unit": "total"},
    AbstentionCode.ADAPTER_UNUSABLE: {"problem": "x.json: corrupt; run rlm-lsp adapt again"},
    AbstentionCode.TEXT_TOO_LONG: {"limit": "300"},
    AbstentionCode.REQUEST_TOO_LARGE: {"size": "2000", "limit": "1000"},
    AbstentionCode.SERVER_UNAVAILABLE: {"url": "http://box:1", "problem": "it cannot be reached"},
    AbstentionCode.MODEL_FAILED: {"error": "ModelError"},
    AbstentionCode.ANALYSIS_FAILED: {"error": "RecursionError"},
    AbstentionCode.TOO_COMPLEX: {},
    AbstentionCode.SIZES_FIXED: {"sizes": "image 384"},
    AbstentionCode.BATCH_NOT_MEASURED: {"batch": "1", "device": "nvidia-rtx-4090", "least": "384", "most": "1024"},
    AbstentionCode.OPEN_SIZES: {"share": "12 %"},
    AbstentionCode.OTHER_IMAGE_SIZE: {"dataset": "cifar10", "side": "224", "usual": "32"},
    AbstentionCode.TOO_LARGE: {"gmacs": "24", "most": "0.15"},
    AbstentionCode.OPERATOR_NOT_MEASURED: {"operators": "LSTM", "device": "nvidia-rtx-4090"},
    AbstentionCode.BEYOND_MEASURED: {"metric": "energy", "device": "raspberry-pi-5", "operators": "Gemm"},
    AbstentionCode.MAY_NOT_END: {},
    AbstentionCode.UNKNOWN_CALL: {"call": "run()"},
}


@pytest.mark.parametrize("code", AbstentionCode)
def test_every_reason_is_a_clause_that_names_its_details(code: AbstentionCode) -> None:
    details = DETAILS[code]
    text = reason(Abstention(code, details))
    assert not text[0].isupper()
    assert not text.endswith(".")
    assert "{" not in text
    for name, value in details.items():
        assert name in ("basis", "language") or value in text


@pytest.mark.parametrize(
    ("code", "details", "expected"),
    [
        (AbstentionCode.TASK_NOT_TRAINED, {}, "the model was not trained on the memory of Go functions"),
        (
            AbstentionCode.TASK_NOT_TRAINED,
            {"basis": "kernel", "language": "python"},
            "the model was not trained on the memory of kernels",
        ),
        (
            AbstentionCode.DEVICE_NOT_TRAINED,
            {},
            "the model was not trained on device abacus; for kernels it knows a, b, c and 13 more",
        ),
        (
            AbstentionCode.DEVICE_NOT_TRAINED,
            {"known": "a", "others": "0"},
            "the model was not trained on device abacus; for kernels it knows a",
        ),
        (
            AbstentionCode.SIZES_UNKNOWN,
            {},
            "the tensor sizes are unknown; write `# rlm: sizes x=32x1024` above the class",
        ),
        (
            AbstentionCode.SIZES_UNKNOWN,
            {"basis": "kernel", "language": "triton", "example": "a_ptr=4096x4096"},
            "the tensor sizes are unknown; write `# rlm: sizes a_ptr=4096x4096` above the kernel",
        ),
        (
            AbstentionCode.SIZES_UNKNOWN,
            {"basis": "kernel", "language": "ttir", "example": "arg0=4096x4096"},
            "the tensor sizes are unknown; set them in the workload, for example arg0=4096x4096",
        ),
        (
            AbstentionCode.TASK_NOT_TRAINED,
            {"basis": "program", "judge": "AtCoder"},
            "the model was not trained on the memory of Go programs on AtCoder",
        ),
        (
            AbstentionCode.SETTING_NOT_TRAINED,
            {},
            "the model was not trained on latency with batch 3 on device pixel-3",
        ),
        (
            AbstentionCode.SETTING_NOT_TRAINED,
            {"metric": "accuracy", "workload": "", "device": ""},
            "the model was not trained on accuracy with no workload",
        ),
    ],
)
def test_a_reason_names_units_devices_and_settings_in_plain_words(
    code: AbstentionCode, details: dict[str, str], expected: str
) -> None:
    assert reason(Abstention(code, {**DETAILS[code], **details})) == expected


def test_a_reason_of_a_known_device_says_that_the_adapted_one_is_based_on_it() -> None:
    text = reason(Abstention(AbstentionCode.EMPTY_TEXT, {}, "gpu-a"))
    assert text == "the known device gpu-a, on which the answer rests, has no prediction: the text is empty"


def test_a_calibration_names_its_basis() -> None:
    band = Band(1.0, 2.0, 0.8, 1, 12, CalibrationSource(adapted_device="my-gpu"))
    assert calibration("kernel", band) == "bands from 12 measurements of 1 text on my-gpu, each left out in turn"
    assert scaling(band.source) == ""
    assert scaling(CalibrationSource(cpu_scale=CpuScale(0.5, "2026-01-01"))) == (
        "scaled by 0.5 to this CPU (score of 2026-01-01)"
    )


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("call/python/latency", "Python functions"),
        ("facts/call/python/latency", "Python functions"),
        ("fixed/call/python/latency", "Python functions whose text fixes the cost"),
    ],
)
def test_a_band_says_which_functions_it_was_checked_on(task: str, said: str) -> None:
    band = Band(1.0, 2.0, 0.8, 40, 900, CalibrationSource(task))
    assert f"(900 measurements of {said})" in calibration("call", band)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("program/cpp/latency/boj", "C++ programs on BOJ"),
        ("program/cpp/latency", "C++ programs"),
        ("program/cpp/latency/measured-x86-64", "C++ programs"),
    ],
)
def test_a_band_of_a_judge_names_it(task: str, said: str) -> None:
    band = Band(1.0, 2.0, 0.8, 40, 900, CalibrationSource(task))
    assert f"(900 measurements of {said})" in calibration("program", band)


def predicted(device: str, *, abstained: bool = False) -> Prediction:
    reason = Abstention(AbstentionCode.EMPTY_TEXT) if abstained else None
    return Prediction("program", "latency", device, {}, "m", None if abstained else 1.0, (), 0.0, False, reason)


def test_a_number_for_another_judge_than_the_file_looks_like_is_reported() -> None:
    code = CodeText("x", "cpp", "program", judge=JudgeChoice("boj"))
    assert other_judge(code, predicted("leetcode")) == ("predicted for LeetCode; the file looks like a program for BOJ")
    assert other_judge(code, predicted("boj")) is None
    assert other_judge(code, predicted("measured-x86-64")) is None
    assert other_judge(code, predicted("leetcode", abstained=True)) is None
    assert other_judge(CodeText("x", "cpp", "program"), predicted("leetcode")) is None


pytestmark = pytest.mark.usefixtures("lenient")
REASON = "the analysis of this text failed (OverflowError)"


@pytest.fixture
def analysed() -> AnalysedUnit:
    [unit] = Analyser().analyse(ParsedSource(b"def f(values):\n    return sorted(values)\n", "python"))
    return unit


@pytest.fixture
def prediction() -> Prediction:
    return Prediction("call", "latency", None, {}, "model", 1e-6, (), 0.0, False)


def overflow(*arguments: object) -> str:
    raise OverflowError("cannot convert float infinity to integer")


def test_a_row_that_cannot_be_made_has_the_reason(
    analysed: AnalysedUnit, prediction: Prediction, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = json_rows.work_fields
    monkeypatch.setattr(
        json_rows, "work_fields", lambda work, *rest: overflow() if work is not None else real(work, *rest)
    )
    row = unit_row("a.py", analysed, prediction)
    assert (row["qualname"], row["median"], row["abstained"]) == ("f", None, REASON)
    assert row["analysis_failed"] == "OverflowError"
    json.dumps(row, allow_nan=False)


def test_a_line_that_cannot_be_made_has_the_reason(
    analysed: AnalysedUnit, prediction: Prediction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "marked_median", lambda answer: overflow() if answer.median else "")
    [row] = cost_rows("a.py", analysed, [prediction])
    assert (row.where, row.unit, row.costs, row.note) == ("a.py:1", "f", {"latency": "-"}, REASON)
    assert unit_lines("a.py", analysed, [prediction]) == [f"a.py:1 f: no prediction because {REASON}"]


def test_nothing_is_said_where_nothing_failed(analysed: AnalysedUnit, prediction: Prediction) -> None:
    assert unit_row("a.py", analysed, prediction)["analysis_failed"] is None
    [row] = cost_rows("a.py", analysed, [prediction])
    assert "failed" not in row.note
