"""The data set, configuration and predictor of the tiny trained full model."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.training.full.predictor import TorchPredictor

from .tiny import Trained


@pytest.fixture(scope="session")
def data(full_data: Path) -> Path:
    """A data set of 400 rows of two tasks."""
    return full_data


@pytest.fixture(scope="session")
def config(full_config: Path) -> Path:
    """The configuration of a model that trains in seconds."""
    return full_config


@pytest.fixture(scope="session")
def predictor(full: Trained) -> TorchPredictor:
    """The tiny model as a predictor."""
    return TorchPredictor(full.directory, "cpu")
