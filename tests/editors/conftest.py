"""What all editors are tested with: a home without settings, a project, the server on PATH, and a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .terminal import Terminal

# tests/conftest.py hides the user's cache.
os.environ.setdefault("EDITORS_CACHE", str(Path.home() / ".cache" / "rlm-lsp-editors"))

REPOSITORY = Path(__file__).parents[2]
CAPABILITIES = REPOSITORY / "tests" / "lsp" / "capabilities"
PICTURES = REPOSITORY / "build" / "editors"
# Runs over its budget whatever the model says: a list of so many takes more than a byte.
SOURCE = """def small(n):
    return n + 1


# rlm: memory < 1 B
def large(n):
    return [sorted(range(n), key=lambda x: -x) for _ in range(n * n)]
"""


@dataclass(frozen=True)
class Home:
    """A user's folders, and what an editor said of itself when it started the server."""

    folder: Path
    project: Path
    recorded: Path
    gets_notices: bool = False

    @property
    def env(self) -> dict[str, str]:
        """The environment of this user, who has ``rlm-lsp`` on PATH."""
        found = {"HOME": str(self.folder), "PATH": f"{self.folder / 'bin'}:{os.defpath}"}
        return found if self.gets_notices else found | {"CI": "true"}

    @property
    def file(self) -> Path:
        """The Python file of the project."""
        return self.project / "work.py"

    def said(self) -> dict[str, Any]:
        """The client's name and capabilities."""
        said: dict[str, Any] = json.loads(self.recorded.read_text())
        return said

    def check_capabilities(self, name: str) -> None:
        """What the editor said is what the server's tests use for it; with ``RECORD_CAPABILITIES`` set, keep it."""
        file = CAPABILITIES / f"{name}.json"
        if os.environ.get("RECORD_CAPABILITIES"):
            file.write_text(self.recorded.read_text())
        known = json.loads(file.read_text())
        assert self.said()["capabilities"] == known["capabilities"], f"{file}: to renew it, set RECORD_CAPABILITIES=1"

    def hide_server(self) -> None:
        """Take ``rlm-lsp`` off PATH."""
        (self.folder / "bin" / "rlm-lsp").unlink()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A new user with a small project; the server is the one of this checkout, recorded."""
    return new_home(tmp_path)


def new_home(folder: Path) -> Home:
    """Make the folders of a user."""
    made = Home(folder / "home", folder / "project", folder / "initialize.json")
    (made.folder / "bin").mkdir(parents=True)
    made.project.mkdir()
    made.file.write_text(SOURCE)
    (made.project / "rlm-lsp.toml").write_text('debounce-ms = 20\nhints-shown = "all"\n')
    server = made.folder / "bin" / "rlm-lsp"
    path = os.pathsep.join(str(REPOSITORY / name) for name in ("model_core", "server"))
    recorder = Path(__file__).with_name("record_capabilities.py")
    server.write_text(
        f'#!/bin/sh\nPYTHONPATH={path} OMP_NUM_THREADS=1 exec {sys.executable} {recorder} {made.recorded} "$@"\n'
    )
    server.chmod(0o755)
    return made


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal that ends with the test."""
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Path:
    """The file for the picture of a test."""
    name = request.node.name.removeprefix("test_").replace("[", "-").rstrip("]")
    return PICTURES / request.path.parent.name / f"{name}.png"
