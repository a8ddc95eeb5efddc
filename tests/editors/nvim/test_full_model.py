"""A converted full model behind a model server: Neovim shows its numbers, and whether they are calibrated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import full_models

from .conftest import Neovim

pytestmark = pytest.mark.extras

Served = tuple[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    """Ids and addresses of a model as it was published, and calibrated."""
    with full_models.serving_both(tmp_path_factory.mktemp("full")) as both:
        yield both


@pytest.mark.timeout(300)
@pytest.mark.parametrize("calibrated", [False, True], ids=["uncalibrated", "calibrated"])
def test_hints_and_hovers_show_a_full_model(
    neovim: Neovim, served: tuple[Served, Served], calibrated: bool, picture: Path
) -> None:
    model_id, address = served[calibrated]
    _use_model(neovim, address)
    program = neovim.home.project / "total.py"
    program.write_text(full_models.PROGRAM)
    neovim.open(program)
    [label] = neovim.hints(1).values()
    assert re.fullmatch(r"\d+–\d+ MiB" if calibrated else r"\? \d+ MiB \(\d+–\d+ MiB\)", label)
    neovim.terminal.shows(f"import sys {label}")
    neovim.command("2")
    neovim.terminal.keys("K")
    neovim.terminal.shows("peak memory", model_id, label.partition(" (")[0])
    neovim.terminal.picture(picture)
    window = "for _, w in ipairs(vim.api.nvim_list_wins()) do if vim.api.nvim_win_get_config(w).relative ~= '' then"
    window += " return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(w), 0, -1, false) end end"
    assert ("uncalibrated" in "\n".join(neovim.lua(window))) != calibrated


def _use_model(neovim: Neovim, address: str) -> None:
    """Choose the model where Neovim starts the server: a workspace cannot choose one."""
    init = neovim.home.folder / ".config" / "nvim" / "init.lua"
    options = f"{{ init_options = {{ model = '{address}' }} }}"
    text = init.read_text().replace(".start(event.buf)", f".start(event.buf, {options})")
    init.write_text(text if options in text else f"vim.lsp.config('rlm_lsp', {options})\n{text}")
