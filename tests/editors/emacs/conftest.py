"""A real Emacs in a terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.editors import get_editors
from tests.editors.conftest import Home
from tests.editors.snippets import snippets
from tests.editors.terminal import Terminal

PAGE = "editors/emacs.md"
Open = Callable[..., Terminal]


@pytest.fixture
def emacs(home: Home, terminal: Terminal) -> Open:
    """Starts Emacs with the project's file, configured with snippets of the documentation."""

    def open_(*titles: str) -> Terminal:
        assert get_editors.EMACS.is_ready, get_editors.missing([get_editors.EMACS])
        known = snippets(PAGE)
        folder = home.folder / ".emacs.d"
        folder.mkdir(parents=True)
        # Nothing is compiled behind the user's back, which would take minutes of the processor.
        calm = "(setq inhibit-startup-screen t native-comp-jit-compilation nil)\n"
        (folder / "init.el").write_text(calm + "\n".join(known[title] for title in titles or ("init.el",)))
        root = get_editors.EMACS.root
        share, own = next(root.glob("usr/share/emacs/[0-9]*")), next(root.glob("usr/libexec/emacs/*/*-linux-gnu"))
        places = {"LOADPATH": share / "lisp", "DATA": share / "etc", "DOC": share / "etc", "PATH": own}
        env = home.env | {f"EMACS{name}": str(path) for name, path in places.items()}
        [dump] = own.glob("*.pdmp")
        terminal.start([str(get_editors.EMACS.program), "--dump-file", str(dump), str(home.file)], home.project, env)
        return terminal

    return open_
