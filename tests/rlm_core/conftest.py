"""What the core's unit tests share. Nothing here needs torch."""

from __future__ import annotations

import pytest
from rlm_core.inference import tokenizer
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.source.canonical import canonical

from tests.paths import REPOSITORY


@pytest.fixture(scope="session")
def small_tokenizer() -> Tokenizer:
    """A tokenizer of 800 ids, trained on our own source files."""
    files = sorted((REPOSITORY / "model_core").rglob("*.py"))
    return tokenizer.train([canonical(path.read_text(), "python") for path in files], 800, sample=1000)
