"""What the core's unit tests share. Nothing here needs torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core import tokenizer
from rlm_core.canonical import canonical
from rlm_core.tokenizer import Tokenizer

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def small_tokenizer() -> Tokenizer:
    """A tokenizer of 800 ids, trained on our own source files."""
    files = sorted((REPOSITORY / "model_core").rglob("*.py"))
    return tokenizer.train([canonical(path.read_text(), "python") for path in files], 800, sample=1000)
