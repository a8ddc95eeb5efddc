"""The newest lines of the log."""

from __future__ import annotations

import logging

import pytest
from rlm_lsp.lsp.log_tail import MOST_LINES, LogTail

pytestmark = pytest.mark.timeout(30)


def test_the_newest_lines_are_kept() -> None:
    tail = LogTail()
    for number in range(MOST_LINES + 5):
        tail.add("info", f"line {number}")
    lines = tail.text().splitlines()
    assert len(lines) == MOST_LINES
    assert lines[0].endswith("info: line 5")
    assert lines[-1].endswith(f"info: line {MOST_LINES + 4}")


def test_errors_of_the_program_are_kept_with_their_traceback() -> None:
    tail = LogTail()
    log = logging.Logger("one")
    log.addHandler(tail)
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("internal error")
    log.info("not kept")
    assert "error: internal error" in tail.text()
    assert "ValueError: broken" in tail.text()
    assert "not kept" not in tail.text()
