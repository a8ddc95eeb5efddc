"""The page about editors that the tests cannot run: each snippet is valid and starts a server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_lsp.cli.app import app
from rlm_lsp.settings.files import SettingsStore

from .snippets import snippets


def client(title: str) -> tuple[list[str], Any]:
    """The command and the initialization options of a snippet."""
    settings = json.loads(snippets("editors/other.md")[title])
    if title == "settings.json":  # Zed
        assert settings["languages"]["Python"]["language_servers"][0] in settings["lsp"]
        [server] = settings["lsp"].values()
        return [server["binary"]["path"], *server["binary"]["arguments"]], server["initialization_options"]
    server = settings["clients"]["rlm-lsp"]
    return server["command"], server["initializationOptions"]


@pytest.mark.parametrize("title", ["settings.json", "LSP.sublime-settings"])
def test_the_snippet_starts_the_server_with_settings_that_it_knows(title: str) -> None:
    [program, *arguments], options = client(title)
    assert program.rpartition("/")[2] == "rlm-lsp"
    assert CliRunner().invoke(app, [*arguments, "--help"]).exit_code == 0
    assert list(SettingsStore(options, []).unreported()) == []
