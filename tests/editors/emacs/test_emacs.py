"""Emacs with eglot as the documentation sets it up, as the screen shows it."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.editors.conftest import Home
from tests.editors.snippets import snippets
from tests.editors.terminal import Terminal

from .conftest import PAGE, Open

pytestmark = pytest.mark.timeout(300)

HINT = re.compile(r"def (small|large)\(n\): (\S+ [nµm]?s · \S+ (?:B|KiB|MiB))")


def hints(screen: str) -> dict[str, str]:
    """The labels behind the two functions."""
    return {found[1]: found[2] for found in HINT.finditer(screen)}


def both(terminal: Terminal) -> dict[str, str]:
    """The labels, once both are there."""
    return terminal.wait(lambda screen: len(found := hints(screen)) == 2 and found, "no hints") or {}


def command(terminal: Terminal, name: str) -> None:
    """Run a command by its name."""
    terminal.keys("M-x")
    terminal.shows("M-x")
    terminal.type(name)
    terminal.keys("Enter")


def test_hints_follow_signatures_and_move_with_an_edit(emacs: Open, home: Home, picture: Path) -> None:
    terminal = emacs()
    before = both(terminal)
    terminal.picture(picture)
    terminal.keys("Down", "C-e")
    terminal.type(" + sum(sorted([n * i for i in range(n * n)]))")
    terminal.wait(lambda screen: hints(screen).get("small", before["small"]) != before["small"], "the hint stays")
    assert both(terminal)["large"] == before["large"]
    home.check_capabilities("emacs-30.1")


def test_the_documentation_buffer_has_all_numbers(emacs: Open, picture: Path) -> None:
    terminal = emacs()
    both(terminal)
    terminal.keys("C-f")
    terminal.shows("small: one call, as tests would call it")
    terminal.keys("C-h", ".")
    terminal.shows("latency: median", "peak memory: median", "80 % band", "bands checked on")
    terminal.picture(picture)
    assert "**" not in terminal.text()
    assert "|---" not in terminal.text()
    # Its last line may be below the window.
    terminal.keys("C-x", "o", "M->")
    terminal.shows("nothing was run")


def test_a_budget_is_reported_until_it_is_kept(emacs: Open, picture: Path) -> None:
    terminal = emacs()
    terminal.shows("Flymake[1 0]", "!!def large(n)")
    command(terminal, "flymake-show-buffer-diagnostics")
    terminal.shows("over-budget", "large is predicted to exceed its budget of 1 B")
    terminal.picture(picture)
    terminal.keys("M-%")
    terminal.type("1 B")
    terminal.keys("Enter")
    terminal.type("1 GiB")
    terminal.keys("Enter")
    terminal.type("!")
    terminal.shows("memory < 1 GiB", "Flymake[0 0]")
    terminal.hides("!!def large(n)")


def test_hints_are_hidden_and_shown_again(emacs: Open) -> None:
    terminal = emacs()
    before = both(terminal)
    command(terminal, "eglot-inlay-hints-mode")
    terminal.hides(before["small"])
    command(terminal, "eglot-inlay-hints-mode")
    assert both(terminal) == before


def test_nothing_stays_of_a_server_that_was_killed_and_it_can_be_had_again(emacs: Open) -> None:
    terminal = emacs()
    before = both(terminal)
    terminal.shows("!!def large(n)")
    [server] = Path(f"/proc/{terminal.program}/task/{terminal.program}/children").read_text().split()
    os.kill(int(server), signal.SIGKILL)
    terminal.hides("eglot:project")
    terminal.hides(before["small"])
    terminal.hides("!!def large(n)")
    command(terminal, "eglot")
    assert both(terminal) == before
    terminal.shows("!!def large(n)")


def test_the_settings_snippet_is_obeyed(emacs: Open) -> None:
    terminal = emacs("init.el", "settings")
    terminal.wait(lambda screen: re.search(r"def small\(n\): \S+ [nµm]?s *\n", screen), "no hint of a median")


def test_all_snippets_of_the_page_are_tested() -> None:
    assert set(snippets(PAGE)) == {"init.el", "settings"}
