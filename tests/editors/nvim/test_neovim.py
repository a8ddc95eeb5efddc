"""Neovim as the documentation sets it up: what the user sees on the screen, and what Neovim itself holds."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.editors import get_editors
from tests.editors.conftest import REPOSITORY, SOURCE, Home
from tests.editors.snippets import snippets
from tests.editors.terminal import Terminal

from .conftest import NEOVIMS, PAGE, Neovim

pytestmark = pytest.mark.timeout(300)

LATENCY = re.compile(r"\S+ [nµm]?s( ∝ [\w^ ×]+)?")
LABEL = re.compile(rf"{LATENCY.pattern}( · \S+ (B|KiB|MiB))?")


def test_hints_follow_signatures_and_move_with_an_edit(neovim: Neovim, picture: Path) -> None:
    neovim.open(neovim.home.file)
    before = neovim.hints(2)
    assert all(LABEL.fullmatch(label) for label in before.values())
    neovim.terminal.shows(f"def small(n): {before[0]}", f"def large(n): {before[5]}")
    neovim.terminal.picture(picture)
    neovim.command("2s/n + 1/sorted([n * i for i in range(n * n)])/")
    neovim.wait(lambda: neovim.hints(2)[0] != before[0], "the hint stays as it was")
    after = neovim.hints(2)
    assert after[5] == before[5]
    neovim.terminal.shows(f"def small(n): {after[0]}", f"def large(n): {after[5]}")
    neovim.home.check_capabilities(neovim.editor.name)


def test_the_hover_has_the_table(neovim: Neovim, picture: Path) -> None:
    neovim.open(neovim.home.file)
    neovim.hints(2)
    neovim.terminal.keys("K")
    neovim.terminal.shows("small: one call, as tests would call it", "80 % band", "| latency ", "| peak memory |")
    neovim.terminal.picture(picture)
    opened = (
        "local f = {} for _, w in ipairs(vim.api.nvim_list_wins()) do if vim.api.nvim_win_get_config(w).relative ~= ''"
    )
    opened += " then f = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(w), 0, -1, false) end end return f"
    assert "nothing was run" in "\n".join(neovim.lua(opened))


def test_hints_and_the_hover_are_for_the_sizes_of_a_comment_and_of_calls(neovim: Neovim, picture: Path) -> None:
    file = neovim.home.file.with_name("sizes.py")
    file.write_text(
        "# rlm: sizes items=10k\ndef total(items: list[int]) -> int:\n    t = 0\n    for item in items:\n"
        "        t += item\n    return t\n\n\ndef simulate(steps: int) -> int:\n    t = 0\n"
        "    for step in range(steps):\n        t += step\n    return t\n\n\nsimulate(50_000)\n"
    )
    neovim.open(file)
    neovim.wait(lambda: "at steps 50k" in "".join(neovim.hints(2).values()), "no hint at the size of the call")
    assert "at items 10k" in "".join(neovim.hints(2).values())
    neovim.command("2")
    neovim.terminal.keys("K")
    neovim.terminal.shows("total: one call at items=10k", "| items ", "| 100k ")
    neovim.terminal.picture(picture)


def test_the_hover_names_the_line_that_makes_a_cost_grow_and_an_action_goes_there(
    neovim: Neovim, picture: Path
) -> None:
    file = neovim.home.file.with_name("allowed.py")
    file.write_text(
        "def allowed(users: list[int], blocked: list[int]) -> list[int]:\n"
        "    return [user for user in users if user not in blocked]\n"
    )
    neovim.open(file)
    neovim.hints(1)
    neovim.command("call cursor(1, 5)")
    neovim.terminal.keys("K")
    neovim.terminal.shows("from line 2", "a set finds an")
    neovim.terminal.picture(picture)
    neovim.terminal.keys("Escape")
    neovim.command("lua vim.lsp.buf.code_action({apply=true, filter=function(a) return a.title:match('^Go to') end})")
    neovim.wait(lambda: neovim.lua("return vim.fn.line('.')") == 2, "the cursor is not in the line")


def test_a_budget_is_reported_until_it_is_kept(neovim: Neovim, picture: Path) -> None:
    neovim.open(neovim.home.file)
    [found] = neovim.diagnostics(1)
    assert (found["code"], found["lnum"], found["col"], found["end_col"]) == ("over-budget", 5, 4, 9)
    assert "large is predicted to exceed its budget of 1 B" in found["message"]
    neovim.terminal.shows("E def large(n)")
    neovim.terminal.picture(picture)
    neovim.command("%s/1 B/1 GiB/")
    assert neovim.diagnostics(0) == []
    neovim.terminal.hides("E def large(n)")
    neovim.command("undo")
    assert neovim.diagnostics(1)[0]["message"] == found["message"]


def test_hints_are_hidden_in_a_buffer_or_in_all(neovim: Neovim) -> None:
    other = neovim.home.project / "other.py"
    other.write_text("def other(n):\n    return n\n")
    neovim.open(neovim.home.file)
    [small, large] = neovim.hints(2).values()
    neovim.command("RlmLspToggle")
    neovim.terminal.shows("hints of this file are hidden")
    neovim.hints(0)
    neovim.terminal.hides(small)
    neovim.command(f"split {other.name}")
    [shown] = neovim.hints(1).values()
    neovim.terminal.shows(f"def other(n): {shown}")
    neovim.command("wincmd w")
    neovim.command("RlmLspToggle")
    neovim.terminal.shows(f"def small(n): {small}", f"def large(n): {large}", "hints of this file are shown")
    neovim.command("RlmLspToggle!")
    neovim.terminal.shows("hints are hidden in all files")
    neovim.terminal.hides(small)
    neovim.terminal.hides(f"def other(n): {shown}")
    neovim.command("RlmLspToggle")
    neovim.terminal.shows("RlmLspToggle! shows them")
    neovim.command("RlmLspToggle!")
    neovim.terminal.shows(f"def small(n): {small}", f"def other(n): {shown}")


def test_hints_that_are_hidden_in_all_files_are_hidden_in_a_new_session_too(neovim: Neovim) -> None:
    neovim.open(neovim.home.file)
    neovim.hints(2)
    neovim.command("RlmLspToggle!")
    neovim.hints(0)
    elsewhere = neovim.home.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "rlm-lsp.toml").write_text('hints-shown = "all"\n')
    (elsewhere / "new.py").write_text(SOURCE)
    neovim.command(f"edit {elsewhere / 'new.py'}")
    # Diagnostics come from the new server, and are not hidden.
    neovim.diagnostics(1)
    neovim.hints(0)
    neovim.command("RlmLspToggle!")
    neovim.hints(2)


def test_the_health_check_names_version_model_and_session(neovim: Neovim, picture: Path) -> None:
    neovim.open(neovim.home.file)
    neovim.hints(2)
    neovim.command("checkhealth rlm_lsp")
    neovim.terminal.shows("running, positions in", "answers with the model rlm-", "OK rlm-lsp 0.", "OK model rlm-")
    neovim.terminal.picture(picture)
    text = "\n".join(neovim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
    assert "OK inlay hints are on" in text
    assert f"for {neovim.home.project}" in text
    assert "self-test" in text
    assert "ERROR" not in text
    assert "WARNING" not in text


def test_a_missing_server_is_reported_once_and_the_health_check_suggests_a_fix(neovim: Neovim, picture: Path) -> None:
    neovim.home.hide_server()
    other = neovim.home.project / "other.py"
    other.write_text("def other(n):\n    return n\n")
    neovim.open(neovim.home.file)
    screen = neovim.terminal.shows("rlm-lsp: no program `rlm-lsp`; see :checkhealth rlm_lsp")
    assert "Press ENTER" not in screen
    neovim.terminal.picture(picture)
    for name in (other.name, neovim.home.file.name, other.name):
        neovim.edit(name)
    assert neovim.lua("return vim.fn.execute('messages')").count("no program") == 1
    neovim.command("checkhealth rlm_lsp")
    neovim.terminal.shows("ERROR", "rlm-lsp is not found", "Install it", "give its full path", "Not running")


def test_a_model_that_cannot_be_loaded_is_reported_with_a_fix(neovim: Neovim) -> None:
    program = neovim.home.folder / "bin" / "rlm-lsp"
    program.write_text(program.read_text().replace("exec ", f"RLM_LSP_MODEL={neovim.home.folder / 'gone'} exec ", 1))
    neovim.open(neovim.home.file)
    neovim.terminal.shows("no predictions", "gone", "Press ENTER")
    neovim.terminal.keys("Enter")
    neovim.command("checkhealth rlm_lsp")
    neovim.terminal.shows("ERROR has no model", ":RlmLspLog", "OK rlm-lsp 0.")


def test_the_log_of_the_server_is_shown(neovim: Neovim) -> None:
    (neovim.home.project / "rlm-lsp.toml").write_text('hintz = true\nhints-shown = "all"\n')
    neovim.open(neovim.home.file)
    if "Press ENTER" in neovim.terminal.shows("rlm-lsp ignores a setting"):  # a long notice may wait for a key
        neovim.terminal.keys("Enter")
    neovim.hints(2)
    neovim.command("RlmLspLog")
    neovim.terminal.shows("warning: ")
    # The screen wraps a long path anywhere.
    assert "unknown setting `hintz`" in neovim.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false))")


def test_nothing_stays_of_a_server_that_was_killed_and_it_can_be_had_again(neovim: Neovim) -> None:
    neovim.open(neovim.home.file)
    [small, _] = neovim.hints(2).values()
    neovim.diagnostics(1)
    [server] = neovim.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())")
    os.kill(server, signal.SIGKILL)
    neovim.terminal.shows("quit with exit code", "Press ENTER")
    neovim.terminal.keys("Enter")
    assert neovim.hints(0) == {}
    assert neovim.diagnostics(0) == []
    neovim.terminal.hides(small)
    neovim.terminal.hides("E def large(n)")
    neovim.command("edit")
    neovim.terminal.shows(f"def small(n): {small}", "E def large(n)")


def test_an_explanation_opens_and_predictions_are_copied(neovim: Neovim, picture: Path) -> None:
    neovim.open(neovim.home.file)
    neovim.hints(2)
    neovim.command("call cursor(6, 5)")
    choose = "lua vim.lsp.buf.code_action({{ apply = true, filter = function(a) return a.title:match('{}') end }})"
    neovim.command(choose.format("^Copy"))
    neovim.terminal.shows("predictions copied as JSON")
    assert '"qualname": "large"' in neovim.lua("return vim.fn.getreg('\"')")
    neovim.command(choose.format("^Explain"))
    neovim.terminal.shows("Statements that the latency of large depends on", "| line | ratio | statement")
    neovim.terminal.picture(picture)


def test_the_command_that_measures_is_copied(neovim: Neovim, picture: Path) -> None:
    (neovim.home.project / "pyproject.toml").touch()
    (neovim.home.project / "shop").mkdir()
    (neovim.home.project / "shop" / "__init__.py").touch()
    file = neovim.home.file.rename(neovim.home.project / "shop" / "work.py")
    neovim.open(file)
    # A clipboard that a terminal without a desktop has not.
    neovim.lua(
        "local function keep(lines) vim.g.kept = lines end local function kept() return vim.g.kept end"
        " local both, back = { ['+'] = keep, ['*'] = keep }, { ['+'] = kept, ['*'] = kept }"
        " vim.g.clipboard = { name = 'kept', copy = both, paste = back }"
    )
    neovim.hints(2)
    neovim.command("call cursor(6, 5)")
    neovim.command("lua vim.lsp.buf.code_action({apply=true, filter=function(a) return a.title:match('^Measure') end})")
    screen = neovim.terminal.shows("To measure, run: cd ", "the command is copied; run it in a shell")
    assert "Press ENTER" not in screen
    neovim.terminal.picture(picture)
    wanted = f"cd {neovim.home.project} && rlm-lsp measure tests --package shop"
    assert neovim.lua("return vim.fn.getreg('\"')") == wanted
    assert neovim.lua("return vim.g.kept") == [wanted]


def test_the_settings_snippet_is_obeyed(home: Home, terminal: Terminal) -> None:
    neovim = Neovim(get_editors.NEOVIM_012, home, terminal)
    neovim.configure("init.lua", "settings", "diagnostics")
    neovim.open(home.file)
    neovim.terminal.shows("■ peak memory of large is predicted to exceed its budget")
    assert all(LATENCY.fullmatch(label) for label in neovim.hints(2).values())


def test_settings_of_the_project_are_taken_over_when_they_are_saved(neovim: Neovim) -> None:
    neovim.open(neovim.home.file)
    assert any(" · " in label for label in neovim.hints(2).values())
    neovim.command("split rlm-lsp.toml")
    neovim.command("call append(0, 'metrics = [\"latency\"]') | write")
    neovim.command("close")
    neovim.wait(lambda: not any(" · " in label for label in neovim.hints(2).values()), "the settings are not obeyed")


def test_findings_of_an_open_file_follow_the_settings_of_the_project(home: Home, terminal: Terminal) -> None:
    neovim = Neovim(get_editors.NEOVIM_012, home, terminal)
    neovim.configure()
    neovim.open(home.file)
    neovim.diagnostics(1)
    neovim.command("split rlm-lsp.toml")
    neovim.command("call append(0, 'diagnostics = false') | write")
    neovim.command("close")
    neovim.diagnostics(0)


LANGUAGES = {
    "c": "c", "cc": "cpp", "cs": "cs", "go": "go", "java": "java", "js": "javascript", "jsx": "javascriptreact",
    "kt": "kotlin", "php": "php", "py": "python", "rb": "ruby", "rs": "rust", "scala": "scala", "swift": "swift",
    "ts": "typescript", "tsx": "typescriptreact",
}  # fmt: skip


def test_the_server_is_attached_to_files_of_all_languages(neovim: Neovim) -> None:
    for ending in LANGUAGES:
        (neovim.home.project / f"solution.{ending}").write_text("\n")
    neovim.open(neovim.home.file)
    neovim.hints(2)
    attached = "return { vim.bo.filetype, #vim.lsp.get_clients({ bufnr = 0, name = 'rlm_lsp' }) }"
    for ending, language in LANGUAGES.items():
        neovim.edit(f"solution.{ending}")
        neovim.returns(attached, [language, 1])


def test_a_program_has_a_code_lens_which_explains_it(neovim: Neovim, picture: Path) -> None:
    is_010 = neovim.editor is get_editors.NEOVIM_010
    neovim.configure(neovim.init, "code lenses for 0.11" if is_010 else "code lenses", package=False)
    program = neovim.home.project / "solution.py"
    program.write_text((REPOSITORY / "examples" / "solution.py").read_text())
    neovim.open(program)
    neovim.terminal.shows("latency ", "peak memory ")
    screen = neovim.terminal.text()
    [lens] = [number for number, line in enumerate(screen.splitlines()) if "peak memory " in line]
    [name] = [number for number, line in enumerate(screen.splitlines()) if "class Solution:" in line]
    assert lens == (name if is_010 else name - 1)
    neovim.terminal.picture(picture)
    neovim.command("4")
    neovim.command("lua vim.lsp.codelens.run()")
    neovim.terminal.shows("depends on", "| line | ratio | statement")


@pytest.mark.parametrize("columns", [120, 200])
def test_the_text_of_a_diagnostic_is_right_of_the_hint(home: Home, picture: Path, columns: int) -> None:
    terminal = Terminal(columns=columns)
    try:
        neovim = Neovim(get_editors.NEOVIM_012, home, terminal)
        neovim.configure("init.lua", "virtual text on the right")
        neovim.open(home.file)
        label = neovim.hints(2)[5]
        screen = terminal.shows(f"def large(n): {label}", "peak memory of large is")
        terminal.picture(picture)
        [line] = [line for line in screen.splitlines() if "def large" in line]
        # Cut at the edge, where a space may be.
        assert len(line.rstrip()) in (columns - 1, columns)
    finally:
        terminal.close()


@pytest.mark.parametrize("name", NEOVIMS)
def test_the_first_notice_waits_for_no_key(home: Home, terminal: Terminal, picture: Path, name: str) -> None:
    neovim = Neovim(NEOVIMS[name], replace(home, gets_notices=True), terminal)
    neovim.configure()
    neovim.open(home.file)
    labels = neovim.hints(2)
    screen = terminal.shows("The range after a signature is a prediction", f"def small(n): {labels[0]}")
    assert "Press ENTER" not in screen
    assert neovim.lua("return vim.api.nvim_win_get_height(vim.fn.win_getid(vim.fn.winnr('$')))") == 1
    # It covers no line of the file, and stays while one reads.
    assert all(line in screen for line in SOURCE.splitlines())
    terminal.picture(picture)
    terminal.keys("j")
    terminal.keys("i")
    terminal.shows("-- INSERT --")
    terminal.hides("The range after a signature")


@pytest.mark.parametrize("name", NEOVIMS)
def test_the_first_notice_does_not_keep_neovim_from_quitting(home: Home, terminal: Terminal, name: str) -> None:
    neovim = Neovim(NEOVIMS[name], replace(home, gets_notices=True), terminal)
    neovim.configure()
    neovim.open(home.file)
    terminal.shows("The range after a signature is a prediction", "closes with the first edit")
    neovim.command("quit")
    terminal.shows("Pane is dead")


def test_it_works_without_the_folder_too(home: Home, terminal: Terminal) -> None:
    neovim = Neovim(get_editors.NEOVIM_012, home, terminal)
    neovim.configure("init.lua alone", package=False)
    neovim.open(home.file)
    neovim.hints(2)
    neovim.diagnostics(1)


def test_the_help_is_found(neovim: Neovim) -> None:
    neovim.open(neovim.home.file)
    neovim.command("helptags ALL")
    for topic in ("rlm_lsp", ":RlmLspToggle", "rlm_lsp-0.10"):
        neovim.command(f"help {topic}")
        neovim.wait(lambda: neovim.lua("return vim.fn.expand('%:t')") == "rlm_lsp.txt", f"no help about {topic}")
        neovim.command("helpclose")


def test_all_snippets_of_the_page_are_tested() -> None:
    assert set(snippets(PAGE)) == {
        "install",
        "init.lua",
        "init.lua alone",
        "settings",
        "diagnostics",
        "virtual text on the right",
        "code lenses",
        "code lenses for 0.11",
        "init.lua for 0.10",
    }
