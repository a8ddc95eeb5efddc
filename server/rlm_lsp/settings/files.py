"""Configuration files -> sources of settings: those of a workspace folder and the user's own.

A folder has `rlm-lsp.toml` or a table `[tool.rlm-lsp]` in `pyproject.toml`; the user has `config.toml` in the
configuration folder of this system. A file that cannot be used costs one line.
"""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from .resolve import OF_WORKSPACE, Problem, Source

OWN_FILE, SHARED_FILE = "rlm-lsp.toml", "pyproject.toml"
FILE_NAMES = (OWN_FILE, SHARED_FILE)
_TABLE = b"rlm-lsp"
MAX_BYTES = 1024 * 1024
_Tell = Callable[[Problem], None]


def user_file() -> Path:
    """The user's own configuration file."""
    return user_config_path("rlm-lsp", appauthor=False) / "config.toml"


def user_source(path: Path | None = None) -> tuple[Source, list[Problem]]:
    """The settings of the user's own file; empty when there is none."""
    path = path or user_file()
    problems: list[Problem] = []
    return Source(str(path), _read_toml(path, problems.append)), problems


def folder_source(folder: Path, *, first: bool = True) -> tuple[Source, list[Problem]]:
    """The settings of a workspace folder's file; empty when it has none.

    Only the ``first`` folder of a session may set what holds for the whole session.
    """
    problems: list[Problem] = []
    own, shared = folder / OWN_FILE, folder / SHARED_FILE
    table = _tool_table(shared, problems.append)
    source = Source(str(shared), table, OF_WORKSPACE if first else frozenset({"folder"}))
    if own.exists():
        if table is not None:
            problems.append(Problem(str(shared), f"[tool.rlm-lsp] is not read beside {OWN_FILE}; keep one of the two"))
        source = replace(source, place=str(own), values=_read_toml(own, problems.append))
    return source, problems


def project_folder(path: Path) -> Path | None:
    """The nearest folder at or above ``path`` that holds a configuration, for use without an editor's workspace."""
    path = path.resolve()
    for folder in (path, *path.parents):
        if (folder / OWN_FILE).is_file() or _tool_table(folder / SHARED_FILE, lambda problem: None) is not None:
            return folder
    return None


def _tool_table(path: Path, tell: _Tell) -> Any:
    data = _read_toml(path, tell)
    tool = data.get("tool") if data is not None else None
    return tool.get("rlm-lsp") if isinstance(tool, dict) else None


def _read_toml(path: Path, tell: _Tell) -> dict[str, Any] | None:
    try:
        # Reading a pipe or a device would block.
        if not stat.S_ISREG(path.stat().st_mode):
            tell(Problem(str(path), "is not a regular file; its settings are not read"))
            return None
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            tell(Problem(str(path), f"is over {MAX_BYTES // 2**20} MiB; its settings are not read"))
            return None
        if path.name == SHARED_FILE and _TABLE not in data:
            # Most files of this name have nothing to do with us: what is wrong in them is for others to tell.
            return None
        return tomllib.loads(data.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        tell(Problem(str(path), f"cannot be read ({error.strerror}); check its permissions"))
    except UnicodeDecodeError:
        tell(Problem(str(path), "is not valid UTF-8; its settings are not read"))
    except tomllib.TOMLDecodeError as error:
        tell(Problem(str(path), f"is no valid TOML ({' '.join(str(error).split())}); its settings are not read"))
    except RecursionError:
        tell(Problem(str(path), "is nested too deeply; its settings are not read"))
    return None
