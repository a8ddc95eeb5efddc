"""Configuration files -> sources of settings: those of a workspace folder and the user's own.

A folder has `rlm-lsp.toml` or a table `[tool.rlm-lsp]` in `pyproject.toml`. The user has `config.toml` in the system's
configuration folder and, next to it, `workspaces.json`: the choices of `rlm-lsp model use` by workspace. A file that
cannot be used is one problem, never an exception.

A session keeps all its sources and the settings of each workspace folder in a :class:`SettingsStore`. Files are read
only by :meth:`SettingsStore.read_files`; everything else is a look-up, so the event loop may ask for the settings of a
document at any time.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from platformdirs import user_config_path
from rlm_core import DataError
from rlm_core.files import atomic_write, read_regular

from rlm_lsp.sources import path_of_uri

from .model import Settings
from .resolve import (
    ALL_SCOPES,
    INVALID_SETTINGS,
    OF_WORKSPACE,
    PLOTS,
    SettingsProblem,
    SettingsSource,
    environment,
    resolve,
)

OWN_FILE, SHARED_FILE = "rlm-lsp.toml", "pyproject.toml"
FILE_NAMES = (OWN_FILE, SHARED_FILE)
WORKSPACES = "workspaces.json"
MAX_BYTES = 64 * 1024
_MAX_SHARED_BYTES = 1024 * 1024  # of a file that may be mostly about other tools
_MAX_DEPTH = 16
_MAX_INTEGER = 2**63  # the range that TOML demands; larger ones may be too long to print
_TOO_LARGE = "has an integer of more than 64 bits"
_TABLE = "rlm-lsp"
# A key of more than `_MAX_DEPTH` parts: parsing takes a time that grows with the square of their number, and more.
_PART = rb"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+"
_DEEP_KEY = re.compile(rb"(?<![\w-])" + _PART + rb"(?:\.[ \t]*+" + _PART + rb"){%d}" % _MAX_DEPTH)
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)\Z")
SECTION = "rlm-lsp"
OF_CLIENT = "workspace/configuration"
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file as it was read: the table with our settings, or why the file cannot be used.

    ``table`` is None if the file has no such table; ``error`` is the end of a sentence about the file, about its
    line ``error_line`` (0-based).
    """

    path: Path
    source: bytes = b""
    table: Any = None
    error: str | None = None
    error_line: int = 0

    @property
    def problems(self) -> list[SettingsProblem]:
        """The error as a problem of the settings."""
        return (
            [SettingsProblem(str(self.path), f"{self.error}; its settings are not read", line=self.error_line)]
            if self.error is not None
            else []
        )

    def line_of(self, setting: str) -> int:
        """The line (0-based) that sets a setting, or the header of its table; the first line where there is none."""
        section = r"tool\.rlm-lsp" if self.path.name == SHARED_FILE else ""
        name = re.escape(setting)
        header = rf"\[\s*{section}{re.escape('.') if section else ''}{name}\s*\]"
        sets = re.compile(rf"""\s*(?:["']?{name}["']?\s*[=.:]|{header})""")
        lines = self.source.decode("utf-8", errors="replace").splitlines()
        start = next((number for number, line in enumerate(lines) if re.match(rf"\s*\[\s*{section}", line)), 0)
        first = start if section else 0
        return next((number for number in range(first, len(lines)) if sets.match(lines[number])), first)


def user_file() -> Path:
    """The user's own configuration file."""
    return user_config_path("rlm-lsp", appauthor=False) / "config.toml"


def user_source(path: Path | None = None) -> tuple[SettingsSource, list[SettingsProblem]]:
    """The settings of the user's own file; empty when there is none."""
    path = path or user_file()
    config = read_config(path)
    return SettingsSource(str(path), config and config.table), config.problems if config is not None else []


def workspace_source(folder: Path, user: Path | None = None) -> tuple[SettingsSource, list[SettingsProblem]]:
    """The user's own settings for a workspace folder, or for the nearest folder above it that has any.

    They are a JSON object of folders and settings next to the user's file, ``user``.
    """
    path = (user or user_file()).with_name(WORKSPACES)
    config = _read_workspaces(path)
    chosen = next((config.table[str(at)] for at in (folder, *folder.parents) if str(at) in config.table), None)
    return SettingsSource(str(path), chosen), config.problems


def folder_source(folder: Path, *, first: bool = True) -> tuple[SettingsSource, list[SettingsProblem]]:
    """The settings of a workspace folder's file; empty when it has none.

    Only the ``first`` folder of a session may set what applies to the whole session.
    """
    config_file, pyproject = read_config(folder / OWN_FILE, folder), read_config(folder / SHARED_FILE, folder)
    problems = pyproject.problems if pyproject is not None else []
    if config_file is not None:
        if pyproject is not None and pyproject.table is not None:
            text = f"[tool.rlm-lsp] is ignored because of {OWN_FILE}; keep one of the two"
            problems.append(SettingsProblem(str(pyproject.path), text))
        problems += config_file.problems
    config = config_file or pyproject or ConfigFile(folder / SHARED_FILE)
    return SettingsSource(str(config.path), config.table, OF_WORKSPACE if first else frozenset({"folder"})), problems


def folder_config(folder: Path) -> ConfigFile | None:
    """The configuration file of a folder: `rlm-lsp.toml`, else a `pyproject.toml` that has our table."""
    config_file = read_config(folder / OWN_FILE, folder)
    if config_file is not None:
        return config_file
    pyproject = read_config(folder / SHARED_FILE, folder)
    return pyproject if pyproject is not None and (pyproject.table is not None or pyproject.error is not None) else None


def read_config(path: Path, root: Path | None = None) -> ConfigFile | None:
    """Read a TOML file, which with its links resolved is below ``root``, if given; None when there is none.

    A `pyproject.toml` that does not name us is not parsed: what is wrong in it is for other tools to report.
    """
    source, error = _read(path, root)
    if error is not None:
        return ConfigFile(path, error=error)
    if source is None:
        return None
    if path.name == SHARED_FILE and _TABLE.encode() not in source:
        return ConfigFile(path, source)
    if len(source) > MAX_BYTES:
        return ConfigFile(path, error=f"is over {MAX_BYTES // 2**10} KiB")
    if deep := _DEEP_KEY.search(source):
        line = source.count(b"\n", 0, deep.start())
        return ConfigFile(path, source, error=f"has a key of more than {_MAX_DEPTH} parts", error_line=line)
    try:
        data: Any = tomllib.loads(source.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return ConfigFile(path, source, error="is not valid UTF-8")
    except tomllib.TOMLDecodeError as invalid:
        reason = " ".join(str(invalid).split())
        at = _AT_LINE.search(reason)
        line = int(at[1]) - 1 if at else 0
        return ConfigFile(path, source, error=f"is not valid TOML: {reason}", error_line=line)
    except RecursionError:
        return ConfigFile(path, source, error="is nested too deeply")
    except ValueError:  # a decimal number of more digits than Python converts
        return ConfigFile(path, source, error=_TOO_LARGE)
    if not all(-_MAX_INTEGER <= value < _MAX_INTEGER for value in _integers(data)):
        return ConfigFile(path, source, error=_TOO_LARGE)
    if path.name == SHARED_FILE:
        tool = data.get("tool")
        data = tool.get(_TABLE) if isinstance(tool, dict) else None
    return ConfigFile(path, source, data)


def use_in_workspace(folder: Path, key: str, value: str) -> Path:
    """Set a setting for a workspace folder in the user's `workspaces.json`; the file.

    Raises:
        DataError: the file exists and has another content, or cannot be written.
    """
    config = _read_workspaces(user_file().with_name(WORKSPACES))
    if config.error is not None:
        raise DataError(f"{config.path}: {config.error}; fix or remove it")
    before = config.table.get(str(folder))
    settings = {**config.table, str(folder): {**(before if isinstance(before, dict) else {}), key: value}}
    return _write(config.path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def use_everywhere(key: str, value: str) -> Path:
    """Set a setting in the user's ``config.toml``, whose other lines stay as they are; the file.

    Raises:
        DataError: the file is not TOML, or cannot be written.
    """
    # Imported on use: the server, which imports this module, never writes TOML.
    import tomlkit

    config = read_config(user_file()) or ConfigFile(user_file())
    if config.error is not None:
        raise DataError(f"{config.path}: {config.error}; fix it first")
    document = tomlkit.parse(config.source.decode("utf-8-sig"))
    document[key] = value
    return _write(config.path, tomlkit.dumps(document))


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            partial.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); check its permissions") from None
    return path


def _read_workspaces(path: Path) -> ConfigFile:
    """The user's settings by folder; an empty table when there are none."""
    source, error = _read(path)
    settings: Any = {}
    if source is not None:
        try:
            settings = json.loads(source.decode("utf-8"))
        except RecursionError:
            error = "is nested too deeply"
        except ValueError as invalid:
            error = f"is not valid JSON: {' '.join(str(invalid).split())}"
    if not isinstance(settings, dict):
        settings, error = {}, "is not a JSON object of folders and settings"
    return ConfigFile(path, source or b"", settings, error)


def _integers(data: Any) -> Iterator[int]:
    """All integers in a document."""
    stack = [data]
    while stack:
        value = stack.pop()
        if isinstance(value, int):
            yield value
        elif isinstance(value, dict | list):
            stack += value.values() if isinstance(value, dict) else value


def _read(path: Path, root: Path | None = None) -> tuple[bytes | None, str | None]:
    """The bytes of a file, None when there is none; or why it cannot be read."""
    try:
        return read_regular(path, _MAX_SHARED_BYTES, root), None
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        return None, f"cannot be read ({error.strerror})"


@dataclass(frozen=True, slots=True)
class FileSources:
    """The sources on disk: the user's file, that of each workspace folder, the user's own for it, and the problems."""

    user: SettingsSource
    folders: Mapping[Path, SettingsSource]
    of_user: Mapping[Path, SettingsSource]
    problems: tuple[SettingsProblem, ...]


class SettingsStore:
    """The settings of one session; precedence is that of ``docs/settings.md``.

    Args:
        options: the client's ``initializationOptions``. They come from whoever starts the server, so they may set
            everything; ``trusted: true`` in them lets the client's configuration set everything too.
        folders: the workspace folders, the first of which may set what applies to the session.
        variables: the environment.
        user: the user's configuration file, by default in the system's folder for such files; the file of settings
            for single workspaces is next to it.
    """

    def __init__(
        self,
        options: Any = None,
        folders: Sequence[Path] = (),
        variables: Mapping[str, str] | None = None,
        user: Path | None = None,
    ) -> None:
        self._environment = environment(os.environ if variables is None else variables)
        self._options = SettingsSource("initializationOptions", options, client=True)
        self._trusted = isinstance(options, Mapping) and options.get("trusted") is True
        self._client_reports = isinstance(options, Mapping) and options.get(INVALID_SETTINGS) is True
        self._client_plots = isinstance(options, Mapping) and options.get(PLOTS) is True
        self._user = user
        self._client: Mapping[Path | None, Any] = {}
        self._reported: frozenset[SettingsProblem] = frozenset()
        self.use(self.read_files(folders))

    @property
    def client_plots(self) -> bool:
        """True if the client shows the plots in the details of a unit."""
        return self._client_plots

    @property
    def client_reports(self) -> bool:
        """True if the client itself notifies the user of invalid settings."""
        return self._client_reports

    def set_client(self, values: Mapping[Path | None, Any]) -> None:
        """Set the client's configuration by folder (None: for no folder); it applies from the next :meth:`use` on."""
        self._client = {folder.resolve() if folder else None: value for folder, value in values.items()}

    def read_files(self, folders: Sequence[Path]) -> FileSources:
        """Read all files for these workspace folders; changes nothing here, so it may run on a thread."""
        user, problems = user_source(self._user)
        sources: dict[Path, SettingsSource] = {}
        of_user: dict[Path, SettingsSource] = {}
        for folder in dict.fromkeys(folder.resolve() for folder in folders):
            sources[folder], in_folder = folder_source(folder, first=not sources)
            of_user[folder], in_workspaces = workspace_source(folder, self._user)
            problems += [*in_folder, *in_workspaces]
        return FileSources(user, sources, of_user, tuple(problems))

    def use(self, files: FileSources) -> None:
        """Resolve all settings from the files and the client's configuration."""
        resolved = {folder: resolve(self._sources(folder, files)) for folder in (None, *files.folders)}
        # One assignment: the analysis thread may look at any time.
        self.by_folder: Mapping[Path | None, Settings] = {
            folder: settings for folder, (settings, _) in resolved.items()
        }
        self._by_uri: dict[str, Settings] = {}
        self.session: Settings = self.by_folder[next(iter(files.folders), None)]
        problems = [*files.problems, *(problem for _, of_folder in resolved.values() for problem in of_folder)]
        self.problems: tuple[SettingsProblem, ...] = tuple(dict.fromkeys(problems))

    def unreported(self) -> tuple[SettingsProblem, ...]:
        """The current problems that did not exist at the previous call."""
        unreported = tuple(problem for problem in self.problems if problem not in self._reported)
        self._reported = frozenset(self.problems)
        return unreported

    def settings_for(self, uri: str) -> Settings:
        """The settings of a document: those of the innermost workspace folder that holds it."""
        settings = self._by_uri.get(uri)
        if settings is None:
            # Looked up for every unit of a document: resolving a path costs more than all the rest.
            if len(self._by_uri) >= _REMEMBERED:
                self._by_uri.clear()
            settings = self._by_uri[uri] = self.settings_of(_path(uri))
        return settings

    def settings_of(self, path: Path | None) -> Settings:
        """The settings of a file, by its absolute path; None for what is not in the file system."""
        known = self.by_folder
        return known[_innermost(known, path)]

    def relative(self, path: Path) -> PurePath:
        """A file's path below its workspace folder, for globs; its name alone outside all of them."""
        folder = _innermost(self.by_folder, path)
        return path.relative_to(folder) if folder is not None else PurePath(path.name)

    def excludes(self, path: Path | None) -> bool:
        """Return whether a file gets no predictions."""
        return path is not None and self.settings_of(path).excludes(self.relative(path))

    def _sources(self, folder: Path | None, files: FileSources) -> list[SettingsSource]:
        """The sources for a folder, in order of precedence."""
        answered = self._client.get(folder, self._client.get(None))
        scopes = ALL_SCOPES if self._trusted else OF_WORKSPACE
        client = SettingsSource(OF_CLIENT, answered, scopes, client=True)
        of_folder = [files.of_user[folder], files.folders[folder]] if folder is not None else []
        return [self._environment, client, self._options, *of_folder, files.user]


def _innermost(folders: Iterable[Path | None], path: Path | None) -> Path | None:
    """The innermost folder that holds a file."""
    holding = [folder for folder in folders if folder and path and path.is_relative_to(folder)]
    return max(holding, key=lambda folder: len(folder.parts), default=None)


def _path(uri: str) -> Path | None:
    path = path_of_uri(uri)
    return path.resolve() if path is not None else None
