"""Messages and the progress bar go to stderr; the bar appears only on a terminal and makes room for messages."""

from __future__ import annotations

import io
import sys

import pytest
from rlm_lsp.rendering import console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_on_a_terminal_and_notes_are_on_separate_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, stdout = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", stdout)
    with console.progress("building") as progress:
        progress(1, 4)
        console.note("half way")
        progress(4, 4)
    shown = terminal.getvalue()
    assert "building" in shown
    assert "\rrlm-lsp: half way\n" in shown
    assert stdout.getvalue() == ""


@pytest.mark.parametrize(("err", "out"), [(io.StringIO, io.StringIO), (Terminal, Terminal)])
def test_no_bar_elsewhere_or_where_rows_show_the_progress(
    monkeypatch: pytest.MonkeyPatch, err: type[io.StringIO], out: type[io.StringIO]
) -> None:
    stderr = err()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(sys, "stdout", out())
    with console.progress("building") as progress:
        progress(1, 4)
    assert stderr.getvalue() == ""
