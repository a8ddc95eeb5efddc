"""Helix as the documentation sets it up, as the screen shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.editors.conftest import Home
from tests.editors.snippets import snippets
from tests.editors.terminal import Terminal

from .conftest import PAGE, Open

pytestmark = pytest.mark.timeout(300)

HINT = re.compile(r"def (small|large)\(n\):\s*(\S+ [nµm]?s · \S+ (?:B|KiB|MiB))")


def ready(terminal: Terminal) -> None:
    """Wait for the server, then press a key: Helix asks for hints after keys only."""
    terminal.shows("is predicted to exceed its budget")
    terminal.keys("Escape")


def hints(screen: str) -> dict[str, str]:
    """The labels behind the two functions."""
    return {found[1]: found[2] for found in HINT.finditer(screen)}


def test_hints_follow_signatures_and_move_with_an_edit(helix: Open, home: Home, picture: Path) -> None:
    terminal = helix()
    ready(terminal)
    terminal.wait(lambda screen: len(hints(screen)) == 2, "no hints")
    before = hints(terminal.text())
    terminal.picture(picture)
    terminal.type("jxcreturn sorted([n * i for i in range(n * n)])")
    terminal.keys("Escape")
    terminal.wait(lambda screen: hints(screen).get("small", before["small"]) != before["small"], "the hint stays")
    assert hints(terminal.text())["large"] == before["large"]
    home.check_capabilities("helix-25.07")


def test_the_hover_has_the_table(helix: Open, picture: Path) -> None:
    terminal = helix()
    ready(terminal)
    terminal.wait(lambda screen: len(hints(screen)) == 2, "no hints")
    terminal.type("w k")
    terminal.shows("small: one call, as tests would call it", "80 % band", "latency", "peak memory")
    terminal.picture(picture)


def test_a_budget_is_reported_until_it_is_kept(helix: Open, picture: Path) -> None:
    terminal = helix()
    ready(terminal)
    terminal.wait(lambda screen: len(hints(screen)) == 2, "no hints")
    terminal.shows("large is predicted to exceed its budget of 1 B")
    terminal.picture(picture)
    terminal.type("%s1 B")
    terminal.keys("Enter")
    terminal.type("c1 GiB")
    terminal.keys("Escape")
    terminal.hides("is predicted to exceed its budget")
    terminal.type("u6gl")
    terminal.shows("large is predicted to exceed its budget of 1 B")


def test_the_settings_snippet_is_obeyed(helix: Open) -> None:
    terminal = helix("languages.toml", "settings")
    ready(terminal)
    terminal.wait(lambda screen: re.search(r"def small\(n\):\s*\S+ [nµm]?s *\n", screen), "no hint of a median")


def test_all_snippets_of_the_page_are_tested() -> None:
    assert set(snippets(PAGE)) == {"languages.toml", "config.toml", "settings"}
