"""``--accelerate``: a full model trained and tuned in two processes is the one that a single process makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rlm_core import models
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.full import store
from rlm_core.training.full.predictor import TorchPredictor
from rlm_core.training.full.trainer.data import Batch
from rlm_core.training.full.trainer.loop import Loop
from rlm_core.training.full.trainer.run import train

from tests.rlm_core.training.full.conftest import CONFIG, Trained
from tests.rlm_core.training.tuning.test_full import team_rows
from tests.rlm_core.training.tuning.tune_together import __file__ as tune_together

# Interpreters start; on a busy machine that takes its time.
pytestmark = pytest.mark.timeout(900)
_PATIENCE = 400
TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
FSDP = (
    *("accelerate.commands.launch", "--num_processes", "2", "--num_machines", "1", "--dynamo_backend", "no"),
    *("--mixed_precision", "no", "--use_fsdp", "--fsdp_version", "2"),
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
    """Run a command in two processes on this machine's processor."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *launcher, *map(str, arguments)]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    text = CONFIG
    for old, new in STEPS:
        text = text.replace(old, new)
    config = folder / "c.toml"
    config.write_text(text)
    found = Runs(folder / "alone", folder / "both", folder / "shards", {})
    with pytest.MonkeyPatch.context() as patch:
        step = Loop._step

        def stopping(self: Loop, parts: list[Batch]) -> Any:
            if self.step == 4:
                raise _StoppedError
            return step(self, parts)

        patch.setattr(Loop, "_step", stopping)
        with pytest.raises(_StoppedError):
            train([data], config, found.shards)
    train([data], config, found.alone)
    for name, launcher, more in (("both", TORCHRUN, ()), ("shards", FSDP, ("--resume",))):
        out = getattr(found, name)
        arguments = ("--data", data, "--config", config, "--out", out, *more)
        result = launch(launcher, "-m", "rlm_lsp", "train", "--accelerate", *arguments, folder=folder)
        assert result.returncode == 0, result.stderr
        found.talk[name] = result.stderr
    return found


def logged(out: Path) -> list[dict[str, float]]:
    """The log without what depends on the clock."""
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [{name: line[name] for name in line if name not in ("time", "tokens_a_second")} for line in lines]


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
    told = {(tmp_path / f"model-{rank}.txt").read_text() for rank in (0, 1)}
    assert told == {f"{TorchPredictor(out, 'cpu').model_id} None"}
    assert {one.state for one in models.verify(models.summary(out))} == {"ok"}
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["model"]


def tuned(team: list[dict[str, Any]], model: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in two processes."""
    write_rows(team, folder / "team.parquet")
    arguments = ("--data", folder / "team.parquet", "--model", model, "--out", folder / "model", "--fewest", 100)
    return launch(TORCHRUN, "-m", "rlm_lsp", "tune", "--accelerate", *arguments, folder=folder)


def test_the_command_tells_its_verdict_once(full: Trained, tmp_path: Path) -> None:
    team = team_rows(1.0)
    values = np.random.default_rng(0).permutation([row["value"] for row in team])
    result = tuned([row | {"value": float(x)} for row, x in zip(team, values, strict=True)], full.directory, tmp_path)
    assert result.returncode == 1
    assert len(result.stdout.splitlines()) == 1
    assert result.stdout.startswith("call/python/latency: 46 rows of 46 groups; on held-out groups Spearman")
    assert result.stderr.count("rlm-lsp: error: refused: call/python/latency") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["team.parquet"]


def test_an_error_before_training_ends_all_and_is_told_once(full: Trained, tmp_path: Path) -> None:
    result = tuned(team_rows(1.0)[:60], full.directory, tmp_path)
    assert result.returncode == 1
    assert result.stderr.count("rlm-lsp: error:") == 1
    assert "rlm-lsp: error: 56 rows of 56 groups" in result.stderr
    assert "exitcode  : 2" in result.stderr
