"""The pages about editors that the tests cannot run: each snippet is valid and starts a server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_core.source.languages import LANGUAGES
from rlm_lsp.cli.app import app
from rlm_lsp.settings.files import SettingsStore

from tests.paths import REPOSITORY

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


TEMPLATE = REPOSITORY / "editors" / "jetbrains" / "rlm-lsp"


def test_the_template_for_jetbrains_has_every_language_and_starts_the_server() -> None:
    template = json.loads((TEMPLATE / "template.json").read_text())
    assert template.keys() == {"id", "name", "programArgs", "fileTypeMappings"}
    patterns = {mapping["languageId"]: mapping["fileType"]["patterns"] for mapping in template["fileTypeMappings"]}
    analysed = [one for one in LANGUAGES.values() if one.grammar is not None and one.suffixes]
    assert patterns == {one.name: [f"*{suffix}" for suffix in one.suffixes] for one in analysed}
    for command in template["programArgs"].values():
        program, *arguments = command.split()
        assert program.removesuffix(".exe") == "rlm-lsp"
        assert CliRunner().invoke(app, [*arguments, "--help"]).exit_code == 0
    options = json.loads((TEMPLATE / "initializationOptions.json").read_text())
    assert list(SettingsStore(options, []).unreported()) == []
    # What the page shows is a part of it.
    shown = snippets("editors/jetbrains.md")
    assert json.loads(shown["initializationOptions.json"]) == options
    page = json.loads(shown["template.json"])
    assert page["fileTypeMappings"] == template["fileTypeMappings"][:1]
    assert page | {"fileTypeMappings": template["fileTypeMappings"]} == template


@pytest.mark.parametrize("title", ["settings.json", "LSP.sublime-settings"])
def test_the_snippet_starts_the_server_with_settings_that_it_knows(title: str) -> None:
    [program, *arguments], options = client(title)
    assert program.rpartition("/")[2] == "rlm-lsp"
    assert CliRunner().invoke(app, [*arguments, "--help"]).exit_code == 0
    assert list(SettingsStore(options, []).unreported()) == []
