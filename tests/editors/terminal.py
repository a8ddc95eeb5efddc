"""A real terminal (tmux) in which an editor runs: keys go in, the screen comes out as text or as a picture."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from . import get_editors, picture

PATIENCE = 60.0
_PAUSE = 0.05
_Found = TypeVar("_Found")


class Terminal:
    """One tmux server with one window."""

    def __init__(self, columns: int = 120, rows: int = 36) -> None:
        missing = get_editors.missing([get_editors.TERMINAL])
        assert not missing, missing
        # Not pytest's folder: the path of a socket has at most about 100 characters.
        self._folder = tempfile.TemporaryDirectory(prefix="rlm-lsp-")
        self._socket = Path(self._folder.name) / "tmux"
        self._size = (str(columns), str(rows))

    def start(self, command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        """Run a program in the window, with this environment and no other."""
        root = get_editors.TERMINAL.root
        terminfo = {"TERMINFO_DIRS": str(root / "usr/share/terminfo"), "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}
        variables = [f"{name}={value}" for name, value in ({**env, **terminfo}).items()]
        (columns, rows), settings = self._size, self._socket.with_suffix(".conf")
        settings.write_text(
            "set -g default-terminal tmux-256color\nset -ga terminal-features ',*:RGB'\nset -g remain-on-exit on\n"
            "set -g status off\nset -s escape-time 0\n"
        )
        self._tmux("-f", str(settings), "new-session", "-d", "-x", columns, "-y", rows, "-c", str(cwd),
                   "env", "-i", *variables, "TERM=tmux-256color", "COLORTERM=truecolor", *command)  # fmt: skip

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names, like ``Escape`` and ``C-c``."""
        self._tmux("send-keys", *names)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def text(self) -> str:
        """The text on the screen."""
        return self._tmux("capture-pane", "-p")

    def wait(self, found: Callable[[str], _Found], what: str) -> _Found:
        """What ``found`` makes of the screen once that is true."""
        return wait(lambda: found(self.text()), lambda: f"{what}; the screen:\n{self.text()}")

    def shows(self, *texts: str) -> str:
        """The screen once it shows all texts."""
        self.wait(lambda screen: all(text in screen for text in texts), f"{texts} are not shown")
        return self.text()

    def hides(self, text: str) -> None:
        """Wait until the screen no longer shows a text."""
        self.wait(lambda screen: text not in screen, f"{text!r} is still shown")

    def picture(self, file: Path) -> None:
        """Write the screen as a picture, and as text next to it."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".txt").write_text(self.text())
        picture.write(self._tmux("capture-pane", "-p", "-e", "-N"), file)

    def close(self) -> None:
        """End the window and what runs in it."""
        self._tmux("kill-server", check=False)
        self._folder.cleanup()

    @property
    def program(self) -> int:
        """The process that runs in the window."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    @property
    def socket(self) -> Path:
        """A path for the editor's own socket."""
        return self._socket.with_name("editor")

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        command = [str(get_editors.TERMINAL.program), "-S", str(self._socket), *arguments]
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", check=False, env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        )
        assert done.returncode == 0 or not check, f"{arguments[0]}: {done.stderr}"
        return done.stdout


def wait(found: Callable[[], _Found], what: Callable[[], str], patience: float = PATIENCE) -> _Found:
    """The first true result; fails with a description of what there was instead."""
    deadline = time.monotonic() + patience
    while not (result := found()):
        assert time.monotonic() < deadline, what()
        time.sleep(_PAUSE)
    return result
