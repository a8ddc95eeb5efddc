"""The full model's training configuration: every key has a default, and a wrong one is named."""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.training.full.training_config import (
    DecoderConfig,
    FullTrainConfig,
    ModelFitConfig,
    NumbersConfig,
    is_full,
    load_config,
)

from tests.paths import REPOSITORY


def read(tmp_path: Path, text: str) -> FullTrainConfig:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return load_config(path)


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, 'kind = "full"') == FullTrainConfig()


def test_values_reach_the_model_and_the_number_format(tmp_path: Path) -> None:
    settings = read(tmp_path, "[decoder]\nwidth = 64\nheads = 4\n[numbers]\nbase = 16\n[train]\nlearning_rate = 1\n")
    config = settings.model(32, ("python",))
    assert (config.width, config.heads, config.encoder_width, config.languages) == (64, 4, 32, ("python",))
    assert config.numbers.base == 16
    assert settings.train.learning_rate == 1


def test_lists_and_tables_are_read(tmp_path: Path) -> None:
    weights = "[1, 1, 1, 1, 1, 1, 0.5, 0.5]"
    text = f'[train]\nposition_weights = {weights}\norder = "accuracy, latency"\ntexts_per_basis = {{ call = 5 }}\n'
    train = read(tmp_path, text).train
    assert train.position_weights == (1, 1, 1, 1, 1, 1, 0.5, 0.5)
    assert train.metrics == ("accuracy", "latency")
    assert train.texts_per_basis == {"call": 5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nepoch = 3\n", r"\[train\]: unknown key 'epoch'; known: epochs"),
        ('[encoder]\nstart = "a"\ntokenizer = "b"\n', r"\[encoder\]: start brings its own tokenizer"),
        ("speed = 3\n", "unknown key 'speed'"),
        ("train = 3\n", "train must be a table"),
        ("name = 3\n", "name must be a text"),
        ("[train]\nepochs = 1.5\n", r"epochs must be an integer, not 1\.5"),
        ("[train]\nepochs = 0\n", "epochs must be at least 1"),
        ('[train]\noptimizer = "sgd"\n', "optimizer is 'sgd'; it must be one of adamw, adafactor, muon"),
        ('[train]\norder = "latency, speed"\n', "order is 'speed'"),
        ("[train]\ntexts_per_basis = { city = 5 }\n", "texts_per_basis is 'city'"),
        ("[train]\ntexts_per_basis = { call = 0.5 }\n", r"texts_per_basis\.call must be an integer"),
        ("[train]\nposition_weights = [1.0]\n", "position_weights needs 8 numbers"),
        ("[train]\nnumbers_per_sequence = 40\n", "numbers_per_sequence is more than the decoder's max_numbers"),
        ("[train]\ngroup_power = 2.0\n", r"must lie within 0\.\.1"),
        ('[encoder]\nkind = "bert"\n', "kind is 'bert'; it must be one of scratch, t5gemma"),
        ('[encoder]\nkind = "t5gemma"\n', "base is missing"),
        ("[encoder]\nwidth = 33\n", "width 33 with 8 heads"),
        ("[decoder]\nwidth = 33\n", "width 33 must be an even multiple"),
        ("[numbers]\nbase = 99\n", "base must be 2 to 36"),
        ("[train\n", "not TOML"),
    ],
)
def test_wrong_keys_and_values_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load_config(tmp_path / "none.toml")


def test_the_kind_distinguishes_a_full_model(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    for text, expected in (('kind = "full"', True), ('name = "student"', False)):
        path.write_text(text)
        assert is_full(path) is expected
    path.write_text("[broken")
    with pytest.raises(DataError, match="not TOML"):
        is_full(path)
    with pytest.raises(DataError, match=r"none\.toml: cannot be read"):
        is_full(tmp_path / "none.toml")


def test_the_configuration_in_the_repository_names_every_training_key() -> None:
    path = REPOSITORY / "configs" / "full.toml"
    assert load_config(path).encoder.kind == "scratch"
    raw = tomllib.loads(path.read_text())
    assert raw["train"].keys() == asdict(ModelFitConfig()).keys()
    assert raw["decoder"].keys() == asdict(DecoderConfig()).keys()
    assert raw["numbers"].keys() == asdict(NumbersConfig()).keys()
