"""What documents the settings is made from their model, complete, and up to date in the repository."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rlm_core import DataError
from rlm_lsp.settings.__main__ import FORMATS, GROUPS, json_schema, main, markdown, package, vscode
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
    assert schema["properties"]["severity"]["additionalProperties"] is False
    assert schema["properties"]["hintsMinLatency"]["default"] == "50 µs"
    assert "^hints-min-latency$" in schema["patternProperties"]
    assert "^label$" not in schema["patternProperties"]


def vscode_properties() -> dict[str, Any]:
    return {name: value for group in json.loads(vscode()) for name, value in group["properties"].items()}


def test_vscode_shows_the_defaults_and_keeps_machine_settings_from_workspaces() -> None:
    properties = vscode_properties()
    defaults = json.loads(json_schema())["properties"]
    for key, entry in ENTRIES.items():
        written = properties[f"rlm-lsp.{key}"]
        # A text that is not set is empty in the settings editor.
        assert written["default"] == ("" if entry.default is None else defaults[key]["default"])
        assert written["scope"] == {"folder": "resource", "session": "window", "machine": "machine"}[entry.scope]
    assert properties["rlm-lsp.trace.server"]["default"] == "off"


def test_vscode_has_a_field_for_each_setting_instead_of_a_link_to_its_file() -> None:
    """The settings editor has no field for a setting of several types, nor for a table of values of several types."""
    for schema in vscode_properties().values():
        assert schema["type"] in ("boolean", "integer", "number", "string", "array", "object")
        if schema["type"] == "array":
            assert schema["items"]["type"] == "string"
        if schema["type"] == "object":
            rest = schema["additionalProperties"]
            values = [*schema.get("properties", {}).values(), *([rest] if rest is not False else [])]
            assert all(value["type"] in ("string", "number") for value in values)


def test_vscode_shows_each_setting_in_one_group() -> None:
    groups = json.loads(vscode())
    assert [group["order"] for group in groups] == list(range(1, len(groups) + 1))
    assert len({group["id"] for group in groups}) == len(groups) == len(GROUPS)
    names = [name for group in groups for name in group["properties"]]
    extension = {"path", "interpreter", "importStrategy", "trace.server"}
    assert sorted(names) == sorted(f"rlm-lsp.{key}" for key in (*ENTRIES, *extension))
    for group in groups:
        assert [schema["order"] for schema in group["properties"].values()] == [*range(1, len(group["properties"]) + 1)]


def test_a_setting_without_a_group_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENTRIES, "colour", replace(ENTRIES["hints"], key="colour"))
    with pytest.raises(DataError, match="settings without a group: colour"):
        vscode()


@pytest.mark.parametrize("form", list(FORMATS))
def test_the_command_writes_each_form(form: str, tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["--format", form])
    assert (shown.exit_code, shown.stdout) == (0, FORMATS[form]())
    assert CliRunner().invoke(main, ["--format", form, "--out", str(tmp_path / "x")]).exit_code == 0
    assert (tmp_path / "x").read_text(encoding="utf-8") == FORMATS[form]()
