"""A real Helix in a terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.editors import get_editors
from tests.editors.conftest import Home
from tests.editors.snippets import snippets
from tests.editors.terminal import Terminal

PAGE = "editors/helix.md"
Open = Callable[..., Terminal]


@pytest.fixture
def helix(home: Home, terminal: Terminal) -> Open:
    """Starts Helix with the project's file, configured with snippets of the documentation."""

    def open_(*languages: str) -> Terminal:
        assert get_editors.HELIX.is_ready, get_editors.missing([get_editors.HELIX])
        known = snippets(PAGE)
        folder = home.folder / ".config" / "helix"
        folder.mkdir(parents=True)
        (folder / "languages.toml").write_text("\n".join(known[title] for title in languages or ("languages.toml",)))
        (folder / "config.toml").write_text(known["config.toml"])
        editor = get_editors.HELIX
        env = home.env | {"HELIX_RUNTIME": str(editor.root / "usr/lib/hx/runtime")}
        terminal.start([str(editor.program), str(home.file)], home.project, env)
        return terminal

    return open_
