"""Every command of README and docs/ runs and prints what the page shows; those that cannot run are understood."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
from rlm_core.inference import model_store
from rlm_lsp.lsp.server import create_server

from .blocks import REPOSITORY, Block, blocks, pages
from .outputs import agrees, begins_alike
from .parsing import check_ours, simple_commands
from .play import play

RENEW = "if that is right, run: python -m tests.docs"
ALL = [block for page in pages() for block in blocks(page)]
PLAYED = [page for page in pages() if any(block.is_run or "run" in block.classes for block in blocks(page))]
NOT_RUN = [block for block in ALL if "not-run" in block.classes]


@pytest.mark.parametrize("page", PLAYED, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    for package in {name for block in blocks(page) for name in block.values.get("needs", "").split()}:
        pytest.importorskip(package)
    for played in play(list(blocks(page)), tmp_path):
        block, command, ended = played.block, played.command, played.ended
        printed = "\n".join((*ended.stdout, *ended.stderr))
        assert ended.status == played.status, f"{block.place}: `{command.text}` printed:\n{printed}"
        if command.output is None:
            continue
        if "sample" in block.classes:
            assert begins_alike(command.output, played.printed), f"{block.place}: printed was:\n{printed}"
            continue
        wrong = agrees(command.output, played.printed, excerpt="excerpt" in block.classes)
        assert wrong is None, f"{block.place}: shown is {wrong!r}; {RENEW}\nprinted was:\n{printed}"


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.place)
def test_commands_that_are_not_run_say_why_and_are_understood(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())  # --no-cpu-scale sets a variable
    monkeypatch.setattr(model_store, "find", Path)  # the models that pages name are not installed
    assert len(block.values.get("reason", "")) > 5, f"{block.place}: give a reason"
    if not block.holds_commands:
        return
    script = re.sub(r"^\$ ", "", block.text, flags=re.MULTILINE)
    checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, f"{block.place}: {checked.stderr}"
    for words in simple_commands(block.text):
        if words[0] == "rlm-lsp":
            try:
                check_ours(words)
            except click.UsageError as error:
                pytest.fail(f"{block.place}: {' '.join(words)}: {error.format_message()}")
        if words[0] == "make":
            assert f"\n{words[1]}:" in (REPOSITORY / "Makefile").read_text(), f"{block.place}: no target {words[1]}"


def test_every_block_names_its_language_and_commands_are_sh_or_console() -> None:
    assert [block.place for block in ALL if block.language in ("", "bash", "shell", "zsh", "shell-session")] == []


def test_extras_that_are_named_exist() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages())
    named = {name for names in re.findall(r"(?:rlm-lsp|'\.)\[([a-z,]+)\]", text) for name in names.split(",")}
    assert named
    assert named <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("block", [block for block in ALL if block.language in ("toml", "json")], ids=lambda b: b.place)
def test_configuration_that_is_shown_can_be_read(block: Block) -> None:
    json.loads(block.text) if block.language == "json" else tomllib.loads(block.text)


def test_commands_of_the_server_are_those_listed_on_the_page() -> None:
    text = (REPOSITORY / "docs" / "editor.md").read_text(encoding="utf-8").partition("## Commands of the server")[2]
    server = create_server()
    assert set(re.findall(r"^\| `(rlm-lsp\.\w+)`", text, flags=re.MULTILINE)) == set(server.protocol.fm.commands)
    server.close()


def test_commands_of_vs_code_are_called_as_the_page_says() -> None:
    text = (REPOSITORY / "docs" / "vscode.md").read_text(encoding="utf-8").partition("## Commands")[2]
    told = re.findall(r"^\| ([A-Z].*?) \|", text, flags=re.MULTILINE)
    extension = json.loads((REPOSITORY / "vscode-extension" / "package.json").read_text(encoding="utf-8"))
    assert told
    assert set(told) <= {command["title"] for command in extension["contributes"]["commands"]}
