"""The command that measures the functions of a file."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_PROJECT = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", ".git")


def command_for(path: Path | None) -> str | None:
    """The command that measures the package of a file, or a package by its folder, with its project's tests.

    None for a file outside a package, and where a name might not be one word for a shell: people paste the
    command into a terminal.
    """
    package = path if path is None or path.is_dir() else path.parent
    if package is None or not (package / "__init__.py").is_file():
        return None
    while (package.parent / "__init__.py").is_file():
        package = package.parent
    folder = _quoted(str(project_of(package)))
    if folder is None or not package.name.isidentifier():
        return None
    return f"cd {folder} && rlm-lsp measure tests --package {package.name}"


def project_of(path: Path) -> Path:
    """The innermost folder around a file or package that has files of a project; its own folder where none has."""
    around = path.parents
    return next((folder for folder in around if any((folder / mark).exists() for mark in _PROJECT)), around[0])


def _quoted(word: str, *, windows: bool = os.name == "nt") -> str | None:
    """A word for the shell, None if it cannot be one: on Windows it has to be one for ``cmd`` and for PowerShell."""
    if not word.isprintable() or (windows and any(sign in word for sign in '"%!$`')):
        return None
    return f'"{word}"' if windows else shlex.quote(word)
