"""``rlm-lsp model``: the choice is the user's own, per workspace, and never taken from what a workspace brings."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rlm_core.inference import model_store
from rlm_lsp.cli.app import app
from rlm_lsp.settings import files
from rlm_lsp.settings.files import SettingsStore


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration file, not there yet; models are in ``tmp_path/models``."""
    path = tmp_path / "config" / "config.toml"
    monkeypatch.setattr(files, "user_file", lambda: path)
    monkeypatch.setattr(model_store, "folder", lambda: tmp_path / "models")
    return path


@pytest.fixture
def shop(user: Path, tmp_path: Path) -> Path:
    """A model in the user's folder."""
    return shutil.copytree(model_store.builtin(), tmp_path / "models" / "shop")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work" / "inner").mkdir(parents=True)
    return tmp_path / "work"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["model", *map(str, arguments)])


def chosen(folder: Path, user: Path) -> str:
    return SettingsStore(None, [folder], {}, user).session.model


def test_a_workspace_uses_the_model_that_was_chosen_for_it(user: Path, shop: Path, workspace: Path) -> None:
    assert run("use", "shop", "--workspace", workspace).exit_code == 0
    assert chosen(workspace, user) == str(shop)
    assert chosen(workspace / "inner", user) == str(shop)
    assert chosen(workspace.parent, user) == "builtin"
    assert not list(workspace.glob("*.*"))


def test_the_nearest_folder_counts(user: Path, shop: Path, workspace: Path) -> None:
    run("use", "shop", "--workspace", workspace)
    run("use", "builtin", "--workspace", workspace / "inner")
    assert chosen(workspace / "inner", user) == "builtin"
    assert chosen(workspace, user) == str(shop)


def test_a_workspace_cannot_choose_for_itself(user: Path, shop: Path, workspace: Path) -> None:
    (workspace / "workspaces.json").write_text(json.dumps({str(workspace): {"model": str(shop)}}))
    (workspace / "rlm-lsp.toml").write_text(f"model = {json.dumps(str(shop))}\n")
    assert chosen(workspace, user) == "builtin"


def test_other_settings_of_the_users_file_stay(user: Path, shop: Path, workspace: Path) -> None:
    user.parent.mkdir()
    known = {str(workspace): {"label": "median"}, "/elsewhere": {"model": "builtin"}}
    user.with_name(files.WORKSPACES).write_text(json.dumps(known))
    run("use", "shop", "--workspace", workspace)
    found = json.loads(user.with_name(files.WORKSPACES).read_text())
    assert found == {**known, str(workspace): {"label": "median", "model": str(shop)}}
    assert SettingsStore(None, [workspace], {}, user).session.label == "median"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# mine\nlabel = 'median'\n",
        "model = 'builtin'  # the usual\n[severity]\nerror = 0.9\n",
        "[severity]\nerror=1\n",
    ],
)
def test_everywhere_changes_one_line_of_the_users_file(user: Path, shop: Path, before: str) -> None:
    user.parent.mkdir()
    user.write_text(before)
    assert run("use", "shop", "--everywhere").exit_code == 0
    assert tomllib.loads(user.read_text()) == {**tomllib.loads(before), "model": str(shop)}
    assert "# mine" in user.read_text() or "# mine" not in before


def test_what_looks_like_the_setting_inside_a_string_of_the_users_file_stays(user: Path, shop: Path) -> None:
    user.parent.mkdir()
    user.write_text('label = """\nmodel = 1\n"""\n')
    assert run("use", "shop", "--everywhere").exit_code == 0
    assert tomllib.loads(user.read_text()) == {"label": "model = 1\n", "model": str(shop)}


def test_a_users_file_that_is_not_toml_is_left_alone(user: Path, shop: Path) -> None:
    user.parent.mkdir()
    user.write_text("label = \n")
    result = run("use", "shop", "--everywhere")
    assert result.exit_code == 2
    assert "is not valid TOML: " in result.stderr
    assert "fix it first" in result.stderr
    assert user.read_text() == "label = \n"


@pytest.mark.parametrize("damage", ["{", "[]", "[" * 100_000])
def test_a_damaged_file_of_workspaces_is_reported_and_kept(
    user: Path, shop: Path, workspace: Path, damage: str
) -> None:
    user.parent.mkdir()
    place = user.with_name(files.WORKSPACES)
    place.write_text(damage)
    result = run("use", "shop", "--workspace", workspace)
    assert result.exit_code == 2
    assert "fix or remove it" in result.stderr
    assert place.read_text() == damage
    store = SettingsStore(None, [workspace], {}, user)
    assert store.session.model == "builtin"
    assert any("workspaces.json" in problem.place for problem in store.problems)


def test_what_is_no_model_is_not_chosen(user: Path, workspace: Path) -> None:
    result = run("use", "nothing", "--workspace", workspace)
    assert result.exit_code == 2
    assert "no such model" in result.stderr
    assert not user.parent.exists()


def test_an_address_is_chosen_as_it_is(user: Path, workspace: Path) -> None:
    run("use", "https://gpu-box:8765", "--workspace", workspace)
    assert chosen(workspace, user) == "https://gpu-box:8765"


def test_the_list_marks_what_is_used_here(
    user: Path, shop: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("use", "shop", "--workspace", workspace)
    monkeypatch.chdir(workspace)
    rows = json.loads(run("list", "--format", "json").stdout)
    assert [(row["name"], row["used"]) for row in rows] == [("builtin", False), ("shop", True)]
    assert any(line.startswith("*  shop") for line in run("list").stdout.splitlines())


def test_verify_finds_a_changed_byte(user: Path, shop: Path) -> None:
    assert run("verify", "shop").exit_code == 0
    with (shop / "wide.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    result = run("verify", "shop")
    assert result.exit_code == 1
    assert "changed  wide.safetensors" in result.stdout
    assert "1 of 12 files" in result.stderr


def test_show_names_bases_devices_and_training(user: Path, shop: Path) -> None:
    printed = run("show", "shop").stdout
    assert "call         python/latency, python/memory; devices x86-64" in printed
    assert json.loads(run("show", "shop", "--format", "json").stdout)["kind"] == "student"
