"""How processes share the work of a step, and what they refuse."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from rlm_core.errors import DataError
from rlm_core.inference import model_store
from rlm_core.training.corpus import load_corpus
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.distributed import Processes, ReportedElsewhereError, processes
from rlm_core.training.full import store
from rlm_core.training.full.model_fit import FullTrainer
from rlm_core.training.full.numbers import PAD
from rlm_core.training.full.predictor import TorchPredictor
from rlm_core.training.full.train import train
from rlm_core.training.full.training_config import ModelFitConfig
from rlm_core.training.full.training_data import Batch, Examples, Plan, examples, share
from rlm_core.training.trainer import StepResult
from rlm_lsp.cli.app import app

from tests.rlm_core.training.full.tiny import CONFIG as TOML
from tests.rlm_core.training.full.tiny import Trained, tiny_model
from tests.rlm_core.training.tuning.test_full import team_rows
from tests.rlm_core.training.tuning.tune_together import __file__ as tune_together
from tests.warm_server import warm_training

CONFIG = ModelFitConfig(tokens_per_batch=256, group_power=1.0)


@pytest.fixture(scope="module")
def found(full_data: Path) -> Examples:
    return examples(load_corpus([full_data], ("train", "val", "cal")), tiny_model(), 2)


def shares(parts: list[Batch], world: int) -> list[list[Batch]]:
    """What each of ``world`` processes gets."""
    group = Processes()
    group.world = world
    dealt = []
    for group.rank in range(world):
        dealt.append(share(parts, group))
    return dealt


@pytest.mark.parametrize("world", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_every_number_is_in_one_share_and_all_take_as_many_turns(found: Examples, world: int, count: int) -> None:
    plan = Plan(found, CONFIG)
    parts = [plan.batch(texts, 0, number, 0) for number, texts in enumerate(plan.batches(0)[:count])]
    dealt = shares(parts, world)
    assert len({len(share) for share in dealt}) == 1
    read = [batch for share in dealt for batch in share]
    assert sum(batch.numbers for batch in read) == sum(part.numbers for part in parts)
    sums = [int(batch.tokens.sum()) for batch in read]
    assert sum(sums) == sum(int(part.tokens.sum()) for part in parts)
    assert all((batch.numbers == 0) == bool((batch.tokens == PAD).all()) for batch in read)


def test_batches_stay_whole_where_there_are_enough(found: Examples) -> None:
    plan = Plan(found, CONFIG)
    parts = [plan.batch(texts, 0, number, 0) for number, texts in enumerate(plan.batches(0)[:4])]
    assert [[id(batch.ids) for batch in share] for share in shares(parts, 1)] == [[id(part.ids) for part in parts]]
    first, second = shares(parts, 2)
    for batch, part in zip([first[0], second[0], first[1], second[1]], parts, strict=True):
        assert torch.equal(batch.tokens, part.tokens)


def test_a_share_without_numbers_moves_no_weight(found: Examples) -> None:
    plan = Plan(found, CONFIG)
    part = plan.batch(plan.batches(0)[0], 0, 0, 0).some(slice(1)).without_numbers()
    model = tiny_model()
    scores = model(part.ids, part.mask, part.queries, part.tokens)
    scores.sum().backward()
    gradients = [weight.grad for weight in model.parameters()]
    assert float(scores.detach().abs().sum()) == 0
    assert all(gradient is not None and not gradient.any() for gradient in gradients)


def test_several_processes_need_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(DataError, match="started as 2 processes"), processes(accelerate=False):
        pass
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ReportedElsewhereError), processes(accelerate=False):
        pass


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"ACCELERATE_USE_DEEPSPEED": "true"}, "DeepSpeed is not supported"),
        ({"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "1"}, "launch with --fsdp_version 2"),
    ],
)
def test_other_engines_are_refused(variables: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match=reason), processes(accelerate=True):
        pass


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_students_are_refused(full_data: Path, tmp_path: Path) -> None:
    (tmp_path / "student.toml").write_text("")
    result = call(
        "train", "--accelerate", "--data", full_data, "--config", tmp_path / "student.toml", "--out", tmp_path
    )
    assert result.exit_code == 2
    assert "is a student, which one process trains in minutes" in result.stderr
    result = call("tune", "--accelerate", "--data", full_data, "--out", tmp_path / "model")
    assert result.exit_code == 2
    assert "builtin is a student" in result.stderr


def test_a_missing_configuration_is_reported_as_such(full_data: Path, tmp_path: Path) -> None:
    result = call("train", "--accelerate", "--data", full_data, "--config", tmp_path / "c.toml", "--out", tmp_path)
    assert result.exit_code == 2
    assert "c.toml: cannot be read" in result.stderr


def test_one_process_under_the_option_trains_to_the_bit(full: Trained, tmp_path: Path) -> None:
    arguments = ("--data", full.data, "--config", full.config, "--out", tmp_path / "run")
    result = call("train", "--accelerate", *arguments)
    assert result.exit_code == 0, result.output
    ours, other = (store.load(folder)[0].state_dict() for folder in (tmp_path / "run", full.directory))
    assert all(np.array_equal(ours[name].numpy(), other[name].numpy()) for name in other)


# Interpreters start; on a busy machine that takes its time.
pytestmark = pytest.mark.timeout(900)
_PATIENCE = 400
TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python")
FSDP = (
    *("accelerate.commands.launch", "--num_processes", "2", "--num_machines", "1", "--dynamo_backend", "no"),
    *("--mixed_precision", "no", "--use_fsdp", "--fsdp_version", "2", "--no_python"),
)
# Three batches a step: one process has a share less than the other.
STEPS = (("epochs = 24", "epochs = 3\naccumulation = 3\ncheckpoint_minutes = 0"), ("log_steps = 5", "log_steps = 1"))


class _StoppedError(Exception):
    """As if the power had gone."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The directories of one training by one process, by two (DDP), and by two in shards that go on with one's."""

    alone: Path
    both: Path
    shards: Path
    talk: dict[str, str]


def launch(launcher: tuple[str, ...], *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in two processes on this machine's processor, which are forks like the launcher."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    python = warm_training()
    command = [python, "-m", *launcher, python, *map(str, arguments)]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )


@pytest.fixture(scope="module")
def runs(full_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    text = TOML
    for old, new in STEPS:
        text = text.replace(old, new)
    config = folder / "c.toml"
    config.write_text(text)
    found = Runs(folder / "alone", folder / "both", folder / "shards", {})
    with pytest.MonkeyPatch.context() as patch:
        step = FullTrainer.take_step

        def stopping(self: FullTrainer, parts: list[Batch]) -> StepResult:
            if self.step == 4:
                raise _StoppedError
            return step(self, parts)

        patch.setattr(FullTrainer, "take_step", stopping)
        with pytest.raises(_StoppedError):
            train([full_data], config, found.shards)
    train([full_data], config, found.alone)
    for name, launcher, more in (("both", TORCHRUN, ()), ("shards", FSDP, ("--resume",))):
        out = getattr(found, name)
        arguments = ("--data", full_data, "--config", config, "--out", out, *more)
        result = launch(launcher, "-m", "rlm_lsp", "train", "--accelerate", *arguments, folder=folder)
        assert result.returncode == 0, result.stderr
        found.talk[name] = result.stderr
    return found


def logged(out: Path) -> list[dict[str, float]]:
    """The log without what depends on the clock."""
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [{name: line[name] for name in line if name not in ("time", "tokens_per_second")} for line in lines]


def weights(out: Path) -> dict[str, torch.Tensor]:
    return store.load(out)[0].state_dict()


@pytest.mark.parametrize("name", ["both", "shards"])
def test_two_processes_make_the_steps_of_one(runs: Runs, name: str) -> None:
    ours, alone = logged(getattr(runs, name)), logged(runs.alone)
    assert len(alone) == 12  # nine steps, three validations
    assert [line.keys() for line in ours] == [line.keys() for line in alone]
    for line, other in zip(ours, alone, strict=True):
        assert line == pytest.approx(other, rel=1e-5)


@pytest.mark.parametrize("name", ["both", "shards"])
def test_two_processes_make_the_model_of_one(runs: Runs, name: str) -> None:
    ours, alone = weights(getattr(runs, name)), weights(runs.alone)
    assert ours.keys() == alone.keys()
    for weight in alone:
        torch.testing.assert_close(ours[weight], alone[weight], atol=1e-5, rtol=1e-5)
    predictors = [TorchPredictor(out, "cpu") for out in (getattr(runs, name), runs.alone)]
    assert predictors[0].devices("call") == predictors[1].devices("call")


@pytest.mark.parametrize("name", ["both", "shards"])
def test_a_checkpoint_holds_whole_states_whoever_wrote_it(runs: Runs, name: str) -> None:
    ours, alone = (torch.load(out / "checkpoint.pt", weights_only=True) for out in (getattr(runs, name), runs.alone))
    assert ours["at"] == alone["at"]
    assert ours["best"] == pytest.approx(alone["best"], rel=1e-5)
    assert ours["weights"].keys() == alone["weights"].keys()
    for number, state in alone["optimizers"][0]["state"].items():
        found = ours["optimizers"][0]["state"][number]
        torch.testing.assert_close(found["exp_avg"], state["exp_avg"], atol=1e-5, rtol=1e-4)


def test_only_the_main_process_talks(runs: Runs) -> None:
    for name in ("both", "shards"):
        assert runs.talk[name].count("reading data sets") == 1
        assert runs.talk[name].count("trained model tiny-full") == 1
    assert "resuming at epoch 2, step 4" in runs.talk["shards"]


def test_two_processes_tune_one_model(full: Trained, tmp_path: Path) -> None:
    write_rows(team_rows(6.0), tmp_path / "team.parquet")
    out = tmp_path / "model"
    result = launch(TORCHRUN, tune_together, tmp_path / "team.parquet", full.directory, out, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "reading rows",
        "asking the model about 46 held-out rows",
        "training on 111 rows",
        "writing",
    ]
    written = {(tmp_path / f"model-{rank}.txt").read_text() for rank in (0, 1)}
    assert written == {f"{TorchPredictor(out, 'cpu').model_id} None"}
    assert {one.state for one in model_store.verify(model_store.summary(out))} == {"ok"}
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["model"]


def tuned(team: list[dict[str, Any]], model: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in two processes."""
    write_rows(team, folder / "team.parquet")
    arguments = ("--data", folder / "team.parquet", "--model", model, "--out", folder / "model", "--fewest", 100)
    return launch(TORCHRUN, "-m", "rlm_lsp", "tune", "--accelerate", *arguments, folder=folder)


def test_the_command_reports_its_verdict_once(full: Trained, tmp_path: Path) -> None:
    team = team_rows(1.0)
    values = np.random.default_rng(0).permutation([row["value"] for row in team])
    result = tuned([row | {"value": float(x)} for row, x in zip(team, values, strict=True)], full.directory, tmp_path)
    assert result.returncode == 1
    assert len(result.stdout.splitlines()) == 1
    assert result.stdout.startswith("call/python/latency: 46 rows of 46 groups; on held-out groups Spearman")
    assert result.stderr.count("rlm-lsp: error: refused: call/python/latency") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["team.parquet"]


def test_an_error_before_training_ends_all_and_is_reported_once(full: Trained, tmp_path: Path) -> None:
    result = tuned(team_rows(1.0)[:60], full.directory, tmp_path)
    assert result.returncode == 1
    assert result.stderr.count("rlm-lsp: error:") == 1
    assert "rlm-lsp: error: 56 rows of 56 groups" in result.stderr
    assert "exitcode  : 2" in result.stderr
