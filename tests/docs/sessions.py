"""Runs the commands of a page one after another in a scratch folder, with only the base install."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_lsp.cli.options import EXTRAS

from tests.warm_server import warm_base

from .blocks import REPOSITORY, Block
from .outputs import NOTE

_BLOCKER = """\
import os, sys
for name in os.environ["TEST_WITHOUT"].split():
    sys.modules[name] = None
"""
_LIMIT = 60  # seconds a command


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit status and output of a command."""

    status: int
    stdout: tuple[str, ...]
    stderr: tuple[str, ...]

    def shown(self, before: Sequence[str]) -> tuple[str, ...]:
        """What a page shows: stdout, and stderr if the page shows it already or if there is no stdout."""
        with_notes = not self.stdout or any(line.startswith(NOTE) for line in before)
        return (*self.stdout, *self.stderr) if with_notes else self.stdout


class Session:
    """A folder with the examples under git, in which commands run as for a reader."""

    def __init__(self, folder: Path) -> None:
        self._home, self.work = folder / "home", folder / "work"
        programs, blocker = folder / "bin", folder / "blocker"
        for made in (self._home, programs, blocker):
            made.mkdir()
        shutil.copytree(REPOSITORY / "examples", self.work / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        (blocker / "sitecustomize.py").write_text(_BLOCKER)
        for name, start in (("rlm-lsp", warm_base()), ("python", (sys.executable,))):
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$@"\n')
            (programs / name).chmod(0o755)
        paths = [blocker, REPOSITORY / "model_core", REPOSITORY / "server"]
        kept = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "TMPDIR") if name in os.environ}
        self._environment = kept | {
            "HOME": str(self._home),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "80",
        }
        self.run("git init -q . && git config user.name reader && git config user.email reader@example.org")
        self.run("git add . && git commit -q -m start")

    def write(self, block: Block) -> None:
        """Write the file of a block with a title."""
        path = self.work / block.values["title"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def run(self, command: str, needs: str = "", program: str = "bash") -> Ended:
        """Run a command with only the extra packages that it needs."""
        without = [name for name in EXTRAS if name not in needs.split()]
        arguments = ["bash", "-eu", "-o", "pipefail", "-c", command] if program == "bash" else [program, "-c", command]
        done = subprocess.run(
            arguments,
            cwd=self.work,
            env={**self._environment, "TEST_WITHOUT": " ".join(without)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
        return Ended(done.returncode, self._lines(done.stdout), self._lines(done.stderr))

    def _lines(self, printed: bytes) -> tuple[str, ...]:
        """The output, with the paths of an example user."""
        text = printed.decode("utf-8", errors="replace")
        for folder, name in ((self.work, "/home/you/project"), (self._home, "/home/you")):
            text = text.replace(str(folder), name)
        return tuple(text.splitlines())
