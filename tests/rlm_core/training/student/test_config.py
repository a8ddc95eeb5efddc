"""The training configuration: every key has a default, and a wrong one is named."""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from rlm_core.errors import DataError
from rlm_core.training.student.config import TREE_BASES, EncoderFitConfig, PretrainConfig, TrainConfig, load_config

from tests.paths import REPOSITORY

SHIPPED = REPOSITORY / "configs" / "student.toml"


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "c.toml").touch()
    assert load_config(tmp_path / "c.toml") == TrainConfig()


def test_the_shipped_configuration_names_every_training_key() -> None:
    assert isinstance(load_config(SHIPPED), TrainConfig)
    raw = tomllib.loads(SHIPPED.read_text())
    assert raw["train"].keys() == asdict(EncoderFitConfig()).keys()
    assert raw["pretrain"].keys() == asdict(PretrainConfig()).keys()
    assert raw["trees"].keys() == set(TREE_BASES)
    assert raw["ngram_ridge"].keys() == {"bits", "penalty"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nepoch = 1\n", r"\[train\]: unknown key 'epoch'; known: epochs"),
        ("[model]\nwidth = 'wide'\n", r"\[model\]: width must be an integer, not 'wide'"),
        ("[pretrain]\ntoken = 1\n", r"\[pretrain\]: unknown key 'token'; known: start, tokens"),
        ("[pretrain]\nhidden_share = 'some'\n", r"\[pretrain\]: hidden_share must be a number"),
        ("[trees.kernel]\nleaves = 2.5\n", r"\[trees\.kernel\]: leaves must be an integer, not 2.5"),
        ("[trees.module]\nleaf = 2\n", r"\[trees\.module\]: unknown key 'leaf'; known: trees"),
        ("[trees]\nleaves = 2\n", r"\[trees\.leaves\]: unknown; give tables for program, kernel, module, network"),
        ("[trees.call]\nleaves = 2\n", r"\[trees\.call\]: unknown; give tables for program, kernel, module, network"),
        ("trees = 3\n", r"\[trees\] must be a table"),
        ("[train]\nepochs = 1.5\n", r"\[train\]: epochs must be an integer"),
        ("[train]\nlearning_rate = true\n", r"\[train\]: learning_rate must be a number"),
        ("[train]\ncompile = 1\n", r"\[train\]: compile must be true or false"),
        ("[ngram_ridge]\npenalty = '2'\n", r"\[ngram_ridge\]: penalty must be a number"),
        ("[other]\nx = 1\n", "unknown key 'other'"),
        ("[ngram_ridge]\nbit = 1\n", r"unknown key 'ngram_ridge\.bit'"),
        ("epochs = \n", "not TOML"),
        ("model = 3\n", r"\[model\] must be a table"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(DataError, match=message):
        load_config(tmp_path / "c.toml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.toml: cannot be read"):
        load_config(tmp_path / "gone.toml")
