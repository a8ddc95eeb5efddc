"""Real editors for the tests: Neovim 0.12 and 0.10, Helix, Emacs and tmux, unpacked from Debian's packages.

``python tests/editors/get_editors.py [--check] [NAME...]`` needs Debian, but no root: packages of other releases are
downloaded with a separate apt state and unpacked into a cache, each program with its own C library. What is there
stays. With ``--check`` nothing is downloaded: a line says what is not there, and the status is 1.
The folder is ``$EDITORS_CACHE``, else ``rlm-lsp-editors`` in the user's cache.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class CannotGetError(Exception):
    """An editor cannot be had here: what, and what to do."""


@dataclass(frozen=True)
class Editor:
    """Packages of a Debian release, and the programs in them that are to run."""

    name: str
    suites: tuple[str, ...]
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    version: tuple[str, ...] = ("--version",)

    @property
    def root(self) -> Path:
        """Where its packages are unpacked."""
        return folder() / self.name / "root"

    @property
    def program(self) -> Path:
        """What to start."""
        return self.root / self.programs[0]

    @property
    def is_ready(self) -> bool:
        """Whether it has been got, by this recipe."""
        note = self.root.parent / "ready"
        return note.is_file() and note.read_text() == repr(self)


# Serves the others: tmux and a font to show them, patchelf to make them run.
TERMINAL = Editor(
    "terminal", ("trixie",), ("tmux", "patchelf", "ncurses-base", "fonts-dejavu-core"), ("usr/bin/tmux",), ("-V",)
)
NEOVIM_012 = Editor("neovim-0.12", ("forky",), ("neovim",), ("usr/bin/nvim",))
NEOVIM_010 = Editor("neovim-0.10", ("trixie",), ("neovim",), ("usr/bin/nvim",))
HELIX = Editor("helix", ("forky",), ("hx",), ("usr/bin/hx",))
EMACS = Editor("emacs", ("bookworm-backports", "bookworm"), ("emacs-nox",), ("usr/bin/emacs-nox",))
EDITORS = (TERMINAL, NEOVIM_012, NEOVIM_010, HELIX, EMACS)


def folder() -> Path:
    """Where the editors are kept."""
    named = os.environ.get("EDITORS_CACHE")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(cache) / "rlm-lsp-editors"


def get(editor: Editor) -> None:
    """Download and unpack an editor, if it is not there; two at once wait for each other.

    Raises:
        CannotGetError: when the tools are missing, or a package cannot be had.
    """
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not editor.is_ready:
            _get(editor)


def missing(editors: Sequence[Editor]) -> str:
    """A line that says which of the editors are not there; empty when all are."""
    names = [editor.name for editor in editors if not editor.is_ready]
    return f"{', '.join(names)} not found in {folder()}; `make test-editors` puts them there" if names else ""


def version(editor: Editor) -> str:
    """The first line that the program says of its version."""
    return run([str(editor.program), *editor.version]).partition("\n")[0]


def run(command: Sequence[str], cwd: Path | None = None) -> str:
    """What a command that must succeed prints on stdout."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CannotGetError(f"{command[0]}: not found; the editors come from Debian's packages") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise CannotGetError(f"{' '.join([*command[:1], *command[-2:]])}: {lines[-1] if lines else done.returncode}")
    return done.stdout


def _get(editor: Editor) -> None:
    top = editor.root.parent
    shutil.rmtree(top, ignore_errors=True)
    apt = _apt(editor, top / "apt")
    run([*apt, "update"])
    run([*apt, "install", "--yes", "--download-only", "--no-install-recommends", *editor.packages])
    for package in sorted((top / "apt" / "cache" / "archives").glob("*.deb")):
        run(["dpkg", "-x", str(package), str(editor.root)])
    shutil.rmtree(top / "apt")
    for program in editor.programs:
        _point_at_its_libraries(editor.root, editor.root / program)
    (top / "ready").write_text(repr(editor))


def _apt(editor: Editor, state: Path) -> list[str]:
    """apt-get for another release, as on a machine where nothing is installed: the C library comes too."""
    for name in ("lists/partial", "cache/archives/partial", "preferences.d"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    mirror, keyring = _source()
    lines = [f"deb [signed-by={keyring}] {mirror} {suite} main" for suite in editor.suites]
    (state / "sources.list").write_text("\n".join(lines) + "\n")
    # A release with backports provides only those; their dependencies come from the other release.
    (state / "preferences").write_text(f"Package: *\nPin: release n={editor.suites[0]}\nPin-Priority: 900\n")
    options = {
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "Dir::Etc::SourceList": state / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": state / "preferences",
        "Dir::Etc::PreferencesParts": state / "preferences.d",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
    }
    return ["apt-get", "--quiet", *(f"-o{name}={value}" for name, value in options.items())]


def _source() -> tuple[str, str]:
    """The mirror and the keyring that this machine takes Debian's packages from."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.*"))]
    text = "\n".join(file.read_text() for file in files if file.suffix in (".list", ".sources") and file.is_file())
    mirror = re.search(r"^(?:URIs:|deb(?: \[.*\])?) *(https?://\S+/debian)/?(?:\s|$)", text, re.MULTILINE)
    if mirror is None:
        raise CannotGetError("no Debian mirror in /etc/apt; the editors are unpacked from Debian's packages")
    return mirror[1], KEYRING


def _libraries(root: Path) -> tuple[Path, list[Path]]:
    """The loader of the C library that was unpacked, and the folders with its libraries."""
    [loader] = {
        path.resolve() for name in ("lib", "usr/lib") for path in (root / name).glob("*-linux-*/ld-linux*.so.*")
    }
    return loader, [path for name in ("usr/lib", "lib") if (path := root / name / loader.parent.name).is_dir()]


def _point_at_its_libraries(root: Path, program: Path) -> None:
    """Let a program run with the C library it comes with, whatever the machine has."""
    loader, folders = _libraries(TERMINAL.root)
    patchelf = [str(loader), "--library-path", _path(folders), str(TERMINAL.root / "usr/bin/patchelf")]
    loader, folders = _libraries(root)
    wanted = ["--set-interpreter", str(loader), "--force-rpath", "--set-rpath", _path(folders)]
    run([*patchelf, *wanted, str(program)])


def _path(folders: Sequence[Path]) -> str:
    return ":".join(map(str, folders))


def main(names: Sequence[str]) -> int:
    """Get all editors, or those that are named, and say what is there."""
    check, names = "--check" in names, [name for name in names if name != "--check"]
    known = {editor.name: editor for editor in EDITORS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"{unknown[0]}: no such editor; there are {', '.join(known)}", file=sys.stderr)
        return 2
    wanted = [TERMINAL, *(known[name] for name in names if name != TERMINAL.name)] if names else list(EDITORS)
    if check:
        problem = missing(wanted)
        print(problem or "all are there")
        return 1 if problem else 0
    try:
        for editor in wanted:
            get(editor)
            print(f"{editor.name}: {version(editor)} ({editor.program})")
    except CannotGetError as error:
        print(f"get_editors: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
