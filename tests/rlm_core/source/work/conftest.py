"""Fixtures of the tests of work facts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rlm_core.source.work.trial import trial


@pytest.fixture(scope="module")
def no_trial() -> Iterator[None]:
    """Count by what the text says alone: a trial would count functions without parameters anyway."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "STEPS", 0)
        yield
