"""Kill -9 during every kind of write: a sample."""

from __future__ import annotations

import os

import pytest

from .kills import KINDS, kills

pytestmark = pytest.mark.extras


@pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked")
def test_nothing_is_lost_or_half_written_when_a_writer_is_killed() -> None:
    done = kills(2 * len(KINDS), seed=2)
    assert {name for name, _ in done} == set(KINDS)
    assert sum(done.values()) == 2 * len(KINDS)
