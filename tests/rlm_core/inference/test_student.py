"""The predictor with the weights that ship: what it answers, what it abstains from, and that numbers stand still."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rlm_core
from rlm_core import CodeText, DataError, ModelError, Query
from rlm_core.inference.model_store import builtin
from rlm_core.inference.novelty import NoveltyDetector, Region
from rlm_core.inference.residuals import data_sheet_key, forest_of, work_key
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.devices import canonical_device, device_table
from rlm_core.source.call_graph import MAX_CALLEES
from rlm_core.source.units import read_source
from rlm_core.types import METRICS_OF_BASIS, Abstention, AbstentionCode, Basis, CalibrationSource, Callee, Prediction

from tests.paths import REPOSITORY

MODULE = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(512, 2048)
        self.second = nn.Linear(2048, 512)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
"""
FUNCTION = CodeText("def f(items):\n    return sorted(items)\n", "python", "call")


@pytest.fixture(scope="module")
def shipped() -> OnnxPredictor:
    """The model that ships."""
    found = rlm_core.load()
    assert isinstance(found, OnnxPredictor)
    return found


@pytest.fixture(scope="module")
def predictor(shipped: OnnxPredictor) -> OnnxPredictor:
    """The model that ships, answering however far a text is from those of its training."""
    return again(shipped)


def again(predictor: OnnxPredictor, threads: int = 0) -> OnnxPredictor:
    """The same model with nothing remembered and no text too far."""
    fresh = OnnxPredictor(predictor.directory, threads=threads)
    fresh._novelty = NoveltyDetector({})
    return fresh


def encoding_all(predictor: OnnxPredictor) -> OnnxPredictor:
    """The same model, whose encoder reads functions too."""
    fresh = again(predictor)
    fresh._encodings._encoded = None
    return fresh


def test_edits_that_leave_no_trace_have_the_ratio_one(shipped: OnnxPredictor) -> None:
    helper, other = Callee("def g(x):\n    return x\n"), Callee("def h(x):\n    return [x]\n")
    before = replace(FUNCTION, callees=(helper, other))
    text = "def f(items):\n    # a comment\n\n    return sorted(items)\n"
    after = replace(FUNCTION, text=text, callees=(other, replace(helper, text="def g(x):  # same\n    return x\n")))
    costlier = replace(before, text="def f(items):\n    return sorted(sorted(items))\n")
    queries = [Query("latency"), Query("memory")]
    same, different = shipped.compare([(before, after), (before, costlier)], [queries, queries])
    assert [(ratio.ratio, ratio.quantiles[0], ratio.quantiles[-1]) for ratio in same] == [(1, 1, 1)] * 2
    assert different[0].ratio != 1


@pytest.fixture(scope="module")
def examples() -> list[CodeText]:
    """What the model reads about the units of our examples."""
    codes = []
    for path in sorted((REPOSITORY / "examples").iterdir()):
        if path.suffix != ".md":
            codes += [unit.code for unit in Analyser().analyse(read_source(path), path)]
    return codes


def ask(predictor: OnnxPredictor, *codes: CodeText) -> list[list[rlm_core.Prediction]]:
    return predictor.predict(codes, [predictor.default_queries(code.basis, code.language) for code in codes])


def untrained_device(prediction: Prediction) -> str:
    """The device that the model was not trained on, by the reason to abstain."""
    assert prediction.abstained is not None
    assert prediction.abstained.code is AbstentionCode.DEVICE_NOT_TRAINED
    return prediction.abstained.details["device"]


def test_a_prediction_is_a_median_within_ordered_bands(predictor: OnnxPredictor, examples: list[CodeText]) -> None:
    answered = [found for answers in ask(predictor, *examples) for found in answers if found.abstained is None]
    assert len(answered) > 30
    for found in answered:
        assert found.median is not None
        assert [band.coverage for band in found.bands] == [0.8, 0.9]
        inner, outer = found.bands
        assert 0 <= outer.low <= inner.low <= found.median <= inner.high <= outer.high
        assert all(band.rows >= band.groups > 0 and found.basis in band.source.task for band in found.bands)
        assert found.model == predictor.model_id


def test_a_text_has_one_number_alone_in_any_batch_and_in_any_order(
    predictor: OnnxPredictor, examples: list[CodeText]
) -> None:
    together = dict(zip(examples, ask(predictor, *examples), strict=True))
    shuffled = list(together)
    random.Random(0).shuffle(shuffled)
    for code, answers in zip(shuffled, ask(again(predictor, threads=1), *shuffled), strict=True):
        assert answers == together[code]
    alone = again(predictor)
    for code in shuffled[:10]:
        assert ask(alone, code) == [together[code]]


def test_threads_may_query_concurrently(predictor: OnnxPredictor, examples: list[CodeText]) -> None:
    expected = [ask(predictor, code) for code in examples]
    fresh = again(predictor, threads=2)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert list(pool.map(lambda code: ask(fresh, code), examples)) == expected


def test_comments_and_layout_change_no_number(predictor: OnnxPredictor) -> None:
    noisy = replace(FUNCTION, text="# why\ndef f(items):\n\n  '''Doc.'''\n  return sorted(items)  # all\n")
    assert ask(predictor, FUNCTION) == ask(predictor, noisy)


def test_what_a_function_calls_changes_its_number(predictor: OnnxPredictor) -> None:
    slow = Callee("def sorted(items):\n    return [x for x in items for y in items for z in items]\n")
    [[alone, _]], [[with_callee, _]] = ask(predictor, FUNCTION), ask(predictor, replace(FUNCTION, callees=(slow,)))
    assert alone.median != with_callee.median


def test_callees_that_the_head_does_not_read_are_not_even_encoded(predictor: OnnxPredictor) -> None:
    near = tuple(Callee(f"def g{number}(): pass") for number in range(MAX_CALLEES))
    unread = (*(Callee(f"def h{number}(): pass") for number in range(5)), Callee("def far(): pass", 3))
    fresh = again(predictor)
    assert ask(fresh, replace(FUNCTION, callees=near)) == ask(fresh, replace(FUNCTION, callees=near + unread))
    assert len(fresh._encodings._encodings) == 1 + len(near)


def test_a_known_text_is_not_encoded_again(predictor: OnnxPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = again(predictor)
    before = ask(fresh, FUNCTION)

    def forbidden(entry: object) -> object:
        raise AssertionError(f"{entry} is encoded again")

    monkeypatch.setattr(fresh._encodings, "_encode", forbidden)
    assert ask(fresh, replace(FUNCTION, text=FUNCTION.text + "# a comment\n")) == before


def test_a_text_longer_than_the_context_is_reported_as_truncated(predictor: OnnxPredictor) -> None:
    long = replace(FUNCTION, text="def f(x):\n" + "".join(f"    x = g{i}(x, {i})\n" for i in range(400)))
    reading = encoding_all(predictor)
    assert all(found.truncated for found in ask(reading, long)[0])
    assert not any(found.truncated for found in ask(reading, FUNCTION)[0])


@pytest.mark.parametrize("text", ["def (((", "\x00\x01", "x", "é" * 5000, "def f():\n\tpass\n" * 500])
def test_any_text_gets_an_answer(predictor: OnnxPredictor, text: str) -> None:
    for found in ask(predictor, replace(FUNCTION, text=text))[0]:
        assert found.median is not None


def test_the_examples_are_answered_by_the_model_that_ships(shipped: OnnxPredictor, examples: list[CodeText]) -> None:
    answers = [found for line in ask(shipped, *examples) for found in line]
    assert sum(found.abstained is None for found in answers) > 0.8 * len(answers)


def test_a_text_far_from_those_of_training_is_abstained_from_with_the_distance(predictor: OnnxPredictor) -> None:
    fresh = encoding_all(predictor)
    width = len(fresh._encodings.of([("x", "python", "call")])["x", "python", "call"].vector)
    here = fresh._encodings.of([(FUNCTION.text, "python", "call")])[FUNCTION.text, "python", "call"].vector
    fresh._novelty = NoveltyDetector({"call/python": Region(here, np.eye(width, dtype=np.float32), 1e-6)})
    far = replace(FUNCTION, text="def g(x):\n    while x > 1:\n        x = x * 0.5\n    return open(x).read()\n")
    near, refused = ask(fresh, FUNCTION, far)
    assert all(found.abstained is None for found in near)
    for found in refused:
        assert found.abstained is not None
        assert found.abstained.code is AbstentionCode.UNLIKE_TRAINING_DATA
        assert set(found.abstained.details) == {"distance", "limit", "basis"}
        assert (found.median, found.bands) == (None, ())
    # The raw distribution is there all the same: an exported model is compared with the trained one by it.
    probabilities, _ = fresh.distributions([far], [Query("latency")])
    assert probabilities.sum() == pytest.approx(1)


def test_a_forgotten_distance_file_is_named(shipped: OnnxPredictor, tmp_path: Path) -> None:
    shutil.copytree(shipped.directory, tmp_path / "model")
    (tmp_path / "model" / "distance.safetensors").unlink()
    with pytest.raises(ModelError, match=r"distance\.safetensors: missing"):
        OnnxPredictor(tmp_path / "model")


@pytest.mark.parametrize("basis", ["kernel", "module"])
def test_device_and_sizes_count_for_kernels_and_modules(
    predictor: OnnxPredictor, examples: list[CodeText], basis: Basis
) -> None:
    code = next(code for code in examples if code.basis == basis)
    devices = predictor.devices(basis)
    assert len(devices) > 1
    queries = [Query("latency", device, {"arg0": f"{size}x4096"}) for device in devices[:2] for size in (64, 65536)]
    [answers] = predictor.predict([code], [queries])
    assert [found.device for found in answers] == [query.device for query in queries]
    medians = [found.median for found in answers]
    assert None not in medians
    assert len(set(medians)) == 4


def test_a_device_has_many_names(predictor: OnnxPredictor, examples: list[CodeText]) -> None:
    code = next(code for code in examples if code.basis == "kernel")
    device = next(
        name for name in predictor.devices("kernel") if name in device_table() and device_table()[name].aliases
    )
    names = (device, device_table()[device].aliases[0], device.upper().replace("-", " "))
    [answers] = predictor.predict([code], [[Query("latency", name) for name in names]])
    assert {found.device for found in answers} == {device}
    assert len({found.median for found in answers}) == 1


def test_every_device_of_a_basis_is_known_by_its_canonical_name(predictor: OnnxPredictor) -> None:
    for basis in ("kernel", "module", "network"):
        for device in predictor.devices(basis):
            assert canonical_device(device) == device


def test_a_gpu_without_measurements_is_answered_by_its_data_sheet(predictor: OnnxPredictor) -> None:
    known = set(predictor.devices("kernel"))
    code = CodeText("@triton.jit\ndef k(x, n, B: tl.constexpr):\n    tl.store(x, 1.0)\n", "triton", "kernel")
    sizes = {"n": "4194304", "dtype": "fp16"}
    names = ("nvidia-rtx-3090", "GeForce RTX 3090 Ti", "nvidia-t4")
    [[learned, by_sheet, far]] = predictor.predict([code], [[Query("latency", name, sizes) for name in names]])
    assert "nvidia-rtx-3090-ti" not in known
    assert learned.median is not None
    assert by_sheet.median is not None
    assert by_sheet.device == "nvidia-rtx-3090-ti"
    # Nearly the same figures on paper; what says so, and how sure that is, is not the same.
    assert by_sheet.median == pytest.approx(learned.median, rel=0.5)
    assert by_sheet.bands[0].source == CalibrationSource("kernel/triton/latency", by_data_sheet=True)
    assert by_sheet.bands[0].groups >= 10
    assert learned.bands[0].source == CalibrationSource("kernel/triton/latency")
    assert far.median is None
    assert untrained_device(far) == "nvidia-t4"


def test_a_module_on_a_gpu_without_measurements_is_answered_by_its_trees(predictor: OnnxPredictor) -> None:
    code = CodeText(MODULE, "pytorch", "module")
    sizes = {"arg0": "8x512"}
    names = ("nvidia-rtx-3090-ti", "nvidia-rtx-3090", "nvidia-gtx-1080")
    [[learned, by_sheet, unknown]] = predictor.predict([code], [[Query("latency", name, sizes) for name in names]])
    assert learned.median is not None
    assert by_sheet.median == pytest.approx(learned.median, rel=3)
    assert by_sheet.bands[0].source == CalibrationSource("module/pytorch/latency", by_data_sheet=True)
    assert not learned.bands[0].source.by_data_sheet
    assert untrained_device(unknown) == "nvidia-gtx-1080"
    assert predictor.predict([code], [[Query("latency", names[1], sizes)]]) == [[by_sheet]]


def test_a_model_that_left_no_device_out_answers_for_those_it_learned(predictor: OnnxPredictor) -> None:
    fresh = again(predictor)
    fresh.card = replace(fresh.card, residuals={"kernel/triton/latency": fresh.card.residuals["kernel/triton/latency"]})
    code = CodeText("@triton.jit\ndef k(x, n):\n    tl.store(x, 1.0)\n", "triton", "kernel")
    names = ("nvidia-rtx-3090", "nvidia-rtx-3090-ti")
    [[learned, other]] = fresh.predict([code], [[Query("latency", name, {"n": "4096"}) for name in names]])
    assert learned.abstained is None
    assert untrained_device(other) == "nvidia-rtx-3090-ti"


@pytest.mark.parametrize("by_sheet", [False, True])
def test_a_kernel_has_the_band_of_those_whose_launches_are_as_well_known(
    predictor: OnnxPredictor, by_sheet: bool
) -> None:
    key = data_sheet_key("kernel/triton/latency") if by_sheet else "kernel/triton/latency"
    device = "nvidia-rtx-3090-ti" if by_sheet else "nvidia-a100-sxm4-80gb"
    known = CodeText("@triton.jit\ndef k(x, n):\n    tl.store(x + tl.program_id(0), 1.0)\n", "triton", "kernel")
    unknown = replace(known, text=known.text.replace("1.0", "helper(x, n)"))
    fresh = again(predictor)
    widths = {}
    for code, is_known in ((known, True), (unknown, False)):
        [[prediction]] = fresh.predict([code], [[Query("latency", device, {"m": "4096", "dtype": "fp16"})]])
        band, own = prediction.bands[0], fresh.card.residuals[work_key(key, is_known)]
        assert (band.groups, band.rows) == (own.groups, own.rows)
        widths[is_known] = band.high / band.low
    assert widths[True] < widths[False] / 3
    fresh.card = replace(fresh.card, residuals={key: fresh.card.residuals[key] for key in map(forest_of, [key])})
    [[whole]] = fresh.predict([known], [[Query("latency", "nvidia-a100-sxm4-80gb", {"m": "4096", "dtype": "fp16"})]])
    assert whole.bands[0].groups == predictor.card.residuals["kernel/triton/latency"].groups


def test_an_accuracy_belongs_to_no_device(predictor: OnnxPredictor) -> None:
    accuracy = {query.metric: query for query in predictor.default_queries("network", "onnx")}["accuracy"]
    assert accuracy.device is None
    assert accuracy.workload["dataset"]


@pytest.mark.parametrize("basis", ["kernel", "module", "network"])
def test_a_basis_that_a_language_is_not_known_for_is_abstained_from(predictor: OnnxPredictor, basis: Basis) -> None:
    [answers] = predictor.predict([replace(FUNCTION, basis=basis)], [[Query(name) for name in METRICS_OF_BASIS[basis]]])
    assert [found.metric for found in answers] == list(METRICS_OF_BASIS[basis])
    for found in answers:
        details = {"basis": basis, "language": "python", "metric": found.metric}
        assert found.abstained == Abstention(AbstentionCode.TASK_NOT_TRAINED, details)
        assert (found.median, found.band, found.bands) == (None, None, ())


@pytest.mark.parametrize(
    ("code", "query", "reason", "details"),
    [
        (
            FUNCTION,
            Query("accuracy"),
            AbstentionCode.TASK_NOT_TRAINED,
            {"basis": "call", "language": "python", "metric": "accuracy"},
        ),
        (
            FUNCTION,
            Query("latency", device="abacus"),
            AbstentionCode.DEVICE_NOT_TRAINED,
            {"basis": "call", "device": "abacus", "known": "x86-64", "others": "0"},
        ),
        (replace(FUNCTION, text=" \n"), Query("latency"), AbstentionCode.EMPTY_TEXT, {}),
        (
            CodeText("x", "java", "program"),
            Query("latency", workload={"date": "soon"}),
            AbstentionCode.INVALID_DATE,
            {"date": "soon"},
        ),
        (
            replace(FUNCTION, language="java"),
            Query("latency"),
            AbstentionCode.TASK_NOT_TRAINED,
            {"basis": "call", "language": "java", "metric": "latency"},
        ),
    ],
)
def test_a_query_beyond_the_training_data_is_answered_with_the_reason(
    predictor: OnnxPredictor, code: CodeText, query: Query, reason: AbstentionCode, details: dict[str, str]
) -> None:
    [[found]] = predictor.predict([code], [[query]])
    assert found.abstained == Abstention(reason, details)
    with pytest.raises(DataError, match="row 0: "):
        predictor.distributions([code], [query])


def test_defaults_name_a_device_and_a_workload(predictor: OnnxPredictor) -> None:
    latency, memory = predictor.default_queries("program", "java")
    assert (latency.metric, memory.metric) == ("latency", "memory")
    assert latency.device == memory.device == "leetcode"
    assert latency.workload.keys() == {"judge", "date"}
    assert predictor.predict([CodeText("class Solution {}", "java", "program")] * 2, [[latency], [Query("latency")]])


def test_the_judges_date_counts(predictor: OnnxPredictor) -> None:
    code = CodeText("class Solution { int f(int n) { return n; } }", "java", "program")
    old, new = (Query("memory", workload={"date": date}) for date in ("2021-01-01", "2024-01-01"))
    [[first, second]] = predictor.predict([code], [[old, new]])
    assert first.median != second.median


def test_no_question_is_no_answer(predictor: OnnxPredictor) -> None:
    assert predictor.predict([], []) == []
    assert predictor.predict([FUNCTION], [[]]) == [[]]


def test_each_text_needs_its_queries(predictor: OnnxPredictor) -> None:
    with pytest.raises(ValueError, match="zip"):
        predictor.predict([FUNCTION], [])


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere.card\.json: cannot be read"):
        rlm_core.load(tmp_path / "nowhere")


def test_loading_and_predicting_import_no_torch(predictor: OnnxPredictor) -> None:
    code = "import rlm_core, sys; rlm_core.load(); print('torch' in sys.modules or 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("context", [None, "512", 0, 10**12, [512]])
def test_a_context_that_is_not_a_number_of_tokens_is_named(tmp_path: Path, context: object) -> None:
    directory = tmp_path / "model"
    shutil.copytree(builtin(), directory)
    card = json.loads((directory / "card.json").read_text())
    (directory / "card.json").write_text(json.dumps({**card, "sizes": {**card["sizes"], "context": context}}))
    with pytest.raises(ModelError, match=r"the card's `sizes\.context` is not a number of tokens"):
        rlm_core.load(directory)
