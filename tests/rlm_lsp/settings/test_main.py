"""What documents the settings is made from their model, complete, and up to date in the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_core import DataError
from rlm_lsp.settings.__main__ import FORMATS, json_schema, main, markdown, package, vscode
from rlm_lsp.settings.model import ENTRIES

from tests.paths import REPOSITORY

pytestmark = pytest.mark.timeout(30)


def test_the_documentation_in_the_repository_is_up_to_date() -> None:
    written = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == markdown(), "run python -m rlm_lsp.settings --out docs/settings.md"


def test_the_extension_in_the_repository_has_the_settings_of_today() -> None:
    manifest = REPOSITORY / "vscode-extension" / "package.json"
    written = manifest.read_text(encoding="utf-8")
    assert written == package(written), f"run python -m rlm_lsp.settings --package {manifest}"


def test_an_untrusted_workspace_cannot_choose_what_runs() -> None:
    manifest: dict[str, Any] = {"contributes": {}, "capabilities": {"untrustedWorkspaces": {}}}
    restricted = json.loads(package(json.dumps(manifest)))["capabilities"]["untrustedWorkspaces"]
    machine = [key for key, entry in ENTRIES.items() if entry.scope == "machine"]
    wanted = {f"rlm-lsp.{key}" for key in ("path", "interpreter", "importStrategy", *machine)}
    assert set(restricted["restrictedConfigurations"]) == wanted


@pytest.mark.parametrize("text", ["", "[]", "{}", "null"])
def test_another_file_is_no_manifest(text: str) -> None:
    with pytest.raises(DataError, match="not a manifest"):
        package(text)


def test_every_setting_is_documented() -> None:
    for entry in ENTRIES.values():
        for text in (f"### {entry.key}\n", entry.help, f"`{entry.variable}`"):
            assert text in markdown()
    assert list(json.loads(json_schema())["properties"]) == list(ENTRIES)


def test_the_schema_admits_what_files_may_say() -> None:
    schema = json.loads(json_schema())
    assert schema["additionalProperties"] is False
    assert schema["properties"]["label"]["enum"] == ["band", "median", "median±"]
    assert schema["properties"]["hideBelow"]["additionalProperties"] is False
    assert "^hide-below$" in schema["patternProperties"]
    assert "^label$" not in schema["patternProperties"]


def test_vscode_sends_null_for_what_is_not_set_and_keeps_machine_settings_from_workspaces() -> None:
    properties = json.loads(vscode())["properties"]
    for key, entry in ENTRIES.items():
        one = properties[f"rlm-lsp.{key}"]
        assert one["default"] is None
        assert "null" in one["type"]
        assert "enum" not in one or None in one["enum"]
        assert one["scope"] == {"folder": "resource", "session": "window", "machine": "machine"}[entry.scope]
    assert properties["rlm-lsp.trace.server"]["default"] == "off"


@pytest.mark.parametrize("form", list(FORMATS))
def test_the_command_writes_each_form(form: str, tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["--format", form])
    assert (shown.exit_code, shown.stdout) == (0, FORMATS[form]())
    assert CliRunner().invoke(main, ["--format", form, "--out", str(tmp_path / "x")]).exit_code == 0
    assert (tmp_path / "x").read_text(encoding="utf-8") == FORMATS[form]()
