"""A session's settings: which source takes precedence in which folder, and what is reported once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .support import lines, store

pytestmark = pytest.mark.timeout(30)


def test_the_order_of_sources(tmp_path: Path) -> None:
    folder, user = tmp_path / "project", tmp_path / "config.toml"
    folder.mkdir()
    user.write_text('threads = 1\nlabel = "median"\nmaxLabel = 5\ndebounceMs = 1\nchangeRatio = 5\n')
    (folder / "rlm-lsp.toml").write_text("threads = 2\nmax-label = 6\ndebounce-ms = 2\nchange-ratio = 6\n")
    found = store({"threads": 3, "debounceMs": 3, "changeRatio": 7}, folder, user=user, RLM_LSP_THREADS="5")
    found.set_client({folder: {"threads": 4, "changeRatio": 8}})
    found.use(found.read_files([folder]))
    now = found.session
    assert (now.threads, now.change_ratio, now.debounce_ms, now.max_label, now.label) == (5, 8, 3, 6, "median")


def test_each_folder_has_its_settings(tmp_path: Path) -> None:
    first, second, inner = tmp_path / "first", tmp_path / "second", tmp_path / "second" / "inner"
    for folder, label in ((first, "band"), (second, "median"), (inner, "median±")):
        folder.mkdir()
        (folder / "rlm-lsp.toml").write_text(f'label = "{label}"\nthreads = 2\nexclude = ["gen/**"]\n')
    found = store(None, first, second, inner)
    assert found.settings_for((first / "a.py").as_uri()).label == "band"
    assert found.settings_for((second / "a.py").as_uri()).label == "median"
    assert found.settings_for((inner / "deep" / "a.py").as_uri()).label == "median±"
    assert found.settings_for((tmp_path / "a.py").as_uri()).threads == 0
    assert found.settings_for("untitled:Untitled-1").label == "band"
    assert found.session.threads == 2
    assert found.excludes(inner / "gen" / "a.py")
    assert not found.excludes(second / "inner2" / "a.py")
    assert not found.excludes(None)
    assert [line.partition(": ")[2][:40] for line in lines(found)] == ["setting `threads` applies to the whole s"] * 2


def test_the_client_may_answer_by_folder(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    found = store(None, first, second)
    found.set_client({None: {"label": "median"}, second: {"label": "median±"}})
    found.use(found.read_files([first, second]))
    assert found.settings_of(tmp_path / "other.py").label == "median"
    assert found.settings_of(first / "a.py").label == "median"
    assert found.settings_of(second / "a.py").label == "median±"


def test_a_workspace_sets_no_machine_settings_even_if_trusted(tmp_path: Path) -> None:
    (tmp_path / "rlm-lsp.toml").write_text('model = "https://evil.example"\n')
    found = store({"trusted": True}, tmp_path)
    assert found.session.model == "builtin"
    assert "cannot be set by a workspace" in lines(found)[0]


@pytest.mark.parametrize(
    ("options", "model"), [({}, "builtin"), ({"trusted": "yes"}, "builtin"), ({"trusted": True}, "m")]
)
def test_the_clients_configuration_sets_them_where_it_is_trusted(options: dict[str, Any], model: str) -> None:
    found = store(options)
    found.set_client({None: {"model": "m"}})
    found.use(found.read_files([]))
    assert found.session.model == model
    assert found.trusted == (model == "m")


@pytest.mark.parametrize("key", ["path", "interpreter", "importStrategy", "trace"])
def test_what_a_client_keeps_for_itself_is_no_unknown_setting(key: str, tmp_path: Path) -> None:
    found = store({key: "mine"})
    found.set_client({None: {key: "mine"}})
    found.use(found.read_files([]))
    assert lines(found) == []
    (tmp_path / "rlm-lsp.toml").write_text(f'{key} = "mine"\n')
    [line] = lines(store(None, tmp_path))
    assert f"unknown setting `{key}`" in line


def test_options_environment_and_user_file_may_set_everything(tmp_path: Path) -> None:
    user = tmp_path / "config.toml"
    user.write_text('tokenFile = "t"\n')
    found = store({"model": "m"}, user=user, RLM_LSP_MEASURE="off")
    assert (found.session.model, found.session.token_file, found.session.measure) == ("m", "t", False)
    assert lines(found) == []


def test_a_problem_is_reported_once_and_again_after_it_was_fixed(tmp_path: Path) -> None:
    file = tmp_path / "rlm-lsp.toml"
    file.write_text("colour = 1\n")
    found = store(None, tmp_path)
    assert len(lines(found)) == 1
    found.use(found.read_files([tmp_path]))
    assert lines(found) == []
    file.write_text("")
    found.use(found.read_files([tmp_path]))
    assert lines(found) == []
    file.write_text("colour = 1\n")
    found.use(found.read_files([tmp_path]))
    assert len(lines(found)) == 1
