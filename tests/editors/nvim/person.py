"""A person's way through public projects in Neovim 0.12, as pictures to be looked at.

``python -m tests.editors.nvim.person FOLDER [PROJECT...]`` writes ``FOLDER/nvim-PROJECT-STEP.png``: the hover, the
explanation, an edit that makes a function expensive, a budget and its finding, the fix.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from tests.editors import get_editors
from tests.editors.conftest import new_home
from tests.editors.terminal import Terminal
from tests.editors.vscode import projects

from .conftest import Neovim


@dataclass(frozen=True)
class Way:
    """A file, a function in it, an edit that makes it expensive (an Ex command), and a budget that it then exceeds.

    So do the functions of the file that call it: ``findings`` in all.
    """

    file: str
    function: str
    edit: str
    budget: str
    findings: int = 1


WAYS = {
    "httpx": Way(
        "httpx/_urlparse.py",
        "percent_encoded",
        "/^    NON_ESCAPED_CHARS =/put ='    TABLE = {chr(code): PERCENT(chr(code)) for code in range(0xD800)}'",
        "latency < 5 ms",
    ),
    "toolz": Way(
        "toolz/itertoolz.py", "isdistinct", "/^        seen = set()/s/set()/set(range(1_000_003))/", "memory < 1 MiB"
    ),
    "rich": Way(
        "rich/control.py",
        "strip_control_codes",
        "/^    return text.translate(_translate/s/_translate_table/{c: None for c in range(0x110000)}/",
        "latency < 1 ms",
    ),
    "petl": Way(
        "petl/util/counting.py",
        "stringpatterncounter",
        "/^    counter = Counter()/put! ='    trans = {code: chr(code).lower() for code in range(0x110000)}'",
        "latency < 10 ms",
        findings=2,
    ),
    "agate": Way(
        "agate/utils.py",
        "letter_name",
        "/^    return letters.index/s/return .*/return [letters[index % count] * n for n in range(4_096)][index]/",
        "memory < 1 MiB",
    ),
}


_HINTS = "return vim.tbl_map(function(hint) return hint.inlay_hint.label end, vim.lsp.inlay_hint.get({ bufnr = 0 }))"


def walk(name: str, project: Path, pictures: Path, home_folder: Path) -> None:
    """One project, from the first start to a budget that is kept again."""
    way = WAYS[name]
    terminal = Terminal(columns=140, rows=40)
    home = replace(new_home(home_folder), project=project, gets_notices=True)

    def picture(step: str) -> None:
        terminal.picture(pictures / f"nvim-{name}-{step}.png")
        print(f"    nvim-{name}-{step}.png", flush=True)

    try:
        neovim = Neovim(get_editors.NEOVIM_012, home, terminal)
        neovim.configure("init.lua", "virtual text on the right", "code lenses")
        neovim.open(project / way.file)
        neovim.command(f"/def {way.function}")
        neovim.command("normal zt5k5jw")
        neovim.wait(lambda: neovim.lua("return #vim.lsp.get_clients({ name = 'rlm_lsp' })") == 1, "no server")
        neovim.terminal.keys("K")
        terminal.shows(f"{way.function}: one call")
        picture("hover")
        terminal.keys("Escape")
        neovim.command(
            "lua vim.lsp.buf.code_action({apply=true, filter=function(a) return a.title:match('^Explain') end})"
        )
        terminal.shows("| line ")
        picture("explanation")
        neovim.command("fclose")
        cheap = neovim.lua(_HINTS)
        neovim.command(way.edit)
        neovim.command(f"/def {way.function}")
        # Its text leaves the cost of its inputs open, so that the cost has no mark against HEAD.
        neovim.wait(lambda: neovim.lua(_HINTS) not in ([], cheap), "no hint of the new cost")
        picture("edit")
        (project / "rlm-lsp.toml").write_text(f'[budgets]\n"{way.file}" = "{way.budget}"\n')
        neovim.command("split rlm-lsp.toml | edit | write | close")
        neovim.diagnostics(way.findings)
        terminal.shows("is predicted to exceed its budget")
        picture("finding")
        neovim.command("undo")
        neovim.diagnostics(0)
        terminal.hides("is predicted to exceed its budget")
        neovim.command(f"/def {way.function}")
        picture("fixed")
    finally:
        terminal.close()


def main(folder: Path, names: list[str]) -> None:
    """All projects, or those that are named."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        projects.write(Path(scratch) / "projects")
        for name in names or list(WAYS):
            print(f"==> {name}", flush=True)
            walk(name, Path(scratch) / "projects" / name, folder, Path(scratch) / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
