"""How processes share the work of a step, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from rlm_core.errors import DataError
from rlm_core.training.full import store
from rlm_core.training.full.numbers import PAD
from rlm_core.training.full.trainer.config import LoopConfig
from rlm_core.training.full.trainer.data import Batch, Examples, Plan, examples
from rlm_core.training.full.trainer.parallel import Processes, ToldElsewhereError, processes
from rlm_core.training.student.dataset import load_corpus
from rlm_lsp.cli.app import app

from tests.rlm_core.training.full.conftest import Trained
from tests.rlm_core.training.full.tiny import tiny_model

CONFIG = LoopConfig(tokens_a_batch=256, group_power=1.0)


@pytest.fixture(scope="module")
def found(data: Path) -> Examples:
    return examples(load_corpus([data], ("train", "val", "cal")), tiny_model(), 2)


def shares(parts: list[Batch], world: int) -> list[list[Batch]]:
    """What each of ``world`` processes gets."""
    group = Processes()
    group.world = world
    dealt = []
    for group.rank in range(world):
        dealt.append(group.share(parts))
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
    part = plan.batch(plan.batches(0)[0], 0, 0, 0).some(slice(1)).unasked()
    model = tiny_model()
    scores = model(part.ids, part.mask, part.asks, part.tokens)
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
    with pytest.raises(ToldElsewhereError), processes(accelerate=False):
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


def test_students_are_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "student.toml").write_text("")
    result = call("train", "--accelerate", "--data", data, "--config", tmp_path / "student.toml", "--out", tmp_path)
    assert result.exit_code == 2
    assert "is a student, which one process fits in minutes" in result.stderr
    result = call("tune", "--accelerate", "--data", data, "--out", tmp_path / "model")
    assert result.exit_code == 2
    assert "builtin is a student" in result.stderr


def test_a_missing_configuration_is_told_as_such(data: Path, tmp_path: Path) -> None:
    result = call("train", "--accelerate", "--data", data, "--config", tmp_path / "c.toml", "--out", tmp_path)
    assert result.exit_code == 2
    assert "c.toml: cannot be read" in result.stderr


def test_one_process_under_the_option_trains_to_the_bit(full: Trained, tmp_path: Path) -> None:
    arguments = ("--data", full.data, "--config", full.config, "--out", tmp_path / "run")
    result = call("train", "--accelerate", *arguments)
    assert result.exit_code == 0, result.output
    ours, other = (store.load(folder)[0].state_dict() for folder in (tmp_path / "run", full.directory))
    assert all(np.array_equal(ours[name].numpy(), other[name].numpy()) for name in other)
