"""A real Neovim in a terminal, driven by its keys and asked over its socket."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.editors import get_editors
from tests.editors.conftest import REPOSITORY, Home
from tests.editors.snippets import snippets
from tests.editors.terminal import PATIENCE, Terminal, wait

PAGE = "editors/neovim.md"
NEOVIMS = {editor.name: editor for editor in (get_editors.NEOVIM_012, get_editors.NEOVIM_010)}


class Neovim:
    """A Neovim with a separate configuration, in a terminal."""

    def __init__(self, editor: get_editors.Editor, home: Home, terminal: Terminal) -> None:
        assert editor.is_ready, get_editors.missing([editor])
        self.editor, self.home, self.terminal = editor, home, terminal
        root = editor.root
        # Newest first; the parsers for Markdown in hovers are outside the runtime folder.
        runtime = f"set rtp+={root / 'usr/lib/nvim'}"
        self._command = [str(editor.program), "--cmd", runtime, "--cmd", "let g:loaded_python3_provider = 0"]
        share = root / "usr/share/nvim"
        self._env = home.env | {"VIM": str(share), "VIMRUNTIME": str(share / "runtime")}

    @property
    def init(self) -> str:
        """The title of the snippet that switches rlm-lsp on in this version."""
        return "init.lua for 0.10" if self.editor is get_editors.NEOVIM_010 else "init.lua"

    def configure(self, *snippet_titles: str, package: bool = True) -> None:
        """Do what the documentation says: link the folder, and write these snippets to ``init.lua``."""
        known = snippets(PAGE)
        if package:
            subprocess.run(["sh", "-ec", known["install"]], cwd=REPOSITORY, env=self._env, check=True)
        config = self.home.folder / ".config" / "nvim"
        config.mkdir(parents=True, exist_ok=True)
        (config / "init.lua").write_text("\n".join(known[title] for title in snippet_titles or (self.init,)))

    def open(self, file: Path) -> None:
        """Start with a file."""
        self.terminal.start(
            [*self._command, "--listen", str(self.terminal.socket), str(file)], self.home.project, self._env
        )
        wait(self.terminal.socket.exists, lambda: f"Neovim does not start:\n{self.terminal.text()}")

    def lua(self, code: str) -> Any:
        """What Lua code returns inside Neovim."""
        wrapped = f"vim.json.encode({{ (function() {code} end)() }})"
        expression = f"luaeval('{wrapped.replace(chr(39), chr(39) * 2)}')"
        command = [str(self.editor.program), "--server", str(self.terminal.socket), "--remote-expr", expression]
        try:
            done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=True, timeout=PATIENCE)
        except subprocess.SubprocessError as error:
            # It waits where Neovim waits for a key.
            raise AssertionError(f"{code}: {error}; the screen:\n{self.terminal.text()}") from error
        # Neovim 0.10 answers on stderr.
        found = json.loads(done.stdout or done.stderr)
        return found[0] if found else None

    def command(self, text: str) -> None:
        """Type an Ex command."""
        self.terminal.keys("Escape")
        self.terminal.type(f":{text}")
        self.terminal.keys("Enter")

    def hints(self, count: int) -> dict[int, str]:
        """The labels of the hints by line, once there are so many."""
        code = "local f = {} for _, h in ipairs(vim.lsp.inlay_hint.get({ bufnr = 0 })) do"
        code += " table.insert(f, { h.inlay_hint.position.line, h.inlay_hint.label }) end return f"
        found: list[dict[int, str]] = []

        def there() -> bool:
            found.append(dict(self.lua(code)))
            return len(found[-1]) == count

        self.wait(there, f"no {count} hints")
        return found[-1]

    def diagnostics(self, count: int) -> list[dict[str, Any]]:
        """The diagnostics of the buffer, once there are so many."""
        found: list[list[dict[str, Any]]] = []

        def there() -> bool:
            found.append(self.lua("return vim.diagnostic.get(0)"))
            return len(found[-1]) == count

        self.wait(there, f"no {count} diagnostics")
        return found[-1]

    def edit(self, name: str) -> None:
        """Open another file of the project."""
        self.command(f"edit {name}")
        self.returns("return vim.fn.expand('%:t')", name)

    def returns(self, code: str, wanted: Any) -> None:
        """Wait until Lua code returns something."""
        self.wait(lambda: self.lua(code) == wanted, f"`{code}` does not return {wanted!r}")

    def wait(self, found: Callable[[], Any], what: str) -> Any:
        """Wait for something, and show the screen if it does not come."""
        return wait(found, lambda: f"{what}; the screen:\n{self.terminal.text()}")


@pytest.fixture(params=list(NEOVIMS))
def neovim(request: pytest.FixtureRequest, home: Home, terminal: Terminal) -> Neovim:
    """Each Neovim, set up as the documentation says."""
    made = Neovim(NEOVIMS[request.param], home, terminal)
    made.configure()
    return made
