"""The calibration of a converted model: from measured rows, per data set, and never half written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rlm_core.errors import DataError, ModelError
from rlm_core.inference import model_store
from rlm_core.inference.calibration import INTERVALS, Calibration, TaskCalibration
from rlm_core.inference.card import CARD, SERVING, checksum, read_model_card
from rlm_core.inference.model_store import ModelOrigin
from rlm_core.loading import load
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.evaluation.rows import select
from rlm_core.training.full import calibrate as module
from rlm_core.training.full import published, regress_lm, store
from rlm_core.training.full.calibrate import calibrate, write_calibration
from rlm_core.training.full.decoding import sample
from rlm_core.training.full.predictor import SpaceAsking
from rlm_core.training.full.sequences import Slot
from rlm_core.training.full.spaces import APPS, CODENET, SPACES, Space
from rlm_core.training.full.store import Serving
from rlm_core.types import CodeText, Query

from .published_checkpoints import reference, write_checkpoint
from .tiny import LAST, Trained, tiny_regress_lm

pytestmark = pytest.mark.extras
GROUPS, ROWS = 60, 300
TASK = "program/python/memory"
Row = dict[str, Any]


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A converted model whose numbers are positive with a probability of nearly 1."""
    folder = tmp_path_factory.mktemp("converted")
    write_checkpoint(folder / "checkpoint", model=reference(seed=4, spread=0.7))
    published.install(folder / "checkpoint", folder / "model", "tiny", ModelOrigin("owner/tiny", "0c92", "mit"))
    return folder / "model"


@pytest.fixture
def model(converted: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return shutil.copytree(converted, tmp_path / "model")


def row(number: int, text: str, value: float, **more: Any) -> Row:
    """A row of APPS as ``rlm-lsp data build`` writes it."""
    return {
        "id": f"code-regression/APPS/{number}/memory",
        "text": text,
        "callees": [],
        "language": "python",
        "basis": "program",
        "metric": "memory",
        "device": "x86-64",
        "workload": {"judge": "apps"},
        "value": value,
        "group": f"apps/{number % GROUPS}",
        "family": f"apps/{number % GROUPS}",
        "held_out": "problem",
        "split": "cal",
        "source": "test",
    } | more


@pytest.fixture(scope="session")
def drawn(converted: Path) -> list[Row]:
    """Rows whose values are drawn from the model's own distribution, evenly within what is rounded to a number."""
    own, _ = store.load(converted)
    texts = [f"def f{number}(x):\n    return x + {number}\n" * (1 + number % 3) for number in range(ROWS)]
    memories = own.encode([APPS.reading(text) for text in texts], APPS.max_tokens)
    found = sample(own, memories, [[[Slot()]]] * ROWS, 1, torch.Generator().manual_seed(0))
    random = np.random.default_rng(0)
    values = [random.uniform(*own.config.numbers.cell(max(float(line[0][0, 0]), 0.0))) for line in found]
    return [row(number, text, value) for number, (text, value) in enumerate(zip(texts, values, strict=True))]


def written(path: Path, rows: Sequence[Row]) -> Path:
    write_rows(rows, path / "rows.parquet")
    return path / "rows.parquet"


def test_values_of_the_models_own_distribution_are_covered_before_and_after(
    model: Path, drawn: list[Row], tmp_path: Path
) -> None:
    before, shown = read_model_card(model).model_id, []
    result = calibrate(model, [written(tmp_path, drawn)], ["cal"], 0, lambda *progress: shown.append(progress))
    [task] = result.tasks
    assert (task.task, task.space, task.rows, task.groups) == (TASK, "APPS", ROWS, GROUPS)
    error = 3 * np.sqrt(0.8 * 0.2 / ROWS)
    assert task.before == pytest.approx(0.8, abs=error)
    assert task.after == pytest.approx(0.8, abs=1.5 * error)  # the levels are estimated, too
    assert shown[-1] == (ROWS, ROWS)
    # The model is whole, has a new id, and says what its bands rest on.
    assert result.model_id == read_model_card(model).model_id != before
    assert all(file.state == "ok" for file in model_store.verify(model_store.summary(model)))
    [[answer]] = load(model).predict([CodeText(drawn[0]["text"], "python", "program")], [[Query("memory")]])
    assert answer.model == result.model_id
    assert answer.bands[0].source.task == TASK
    assert (answer.bands[0].groups, answer.bands[0].rows) == (GROUPS, ROWS)
    assert not answer.bands[0].source.uncalibrated


def test_scaled_values_are_covered_only_after(model: Path, drawn: list[Row], tmp_path: Path) -> None:
    scaled = [entry | {"value": entry["value"] * 1e12} for entry in drawn]
    [task] = calibrate(model, [written(tmp_path, scaled)], None, 0).tasks
    assert task.before < 0.7
    assert task.after == pytest.approx(0.8, abs=0.1)
    level = Serving.read(model, read_model_card(model)).calibration.exactly(TASK)
    assert level is not None
    assert level.at(0.8) > 0.85


def test_a_row_is_covered_as_its_score_says(model: Path, drawn: list[Row], tmp_path: Path) -> None:
    """The served band of 80 % covers a value if and only if its score is at most the level."""
    calibrate(model, [written(tmp_path, drawn)], None, 0)
    predictor, asking = load(model), SpaceAsking(Serving.read(model, read_model_card(model)))
    own, _ = store.load(model)
    level = Serving.read(model, read_model_card(model)).calibration.exactly(TASK)
    assert level is not None
    chosen = drawn[:60]
    rows = select([tmp_path / "rows.parquet"], None, 0).rows[:60]
    questions = [question for entry in rows if (question := module._question(asking, entry)) is not None]
    scores = module._scores(own, questions, lambda done, total: None)
    answers = predictor.predict(
        [CodeText(entry["text"], "python", "program") for entry in chosen], [[Query("memory")]] * 60
    )
    for entry, score, (answer,) in zip(chosen, scores, answers, strict=True):
        band = answer.bands[0]
        # Bands are found to two digits.
        if min(abs(entry["value"] / end - 1) for end in (band.low, band.high) if end) > 0.02:
            assert (band.low <= entry["value"] <= band.high) == (score <= level.at(0.8))


def test_a_value_of_0_is_covered_where_the_interval_begins_at_0(converted: Path) -> None:
    own, _ = store.load(converted)
    text = APPS.reading("def f(x):\n    return x\n")
    ask = partial(module._Question, text, 2048, task=TASK, space="APPS", group="g")
    small = own.config.numbers.smallest
    at_zero, below, tiny = module._scores(own, [ask(0.0), ask(-1.0), ask(small / 2)], lambda done, total: None)
    assert at_zero == below
    memory = own.encode([text], 2048)
    (signs,) = sample(own, memory, [[[Slot()]]], 20_000, torch.Generator().manual_seed(0))[0]
    assert at_zero == pytest.approx(1 - 2 * (signs < 0).mean(), abs=0.02)
    assert tiny == pytest.approx(at_zero, abs=1e-3)


def test_a_data_set_calibrates_no_other(model: Path, drawn: list[Row], tmp_path: Path) -> None:
    calibrate(model, [written(tmp_path, drawn)], None, 0)
    asking = SpaceAsking(Serving.read(model, read_model_card(model)))
    for language, calibrated in (("python", True), ("cpp", False)):
        code = CodeText("int main() {}", language, "program")
        asked = asking.ask(code, asking.filled("program", Query("memory"), language))
        assert bool(asked.level.rows) == calibrated  # type: ignore[union-attr]
    # Not even where a file has levels of parents.
    wide = TaskCalibration("program", tuple(0.5 for _ in INTERVALS), 100, 100)
    levels = {name: replace(wide, name=name) for name in ("program", "program/memory", "network/onnx/accuracy")}
    asking = SpaceAsking(Serving({}, {}, {}, Calibration(levels), spaces=SPACES))
    for code, query in (
        (CodeText("x = 1", "python", "program"), Query("memory")),
        (CodeText("graph", "onnx", "network"), Query("accuracy", None, {"space": "enas"})),
    ):
        asked = asking.ask(code, asking.filled(code.basis, query, code.language))
        assert not asked.level.rows  # type: ignore[union-attr]


def test_networks_are_calibrated_by_data_set(model: Path, tmp_path: Path) -> None:
    networks = [
        row(
            number,
            f"graph {number}",
            0.9,
            basis="network",
            language="onnx",
            metric="accuracy",
            device=None,
            workload={"space": "enas", "dataset": "cifar10"},
        )
        for number in range(GROUPS)
    ]
    [task] = calibrate(model, [written(tmp_path, networks)], None, 0).tasks
    assert task.task == "network/onnx/accuracy/enas"
    asking = SpaceAsking(Serving.read(model, read_model_card(model)))
    for space, calibrated in (("enas", True), ("nasnet", False)):
        query = asking.filled("network", Query("accuracy", None, {"space": space}), "onnx")
        asked = asking.ask(CodeText("graph", "onnx", "network"), query)
        assert bool(asked.level.rows) == calibrated  # type: ignore[union-attr]


def test_tasks_of_few_groups_stay_and_those_without_rows_keep_theirs(
    model: Path, drawn: list[Row], tmp_path: Path
) -> None:
    kernels = [
        row(number, f"kernel {number}", 1e-3, basis="kernel", language="triton", metric="latency", workload={})
        | {"device": "nvidia-rtx-a6000"}
        for number in range(GROUPS)
    ]
    calibrate(model, [written(tmp_path, drawn)], None, 0)
    few = [replace_group(entry, f"apps/{number % 29}") for number, entry in enumerate(drawn)]
    results = calibrate(model, [written(tmp_path, [*kernels, *few])], None, 0).tasks
    assert [(task.task, task.groups, task.after is None) for task in results] == [
        ("kernel/triton/latency/nvidia-rtx-a6000", GROUPS, False),
        (TASK, 29, True),
    ]
    levels = Serving.read(model, read_model_card(model)).calibration
    assert levels.exactly(TASK) is not None
    assert levels.exactly("kernel/triton/latency/nvidia-rtx-a6000") is not None


def replace_group(entry: Row, group: str) -> Row:
    return entry | {"group": group}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"basis": "call"}, "answers none of the 300 rows.*it answers APPS .program memory, python., CDSS"),
        ({"workload": {"judge": "cdss"}}, "answers none"),  # another data set, whose numbers mean something else
        ({"device": "leetcode", "workload": {"judge": "leetcode"}}, "answers none"),
        ({"split": "test"}, "answers no row of cal"),
        ({"group": "one"}, "are of 1 groups at most per task, and a calibration needs 30"),
    ],
)
def test_rows_that_cannot_be_used_are_refused_in_one_line(
    model: Path, drawn: list[Row], tmp_path: Path, change: Row, message: str
) -> None:
    before = contents(model)
    with pytest.raises(DataError, match=message) as caught:
        calibrate(model, [written(tmp_path, [entry | change for entry in drawn])], ["cal"], 0)
    assert "\n" not in str(caught.value)
    assert contents(model) == before


def test_models_that_cannot_be_calibrated_are_refused_in_one_line(
    full: Trained, drawn: list[Row], tmp_path: Path
) -> None:
    data = [written(tmp_path, drawn)]
    with pytest.raises(DataError, match="calibration comes from training"):
        calibrate(full.directory, data, None, 0)
    with pytest.raises(DataError, match="builtin is a student"):
        calibrate(model_store.builtin(), data, None, 0)
    published.save(tiny_regress_lm(LAST), tmp_path / "last", "last", (APPS, CODENET), ModelOrigin("x"))
    with pytest.raises(ModelError, match="exponent last, so its distribution cannot be evaluated exactly"):
        calibrate(tmp_path / "last", data, None, 0)


def test_a_model_whose_numbers_have_leading_zeros_is_calibrated(drawn: list[Row], tmp_path: Path) -> None:
    loose = tiny_regress_lm(regress_lm.ieee(10, 1, 2))
    published.save(loose, tmp_path / "loose", "loose", (APPS, CODENET), ModelOrigin("x"))
    texts = [entry["text"] for entry in drawn]
    memories = loose.encode([APPS.reading(text) for text in texts], APPS.max_tokens)
    found = sample(loose, memories, [[[Slot()]]] * ROWS, 1, torch.Generator().manual_seed(0))
    random = np.random.default_rng(0)
    values = [random.uniform(*loose.config.numbers.cell(abs(float(line[0][0, 0])))) for line in found]
    rows = [row(number, text, 1.0 + value) for number, (text, value) in enumerate(zip(texts, values, strict=True))]
    [task] = calibrate(tmp_path / "loose", [written(tmp_path, rows)], None, 0).tasks
    assert task.after == pytest.approx(0.8, abs=0.1)


def test_rows_of_a_space_with_a_device_keep_their_device(tmp_path: Path, drawn: list[Row]) -> None:
    own = Space("mine", "program", "memory", 1.0, ("python",), "x86-64")
    asking = SpaceAsking(Serving({}, {}, {}, spaces=(own,)))
    rows = [entry | {"workload": {}} for entry in drawn[:2]]
    chosen = select([written(tmp_path, rows)], None, 0).rows
    questions = [module._question(asking, entry) for entry in chosen]
    assert [question.task for question in questions if question] == [f"{TASK}/x86-64"] * 2


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): checksum(path) for path in sorted(folder.rglob("*")) if path.is_file()}


class Killed(BaseException):
    """Ends a run without a chance to clean up after a step."""


@pytest.mark.parametrize("step", range(4))
def test_an_interrupted_run_leaves_a_model_that_can_be_loaded(
    model: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Killed before any of the renames: a reader gets the previous calibration or the new one, whole."""
    card = read_model_card(model)
    levels = Calibration({TASK: TaskCalibration(TASK, tuple(0.5 for _ in INTERVALS), 50, 100)})
    rename, renamed = Path.replace, list[Path]()

    def killed(self: Path, target: Path) -> Path:
        if len(renamed) == step:
            raise Killed
        renamed.append(target)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    if step < 3:
        with pytest.raises(Killed):
            write_calibration(model, card, levels)
    else:
        write_calibration(model, card, levels)
    monkeypatch.undo()
    found = read_model_card(model)
    is_new = step >= 2
    assert (found.model_id != card.model_id) == is_new
    assert (Serving.read(model, found).calibration.exactly(TASK) is not None) == is_new
    load(model)
    summary = model_store.summary(model)
    assert {file.state for file in model_store.verify(summary)} == {"ok"}
    assert bool(model_store.spaces(summary)[0].calibrated) == is_new
    # The next run tidies up.
    other = Calibration({TASK: TaskCalibration(TASK, tuple(0.6 for _ in INTERVALS), 50, 100)})
    write_calibration(model, found, other)
    assert Serving.read(model, read_model_card(model)).calibration.to_json() == other.to_json()
    assert [path.name for path in model.iterdir() if path.name.startswith(".")] == []


def test_a_model_that_was_replaced_in_the_meantime_stays(model: Path) -> None:
    card = read_model_card(model)
    levels = Calibration({TASK: TaskCalibration(TASK, tuple(0.5 for _ in INTERVALS), 50, 100)})
    write_calibration(model, card, levels)
    before = contents(model)
    with pytest.raises(ModelError, match="was replaced in the meantime"):
        write_calibration(model, card, Calibration({}))
    assert contents(model) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda model: (model / SERVING).write_text("{"),
        lambda model: (model / SERVING).unlink(),
        lambda model: change_card(model, spaces=[{"name": 1}]),
        lambda model: change_card(model, origin="somewhere"),
    ],
)
def test_a_damaged_description_of_the_spaces_is_one_line(model: Path, damage: Callable[[Path], object]) -> None:
    damage(model)
    summary = model_store.summary(model)
    with pytest.raises(ModelError, match="add the model again") as caught:
        model_store.origin(summary), model_store.spaces(summary)
    assert "\n" not in str(caught.value)


def test_a_pending_calibration_is_only_looked_for_in_the_directory(model: Path) -> None:
    outside = model.parent / "evil.serving.json"
    outside.write_text("{}")
    assert model_store.serving_file(model, {SERVING: "/../../evil"}) == model / SERVING


def change_card(model: Path, **trained: Any) -> None:
    data = json.loads((model / CARD).read_text())
    data["trained"] |= trained
    (model / CARD).write_text(json.dumps(data))
