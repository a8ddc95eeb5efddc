"""Configuration files -> sources of settings: those of a workspace folder and the user's own.

A folder has `rlm-lsp.toml` or a table `[tool.rlm-lsp]` in `pyproject.toml`; the user has `config.toml` in the
configuration folder of this system and, beside it, `workspaces.json`: what `rlm-lsp model use` chose for a workspace.
A file that cannot be used costs one line.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from platformdirs import user_config_path
from rlm_core import DataError

from .resolve import OF_WORKSPACE, Problem, Source

OWN_FILE, SHARED_FILE = "rlm-lsp.toml", "pyproject.toml"
FILE_NAMES = (OWN_FILE, SHARED_FILE)
WORKSPACES = "workspaces.json"
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


def workspace_source(folder: Path, user: Path | None = None) -> tuple[Source, list[Problem]]:
    """The user's own settings for a workspace folder, or for the nearest folder above it that has any.

    They are a JSON object of folders and settings beside the user's file, ``user``.
    """
    path = (user or user_file()).with_name(WORKSPACES)
    problems: list[Problem] = []
    known = _read_workspaces(path, problems.append)
    chosen = next((known[str(at)] for at in (folder, *folder.parents) if str(at) in known), None)
    return Source(str(path), chosen), problems


def use_in_workspace(folder: Path, key: str, value: str) -> Path:
    """Set a setting for a workspace folder in the user's own file, which is replaced as a whole; the file.

    Raises:
        DataError: the file is there and holds something else, or cannot be written.
    """
    path = user_file().with_name(WORKSPACES)
    problems: list[Problem] = []
    known = _read_workspaces(path, problems.append)
    if problems:
        raise DataError(f"{problems[0]}; mend or remove it")
    before = known.get(str(folder))
    known[str(folder)] = {**(before if isinstance(before, dict) else {}), key: value}
    _write(path, json.dumps(known, indent=2, ensure_ascii=False) + "\n")
    return path


def use_everywhere(key: str, value: str) -> Path:
    """Set a setting in the user's ``config.toml``, whose other lines stay as they are; the file.

    Raises:
        DataError: the file is no TOML, or cannot be written.
    """
    path = user_file()
    problems: list[Problem] = []
    before = _read_toml(path, problems.append) or {}
    if problems:
        raise DataError(f"{problems[0]}; mend it first")
    text = path.read_text(encoding="utf-8-sig") if path.is_file() else ""
    head = re.search(r"^\s*\[", text, re.MULTILINE)
    top, tables = (text[: head.start()], text[head.start() :]) if head else (text, "")
    # A JSON string is a TOML string.
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    top, count = re.subn(rf"^[ \t]*{key}[ \t]*=.*$", lambda found: line, top, count=1, flags=re.MULTILINE)
    text = (top if count else f"{line}\n{top}") + tables
    try:
        after = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        after = {}
    if after != {**before, key: value}:
        raise DataError(f"{path}: `{key}` cannot be set without changing other lines; write {line} into it by hand")
    _write(path, text)
    return path


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise DataError(f"{path}: cannot be written ({error.strerror}); check its permissions") from None


def _read_workspaces(path: Path, tell: _Tell) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(path.stat().st_mode) or path.stat().st_size > MAX_BYTES:
            tell(Problem(str(path), f"is no regular file of up to {MAX_BYTES // 2**20} MiB; its settings are not read"))
            return {}
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        tell(Problem(str(path), f"cannot be read ({error.strerror}); check its permissions"))
        return {}
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        tell(Problem(str(path), f"is no valid JSON ({reason}); its settings are not read"))
        return {}
    if not isinstance(found, dict):
        tell(Problem(str(path), "must be an object of folders and settings; its settings are not read"))
        return {}
    return found


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
