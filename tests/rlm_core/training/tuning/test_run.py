"""``rlm-lsp tune`` from rows to a directory: what moves, what must not, what is refused, and what is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rlm_core
from click.testing import CliRunner, Result
from rlm_core import CodeText, DataError, Query
from rlm_core.inference.student import OnnxPredictor
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.tuning import student
from rlm_core.training.tuning.run import Options, TuningOutcome, tune
from rlm_core.types import Callee
from rlm_lsp.cli.app import app

from tests.rlm_core.training.conftest import Trained, function_rows, kernel_rows, program_rows, run_cli

SHIFT = 3.0
COUNT = 96  # functions of a team: 84 to tune on, 12 in the split that is never read
READ = COUNT * 7 // 8
FEWEST = 80  # rows; the default needs a team whose model takes ten times as long to fit
LATENCY, MEMORY = "call/python/latency", "call/python/memory"
Rows = list[dict[str, Any]]


def shifted(count: int, shift: float = SHIFT) -> Rows:
    """Functions that cost more than those of the model's training."""
    rows = function_rows(count)
    for row in rows:
        row["value"] *= shift
        row["id"] = f"team/{row['id']}"
    return rows


def only(metric: str, rows: Rows) -> Rows:
    return [row for row in rows if row["metric"] == metric]


def written(rows: Rows, folder: Path, name: str = "team.parquet") -> Path:
    path = folder / name
    write_rows(rows, path)
    return path


def quietly(text: str) -> None:
    """Drop what a command reports."""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of functions, each in a separate module."""
    return written(shifted(COUNT), tmp_path_factory.mktemp("team"))


@pytest.fixture(scope="module")
def tuned(trained: Trained, team: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[TuningOutcome, Path]:
    """The tiny model tuned on them."""
    out = tmp_path_factory.mktemp("tuned") / "model"
    return tune([team], trained.exported, out, Options(name="team", fewest=FEWEST), quietly), out


def unseen(rows: Rows) -> tuple[list[CodeText], np.ndarray[Any, np.dtype[np.float64]]]:
    """The functions of the ``test`` split, which tuning never reads, and their latencies."""
    chosen = [row for row in only("latency", rows) if row["split"] == "test"]
    codes = [
        CodeText(row["text"], "python", "call", tuple(Callee(c["text"], c["level"]) for c in row["callees"]))
        for row in chosen
    ]
    return codes, np.array([row["value"] for row in chosen])


def raw_medians(model: Path, codes: list[CodeText]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """log10 medians before calibration; the tiny model has too few groups to answer with a band."""
    predictor = OnnxPredictor(model)
    found, numbers = predictor.distributions(codes, [Query("latency")] * len(codes))
    scale = predictor.card.tasks[int(numbers[0])].scale
    return np.log10(np.maximum(scale.quantiles(found, [0.5])[:, 0], scale.floor))


def test_predictions_move_towards_shifted_labels(trained: Trained, tuned: tuple[TuningOutcome, Path]) -> None:
    tuning, out = tuned
    codes, values = unseen(shifted(COUNT))
    before, after = (np.abs(raw_medians(model, codes) - np.log10(values)) for model in (trained.exported, out))
    assert np.median(after) < 0.5 * np.median(before)
    kept = {result.key: result for result in tuning.results}
    assert kept.keys() == {LATENCY, MEMORY}
    for result in kept.values():
        assert result.refused is None
        assert result.kind == "tuned"
        assert result.after.error < result.before.error


def test_the_bands_are_those_of_the_teams_held_out_groups(tuned: tuple[TuningOutcome, Path]) -> None:
    tuning, out = tuned
    codes, _ = unseen(shifted(COUNT))
    [[answer]] = rlm_core.load(out).predict(codes[:1], [[Query("latency")]])
    assert answer.band is not None
    assert answer.band.groups == READ
    assert answer.device == "measured-x86-64"
    for result in tuning.results:
        assert 0.7 <= result.after.coverage <= 0.9


def test_eval_asks_a_tuned_model_about_the_rows_it_never_read(team: Path, tuned: tuple[TuningOutcome, Path]) -> None:
    report = json.loads(run_cli("eval", "--data", team, "--model", tuned[1], "--format", "json"))
    assert {entry["metric"] for entry in report["slices"] if entry["n"]} == {"latency", "memory"}
    # The tiny model finds some texts far from those of its training, but knows the device by the name of its kind.
    assert not any("device" in reason for reasons in report["abstained"].values() for reason in reasons)


def test_slices_that_were_not_tuned_answer_as_before(trained: Trained, tuned: tuple[TuningOutcome, Path]) -> None:
    rows = [row for row in program_rows(12) if row["metric"] == "memory"]
    codes = [CodeText(row["text"], "java", "program") for row in rows]
    queries = [Query("memory", "leetcode", row["workload"]) for row in rows]
    before, after = (OnnxPredictor(model).distributions(codes, queries)[0] for model in (trained.exported, tuned[1]))
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_a_new_name_of_the_machine_changes_no_answer(trained: Trained, team: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    [result] = tune([written(only("memory", shifted(60)), tmp_path)], trained.exported, out, Options(), quietly).results
    assert result.refused is None
    codes, _ = unseen(shifted(COUNT))
    np.testing.assert_allclose(raw_medians(out, codes), raw_medians(trained.exported, codes), atol=1e-4)


def test_the_card_says_what_it_was_tuned_from_and_on(trained: Trained, tuned: tuple[TuningOutcome, Path]) -> None:
    _, out = tuned
    [entry] = rlm_core.load(out).card.trained["tuned"]  # type: ignore[attr-defined]
    assert entry["from"] == rlm_core.load(trained.exported).model_id
    assert (entry["rows"], entry["groups"], entry["data"]) == (2 * READ, READ, ["team.parquet"])
    assert entry["families"] == [f"package{number}" for number in range(7)]
    assert entry["slices"][LATENCY]["before"]["error"] > entry["slices"][LATENCY]["after"]["error"]


def test_a_tuned_model_can_be_tuned_again(tuned: tuple[TuningOutcome, Path], tmp_path: Path) -> None:
    rows = only("latency", shifted(60, SHIFT / 10))
    again = tmp_path / "again"
    result = tune([written(rows, tmp_path)], tuned[1], again, Options(), quietly)
    assert result.model is not None
    codes, values = unseen(rows)
    before, after = (np.abs(raw_medians(model, codes) - np.log10(values)) for model in (tuned[1], again))
    assert np.median(after) < np.median(before)
    assert len(rlm_core.load(again).card.trained["tuned"]) == 2  # type: ignore[attr-defined]


def test_shuffled_labels_are_refused(trained: Trained, tmp_path: Path) -> None:
    rows = only("latency", shifted(60))
    values = np.random.default_rng(3).permutation([row["value"] for row in rows])
    data = written([{**row, "value": float(value)} for row, value in zip(rows, values, strict=True)], tmp_path)
    out = tmp_path / "model"
    result = cli("tune", "--data", data, "--model", trained.exported, "--out", out)
    assert result.exit_code == 1
    assert "refused: nothing would improve" in result.stderr
    assert "do not depend on their code" in result.stdout
    assert not out.exists()


def cli(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_few_rows_change_level_and_slope_only(trained: Trained, tmp_path: Path) -> None:
    rows = only("latency", shifted(60))
    out, said = tmp_path / "model", list[str]()
    [result] = tune([written(rows, tmp_path)], trained.exported, out, Options(), said.append).results
    assert (result.kind, result.refused) == ("level", None)
    assert any("fewer than 200: only an offset and a slope are fitted" in line for line in said)
    codes, values = unseen(shifted(COUNT))
    before, after = raw_medians(trained.exported, codes), raw_medians(out, codes)
    slope, offset = np.polyfit(before, after, 1)
    assert slope > 0
    np.testing.assert_allclose(after, slope * before + offset, atol=0.02)
    assert np.median(np.abs(after - np.log10(values))) < np.median(np.abs(before - np.log10(values)))


def test_kernels_get_trees_for_what_theirs_miss(trained: Trained, tmp_path: Path) -> None:
    rows = kernel_rows(80)
    for row in rows:
        row["value"] *= 10
    out = tmp_path / "model"
    [result] = tune([written(rows, tmp_path)], trained.exported, out, Options(), quietly).results
    assert (result.key, result.kind, result.refused) == ("kernel/triton/latency", "tuned", None)
    held = [row for row in rows if row["split"] == "test"]
    codes = [CodeText(row["text"], "triton", "kernel") for row in held]
    answers = rlm_core.load(out).predict(codes, [[Query("latency", r["device"], r["workload"])] for r in held])
    known = [(answer.median, row["value"]) for [answer], row in zip(answers, held, strict=True) if answer.median]
    assert len(known) >= len(held) / 2
    assert np.median([abs(np.log10(median / value)) for median, value in known]) < 0.05


def test_a_training_directory_is_exported_first(trained: Trained, tmp_path: Path) -> None:
    rows = only("latency", shifted(60))
    found = tune([written(rows, tmp_path)], trained.directory, tmp_path / "model", Options(), quietly)
    assert found.model is not None


def test_a_model_that_forgets_the_original_rows_is_refused(
    tuned: tuple[TuningOutcome, Path], team: Path, tmp_path: Path
) -> None:
    rows = only("latency", shifted(60, 1e4))
    found = tune([written(rows, tmp_path)], tuned[1], tmp_path / "model", Options(keep=(team,)), quietly)
    assert found.model is None
    assert "the error on the original rows would grow" in str(found.refused)
    assert [path.name for path in tmp_path.iterdir()] == ["team.parquet"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_interrupts_leaves_no_half_model(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Any
) -> None:
    def stopped(*arguments: object) -> None:
        raise stop

    monkeypatch.setattr(student, "export_head", stopped)
    rows = only("latency", shifted(60))
    expected: Any = (KeyboardInterrupt, DataError)
    with pytest.raises(expected):
        tune([written(rows, tmp_path)], trained.exported, tmp_path / "model", Options(), quietly)
    assert [path.name for path in tmp_path.iterdir()] == ["team.parquet"]


def test_a_directory_in_use_is_refused_before_any_work(trained: Trained, team: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(DataError, match="already exists"):
        tune([team], trained.exported, tmp_path, Options(), quietly)


def of_no_module(rows: Rows) -> None:
    for row in rows:
        row["group"] = "package/one"


def of_no_value(rows: Rows) -> None:
    for row in rows:
        row["value"] = float("nan")


@pytest.mark.parametrize(
    ("spoil", "message"), [(of_no_module, "too few rows to tune on"), (of_no_value, "no row can be used")]
)
def test_rows_that_cannot_be_used_end_in_one_line(
    trained: Trained, tmp_path: Path, spoil: Callable[[Rows], None], message: str
) -> None:
    rows = shifted(24)
    spoil(rows)
    path = written(rows, tmp_path)
    result = cli("tune", "--data", path, "--model", trained.exported, "--out", tmp_path / "model")
    assert result.exit_code == 2
    assert message in result.stderr


def test_rows_of_unknown_devices_are_left_out_with_the_way_out(trained: Trained, tmp_path: Path) -> None:
    rows = kernel_rows(20)
    for row in rows[:30]:
        row["device"] = "no-such-gpu"
    said = list[str]()
    tune([written(rows, tmp_path)], trained.exported, tmp_path / "model", Options(), said.append)
    [line] = [line for line in said if "no-such-gpu" in line]
    assert line.startswith("left out ")
    assert "rlm-lsp adapt" in line


def test_the_command_names_the_next_step(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    rows = only("latency", shifted(60))
    printed = run_cli("tune", "--data", written(rows, tmp_path), "--model", trained.exported, "--name", "ours")
    assert "rlm-lsp model use ours" in printed
    listed = json.loads(run_cli("model", "list", "--format", "json"))
    assert [row["name"] for row in listed] == ["builtin", "ours"]
    assert "held-out Spearman" in run_cli("model", "show", "ours")
    assert "all 6 files" in run_cli("model", "verify", "ours")
